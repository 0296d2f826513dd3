"""The normalised certainty penalty as exact integers.

NCP (Ghinita 2007, section 2.1) of a box on one attribute is, for numbers, the extent of the released range divided by
the extent of the table; for categories, the share of leaves under the lowest node that holds the box, and 0 for a
single leaf. Weights are scaled to sum to 1.

Weight times NCP is scaled to 2 ** 32 and rounded once, here. Sums of these units are exact in any order, so every
engine and any number of threads break ties in the same way. All attributes share one flat array, each in one of three
forms:

    DIFFERENCE  for each code where a range that begins with it begins, then for each code where a range that ends
                with it ends; the cost is the difference, at most ``full``. Null lies so far out that every box that
                reaches it costs ``full``.
    TABLE       one entry per (low, high), for up to ``TABLE_LIMIT`` codes.
    CLIMB       for each code its ancestors from the leaf up: (last code under the ancestor, cost). For large trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.kernels.decorator import inner_kernel, kernel
from sfumato.tables.coding.domains import CategoricalDomain, Codes, Domain, NumericDomain
from sfumato.taxonomies.code_tree import CodeTree

UNIT = 1 << 32
TABLE_LIMIT = 512
DIFFERENCE, TABLE, CLIMB = 0, 1, 2
FAR = 4  # times the extent of the table


@dataclass(frozen=True)
class Costs:
    """The costs of all attributes, in the form that kernels take.

    layout: int64[d, 4], C-order: form, start in ``units``, stride (codes; levels for CLIMB), full cost.
    units: int64[...], described in the module docstring. shares: float64[d], the weights, scaled to sum to 1.
    """

    layout: NDArray[np.int64]
    units: NDArray[np.int64]
    shares: NDArray[np.float64]

    @property
    def full(self) -> int:
        """Return the cost of a record released as ``*`` on every attribute."""
        return int(self.layout[:, 3].sum())


def exact_costs(domains: Sequence[Domain], weights: Sequence[float], records: int) -> Costs:
    """Return the cost tables for a table with ``records`` records; raise UsageError where sums could overflow."""
    shares = np.asarray(weights, np.float64) / float(np.sum(weights))
    result = _costs(domains, [round(share * UNIT) for share in shares.tolist()], shares)
    if result.full * records >= 1 << 62:
        raise UsageError(f"{records:,} records are too many for exact 64-bit costs. Split the table.")
    return result


def exact_widths(domains: Sequence[Domain], shares: NDArray[np.float64]) -> Costs:
    """Return units in which the width of a box on an attribute is a whole number, so that equal widths are equal.

    The unit of an attribute is a leaf, or 1 for whole numbers; divided by ``full``, the width is the NCP. Numbers with
    fractions are rounded like costs.
    """
    return _costs(domains, [_whole_width(domain) for domain in domains], shares)


def _whole_width(domain: Domain) -> int:
    """Return how many whole units the widest box on an attribute has."""
    if isinstance(domain, CategoricalDomain):
        return max(int(domain.taxonomy.values_under()[0]), 1)
    extent = 0
    if isinstance(domain, NumericDomain) and len(domain.ends) and domain.ends.dtype.kind == "i":
        extent = int(domain.ends[-1]) - int(domain.ends[0])
    return extent if 0 < extent < UNIT else UNIT


def _costs(domains: Sequence[Domain], full_costs: Sequence[int], shares: NDArray[np.float64]) -> Costs:
    layout = np.zeros((len(domains), 4), np.int64)
    parts: list[NDArray[np.int64]] = []
    start = 0
    for attribute, (domain, full) in enumerate(zip(domains, full_costs, strict=True)):
        form, stride, units = _attribute_units(domain, full)
        layout[attribute] = form, start, stride, full
        parts.append(units)
        start += len(units)
    return Costs(layout, np.concatenate(parts), shares)


def shown_costs(domain: Domain, low: Codes, high: Codes, full: int) -> NDArray[np.int64]:
    """Return the cost of boxes over one domain, such as the groups of a level. full: what ``*`` costs there."""
    form, stride, units = _attribute_units(domain, full)
    return attribute_costs(np.array([[form, 0, stride, full]]), units, 0, low, high)


def _attribute_units(domain: Domain, full: int) -> tuple[int, int, NDArray[np.int64]]:
    """Return the form, the stride and the units of one attribute, as described in the module docstring."""
    if domain.tree is not None:
        ends, costs = _ancestors(domain, domain.tree, full)
        if domain.size <= TABLE_LIMIT:
            return TABLE, domain.size, _table(ends, costs)
        return CLIMB, ends.shape[1], np.stack([ends, costs], axis=2).ravel()
    if isinstance(domain, NumericDomain):
        return DIFFERENCE, domain.size, _positions(domain, full)
    raise TypeError(f"there are no costs for a domain of type {type(domain).__name__}")


def _positions(domain: NumericDomain, full: int) -> NDArray[np.int64]:
    positions = np.full((2, domain.size), FAR * full, np.int64)
    values = np.arange(len(domain.values))
    shown = np.clip(domain.shown_positions(values, values), 1 - FAR, FAR - 1)
    positions[:, : len(values)] = np.rint(shown * full)
    return positions.ravel()


def _ancestors(domain: Domain, tree: CodeTree, full: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for every code and level from the leaf up, the last code under that ancestor and its cost."""
    nodes = tree.ancestors()
    cost = np.rint(domain.node_penalties() * full).astype(np.int64)
    ends, costs = tree.last[nodes].astype(np.int64), cost[nodes]
    # The root is the last level. It also covers null, which is not a leaf, and always costs ``full``.
    levels = nodes.shape[1] + 1
    all_ends = np.full((domain.size, levels), domain.size - 1, np.int64)
    all_costs = np.full((domain.size, levels), full, np.int64)
    all_ends[: len(nodes), :-1] = ends
    all_costs[: len(nodes), :-1] = costs
    if domain.has_null:
        all_costs[-1, 0] = 0
    return all_ends, all_costs


def _table(ends: NDArray[np.int64], costs: NDArray[np.int64]) -> NDArray[np.int64]:
    codes = len(ends)
    table = np.zeros((codes, codes), np.int64)
    for low in range(codes):
        level = np.argmax(ends[low][None, :] >= np.arange(low, codes)[:, None], axis=1)
        table[low, low:] = costs[low, level]
    return table.ravel()


@kernel
def attribute_cost(layout, units, attribute, low, high):
    """Return the cost of a box on one attribute. layout, units: see Costs. low, high: int64 codes, low <= high."""
    form, start, stride = layout[attribute, 0], layout[attribute, 1], layout[attribute, 2]
    if form == DIFFERENCE:
        return min(units[start + stride + high] - units[start + low], layout[attribute, 3])
    if form == TABLE:
        return units[start + low * stride + high]
    entry = start + low * stride * 2
    while units[entry] < high:
        entry += 2
    return units[entry + 1]


@inner_kernel
def box_cost(low, high, layout, units):
    """Return the cost of one record in a box. low, high: int64[d]; layout, units: see Costs."""
    total = np.int64(0)
    for q in range(len(low)):
        total += attribute_cost(layout, units, q, low[q], high[q])
    return total


@kernel
def box_costs(low, high, layout, units):
    """Return the cost of one record in each box: int64[b]. low, high: uint[b, d]; layout, units: see Costs."""
    costs = np.zeros(len(low), np.int64)
    for b in range(len(low)):
        for q in range(low.shape[1]):
            costs[b] += attribute_cost(layout, units, q, np.int64(low[b, q]), np.int64(high[b, q]))
    return costs


@inner_kernel
def widened_cost(low, high, codes, layout, units):
    """Return the cost of a box after a record is added. low, high, codes: uint[d]; layout, units: see Costs."""
    total = np.int64(0)
    for q in range(len(codes)):
        code = np.int64(codes[q])
        total += attribute_cost(layout, units, q, min(np.int64(low[q]), code), max(np.int64(high[q]), code))
    return total


@inner_kernel
def widen(low, high, codes):
    """Widen a box so that it holds a record; return whether it grew. low, high: int64[d], changed; codes: uint[d]."""
    grew = False
    for q in range(len(low)):
        code = np.int64(codes[q])
        if code < low[q]:
            low[q] = code
            grew = True
        if code > high[q]:
            high[q] = code
            grew = True
    return grew


def attribute_costs(
    layout: NDArray[np.int64],
    units: NDArray[np.int64],
    attribute: int,
    low: NDArray[np.integer],
    high: NDArray[np.integer],
) -> NDArray[np.int64]:
    """Return the cost of each box on one attribute: int64[...]. low, high: uint[...], the codes of the boxes."""
    form, start, stride, full = layout[attribute].tolist()
    first, last = low.astype(np.int64), high.astype(np.int64)
    costs: NDArray[np.int64]
    if form == DIFFERENCE:
        costs = np.minimum(units[start + stride + last] - units[start + first], full)
    elif form == TABLE:
        costs = units[start + first * stride + last]
    else:
        entry = start + first * stride * 2
        while (below := units[entry] < last).any():
            entry += 2 * below
        costs = units[entry + 1]
    return costs


def total_cost(
    starts: NDArray[np.int64],
    low: NDArray[np.integer],
    high: NDArray[np.integer],
    layout: NDArray[np.int64],
    units: NDArray[np.int64],
) -> int:
    """Return the cost of all records of the classes. starts: int64[c + 1]; low, high: uint[c, d]."""
    sizes, total = np.diff(starts), 0
    for q in range(len(layout)):
        total += int(np.sum(sizes * attribute_costs(layout, units, q, low[:, q], high[:, q])))
    return total
