"""The problem that bounds are proven for: the distinct records in a tree, what a box must hold, and what it costs.

A class meets k-anonymity if it has k records. From a requirement on a sensitive attribute the bounds use the least
number of different values in a class, which carries over to its box, and for one attribute the largest share that a
value may have in a class. If that is 1/l, some k records of the class have at most k/l, rounded up, with the same value
(``ShareLimit``). Distinct records then differ in their quasi-identifiers or in this value: each has its own price.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.constants import INFINITE, NONE
from sfumato.kernels.threads import in_threads, slices
from sfumato.losses.exact_costs import Costs, box_costs
from sfumato.methods.boxes.box_search import least_slacks
from sfumato.methods.boxes.diversity_limits import DiversityLimits
from sfumato.methods.boxes.neighbourhood import dearest_of_nodes
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
ROUNDED = 1e-9  # of products with shares in floating point
# Prices are tried up to STRETCH times the proven ones, and SPARE times their mean: a programme knows only some sets.
STRETCH, SPARE = 1.5, 0.3


@dataclass(frozen=True)
class SlackResults:
    """The results of a search, one entry for each target; see ``least_slacks``."""

    slack: NDArray[np.int64]
    box_slack: NDArray[np.int64]
    low: Codes
    high: Codes


@dataclass(frozen=True)
class BoundProblem:
    """All arrays are by position in the tree. ``k``: the least class size, also from the values that a class needs.

    copies: int64[m], how many of k records may be equal to each of the distinct ones.
    """

    tree: KdTree
    k: int
    diversity: DiversityLimits
    costs: Costs
    copies: NDArray[np.int64]

    @classmethod
    def of(cls, records: Records, requirements: Requirements) -> BoundProblem:
        needed = values_needed(requirements, records.sensitive)
        k = max(requirements.least_class, *needed.values(), 1)
        record_of_row = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
        limit = share_limit(requirements, records, k)
        if limit is None:
            value_of_row, most = np.full(records.count, NONE, np.int64), int(INFINITE)
        else:
            values = records.sensitive[limit.attribute]
            codes = values.codes[records.rows].astype(np.int64)
            value_of_row, most = np.where(codes < values.distinct, codes, NONE), limit.most
        both = np.stack([record_of_row, value_of_row], axis=1)
        types, type_of_row, weights = np.unique(both, axis=0, return_inverse=True, return_counts=True)
        tree = build_kd_tree(records.codes[types[:, 0]], weights, records.costs)
        position = np.empty(len(types), np.int64)
        position[tree.order] = np.arange(len(types))
        diversity = _diversity(position[type_of_row.ravel()], records, needed, types[tree.order, 1], most)
        copies = np.minimum(tree.weights, np.where(diversity.value == NONE, k, min(most, k)))
        return cls(tree, k, diversity, records.costs, copies)

    @property
    def count(self) -> int:
        return len(self.tree.order)

    @property
    def attributes(self) -> int:
        return int(self.tree.codes.shape[1])

    @property
    def limits_shares(self) -> bool:
        """Return whether the records of a class with the same sensitive value are limited."""
        return self.diversity.shares > 0

    def sum(self, prices: NDArray[np.int64]) -> int:
        """Return what all records pay together. prices: int64[m], by position in the tree."""
        return int((prices * self.tree.weights).sum())

    def stretched(self, prices: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how high prices may be tried beside these proven ones."""
        spare = SPARE * self.sum(prices) / int(self.tree.weights.sum())
        return STRETCH * prices.astype(np.float64) + spare

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
        base: int = 0,
        nearby: NDArray[np.int64] | None = None,
    ) -> SlackResults:
        """Return the least slack of each of the positions ``targets``, at most its goal.

        max_parts: the number of parts after which the search for one target ends. base, nearby: see ``least_slacks``.
        """
        shape = (len(targets), self.attributes)
        low, high = np.empty(shape, self.tree.codes.dtype), np.empty(shape, self.tree.codes.dtype)
        results = (np.empty(len(targets), np.int64), np.empty(len(targets), np.int64), low, high)
        layout, units = self.costs.layout, self.costs.units
        nearby = np.zeros(self.count, np.int64) if nearby is None else nearby
        dearest = dearest_of_nodes(self.tree, prices, rank, int(rank[targets].max(initial=0)))

        def search(part: tuple[int, int]) -> None:
            batch = slice(*part)
            slack, box_slack, box_low, box_high = (array[batch] for array in results)
            least_slacks(
                self.tree, targets[batch], prices, base, rank, nearby, dearest, self.k, goals[batch], max_parts,
                self.diversity, layout, units, (slack, box_slack, box_low, box_high),
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
        return math.ceil(1 / requirement.alpha - ROUNDED)
    return 1


@dataclass(frozen=True)
class ShareLimit:
    """Of some k records of a class, at most ``most`` have the same value of ``attribute``, null aside."""

    attribute: str
    most: int


def share_limit(requirements: Requirements, records: Records, k: int) -> ShareLimit | None:
    """Return the strictest limit on equal values among k records that follows from a requirement, or None.

    Where persons are counted, one of them may have any number of records with the same value.
    """
    if records.persons is not None:
        return None
    found: list[tuple[int, float, str]] = []
    for part in requirements.parts:
        requirement = part.part if isinstance(part, Joint) else part
        if isinstance(requirement, FrequencyDiversity):
            most = -(-k // requirement.l)
        elif isinstance(requirement, AlphaAnonymity):
            most = math.ceil(k * requirement.alpha - ROUNDED)
        else:
            continue
        values = records.sensitive[requirement.attribute]
        counts = np.bincount(values.codes[records.rows], minlength=values.distinct + 1)[: values.distinct]
        if most < k:
            found.append((most, -counts.max(initial=0) / max(int(counts.sum()), 1), requirement.attribute))
    return ShareLimit(min(found)[2], min(found)[0]) if found else None


def _diversity(
    position_of_row: NDArray[np.int64],
    records: Records,
    needed: Mapping[str, int],
    value: NDArray[np.int64],
    most: int,
) -> DiversityLimits:
    """Return the values needed, those of each distinct record, each once, and the limit of equal ones.

    value: int64[m], the value with a limit by position.
    """
    count = len(value)
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
    return DiversityLimits(
        numbers,
        starts,
        np.ascontiguousarray(distinct[:, 1]),
        np.concatenate(owner),
        most,
        np.ascontiguousarray(value),
        int(value.max(initial=NONE)) + 1,
    )
