"""The input and output of Rothko: counted during a run, and expected by the analysis of LeFevre 2008, section 5.3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from sfumato.methods.trees.sampled_tests import ALPHA_LEVEL


@dataclass
class IoCounters:
    """Counters of a run. They leave out the finished classes, which every method writes once.

    read, written: bytes of records. scans: readings of a part, to count, sample, divide or finish it. repartitions:
    divisions of a part into files. groups: frequency groups that were counted. grown: nodes of trees that were grown on
    samples; pruned: nodes of them that were undone. finished: parts that were divided to the end in memory. whole:
    parts larger than memory that became one class. fallbacks: parts that Rothko-S left to Rothko-T. nonminimal: classes
    that may have an allowable split.
    """

    read: int = 0
    written: int = 0
    scans: int = 0
    repartitions: int = 0
    groups: int = 0
    grown: int = 0
    pruned: int = 0
    finished: int = 0
    whole: int = 0
    fallbacks: int = 0
    nonminimal: int = 0

    def passes(self, size: int) -> tuple[float, float]:
        """Return how many times a table of ``size`` bytes was read and written."""
        return self.read / max(size, 1), self.written / max(size, 1)


@dataclass(frozen=True)
class ExpectedIo:
    """The expected number of times that the data are read and written."""

    reads: int
    writes: int

    @property
    def repartitions(self) -> int:
        return self.writes


def expected_tree_io(records: int, fits: int, cache: int) -> ExpectedIo:
    """Return what Rothko-T is expected to read and write if every split halves a region.

    ``fits`` records and ``cache`` frequency groups fit into memory at once.
    """
    height = max(0, math.ceil(math.log2(records / fits)))
    repartitions = math.ceil(height / (int(math.log2(cache)) + 1))
    return ExpectedIo(height + repartitions + 1, repartitions)


def expected_sample_io(records: int, fits: int, k: int, sample: int | None = None) -> ExpectedIo:
    """Return what Rothko-S is expected to read and write for k alone, if every split halves a region.

    By default the sample has as many records as fit.
    """
    z = NormalDist().inv_cdf(1 - ALPHA_LEVEL / 2)
    repartitions = 0
    while records > fits:
        share, n = k / records, min(sample or fits, records)
        if share >= 1:
            break
        least = share + z * math.sqrt(share * (1 - share) / max(n - 1, 1) * (records - n) / records)
        levels = int(math.log2(1 / least)) if least < 1 else 0
        if levels <= 0:  # the classes may not be minimal
            break
        repartitions += 1
        records = math.ceil(records / 2**levels)
    return ExpectedIo(2 * repartitions + 1, repartitions)
