"""One kernel that tests whether a class meets several requirements.

Requirements are data to the kernel: each is a kind and two bounds on the counters of the class. Where a bound is a
fraction, the kernel is slightly stricter than the audit, so that rounding never makes the audit refuse a class that a
method accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import inlined_kernel, inner_kernel, kernel
from sfumato.requirements.requirement import Hierarchy, Requirements

EXACT = 1e-12  # the audit's allowance for rounding
STRICT = 9e-13  # the kernel's allowance for rounding
BELOW = 1 - EXACT  # for "strictly below a product": in floating point, 1.1 * 10 is more than 11
EXACT_SHARE, STRICT_SHARE = 1e-9, 9e-10  # the two allowances for variances, as shares of the bound
LARGEST_SIZE = 1 << 62

SIZE, FREQUENCY, DISTINCT = 0, 1, 2  # whole numbers decide
ENTROPY, RECURSIVE, ALPHA, VARIANCE = 3, 4, 5, 6  # the counts of the values decide
CLOSENESS_EQUAL, CLOSENESS_ORDERED, CLOSENESS_HIERARCHICAL, BETA, BETA_ENHANCED, DELTA = 7, 8, 9, 10, 11, 12


class ValueTable(Protocol):
    """What the kernel needs to know about a sensitive attribute. Its values are 0..distinct-1."""

    @property
    def distinct(self) -> int: ...

    @property
    def numbers(self) -> NDArray[np.float64]: ...

    @property
    def hierarchy(self) -> Hierarchy | None: ...


class Conjunction(NamedTuple):
    """Requirements in the form that the kernel takes. Sensitive attributes are numbered 0..a-1.

    kind, attribute, whole: int64[r] and bound: float64[r], one entry for each requirement. distinct: int64[a].
    reference, numbers: float64[a, m], by attribute and value. nodes: int64[a, 3 s], for each attribute its values from
    leaf to leaf, then the first of each node of its taxonomy, then the last. weight: float64[a, s], by node.
    """

    kind: NDArray[np.int64]
    attribute: NDArray[np.int64]
    whole: NDArray[np.int64]
    bound: NDArray[np.float64]
    distinct: NDArray[np.int64]
    reference: NDArray[np.float64]
    numbers: NDArray[np.float64]
    nodes: NDArray[np.int64]
    weight: NDArray[np.float64]

    @property
    def attributes(self) -> int:
        return len(self.distinct)


def conjunction(
    requirements: Requirements, values: Sequence[ValueTable], references: Sequence[NDArray[np.float64]]
) -> Conjunction:
    """Return those of the requirements that the kernel knows.

    ``values`` and ``references`` follow the order of ``requirements.attributes``.
    """
    width = max((table.distinct for table in values), default=0)
    trees = [table.hierarchy for table in values]
    spans = max([width, *(len(tree.first) for tree in trees if tree is not None)])
    a = len(values)
    reference, numbers = np.zeros((a, width)), np.zeros((a, width))
    nodes, weight = np.zeros((a, 3, spans), np.int64), np.zeros((a, spans))
    for attribute, (table, tree) in enumerate(zip(values, trees, strict=True)):
        reference[attribute, : table.distinct] = references[attribute]
        numbers[attribute, : table.distinct] = table.numbers
        if tree is not None:
            for line, part in enumerate((tree.order, tree.first, tree.last)):
                nodes[attribute, line, : len(part)] = part
            weight[attribute, : len(tree.weight)] = tree.weight
    known = [(part, condition) for part in requirements.parts if (condition := part.condition()) is not None]
    names = requirements.attributes
    return Conjunction(
        kind=np.array([condition.kind for _, condition in known], np.int64),
        attribute=np.array([names.index(part.attribute) if part.attribute else -1 for part, _ in known], np.int64),
        whole=np.array([condition.whole for _, condition in known], np.int64),
        bound=np.array([condition.bound for _, condition in known], np.float64),
        distinct=np.array([table.distinct for table in values], np.int64),
        reference=reference,
        numbers=numbers,
        nodes=nodes.reshape(a, 3 * spans),
        weight=weight,
    )


@kernel
def class_holds(tests, size, count, known, largest, different):
    """Whether a class meets every requirement. tests: Conjunction; size: the number of records in the class.

    By sensitive attribute: count: int64[a, >= m], how often the class has each value; known: int64[a], the sum of the
    counts; largest: int64[a], the largest count; different: int64[a], how many counts are not 0.
    """
    # Whole numbers first: they are cheap, and usually decide.
    for t in range(len(tests.kind)):
        kind, a, whole = tests.kind[t], tests.attribute[t], tests.whole[t]
        if kind == SIZE:
            if size < whole:
                return False
        elif kind == FREQUENCY:
            if largest[a] > known[a] // whole:
                return False
        elif kind == DISTINCT and different[a] < whole:
            return False
    for t in range(len(tests.kind)):
        if tests.kind[t] > DISTINCT:
            a = tests.attribute[t]
            m = tests.distinct[a]
            if not distribution_holds(
                tests.kind[t],
                tests.whole[t],
                tests.bound[t],
                count[a, :m],
                known[a],
                tests.reference[a, :m],
                tests.numbers[a, :m],
                tests.nodes[a],
                tests.weight[a],
            ):
                return False
    return True


@inner_kernel
def distribution_holds(kind, rank, bound, count, known, reference, numbers, nodes, weight):
    """Whether the values of a class meet one requirement on their distribution.

    kind, rank, bound: the requirement. count: int64[m], how often the class has each value; known: the sum of the
    counts. reference, numbers: float64[m], by value. nodes: int64[3 s], weight: float64[s]: see Conjunction.
    """
    m = len(reference)
    if kind == ENTROPY:
        weighted = 0.0
        for v in range(m):
            if count[v] > 0:
                weighted += count[v] * np.log(count[v])
        entropy = np.log(known) - weighted / known if known > 0 else 0.0
        return entropy >= bound - STRICT
    if kind == RECURSIVE:
        if rank == 1:
            return True
        return recursive_holds(rank, bound, count, known)
    if kind == VARIANCE:
        mean = 0.0
        for v in range(m):
            mean += count[v] * numbers[v]
        mean /= max(known, 1)
        variance = 0.0
        for v in range(m):
            variance += count[v] * ((numbers[v] - mean) * (numbers[v] - mean))
        return variance / max(known, 1) >= bound * (1 - STRICT_SHARE)
    if known == 0:
        expected = 0
        for v in range(m):
            expected += reference[v] > 0
        return kind != DELTA or expected == 0
    if kind == CLOSENESS_HIERARCHICAL:
        up_to, s = np.empty(m + 1, np.float64), len(weight)
        up_to[0] = 0.0
        for leaf in range(m):
            v = nodes[leaf]
            up_to[leaf + 1] = up_to[leaf] + count[v] / known - reference[v]
        distance = 0.0
        for node in range(s):
            distance += weight[node] * abs(up_to[nodes[2 * s + node]] - up_to[nodes[s + node]])
        return distance <= bound + STRICT
    total, cumulated, margin, present = 0.0, 0.0, min(STRICT, bound / 2), 0
    for v in range(m):
        p, q = count[v] / known, reference[v]
        present += q > 0
        if kind == ALPHA:
            if p > bound + STRICT:
                return False
        elif kind == CLOSENESS_EQUAL:
            total += max(p - q, 0.0)
        elif kind == CLOSENESS_ORDERED:
            cumulated += p - q
            total += abs(cumulated) if q > 0 else 0.0
        elif q > 0 and kind == DELTA:
            if count[v] == 0 or abs(np.log(p / q)) >= bound - margin:
                return False
        elif q > 0 and p > q:
            limit = min(bound, -np.log(q)) if kind == BETA_ENHANCED else bound
            gain = p / q - 1
            if gain > STRICT and gain > limit + STRICT:
                return False
    if kind == CLOSENESS_ORDERED:
        total /= max(present - 1, 1)
    if kind == CLOSENESS_EQUAL or kind == CLOSENESS_ORDERED:  # noqa: PLR1714, SIM109 - a tuple takes longer to compile
        return total <= bound + STRICT
    return True


@inlined_kernel
def recursive_holds(rank, bound, count, known):
    """Whether the largest count is below ``bound`` times the sum of all but the rank - 1 largest counts."""
    largest, rest = largest_and_rest(rank, count, known)
    return len(count) > 0 and largest < bound * rest * BELOW


@inner_kernel
def largest_and_rest(rank, count, known):
    """Return the largest count, and the sum of all but the rank - 1 largest counts.

    count: int64[m]; known: the sum of the counts.
    """
    rest, largest, above, taken = known, 0, LARGEST_SIZE, 0
    while taken < rank - 1:  # take the counts one by one, the largest first
        highest, times = 0, 0
        for v in range(len(count)):
            if count[v] < above:
                times = 1 if count[v] > highest else times + (count[v] == highest)
                highest = max(highest, count[v])
        if highest == 0:
            break
        largest = max(largest, highest)
        times = min(times, rank - 1 - taken)
        rest -= times * highest
        taken, above = taken + times, highest
    return largest, rest
