"""MIN, MAX, AVG and SUM of a release of summary statistics, from the released table alone (LeFevre 2008, section 3.3).

A mean stands for all records of its class, so sums of it are those of the original, but for the rounding of means, of
which the certificate tells the grid. Records of classes without statistics, where null is mixed in, are counted apart.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import UsageError
from sfumato.policy import Policy
from sfumato.tables.coding.domains import EPOCH, MICROSECOND, read_number
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import Source


@dataclass(frozen=True)
class Aggregate:
    """What is known of one column, over all records or those that show ``group``.

    ``records`` have statistics, ``unknown`` have none. ``margin`` is how far the average is from that of the original
    at most, none where nobody says what means were rounded to; that of the sum is as often as much as there are
    records. Dates and moments have no sum.
    """

    column: str
    group: Mapping[str, str | None]
    records: int
    unknown: int
    minimum: Any
    maximum: Any
    average: Any
    sum: float | int | None
    margin: float | None

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            key: value.isoformat() if isinstance(value, datetime.date) else value for key, value in asdict(self).items()
        }


def aggregates_of(
    source: Source, policy: Policy, by: Sequence[str], grids: Mapping[str, Mapping[str, Any]]
) -> list[Aggregate]:
    """Of every column with statistics, over the whole release or by what it shows for the quasi-identifiers ``by``."""
    for name in by:
        if name not in policy.quasi_identifiers:
            raise UsageError.unknown_choice("quasi-identifier", name, policy.quasi_identifiers)
    columns = [name for name in policy.quasi_identifiers if f"{name}_mean" in source.names]
    if not columns:
        raise UsageError(
            "the release has no summary statistics. Make one that has, with --form statistics or, in the policy, "
            'form = "statistics" under [release].'
        )
    found = [one for name in columns for one in _of_column(source, name, by, grids.get(name))]
    return sorted(found, key=lambda one: (columns.index(one.column), _in_order(one.group)))


def _in_order(group: Mapping[str, str | None]) -> list[tuple[bool, str]]:
    """Null after all labels."""
    return [(label is None, label or "") for label in group.values()]


def _of_column(source: Source, name: str, by: Sequence[str], grid: Mapping[str, Any] | None) -> Iterator[Aggregate]:
    told = [f"{name}_{what}" for what in ("min", "max", "mean")]
    classes = find_classes(source, [*by, *(one for one in told if one not in by)])
    kind, values = _in_numbers([classes.values[one] for one in told])
    shown = np.stack([classes.shown[one] for one in by], axis=1) if by else np.zeros((len(classes.sizes), 1), np.int64)
    groups, number = np.unique(shown, axis=0, return_inverse=True)
    for place, group in enumerate(groups):
        here = np.flatnonzero(number.ravel() == place)
        sizes = classes.sizes[here].tolist()
        low, high, mean = (
            [values[column][entry] for entry in classes.shown[one][here].tolist()] for column, one in enumerate(told)
        )
        known = [size for size, one in zip(sizes, mean, strict=True) if one is not None]
        total = sum((size * one for size, one in zip(sizes, mean, strict=True) if one is not None), Fraction(0))
        records = sum(known)
        yield Aggregate(
            name,
            {one: classes.values[one][entry] for one, entry in zip(by, group.tolist(), strict=False)},
            records,
            sum(sizes) - records,
            _typed(min((one for one in low if one is not None), default=None), kind),
            _typed(max((one for one in high if one is not None), default=None), kind),
            _typed(total / records if records else None, kind),
            _typed(total, kind) if kind == "numeric" and records else None,
            None if grid is None else grid["grid"] / 2,
        )


def _in_numbers(columns: list[list[object]]) -> tuple[str, list[list[Fraction | None]]]:
    """What the values are, and each as a number: a file may have them as text."""
    texts = [[None if value is None or value == "" else _text(value) for value in column] for column in columns]
    given = [text for column in texts for text in column if text is not None]
    kind = "numeric"
    if given and not all(_is_number(text) for text in given):
        kind = "date" if all(len(text) == len("2000-01-01") for text in given) else "moment"
    return kind, [[None if text is None else _fraction(text, kind) for text in column] for column in texts]


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _is_number(text: str) -> bool:
    return read_number(text) == read_number(text)


def _fraction(text: str, kind: str) -> Fraction:
    # A double stands for the shortest decimal that reads back as it, so that sums of means on a grid are exact.
    return Fraction(text) if kind == "numeric" else Fraction(read_number(text, kind))


def _typed(number: Fraction | None, kind: str) -> Any:
    if number is None:
        return None
    if kind == "numeric":
        return int(number) if number.denominator == 1 else float(number)
    if kind == "date":
        return (EPOCH + round(number) * datetime.timedelta(days=1)).date()
    return EPOCH + round(number) * MICROSECOND


def amount(value: Any) -> str:
    """A value of an aggregate for people."""
    if value is None:
        return "unknown"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
