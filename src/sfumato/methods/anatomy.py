"""Anatomy (Xiao and Tao 2006): groups of l records with l different sensitive values, released as two tables.

While at least l sensitive values have records left, a group takes one random record of each of the l most frequent
ones. Fewer than l records of different values remain; each goes to a group that lacks its value. An eligible table
never fails: taking from the most frequent values keeps every value at or below 1/l of the remaining records.

The quasi-identifiers are released unchanged with the number of the group, and the sensitive values as counts by group.
So Anatomy hides which value a person has, and does not hide who is in the table.

Groups are drawn with secret entropy unless a seed is given: anybody who could draw them again would know the value of
every record. The certificate shows a seed, so the draw also depends on all the values: repeating it takes all of them.
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
    """Release two tables: exact quasi-identifiers with a group, and the sensitive values of each group."""

    name = "anatomy"
    paper = "Xiao, Tao: Anatomy: simple and effective privacy preservation, VLDB 2006"
    summary = "exact quasi-identifiers and a group in one table, the sensitive values of each group in another"
    use = "when exact counts matter and membership in the table is not secret; with -l, without k"
    separates = True

    def check(self, requirements: Requirements) -> None:
        others = [part.kind for part in requirements.parts if not isinstance(part, FrequencyDiversity | KAnonymity)]
        if others or requirements.joint:
            raise UsageError(
                "anatomy supports only frequency l-diversity, not "
                f"{'joint requirements' if requirements.joint else ', '.join(others)}. "
                "Choose another method, or require frequency."
            )
        if requirements.person is not None:
            raise UsageError("anatomy counts records, not persons. Choose another method, or remove the person key.")
        if requirements.least_class > 1:
            raise UsageError(
                "anatomy releases the quasi-identifiers unchanged, so it cannot hide whose record it is: k must be 1. "
                "Choose another method, or remove k."
            )
        if len(requirements.attributes) != 1:
            raise UsageError(
                "anatomy needs frequency l-diversity of exactly one sensitive column. Add -l, or choose another method."
            )

    def meets(self, requirements: Requirements) -> bool:
        return True

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        values = records.sensitive[requirements.attributes[0]]
        strictest = max(part.l for part in requirements.parts if isinstance(part, FrequencyDiversity))
        least = min(strictest, records.count + 1)  # where no record has a value, any l is met
        generator = np.random.Generator(np.random.PCG64(_entropy(records, values)))
        order = generator.permutation(records.count)
        rows = records.rows[order]
        groups = form_groups(values.codes[rows], values.distinct, least, generator.random(records.count))
        by_group = np.argsort(groups, kind="stable")
        sizes = np.bincount(groups)
        starts = np.append(0, np.cumsum(sizes))
        record = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
        codes = np.take(records.codes, record[order[by_group]], axis=0)
        low, high = np.minimum.reduceat(codes, starts[:-1]), np.maximum.reduceat(codes, starts[:-1])
        progress.advance(records.count)
        yield ClassBatch(rows[by_group], starts, low, high)


def _entropy(records: Records, values: SensitiveValues) -> int:
    """Return the entropy to draw the groups with; with a seed, a function of the seed and of every record's value."""
    if records.seed is None:
        return secrets.randbits(128)
    digest = hashlib.sha256(f"{records.seed} ".encode())
    digest.update(values.codes[records.rows].astype("<u4").tobytes())
    return int.from_bytes(digest.digest())


@kernel
def form_groups(value, values, l, draws):
    """Return the group of each record, from 0: int64[n].

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
    holder = np.full(groups, -1, np.int64)  # by group, the value of the records that were put there last
    for v in range(values + 1):
        if left[v] == 0:
            continue
        if v < values:
            for position in range(start[v], start[v + 1]):
                if group[bucket[position]] >= 0:
                    holder[group[bucket[position]]] = v
        for position in range(start[v], start[v] + left[v]):
            i = bucket[position]
            target = np.int64(draws[i] * groups)
            while v < values and holder[target] == v:
                target = (target + 1) % groups
            group[i] = target
            if v < values:
                holder[target] = v
    return group
