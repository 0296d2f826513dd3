"""The boxes that searches met, and which of their records limit prices most.

Prices are proven by the search over all boxes (``dual_prices``). The candidates are found here, against a pool of
boxes: the k dearest records of each, as a set of the linear programme of prices (``price_programme``). When prices
change, others become the k dearest, and the sets that are too dear then join the programme.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.price_programme import PriceProgramme, RecordSets
from sfumato.bounds.problem import BoundProblem
from sfumato.kernels.constants import NONE, STACK_SIZE
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import even_parts, in_threads
from sfumato.methods.boxes.largest_prices import LargestPrices, add_price, make_room
from sfumato.methods.clustering.kd_tree import overlap
from sfumato.tables.coding.domains import Codes

BROKEN = 1e-3  # a set joins the programme if its prices exceed its cost by this share


@dataclass(frozen=True)
class BoxPool:
    """Distinct boxes, their costs, and the tree positions of their records: members[starts[b]:starts[b + 1]].

    The members of a box are in no order: the search for the dearest puts those in front that it finds.
    """

    low: Codes
    high: Codes
    cost: NDArray[np.int64]
    starts: NDArray[np.int64]
    members: NDArray[np.int32]

    @classmethod
    def of(cls, problem: BoundProblem, low: Codes, high: Codes) -> BoxPool:
        none = problem.tree.codes[:0]
        empty = cls(none, none, np.empty(0, np.int64), np.zeros(1, np.int64), np.empty(0, np.int32))
        return empty.with_boxes(problem, low, high)

    def __len__(self) -> int:
        return len(self.cost)

    def with_boxes(self, problem: BoundProblem, low: Codes, high: Codes) -> BoxPool:
        """Return a pool with these boxes too; those that it has already come first, as they are."""
        low, high = np.concatenate([self.low, low]), np.concatenate([self.high, high])
        first = np.unique(np.concatenate([low, high], axis=1), axis=0, return_index=True)[1]
        added = first[first >= len(self)]
        more_low, more_high = low[added], high[added]
        counts = np.zeros(len(added) + 1, np.int64)
        find_members(problem.tree, more_low, more_high, counts, np.empty(0, np.int32))
        starts = np.cumsum(counts)
        members = np.empty(int(starts[-1]), np.int32)
        find_members(problem.tree, more_low, more_high, starts, members)
        return BoxPool(
            np.concatenate([self.low, more_low]),
            np.concatenate([self.high, more_high]),
            np.append(self.cost, problem.box_costs(more_low, more_high)),
            np.append(self.starts, self.starts[-1] + starts[1:]),
            np.append(self.members, members),
        )

    @cached_property
    def parts(self) -> list[tuple[int, int]]:
        """Return ranges of boxes with about as many members each."""
        return even_parts(self.starts)

    def dearest(self, problem: BoundProblem, prices: NDArray[np.float64]) -> DearestRecords:
        """Find the k largest prices in every box. prices: float64[m]."""
        k, weights, most, values = problem.k, problem.tree.weights, problem.diversity.most, problem.diversity.value
        sizes, means = np.empty(len(self), np.int64), np.empty(len(self))
        copies = np.empty((len(self), k), np.int32)

        def find(part: tuple[int, int]) -> None:
            find_dearest(*part, prices, self.starts, self.members, weights, k, most, values, sizes, copies, means)

        in_threads(find, self.parts)
        return DearestRecords(self, sizes, copies, means)


@dataclass(frozen=True)
class DearestRecords:
    """The k largest prices in every box of a pool, and their mean.

    The first sizes[b] members of a box have them, the dearest first, until the pool looks for the dearest again.
    sizes: int64[b]. copies: int32[b, k], how many records each of these members stands for. means: float64[b].
    """

    pool: BoxPool
    sizes: NDArray[np.int64]
    copies: NDArray[np.int32]
    means: NDArray[np.float64]

    @property
    def excess(self) -> NDArray[np.float64]:
        """Return by how much the mean exceeds the cost of the box: float64[b]."""
        return self.means - self.pool.cost

    def sets(self, boxes: NDArray[np.int64]) -> RecordSets:
        """Return these records of some boxes as sets."""
        pool, sizes, k = self.pool, self.sizes[boxes], self.copies.shape[1]
        starts = np.append(0, np.cumsum(sizes))
        held = np.repeat(pool.starts[boxes] - starts[:-1], sizes) + np.arange(starts[-1])
        shares = (self.copies[boxes][np.arange(k) < sizes[:, None]] / k).astype(np.float32)
        return RecordSets(starts, pool.members[held], shares, pool.cost[boxes].astype(np.float64))


def programme_of(
    problem: BoundProblem, pool: BoxPool, start: NDArray[np.float64], free: NDArray[np.bool_], highest: float
) -> PriceProgramme:
    """Return the programme of the k dearest records of every box.

    free: bool[m], the records that have a price at all; the others are in boxes that cost nothing. highest: the largest
    price allowed.
    """
    sets = pool.dearest(problem, start).sets(np.arange(len(pool)))
    return PriceProgramme(problem.tree.weights, start, np.where(free, highest, 0.0), sets)


def pool_optimum(
    problem: BoundProblem, pool: BoxPool, programme: PriceProgramme, steps: int, out_of_time: Callable[[], bool]
) -> NDArray[np.float64]:
    """Return prices with as large a sum as some iterations reach; the boxes of the pool can undercut them by little."""
    programme.forget_idle()
    done = 0
    while True:
        prices, count = programme.raised(steps, out_of_time)
        done += count
        dearest = pool.dearest(problem, prices)
        programme.add(dearest.sets(np.flatnonzero(dearest.excess > BROKEN * pool.cost)))
        if done >= steps or out_of_time():
            return prices


@kernel
def find_members(tree, box_low, box_high, starts, members):
    """Write the tree positions in each box into ``members`` from its start on; if ``members`` is empty, count them.

    tree: KdTree. box_low, box_high: uint[b, d]. starts: int64[b + 1]; the counts go to its entries from 1 on.
    """
    counting = len(members) == 0
    waiting = np.empty(STACK_SIZE, np.int64)
    for b in range(len(box_low)):
        count, depth = 0, 1
        waiting[0] = 0
        while depth > 0:
            depth -= 1
            node = waiting[depth]
            if not overlap(tree.low, tree.high, node, box_low, box_high, b):
                continue
            if tree.spans[node, 2] != NONE:
                waiting[depth], waiting[depth + 1] = tree.spans[node, 2], node + 1
                depth += 2
                continue
            for position in range(tree.spans[node, 0], tree.spans[node, 1]):
                if overlap(tree.codes, tree.codes, position, box_low, box_high, b):
                    if not counting:
                        members[starts[b] + count] = position
                    count += 1
        if counting:
            starts[b + 1] = count


@kernel
def find_dearest(begin, end, prices, starts, members, weights, k, most, values, sizes, copies, means):
    """Find the k largest prices in some boxes, and put the members that have them in front, in descending order.

    They are likely to be the dearest of the next prices too: what comes later is then compared once, and not inserted.
    prices: float64[m]. starts, members: see BoxPool. sizes, copies, means: see DearestRecords.
    """
    largest = LargestPrices(
        np.empty(k + 1),
        np.empty(k + 1, np.int64),
        np.empty(k + 1, np.int64),
        np.empty(k + 1, np.int64),
        np.empty(k + 1, np.int64),
    )
    found, in_front = np.empty(k, np.int32), np.empty(k, np.bool_)
    for b in range(begin, end):
        size, held, total = 0, np.int64(0), 0.0
        for at in range(starts[b], starts[b + 1]):
            position = members[at]
            price, count, value = prices[position], weights[position], values[position]
            if value != NONE:
                count, size, held, total = make_room(price, count, value, most, k, size, held, total, largest)
            size, held, total = add_price(price, count, value, at, k, size, held, total, largest)
        sizes[b], means[b], first = size, 0.0, starts[b]
        in_front[:size] = False
        for t in range(size):
            at = largest.record[t]
            found[t], copies[b, t] = members[at], largest.copies[t]
            means[b] += largest.copies[t] * largest.price[t] / k
            if at < first + size:
                in_front[at - first] = True
        # Members that make room in front take the places of those that come to it.
        making_room = 0
        for t in range(size):
            if largest.record[t] >= first + size:
                while in_front[making_room]:
                    making_room += 1
                members[largest.record[t]] = members[first + making_room]
                making_room += 1
        for t in range(size):
            members[first + t] = found[t]
