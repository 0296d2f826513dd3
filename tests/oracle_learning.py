"""What learning methods and measures should come to, slowly and in plain Python; imports nothing from the product."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

# A domain: a number of codes, or a tree of categories: nested lists whose innermost are leaves, None.
Tree = Any


def leaves(tree: Tree) -> int:
    return 1 if tree is None else sum(leaves(child) for child in tree)


def entropy(classes: Sequence[Any]) -> float:
    counts = Counter(classes)
    return -sum(count / len(classes) * math.log2(count / len(classes)) for count in counts.values())


def conditional_entropy(owners: Sequence[Any], classes: Sequence[Any]) -> float:
    """Eq. 1 of LeFevre 2008, group by group."""
    groups: dict[Any, list[Any]] = {}
    for owner, one in zip(owners, classes, strict=True):
        groups.setdefault(owner, []).append(one)
    return sum(len(group) / len(owners) * entropy(group) for group in groups.values())


def squared_error(owners: Sequence[Any], values: Sequence[float]) -> float:
    """Eq. 2."""
    groups: dict[Any, list[float]] = {}
    for owner, value in zip(owners, values, strict=True):
        groups.setdefault(owner, []).append(value)
    return sum((v - sum(g) / len(g)) ** 2 for g in groups.values() for v in g) / len(values)


class Shown:
    """A value of an attribute that records show: codes low..high, and what is below it in the taxonomy."""

    def __init__(self, low: int, high: int, tree: Tree, null: int | None) -> None:
        self.low, self.high, self.tree, self.null = low, high, tree, null

    def parts(self, codes: Sequence[int], classes: Sequence[Any]) -> list[Shown]:
        """What it is specialised into, for records with these codes."""
        if self.null is not None and self.low < self.null:
            return [Shown(self.low, self.null - 1, self.tree, None), Shown(self.null, self.null, None, None)]
        if isinstance(self.tree, int):
            here = sorted({code for code in codes if self.low <= code <= self.high})
            best: tuple[float, int] | None = None
            for last in here[:-1]:
                found = gain(codes, classes, self, [(self.low, last), (last + 1, self.high)])
                if best is None or found > best[0]:
                    best = (found, last)
            if best is None:
                return []
            return [Shown(self.low, best[1], self.tree, None), Shown(best[1] + 1, self.high, self.tree, None)]
        found_parts, place = [], self.low
        for child in self.tree or ():
            found_parts.append(Shown(place, place + leaves(child) - 1, child, None))
            place += leaves(child)
        return found_parts


def gain(codes: Sequence[int], classes: Sequence[Any], value: Shown, parts: Sequence[tuple[int, int]]) -> float:
    """By how much the entropy of the classes of records with a value falls when it is divided."""
    everyone = [one for code, one in zip(codes, classes, strict=True) if value.low <= code <= value.high]
    after = 0.0
    for low, high in parts:
        some = [one for code, one in zip(codes, classes, strict=True) if low <= code <= high]
        if some:
            after += len(some) / len(everyone) * entropy(some)
    return round(entropy(everyone) - after, 9)


def top_down_specialization(
    rows: Sequence[Sequence[int]],
    classes: Sequence[Any],
    domains: Sequence[tuple[Tree, bool]],
    allowed: Any,
) -> list[list[int]]:
    """The first codes of the values that are shown of each attribute in the end (Fung et al. 2005).

    domains: a tree or a number of codes, and whether null comes after it. allowed: of a list of groups of row numbers.
    """
    shown: list[list[Shown]] = []
    for tree, null in domains:
        size = tree if isinstance(tree, int) else leaves(tree)
        shown.append([Shown(0, size - 1 + null, tree, size if null else None)])
    refused: set[tuple[int, int, int]] = set()
    while True:
        now = min(len(group) for group in groups_of(rows, shown))
        candidates = []
        for q, values in enumerate(shown):
            codes = [row[q] for row in rows]
            for value in values:
                members = [one for code, one in zip(codes, classes, strict=True) if value.low <= code <= value.high]
                parts = value.parts(codes, classes) if len(set(members)) > 1 and value.low < value.high else []
                if not parts or (q, value.low, value.high) in refused:
                    continue
                after = [list(one) for one in shown]
                after[q] = sorted([*(v for v in values if v is not value), *parts], key=lambda v: v.low)
                groups = groups_of(rows, after)
                lost = now - min(map(len, groups))
                score = gain(codes, classes, value, [(part.low, part.high) for part in parts])
                candidates.append((-(score / lost if lost else score), q, value.low, value.high, after, groups))
        for _, q, low, high, after, groups in sorted(candidates, key=lambda one: one[:3]):
            if allowed(groups):
                shown = after
                break
            refused.add((q, low, high))
        else:
            return [[value.low for value in values] for values in shown]


def groups_of(rows: Sequence[Sequence[int]], shown: Sequence[Sequence[Shown]]) -> list[list[int]]:
    """The rows that show the same, as row numbers."""
    found = []
    for cell in product(*shown):
        group = [n for n, row in enumerate(rows) if all(v.low <= c <= v.high for v, c in zip(cell, row, strict=True))]
        if group:
            found.append(group)
    return found
