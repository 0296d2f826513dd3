"""Dates as a spreadsheet shows them: it keeps a date as the midnight at which it begins."""

from __future__ import annotations

import re

DATE_AND_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)[ T]00:00:00")


def without_midnight(cell: str) -> str:
    """Return the text of a cell, of a date without its time if that is midnight."""
    found = DATE_AND_MIDNIGHT.fullmatch(cell)
    return cell if found is None else found[1]
