"""Released labels and what they say: a value, a range or a period as text, and the ends of a range as numbers."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.taxonomies.periods import period_days

WHOLE = "*"
SIGNS = re.compile(r"(?<=\d)[+-](?=\.\.|\]|$)")
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
DAY = datetime.timedelta(days=1) // MICROSECOND  # in the unit of moments
SECONDS = len("2000-01-01T00:00:00")
DECIMAL = re.compile(r"-?\d{1,60}(\.\d{1,60})?([eE][+-]?\d{1,2})?", re.ASCII)
BEYOND_MICROSECONDS = re.compile(r"(?<=[.,]\d{6})\d+")


def moment_texts(values: NDArray[np.int64], scale: int, zone: str | None) -> Iterator[str]:
    """Write moments as ISO 8601; with a time zone, in its local time and with the offset from UTC."""
    microseconds = values // 10**scale
    local = microseconds if zone is None else local_microseconds(microseconds, zone)
    for moment, clock, shown in zip(values.tolist(), microseconds.tolist(), local.tolist(), strict=True):
        text = (EPOCH + datetime.timedelta(microseconds=shown)).isoformat()
        if moment % 10**scale:
            text = text[:SECONDS] + f".{moment % 10 ** (6 + scale):0{6 + scale}}".rstrip("0")
        yield text if zone is None else text + _offset_text((shown - clock) // 10**6)


def local_microseconds(values: NDArray[np.int64], zone: str) -> NDArray[np.int64]:
    """Return moments as a clock in the time zone shows them: since 1970-01-01 00:00 of that clock.

    Raises ``pa.ArrowInvalid`` for a time zone that this machine does not know.
    """
    moments = from_numpy(np.ascontiguousarray(values, np.int64)).cast(pa.timestamp("us", zone))
    return to_numpy(pc.local_timestamp(moments).cast(pa.int64()))


def _offset_text(seconds: int) -> str:
    hours, rest = divmod(abs(seconds), 3600)
    text = f"{'-' if seconds < 0 else '+'}{hours:02}:{rest // 60:02}"
    return text if rest % 60 == 0 else f"{text}:{rest % 60:02}"  # local mean time, before zones had whole minutes


def number_text(value: float | int) -> str:
    """Write a number as people do: 25, not 25.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(value)


def label_of(value: object) -> str | None:
    """Return the label of a released value. A value that was not generalised may still have its original type."""
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def released_ends(
    label: str, read: Callable[[str], float | Fraction], *, day: int = 0
) -> tuple[float | Fraction, float | Fraction] | None:
    """Return the two ends of a released range, a named period or a single value; None if it is none of these.

    read: see read_number. day: the units of ``read`` in a day, if labels may name periods.
    """
    if day and (period := period_days(label)) is not None:
        first, last = ((end - EPOCH.date()).days * day for end in period)
        return first, last
    low, bar, high = label[1:-1].partition("..") if label[:1] == "[" and label[-1:] == "]" else (label, "", label)
    bottom, top = read(low), read(high if bar else low)
    return (bottom, top) if bottom <= top else None


def without_signs(label: str) -> str:
    """Return a label without the signs for everything below or above: ``[85..90+]`` becomes ``[85..90]``."""
    return SIGNS.sub("", label)


def read_number(text: str, kind: str = "numeric") -> float | Fraction:
    """Read a number, a date (in days since 1970) or a moment (in microseconds since 1970); NaN if the text is not one.

    With ``kind`` "decimal", a number is read exactly; otherwise, unless it is whole, it is the nearest float. With
    "date", a moment is a fraction of days. Nanoseconds are fractions of a microsecond.
    """
    try:
        if kind == "decimal":
            return Fraction(text) if DECIMAL.fullmatch(text) else math.nan
        if kind == "numeric":
            # Whole numbers stay integers: beyond 53 bits a float would change them. Columns hold none beyond 64 bits.
            return int(text) if text.lstrip("-").isdecimal() and len(text) <= 20 else float(text)
        beyond = BEYOND_MICROSECONDS.search(text)  # Python would drop these digits
        moment = datetime.datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return math.nan
    elapsed: int | Fraction = (moment - EPOCH) // MICROSECOND
    if beyond is not None:
        elapsed += Fraction(f"0.{beyond.group()}")
    return Fraction(elapsed, DAY) if kind == "date" else elapsed
