"""Do the columns that a release keeps as they are hold nothing but what the original has?

Values are compared by the text that a CSV file has for them, since the two tables may be files of different kinds. A
release may leave records out, so it must show no value more often than the original does; the records beyond are
counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.requirements import Verdict
from sfumato.tables.coding.arrow_arrays import from_numpy, from_texts
from sfumato.tables.external.partition_by_key import PartsByKey, in_codes
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import Source
from sfumato.tables.sources.source_batches import TEXT

VALUE, RELEASED = "value", "released"


def kept_columns_hold(release: Source, original: Source, recoded: Collection[str]) -> list[Verdict]:
    """A verdict for every column of the release but those that are ``recoded``."""
    verdicts = []
    for name in release.names:
        if name not in recoded:
            surplus = _surplus(_Both(name, release, original)) if name in original.names else None
            verdicts.append(_verdict(name, surplus))
    return verdicts


def kept_columns_hold_in_parts(
    release: Source, original: Source, recoded: Collection[str], *, memory: int, scratch: Scratch
) -> list[Verdict]:
    """The same in a process of at most ``memory`` bytes: some of the values at a time."""
    verdicts = []
    for name in release.names:
        if name not in recoded:
            surplus = None
            if name in original.names:
                both = _Both(name, release, original)
                parts = PartsByKey(both, [VALUE], [RELEASED], memory=memory, scratch=scratch)
                surplus = sum(_surplus(part, part.counts) for part in parts)
            verdicts.append(_verdict(name, surplus))
    return verdicts


def _verdict(name: str, surplus: int | None) -> Verdict:
    if surplus is None:
        return Verdict(f"the column {name!r} is in the original", False, 0)
    return Verdict(f"the kept column {name!r} holds values of the original", surplus == 0, surplus)


def _surplus(both: Source, counts: NDArray[np.int64] | None = None) -> int:
    """How many records of the release have a value that the original has less often."""
    found = find_classes(both, [VALUE, RELEASED], counts=counts)
    released = np.array(found.values[RELEASED], np.bool_)[found.shown[RELEASED]]
    more = np.zeros(len(found.values[VALUE]), np.int64)
    np.add.at(more, found.shown[VALUE], np.where(released, found.sizes, -found.sizes))
    return int(more[more > 0].sum())


@dataclass(frozen=True)
class _Both:
    """A column of the release as text, then that of the original; a second column says which it is of."""

    name: str
    release: Source
    original: Source
    names = (VALUE, RELEASED)
    kind = "pyarrow"
    text = False
    categories: frozenset[str] = frozenset()

    @property
    def types(self) -> dict[str, pa.DataType]:
        return {VALUE: pa.string(), RELEASED: pa.bool_()}

    @property
    def rows(self) -> int | None:
        one, other = self.release.rows, self.original.rows
        return None if one is None or other is None else one + other

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for source in (self.release, self.original):
            for batch in source.batches([self.name]):
                side = from_numpy(np.full(batch.num_rows, source is self.release))
                yield pa.RecordBatch.from_arrays([_as_text(batch.column(0)), side], names=[VALUE, RELEASED])


def _as_text(column: pa.Array) -> pa.DictionaryArray:
    encoded = in_codes(column)
    if encoded.type == TEXT:
        return encoded
    try:
        texts = encoded.dictionary.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        texts = from_texts([str(value) for value in encoded.dictionary.to_pylist()])
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(pa.int32()), texts)
