"""Selections over quasi-identifiers as boxes of codes."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.policy.workload import Selection, SelectionCondition
from sfumato.tables.coding.domains import CategoricalDomain, Codes, Domain, NumericDomain

KINDS = {"numeric": "number", "date": "date", "moment": "date and time"}


@dataclass(frozen=True)
class SelectionBoxes:
    """Box s holds the codes low[s]..high[s], both included, on every quasi-identifier. In an empty box, low > high.

    low, high: int64[s, d]. weights: float64[s], above 0.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, selections: Sequence[Selection], domains: Sequence[Domain]) -> SelectionBoxes:
        """Translate selections into boxes. A comparison that its domain does not support is a UsageError."""
        position = {domain.name: q for q, domain in enumerate(domains)}
        low = np.zeros((len(selections), len(domains)), np.int64)
        high = np.tile(np.array([domain.size - 1 for domain in domains], np.int64), (len(selections), 1))
        for box, selection in enumerate(selections):
            for comparison in selection.comparisons():
                q = position[comparison.column]
                first, last = _codes(domains[q], comparison)
                low[box, q], high[box, q] = max(low[box, q], first), min(high[box, q], last)
        return cls(low, high, np.array([selection.weight for selection in selections], np.float64))

    def holds(self, box: int, codes: Codes) -> NDArray[np.bool_]:
        """Return for each record whether it is in the box."""
        inside: NDArray[np.bool_] = ((codes >= self.low[box]) & (codes <= self.high[box])).all(axis=1)
        return inside


def _codes(domain: Domain, comparison: SelectionCondition) -> tuple[int, int]:
    """Return the first and last code for which a comparison is true. It is never true for null."""
    if isinstance(domain, CategoricalDomain):
        if comparison.operator != "=":
            raise UsageError(
                f"a selection compares the column {domain.name!r} by {comparison.operator}, but its values are "
                "categories. Compare it by =, with a value or a group of its taxonomy."
            )
        node = domain.taxonomy.node_of_label().get(comparison.value)
        # A value that the table does not have selects nothing. Callers report an empty selection as a whole.
        return (1, 0) if node is None else (int(domain.taxonomy.first[node]), int(domain.taxonomy.last[node]))
    assert isinstance(domain, NumericDomain)
    if not len(domain.values):  # every value is null
        return 1, 0
    value = domain.read(comparison.value)
    if math.isnan(value):
        raise UsageError(
            f"a selection compares the column {domain.name!r} with {comparison.value!r}, which is not a "
            f"{KINDS[domain.kind]}. Write numbers as 40 or 2.5 and dates as 2024-01-31."
        )
    values = domain.values.tolist()
    below, up_to = bisect_left(values, value), bisect_right(values, value)
    first = {">": up_to, ">=": below, "=": below}.get(comparison.operator, 0)
    last = {"<": below, "<=": up_to, "=": up_to}.get(comparison.operator, len(values)) - 1
    return first, last
