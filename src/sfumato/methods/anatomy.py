"""Anatomy (Xiao and Tao 2006): groups of l records with l different sensitive values, released as two tables.

While at least l sensitive values have records left, a group takes one record at random of each of the l most frequent
ones. What remains is fewer than l records, each of another value; each goes to a group that lacks its value. An
eligible table never fails: taking from the most frequent values keeps every value at or below 1/l of what remains.

The quasi-identifiers are released as they are, beside the number of the group; the sensitive values as counts by group.
So Anatomy hides which value a person has, and does not hide who is in the table.

Groups are drawn with secret entropy unless a seed is given: whoever could draw them again would know whose value is
whose. The certificate shows a seed, so the values themselves are drawn from as well: to draw again takes all of them.
Time O(N log m) for m sensitive values.

Differs from the paper: a record without a sensitive value joins a group at random, and is counted as such.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator

import numpy as np

from sfumato.errors import UsageError
from sfumato.kernels.decorator import kernel
from sfumato.kernels.heap import pop, push
from sfumato.methods.method import ClassBatch, Records, SensitiveValues
from sfumato.progress import Progress
from sfumato.requirements import FrequencyDiversity, KAnonymity, Requirements

GROUP = "group"
COUNT = "count"


class Anatomy:
    """Two tables: exact quasi-identifiers with a group, and the sensitive values of each group."""

    name = "anatomy"
    paper = "Xiao, Tao: Anatomy: simple and effective privacy preservation, VLDB 2006"
    summary = "exact quasi-identifiers and a group in one table, the sensitive values of each group in another"
    use = "when exact counts matter and it may be known who is in the table; with -l, without k"
    separates = True

    def check(self, requirements: Requirements) -> None:
        others = [part.kind for part in requirements.parts if not isinstance(part, FrequencyDiversity | KAnonymity)]
        if others or requirements.joint:
            raise UsageError(
                "anatomy sees to frequency l-diversity alone, not to "
                f"{'joint requirements' if requirements.joint else ', '.join(others)}. "
                "Choose another method, or ask for frequency."
            )
        if requirements.person is not None:
            raise UsageError("anatomy counts records, not persons. Choose another method, or remove the person key.")
        if requirements.least_class > 1:
            raise UsageError(
                "anatomy releases the quasi-identifiers as they are, so it cannot hide who a record is: k must be 1. "
                "Choose another method, or remove k."
            )
        if len(requirements.attributes) != 1:
            raise UsageError(
                "anatomy needs frequency l-diversity of exactly one sensitive column. Ask for it with -l, or choose "
                "another method."
            )

    def meets(self, requirements: Requirements) -> bool:
        return True

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        values = records.sensitive[requirements.attributes[0]]
        asked = max(part.l for part in requirements.parts if isinstance(part, FrequencyDiversity))
        least = min(asked, records.count + 1)  # any l is met where no record has a value
        generator = np.random.Generator(np.random.PCG64(_entropy(records, values)))
        order = generator.permutation(records.count)
        rows = records.rows[order]
        groups = form_groups(values.codes[rows], values.distinct, least, generator.random(records.count))
        line = np.argsort(groups, kind="stable")
        sizes = np.bincount(groups)
        starts = np.append(0, np.cumsum(sizes))
        record = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
        codes = np.take(records.codes, record[order[line]], axis=0)
        low, high = np.minimum.reduceat(codes, starts[:-1]), np.maximum.reduceat(codes, starts[:-1])
        progress.advance(records.count)
        yield ClassBatch(rows[line], starts, low, high)


def _entropy(records: Records, values: SensitiveValues) -> int:
    """What the groups are drawn with; with a seed, a function of the seed and of every record's value."""
    if records.seed is None:
        return secrets.randbits(128)
    digest = hashlib.sha256(f"{records.seed} ".encode())
    digest.update(values.codes[records.rows].astype("<u4").tobytes())
    return int.from_bytes(digest.digest())


@kernel
def form_groups(value, values, l, draws):
    """The group of each record, from 0: int64[n].

    value: uint32[n], in random order, ``values`` for null. draws: float64[n], random numbers in [0, 1).
    """
    n = len(value)
    count = np.zeros(values + 1, np.int64)
    for i in range(n):
        count[value[i]] += 1
    # Records by value, in their random order.
    start = np.zeros(values + 2, np.int64)
    for v in range(values + 1):
        start[v + 1] = start[v] + count[v]
    bucket, filled = np.zeros(n, np.int64), start.copy()
    for i in range(n):
        bucket[filled[value[i]]] = i
        filled[value[i]] += 1
    group = np.full(n, -1, np.int64)
    # The most frequent value first: the lowest key of (n - count) * values + value.
    heap, left, known = np.zeros(values + 2, np.int64), count.copy(), n - count[values]
    for v in range(values):
        if count[v] > 0:
            push(heap, (n - count[v]) * values + v)
    taken = np.zeros(max(l, 1), np.int64)
    groups = 0
    while heap[0] >= l and known > 0:
        for i in range(l):
            taken[i] = heap[1] % values
            pop(heap)
        for i in range(l):
            v = taken[i]
            left[v] -= 1
            group[bucket[start[v] + left[v]]] = groups
            if left[v] > 0:
                push(heap, (n - left[v]) * values + v)
        known -= l
        groups += 1
    if groups == 0:  # no record has a value
        group[:] = 0
        return group
    holder = np.full(groups, -1, np.int64)  # the value whose records were put into groups last
    for v in range(values + 1):
        if left[v] == 0:
            continue
        if v < values:
            for place in range(start[v], start[v + 1]):
                if group[bucket[place]] >= 0:
                    holder[group[bucket[place]]] = v
        for place in range(start[v], start[v] + left[v]):
            i = bucket[place]
            at = np.int64(draws[i] * groups)
            while v < values and holder[at] == v:
                at = (at + 1) % groups
            group[i] = at
            if v < values:
                holder[at] = v
    return group
