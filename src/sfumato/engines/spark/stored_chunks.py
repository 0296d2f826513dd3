"""Chunks between two jobs: written by the tasks of one, read by those of all later ones.

In a directory that every machine has mounted, Python writes and reads the files itself: no row passes through Java, and
rows that belong together need no shuffle, since every task reads its own. Elsewhere Spark writes, reads and shuffles.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import or_
from typing import Any, BinaryIO, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.engines.spark.file_systems import files_of, is_remote
from sfumato.engines.spark.partition_numbers import partition_numbers
from sfumato.engines.spark.session import Frame, Session, as_a_task, number_of_task
from sfumato.engines.spark.spark_tables import arrow_type, one_array
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy

Batches = Iterator[pa.RecordBatch]
Work = Callable[[Batches], Batches]

FEW_BYTES = 1 << 24  # what the driver reads by itself, since a job takes longer
TASK_BYTES = 1 << 24  # what a task reads if rows are dealt out in their order
TASK, ROW, FILE = "task", "row of task", "file"
BEGIN, SIZE = "begin of", "size of"
# Spark reads a file back some thousand rows, or one row group, at a time. Rows are long here, so row groups are small.
OPTIONS = {
    "compression": "none",
    "parquet.enable.dictionary": "false",
    "parquet.block.size": str(1 << 24),
    "parquet.block.size.row.check.min": "1",
    "parquet.page.size.row.check.min": "1",
}


@dataclass(frozen=True)
class Tasks:
    """Tasks and their rows. rows: turns what a task gets from the frame into its rows."""

    frame: Frame
    rows: Work

    def mapped(self, work: Work, schema: Any) -> Frame:
        """Return what ``work`` makes of the rows of each task."""
        return self.frame.mapInArrow(partial(_worked, rows=self.rows, work=work), schema)


def _worked(batches: Batches, rows: Work, work: Work) -> Batches:
    as_a_task()
    yield from work(rows(batches))


def as_they_are(batches: Batches) -> Batches:
    """Return the rows that a task gets from a frame which has them."""
    return batches


class StoredChunks(Protocol):
    """Rows in files. Their binary columns are chunks; the others are numbers."""

    def tasks(self, names: Sequence[str]) -> Tasks:
        """Return tasks that have all rows with a chunk in one of the columns."""
        ...

    def together(self, by: str, number: NDArray[np.int64], names: Sequence[str]) -> Tasks:
        """Return tasks that have the rows with the same ``number[by]``. In each task, ``by`` has one value."""
        ...

    def few(self, names: Sequence[str]) -> list[pa.RecordBatch] | None:
        """Return all rows with a chunk in one of the columns; None if they are too many for the driver."""
        ...

    def collected(self, names: Sequence[str]) -> pa.Table:
        """Return small columns. Rows without a chunk in one of them are left out."""
        ...

    def only(self, by: str, numbers: NDArray[np.int64]) -> Self:
        """Return the rows with one of the numbers."""
        ...

    def renumbered(self, by: str, number: NDArray[np.int64]) -> Self:
        """Return the rows with ``number[by]`` in the place of ``by``."""
        ...

    def joined(self, other: Self) -> Self: ...


def stored_chunks(session: Session, tasks: Tasks, work: Work, schema: Any, path: str) -> StoredChunks:
    """Store what ``work`` makes of the rows of each task."""
    if is_remote(path):
        tasks.mapped(work, schema).write.options(**OPTIONS).parquet(path)
        return ChunkFrame(session.read.schema(schema).parquet(path))
    files_of(session, path).make_private(path)
    kinds = pa.schema([(field.name, arrow_type(field.dataType)) for field in schema.fields])
    written = tasks.mapped(partial(_written, work=work, directory=path, kinds=kinds), _index_schema(schema)).toArrow()
    # Spark returns the rows of tasks in any order. A task that it gave up may still be writing, to a file of its own.
    index = written.take(pc.sort_indices(written, [(TASK, "ascending"), (ROW, "ascending")]))
    files = index.column(FILE).dictionary_encode()
    return ChunkFiles(session, path, kinds, index.set_column(index.schema.get_field_index(FILE), FILE, files))


def _index_schema(schema: Any) -> Any:
    from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

    fields = [StructField(TASK, IntegerType()), StructField(ROW, LongType()), StructField(FILE, StringType())]
    for field in schema.fields:
        if isinstance(field.dataType, BinaryType):
            fields += [StructField(f"{what} {field.name}", LongType()) for what in (BEGIN, SIZE)]
        else:
            fields.append(field)
    return StructType(fields)


def _written(batches: Batches, work: Work, directory: str, kinds: pa.Schema) -> Batches:
    """Write the chunks of a task to a file of its own, and yield where each of them is."""
    path, task, rows = f"{directory}/{secrets.token_hex(16)}", number_of_task(), 0
    with open(path, "xb") as file:
        for batch in work(batches):
            count = batch.num_rows
            columns = {
                TASK: pa.array([task] * count, pa.int32()),
                ROW: pa.array(range(rows, rows + count), pa.int64()),
                FILE: pa.array([path] * count, pa.string()),
            }
            for field in kinds:
                column = batch.column(field.name)
                if not pa.types.is_binary(field.type):
                    columns[field.name] = column
                    continue
                places = [_place(file, chunk) for chunk in column]
                for number, what in enumerate((BEGIN, SIZE)):
                    columns[f"{what} {field.name}"] = pa.array([place[number] for place in places], pa.int64())
            rows += count
            yield pa.RecordBatch.from_pydict(columns)


def _place(file: BinaryIO, chunk: pa.BinaryScalar) -> tuple[int | None, int | None]:
    """Write a chunk, and return where it begins and its size."""
    if not chunk.is_valid:
        return None, None
    return file.tell(), file.write(chunk.as_buffer())


@dataclass(frozen=True)
class ChunkFiles:
    """Chunks in files of Python. kinds: the columns. index: where the chunks of each row are, and its numbers."""

    session: Session
    directory: str
    kinds: pa.Schema
    index: pa.Table

    def tasks(self, names: Sequence[str]) -> Tasks:
        rows = np.flatnonzero(self._there(names))
        ends = np.cumsum(self._sizes(names)[rows])
        task = (ends - 1) // TASK_BYTES  # ascending
        return self.tasks_of(np.split(rows, np.flatnonzero(np.diff(task)) + 1), names)

    def together(self, by: str, number: NDArray[np.int64], names: Sequence[str]) -> Tasks:
        task = number[self._numbers(by)]
        rows = np.argsort(task, kind="stable")
        rows_of_task = np.split(rows, np.searchsorted(task[rows], np.arange(1, int(number.max()) + 1)))
        return self.renumbered(by, number).tasks_of(rows_of_task, names)

    def few(self, names: Sequence[str]) -> list[pa.RecordBatch] | None:
        there = self._there(names)
        if self._sizes(names)[there].sum() > FEW_BYTES:
            return None
        return list(_read(self._entries(np.flatnonzero(there), names), names))

    def collected(self, names: Sequence[str]) -> pa.Table:
        if not self._chunks(names):
            return self.index.select(names)
        read = _read(self._entries(np.flatnonzero(self._there(names)), names), names)
        return pa.Table.from_batches(list(read), pa.schema([self.kinds.field(name) for name in names]))

    def only(self, by: str, numbers: NDArray[np.int64]) -> Self:
        return replace(self, index=self.index.filter(from_numpy(np.isin(self._numbers(by), numbers))))

    def renumbered(self, by: str, number: NDArray[np.int64]) -> Self:
        place = self.index.schema.get_field_index(by)
        numbers = from_numpy(number[self._numbers(by)]).cast(self.kinds.field(by).type)
        return replace(self, index=self.index.set_column(place, self.index.schema.field(place), numbers))

    def joined(self, other: Self) -> Self:
        return replace(self, index=pa.concat_tables([self.index, other.index]).unify_dictionaries())

    def tasks_of(self, rows_of_task: Sequence[NDArray[np.int64]], names: Sequence[str]) -> Tasks:
        """Return tasks that have the given rows. What they have to know is in a file, so no task gets that of all."""
        path = f"{self.directory}/{secrets.token_hex(16)}"
        empty = self._entries(np.empty(0, np.int64), names)
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, empty.schema) as writer:
            for rows in rows_of_task:
                writer.write_batch(self._entries(rows, names))
        count = len(rows_of_task)
        # A range has one number in each of its partitions, so nothing has to be shuffled.
        return Tasks(self.session.range(0, count, 1, count), partial(_rows_of_task, path=path, names=list(names)))

    def longest_files_first(self) -> NDArray[np.int64]:
        """Return the rows in the order in which Spark reads files: those of longer files first."""
        sizes = self._sizes(self.kinds.names)
        task = to_numpy(one_array(self.index.column(TASK)))
        return np.argsort(-np.bincount(task, sizes)[task], kind="stable")

    def _numbers(self, name: str) -> NDArray[np.int64]:
        return to_numpy(one_array(self.index.column(name))).astype(np.int64)

    def _chunks(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if pa.types.is_binary(self.kinds.field(name).type)]

    def _sizes(self, names: Sequence[str]) -> NDArray[np.int64]:
        sizes = np.zeros(self.index.num_rows, np.int64)
        for name in self._chunks(names):
            sizes += to_numpy(one_array(self.index.column(f"{SIZE} {name}")), 0)
        return sizes

    def _there(self, names: Sequence[str]) -> NDArray[np.bool_]:
        there = np.zeros(self.index.num_rows, np.bool_)
        for name in self._chunks(names):
            there |= to_numpy(one_array(self.index.column(f"{SIZE} {name}").is_valid()))
        return there

    def _entries(self, rows: NDArray[np.int64], names: Sequence[str]) -> pa.RecordBatch:
        """Return what a reader of some rows has to know of them."""
        chunks = self._chunks(names)
        own = [f"{what} {name}" for name in chunks for what in (BEGIN, SIZE)]
        entries = self.index.select([FILE, *own, *(name for name in names if name not in chunks)])
        taken = entries.take(from_numpy(rows))
        arrays = {name: one_array(taken.column(name)) for name in taken.column_names}
        return pa.RecordBatch.from_pydict({**arrays, FILE: arrays[FILE].cast(pa.string())})


def _rows_of_task(batches: Batches, path: str, names: Sequence[str]) -> Batches:
    for task in (number for batch in batches for number in batch.column(0).to_pylist()):
        with pa.OSFile(path) as file:
            entries = pa.ipc.open_file(file).get_batch(task)
        yield from _read(entries, names)


def _read(entries: pa.RecordBatch, names: Sequence[str]) -> Batches:
    """Yield the columns of rows, one row at a time."""
    opened: BinaryIO | None = None
    try:
        for row, path in enumerate(entries.column(FILE).to_pylist()):
            if opened is None or opened.name != path:
                if opened is not None:
                    opened.close()
                opened = open(path, "rb")  # noqa: SIM115 - it stays open for the next row
            arrays = []
            for name in names:
                if name in entries.schema.names:
                    arrays.append(entries.column(name).slice(row, 1))
                    continue
                begin, size = (entries.column(f"{what} {name}")[row].as_py() for what in (BEGIN, SIZE))
                arrays.append(pa.array([None if size is None else _chunk(opened, begin, size)], pa.binary()))
            yield pa.RecordBatch.from_arrays(arrays, list(names))
    finally:
        if opened is not None:
            opened.close()


def _chunk(file: BinaryIO, begin: int, size: int) -> bytes:
    file.seek(begin)
    chunk = file.read(size)
    if len(chunk) != size:
        raise OSError("a file between two jobs is shorter than it was")
    return chunk


@dataclass(frozen=True)
class ChunkFrame:
    """Chunks in files of Spark."""

    frame: Frame

    def tasks(self, names: Sequence[str]) -> Tasks:
        return Tasks(self._there(names), as_they_are)

    def together(self, by: str, number: NDArray[np.int64], names: Sequence[str]) -> Tasks:
        from pyspark.sql import functions as sql

        count = int(number.max()) + 1
        slot = sql.lit(np.array(partition_numbers(count))[number].tolist())
        placed = self.frame.withColumn(by, sql.element_at(slot, sql.col(by) + 1)).select(*names)
        return Tasks(placed.repartition(count, by), as_they_are)

    def few(self, names: Sequence[str]) -> list[pa.RecordBatch] | None:
        return None

    def collected(self, names: Sequence[str]) -> pa.Table:
        return self._there(names).toArrow()

    def only(self, by: str, numbers: NDArray[np.int64]) -> Self:
        from pyspark.sql import functions as sql

        return replace(self, frame=self.frame.where(sql.col(by).isin(numbers.tolist())))

    def renumbered(self, by: str, number: NDArray[np.int64]) -> Self:
        from pyspark.sql import functions as sql

        numbers = sql.element_at(sql.lit(number.tolist()), sql.col(by) + 1).cast(self.frame.schema[by].dataType)
        return replace(self, frame=self.frame.withColumn(by, numbers))

    def joined(self, other: Self) -> Self:
        return replace(self, frame=self.frame.unionByName(other.frame))

    def _there(self, names: Sequence[str]) -> Frame:
        from pyspark.sql import functions as sql
        from pyspark.sql.types import BinaryType

        there = [
            sql.col(name).isNotNull() for name in names if isinstance(self.frame.schema[name].dataType, BinaryType)
        ]
        found = self.frame.select(*names)
        return found.where(reduce(or_, there)) if there else found
