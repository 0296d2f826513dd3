"""External sort: split records into ranges of keys that fit into memory, so that each range can be sorted there.

One pass distributes the records of a file over one file per range of the leading key bits; a sample sets the sizes of
the ranges. The ranges are then read one by one. A range that turned out too large is divided again; if it consists of a
single number, the key bits that follow divide it. Records with entirely equal keys need no order and are read as they
are, however many there are.

Within a range, records keep the order of the file, so a stable sort of every range is a stable sort of all records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.threads import in_threads_ahead
from sfumato.tables.coding.sorting import WORD, Field, key_bits
from sfumato.tables.external.packed_records import PackedFile, Rows, packed_file
from sfumato.tables.external.scratch import Scratch, scratch_errors

MOST_RANGES = 256
FILLED = 0.7  # of what fits, since a sample gives only approximate sizes
SAMPLE = 1 << 16
BATCH = 1 << 19  # records that a thread distributes at once, at most
TOP = 1 << WORD

# The key of packed records as fields, the most significant first.
FieldsOf = Callable[[Rows], Sequence[Field]]


def sorted_ranges(
    file: PackedFile, fields_of: FieldsOf, most: int, scratch: Scratch, *, keep: bool = False
) -> Iterator[Rows]:
    """Yield all records in parts of at most ``most`` records. No key of a part is above a key of the next part.

    The file is removed as soon as its records are distributed, unless ``keep`` is set.
    """
    yield from _divided(file, fields_of, 0, (0, TOP), most, scratch, keep=keep)


def _divided(
    file: PackedFile,
    fields_of: FieldsOf,
    offset: int,
    bounds: tuple[int, int],
    most: int,
    scratch: Scratch,
    *,
    keep: bool = False,
) -> Iterator[Rows]:
    """Yield the records of a file whose keys agree in the bits before ``offset``, as ``in_ranges`` does.

    bounds: the range of the next word of the keys, from the first number to one past the last.
    """
    if file.count <= most:
        rows = file.read()
        if not keep:
            file.remove()
        yield rows
        return
    sample = _sample(file)
    width = sum(field.bits for field in fields_of(sample))
    if bounds[1] - bounds[0] == 1:
        offset, bounds = offset + WORD, (0, TOP)
    if offset >= width:
        yield from file.batches(most)
        if not keep:
            file.remove()
        return
    ranges = min(-(-file.count // max(int(most * FILLED), 1)), MOST_RANGES)
    splitters = _splitters(_words(fields_of, sample, offset), ranges)
    files = [packed_file(scratch, "range", file.kind) for _ in range(len(splitters) + 1)]

    def divided(rows: Rows) -> tuple[Rows, NDArray[np.int64]]:
        return _by_owner(rows, np.searchsorted(splitters, _words(fields_of, rows, offset), side="right"), len(files))

    for ordered, ends in in_threads_ahead(divided, file.batches(max(min(most // 4, BATCH), 1))):
        for range_file, begin, end in zip(files, [0, *ends.tolist()], ends.tolist(), strict=False):
            if begin < end:
                range_file.append(ordered[begin:end])
    if not keep:
        file.remove()
    edges = [bounds[0], *splitters.tolist(), bounds[1]]
    for number, range_file in enumerate(files):
        if range_file.count:
            yield from _divided(range_file, fields_of, offset, (edges[number], edges[number + 1]), most, scratch)


def _by_owner(rows: Rows, owner: NDArray[np.integer], owners: int) -> tuple[Rows, NDArray[np.int64]]:
    """Return the records by their owner, otherwise in the order of ``rows``, and where those of each owner end."""
    owner = owner.astype(np.min_scalar_type(max(owners - 1, 1)))
    order = np.argsort(owner, kind="stable")
    return np.take(rows, order), np.cumsum(np.bincount(owner, minlength=owners))


def _sample(file: PackedFile) -> Rows:
    """Return a sample of at most ``SAMPLE`` records, evenly spaced over the file."""
    with scratch_errors(file.path.parent):
        records = np.memmap(file.path, file.kind, "r", shape=(file.count,))
        return np.array(records[:: -(-file.count // SAMPLE)])


def _words(fields_of: FieldsOf, rows: Rows, offset: int) -> NDArray[np.uint64]:
    """Return the word of each key that begins at bit ``offset``, padded with zeros on the right."""
    fields = fields_of(rows)
    width = min(WORD, sum(field.bits for field in fields) - offset)
    words = key_bits(fields, offset, width)
    return words << np.uint64(WORD - width) if width < WORD else words


def _splitters(words: NDArray[np.uint64], ranges: int) -> NDArray[np.uint64]:
    """Return the first number of every range but the first. A number that would fill a range gets its own range."""
    ordered = np.sort(words)
    quantiles = ordered[np.arange(1, ranges) * len(ordered) // ranges]
    splitters, times = np.unique(quantiles, return_counts=True)
    frequent = splitters[(times > 1) | (splitters == ordered[0])]
    return np.unique(np.concatenate([splitters, frequent[frequent < TOP - 1] + np.uint64(1)]))
