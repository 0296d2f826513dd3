"""Prices with penalties for triples: a bound above the relaxation, where a class is whole or not at all.

The relaxation of ``dual_prices`` may take halves of classes: of three records that are near each other, each pair may
form half a class. But a release puts three records into classes such that at most one of these holds two of them. More
generally, classes hold at most half of the records of a triple in pairs, rounded down: the subset-row inequalities of
Jepsen, Petersen, Spoorendonk and Pisinger (Operations Research 2008). Each has a penalty p_T >= 0, and the conditions
on prices become weaker:

    the sum of y over S <= n * cost(B) + the sum over triples T of p_T * (half of the records of T in S, rounded down)

for every class S of n records in a box B. Then a release costs at least the sum of all prices, less what the triples
can pay in all, p_T times half of the records of T, rounded down. A class of 2k records or more can be divided in two
that cost no more, so it is enough to ask this of classes of k to 2k - 1 records. That is true for k alone: where a
class needs different sensitive values too, its parts may not have them.

Prices and penalties are proven like prices alone: records are ranked, and each price is lowered until no class of the
record and others of a lower rank undercuts it (``methods.boxes.class_search``). The candidates come from the linear
programme of all classes that undercut earlier ones (``price_programme``), in which a penalty is a price that counts
against the sum. Triples are added where the programme chooses too many pairs of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.price_programme import PriceProgramme, RecordSets
from sfumato.bounds.problem import ROUND, SEARCHED, BoundProblem
from sfumato.kernels.constants import NONE
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices
from sfumato.methods.boxes.class_search import Triples, lower_prices

MOST_RECORDS = 5_000  # distinct records; the search for classes looks at all that are near
MAX_NODES = 5_000  # of one search
ITERATIONS = 2_000  # of the programme, between two proofs
WRITTEN = 3  # classes that a search adds for one record, at most
# Triples are added once a proof keeps KEPT of what was to be gained, and after MOST_PROOFS at the latest.
KEPT, MOST_PROOFS = 0.8, 30
CHOSEN = 1e-3  # how often a class is chosen at least, if it counts in the search for triples
EACH = 6  # triples that are added for one record at once, at most
# By how much the pairs of a triple exceed their number at least, if it is added. It is halved while fewer triples than
# one for SPARSE records exceed it.
FIRST_EXCESS, LEAST_EXCESS, SPARSE = 0.05, 0.002, 50


def takes_triples(problem: BoundProblem) -> bool:
    """Return whether the table is small enough, and nothing but k is asked for: parts of a class are then classes."""
    return problem.count <= MOST_RECORDS and not problem.limits_shares and len(problem.diversity.needed) == 0


@dataclass(frozen=True)
class PricesWithPenalties:
    """Proven prices, and what they prove less than their sum: what all triples pay together at most."""

    prices: NDArray[np.int64]
    given_back: int


@dataclass(frozen=True)
class TripleSearch:
    """How prices with penalties are raised and proven.

    free: bool[m], the records that have a price at all. The others: see ``PriceSearch``.
    """

    problem: BoundProblem
    highest: int
    free: NDArray[np.bool_]
    advance: Callable[[int], None]
    out_of_time: Callable[[], bool]

    def raised(self, prices: NDArray[np.int64], programme: PriceProgramme) -> Iterator[PricesWithPenalties]:
        """Yield better and better proven prices, without end. programme: that of the prices alone, almost solved."""
        problem, weights = self.problem, self.problem.tree.weights
        classes = ChosenClasses.of_sets(programme.sets, programme.numbers, problem)
        start, numbers = programme.prices, programme.numbers[programme.numbers > 0]
        best, triples, least_excess = PricesWithPenalties(prices, 0), np.empty((0, 3), np.int64), FIRST_EXCESS
        while True:
            added = crowded_triples(problem, classes, numbers, triples, least_excess)
            while len(added) < problem.count / SPARSE and least_excess > LEAST_EXCESS:
                least_excess /= 2
                added = crowded_triples(problem, classes, numbers, triples, least_excess)
            triples = np.concatenate([triples, added])
            most_pairs = weights[triples].sum(axis=1) // 2
            programme = PriceProgramme(
                np.append(weights, -most_pairs),
                np.append(start, np.zeros(problem.count + len(triples) - len(start))),
                np.zeros(problem.count + len(triples)),
                classes.sets(problem, triples),
                numbers,
            )
            for _ in range(MOST_PROOFS):
                highest = np.where(self.free, np.minimum(problem.stretched(best.prices), self.highest), 0.0)
                programme.allow(np.append(highest, highest[triples].max(axis=1, initial=0.0)))
                start = programme.optimum(ITERATIONS, self.out_of_time)
                tried, penalties = np.split(np.floor(start).astype(np.int64), [problem.count])
                given_back = int((penalties * most_pairs).sum())
                lowered, found = self.proven(tried, triples, penalties)
                before = problem.sum(best.prices) - best.given_back
                hoped, gained = problem.sum(tried) - given_back - before, problem.sum(lowered) - given_back - before
                if gained > 0:
                    best = PricesWithPenalties(lowered, given_back)
                new = classes.added(problem, found)
                classes = classes.with_classes(new)
                programme.add(new.sets(problem, triples))
                if gained > KEPT * hoped or self.out_of_time():
                    break
            numbers = programme.numbers
            yield best

    def proven(
        self, prices: NDArray[np.int64], triples: NDArray[np.int64], penalties: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Lower the prices until no class undercuts them; return them, and the classes that did.

        prices: int64[m]. triples: int64[t, 3]; penalties: int64[t], at least 0. Classes: int32[c, 2k - 1], see
        ``lower_prices``.
        """
        problem, k = self.problem, self.problem.k
        rank = np.empty(problem.count, np.int64)
        in_order = np.argsort(prices, kind="stable")
        rank[in_order] = np.arange(problem.count)
        targets = in_order[prices[in_order] > 0]  # classes of which no record pays anything undercut nothing
        self.advance(problem.count - len(targets))
        lowered, known = prices.copy(), triples_of(problem, triples, penalties)
        classes = np.empty((len(targets), WRITTEN, 2 * k - 1), np.int32)
        for begin, end in slices(len(targets), ROUND):
            # Records of the same round count each other at the candidate price, which is no lower than the proven one.
            lowered[targets[begin:end]] = self._lowered(targets[begin:end], lowered, rank, known, classes[begin:end])
            self.advance(end - begin)
        found = classes.reshape(-1, 2 * k - 1)
        return lowered, found[found[:, 0] != NONE]

    def _lowered(
        self,
        targets: NDArray[np.int64],
        prices: NDArray[np.int64],
        rank: NDArray[np.int64],
        triples: Triples,
        classes: NDArray[np.int32],
    ) -> NDArray[np.int64]:
        """Return the lowered prices of some records, and write classes that undercut them."""
        problem, max_nodes = self.problem, 0 if self.out_of_time() else MAX_NODES
        lowered, layout, units = np.empty(len(targets), np.int64), problem.costs.layout, problem.costs.units

        def lower(part: tuple[int, int]) -> None:
            some = slice(*part)
            lower_prices(
                problem.tree, targets[some], prices, rank, triples, problem.k, max_nodes, layout, units, lowered[some],
                classes[some],
            )  # fmt: skip

        in_threads(lower, slices(len(targets), SEARCHED))
        return lowered


def triples_of(problem: BoundProblem, triples: NDArray[np.int64], penalties: NDArray[np.int64]) -> Triples:
    """Return the triples, and those of each record."""
    order = np.argsort(triples.ravel(), kind="stable")
    starts = np.searchsorted(triples.ravel()[order], np.arange(problem.count + 1))
    return Triples(triples, penalties, starts, order // 3)


@dataclass(frozen=True)
class ChosenClasses:
    """Distinct classes, and what a record costs in each. members: int32[c, 2k - 1], ascending after NONE."""

    members: NDArray[np.int32]
    cost: NDArray[np.int64]

    @classmethod
    def of_sets(cls, sets: RecordSets, numbers: NDArray[np.float64], problem: BoundProblem) -> ChosenClasses:
        """Return the sets of k records that are chosen."""
        chosen = sets.chosen(numbers > 0)
        copies = np.rint(chosen.shares * problem.k).astype(np.int64)
        sizes = np.bincount(chosen.set_of, copies, len(chosen)).astype(np.int64)
        members = np.full((len(chosen), 2 * problem.k - 1), NONE, np.int32)
        members[np.arange(members.shape[1]) < sizes[:, None]] = np.repeat(chosen.members, copies)
        return cls(np.sort(members, axis=1), chosen.cost.astype(np.int64))

    def __len__(self) -> int:
        return len(self.members)

    def sets(self, problem: BoundProblem, triples: NDArray[np.int64]) -> RecordSets:
        """Return the classes as sets: each triple is one more record, with a share below 0."""
        none = triples_of(problem, triples, np.zeros(len(triples), np.int64))
        counts = np.zeros(len(self) + 1, np.int64)
        write_sets(self.members, problem.count, none, counts, np.empty(0, np.int32), np.empty(0, np.float32))
        starts = np.cumsum(counts)
        records, shares = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
        write_sets(self.members, problem.count, none, starts, records, shares)
        return RecordSets(starts, records, shares, self.cost.astype(np.float64))

    def added(self, problem: BoundProblem, found: NDArray[np.int32]) -> ChosenClasses:
        """Return the classes that are not among these yet."""
        both = np.concatenate([self.members, np.sort(found, axis=1)])
        first = np.unique(both, axis=0, return_index=True)[1]
        members = both[np.sort(first[first >= len(self)])]
        codes = problem.tree.codes[np.where(members == NONE, members.max(axis=1, initial=0)[:, None], members)]
        return ChosenClasses(members, problem.box_costs(codes.min(axis=1), codes.max(axis=1)))

    def with_classes(self, added: ChosenClasses) -> ChosenClasses:
        return ChosenClasses(np.concatenate([self.members, added.members]), np.append(self.cost, added.cost))


def crowded_triples(
    problem: BoundProblem,
    classes: ChosenClasses,
    numbers: NDArray[np.float64],
    known: NDArray[np.int64],
    least_excess: float,
) -> NDArray[np.int64]:
    """Return new triples of which the classes, by how often they are chosen, hold too many pairs: int64[t, 3]."""
    chosen = numbers > CHOSEN
    members = classes.members[chosen]
    times = numbers[chosen] / np.maximum((members != NONE).sum(axis=1), 1)
    by_record = np.argsort(members.ravel(), kind="stable")
    starts = np.searchsorted(members.ravel()[by_record], np.arange(problem.count + 1))
    found, excess = find_crowded(
        problem.tree.weights, members, times, starts, by_record // members.shape[1], least_excess
    )
    both = np.concatenate([known, found])
    first = np.unique(both, axis=0, return_index=True)[1]
    new = first[first >= len(known)] - len(known)
    kept, of_record = [], np.zeros(problem.count, np.int64)
    for number in new[np.argsort(-excess[new], kind="stable")]:
        if of_record[found[number]].max() < EACH:
            of_record[found[number]] += 1
            kept.append(number)
    result: NDArray[np.int64] = found[np.array(kept, np.int64)]
    return result


@kernel
def write_sets(members, count, triples, starts, records, shares):
    """Write the records of each class with their shares, and its triples with theirs; or count them, if no room is.

    members: int32[c, w]. count: of all records, after which triples are numbered. triples: Triples. starts:
    int64[c + 1]; the counts go to its entries from 1 on. records: int32; shares: float32.
    """
    counting = len(records) == 0
    in_triple = np.zeros(len(triples.penalty), np.int64)
    for c in range(len(members)):
        size, at = 0, starts[c] if not counting else np.int64(0)
        for t in range(members.shape[1]):
            size += members[c, t] != NONE
        for t in range(members.shape[1]):
            position = members[c, t]
            if position == NONE:
                continue
            for index in range(triples.starts[position], triples.starts[position + 1]):
                in_triple[triples.of_record[index]] += 1
            if t > 0 and members[c, t - 1] == position:
                if not counting:
                    shares[at - 1] += np.float32(1.0 / size)
                continue
            if not counting:
                records[at], shares[at] = position, np.float32(1.0 / size)
            at += 1
        for t in range(members.shape[1]):
            position = members[c, t]
            if position == NONE:
                continue
            for index in range(triples.starts[position], triples.starts[position + 1]):
                triple = triples.of_record[index]
                if in_triple[triple] >= 2:
                    if not counting:
                        records[at], shares[at] = count + triple, np.float32(-(in_triple[triple] // 2) / size)
                    at += 1
                in_triple[triple] = 0
        if counting:
            starts[c + 1] = at


@kernel
def find_crowded(weights, members, times, starts, class_of, least_excess):
    """Return triples of which classes hold more pairs than they can, and by how many: int64[t, 3], float64[t].

    members: int32[c, w], the classes, ascending after NONE. times: float64[c], how often each is chosen. starts:
    int64[m + 1] and class_of: the classes of each record, once for each copy.
    """
    found, excess = [], []
    m, width = len(weights), members.shape[1]
    together = np.zeros(m)  # how often each record is with the present one
    near = np.empty(m, np.int64)
    held = np.zeros(len(members), np.int64)
    for center in range(m):
        count = 0
        for at in range(starts[center], starts[center + 1]):
            c = class_of[at]
            if at > starts[center] and class_of[at - 1] == c:
                continue
            for t in range(width):
                other = members[c, t]
                if other not in (NONE, center):
                    if together[other] == 0.0:
                        near[count] = other
                        count += 1
                    together[other] += times[c]
        for a in range(count):
            for b in range(a):
                first, second = near[a], near[b]
                whole = weights[center] + weights[first] + weights[second]
                if whole % 2 == 0 or together[first] + together[second] <= least_excess:
                    continue
                pairs = 0.0
                for record in (center, first, second):
                    for at in range(starts[record], starts[record + 1]):
                        held[class_of[at]] += 1
                for record in (center, first, second):
                    for at in range(starts[record], starts[record + 1]):
                        c = class_of[at]
                        pairs += times[c] * (held[c] // 2)
                        held[c] = 0
                if pairs > whole // 2 + least_excess:
                    low, high = min(center, first, second), max(center, first, second)
                    found.append((low, center + first + second - low - high, high))
                    excess.append(pairs - whole // 2)
        for a in range(count):
            together[near[a]] = 0.0
    triples = np.empty((len(found), 3), np.int64)
    for t in range(len(found)):
        triples[t, 0], triples[t, 1], triples[t, 2] = found[t]
    return triples, np.array(excess)
