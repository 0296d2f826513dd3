"""What a column holds, to be drawn: a histogram of numbers and dates, or the most frequent values and how many."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.evaluation.linkability.column_facts import ColumnValues, TextSettings, moment_of
from sfumato.tables.coding.value_order import text_of

BINS = 24
MOST_FREQUENT = 12


@dataclass(frozen=True)
class ColumnFigure:
    """Bars of one column. Labels are values of the table.

    kind: as in ``ColumnFacts``. ordered: the bars are ranges from low to high, otherwise they are values, the most
    frequent first. others: records whose value has no bar. values: every known value with its records.
    """

    name: str
    kind: str
    ordered: bool
    labels: tuple[str, ...] = field(repr=False)
    records: tuple[int, ...] = field(repr=False)
    others: int
    missing: int
    values: pa.Table = field(repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """The bars as JSON values."""
        names = ("name", "kind", "ordered", "labels", "records", "others", "missing")
        return {name: list(value) if isinstance(value := getattr(self, name), tuple) else value for name in names}


def figure_of(column: ColumnValues, kind: str, settings: TextSettings) -> ColumnFigure:
    """Return the figure of a column that holds what ``kind`` says."""
    values, counts = column.known(settings)
    texts = [_text(value) for value in values]
    order = np.lexsort((np.arange(len(texts)), -counts)) if texts else np.zeros(0, np.int64)
    every = pa.table({"value": pa.array([texts[index] for index in order], pa.string()), "records": counts[order]})
    missing = column.records - int(counts.sum())
    if kind in ("whole", "decimal", "date") and len(values) > MOST_FREQUENT:
        labels, records = _ranges(_numbers(values, kind, settings), counts, kind)
        return ColumnFigure(column.name, kind, True, labels, records, 0, missing, every)
    if kind in ("whole", "decimal", "date"):
        order = np.argsort(_numbers(values, kind, settings), kind="stable")
    shown = order[:MOST_FREQUENT]
    labels = tuple(texts[index] for index in shown)
    records = tuple(int(counts[index]) for index in shown)
    others = int(counts.sum()) - sum(records)
    return ColumnFigure(
        column.name, kind, kind in ("whole", "decimal", "date"), labels, records, others, missing, every
    )


def _text(value: Any) -> str:
    """Return a value as a release and a taxonomy write it."""
    return value.isoformat() if isinstance(value, datetime.datetime) else text_of(value)


def _numbers(values: Sequence[Any], kind: str, settings: TextSettings) -> NDArray[np.float64]:
    """Return numbers as they are, and dates as days."""
    if kind == "date":
        moments = [_moment(value, settings) for value in values]
        return np.array([0.0 if moment is None else float(moment.toordinal()) for moment in moments])
    form = settings.numbers
    return np.array([float(form.plain(value)) if isinstance(value, str) else float(value) for value in values])


def _moment(value: Any, settings: TextSettings) -> Any:
    """Return a date. Moments in nanoseconds come as text of ISO 8601."""
    if not isinstance(value, str):
        return value
    return moment_of(value, settings.date_format) or moment_of(value, None)


def _ranges(
    numbers: NDArray[np.float64], counts: NDArray[np.int64], kind: str
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    finite = np.isfinite(numbers)
    numbers, counts = numbers[finite], counts[finite]
    if not len(numbers):
        return (), ()
    low, high = float(numbers.min()), float(numbers.max())
    bins = min(BINS, int(high - low) + 1) if kind != "decimal" else BINS
    records, edges = np.histogram(numbers, bins=max(bins, 1), weights=counts)
    write = _day if kind == "date" else _short
    labels = tuple(f"{write(left)} \N{EN DASH} {write(right)}" for left, right in pairwise(edges))
    return labels, tuple(round(count) for count in records)


def _day(number: float) -> str:
    return datetime.date.fromordinal(max(1, round(number))).isoformat()


def _short(number: float) -> str:
    return f"{number:.4g}" if abs(number) < 10_000 else f"{number:.0f}"
