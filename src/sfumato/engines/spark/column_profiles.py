"""The profiles of columns from values that Spark has counted: domains of quasi-identifiers, codes of counted columns.

The distinct values of a column reach the driver and every executor, so their number is limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.engines.counted_columns import coded_target, coded_values
from sfumato.engines.spark.spark_tables import SparkTable, one_array
from sfumato.engines.spark.tally import COUNT, VALUE, TableTally
from sfumato.errors import InputError, SfumatoError
from sfumato.methods.method import SensitiveValues
from sfumato.policy import InputOptions, Policy
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.domains import CategoricalDomain
from sfumato.tables.coding.outside_taxonomy import OutsideTaxonomyError
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.coding.profile import Encoder, profiler_of
from sfumato.tables.sources.in_memory_source import nan_as_null
from sfumato.tables.sources.source_batches import NoRecordsError
from sfumato.taxonomies.taxonomy import Taxonomy

MOST_CATEGORIES = 1_000_000
MOST_NUMBERS = 1 << 24
RECORD = re.compile(r"; the first is in record \d+")


@dataclass(frozen=True)
class ColumnCounts:
    """The distinct values of a column, and the number of records with each."""

    values: pa.Array
    counts: NDArray[np.int64]

    @property
    def records(self) -> int:
        return int(self.counts.sum())


def most_values(table: SparkTable, names: Iterable[str]) -> dict[str, int]:
    """Return how many values each of the columns may have."""
    return {name: MOST_CATEGORIES if _is_category(table, name) else MOST_NUMBERS for name in names}


def counts_of(tally: TableTally, numbers: Mapping[str, int], most: Mapping[str, int]) -> dict[str, ColumnCounts]:
    """Return the values of columns, by name. numbers: the number of each column in the tally. most: their limits."""
    result = {}
    for name, number in numbers.items():
        if number not in tally.counts:  # a table without records
            raise NoRecordsError("the Spark table has no records. Give a table with at least one.")
        counts = tally.counts[number]
        if counts is None:
            raise _too_many(name, most[name])
        result[name] = ColumnCounts(one_array(counts.column(VALUE)), to_numpy(one_array(counts.column(COUNT))))
    return result


def _is_category(table: SparkTable, name: str) -> bool:
    """Return whether a column is certainly categorical. The text of a file may turn out to be numbers."""
    return bool(pa.types.is_string(table.types[name])) and not table.text


def encoder_of(
    table: SparkTable,
    name: str,
    counts: ColumnCounts,
    policy: Policy,
    options: InputOptions,
    taxonomy: Taxonomy | None,
) -> Encoder:
    """Return the encoder of a quasi-identifier, made from its values."""
    profiler = profiler_of(table, name, policy.columns[name], options, taxonomy)  # type: ignore[arg-type]
    profiler.add(counts.values)
    try:
        encoder = profiler.finish(lambda: [counts.values])
    except OutsideTaxonomyError as error:  # rows of Spark have no record numbers
        raise OutsideTaxonomyError(RECORD.sub("", error.problem)) from None
    except SfumatoError as error:
        raise type(error)(RECORD.sub("", str(error))) from None
    if isinstance(encoder.domain, CategoricalDomain) and encoder.domain.size > MOST_CATEGORIES:
        raise _too_many(name, MOST_CATEGORIES)
    return encoder


def used_codes(encoder: Encoder, column: ColumnCounts) -> NDArray[np.int64]:
    """Return how often each code of a quasi-identifier occurs."""
    used = np.zeros(encoder.domain.size, np.int64)
    np.add.at(used, encoder.encode(column.values), column.counts)
    return used


@dataclass(frozen=True)
class CountedColumn:
    """A passthrough column that is counted: its values, and the code of each. One past the last is the code of null."""

    known: pa.Array
    values: SensitiveValues

    def of(self, column: pa.Array) -> SensitiveValues:
        """Return the codes of the column for some records."""
        if pa.types.is_dictionary(column.type):
            code_of_value = np.append(self._codes(column.dictionary), self.values.codes[-1])
            return replace(self.values, codes=code_of_value[to_numpy(column.indices, len(column.dictionary))])
        return replace(self.values, codes=self._codes(column))

    def _codes(self, values: pa.Array) -> NDArray[np.uint32]:
        positions = pc.index_in(_plain(values), value_set=self.known)
        codes: NDArray[np.uint32] = self.values.codes[to_numpy(positions, null=len(self.known))]
        return codes


def sensitive_of(name: str, counts: ColumnCounts, policy: Policy, taxonomy: Taxonomy | None) -> CountedColumn:
    """Return a sensitive column with the totals of its values in the whole table."""
    column, known = _distinct_column(name, counts)
    values = coded_values(
        column, policy.input.nulls, keep_null=policy.privacy.null_sensitive == "value", taxonomy=taxonomy
    )
    counted = _with_null(known, values)
    totals = np.zeros(values.distinct + 1, np.int64)
    np.add.at(totals, counted.of(counts.values).codes, counts.counts)
    return replace(counted, values=replace(counted.values, totals=totals[: values.distinct]))


def target_of(name: str, counts: ColumnCounts, policy: Policy) -> CountedColumn:
    """Return a column of the workload."""
    column, known = _distinct_column(name, counts)
    return _with_null(known, coded_target(column, policy))


def _distinct_column(name: str, counts: ColumnCounts) -> tuple[PassthroughColumn, pa.Array]:
    """Return the distinct values as a passthrough column, null last if it occurs; and the values without null."""
    plain = _plain(counts.values)
    known = plain.drop_null().unique()
    column = pa.concat_arrays([known, pa.nulls(1, known.type)]) if plain.null_count else known
    return PassthroughColumn.of(name, pa.chunked_array([column])), known


def _with_null(known: pa.Array, values: SensitiveValues) -> CountedColumn:
    """Return the counted column with a code for null, even if null does not occur."""
    codes = values.codes if len(values.codes) > len(known) else np.append(values.codes, np.uint32(values.distinct))
    return CountedColumn(known, replace(values, codes=codes))


def _plain(column: pa.Array) -> pa.Array:
    """Return the column with one form of every number: NaN is null, and -0.0 is 0.0."""
    if pa.types.is_floating(column.type):
        return pc.add(nan_as_null(column.cast(pa.float64())), from_numpy(np.zeros(1))[0])
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    return column


def content_of(column: ColumnCounts) -> bytes:
    """Return the values of a column and their counts as bytes, whatever their order, as version 0.1 identified them."""
    texts = _plain(column.values).cast(pa.string())
    order = pc.array_sort_indices(texts)
    texts, counts = texts.take(order), column.counts[to_numpy(order)]
    _, ends, data = texts.buffers()
    return b"".join([str(texts.null_count).encode(), bytes(ends or b""), bytes(data or b""), counts.tobytes()])


def _too_many(name: str, most: int) -> InputError:
    return InputError(
        f"column {name!r} has more than {most:,} distinct values, which would all have to reach the driver and every "
        "executor. Make it coarser first: a prefix or a group of categories, rounded numbers, dates without a time. If "
        "it identifies a record, give it the role identifier."
    )
