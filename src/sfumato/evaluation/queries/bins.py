"""The cells of the datacube: single codes, or bins of numbers that the user defines."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from sfumato.errors import UsageError
from sfumato.evaluation.queries.answers import Integers
from sfumato.tables.coding.domains import Domain, NumericDomain

MOST_VALUES = 1000
"""A numeric column with more distinct values counts as continuous and needs bins."""


def cell_bounds(domain: Domain, edges: Sequence[object] | None) -> Integers:
    """The bounds of the cells of a quasi-identifier: cell c has the codes bounds[c] to bounds[c + 1] - 1."""
    if edges is None:
        if isinstance(domain, NumericDomain) and len(domain.values) > MOST_VALUES:
            raise too_many_values(domain.name, len(domain.values))
        return np.arange(domain.size + 1)
    if not isinstance(domain, NumericDomain):
        raise UsageError(
            f"bins are given for the column {domain.name!r}, which holds categories. Leave out its bins: its cells are "
            "the leaves of its taxonomy."
        )
    values = domain.values.tolist()
    starts = [bisect_left(values, edge) for edge in ascending_edges(domain.name, edges, domain.read, domain.kind)]
    return np.array(sorted({0, *starts, len(values), domain.size}), np.int64)


def ascending_edges(
    name: str, edges: Sequence[object], read: Callable[[str], float | Fraction], kind: str = "numeric"
) -> list[float | Fraction]:
    """The edges of bins as numbers. Refuses edges that are no numbers or do not ascend."""
    numbers = [read(str(edge)) for edge in edges]
    if not numbers or not all(map(math.isfinite, numbers)):
        expected = "number" if kind == "numeric" else "date of the form year-month-day"
        raise UsageError(f"the bins of the column {name!r} are not understood. Give each edge as a {expected}.")
    if any(low >= high for low, high in pairwise(numbers)):
        raise UsageError(f"the bins of the column {name!r} do not ascend. Give each edge once, the smallest first.")
    return numbers


def too_many_values(name: str, count: int) -> UsageError:
    """The error for a continuous column without bins."""
    return UsageError(
        f"the column {name!r} has {count:,} distinct numbers, and the datacube takes at most {MOST_VALUES:,} as "
        f"cells. Give the edges of bins: bins={{{name!r}: [10, 20, 30]}} in Python, --bins {name}=10,20,30 on "
        "the command line."
    )
