"""Records brought into order within a memory limit: ranges of keys, sized by a sample, each sorted in memory.

The records of a file are spread over a file for each range of the leading bits of their keys, in one pass, and the
ranges are then taken one by one. A range that came out too large is divided again, and one of a single number by the
bits behind it. Records whose whole keys are equal need no order and are taken as they stand, however many there are.

Inside a range the records keep the order of the file, so that a stable sort of every range is a stable sort of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.tables.coding.sorting import WORD, Field, key_bits
from sfumato.tables.external.packed_records import PackedFile, Rows, packed_file
from sfumato.tables.external.scratch import Scratch, scratching

MOST_RANGES = 256
FILLED = 0.7  # of what fits: a sample does not tell sizes exactly
SAMPLE = 1 << 16
TOP = 1 << WORD

# The key of packed records as fields, the most significant first.
FieldsOf = Callable[[Rows], Sequence[Field]]


def in_ranges(
    file: PackedFile, fields_of: FieldsOf, most: int, scratch: Scratch, *, keep: bool = False
) -> Iterator[Rows]:
    """All records, at most ``most`` at a time: no key of one part is above a key of the next.

    The file is removed as soon as its records are spread, unless it is to be kept.
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
    """The same of records whose keys agree in the bits before ``offset``; the next word is within ``bounds``."""
    if file.count <= most:
        rows = file.read()
        if not keep:
            file.remove()
        yield rows
        return
    sample = sampled(file)
    width = sum(field.bits for field in fields_of(sample))
    if bounds[1] - bounds[0] == 1:
        offset, bounds = offset + WORD, (0, TOP)
    if offset >= width:
        yield from file.batches(most)
        if not keep:
            file.remove()
        return
    parts = min(-(-file.count // max(int(most * FILLED), 1)), MOST_RANGES)
    splitters = _splitters(_words(fields_of, sample, offset), parts)
    files = [packed_file(scratch, "range", file.kind) for _ in range(len(splitters) + 1)]
    for rows in file.batches(most):
        spread(rows, np.searchsorted(splitters, _words(fields_of, rows, offset), side="right"), files)
    if not keep:
        file.remove()
    edges = [bounds[0], *splitters.tolist(), bounds[1]]
    for place, part in enumerate(files):
        if part.count:
            yield from _divided(part, fields_of, offset, (edges[place], edges[place + 1]), most, scratch)


def spread(rows: Rows, owner: NDArray[np.integer], files: Sequence[PackedFile]) -> None:
    """Append each record to the file of its owner; the records of a file keep their order."""
    owner = owner.astype(np.min_scalar_type(max(len(files) - 1, 1)))
    order = np.argsort(owner, kind="stable")
    sizes = np.bincount(owner, minlength=len(files))
    ordered = np.take(rows, order)
    ends = np.cumsum(sizes)
    for place in np.flatnonzero(sizes).tolist():
        files[place].append(ordered[ends[place] - sizes[place] : ends[place]])


def sampled(file: PackedFile) -> Rows:
    """Some records from all over the file."""
    with scratching(file.path.parent):
        whole = np.memmap(file.path, file.kind, "r", shape=(file.count,))
        return np.array(whole[:: -(-file.count // SAMPLE)])


def _words(fields_of: FieldsOf, rows: Rows, offset: int) -> NDArray[np.uint64]:
    """The next word of the keys, as if they went on with zeros."""
    fields = fields_of(rows)
    width = min(WORD, sum(field.bits for field in fields) - offset)
    words = key_bits(fields, offset, width)
    return words << np.uint64(WORD - width) if width < WORD else words


def _splitters(words: NDArray[np.uint64], parts: int) -> NDArray[np.uint64]:
    """Where ranges begin, but for the first. A number that would fill ranges by itself gets one of its own."""
    ordered = np.sort(words)
    chosen = ordered[np.arange(1, parts) * len(ordered) // parts]
    found, times = np.unique(chosen, return_counts=True)
    alone = found[(times > 1) | (found == ordered[0])]
    return np.unique(np.concatenate([found, alone[alone < TOP - 1] + np.uint64(1)]))
