"""The keyed sample of a table of Spark, by which the run record recognises it: one sample per task, joined here."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from sfumato.engines.spark.coded_table import TableOnSpark, encoded
from sfumato.engines.spark.row_chunks import CHUNK, opened
from sfumato.engines.spark.session import Session, in_our_words, shared
from sfumato.engines.spark.spark_tables import one_array
from sfumato.releases.keyed_sample import KeyedSample, sampled
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.keyed_hashes import RecordHashes

HASH, COUNT = "hash", "count"


def sample_by_spark(session: Session, table: TableOnSpark, hashes: RecordHashes) -> KeyedSample:
    """Sample the records of a table."""
    from pyspark.sql.types import LongType, StructField, StructType

    schema = StructType([StructField(name, LongType(), nullable=False) for name in (HASH, COUNT)])
    known = shared(session, (table.profile.encoders, hashes))

    def sample_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        encoders, hashes = known.value
        largest = np.min_scalar_type(max(encoder.domain.size for encoder in encoders) - 1)

        def coded() -> Iterator[tuple[Codes, None]]:
            for chunk in (chunk for batch in batches for chunk in batch.column(CHUNK)):
                yield encoded(opened(chunk), encoders, largest), None

        sample = sampled(hashes, coded())
        arrays = [from_numpy(sample.hashes.view(np.int64)), from_numpy(sample.counts)]
        yield pa.RecordBatch.from_arrays(arrays, [HASH, COUNT])

    with in_our_words("take a sample"):
        found = table.scan.input.chunks.tasks([CHUNK]).mapped(sample_task, schema).toArrow()
    columns = [to_numpy(one_array(found.column(name))) for name in (HASH, COUNT)]
    return KeyedSample.empty().joined(KeyedSample(columns[0].view(np.uint64), columns[1]))
