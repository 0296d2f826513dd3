"""Check that the kept columns of a release hold only values of the original.

Values are compared by their text in a CSV file, since the two tables may be files of different kinds. A release may
leave records out, so no value may occur more often than in the original; the surplus records are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
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
    """A verdict for every column of the release that is not ``recoded``."""
    return _verdicts(release, original, recoded, _surplus)


def kept_columns_hold_in_parts(
    release: Source, original: Source, recoded: Collection[str], *, memory: int, scratch: Scratch
) -> list[Verdict]:
    """A verdict for every column that is not ``recoded``, in a process of at most ``memory`` bytes.

    Each step holds only a part of the values.
    """

    def surplus_in_parts(both: Source) -> int:
        parts = PartsByKey(both, [VALUE], [RELEASED], memory=memory, scratch=scratch)
        return sum(_surplus(part, part.counts) for part in parts)

    return _verdicts(release, original, recoded, surplus_in_parts)


def _verdicts(
    release: Source, original: Source, recoded: Collection[str], surplus_of: Callable[[Source], int]
) -> list[Verdict]:
    verdicts = []
    for name in release.names:
        if name in recoded:
            continue
        if name not in original.names:
            verdicts.append(Verdict(f"the column {name!r} is in the original", False, 0))
            continue
        surplus = surplus_of(_Both(name, release, original))
        verdicts.append(Verdict(f"the kept column {name!r} holds values of the original", surplus == 0, surplus))
    return verdicts


def _surplus(both: Source, counts: NDArray[np.int64] | None = None) -> int:
    """How many records of the release exceed the number of records with the same value in the original."""
    pairs = find_classes(both, [VALUE, RELEASED], counts=counts)
    released = np.array(pairs.values[RELEASED], np.bool_)[pairs.shown[RELEASED]]
    excess = np.zeros(len(pairs.values[VALUE]), np.int64)
    np.add.at(excess, pairs.shown[VALUE], np.where(released, pairs.sizes, -pairs.sizes))
    return int(excess[excess > 0].sum())


@dataclass(frozen=True)
class _Both:
    """A source that gives a column of the release as text, then the same column of the original.

    A second column says whether a row is of the release.
    """

    name: str
    release: Source
    original: Source
    names = (VALUE, RELEASED)
    kind = "pyarrow"
    text = False

    @property
    def types(self) -> dict[str, pa.DataType]:
        return {VALUE: pa.string(), RELEASED: pa.bool_()}

    @property
    def rows(self) -> int | None:
        released, original = self.release.rows, self.original.rows
        return None if released is None or original is None else released + original

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
