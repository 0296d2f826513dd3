"""The values of a column as the leaves of a taxonomy, with their records; and what a release takes them for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.policy import ColumnSettings, InputOptions
from sfumato.progress import Progress
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.distinct_values import KnownTexts
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.tables.coding.profile import Encoder, Profiler, profiler_of
from sfumato.tables.sources.source import Source


class CellNames(NamedTuple):
    """The name of an interval or a period, and its two ends."""

    name: str
    low: str
    high: str


@dataclass(frozen=True, repr=False)
class CountedValues:
    """The values of a column in the order that suits them: numbers and dates by size, others by text.

    domain: the column as a release reads it. codes: the code of each value in the domain. missing: records without a
    value.
    """

    column: str
    values: tuple[str, ...]
    records: NDArray[np.int64]
    missing: int
    domain: Domain
    codes: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"CountedValues({len(self.values)} values of {self.column!r})"

    @property
    def kind(self) -> str:
        """What a release takes the values for: numeric, date, moment or categorical."""
        return self.domain.kind

    @property
    def by_value(self) -> dict[str, int]:
        """The records of each value."""
        return dict(zip(self.values, self.records.tolist(), strict=True))

    @property
    def total(self) -> int:
        """The number of records."""
        return int(self.records.sum()) + self.missing

    def cell_names(self) -> list[list[CellNames]]:
        """Return the intervals or periods that hold each value, the smallest first."""
        domain = self.domain
        assert isinstance(domain, NumericDomain)
        assert domain.snap is not None
        known = self.codes < len(domain.values)  # the text nan is no number
        numbers = domain.values[self.codes[known]]
        scale = domain.scale if domain.is_decimal else None
        named = []
        for level in range(1, domain.snap.sizes + 1):
            low, high, _ = domain.snap.snap(numbers, numbers, domain.is_whole, scale, finest=level)
            # The values are in their order, so a cell is named once for the run of values that it holds.
            starts = np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1]))[: len(low)]
            low, high, cell_of = low[starts], high[starts], np.cumsum(starts) - 1
            ends = zip(domain.texts(low).to_pylist(), domain.texts(high).to_pylist(), strict=True)
            cells = [
                CellNames(period or (first if first == last else f"[{first}..{last}]"), first, last)
                for period, (first, last) in zip(domain.snap.names(low, high), ends, strict=True)
            ]
            following = iter(cell_of.tolist())
            named.append(
                [
                    cells[next(following)] if is_number else CellNames(value, value, value)
                    for value, is_number in zip(self.values, known.tolist(), strict=True)
                ]
            )
        return named


def count_values(
    source: Source, column: str, settings: ColumnSettings, options: InputOptions, progress: Progress
) -> CountedValues:
    """Count the values of a column in two passes. settings: how a release would read the column."""
    as_texts = profiler_of(
        source, column, ColumnSettings(role="quasi-identifier", type="categorical"), options, taxonomy=None
    )
    as_read = profiler_of(source, column, settings, options, taxonomy=None)
    with progress.phase("read", source.rows):
        for batch in source.batches([column]):
            for profiler in (as_texts, as_read):
                profiler.add(batch.column(0))
            progress.advance(batch.num_rows)

    def read_again() -> list[pa.Array]:
        return [batch.column(0) for batch in source.batches([column])]

    texts, read = as_texts.finish(read_again), as_read.finish(read_again)
    with progress.phase("count", source.rows):
        return _counted(source, column, texts, read, progress)


def with_known_records(
    column: str,
    texts: pa.StringArray,
    records: NDArray[np.int64],
    missing: int,
    settings: ColumnSettings,
    options: InputOptions,
) -> CountedValues:
    """Return the values of a column of a text file whose distinct texts have been counted before."""
    profiler = Profiler(
        column,
        pa.string(),
        settings,
        options,
        text=True,
        null_tokens=frozenset(),
        taxonomy=None,
        place_of=None,
        distinct=KnownTexts(texts),
    )
    read = profiler.finish(lambda: [texts])
    codes = read.encode(texts).astype(np.int64)
    order = to_numpy(pc.sort_indices(texts)).astype(np.int64)  # the order of UTF-8 is that of Python's texts
    if read.domain.kind != "categorical":
        order = order[np.argsort(codes[order], kind="stable")]
    return CountedValues(
        column=column,
        values=tuple(texts.take(from_numpy(order)).to_pylist()),
        records=records[order],
        missing=missing,
        domain=read.domain,
        codes=codes[order],
    )


def _counted(source: Source, column: str, texts: Encoder, read: Encoder, progress: Progress) -> CountedValues:
    # A column without any value has no categories.
    leaves = texts.domain.taxonomy.leaves if isinstance(texts.domain, CategoricalDomain) else ()
    records = np.zeros(len(leaves) + 1, np.int64)
    codes = np.zeros(len(leaves) + 1, np.int64)
    for batch in source.batches([column]):
        positions = texts.encode(batch.column(0)).astype(np.int64)
        records += np.bincount(positions, minlength=len(records))
        codes[positions] = read.encode(batch.column(0))
        progress.advance(batch.num_rows)
    # Several texts may be one number, as 1 and 1.0; these are in the order of their texts.
    order = np.arange(len(leaves))
    if read.domain.kind != "categorical":
        order = np.lexsort((order, codes[:-1]))
    return CountedValues(
        column=column,
        values=tuple(leaves[position] for position in order.tolist()),
        records=records[:-1][order],
        missing=int(records[-1]),
        domain=read.domain,
        codes=codes[:-1][order],
    )
