"""Levels for a table on Spark: tasks count the distinct records, the driver searches, and tasks recode.

The search is that of the memory engine, on the same counts. What a record shows follows from its own codes, so that
buckets are recoded by themselves, and records of one class may be in several buckets.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from sfumato.engines.spark.bucket_classes import BucketTask
from sfumato.engines.spark.coded_table import TableOnSpark
from sfumato.engines.spark.line_keys import CODES, from_binary, to_binary
from sfumato.engines.spark.row_chunks import CHUNK, unpacked
from sfumato.engines.spark.session import Session, in_our_words, shared
from sfumato.engines.spark.spark_tables import one_array
from sfumato.engines.spark.stored_chunks import StoredChunks
from sfumato.errors import UsageError
from sfumato.losses.exact_costs import exact_costs
from sfumato.methods.lattice.lattice_method import LatticeMethod, LevelRecoding, chosen_recoding
from sfumato.methods.lattice.level_counts import CountedColumns, LevelCounts, counted_columns, counts_of_codes
from sfumato.methods.lattice.level_lattice import LevelLattice
from sfumato.methods.lattice.node_results import NodeResults, SuppressionLimits
from sfumato.methods.method import Effort
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.sorting import collapse

MOST_RECORDS = 1 << 24  # distinct records, with their sensitive values, that the driver counts
RECORD, COUNT = "record", "count"


def choose_levels(
    table: TableOnSpark, session: Session, coded: StoredChunks, task: BucketTask, method: LatticeMethod
) -> LevelRecoding:
    """Choose a level for every column. coded: the records in chunks."""
    job, policy = table.job, table.job.policy
    costs = exact_costs(table.domains, policy.weights(table.domains), table.count)
    lattice = LevelLattice.of(table.domains, costs)
    counted = counted_columns({name: each.values for name, each in table.sensitive.items()}, None, job.requirements)
    limits = SuppressionLimits.of(policy, policy.most_suppressed(table.count), costs)
    base = _counts(session, coded, task, lattice, counted)
    results = NodeResults(lattice, base, counted, job.requirements, limits)
    return chosen_recoding(method, results, Effort.asked(policy.method), job.progress)


def _counts(
    session: Session, coded: StoredChunks, task: BucketTask, lattice: LevelLattice, counted: CountedColumns
) -> LevelCounts:
    """Count the distinct records by a job, and return the counts of the most specific node."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import BinaryType, LongType, StructField, StructType

    schema = StructType([StructField(RECORD, BinaryType(), False), StructField(COUNT, LongType(), False)])
    sizes = [*(domain.size for domain in task.domains), *counted.sizes]
    known = shared(session, (task, list(counted.values), sizes))

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task, names, sizes = known.value
        for batch in batches:
            for row in range(batch.num_rows):
                records = unpacked(batch.column(CHUNK).slice(row, 1)).combine_chunks()
                codes = task.line_encoder.codes(from_binary(one_array(records.column(CODES))))
                others = [
                    task.sensitive[name].of(one_array(records.column(task.carried[name]))).codes for name in names
                ]
                distinct, line = collapse(np.column_stack([codes, *others]).astype(np.uint32), sizes)
                keys = distinct.astype(">u4").view(np.uint8).reshape(len(distinct), -1)
                arrays = [to_binary(keys), from_numpy(np.diff(line.starts))]
                yield pa.RecordBatch.from_arrays(arrays, schema.names)

    with in_our_words("count the distinct records"):
        counts = coded.tasks([CHUNK]).mapped(count, schema).groupBy(RECORD).agg(sql.sum(COUNT).alias(COUNT))
        found = counts.limit(MOST_RECORDS + 1).toArrow()
    if found.num_rows > MOST_RECORDS:
        raise UsageError(
            f"the table has more than {MOST_RECORDS:,} different records, and to choose levels the driver must count "
            "all of them. Set finest for columns with many values, or drop such columns."
        )
    keys = from_binary(one_array(found.column(RECORD)))
    codes = np.ascontiguousarray(keys).view(">u4").astype(np.uint32)
    return counts_of_codes(codes, to_numpy(one_array(found.column(COUNT))).astype(np.int64), lattice, counted)
