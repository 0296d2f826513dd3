"""The keyed sample of a table in memory, by which the run record recognises it."""

from __future__ import annotations

import numpy as np

from sfumato.kernels.threads import in_threads, slices, thread_count
from sfumato.methods.method import Records
from sfumato.releases.keyed_sample import KeyedSample, sampled
from sfumato.tables.coding.keyed_hashes import RecordHashes


def sample_in_memory(records: Records, hashes: RecordHashes) -> KeyedSample:
    """Sample the records, each thread a part of them."""

    def sample(bounds: tuple[int, int]) -> KeyedSample:
        begin, end = bounds
        return sampled(hashes, [(records.codes[begin:end], np.diff(records.starts[begin : end + 1]))])

    parts = in_threads(sample, slices(len(records.codes), -(-len(records.codes) // thread_count())))
    return KeyedSample.together(parts)
