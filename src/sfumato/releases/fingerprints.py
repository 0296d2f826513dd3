"""What the run record recognises a table by: a digest of every quasi-identifier, and a keyed sample of the records.

They are the same for the same rows in any order, read by any engine from any kind of file. Nobody can compute them
without the secret of the run record.
"""

from __future__ import annotations

import hmac
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.threads import in_threads
from sfumato.releases.keyed_sample import KeyedSample
from sfumato.tables.coding.domains import Domain
from sfumato.tables.coding.keyed_hashes import RecordHashes, tallied_hashes

ENOUGH = 10.0  # bits: chance makes another table look like this one in less than one of a thousand cases


@dataclass(frozen=True)
class Fingerprints:
    """The marks of one table.

    columns: the digest of each quasi-identifier's values and their counts, by a digest of its name. information: the
    bits in each of them. sample: of the records.
    """

    columns: Mapping[str, str]
    information: Mapping[str, float]
    sample: KeyedSample

    def matching(self, columns: Mapping[str, str]) -> tuple[bool, bool]:
        """Compare with the digests of another table.

        Return whether they match in more than chance explains, and whether all columns that both have match.
        """
        both = [name for name in self.columns if name in columns]
        equal = [name for name in both if self.columns[name] == columns[name]]
        choices = math.comb(len(both), len(equal))  # of as many columns that might have matched by chance
        bits = sum(self.information[name] for name in equal) - math.log2(choices)
        return bits >= ENOUGH, len(equal) == len(both)


def fingerprints(
    secret: bytes,
    domains: Sequence[Domain],
    used: Sequence[NDArray[np.int64]],
    sample: Callable[[RecordHashes], KeyedSample],
) -> Fingerprints:
    """Return the fingerprints of a table. used: how often each code of each domain occurs. sample: takes the sample."""
    hashes = RecordHashes.of(secret, domains, used)
    names = [name_digest(secret, domain.name) for domain in domains]
    digests = in_threads(partial(_digest, secret, hashes, used), range(len(domains)))
    return Fingerprints(
        dict(zip(names, digests, strict=True)),
        {name: _information(counts) for name, counts in zip(names, used, strict=True)},
        sample(hashes),
    )


def name_digest(secret: bytes, name: str) -> str:
    """Return the digest of a column's name."""
    return hmac.digest(secret, name.encode(), "sha256").hex()


def _digest(secret: bytes, hashes: RecordHashes, used: Sequence[NDArray[np.int64]], column: int) -> str:
    occurring = np.flatnonzero(used[column])
    tally = tallied_hashes(secret, hashes.column(column)[occurring], used[column][occurring])
    return hmac.digest(secret, f"column {tally}".encode(), "sha256").hex()


def _information(counts: NDArray[np.int64]) -> float:
    """Return the bits in a column's values and their counts.

    If the records of two tables of this size are divided at random, both have these counts c with the probability of
    the product of all (2c choose c), divided by (2n choose n) of their sum n. (2c choose c) is almost exactly
    4^c / sqrt(pi (c + 1/4)).
    """

    def doubled(numbers: NDArray[np.int64]) -> float:
        return float(np.log2(np.pi * (numbers + 0.25)).sum()) / 2

    return doubled(counts[counts > 0]) - doubled(counts.sum(keepdims=True))
