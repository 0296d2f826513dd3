"""The released rows in canonical order, in files that follow each other.

The order is by the released quasi-identifiers, then by the columns that ride along, null last: a function of the rows
alone. So are the files: where one ends and the next begins is decided by a sample that is taken by the hash of the
released rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.engines.spark.division import slots
from sfumato.engines.spark.session import Frame, Session, as_a_task, in_our_words, shared
from sfumato.tables.arrays import from_numpy, to_numpy

FILE_RECORDS = 1 << 20
SAMPLE_A_FILE = 200
SHELF = "shelf"


def write_arranged(
    session: Session, recoded: Frame, labels: Sequence[str], names: dict[str, str], records: int, path: str
) -> None:
    """Sort the rows and write them.

    labels: the columns with what quasi-identifiers show, labels and lower bounds. names: every column that is released,
    in their order, with the name that it gets.
    """
    from pyspark.sql import functions as sql

    shelves = -(-records // FILE_RECORDS)
    splitters = _splitters(recoded, labels, records, shelves)
    shelves = len(splitters) + 1
    placed = _shelved(session, recoded, labels, splitters, slots(shelves))
    order = [part for name in recoded.columns for part in _ascending(recoded, name)]
    with in_our_words("write the release"):
        arranged = placed.repartition(shelves, SHELF).sortWithinPartitions(*order)
        released = arranged.select(*(sql.col(name).alias(shown) for name, shown in names.items()))
        released.write.option("compression", "zstd").parquet(path)


def _ascending(frame: Frame, name: str) -> list[Any]:
    from pyspark.sql import functions as sql
    from pyspark.sql.types import DoubleType, FloatType

    column = sql.col(name)
    if isinstance(frame.schema[name].dataType, DoubleType | FloatType):
        # To Spark -0.0 and 0.0 are equal; the angle tells them apart.
        return [column.asc_nulls_last(), sql.atan2(column, sql.lit(-1.0)).asc_nulls_last()]
    return [column.asc_nulls_last()]


Key = tuple[tuple[bool, str], ...]


def _splitters(recoded: Frame, labels: Sequence[str], records: int, shelves: int) -> list[Key]:
    from pyspark.sql import functions as sql

    if shelves < 2:
        return []
    one_of = max(records // (shelves * SAMPLE_A_FILE), 1)
    chosen = sql.pmod(sql.xxhash64(*(sql.col(name) for name in recoded.columns)), sql.lit(one_of)) == 0
    with in_our_words("take a sample of the release"):
        sample = recoded.where(chosen).select(*labels).groupBy(*labels).count().toArrow()
    keys = sorted(zip(_keys(sample.select(list(labels))), sample.column("count").to_pylist(), strict=True))
    if not keys:
        return []
    upto = np.cumsum([count for _, count in keys])
    marks = np.searchsorted(upto, np.arange(1, shelves) * (upto[-1] / shelves))
    return sorted({keys[min(mark, len(keys) - 1)][0] for mark in marks.tolist()})


def _keys(table: pa.Table | pa.RecordBatch) -> list[Key]:
    """What each row shows, as it sorts: null last. A label tells its bounds, but whether it has any."""
    columns = []
    for column in table.columns:
        texts = column.to_pylist() if pa.types.is_string(column.type) else [None] * len(column)
        nulls = column.is_null().to_pylist()
        columns.append([(null, text or "") for null, text in zip(nulls, texts, strict=True)])
    return list(zip(*columns, strict=True))


def _shelved(
    session: Session, recoded: Frame, labels: Sequence[str], splitters: list[Key], numbers: list[int]
) -> Frame:
    """The rows with the number of their shelf."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import IntegerType, StructField, StructType

    if not splitters:
        return recoded.withColumn(SHELF, sql.lit(numbers[0]))
    schema = StructType([*recoded.schema.fields, StructField(SHELF, IntegerType(), nullable=False)])
    known = shared(session, (splitters, np.array(numbers, np.int32)))
    names = list(recoded.columns)

    def shelved(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        as_a_task()
        splitters, numbers = known.value
        for batch in batches:
            if not batch.num_rows:
                continue
            # Rows of a class follow each other and show the same, so few different ones are looked up.
            codes = [to_numpy(batch.column(name).dictionary_encode("encode").indices) for name in labels]
            new = np.ones(batch.num_rows, np.bool_)
            new[1:] = np.any([code[1:] != code[:-1] for code in codes], axis=0)
            begins = np.flatnonzero(new)
            firsts = batch.select(list(labels)).take(from_numpy(begins))
            shelves = np.array([bisect_right(splitters, key) for key in _keys(firsts)], np.int64)
            shelf = numbers[np.repeat(shelves, np.diff(np.append(begins, batch.num_rows)))]
            yield pa.RecordBatch.from_arrays(
                [*(batch.column(name) for name in names), from_numpy(shelf)], [*names, SHELF]
            )

    return recoded.mapInArrow(shelved, schema)
