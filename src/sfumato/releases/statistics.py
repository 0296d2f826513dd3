"""Summary statistics of classes (LeFevre 2008, section 3.3): the mean of a numeric column in each class.

A mean reveals more than a range, so it is released under conditions: a class has at least five records whatever k is
(``Policy.k``); a mean is computed from the exact sum and rounded to a grid that the certificate states; and a class in
which null is mixed with values, or that no interval or period holds, has no statistics of the column. For the audit,
the mean is part of the class key.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.errors import PolicyError
from sfumato.policy import ColumnSettings
from sfumato.releases.local_recoding import LEFT_OUT, Recoded, RecodedColumn
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.domains import Codes, Domain, NumericDomain

SHARE = 100  # a grid is at most 1/SHARE of the range of its column
SECOND = 1_000_000  # microseconds
SUFFIX = "_mean"
WARNING = (
    "a class shows the smallest and largest value of its records and their mean: some record has each of the two, and "
    "in a class of few different values all of them may be told, though not whose they are"
)


def has_statistics(domain: Domain) -> TypeGuard[NumericDomain]:
    """Whether a column holds numbers, dates or moments."""
    return isinstance(domain, NumericDomain) and domain.kind != "categorical"


def grid_of(recoded: RecodedColumn, column: ColumnSettings) -> Fraction:
    """The grid of a column, in the units of its domain: means are multiples of it.

    The policy sets it (``mean_round``, else ``round``; of dates in days, of moments in seconds). By default it is the
    largest power of ten that is at most a hundredth of the range that the released bounds span, and at least a day for
    dates, a second for moments. The range of the original would say something about records that were left out.
    """
    domain = recoded.domain
    requested = column.mean_round if column.mean_round is not None else column.round
    unit = SECOND if domain.kind == "moment" else 1
    if requested is not None:
        if domain.kind != "numeric" and Fraction(str(requested)).denominator != 1:
            unit_name = "seconds" if domain.kind == "moment" else "days"
            raise PolicyError(
                f"column {domain.name!r}: mean_round must be a whole number of {unit_name}, not {requested}."
            )
        return Fraction(str(requested)) * unit
    least = Fraction(0 if domain.kind == "numeric" else unit)
    low, high = _in_units(pc.min(recoded.low)), _in_units(pc.max(recoded.high))
    if low is None or high is None or low == high:
        return max(Fraction(1), least)
    reach = (high - low) / SHARE
    digits = math.floor(math.log10(reach))
    power = Fraction(10) ** digits
    while power > reach:  # the logarithm is rounded
        power /= 10
    return max(power, least)


def _in_units(bound: pa.Scalar) -> Fraction | None:
    """A typed bound as a number, dates in days and moments in microseconds; None for null."""
    if not bound.is_valid:
        return None
    if pa.types.is_date(bound.type):
        return Fraction(bound.value)
    if pa.types.is_timestamp(bound.type):
        return Fraction(bound.value, 1000 if bound.type.unit == "ns" else 1)
    return Fraction(bound.as_py())


def class_means(
    codes: Codes, domain: NumericDomain, recoded: Recoded, column: RecodedColumn, grid: Fraction
) -> pa.Array:
    """The mean of each class, a multiple of the grid; null if the class has no range.

    codes: the codes of all records in this column, not modified.
    """
    classes = recoded.class_of_row
    rows = np.flatnonzero(classes != LEFT_OUT)
    rows = rows[np.argsort(classes[rows], kind="stable")]
    starts = np.append(0, np.cumsum(recoded.sizes))[:-1]
    values, scale = _whole(domain.values)
    null = len(domain.values)
    # A class with a null has no mean, so the value that stands for null does not matter.
    sums = np.add.reduceat(np.append(values, values[:1])[np.minimum(codes[rows], null)], starts) if null else starts
    missing = to_numpy(column.low.is_null())[column.entry]
    exact = [
        Fraction(0) if absent else Fraction(int(total), int(size) * scale * 10**domain.scale)
        for total, size, absent in zip(sums, recoded.sizes, missing, strict=True)
    ]
    return _typed([round(mean / grid) * grid for mean in exact], missing, domain, grid)


def _whole(values: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """The values times a number that makes all of them whole, so that sums are exact, and that number."""
    if values.dtype.kind == "i":
        largest = max((abs(int(value)) for value in (values[:1].tolist() + values[-1:].tolist())), default=0)
        # Below this, sums of up to 2 ** 32 records fit into 64 bits; larger values become Python integers.
        return (values if largest < 1 << 30 else values.astype(object)), 1
    ratios = [value.as_integer_ratio() for value in values.tolist()]
    scale = max((below for _, below in ratios), default=1)  # all are powers of 2
    return np.array([above * (scale // below) for above, below in ratios], object), scale


def _typed(means: list[Fraction], missing: NDArray[np.bool_], domain: NumericDomain, grid: Fraction) -> pa.Array:
    if domain.kind == "date":
        return from_numpy(np.array([int(mean) for mean in means], np.int32), missing).cast(pa.date32())
    if domain.kind == "moment":
        moments = from_numpy(np.array([int(mean) for mean in means], np.int64), missing)
        return moments.cast(pa.timestamp("us", domain.zone))
    if domain.is_whole and grid.denominator == 1:
        return from_numpy(np.array([int(mean) for mean in means], np.int64), missing)
    return from_numpy(np.array([float(mean) for mean in means], np.float64), missing)


def stated(domain: Domain, grid: Fraction) -> dict[str, Any]:
    """The grid of a column as the certificate states it: of dates in days, of moments in seconds."""
    if domain.kind == "moment":
        grid /= SECOND
    return {
        "grid": int(grid) if grid.denominator == 1 else float(grid),
        **({"unit": "days" if domain.kind == "date" else "seconds"} if domain.kind != "numeric" else {}),
    }
