"""What bounds stand on: the distinct records in a tree, what a box must hold to be allowed, and what it costs.

A class meets k-anonymity if it has k records. Of a requirement on a sensitive attribute only this is used: how many
different values a class has at least. Both hold of the box too, for it holds the class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.bounds.box_search import DiversityLimits, least_rooms
from sfumato.kernels.decorator import kernel
from sfumato.kernels.threads import in_threads, slices
from sfumato.losses.exact_costs import Costs, box_cost
from sfumato.methods.clustering.kd_tree import Tree, grow
from sfumato.methods.method import Records, SensitiveValues
from sfumato.requirements import (
    AlphaAnonymity,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Joint,
    RecursiveDiversity,
    Requirement,
    Requirements,
)
from sfumato.tables.coding.domains import Codes

SEARCHED = 1 << 5  # records that one thread searches at once
ROUND = 1 << 8  # records between which a search can be left


@dataclass(frozen=True)
class Rooms:
    """What a search found, by the records that were asked for; see ``least_rooms``."""

    room: NDArray[np.int64]
    box_room: NDArray[np.int64]
    low: Codes
    high: Codes


@dataclass(frozen=True)
class BoundProblem:
    """Everything is by place in the tree. ``k`` is what a class must have, also because of the values it must have."""

    tree: Tree
    k: int
    diversity: DiversityLimits
    costs: Costs

    @classmethod
    def of(cls, records: Records, requirements: Requirements) -> BoundProblem:
        tree = grow(records.codes, np.diff(records.starts), records.costs)
        needed = values_needed(requirements, records.sensitive)
        k = max(requirements.least_class, *needed.values(), 1)
        return cls(tree, k, _diversity(tree, records, needed), records.costs)

    @property
    def count(self) -> int:
        return len(self.tree.order)

    @property
    def attributes(self) -> int:
        return int(self.tree.codes.shape[1])

    def sum(self, prices: NDArray[np.int64]) -> int:
        """What all records pay together, by the prices of the distinct ones."""
        return int((prices * self.tree.weights).sum())

    def box_costs(self, low: Codes, high: Codes) -> NDArray[np.int64]:
        result: NDArray[np.int64] = costs_of_boxes(low, high, self.costs.layout, self.costs.units)
        return result

    def rooms(
        self,
        asked: NDArray[np.int64],
        prices: NDArray[np.int64],
        rank: NDArray[np.int64],
        goals: NDArray[np.int64],
        most: int,
    ) -> Rooms:
        """The least room of each of the places ``asked``, at most its goal. ``most``: parts of a search."""
        shape = (len(asked), self.attributes)
        low, high = np.empty(shape, self.tree.codes.dtype), np.empty(shape, self.tree.codes.dtype)
        found = (np.empty(len(asked), np.int64), np.empty(len(asked), np.int64), low, high)
        layout, units = self.costs.layout, self.costs.units

        def search(part: tuple[int, int]) -> None:
            here = slice(*part)
            room, box_room, box_low, box_high = (array[here] for array in found)
            least_rooms(
                self.tree, asked[here], prices, rank, self.k, goals[here], most, self.diversity, layout, units,
                (room, box_room, box_low, box_high),
            )  # fmt: skip

        in_threads(search, slices(len(asked), SEARCHED))
        return Rooms(*found)


def values_needed(requirements: Requirements, sensitive: Mapping[str, SensitiveValues]) -> dict[str, int]:
    """How many different values of each sensitive attribute a class has at least, where that is more than one."""
    needed: dict[str, int] = {}
    for part in requirements.parts:
        one = part.part if isinstance(part, Joint) else part
        if one.attribute is not None:
            least = _least_values(one, sensitive[one.attribute])
            if least > 1:
                needed[one.attribute] = max(least, needed.get(one.attribute, 0))
    return needed


def _least_values(part: Requirement, values: SensitiveValues) -> int:
    """The different values of a class that meets a requirement."""
    if isinstance(part, DistinctDiversity | RecursiveDiversity):
        return part.l
    if bool(np.any(values.codes == values.distinct)):
        return 1  # a class in which every value is missing meets the others
    if isinstance(part, FrequencyDiversity | EntropyDiversity):
        return part.l
    if isinstance(part, AlphaAnonymity):
        return math.ceil(1 / part.alpha - 1e-9)
    return 1


def _diversity(tree: Tree, records: Records, needed: Mapping[str, int]) -> DiversityLimits:
    """The sensitive values of each distinct record, each once."""
    count = len(tree.order)
    place = np.empty(count, np.int64)
    place[tree.order] = np.arange(count)
    of_row = np.repeat(place, np.diff(records.starts))
    pairs, owner, first = [np.empty((0, 2), np.int64)], [np.empty(0, np.int64)], 0
    for attribute, name in enumerate(needed):
        values = records.sensitive[name]
        codes = values.codes[records.rows].astype(np.int64)
        known = codes < values.distinct
        pairs.append(np.stack([of_row[known], codes[known] + first], axis=1))
        owner.append(np.full(values.distinct, attribute))
        first += values.distinct
    distinct = np.unique(np.concatenate(pairs), axis=0)
    starts = np.searchsorted(distinct[:, 0], np.arange(count + 1))
    numbers = np.array(list(needed.values()), np.int64)
    return DiversityLimits(numbers, starts, np.ascontiguousarray(distinct[:, 1]), np.concatenate(owner))


@kernel
def costs_of_boxes(low, high, layout, units):
    """The cost of each box, int64[b]. low, high: uint[b, d]; layout, units: see Costs."""
    result = np.empty(len(low), np.int64)
    bottom, top = np.empty(low.shape[1], np.int64), np.empty(low.shape[1], np.int64)
    for b in range(len(low)):
        for q in range(low.shape[1]):
            bottom[q], top[q] = low[b, q], high[b, q]
        result[b] = box_cost(bottom, top, layout, units)
    return result
