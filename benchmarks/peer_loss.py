"""The GCP of the releases of peers, counted in two ways.

The first way favours the peers: a set of categories costs its size divided by the number of leaves. The second way
follows the definition of GCP for taxonomies: the set costs as much as the smallest group that contains it. In both, a
range costs its extent within the data, and a record that was left out costs 1 on every attribute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

RANGE = re.compile(r"(-?\d+(?:\.\d+)?)(?:-(-?\d+(?:\.\d+)?))?")
WHOLE = "*"

Penalty = Callable[[str], float]


def set_penalty(leaves: int) -> Penalty:
    """Read categories separated by commas."""
    return lambda label: _share(len(set(label.split(","))), leaves)


def ancestor_penalty(rows: Sequence[Sequence[str]]) -> Penalty:
    """Read categories separated by commas as the smallest group that contains them all."""
    groups = sorted(_groups(rows).values(), key=len)

    def penalty(label: str) -> float:
        shown = set(label.split(","))
        return next(_share(len(group), len(rows)) for group in groups if shown <= group)

    return penalty


def range_penalty(lowest: float, highest: float) -> Penalty:
    """Read a number, or two with a hyphen between them."""

    def penalty(label: str) -> float:
        match = RANGE.fullmatch(label)
        if match is None:
            raise ValueError("a peer released something that is neither a number nor a range")
        low = float(match[1])
        return _extent(low, float(match[2]) if match[2] else low, lowest, highest)

    return penalty


def node_penalty(rows: Sequence[Sequence[str]]) -> Penalty:
    """Read a name in a hierarchy of categories; of several groups with that name, the most specific counts."""
    return _penalty_of_groups({name: _share(len(leaves), len(rows)) for name, leaves in _groups(rows).items()})


def band_penalty(rows: Sequence[Sequence[str]], lowest: float, highest: float) -> Penalty:
    """Read a name in a hierarchy of numbers; the part of a band outside the data costs nothing."""
    costs = {}
    for name, leaves in _groups(rows).items():
        inside = [number for number in map(float, leaves) if lowest <= number <= highest]
        costs[name] = _extent(min(inside), max(inside), lowest, highest) if inside else 0.0
    return _penalty_of_groups(costs)


def global_certainty_penalty(
    columns: Mapping[str, Sequence[str]], penalties: Mapping[str, Penalty], records: int
) -> float:
    """Return the mean penalty over the original's records and attributes. Released columns have equal length."""
    total = 0.0
    for name, penalty in penalties.items():
        costs = {label: penalty(label) for label in set(columns[name])}
        total += sum(costs[label] for label in columns[name]) + records - len(columns[name])
    return total / (records * len(penalties))


def _groups(rows: Sequence[Sequence[str]]) -> dict[str, set[str]]:
    """Return the leaves under each name."""
    groups: dict[str, set[str]] = {}
    for level in range(max(map(len, rows))):
        leaves_by_name: dict[str, set[str]] = {}
        for row in rows:
            leaves_by_name.setdefault(row[min(level, len(row) - 1)], set()).add(row[0])
        for name, leaves in leaves_by_name.items():
            groups.setdefault(name, leaves)
    return groups


def _penalty_of_groups(costs: dict[str, float]) -> Penalty:
    costs = {**costs, WHOLE: 1.0}

    def penalty(label: str) -> float:
        if label not in costs:
            raise ValueError("a peer released something that is not in its hierarchy")
        return costs[label]

    return penalty


def _share(covered: int, leaves: int) -> float:
    return 0.0 if covered == 1 else covered / leaves


def _extent(low: float, high: float, lowest: float, highest: float) -> float:
    if low == high:
        return 0.0
    return (min(high, highest) - max(low, lowest)) / (highest - lowest)
