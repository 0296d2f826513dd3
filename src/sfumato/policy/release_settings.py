"""The section ``[release]``: how the release is written."""

from __future__ import annotations

import numbers
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, StrictBool, model_validator

from sfumato.parameters import whole_number
from sfumato.policy.column_forms import ColumnForm
from sfumato.policy.error_text import wrong
from sfumato.policy.input_settings import separator_character
from sfumato.policy.section import PolicySection
from sfumato.policy.written_text import DecimalMark, written_encoding

BoxKind = Literal["smallest", "regions"]
FormulaHandling = Literal["keep", "disarm"]

LARGEST_SEED = 2**63 - 1  # the largest integer that every reader of TOML accepts


def _fraction(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= value < 1:  # type: ignore[operator]
        raise wrong("must be a number of at least 0 and below 1")
    return float(value)


def _cost(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= value <= 1:  # type: ignore[operator]
        raise wrong("must be a number from 0, which costs nothing, to 1, which is all information of the record")
    return float(value)


def _optional_separator(value: Any) -> str | None:
    return None if value is None else separator_character(value)


class ReleaseSettings(PolicySection):
    """How the release is written."""

    seed: Annotated[int, BeforeValidator(whole_number(0, LARGEST_SEED))] | None = None
    keep_order: StrictBool = False
    max_suppressed_fraction: Annotated[float, BeforeValidator(_fraction)] = 0.0
    """The share of the records that may be left out."""
    suppression_cost: Annotated[float, BeforeValidator(_cost)] = 1.0
    """What a record that is left out costs: a share of all its information."""
    form: ColumnForm = "labels"
    """The form of every number and date whose column does not name its own."""
    boxes: BoxKind = "smallest"
    """Whether a class shows the smallest box around its records, or its region, which applies to new records too."""

    formulas: FormulaHandling = "keep"
    """Whether cells of CSV that a spreadsheet takes for formulas stay as they are, or begin with an apostrophe."""
    separator: Annotated[str | None, BeforeValidator(_optional_separator)] = None
    """The character between the cells of CSV. None: as in the input, unless numbers have that mark."""
    encoding: Annotated[str, BeforeValidator(written_encoding)] = "utf-8"
    """The encoding of CSV."""
    decimal: DecimalMark = "."
    """The decimal mark of numbers in CSV."""
    codebook: StrictBool = False
    """Whether a page that explains every column and label is written beside the release."""

    @model_validator(mode="after")
    def _check_marks(self) -> Self:
        if self.separator == self.decimal:
            raise wrong(
                f"is {self.separator!r} and so is the decimal mark. Set the two to different characters", "separator"
            )
        return self
