"""The values of the columns, counted by Spark: domains and encoders of quasi-identifiers, codes of counted columns.

The different values of a column come to the driver, and to every executor, so there must not be too many of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.engines.counted_columns import coded_target, coded_values
from sfumato.engines.spark.input_scan import ALONE, COLUMN, COUNT, GIVEN
from sfumato.engines.spark.session import Frame, in_our_words
from sfumato.engines.spark.spark_tables import SparkTable, one_array
from sfumato.errors import InputError, SfumatoError
from sfumato.methods.method import SensitiveValues
from sfumato.policy import InputOptions, Policy
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.domains import CategoricalDomain
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.coding.profile import Encoder, profiler_of
from sfumato.tables.sources.in_memory_source import nan_as_null
from sfumato.taxonomies.taxonomy import Taxonomy

MOST_CATEGORIES = 1_000_000
MOST_NUMBERS = 1 << 24
RECORD = re.compile(r"; the first is in record \d+")


@dataclass(frozen=True)
class ColumnCounts:
    """The different values of a column, and how many records have each."""

    values: pa.Array
    counts: NDArray[np.int64]

    @property
    def records(self) -> int:
        return int(self.counts.sum())


def counts_of(tally: Frame, places: Mapping[str, int], table: SparkTable) -> dict[str, ColumnCounts]:
    """The values of some columns, given with their places."""
    from pyspark.sql import functions as sql

    most = {name: MOST_CATEGORIES if _is_category(table, name) else MOST_NUMBERS for name in places}
    with in_our_words("count the values of the columns"):
        alone = tally.where(sql.col(GIVEN) == ALONE).where(sql.col(COLUMN).isin(list(places.values())))
        rows = alone.groupBy(COLUMN).agg(sql.count("*").alias("distinct")).collect()
        distinct = {row[COLUMN]: row["distinct"] for row in rows}
        for name, place in places.items():
            if distinct.get(place, 0) > most[name]:
                raise _too_many(name, most[name])
        found = alone.select(COLUMN, COUNT, *(f"c{place}" for place in places.values())).toArrow()
    result = {}
    for name, place in places.items():
        here = found.filter(pc.equal(found.column(COLUMN), place))
        counts = to_numpy(one_array(here.column(COUNT))).astype(np.int64)
        result[name] = ColumnCounts(one_array(here.column(f"c{place}")), counts)
    return result


def _is_category(table: SparkTable, name: str) -> bool:
    """Whether it is known before that a column is no numbers: the text of a file may turn out to be some."""
    return bool(pa.types.is_string(table.types[name])) and not table.text


def encoder_of(
    table: SparkTable, name: str, found: ColumnCounts, policy: Policy, options: InputOptions, taxonomy: Taxonomy | None
) -> Encoder:
    """The domain of a quasi-identifier, from its values."""
    profiler = profiler_of(table, name, policy.columns[name], options, taxonomy)  # type: ignore[arg-type]
    profiler.add(found.values)
    try:
        encoder = profiler.finish(lambda: [found.values])
    except SfumatoError as error:  # rows of Spark have no numbers
        raise type(error)(RECORD.sub("", str(error))) from None
    if isinstance(encoder.domain, CategoricalDomain) and encoder.domain.size > MOST_CATEGORIES:
        raise _too_many(name, MOST_CATEGORIES)
    return encoder


@dataclass(frozen=True)
class CountedColumn:
    """A column that rides along and is counted: its values, and the code of each; one past the last is for null."""

    known: pa.Array
    values: SensitiveValues

    def of(self, column: pa.Array) -> SensitiveValues:
        """The column of some records."""
        places = pc.index_in(_plain(column), value_set=self.known)
        return replace(self.values, codes=self.values.codes[to_numpy(places, null=len(self.known))])


def sensitive_of(name: str, found: ColumnCounts, policy: Policy, taxonomy: Taxonomy | None) -> CountedColumn:
    """A sensitive column, with how often each value is in the whole table."""
    column, known = _once(name, found)
    values = coded_values(
        column, policy.input.nulls, keep_null=policy.privacy.null_sensitive == "value", taxonomy=taxonomy
    )
    counted = _with_null(known, values)
    totals = np.zeros(values.distinct + 1, np.int64)
    np.add.at(totals, counted.of(found.values).codes, found.counts)
    return replace(counted, values=replace(counted.values, totals=totals[: values.distinct]))


def target_of(name: str, found: ColumnCounts, policy: Policy) -> CountedColumn:
    """A column of the workload."""
    column, known = _once(name, found)
    return _with_null(known, coded_target(column, policy))


def _once(name: str, found: ColumnCounts) -> tuple[PassthroughColumn, pa.Array]:
    """Every value once, null last where there is one, as a column that rides along; and the values without null."""
    plain = _plain(found.values)
    known = plain.drop_null().unique()
    column = pa.concat_arrays([known, pa.nulls(1, known.type)]) if plain.null_count else known
    return PassthroughColumn.of(name, pa.chunked_array([column])), known


def _with_null(known: pa.Array, values: SensitiveValues) -> CountedColumn:
    """There is a code for null also where the column has none."""
    codes = values.codes if len(values.codes) > len(known) else np.append(values.codes, np.uint32(values.distinct))
    return CountedColumn(known, replace(values, codes=codes))


def _plain(column: pa.Array) -> pa.Array:
    """Numbers in one form: NaN is null, and -0.0 is 0.0."""
    if pa.types.is_floating(column.type):
        return pc.add(nan_as_null(column.cast(pa.float64())), from_numpy(np.zeros(1))[0])
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    return column


def content_of(found: ColumnCounts) -> bytes:
    """What the values of a column are and how often each occurs, whatever their order: a table is known by it."""
    texts = _plain(found.values).cast(pa.string())
    order = pc.array_sort_indices(texts)
    texts, counts = texts.take(order), found.counts[to_numpy(order)]
    _, ends, data = texts.buffers()
    return b"".join([str(texts.null_count).encode(), bytes(ends or b""), bytes(data or b""), counts.tobytes()])


def _too_many(name: str, most: int) -> InputError:
    return InputError(
        f"column {name!r} has more than {most:,} different values, which would all have to reach the driver and every "
        "executor. Make it coarser before: a prefix or a group of categories, rounded numbers, dates without a time. "
        "If it tells who a record is, give it the role identifier."
    )
