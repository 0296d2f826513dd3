"""The section ``[input]``: how files and text are read."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, model_validator

from sfumato.errors import UsageError
from sfumato.parameters import whole_number
from sfumato.policy.error_text import wrong
from sfumato.policy.section import PolicySection, optional_name, optional_path, text_list

DEFAULT_ENCODING = "utf-8"
MAX_EXPANSION = 200  # records that differ are hardly ever compressed that far
THOUSANDS = (".", ",", "'", "\u2019", " ", "\u00a0", "\u202f")  # marks; the last two are spaces that do not break
_DIRECTIVES = frozenset("aAwdbBmyYHIMpfzZjUWcxXGuV")


def separator_character(value: Any) -> str:
    """Accept a character that can stand between cells."""
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value in '"\r\n\0':
        raise wrong("must be one ASCII character other than a quotation mark or a line break")
    return value


def _encoding(value: Any) -> str:
    try:
        "a".encode(value)
    except (LookupError, TypeError, ValueError):
        raise wrong('must be an encoding that Python knows, such as "utf-8" or "cp1252"') from None
    return str(value)


def _thousands(value: Any) -> str | None:
    if value is not None and (not isinstance(value, str) or value not in THOUSANDS):
        raise wrong("must be a point, a comma, an apostrophe or a space")
    return value


def _row(value: Any) -> int | None:
    return None if value is None else whole_number(1)(value)


def _labels(value: Any) -> bool | tuple[str, ...]:
    if isinstance(value, bool):
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) and item for item in value):
        raise wrong("must be true, false, or a list of the columns that are read by their labels")
    return tuple(dict.fromkeys(value)) or False


def _date_format(value: Any) -> str | None:
    if value is None:
        return None
    directives = re.findall(r"%(.?)", value, re.DOTALL) if isinstance(value, str) else []
    if not _DIRECTIVES.intersection(directives) or not _DIRECTIVES.union("%").issuperset(directives):
        raise wrong('must be made of the directives of strptime, such as "%d.%m.%Y"')
    return str(value)


class InputSettings(PolicySection):
    """How CSV files are read, and how numbers and dates are written as text."""

    separator: Annotated[str, BeforeValidator(separator_character)] = ","
    encoding: Annotated[str, BeforeValidator(_encoding)] = DEFAULT_ENCODING
    decimal: Literal[".", ","] = "."
    thousands: Annotated[str | None, BeforeValidator(_thousands)] = None
    nulls: Annotated[tuple[str, ...], BeforeValidator(text_list)] = ("",)
    date_format: Annotated[str | None, BeforeValidator(_date_format)] = None
    sheet: Annotated[str | None, BeforeValidator(optional_name)] = None
    header_row: Annotated[int | None, BeforeValidator(_row)] = None
    layout: Annotated[str | None, BeforeValidator(optional_path)] = None
    labels: Annotated[bool | tuple[str, ...], BeforeValidator(_labels)] = True
    max_expansion: Annotated[int, BeforeValidator(whole_number(1))] = MAX_EXPANSION

    @model_validator(mode="after")
    def _check_marks(self) -> Self:
        if self.decimal == self.separator and self.layout is None:
            key, other = ("decimal", "separator") if "decimal" in self.model_fields_set else ("separator", "decimal")
            raise wrong(f"is {self.decimal!r} and so is the {other}. Set the two to different characters", key)
        if self.thousands == self.decimal:
            raise wrong(
                f"is {self.thousands!r} and so is the decimal mark. Set the two to different characters", "thousands"
            )
        return self


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """How the cells of a file are written: the input settings as plain data for the readers of tables.

    A reader needs ``separator``, ``encoding``, ``sheet``, ``header_row``, ``layout``, ``labels`` and ``column_nulls``.
    The other options say what the text of a CSV cell means, and apply to quasi-identifiers only. A ``.tsv`` file is
    separated by tabs unless the separator is something other than the comma. ``sheet`` names a sheet of an Excel file;
    without it the first sheet is read. ``header_row`` is the row of a sheet, or the line of a text file, that holds the
    names of the columns, from 1. ``layout`` is the file that says at which positions the columns of a text file stand.
    ``labels``: whether columns of an SPSS or Stata file are read by the labels of their values, or the names of those
    that are. ``column_nulls``: texts that are null, by column. A compressed file with more than ``max_expansion`` times
    as much text as it has bytes is refused; None allows any. ``disarmed``: the CSV file is a release in which formulas
    begin with an apostrophe. ``comma_columns``: the columns of a CSV release whose numbers have a decimal comma.
    """

    separator: str = ","
    encoding: str = DEFAULT_ENCODING
    decimal: str = "."
    thousands: str | None = None
    nulls: tuple[str, ...] = ("",)
    date_format: str | None = None
    sheet: str | None = None
    header_row: int | None = None
    layout: Path | None = None
    labels: bool | tuple[str, ...] = True
    max_expansion: int | None = MAX_EXPANSION
    disarmed: bool = False
    comma_columns: frozenset[str] = frozenset()
    column_nulls: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.separator) != 1 or not self.separator.isascii() or self.separator in '"\r\n\0':
            raise UsageError(
                f"the separator {self.separator!r} cannot be used. Give one ASCII character that is neither a quote "
                "nor a line end, such as ',', ';' or '\\t'."
            )
        try:
            io.TextIOWrapper(io.BytesIO(), encoding=self.encoding)
        except (LookupError, ValueError):
            raise UsageError(
                f"unknown encoding {self.encoding!r}. Give a name that Python knows, such as 'utf-8', 'cp1252' or "
                "'utf-16'."
            ) from None
