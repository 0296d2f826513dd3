"""The keyed sample of a table in memory, by which the run record recognises it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.threads import in_threads, slices, thread_count
from sfumato.methods.method import Records
from sfumato.releases.keyed_sample import KeyedSample, sampled
from sfumato.tables.coding.keyed_hashes import RecordHashes


def sample_in_memory(records: Records, hashes: RecordHashes) -> KeyedSample:
    """Sample the records, each thread a part of them. Where persons are counted, a person's equal records are one."""
    counts = np.diff(records.starts) if records.persons is None else _persons(records)

    def sample(bounds: tuple[int, int]) -> KeyedSample:
        part = slice(*bounds)
        return sampled(hashes, [(records.codes[part], counts[part])])

    parts = in_threads(sample, slices(len(records.codes), -(-len(records.codes) // thread_count())))
    return KeyedSample.together(parts)


def _persons(records: Records) -> NDArray[np.int64]:
    """Return the number of persons who have each distinct record."""
    assert records.persons is not None
    several = int(records.persons.max(initial=0)) + 1
    distinct = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
    pairs = np.unique(distinct * several + records.persons[records.rows])
    return np.bincount(pairs // several, minlength=len(records.codes))
