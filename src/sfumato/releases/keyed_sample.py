"""A keyed sample of the records of a table, by which two tables that share records are recognised.

The sample has the distinct records with the smallest keyed hashes, and how often each occurs. Up to the last hash of
the sample that ends first, two samples have all records of their tables, so they tell how much the tables share.

Tables about the same population have equal records by chance, the more the coarser they are. If two tables are
independent samples of one population, each of the ``t`` equal records in both is in the first with the same probability
``a``: their number there, ``x``, is binomial, and ``(x - t a)^2`` has the mean ``t a (1 - a)``. Every record that is in
both tables because it is the same record lowers that mean by ``2 a (1 - a)``. So the difference counts shared records,
and chance adds nothing to it. See docs/decisions/run-record.md.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.threads import slices
from sfumato.tables.coding.domains import Codes
from sfumato.tables.coding.keyed_hashes import ALL, RecordHashes

MOST = 1024  # distinct records in a sample
BATCH = 1 << 16  # records that are hashed before the sample is brought up to date
COMMON = 16.0  # records that occur more often than this, in both tables together, count for less
NOTED = 0.4  # the estimate for tables that share half of their records is seldom below
# With few distinct records in both tables, the real division of the records is compared with random ones; with many,
# the shared records with their standard deviation in random divisions.
FEW = 128
DIVISIONS = 999
LARGEST = 10**9 - 1  # NumPy divides no more records at random, so of more a share is divided
DEVIATIONS = 4.0
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class KeyedSample:
    """The distinct records with the smallest hashes. hashes: uint64[s], ascending. counts: int64[s]."""

    hashes: NDArray[np.uint64]
    counts: NDArray[np.int64]

    @classmethod
    def empty(cls) -> KeyedSample:
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64))

    @property
    def limit(self) -> np.uint64:
        """The hash up to which the sample has every record of the table."""
        return ALL if len(self.hashes) < MOST else self.hashes[-1]

    def joined(self, other: KeyedSample) -> KeyedSample:
        """Return the sample of two parts of a table. Its counts are exact: no part has left out what it keeps."""
        hashes, place = np.unique(np.concatenate([self.hashes, other.hashes]), return_inverse=True)
        counts = np.zeros(len(hashes), np.int64)
        np.add.at(counts, place, np.concatenate([self.counts, other.counts]))
        return KeyedSample(hashes[:MOST], counts[:MOST])

    @classmethod
    def together(cls, parts: Iterable[KeyedSample]) -> KeyedSample:
        """Return the sample of all parts of a table."""
        return reduce(cls.joined, parts, cls.empty())

    def same_as(self, other: KeyedSample) -> bool:
        return np.array_equal(self.hashes, other.hashes) and np.array_equal(self.counts, other.counts)

    def to_dict(self) -> dict[str, Any]:
        hashes = base64.b64encode(self.hashes.astype("<u8").tobytes()).decode()
        return {"hashes": hashes, "counts": self.counts.tolist()}

    @classmethod
    def from_dict(cls, content: Any) -> KeyedSample:
        """Read what ``to_dict`` wrote. Raises ValueError for anything else."""
        try:
            hashes = np.frombuffer(base64.b64decode(content["hashes"], validate=True), "<u8").astype(np.uint64)
            counts = np.array(content["counts"], np.int64)
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError("this is not a keyed sample") from error
        if counts.shape != hashes.shape or (counts < 1).any() or (hashes[1:] <= hashes[:-1]).any():
            raise ValueError("this is not a keyed sample")
        return cls(hashes, counts)


def sampled(hashes: RecordHashes, batches: Iterable[tuple[Codes, NDArray[np.int64] | None]]) -> KeyedSample:
    """Sample the records of all batches. A batch has the codes of records, and how often each occurs; None is once."""
    sample = KeyedSample.empty()
    for codes, counts in batches:
        for begin, end in slices(len(codes), BATCH):
            positions, found = hashes.least(codes[begin:end], sample.limit)
            occurring = np.ones(len(found), np.int64) if counts is None else counts[begin:end][positions]
            sample = sample.joined(KeyedSample(found, occurring))
    return sample


def shared_part(one: KeyedSample, other: KeyedSample) -> float:
    """Estimate which part of the smaller table's records the other table has too, from 0 to 1.

    What equal records there are by chance does not count. The result is 0 if so much in common could be chance.
    """
    limit = min(one.limit, other.limit)
    hashes = np.union1d(one.hashes, other.hashes)
    hashes = hashes[hashes <= limit]
    counts = _counts(one, hashes)
    total = counts + _counts(other, hashes)
    weight = _weights(total)
    smaller = min(float(weight @ counts), float(weight @ (total - counts)))
    if not smaller:
        return 0.0
    part = float(_shared(counts, total)) / smaller
    return min(part, 1.0) if part >= NOTED and not _is_chance(counts, total) else 0.0


def _counts(sample: KeyedSample, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return how often the records with the given hashes occur in a sample that may lack some of them."""
    counts = np.zeros(len(hashes), np.int64)
    _, here, there = np.intersect1d(hashes, sample.hashes, assume_unique=True, return_indices=True)
    counts[here] = sample.counts[there]
    return counts


def _weights(total: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weight of records by how often they occur. It is the rare ones that tell tables apart."""
    return np.minimum(1.0, (COMMON / total) ** 2)


def _shared(counts: NDArray[np.int64], total: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weight of shared records. counts: int64[..., s], in one table; total: int64[s], in both."""
    weight = _weights(total)
    part = (counts @ weight / (total @ weight))[..., None]
    spread = part * (1 - part)
    excess = (total * spread - (counts - total * part) ** 2) @ weight
    return np.divide(excess, 2 * spread[..., 0], out=np.zeros_like(excess), where=spread[..., 0] > 0)


def _is_chance(counts: NDArray[np.int64], total: NDArray[np.int64]) -> bool:
    """Return whether records divided at random into two tables of these sizes may have as much in common."""
    several = total > 1  # the others are in one table only, and say nothing about chance
    shared, common = _shared(counts, total), total[several]
    if len(common) > FEW:
        deviation = np.sqrt((_weights(common) ** 2) @ (common * (common - 1)) / 2)
        return bool(shared < DEVIATIONS * deviation)
    scale = 1 + common.sum() // LARGEST
    several &= total >= scale
    common, counts = total[several] // scale, counts[several] // scale
    random = np.random.default_rng(0)
    divisions = random.multivariate_hypergeometric(common, counts.sum(), DIVISIONS, method="marginals")
    return bool((_shared(divisions, common) >= _shared(counts, common) * (1 - ROUNDING)).any())
