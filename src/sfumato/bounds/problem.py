"""The problem that bounds are proven for: the distinct records in a tree, what a box must hold, and what it costs.

A class meets k-anonymity if it has k records. From a requirement on a sensitive attribute the bounds use only the
least number of different values in a class. Both conditions carry over from a class to its box, which holds the class.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.threads import in_threads, slices
from sfumato.losses.exact_costs import Costs, box_costs
from sfumato.methods.boxes.box_search import least_slacks
from sfumato.methods.boxes.diversity_limits import DiversityLimits
from sfumato.methods.clustering.kd_tree import KdTree, build_kd_tree
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
ROUND = 1 << 8  # records after which a search can be stopped


@dataclass(frozen=True)
class SlackResults:
    """The results of a search, one entry for each target; see ``least_slacks``."""

    slack: NDArray[np.int64]
    box_slack: NDArray[np.int64]
    low: Codes
    high: Codes


@dataclass(frozen=True)
class BoundProblem:
    """All arrays are by position in the tree. ``k``: the least class size, also from the values that a class needs."""

    tree: KdTree
    k: int
    diversity: DiversityLimits
    costs: Costs

    @classmethod
    def of(cls, records: Records, requirements: Requirements) -> BoundProblem:
        tree = build_kd_tree(records.codes, np.diff(records.starts), records.costs)
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
        """Return what all records pay together. prices: int64[m], by position in the tree."""
        return int((prices * self.tree.weights).sum())

    def count_above(self, prices: NDArray[np.int64], price: int) -> int:
        """Return how many records pay more than ``price``."""
        return int(self.tree.weights[prices > price].sum())

    def largest_excess(self, prices: NDArray[np.int64], price: int, most: int) -> int:
        """Return what up to ``most`` records, those that gain most, would save together by paying ``price`` instead."""
        dearer = np.flatnonzero(prices > price)
        excess, weights = prices[dearer] - price, self.tree.weights[dearer]
        order = np.argsort(-excess, kind="stable")
        before = np.cumsum(weights[order]) - weights[order]
        return int((np.clip(most - before, 0, weights[order]) * excess[order]).sum())

    def box_costs(self, low: Codes, high: Codes) -> NDArray[np.int64]:
        result: NDArray[np.int64] = box_costs(low, high, self.costs.layout, self.costs.units)
        return result

    def least_slacks(
        self,
        targets: NDArray[np.int64],
        prices: NDArray[np.int64],
        rank: NDArray[np.int64],
        goals: NDArray[np.int64],
        max_parts: int,
    ) -> SlackResults:
        """Return the least slack of each of the positions ``targets``, at most its goal.

        max_parts: the number of parts after which the search for one target ends.
        """
        shape = (len(targets), self.attributes)
        low, high = np.empty(shape, self.tree.codes.dtype), np.empty(shape, self.tree.codes.dtype)
        results = (np.empty(len(targets), np.int64), np.empty(len(targets), np.int64), low, high)
        layout, units = self.costs.layout, self.costs.units

        def search(part: tuple[int, int]) -> None:
            batch = slice(*part)
            slack, box_slack, box_low, box_high = (array[batch] for array in results)
            least_slacks(
                self.tree, targets[batch], prices, rank, self.k, goals[batch], max_parts, self.diversity,
                layout, units, (slack, box_slack, box_low, box_high),
            )  # fmt: skip

        in_threads(search, slices(len(targets), SEARCHED))
        return SlackResults(*results)


def values_needed(requirements: Requirements, sensitive: Mapping[str, SensitiveValues]) -> dict[str, int]:
    """Return the least number of different values of each sensitive attribute in a class, where that is above one."""
    needed: dict[str, int] = {}
    for part in requirements.parts:
        requirement = part.part if isinstance(part, Joint) else part
        if requirement.attribute is not None:
            least = _least_values(requirement, sensitive[requirement.attribute])
            if least > 1:
                needed[requirement.attribute] = max(least, needed.get(requirement.attribute, 0))
    return needed


def _least_values(requirement: Requirement, values: SensitiveValues) -> int:
    """Return the least number of different values in a class that meets a requirement."""
    if isinstance(requirement, DistinctDiversity | RecursiveDiversity):
        return requirement.l
    if bool(np.any(values.codes == values.distinct)):
        return 1  # the other kinds hold for a class in which every value is missing
    if isinstance(requirement, EntropyDiversity):
        return requirement.least_values
    if isinstance(requirement, FrequencyDiversity):
        return requirement.l
    if isinstance(requirement, AlphaAnonymity):
        return math.ceil(1 / requirement.alpha - 1e-9)
    return 1


def _diversity(tree: KdTree, records: Records, needed: Mapping[str, int]) -> DiversityLimits:
    """Return the values needed, and the sensitive values of each distinct record, each once."""
    count = len(tree.order)
    position = np.empty(count, np.int64)
    position[tree.order] = np.arange(count)
    position_of_row = np.repeat(position, np.diff(records.starts))
    pairs, owner, first = [np.empty((0, 2), np.int64)], [np.empty(0, np.int64)], 0
    for attribute, name in enumerate(needed):
        values = records.sensitive[name]
        codes = values.codes[records.rows].astype(np.int64)
        known = codes < values.distinct
        pairs.append(np.stack([position_of_row[known], codes[known] + first], axis=1))
        owner.append(np.full(values.distinct, attribute))
        first += values.distinct
    distinct = np.unique(np.concatenate(pairs), axis=0)
    starts = np.searchsorted(distinct[:, 0], np.arange(count + 1))
    numbers = np.array(list(needed.values()), np.int64)
    return DiversityLimits(numbers, starts, np.ascontiguousarray(distinct[:, 1]), np.concatenate(owner))
