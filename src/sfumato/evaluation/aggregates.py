"""MIN, MAX, AVG and SUM of a release of summary statistics, from the released table alone (LeFevre 2008, section 3.3).

A mean stands for all records of its class, so sums of means equal the sums of the original, up to the rounding of
means. The certificate states the grid they were rounded to. Classes in which null is mixed with values have no
statistics; their records are counted separately.
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
from sfumato.tables.coding.released_labels import EPOCH, MICROSECOND, read_number
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import Source


@dataclass(frozen=True)
class Aggregate:
    """The aggregates of one column, over all records or over those that show ``group``.

    ``records`` counts the records with statistics, ``unknown`` those without. ``margin`` bounds how far the average is
    from that of the original; it is None where the rounding of means is unknown. The margin of the sum is ``records``
    times as large. Dates and moments have no sum. ``minimum`` and ``maximum`` are None if the release has no bounds.
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

    def __repr__(self) -> str:
        return f"<Aggregate of {self.column!r}: {self.records:,} records, {self.unknown:,} without statistics>"

    def as_dict(self) -> dict[str, Any]:
        """The aggregate as JSON values."""
        return {
            key: value.isoformat() if isinstance(value, datetime.date) else value for key, value in asdict(self).items()
        }


def aggregates_of(
    source: Source, policy: Policy, by: Sequence[str], grids: Mapping[str, Mapping[str, Any]]
) -> list[Aggregate]:
    """Aggregate every column that has means, over the whole release or grouped by the quasi-identifiers ``by``.

    ``grids`` holds, by column, the rounding of means that the certificate states.
    """
    for name in by:
        if name not in policy.quasi_identifiers:
            raise UsageError.unknown_choice("quasi-identifier", name, policy.quasi_identifiers)
    columns = [name for name in policy.quasi_identifiers if f"{name}_mean" in source.names]
    if not columns:
        raise UsageError(
            "the release has no means. Make one that has, with --form statistics or --form COL=mean, or in the policy "
            'with form = "statistics" under [release].'
        )
    aggregates = [aggregate for name in columns for aggregate in _of_column(source, name, by, grids.get(name))]
    return sorted(aggregates, key=lambda aggregate: (columns.index(aggregate.column), _sort_key(aggregate.group)))


def _sort_key(group: Mapping[str, str | None]) -> list[tuple[bool, str]]:
    """A key that puts null after all labels."""
    return [(label is None, label or "") for label in group.values()]


def _of_column(source: Source, name: str, by: Sequence[str], grid: Mapping[str, Any] | None) -> Iterator[Aggregate]:
    columns = {added: column for added in ("min", "max", "mean") if (column := f"{name}_{added}") in source.names}
    classes = find_classes(source, [*by, *(column for column in columns.values() if column not in by)])
    kind, values = _in_numbers([classes.values[column] for column in columns.values()])
    shown = np.stack([classes.shown[key] for key in by], axis=1) if by else np.zeros((len(classes.sizes), 1), np.int64)
    groups, group_of_class = np.unique(shown, axis=0, return_inverse=True)
    for group_id, group in enumerate(groups):
        class_ids = np.flatnonzero(group_of_class.ravel() == group_id)
        sizes = classes.sizes[class_ids].tolist()
        released = {
            added: [values[c][entry] for entry in classes.shown[column][class_ids].tolist()]
            for c, (added, column) in enumerate(columns.items())
        }
        known = [(size, mean) for size, mean in zip(sizes, released["mean"], strict=True) if mean is not None]
        total = sum((size * mean for size, mean in known), Fraction(0))
        records = sum(size for size, _ in known)
        yield Aggregate(
            name,
            {key: classes.values[key][entry] for key, entry in zip(by, group.tolist(), strict=False)},
            records,
            sum(sizes) - records,
            _typed(min((low for low in released.get("min", ()) if low is not None), default=None), kind),
            _typed(max((high for high in released.get("max", ()) if high is not None), default=None), kind),
            _typed(total / records if records else None, kind),
            _typed(total, kind) if kind == "numeric" and records else None,
            None if grid is None else grid["grid"] / 2,
        )


def _in_numbers(columns: list[list[object]]) -> tuple[str, list[list[Fraction | None]]]:
    """The kind of the values ("numeric", "date" or "moment"), and each value as a number: a file may hold text."""
    texts = [[None if value is None or value == "" else _text(value) for value in column] for column in columns]
    known = [text for column in texts for text in column if text is not None]
    kind = "numeric"
    if known and not all(_is_number(text) for text in known):
        kind = "date" if all(len(text) == len("2000-01-01") for text in known) else "moment"
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
    """Format a value of an aggregate for people."""
    if value is None:
        return "unknown"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
