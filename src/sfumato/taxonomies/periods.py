"""Names that people know for the periods of a calendar: 2023-01, 2023-Q1, 2023 and 2020s. A week has none."""

from __future__ import annotations

import calendar
import datetime
import re

NAME = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>0[1-9]|1[0-2])|-Q(?P<quarter>[1-4]))?|(?P<decade>\d{3}0)s", flags=re.ASCII
)
QUARTER, YEAR, DECADE = 3, 12, 120  # months


def period_name(unit: str, first: datetime.date) -> str | None:
    """Return the name of the month, quarter, year or decade that begins on a day; None for other units."""
    match unit:
        case "month":
            return f"{first.year:04}-{first.month:02}"
        case "quarter":
            return f"{first.year:04}-Q{(first.month + 2) // QUARTER}"
        case "year":
            return f"{first.year:04}"
        case "decade":
            return f"{first.year:04}s"
    return None


def period_days(name: str) -> tuple[datetime.date, datetime.date] | None:
    """Return the first and the last day of a period, or None for a text that names none."""
    found = NAME.fullmatch(name)
    if found is None:
        return None
    year = int(found["year"] or found["decade"])
    month = int(found["month"] or QUARTER * int(found["quarter"] or 1) - QUARTER + 1)
    months = 1 if found["month"] else QUARTER if found["quarter"] else DECADE if found["decade"] else YEAR
    last = 12 * year + month - 1 + months - 1  # the last month of the period, counted from January of the year 0
    if year < datetime.MINYEAR:
        return None
    last_year, last_month = last // 12, last % 12 + 1
    last_day = calendar.monthrange(last_year, last_month)[1]
    return datetime.date(year, month, 1), datetime.date(last_year, last_month, last_day)
