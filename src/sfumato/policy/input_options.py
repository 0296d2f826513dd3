"""How the text of an input is read: plain data for the readers of tables."""

from __future__ import annotations

import io
from dataclasses import dataclass

from sfumato.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """How the cells of a file are written.

    ``separator``, ``encoding`` and ``sheet`` are needed to read; the rest says what the text of a CSV cell means, which
    is asked for quasi-identifiers alone. A ``.tsv`` file is separated by tabs unless another separator than the comma
    is given. ``sheet`` is the name of an Excel sheet; without it the first is read.
    """

    separator: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    nulls: tuple[str, ...] = ("",)
    date_format: str | None = None
    sheet: str | None = None

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
