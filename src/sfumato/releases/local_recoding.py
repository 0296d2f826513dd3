"""Local recoding: every record shows the box of its class (Ghinita 2007, section 2).

Classes arrive in batches. The recoder keeps one number per record and one box per class; labels are made only for
distinct boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.kernels.threads import in_threads, slices
from sfumato.methods.line.line import rows_along
from sfumato.methods.method import ClassBatch
from sfumato.tables.coding.arrow_arrays import from_numpy, from_texts, to_numpy
from sfumato.tables.coding.dictionaries import dictionary_array, sorted_codes
from sfumato.tables.coding.domains import Codes, Domain, ReleasedValues
from sfumato.tables.coding.released_labels import WHOLE
from sfumato.tables.coding.sorting import Field, SortedRows, bits_for, repeated, sort_rows

BOXES = 1 << 17  # whose texts are made at once
LEFT_OUT = np.uint32(0xFFFFFFFF)  # the class of a record that is not released


@dataclass(frozen=True)
class RecodedColumn:
    """The released values of the classes in one quasi-identifier: sorted labels with their typed bounds.

    A label occurs twice only if numbers stand beside it and one of the two entries has none.
    """

    domain: Domain
    entry: NDArray[np.uint32]  # by class
    labels: pa.StringArray  # ascending, null last
    low: pa.Array
    high: pa.Array

    @cached_property
    def coded_labels(self) -> tuple[pa.StringArray, NDArray[Any]]:
        """The distinct labels in ascending order, and the code of each entry's label."""
        return sorted_codes(pa.chunked_array([self.labels]))

    @cached_property
    def is_whole(self) -> NDArray[np.bool_]:
        """Whether each entry shows ``*``."""
        whole: NDArray[np.bool_] = to_numpy(pc.is_in(self.labels, value_set=from_texts([WHOLE])))
        return whole


@dataclass(frozen=True)
class Recoded:
    """The recoded table: its classes in canonical order. Classes with equal boxes are merged.

    records: of the whole table. rows: uint32, those that are released, class by class. formed: int64, the sizes of the
    classes before they were merged.
    """

    records: int
    rows: NDArray[np.uint32]
    sizes: NDArray[np.int64]
    columns: list[RecodedColumn]
    formed: NDArray[np.int64]

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the rows of each class begin, and the number of released rows."""
        return np.append(0, np.cumsum(self.sizes))

    @cached_property
    def class_of_row(self) -> NDArray[np.uint32]:
        """The class of each record of the table, by its number in canonical order."""
        class_of_row = np.full(self.records, LEFT_OUT)
        class_of_row[self.rows] = repeated(np.arange(len(self.sizes), dtype=np.uint32), self.starts)
        return class_of_row


class Recoder:
    """Collect classes in batches and build the recoded table.

    numbered: the quasi-identifiers beside whose labels numbers are released.
    """

    def __init__(self, domains: Sequence[Domain], records: int, *, numbered: Collection[str]) -> None:
        self._domains, self._records, self._numbered = domains, records, numbered
        self._rows: list[NDArray[np.uint32]] = []
        self._sizes: list[NDArray[np.int64]] = []
        self._low: list[Codes] = []
        self._high: list[Codes] = []

    def add(self, batch: ClassBatch) -> None:
        self._rows.append(batch.rows)
        self._sizes.append(np.diff(batch.starts))
        self._low.append(batch.low)
        self._high.append(batch.high)

    def finish(self) -> Recoded:
        low, high = np.concatenate(self._low), np.concatenate(self._high)
        attributes = list(zip(self._domains, low.T, high.T, strict=True))
        columns = in_threads(
            lambda attribute: recoded_column(*attribute, numbered=attribute[0].name in self._numbered), attributes
        )
        ordered, rank = _ranked(columns, len(low))
        distinct = len(ordered.starts) - 1
        formed = np.concatenate(self._sizes)
        sizes = np.bincount(rank, weights=formed, minlength=distinct).astype(np.int64)
        first = ordered.rows[ordered.starts[:-1]]
        kept = [
            RecodedColumn(column.domain, column.entry[first], column.labels, column.low, column.high)
            for column in columns
        ]
        rows = rows_along(np.concatenate(self._rows), np.append(0, np.cumsum(formed)), ordered.rows)
        return Recoded(self._records, rows, sizes, kept, formed)


def shown_classes(
    domains: Sequence[Domain], low: Codes, high: Codes, *, numbered: Collection[str]
) -> NDArray[np.uint32]:
    """The number of each box; boxes with the same released values share a number. numbered: see Recoder."""
    columns = [
        recoded_column(domain, low[:, q], high[:, q], numbered=domain.name in numbered)
        for q, domain in enumerate(domains)
    ]
    return _ranked(columns, len(low))[1]


def _ranked(columns: Sequence[RecodedColumn], classes: int) -> tuple[SortedRows, NDArray[np.uint32]]:
    """The classes in canonical order, and the rank of each among the distinct ones."""
    ordered = sort_rows(canonical_fields(columns, [column.entry for column in columns]), classes)
    return ordered, _rank_of_row(ordered)


def canonical_fields(columns: Sequence[RecodedColumn], entries: Sequence[NDArray[Any]]) -> list[Field]:
    """The sort key of classes or rows in canonical order. entries: by column, the entry that each of them shows.

    What shows nothing but ``*`` comes last: who opens a release first sees what it says.
    """
    shown = [Field(entry, bits_for(len(column.labels))) for column, entry in zip(columns, entries, strict=True)]
    if not all(column.is_whole.any() for column in columns):
        return shown
    pairs = zip(columns, entries, strict=True)
    nothing = reduce(np.logical_and, (column.is_whole[entry] for column, entry in pairs))
    return [Field(nothing.view(np.uint8), 1), *shown]


def _rank_of_row(ordered: SortedRows) -> NDArray[np.uint32]:
    """The rank of each row among the distinct rows."""
    distinct = len(ordered.starts) - 1
    rank = np.empty(len(ordered.rows), np.uint32)
    rank[ordered.rows] = repeated(np.arange(distinct, dtype=np.uint32), ordered.starts)
    return rank


def recoded_column(domain: Domain, low: Codes, high: Codes, *, numbered: bool) -> RecodedColumn:
    """The released values of boxes, in canonical order. Entries with equal labels are merged.

    numbered: whether numbers stand beside the labels. What has none is then an entry of its own.
    """
    shown = _released_in_parts(domain, low, high)
    known, code = sorted_codes(pa.chunked_array([shown.labels]))
    fields = [Field(code, bits_for(len(known) + 1))]
    if numbered:
        # A label determines its bounds, except '*': the whole domain has bounds; null mixed with values, and what no
        # interval or period holds, has none, and no mean or median either.
        fields.append(Field(to_numpy(shown.low.is_null()).view(np.uint8), 1))
    entries = sort_rows(fields, len(code))
    entry = _rank_of_row(entries)[shown.index]
    kept = from_numpy(entries.rows[entries.starts[:-1]])
    return RecodedColumn(domain, entry, shown.labels.take(kept), shown.low.take(kept), shown.high.take(kept))


def _released_in_parts(domain: Domain, low: Codes, high: Codes) -> ReleasedValues:
    """Return the released values of boxes. Only some texts are made at a time: as objects they take much memory."""
    parts = [domain.release(low[begin:end], high[begin:end]) for begin, end in slices(len(low), BOXES) or [(0, 0)]]
    if len(parts) == 1:
        return parts[0]
    first = np.cumsum([0, *(len(part.labels) for part in parts[:-1])])
    return ReleasedValues(
        np.concatenate([part.index + start for part, start in zip(parts, first.tolist(), strict=True)]),
        pa.concat_arrays([part.labels for part in parts]),
        pa.concat_arrays([part.low for part in parts]),
        pa.concat_arrays([part.high for part in parts]),
    )


# Turns values by class into values by released row.
Spread = Callable[[NDArray[Any]], NDArray[Any]]


def released_columns(column: RecodedColumn, spread: Spread, *, bounds: bool) -> list[tuple[str, pa.Array]]:
    """The released columns of one quasi-identifier: its labels and, with ``bounds``, its typed bounds."""
    known, code = column.coded_labels
    by_class = code[column.entry]
    name = column.domain.name
    released = [(name, dictionary_array(spread(by_class), known, occurring=by_class))]
    if bounds and column.domain.kind != "categorical":
        entry = from_numpy(spread(column.entry))
        released += [(f"{name}_min", column.low.take(entry)), (f"{name}_max", column.high.take(entry))]
    return released
