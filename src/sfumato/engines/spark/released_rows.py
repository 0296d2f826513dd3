"""The released rows in canonical order, in files that follow each other.

The order is by the released quasi-identifiers, then by the passthrough columns, null last; rows of nothing but ``*``
come after all others. It is a function of the rows alone, and so are the files: what a sample at regular distances in
each bucket shows decides where a file ends. Classes come in this order from every bucket, so chunks are cut where files
end, and are never sorted.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from sfumato.engines.engine import Outcome
from sfumato.engines.spark.bucket_classes import ENDS, SAMPLE, SHOWN, SIZE, shown_fields
from sfumato.engines.spark.classes import ClassesOnSpark
from sfumato.engines.spark.coded_table import TableOnSpark
from sfumato.engines.spark.file_systems import files_of, is_remote
from sfumato.engines.spark.partition_numbers import partition_numbers
from sfumato.engines.spark.publication import digests, tidied
from sfumato.engines.spark.row_chunks import CHUNK, joined, opened, packed, plain
from sfumato.engines.spark.session import Session, in_our_words, number_of_task, shared
from sfumato.engines.spark.spark_tables import one_array
from sfumato.engines.spark.stored_chunks import Batches, ChunkFiles, StoredChunks, Tasks, as_they_are
from sfumato.evaluation.public_figures import Examination
from sfumato.tables.coding.arrow_arrays import from_numpy, from_texts, to_numpy
from sfumato.tables.coding.dictionaries import sorted_codes
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.coding.released_labels import WHOLE
from sfumato.tables.coding.sorting import Field, bits_for, row_order, sort_rows
from sfumato.tables.targets.target import CertifiedTable

BATCH = 1 << 16
SHELF, FILE = "shelf", "file"
_WRITTEN = pa.schema([(SHELF, pa.int32()), (FILE, pa.string())])
Key = tuple[tuple[bool, str], ...]
Piece = tuple[pa.Table, pa.Table]  # classes, and the passthrough columns of their records


@dataclass
class RowsOnSpark:
    """The released rows: classes in scratch files, then finished files in ``directory``.

    entries: the entry of each file in the certificate. examined: what was found in these files.
    """

    table: TableOnSpark
    classes: ClassesOnSpark
    directory: str | None = None
    entries: list[CertifiedTable] = field(default_factory=list)
    examined: Examination | None = None

    @property
    def outcome(self) -> Outcome:
        return self.classes.outcome


def write_rows(rows: RowsOnSpark, session: Session, path: str) -> None:
    """Write the released columns in the order of the table, the rows in canonical order."""
    table, task = rows.table, rows.classes.task
    kinds = {field.name: field for field in table.scan.input.kinds}
    fields = [*shown_fields(task), *(kinds[column] for column in table.scan.columns.carried_columns)]
    shown = {name: f"q{attribute}" for attribute, name in enumerate(table.scan.columns.quasi)}
    available = [field.name for field in fields]
    names = {}
    for name in table.job.kept:
        if name not in shown:
            names[table.carried[name]] = name
            continue
        names[shown[name]] = name
        for bound in ("min", "max"):
            if f"{shown[name]}_{bound}" in available:
                names[f"{shown[name]}_{bound}"] = f"{name}_{bound}"
    with table.job.progress.phase("arrange"):
        write_arranged(session, rows.classes.chunks, fields, names, -(-table.count // task.file_records), path)
        tidied(session, path)
    rows.directory, rows.entries = path, digests(session, path)


def write_arranged(
    session: Session, classes: StoredChunks, fields: Sequence[Any], names: Mapping[str, str], files: int, path: str
) -> None:
    """Sort the rows, and write them to about ``files`` files.

    fields: those of the released columns, quasi-identifiers first. names: every released column, in the order of the
    release, with the name that it gets.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    splitters = _splitters(classes, files)
    shelves, pieces = _shelves(session, classes, splitters)
    shown = [field.name for field in fields if field.name.startswith("q")]

    def arrange(batches: Batches) -> Batches:
        if held := list(pieces(batches)):
            classes, carried = zip(*held, strict=True)
            yield from _arranged(plain(joined(classes)), joined(carried), shown)

    def write(batches: Batches) -> Batches:
        if held := list(arrange(batches)):
            table = pa.Table.from_batches(held).select(list(names)).rename_columns(list(names.values()))
            file = secrets.token_hex(16)
            # The file has the Parquet types of its columns and no other schema, as if Spark had written it.
            parquet.write_table(table, f"{beside}/{file}", compression="zstd", store_schema=False)
            yield pa.RecordBatch.from_pylist([{SHELF: number_of_task(), FILE: file}], _WRITTEN)

    def plain_rows(batches: Batches) -> Batches:
        for batch in arrange(batches):
            yield from plain(pa.Table.from_batches([batch])).to_batches()

    beside = f"{path}-written"
    with in_our_words("write the release"):
        if not is_remote(path):  # a directory that every machine has mounted
            file_system = files_of(session, path)
            file_system.make_private(path)
            file_system.make_private(beside)
            kinds = StructType([StructField(SHELF, IntegerType()), StructField(FILE, StringType())])
            written = shelves.mapped(write, kinds).collect()
            # A task that Spark gave up may still be writing. The release has only the files of finished tasks.
            for number, row in enumerate(sorted(written, key=lambda row: int(row[SHELF]))):
                file_system.rename(f"{beside}/{row[FILE]}", f"{path}/part-{number:05}.parquet")
            return
        arranged = shelves.mapped(plain_rows, StructType(list(fields)))
        released = arranged.select(*(sql.col(column).alias(name) for column, name in names.items()))
        released.write.option("compression", "zstd").parquet(path)


def _arranged(classes: pa.Table, carried: pa.Table, shown: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of classes in canonical order. Text columns are dictionaries."""
    columns = [PassthroughColumn.of(name, carried.column(name)) for name in carried.column_names]
    nothing = Field(_shows_nothing(classes.select(shown)).view(np.uint8), 1)
    by_column = [field for name in shown for field in _fields(classes.column(name))]
    line = sort_rows([nothing, *by_column], classes.num_rows)
    rank = np.empty(classes.num_rows, np.uint32)
    distinct = len(line.starts) - 1
    rank[line.rows] = np.repeat(np.arange(distinct, dtype=np.uint32), np.diff(line.starts))
    sizes = to_numpy(one_array(classes.column(SIZE)))
    others = [field for column in columns for field in column.fields()]
    fields = [Field(np.repeat(rank, sizes), bits_for(distinct)), *others]
    rows = row_order(fields, len(fields[0].values))
    owner = np.repeat(np.arange(classes.num_rows), sizes)[rows]
    labels = [one_array(classes.column(name)) for name in shown]
    labels = [array.dictionary_encode() if pa.types.is_string(array.type) else array for array in labels]
    names = [*shown, *(column.name for column in columns)]
    for first in range(0, len(rows), BATCH):
        batch, classes_of_batch = rows[first : first + BATCH], from_numpy(owner[first : first + BATCH])
        arrays = [*(array.take(classes_of_batch) for array in labels), *(_taken(column, batch) for column in columns)]
        yield pa.RecordBatch.from_arrays(arrays, names)


def _taken(column: PassthroughColumn, rows: NDArray[np.uint32]) -> pa.Array:
    """Take rows of a column. All batches of a text column share one dictionary."""
    if column.codes is None:
        return column.take(rows)
    codes = column.codes[rows].astype(np.int32)
    return pa.DictionaryArray.from_arrays(from_numpy(codes, codes == len(column.array)), column.array)


def _fields(column: pa.ChunkedArray) -> list[Field]:
    """Return a shown column as a part of the sort key. Bounds follow from the label, except whether they are null."""
    if pa.types.is_string(column.type):
        known, codes = sorted_codes(column)
        return [Field(codes, bits_for(len(known) + 1))]
    return [Field(to_numpy(one_array(column).is_null()).view(np.uint8), 1)]


def _splitters(classes: StoredChunks, shelves: int) -> list[Key]:
    if shelves < 2:
        return []
    with in_our_words("take a sample of the release"):
        sample = classes.collected([SAMPLE])
    keys = sorted(key for chunk in sample.column(SAMPLE) for key in _keys(plain(opened(chunk))))
    marks = (len(keys) * shelf // shelves for shelf in range(1, shelves))
    return sorted({keys[mark] for mark in marks if keys})


def _keys(rows: pa.Table) -> list[Key]:
    return [_key(rows, row) for row in range(rows.num_rows)]


def _key(table: pa.Table, row: int) -> Key:
    """Return what a row shows in a form that sorts with null last, and after all others if it shows nothing."""
    values = [table.column(name)[row] for name in table.column_names if name != SIZE]
    shown = tuple(
        (not value.is_valid, value.as_py() or "" if pa.types.is_string(value.type) else "") for value in values
    )
    nothing = all(value.as_py() == WHOLE for value in values if pa.types.is_string(value.type))
    return (nothing, ""), *shown


def _shows_nothing(classes: pa.Table) -> NDArray[np.bool_]:
    """Return whether each class shows nothing but ``*``."""
    labels = [column for column in classes.columns if pa.types.is_string(column.type)]
    star = from_texts([WHOLE])
    return reduce(np.logical_and, (to_numpy(one_array(pc.is_in(column, value_set=star))) for column in labels))


def _shelves(
    session: Session, classes: StoredChunks, splitters: list[Key]
) -> tuple[Tasks, Callable[[Batches], Iterator[Piece]]]:
    """Return a task for each shelf, which is the range of rows of one file, and what gives a task its pieces."""
    if isinstance(classes, ChunkFiles):
        known = shared(session, splitters)

        def own(batches: Batches) -> Iterator[Piece]:
            task = number_of_task()
            return ((shown, carried) for shelf, shown, carried in _cut(batches, known.value) if shelf == task)

        return classes.tasks_of(_rows_of_shelves(classes, splitters), [SHOWN, CHUNK]), own
    return _shuffled(session, classes, splitters), _as_cut


def _rows_of_shelves(classes: ChunkFiles, splitters: list[Key]) -> list[NDArray[np.int64]]:
    """Return the chunks of which each shelf has a part."""
    ends = [_keys(plain(opened(chunk))) for chunk in classes.collected([ENDS]).column(ENDS)]
    first, last = (np.array([bisect_right(splitters, keys[end]) for keys in ends], np.int64) for end in (0, -1))
    # The dictionaries of labels follow the order of the pieces, which is that of Spark's readers.
    rows = classes.longest_files_first()
    return [rows[(first[rows] <= shelf) & (last[rows] >= shelf)] for shelf in range(len(splitters) + 1)]


def _shuffled(session: Session, classes: StoredChunks, splitters: list[Key]) -> Tasks:
    """Cut the chunks, and let Spark bring the pieces of each shelf together."""
    from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

    kinds = {SHELF: IntegerType(), SHOWN: BinaryType(), CHUNK: BinaryType()}
    schema = StructType([StructField(name, kind, nullable=False) for name, kind in kinds.items()])
    numbers = partition_numbers(len(splitters) + 1)
    known = shared(session, (splitters, numbers))

    def shelved(batches: Batches) -> Batches:
        splitters, numbers = known.value
        for shelf, shown, carried in _cut(batches, splitters):
            values = [(numbers[shelf], pa.int32()), (packed(shown), pa.binary()), (packed(carried), pa.binary())]
            yield pa.RecordBatch.from_arrays([pa.array([value], kind) for value, kind in values], schema.names)

    cut = classes.tasks([SHOWN, CHUNK]).mapped(shelved, schema)
    return Tasks(cut.repartition(len(numbers), SHELF), as_they_are)


def _as_cut(batches: Batches) -> Iterator[Piece]:
    for batch in batches:
        for shown, carried in zip(batch.column(SHOWN), batch.column(CHUNK), strict=True):
            yield opened(shown), opened(carried)


def _cut(batches: Batches, splitters: list[Key]) -> Iterator[tuple[int, pa.Table, pa.Table]]:
    """Cut chunks of classes at the splitters, and yield the number of its shelf with each piece."""
    for chunk, carried in _as_cut(batches):
        shown = plain(chunk)
        ends = np.cumsum(to_numpy(one_array(shown.column(SIZE))))
        begin = first = 0
        while begin < shown.num_rows:
            shelf = bisect_right(splitters, _key(shown, begin))
            end = shown.num_rows
            if shelf < len(splitters):
                behind = range(shown.num_rows)
                end = bisect_left(behind, splitters[shelf], begin, key=lambda row, of=shown: _key(of, row))  # type: ignore[misc]
            last = int(ends[end - 1])
            yield shelf, shown.slice(begin, end - begin), carried.slice(first, last - first)
            begin, first = end, last
