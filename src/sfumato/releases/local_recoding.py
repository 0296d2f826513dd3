"""Local recoding: every record shows the box of its class (Ghinita 2007, section 2).

Classes arrive in batches. What is kept is one number a record and one box a class; labels are made for distinct boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.kernels.threads import in_threads
from sfumato.methods.method import ClassBatch
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.dictionaries import dictionary_array, sorted_codes
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.sorting import Field, SortedRows, bits_for, sort_rows

LEFT_OUT = np.uint32(0xFFFFFFFF)  # the class of a record that is not released


@dataclass(frozen=True)
class RecodedColumn:
    """What the classes show for one quasi-identifier: sorted labels with their typed bounds.

    A label comes twice only where bounds are released and differ.
    """

    domain: Domain
    entry: NDArray[np.uint32]  # by class
    labels: pa.StringArray  # ascending, null last
    low: pa.Array
    high: pa.Array


@dataclass(frozen=True)
class Recoded:
    """The recoded table: each record's class, classes being numbered in canonical order; equal boxes are one class."""

    class_of_row: NDArray[np.uint32]
    sizes: NDArray[np.int64]
    columns: list[RecodedColumn]


class Recoder:
    """Takes classes in batches and makes the recoded table of them."""

    def __init__(self, domains: Sequence[Domain], records: int, *, bounds: bool) -> None:
        self._domains, self._bounds = domains, bounds
        self._class_of_row = np.full(records, LEFT_OUT, np.uint32)
        self._sizes: list[NDArray[np.int64]] = []
        self._low: list[Codes] = []
        self._high: list[Codes] = []
        self._classes = 0

    def add(self, batch: ClassBatch) -> None:
        sizes = np.diff(batch.starts)
        numbers = np.arange(self._classes, self._classes + len(sizes), dtype=np.uint32)
        self._class_of_row[batch.rows] = np.repeat(numbers, sizes)
        self._sizes.append(sizes)
        self._low.append(batch.low)
        self._high.append(batch.high)
        self._classes += len(sizes)

    def finish(self) -> Recoded:
        low, high = np.concatenate(self._low), np.concatenate(self._high)
        attributes = list(zip(self._domains, low.T, high.T, strict=True))
        columns = in_threads(lambda attribute: recoded_column(*attribute, bounds=self._bounds), attributes)
        in_order, rank = _ranked(columns, self._classes)
        distinct = len(in_order.starts) - 1
        sizes = np.bincount(rank, weights=np.concatenate(self._sizes), minlength=distinct).astype(np.int64)
        first = in_order.rows[in_order.starts[:-1]]
        kept = [
            RecodedColumn(column.domain, column.entry[first], column.labels, column.low, column.high)
            for column in columns
        ]
        class_of_row = self._class_of_row
        here = class_of_row != LEFT_OUT
        if here.all():
            return Recoded(rank[class_of_row], sizes, kept)
        released = np.full(len(here), LEFT_OUT)
        released[here] = rank[class_of_row[here]]
        return Recoded(released, sizes, kept)


def shown_classes(domains: Sequence[Domain], low: Codes, high: Codes, *, bounds: bool) -> NDArray[np.uint32]:
    """The number of each box, the same for boxes that a release shows alike."""
    columns = [recoded_column(domain, low[:, q], high[:, q], bounds=bounds) for q, domain in enumerate(domains)]
    return _ranked(columns, len(low))[1]


def _ranked(columns: Sequence[RecodedColumn], classes: int) -> tuple[SortedRows, NDArray[np.uint32]]:
    """Classes in canonical order, and the place of each among those that differ."""
    in_order = sort_rows([Field(column.entry, bits_for(len(column.labels))) for column in columns], classes)
    distinct = len(in_order.starts) - 1
    rank = np.empty(classes, np.uint32)
    rank[in_order.rows] = np.repeat(np.arange(distinct, dtype=np.uint32), np.diff(in_order.starts))
    return in_order, rank


def recoded_column(domain: Domain, low: Codes, high: Codes, *, bounds: bool) -> RecodedColumn:
    """What boxes show, in canonical order. Without bounds, entries that differ in their bounds only are one."""
    shown = domain.release(low, high)
    known, code = sorted_codes(pa.chunked_array([shown.labels]))
    fields = [Field(code, bits_for(len(known) + 1))]
    if bounds:
        # A label tells its bounds, but for '*': the whole domain has them, null mixed with values has none.
        fields.append(Field(to_numpy(shown.low.is_null()).view(np.uint8), 1))
    entries = sort_rows(fields, len(code))
    rank = np.empty(len(code), np.uint32)
    distinct = len(entries.starts) - 1
    rank[entries.rows] = np.repeat(np.arange(distinct, dtype=np.uint32), np.diff(entries.starts))
    kept = from_numpy(entries.rows[entries.starts[:-1]])
    return RecodedColumn(
        domain, rank[shown.index], shown.labels.take(kept), shown.low.take(kept), shown.high.take(kept)
    )


# From a value per class to a value per released row.
Spread = Callable[[NDArray[Any]], NDArray[Any]]


def released_columns(column: RecodedColumn, spread: Spread, bounds: bool) -> list[tuple[str, pa.Array]]:
    """One quasi-identifier as it is released."""
    known, code = sorted_codes(pa.chunked_array([column.labels]))
    by_class = code[column.entry]
    name = column.domain.name
    released = [(name, dictionary_array(spread(by_class), known, occurring=by_class))]
    if bounds and column.domain.kind != "categorical":
        at = from_numpy(spread(column.entry))
        released += [(f"{name}_min", column.low.take(at)), (f"{name}_max", column.high.take(at))]
    return released
