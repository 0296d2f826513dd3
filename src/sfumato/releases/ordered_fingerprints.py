"""The fingerprints of version 0.1, for tables in run records of that version.

The memory and disk engines made them of the values in the order of the rows, the Spark engine of the values and their
counts.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.threads import in_threads
from sfumato.releases.fingerprints import name_digest
from sfumato.tables.coding.domains import CategoricalDomain, Codes, Domain, NumericDomain

MANY = 1 << 16


def ordered_fingerprints(
    secret: bytes, batches: Iterable[Codes], used: Sequence[NDArray[np.int64]], domains: Sequence[Domain]
) -> dict[str, str]:
    """Return the digest of every quasi-identifier, row by row; equal only for equal values in the same order.

    used: how often each code of each domain occurs in the batches. A column with a single value does not distinguish
    tables and gets no digest, unless every column is like that.
    """
    varying = [q for q in range(len(domains)) if np.count_nonzero(used[q]) > 1] or range(len(domains))
    digests = [_OrderedDigest(secret, domains[q], np.flatnonzero(used[q]).tolist()) for q in varying]
    for codes in batches:
        in_threads(lambda index: digests[index].add(codes[:, varying[index]]), range(len(varying)))  # noqa: B023
    names = [name_digest(secret, domains[q].name) for q in varying]
    return {name: digest.hexdigest() for name, digest in zip(names, digests, strict=True)}


def content_fingerprints(secret: bytes, contents: Mapping[str, bytes]) -> dict[str, str]:
    """Return the digest of every column from a text of its values and their counts."""
    return {
        name_digest(secret, name): hmac.digest(secret, content, "sha256").hex() for name, content in contents.items()
    }


class _OrderedDigest:
    """The digest of one column. It does not depend on the taxonomy, the type or the other columns.

    Values are numbered in the order of their texts. A numeric column with more than MANY values keeps its order of
    numbers.
    """

    def __init__(self, secret: bytes, domain: Domain, used: list[int]) -> None:
        self._digest = hmac.new(secret, digestmod=hashlib.sha256)
        if isinstance(domain, NumericDomain) and len(used) > MANY:
            ordered = used
            self._digest.update(domain.numbers().tobytes())
        else:
            texts = dict(zip(used, _texts(domain, used), strict=True))
            # Null is distinguished from every text, including the empty one.
            ordered = sorted(used, key=lambda code: (texts[code] is None, texts[code] or ""))
            self._digest.update(json.dumps([texts[code] for code in ordered]).encode())
        self._rank = np.zeros(domain.size, np.min_scalar_type(len(used)))
        self._rank[ordered] = np.arange(len(used))

    def add(self, codes: NDArray[np.unsignedinteger]) -> None:
        self._digest.update(self._rank[codes].data)

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _texts(domain: Domain, codes: list[int]) -> list[str | None]:
    if isinstance(domain, CategoricalDomain):
        leaves = domain.taxonomy.leaves
        return [leaves[code] if code < len(leaves) else None for code in codes]
    assert isinstance(domain, NumericDomain)
    texts: list[str | None] = domain.texts(domain.values).to_pylist()
    return [texts[code] if code < len(texts) else None for code in codes]
