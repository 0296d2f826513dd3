"""The coded table: every record with its place on the line, in files that all later jobs read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.spark.division import Sample, thinned
from sfumato.engines.spark.places import PLACE, ROW, TIE, Placing, to_binary
from sfumato.engines.spark.reading import columns, one_array, written
from sfumato.engines.spark.session import Frame, Session, as_a_task, in_our_words, shared
from sfumato.tables.arrays import from_numpy, to_numpy
from sfumato.tables.domains import Codes
from sfumato.tables.profile import Encoder


@dataclass(frozen=True)
class Kept:
    """The columns of a run: quasi-identifiers come first, those that ride along after them, each under its place."""

    quasi: Sequence[str]
    carried: Sequence[str]

    @property
    def names(self) -> list[str]:
        return [*self.quasi, *self.carried]

    @property
    def carried_columns(self) -> list[str]:
        return columns(len(self.names))[len(self.quasi) :]


def numbered(frame: Frame, secret: int) -> Frame:
    """Every row with its keyed hash and a number of its own. The number holds only once the rows are in a file."""
    from pyspark.sql import functions as sql

    names = frame.columns
    # Null leaves the hash as it is, so it is told apart by a column of its own.
    missing = [sql.col(name).isNull() for name in names]
    tie = sql.xxhash64(sql.lit(secret), *(sql.col(name) for name in names), *missing)
    return frame.withColumns({TIE: tie, ROW: sql.monotonically_increasing_id()})


@dataclass(frozen=True)
class SampledRecords:
    """Some records of the table. codes: uint[s, d]; ties, counts: int64[s], counts of records that are equal in all.

    weight: how many records of the table each one stands for. columns: those that are counted, by name.
    """

    codes: Codes
    ties: NDArray[np.int64]
    counts: NDArray[np.int64]
    weight: float
    columns: Mapping[str, pa.Array]

    def placed(self, placing: Placing) -> Sample:
        """The records in their order on the line."""
        places = placing.places(self.codes)
        columns: list[NDArray[Any]] = [places[:, byte] for byte in range(places.shape[1] - 1, -1, -1)]
        order = np.lexsort([self.ties, *columns])
        return Sample(
            np.ascontiguousarray(places[order]), self.ties[order], (self.counts[order] * self.weight).astype(np.float64)
        )

    def few(self, most: int) -> tuple[Codes, dict[str, pa.Array]]:
        """At most so many of the records, evenly by the order of their ties, with the columns that are counted."""
        order = np.argsort(self.ties, kind="stable")
        upto = np.cumsum(self.counts[order])
        step = -(-int(upto[-1]) // most)
        chosen = order[np.searchsorted(upto, np.arange(0, upto[-1], step), side="right")]
        taken = {name: column.take(from_numpy(chosen)) for name, column in self.columns.items()}
        return np.take(self.codes, chosen, axis=0), taken


def sample_records(
    frame: Frame, kept: Kept, encoders: Sequence[Encoder], records: int, wanted: int, counted: Mapping[str, str]
) -> SampledRecords:
    """The one sample of a run, of a numbered frame. counted: columns of the frame that come with it, by name."""
    quasi = columns(len(kept.quasi))
    some, weight = thinned(frame, records, wanted)
    with in_our_words("take a sample"):
        table = some.groupBy(*quasi, TIE, *counted.values()).count().orderBy(TIE, *quasi).toArrow()
    codes = np.zeros((table.num_rows, len(encoders)), np.min_scalar_type(max(one.domain.size for one in encoders) - 1))
    for q, encoder in enumerate(encoders):
        start = 0
        for chunk in table.column(q).chunks:
            codes[start : start + len(chunk), q] = encoder.encode(chunk)
            start += len(chunk)
    ties, counts = (to_numpy(one_array(table.column(name))).astype(np.int64) for name in (TIE, "count"))
    taken = {name: one_array(table.column(column)) for name, column in counted.items()}
    return SampledRecords(codes, ties, counts, weight, taken)


def write_coded(
    session: Session, frame: Frame, kept: Kept, encoders: Sequence[Encoder], placing: Placing, path: str
) -> Frame:
    """Put every record of a numbered frame at its place, write that, and read it back."""
    from pyspark.sql.types import BinaryType, LongType, StructField, StructType

    carried = kept.carried_columns
    fields = {field.name: field.dataType for field in frame.schema.fields}
    schema = StructType(
        [
            StructField(PLACE, BinaryType(), nullable=False),
            StructField(TIE, LongType(), nullable=False),
            StructField(ROW, LongType(), nullable=False),
            *(StructField(name, fields[name]) for name in carried),
        ]
    )
    known = shared(session, (list(encoders), placing))

    def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        as_a_task()
        encoders, placing = known.value
        for batch in batches:
            if not batch.num_rows:
                continue
            codes = np.empty((batch.num_rows, len(encoders)), placing.dtype)
            for q, encoder in enumerate(encoders):
                codes[:, q] = encoder.encode(batch.column(q))
            others = [batch.column(name) for name in (TIE, ROW, *carried)]
            yield pa.RecordBatch.from_arrays([to_binary(placing.places(codes)), *others], [PLACE, TIE, ROW, *carried])

    with in_our_words("encode the table"):
        return written(session, frame.mapInArrow(encode, schema), path)
