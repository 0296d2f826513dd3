"""How SPSS, Stata and SAS store time: a column of plain numbers, and a format that says what they count.

SPSS counts seconds from 14 October 1582. SAS counts days or seconds, and Stata days, milliseconds or periods of a year,
from 1 January 1960. A format that shows only a part of a date, such as its month, still belongs to a whole date.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy

SECOND, DAY = 1000, 86_400_000  # in milliseconds
_FIRST, _LAST = (
    int(np.datetime64(moment, "ms").astype(np.int64)) for moment in ("0001-01-01", "9999-12-31T23:59:59.999")
)
_SPSS_DATES = frozenset(("DATE", "ADATE", "EDATE", "JDATE", "SDATE", "QYR", "MOYR", "WKYR"))
_SPSS_MOMENTS = frozenset(("DATETIME", "YMDHMS"))
# SAS puts the separator of some formats behind their names: B(lank), C(olon), D(ash), N(one), P(eriod) or S(lash).
_SAS_DATES = re.compile(
    "DATE|DAY|DOWNAME|JULDAY|JULIAN|MONNAME|MONTH|MONYY|QTRR?|WEEKDAT[EX]|WEEKDAY|WORDDAT[EX]|YEAR|YYMON|[BE]8601DA"
    "|IS8601DA|NLDATE|(?:DDMMYY|MMDDYY|YYMMDD|MMYY|YYMM|YYQR?)[BCDNPS]?"
)
_SAS_MOMENTS = re.compile(
    "DATETIME|DATEAMPM|DTDATE|DTMONYY|DTWKDATX|DTYEAR|DTYYQC|MDYAMPM|[BE]8601D[TNXZ]|IS8601DT|NLDATM"
)
_SAS_TIMES = re.compile("TIME|TIMEAMPM|TOD|HHMM|HOUR|MMSS|[BE]8601TM|IS8601TM|NLTIME|NLTIMAP")
_STATA_FORMAT = re.compile(r"%-?(?P<unit>t[cdwmqh]|d)(?P<shown>.*)")
_STATA_PERIODS = {"tw": 52, "tm": 12, "tq": 4, "th": 2}  # in a year


@dataclass(frozen=True)
class TimeFormat:
    """What the numbers of a column count: ``unit`` milliseconds each from ``origin``, or periods from 1960.

    origin: in milliseconds from 1970. periods: of a year, 0 if the numbers count milliseconds.
    """

    kind: Literal["date", "moment", "time"]
    unit: int = DAY
    origin: int = 0
    periods: int = 0

    def milliseconds(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what numbers mean, in milliseconds from 1970 or from midnight; NaN if no calendar or clock has it."""
        if self.kind == "time":
            moments = np.rint(numbers * self.unit)
            return np.where((moments >= 0) & (moments < DAY), moments, np.nan)
        moments = self._from_periods(numbers) if self.periods else np.rint(numbers * self.unit) + self.origin
        return np.where((moments >= _FIRST) & (moments <= _LAST), moments, np.nan)

    def _from_periods(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the first days of periods. Weeks begin with 1 January, and the last one of a year is longer."""
        periods = np.where((np.floor(numbers) == numbers) & (np.abs(numbers) < 10**6), numbers, 0).astype(np.int64)
        years, parts = np.divmod(periods, self.periods)
        months = (years - 10) * 12 + (0 if self.periods == 52 else parts * (12 // self.periods))
        days = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        days = days + (parts * 7 if self.periods == 52 else 0)
        return np.where(periods == numbers, days * float(DAY), np.nan)


def _from(day: str, kind: Literal["date", "moment"], unit: int) -> TimeFormat:
    return TimeFormat(kind, unit, int(np.datetime64(day, "ms").astype(np.int64)))


def time_format(program: str, stored: str | None) -> TimeFormat | None:
    """Return what the numbers of a column count by its format in the file, or None if they are numbers."""
    if not stored:
        return None
    if program == "stata":
        return _of_stata(stored)
    name = re.sub(r"\d*\.?\d*$", "", stored.upper())
    if program == "spss":
        if name in _SPSS_DATES or name in _SPSS_MOMENTS:
            return _from("1582-10-14", "date" if name in _SPSS_DATES else "moment", SECOND)
        return TimeFormat("time", SECOND) if name == "TIME" else None
    if _SAS_DATES.fullmatch(name):
        return _from("1960-01-01", "date", DAY)
    if _SAS_MOMENTS.fullmatch(name):
        return _from("1960-01-01", "moment", SECOND)
    return TimeFormat("time", SECOND) if _SAS_TIMES.fullmatch(name) else None


def _of_stata(stored: str) -> TimeFormat | None:
    match = _STATA_FORMAT.fullmatch(stored)
    if match is None:
        return None
    unit = match["unit"]
    if unit in _STATA_PERIODS:
        return TimeFormat("date", periods=_STATA_PERIODS[unit])
    if unit != "tc":
        return _from("1960-01-01", "date", DAY)
    # A format with hours and without a day or a year shows a time of day.
    if match["shown"] and re.search("[Hh]", match["shown"]) and not re.search("[CYDdNnJj]", match["shown"]):
        return TimeFormat("time", 1)
    return _from("1960-01-01", "moment", 1)


@dataclass
class NumberFacts:
    """What all numbers of a column have in common, gathered batch by batch. It decides the type of the column.

    SPSS and SAS store nothing but floating-point numbers. A column of whole numbers is therefore known only when all
    of them were seen.
    """

    stored: str  # the library's name of the type in the file
    time: TimeFormat | None
    whole: bool = True
    whole_days: bool = field(default=True, init=False)
    whole_seconds: bool = field(default=True, init=False)
    beyond_time: bool = field(default=False, init=False)

    def see(self, column: pa.Array) -> None:
        """Take the numbers of a batch into account."""
        numbers = to_numpy(column.drop_null())
        if self.whole:
            self.whole = bool(np.all((np.floor(numbers) == numbers) & (np.abs(numbers) <= 1 << 53)))
        if self.time is None or self.beyond_time:
            return
        moments = self.time.milliseconds(numbers)
        self.beyond_time = bool(np.isnan(moments).any())
        self.whole_days = self.whole_days and not np.any(moments % DAY)
        self.whole_seconds = self.whole_seconds and not np.any(moments % SECOND)

    @property
    def type(self) -> pa.DataType:
        if self.time is None or self.beyond_time:
            return pa.int64() if self.whole else pa.float32() if self.stored == "float" else pa.float64()
        unit = "s" if self.whole_seconds else "ms"
        if self.time.kind == "time":
            return pa.time32(unit)
        return pa.date32() if self.time.kind == "date" and self.whole_days else pa.timestamp(unit)

    def typed(self, column: pa.Array) -> pa.Array:
        """Return stored numbers as values of the type."""
        if self.time is None or self.beyond_time:
            return column.cast(self.type)
        missing = to_numpy(column.is_null())
        moments = self.time.milliseconds(to_numpy(column, null=0))
        whole: NDArray[Any] = np.where(missing, 0, moments).astype(np.int64)
        if pa.types.is_date(self.type):
            return from_numpy((whole // DAY).astype(np.int32), missing).cast(self.type)
        whole = whole // SECOND if self.whole_seconds else whole
        return from_numpy(whole.astype(np.int32) if self.time.kind == "time" else whole, missing).cast(self.type)
