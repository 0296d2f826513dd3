"""Partition the rows of a table of any size by a key, within a memory limit.

Adjacent rows that are equal in all columns form one run with a count. Runs are collected until they fill the memory;
then equal runs are merged, wherever they were. If they still take too much, a hash of the key distributes them over
files, so that rows with the same key end up in the same file, whatever the order of the table. A file that is too large
is read and distributed again by another hash. In a release the rows of a class are mostly adjacent, so a release is
read once and yields few runs; only the running time depends on that.

Null equals null and nothing else, and NaN is null, as in ``released_classes``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from sfumato.errors import UsageError
from sfumato.kernels.threads import in_threads, in_threads_ahead, slices
from sfumato.progress import Progress
from sfumato.tables.coding.arrow_arrays import from_numpy, to_numpy, to_python
from sfumato.tables.external.scratch import Scratch, scratch_errors
from sfumato.tables.released_classes import CHUNK, group_rows
from sfumato.tables.sources.in_memory_source import nan_as_null
from sfumato.tables.sources.source import Source

COUNT = ""  # the name of the column of counts, which no column of a table can have
RUN_BYTES, CELL_BYTES, VALUE_BYTES = 120, 28, 260  # bytes that grouping takes for a run, a cell and a distinct value
TEXT_COPIES = 3  # of the text of values
LIBRARIES = 200 * 10**6  # bytes that a process takes before it reads a table
MOST_FILES = 256
LEAST_FILES = 4
UNKNOWN_FILES = 32  # if the number of rows is not known
DEEPEST = 12
SAMPLED, FEWEST_SAMPLED = 32, 1000  # one run in 32 is sampled; fewer than 1000 runs are too small a sample
MIXED = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # odd multipliers with well spread bits


def room_within(memory: int) -> int:
    """Return the bytes that a part may take: half of what the libraries leave, but at least an eighth of the limit."""
    return max((memory - LIBRARIES) // 2, memory // 8)


@dataclass(frozen=True)
class KeyPartition:
    """All rows of some keys, as a source. ``counts`` holds the number of rows of the table that each stands for."""

    table: pa.Table
    kind = "pyarrow"
    text = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.table.column_names[:-1])

    @property
    def types(self) -> dict[str, pa.DataType]:
        return {name: self.table.schema.field(name).type.value_type for name in self.names}

    @property
    def rows(self) -> int | None:
        return int(self.table.num_rows)

    @property
    def counts(self) -> NDArray[np.int64]:
        return to_numpy(self.table.column(COUNT).combine_chunks())

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self.table.select(list(columns)).to_batches()


class PartsByKey:
    """The rows of ``source`` in parts, each with all rows of some keys.

    A process that holds little else stays within ``memory`` bytes if it keeps one part at a time and what it computes
    from it. Rows are equal if they agree in ``key`` and ``others``. Once the first part is yielded, ``totals`` holds
    how often each value of the columns ``counted`` occurs in the table.
    """

    def __init__(
        self,
        source: Source,
        key: Sequence[str],
        others: Sequence[str] = (),
        *,
        counted: Sequence[str] = (),
        memory: int,
        scratch: Scratch,
        progress: Progress | None = None,
    ) -> None:
        self._source, self._key, self._columns = source, list(key), [*key, *others]
        self._scratch, self._progress = scratch, progress or Progress()
        self._room = room_within(memory)
        self._most_kept = self._room * 3 // 4  # bytes of collected runs, so that there is room for more
        self.totals: dict[str, Counter[object]] = {name: Counter() for name in counted}

    def __iter__(self) -> Iterator[KeyPartition]:
        for table in self._parts(self._read(), 0, self._source.rows):
            yield KeyPartition(table)

    def _read(self) -> Iterator[pa.RecordBatch]:
        for runs, rows in in_threads_ahead(_counted_runs, self._source.batches(self._columns)):
            yield runs
            self._progress.advance(rows)

    def _parts(self, batches: Iterable[pa.RecordBatch], depth: int, rows: int | None) -> Iterator[pa.Table]:
        """Yield tables of runs, each with all rows of some keys. rows: of all batches, or None if unknown."""
        if depth > DEEPEST:
            raise UsageError(
                "a single class of the release, with its different sensitive values, takes more memory than the limit "
                "allows. Raise the limit with --memory."
            )
        collected: list[pa.RecordBatch] = []
        files: list[_PartitionFile] = []
        taken, seen = 0, 0
        for batch in batches:
            collected.append(batch)
            taken += self._bytes(batch)
            seen += batch.num_rows if depth else int(pc.sum(batch.column(COUNT)).as_py())
            if taken < self._room:
                continue
            table = _one_table(collected)
            taken = self._bytes(table)
            if taken > self._most_kept and self._are_many_equal(table, depth):
                table = _merged(table)
                taken = self._bytes(table)
            collected = table.to_batches()
            if taken > self._most_kept:
                if not files:
                    files = self._files(taken, seen, rows)
                collected, taken = [], 0
                self._spread(table, files, depth)
            del table
        if not files:
            table = _one_table(collected)
            collected.clear()
            if not depth:
                self._count(table)
            yield table
            return
        if collected:
            self._spread(_one_table(collected), files, depth)
            collected.clear()
        for file in files:
            if file.runs:
                yield from self._parts(file.batches(), depth + 1, file.runs)
            file.remove()

    def _bytes(self, runs: pa.RecordBatch | pa.Table) -> int:
        columns = [runs.column(name) for name in self._columns]
        dictionaries = [
            column.dictionary if isinstance(column, pa.Array) else column.chunk(0).dictionary for column in columns
        ]
        value_bytes = sum(len(values) * VALUE_BYTES + values.nbytes * TEXT_COPIES for values in dictionaries)
        return int(runs.num_rows * (RUN_BYTES + CELL_BYTES * len(columns)) + value_bytes)

    def _are_many_equal(self, table: pa.Table, depth: int) -> bool:
        """Return whether merging equal runs would pay. Equal runs have equal hashes, so a sample by hash shows it."""
        hashes = _hashes(table, self._columns, depth)
        sample = hashes[hashes % np.uint64(SAMPLED) == 0]
        return len(sample) < FEWEST_SAMPLED or len(np.unique(sample)) < 0.75 * len(sample)

    def _files(self, taken: int, seen: int, rows: int | None) -> list[_PartitionFile]:
        """Create so many files that each should fit. taken: the bytes of the ``seen`` rows; rows: of all batches."""
        expected = UNKNOWN_FILES if rows is None else int(taken * rows / max(seen, 1) * 1.5 / self._room) + 1
        number = min(max(expected, LEAST_FILES), MOST_FILES)
        return [_PartitionFile(self._scratch.path("runs")) for _ in range(number)]

    def _spread(self, table: pa.Table, files: list[_PartitionFile], depth: int) -> None:
        """Append every run to the file of its key."""
        if not depth:
            self._count(table)
        file_of_run = (_hashes(table, self._key, depth) % np.uint64(len(files))).astype(np.uint8)
        order = np.argsort(file_of_run, kind="stable")
        ends = np.cumsum(np.bincount(file_of_run, minlength=len(files)))
        dictionaries = [column.chunk(0).dictionary for column in table.columns[:-1]]
        codes = in_threads(lambda column: _codes(column.chunk(0))[order], table.columns[:-1])
        counts = to_numpy(table.column(COUNT).chunk(0))[order]
        for file, begin, end in zip(files, [0, *ends.tolist()], ends.tolist(), strict=False):
            if begin < end:
                pairs = zip(codes, dictionaries, strict=True)
                arrays = [_in_use(column[begin:end], dictionary) for column, dictionary in pairs]
                file.append(pa.RecordBatch.from_arrays([*arrays, from_numpy(counts[begin:end])], schema=table.schema))

    def _count(self, table: pa.Table) -> None:
        counts = to_numpy(table.column(COUNT).chunk(0))
        for name, total in self.totals.items():
            column = table.column(name).chunk(0)
            count_of_code = np.bincount(_codes(column), weights=counts, minlength=len(column.dictionary) + 1)
            for value, count in zip([*to_python(column.dictionary), None], count_of_code.tolist(), strict=True):
                if count:
                    total[value] += int(count)


class _PartitionFile:
    """A file of runs, written batch by batch. Each batch has its own dictionaries."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.runs = 0

    def append(self, batch: pa.RecordBatch) -> None:
        with (
            scratch_errors(self._path.parent),
            self._path.open("ab") as file,
            pa.ipc.new_stream(file, batch.schema) as writer,
        ):
            writer.write_batch(batch)
        self.runs += batch.num_rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        with scratch_errors(self._path.parent), self._path.open("rb") as file:
            size = self._path.stat().st_size
            try:
                while file.tell() < size:
                    with pa.ipc.open_stream(file) as reader:
                        yield from reader
            except pa.ArrowInvalid:
                raise OSError(5, "the file does not hold what was written") from None

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


def _counted_runs(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, int]:
    return runs_of(batch), batch.num_rows


def runs_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Merge adjacent equal rows. The last column of the result holds their number; the others are dictionary codes."""
    begins = np.ones(batch.num_rows, np.bool_)
    begins[1:] = False
    for changes in in_threads(_changes, batch.columns):
        begins[1:] |= changes
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.append(starts, batch.num_rows))
    first = from_numpy(starts)
    columns = [in_codes(column.take(first)) for column in batch.columns]
    return pa.RecordBatch.from_arrays([*columns, from_numpy(lengths)], names=[*batch.schema.names, COUNT])


def _changes(column: pa.Array) -> NDArray[np.bool_]:
    """Mark rows, from the second on, that may differ from the row before. Rows that are not marked are equal to it."""
    if types.is_dictionary(column.type):
        codes = _codes(column)
        return np.not_equal(codes[1:], codes[:-1])
    return to_numpy(pc.fill_null(pc.not_equal(column[1:], column[:-1]), True))


def in_codes(column: pa.Array) -> pa.DictionaryArray:
    """Return a column as codes into its distinct values, none of which is null or NaN."""
    if types.is_dictionary(column.type):
        return column
    if types.is_floating(column.type):
        column = column.cast(pa.float32()) if types.is_float16(column.type) else column
        column = nan_as_null(pc.add(column, pa.scalar(0, column.type)))  # adding 0 turns -0.0 into 0.0
    return column.dictionary_encode()


def _codes(column: pa.DictionaryArray) -> NDArray[np.int32]:
    """Return the dictionary index of each row's value; null is one past the last."""
    return to_numpy(column.indices, null=len(column.dictionary))


def _one_table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Combine runs into one chunk, so that every column has one dictionary."""
    return pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()


def _merged(table: pa.Table) -> pa.Table:
    """Merge runs that are equal in all columns."""
    columns = [column.chunk(0) for column in table.columns[:-1]]
    counts = to_numpy(table.column(COUNT).chunk(0))
    group = group_rows([_codes(column) for column in columns], [len(column.dictionary) + 1 for column in columns])
    _, first, merged_run = np.unique(group, return_index=True, return_inverse=True)
    if len(first) == len(group):
        return table
    total = np.bincount(merged_run, weights=counts).astype(np.int64)  # exact: tables have fewer than 2 ** 53 rows
    arrays = [*(column.take(from_numpy(first)) for column in columns), from_numpy(total)]
    return pa.Table.from_arrays(arrays, schema=table.schema)


def _hashes(table: pa.Table, key: Sequence[str], depth: int) -> NDArray[np.uint64]:
    """Hash the key of every run. Within a process, equal keys have equal hashes; each depth has another hash."""
    columns = [table.column(name).chunk(0) for name in key]
    codes = [_codes(column) for column in columns]
    hashes = [
        np.array([hash(value) for value in [*to_python(column.dictionary), None]], np.int64).view(np.uint64)
        for column in columns
    ]
    result = np.full(table.num_rows, depth + 1, np.uint64)
    in_threads(partial(_mix, result, codes, hashes), slices(len(result), CHUNK))
    return result


def _mix(
    result: NDArray[np.uint64],
    codes: list[NDArray[np.int32]],
    hashes: list[NDArray[np.uint64]],
    part: tuple[int, int],
) -> None:
    mixed = result[part[0] : part[1]]
    for column, hash_of_code in zip(codes, hashes, strict=True):
        mixed ^= hash_of_code[column[part[0] : part[1]]]
        for shift, factor in zip((30, 27), MIXED, strict=True):
            mixed ^= mixed >> np.uint64(shift)
            mixed *= factor
        mixed ^= mixed >> np.uint64(31)


def _in_use(codes: NDArray[np.int32], dictionary: pa.Array) -> pa.DictionaryArray:
    """Build a column whose dictionary holds only the values that occur."""
    used = np.zeros(len(dictionary) + 1, np.bool_)
    used[codes] = True
    missing = codes == len(dictionary) if used[-1] else None
    if used[:-1].all():
        return pa.DictionaryArray.from_arrays(from_numpy(codes, missing), dictionary)
    new_code: NDArray[Any] = (np.cumsum(used) - 1).astype(np.int32)
    values = dictionary.take(from_numpy(np.flatnonzero(used[:-1])))
    return pa.DictionaryArray.from_arrays(from_numpy(new_code[codes], missing), values)
