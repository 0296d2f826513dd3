"""Choices of one level for each attribute, whose cells may become classes (see ``cell_peeling``).

An attribute has the levels of its taxonomy, or ever wider bands of numbers, from single values up to the whole domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.exact_costs import Costs, attribute_costs
from sfumato.methods.trees.split_tests import branches_of
from sfumato.tables.coding.domains import Domain

CHOICES, MOST_CHOICES = 2048, 1 << 19  # the most choices of levels that are tried, and that are considered
# The cells of a choice have on average at least 2 ** SMALLEST of the records that a class needs, if attributes were
# independent. The more there are, the less they are, and the larger cells really are.
SMALLEST, SMALLEST_OF_DRAWN = -6, -14
DRAWS, SPREAD = 1024, 2.0  # how often weights of attributes are drawn, and how far, in powers of two
PRICES, CHEAPEST_PRICE = 48, 12  # prices of entropy that are tried, and the least of them, in halvings of the dearest
HALVINGS = 6  # of the range of a number, down to its narrowest band


class Levels(NamedTuple):
    """The levels of all attributes; level 0 has the single values.

    start: int64[d, most], where the codes of each level of an attribute begin in ``group`` and ``cost``. depth:
    int64[d], the number of levels. group, cost: int64[...], for each code the first code of its group, and the cost of
    the group.
    """

    start: NDArray[np.int64]
    depth: NDArray[np.int64]
    group: NDArray[np.int64]
    cost: NDArray[np.int64]


def levels_of(domains: Sequence[Domain], costs: Costs) -> Levels:
    """Return the levels of all attributes."""
    levels_by_attribute = [_groups(domain) for domain in domains]
    start = np.zeros((len(domains), max(map(len, levels_by_attribute))), np.int64)
    groups, prices, offset = [], [], 0
    for q, levels in enumerate(levels_by_attribute):
        for level, (first, last) in enumerate(levels):
            start[q, level] = offset
            groups.append(first)
            prices.append(attribute_costs(costs.layout, costs.units, q, first, last))
            offset += len(first)
    depth = np.array([len(levels) for levels in levels_by_attribute])
    return Levels(start, depth, np.concatenate(groups), np.concatenate(prices))


def _groups(domain: Domain) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the first and last code of each code's group by level, each level with fewer groups than the one below."""
    codes, bounds = np.arange(domain.size), []
    if domain.tree is None:
        bounds.append((codes, codes))
        coordinates = domain.coordinates()[: domain.size - domain.has_null]
        for halvings in range(HALVINGS, 0, -1):
            band = np.append(
                np.minimum(np.floor(coordinates * 2**halvings), 2**halvings - 1), [np.inf] * domain.has_null
            )
            bounds.append((np.searchsorted(band, band), np.searchsorted(band, band, side="right") - 1))
    bounds += [(level[:, 0], level[:, 1]) for level in np.moveaxis(branches_of(domain), 1, 0)[::-1]]
    bounds.append((np.zeros_like(codes), np.full_like(codes, domain.size - 1)))
    levels: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    fewest = domain.size + 1
    for first, last in bounds:
        groups = len(np.unique(first))
        if groups < fewest:
            levels.append((first.astype(np.int64), last.astype(np.int64)))
            fewest = groups
    return levels


def choices_of(
    codes: NDArray[np.int64], weights: NDArray[np.int64], levels: Levels, least: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return choices of levels, the cheapest on average first, and the least and the largest cost of a cell of each.

    choices: int64[c, d, 2]: attributes, the most expensive first, and the level of each. If there are too many, we take
    those whose cells may have about ``least`` records, and the cheapest of each size: finer cells have too few records,
    and coarser ones cost more than necessary.
    """
    total = int(weights.sum())
    kept, figures_by_attribute = [], []
    for q, depth in enumerate(levels.depth):
        kept_levels, figures, fewest = [], [], len(codes) + 1
        for level, start in enumerate(levels.start[q, :depth]):
            cost = levels.cost[start + codes[:, q]]
            _, group = np.unique(levels.group[start + codes[:, q]], return_inverse=True)
            share = np.bincount(group, weights) / total
            if len(share) < fewest:
                kept_levels.append(level)
                entropy = -float(np.sum(share * np.log2(share)))
                figures.append((float(cost @ weights) / total, entropy, int(cost.min()), int(cost.max())))
                fewest = len(share)
        kept.append(np.array(kept_levels, np.int64))
        figures_by_attribute.append(np.array(figures))
    if np.prod([float(len(kept_levels)) for kept_levels in kept]) > MOST_CHOICES:
        choice_indices, smallest = _drawn(figures_by_attribute), SMALLEST_OF_DRAWN
    else:
        choice_indices, smallest = _all_of([len(kept_levels) for kept_levels in kept]), SMALLEST
    figures_of = [figures[index] for figures, index in zip(figures_by_attribute, choice_indices, strict=True)]
    mean, entropy, lowest, highest = np.sum(figures_of, axis=0).T
    if len(mean) > CHOICES:
        size = np.floor(np.log2(total) - entropy - np.log2(least)).clip(smallest - 1)
        order = np.lexsort([mean, size])
        first = np.searchsorted(size[order], size[order])
        sizes = len(np.unique(size[size >= smallest]))
        taken = order[(np.arange(len(order)) - first < CHOICES // sizes) & (size[order] >= smallest)]
    else:
        taken = np.arange(len(mean))
    taken = taken[np.argsort(mean[taken], kind="stable")]
    chosen = np.stack(
        [kept_levels[index[taken]] for kept_levels, index in zip(kept, choice_indices, strict=True)], axis=1
    )
    costs = np.stack(
        [figures[index[taken], 0] for figures, index in zip(figures_by_attribute, choice_indices, strict=True)], axis=1
    )
    attributes = np.argsort(-costs, axis=1, kind="stable")
    choices = np.stack([attributes, np.take_along_axis(chosen, attributes, axis=1)], axis=2)
    return choices, lowest[taken].astype(np.int64), highest[taken].astype(np.int64)


def _all_of(counts: Sequence[int]) -> NDArray[np.int64]:
    """Return all choices of one level for each attribute: int64[d, c]."""
    several = [q for q, count in enumerate(counts) if count > 1]  # an array has at most 64 axes
    choices = np.zeros((len(counts), int(np.prod([counts[q] for q in several]))), np.int64)
    if several:
        choices[several] = np.indices([counts[q] for q in several]).reshape(len(several), -1)
    return choices


def _drawn(figures_by_attribute: Sequence[NDArray[np.float64]]) -> NDArray[np.int64]:
    """Return choices of levels that cost little for the size of their cells, where there are too many: int64[d, c].

    If attributes were independent, costs and entropies would add up, and a price of entropy would decide for each
    attribute which level is best. They are not, so costs are multiplied by random weights, again and again.
    """
    random = np.random.PCG64(0)
    draws = random.random_raw((len(figures_by_attribute), DRAWS)) >> np.uint64(11)
    weights = np.exp2(SPREAD * (2 * draws.astype(np.float64) * 2.0**-53 - 1))
    weights[:, 0] = 1
    dearest = max(float(figures[:, 0].max()) for figures in figures_by_attribute)
    prices = dearest * np.exp2(np.linspace(-CHEAPEST_PRICE, 1, PRICES))
    chosen = []
    for figures, weight in zip(figures_by_attribute, weights, strict=True):
        cost, entropy = figures[:, 0, None, None] * weight[:, None], figures[:, 1, None, None] * prices
        coarsest = len(figures) - 1  # so that one choice has cells with enough records
        chosen.append(np.append(np.argmin(cost + entropy, axis=0).ravel(), coarsest))
    choices = np.stack(chosen)
    marks = random.random_raw(len(choices)) @ choices.astype(np.uint64)  # equal choices have equal marks
    _, first = np.unique(marks, return_index=True)
    return choices[:, first]
