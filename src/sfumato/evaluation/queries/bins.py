"""The cells of the datacube: single codes, or bins of numbers that the user names."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from sfumato.errors import UsageError
from sfumato.evaluation.queries.answers import Integers
from sfumato.tables.coding.domains import Domain, NumericDomain, read_number

MOST_VALUES = 1000
"""Numbers with more distinct values are continuous: their cells must be named."""


def cell_bounds(domain: Domain, edges: Sequence[object] | None) -> Integers:
    """Where the cells of a quasi-identifier begin and end: cell c has the codes bounds[c] to bounds[c + 1] - 1."""
    if edges is None:
        if isinstance(domain, NumericDomain) and len(domain.values) > MOST_VALUES:
            raise too_many_values(domain.name, len(domain.values))
        return np.arange(domain.size + 1)
    if not isinstance(domain, NumericDomain):
        raise UsageError(
            f"bins are given for the column {domain.name!r}, which holds categories. Leave out its bins: the leaves of "
            "its taxonomy are the cells."
        )
    values = domain.values.tolist()
    starts = [bisect_left(values, edge) for edge in ascending_edges(domain.name, edges, domain.kind)]
    return np.array(sorted({0, *starts, len(values), domain.size}), np.int64)


def ascending_edges(name: str, edges: Sequence[object], kind: str) -> list[float | Fraction]:
    """The edges of bins as numbers, if that is what they are and each is above the one before."""
    numbers = [read_number(str(edge), kind) for edge in edges]
    if not numbers or not all(map(math.isfinite, numbers)):
        what = "number" if kind == "numeric" else "date of the form year-month-day"
        raise UsageError(f"the bins of the column {name!r} are not understood. Give each edge as a {what}.")
    if any(low >= high for low, high in pairwise(numbers)):
        raise UsageError(f"the bins of the column {name!r} do not ascend. Give each edge once, the smallest first.")
    return numbers


def too_many_values(name: str, count: int) -> UsageError:
    return UsageError(
        f"the column {name!r} has {count:,} distinct numbers, more than the {MOST_VALUES:,} that can be cells of the "
        f"datacube. Name the edges of its bins: bins={{{name!r}: [10, 20, 30]}} in Python, --bins {name}=10,20,30 on "
        "the command line."
    )
