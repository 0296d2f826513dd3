"""A worksheet of XlsxWriter that writes every digit of a number.

The library writes 16 significant digits, but it takes up to 17 to tell two doubles apart. Spreadsheets read all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xlsxwriter.worksheet import Worksheet


class ExactWorksheet(Worksheet):  # type: ignore[misc]
    """A worksheet whose numbers read back as they were."""

    def _xml_number_element(self, number: float, attributes: Iterable[tuple[str, Any]] = ()) -> None:
        # The library calls this for every cell with a number. The attributes are the cell's name and format.
        named = "".join(f' {key}="{value}"' for key, value in attributes)
        self.fh.write(f"<c{named}><v>{float(number)!r}</v></c>")
