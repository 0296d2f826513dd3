"""Division of a table by the coarsest levels that may be shown: no class reaches beyond its part.

A part has the records whose values, in every column with a coarsest level, are in the same group of that level. Null is
in a group of its own, since a class that mixes it with values shows ``*``. Methods form classes inside the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.methods.class_counting import Counting
from sfumato.methods.method import Records
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes, Domain


def part_numbers(codes: Codes, domains: Sequence[Domain]) -> NDArray[np.int64] | None:
    """Return the part of each record, int64[n], in the order of the groups; None if no column has a coarsest level."""
    limited = limited_columns(domains)
    if not limited:
        return None
    groups = np.stack([coarse_groups(domains[q])[codes[:, q]] for q in limited], axis=1)
    numbers: NDArray[np.int64] = np.unique(groups, axis=0, return_inverse=True)[1].ravel()
    return numbers


def limited_columns(domains: Sequence[Domain]) -> list[int]:
    """Return the positions of the columns that have a coarsest level."""
    return [q for q, domain in enumerate(domains) if domain.coarsest is not None]


def coarse_groups(domain: Domain) -> NDArray[np.uint32]:
    """Return the group of each code on the coarsest level of a column that has one: uint32[size]."""
    assert domain.coarsest is not None
    return domain.at_level(domain.coarsest)[1]


def divided(records: Records, requirements: Requirements) -> list[Records]:
    """Return the parts of the records. References of requirements are those of all records together."""
    numbers = part_numbers(records.codes, records.domains)
    if numbers is None or not len(numbers) or numbers.max() == 0:
        return [records]
    totals = Counting(records, requirements).totals
    sensitive = {
        name: replace(values, totals=totals[name]) if name in totals else values
        for name, values in records.sensitive.items()
    }
    records = replace(records, sensitive=sensitive, lines=None)
    order = np.argsort(numbers, kind="stable")
    ends = np.flatnonzero(np.diff(numbers[order])) + 1
    return [_selected(records, positions) for positions in np.split(order, ends)]


def _selected(records: Records, positions: NDArray[np.int64]) -> Records:
    """Return the distinct records at ascending positions."""
    weights = np.diff(records.starts)[positions]
    taken = np.repeat(records.starts[positions], weights) + _within(weights)
    return replace(
        records,
        codes=np.take(records.codes, positions, axis=0),
        starts=np.append(0, np.cumsum(weights)),
        rows=records.rows[taken],
    )


def _within(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count from 0 within each run of the given lengths."""
    before = np.cumsum(weights) - weights
    return np.arange(int(weights.sum())) - np.repeat(before, weights)


def every_part_holds(records: Records, requirements: Requirements) -> bool:
    """Whether each part, taken as one class, meets the requirements, so that classes can be formed inside it."""
    parts = divided(records, requirements)
    return all(requirements.holds(Counting(part, requirements).whole).all() for part in parts)
