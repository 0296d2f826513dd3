"""Summary statistics of classes (LeFevre 2008, section 3.3): the mean or the median of a column in each class.

Either reveals more than a range, so it is released under conditions: a class has at least five records whatever k is
(``Policy.k``); a mean is computed from the exact sum, a median from the exact values, and both are rounded to a grid
that the certificate states; and a class in which null is mixed with values, or that no interval or period holds, has no
statistics of the column. For the audit, they are part of the class key.

The median is the lower one, so it is the value of a record, as a bound is. By default its grid is therefore no finer
than what bounds are widened to.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any, Final, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import PolicyError
from sfumato.policy import ColumnSettings, Grouping
from sfumato.policy.column_forms import Added, ColumnForm
from sfumato.policy.column_settings import STATISTIC_ROUND
from sfumato.releases.local_recoding import LEFT_OUT, Recoded, RecodedColumn
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.domains import Codes, Domain, NumericDomain
from sfumato.tables.coding.released_labels import WHOLE

SHARE = 100  # a grid is at most 1/SHARE of the range of its column
SECOND = 1_000_000  # microseconds
WARNINGS: Final[Mapping[ColumnForm, str]] = {
    "statistics": "a class shows the smallest and largest value of its records and their mean: some record has each of "
    "the two, and in a class of few different values all of them may be told, though not whose they are",
    "mean": "a class shows the mean of its records: with the ends of their range, all values of a class of few "
    "different ones may be told, though not whose they are",
    "median": "a class shows the median of its records, which is the value of one of them, rounded",
}
SHORTEST_DAYS = {"week": 7, "month": 28, "quarter": 90, "year": 365, "decade": 3652}  # of each unit of a calendar


def has_statistics(domain: Domain) -> TypeGuard[NumericDomain]:
    """Whether a column holds numbers, dates or moments."""
    return isinstance(domain, NumericDomain) and domain.kind != "categorical"


def grid_of(recoded: RecodedColumn, column: ColumnSettings, added: Collection[Added]) -> Fraction:
    """The grid of a column, in the units of its domain: its means or medians are multiples of it.

    The policy sets it (``statistic_round``, else ``round``; of dates in days, of moments in seconds). By default it is
    the largest power of ten that is at most a hundredth of the range that the release shows, and at least a day for
    dates, a second for moments. The range of the original would say something about records that were left out. Of
    medians, it is at least the narrowest interval or period of the policy.

    added: what the release shows beside the labels of the column.
    """
    domain = recoded.domain
    requested = column.statistic_round if column.statistic_round is not None else column.round
    if requested is None and "median" in added:
        requested = _narrowest(column)
    unit = SECOND if domain.kind == "moment" else 1
    if requested is not None:
        if domain.kind != "numeric" and Fraction(str(requested)).denominator != 1:
            unit_name = "seconds" if domain.kind == "moment" else "days"
            raise PolicyError(
                f"column {domain.name!r}: {STATISTIC_ROUND} must be a whole number of {unit_name}, not {requested}."
            )
        return Fraction(str(requested)) * unit
    least = Fraction(0 if domain.kind == "numeric" else unit)
    low, high = _shown_range(recoded, bounds="min" in added)
    if low is None or high is None or low == high:
        return max(Fraction(1), least)
    reach = (high - low) / SHARE
    digits = math.floor(math.log10(reach))
    power = Fraction(10) ** digits
    while power > reach:  # the logarithm is rounded
        power /= 10
    return max(power, least)


def _narrowest(column: ColumnSettings) -> int | float | None:
    """What bounds are widened to at least, of a calendar in days; None if they are values of records."""
    if not isinstance(column.taxonomy, Grouping):
        return None
    if column.taxonomy.intervals is not None:
        return column.taxonomy.intervals[0]
    return None if column.taxonomy.calendar is None else SHORTEST_DAYS[column.taxonomy.calendar[0]]


def _shown_range(recoded: RecodedColumn, *, bounds: bool) -> tuple[Fraction | None, Fraction | None]:
    """The smallest and the largest number that the release shows. Without bounds, ``*`` shows none."""
    low, high = recoded.low, recoded.high
    if not bounds:
        ranges = pc.not_equal(recoded.labels, WHOLE)
        if len(low) > low.null_count and not pc.any(pc.and_(ranges, low.is_valid())).as_py():
            raise PolicyError(
                f"column {recoded.domain.name!r}: every class that has numbers shows '*', so nothing in the release "
                f"says how far means and medians must be rounded. Set {STATISTIC_ROUND} of the column, or choose a "
                "smaller k."
            )
        low, high = low.filter(ranges), high.filter(ranges)
    return _in_units(pc.min(low)), _in_units(pc.max(high))


def _in_units(bound: pa.Scalar) -> Fraction | None:
    """A typed bound as a number, dates in days and moments in microseconds; None for null."""
    if not bound.is_valid:
        return None
    if pa.types.is_date(bound.type):
        return Fraction(bound.value)
    if pa.types.is_timestamp(bound.type):
        return Fraction(bound.value, 1000 if bound.type.unit == "ns" else 1)
    return Fraction(bound.as_py())


def class_statistic(
    kind: Added, codes: Codes, domain: NumericDomain, recoded: Recoded, column: RecodedColumn, grid: Fraction
) -> pa.Array:
    """The mean or the lower median of each class, a multiple of the grid; null if the class has no range.

    codes: the codes of all records in this column, not modified.
    """
    classes = recoded.class_of_row
    rows = np.flatnonzero(classes != LEFT_OUT)
    rows = rows[np.lexsort((codes[rows], classes[rows]))]
    starts = np.append(0, np.cumsum(recoded.sizes))[:-1]
    values, scale = _whole(domain.values)
    null = len(domain.values)
    # A class with a null has no statistics, so the value that stands for null does not matter.
    sorted_codes, values = np.minimum(codes[rows], null), np.append(values, values[:1])
    if not null:
        totals, counts = starts, recoded.sizes
    elif kind == "mean":
        totals, counts = np.add.reduceat(values[sorted_codes], starts), recoded.sizes
    else:
        middle = starts + (recoded.sizes - 1) // 2  # codes rise with values
        totals, counts = values[sorted_codes[middle]], np.ones_like(recoded.sizes)
    missing = to_numpy(column.low.is_null())[column.entry]
    exact = [
        Fraction(0) if absent else Fraction(int(total), int(count) * scale * 10**domain.scale)
        for total, count, absent in zip(totals, counts, missing, strict=True)
    ]
    # A whole median stays whole if whole numbers are multiples of the grid.
    is_whole = domain.is_whole and (grid.denominator == 1 or (kind == "median" and grid.numerator == 1))
    return _typed([round(number / grid) * grid for number in exact], missing, domain, is_whole=is_whole)


def _whole(values: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """The values times a number that makes all of them whole, so that sums are exact, and that number."""
    if values.dtype.kind == "i":
        largest = max((abs(int(value)) for value in (values[:1].tolist() + values[-1:].tolist())), default=0)
        # Below this, sums of up to 2 ** 32 records fit into 64 bits; larger values become Python integers.
        return (values if largest < 1 << 30 else values.astype(object)), 1
    ratios = [value.as_integer_ratio() for value in values.tolist()]
    scale = max((below for _, below in ratios), default=1)  # all are powers of 2
    return np.array([above * (scale // below) for above, below in ratios], object), scale


def _typed(numbers: list[Fraction], missing: NDArray[np.bool_], domain: NumericDomain, *, is_whole: bool) -> pa.Array:
    if domain.kind == "date":
        return from_numpy(np.array([int(number) for number in numbers], np.int32), missing).cast(pa.date32())
    if domain.kind == "moment":
        moments = from_numpy(np.array([int(number) for number in numbers], np.int64), missing)
        return moments.cast(pa.timestamp("us", domain.zone))
    if is_whole:
        return from_numpy(np.array([int(number) for number in numbers], np.int64), missing)
    return from_numpy(np.array([float(number) for number in numbers], np.float64), missing)


def stated(domain: Domain, grid: Fraction) -> dict[str, Any]:
    """The grid of a column as the certificate states it: of dates in days, of moments in seconds."""
    if domain.kind == "moment":
        grid /= SECOND
    return {
        "grid": int(grid) if grid.denominator == 1 else float(grid),
        **({"unit": "days" if domain.kind == "date" else "seconds"} if domain.kind != "numeric" else {}),
    }
