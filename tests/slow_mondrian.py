"""Mondrian as it is written down, on lists of rows, and random tables to try it on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from requirement_definitions import (
    Asked,
)

from sfumato.losses.exact_costs import Costs, exact_costs
from sfumato.methods.method import Records, SensitiveValues
from sfumato.requirements import KAnonymity, Requirements
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.tables.coding.sorting import Field, bits_for, sort_rows
from sfumato.taxonomies.derived_taxonomies import flat, prefix

Splits = Literal["strict", "relaxed", "published", "ordered"]


Part = list[int]  # rows


@dataclass(frozen=True)
class Table:
    """Coded records with one sensitive value each (None is null), and perhaps the person of each."""

    codes: NDArray[Any]
    domains: list[Domain]
    weights: list[float]
    values: list[int | None] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    persons: list[int] | None = None

    @property
    def costs(self) -> Costs:
        return exact_costs(self.domains, self.weights, len(self.codes))

    def records(self) -> Records:
        fields = [Field(self.codes[:, q], bits_for(domain.size)) for q, domain in enumerate(self.domains)]
        line = sort_rows(fields, len(self.codes))
        distinct_codes = np.ascontiguousarray(self.codes[line.rows[line.starts[:-1]]])
        null = len(self.numbers)
        codes = np.array([null if value is None else value for value in self.values], np.uint32)
        sensitive = {"s": SensitiveValues(codes, null, np.array(self.numbers, np.float64))} if self.values else {}
        persons = None if self.persons is None else np.array(self.persons, np.uint32)
        return Records(distinct_codes, line.starts, line.rows, self.domains, self.costs, sensitive, persons)


def numeric(size: int, *, null: bool = False) -> Domain:
    return NumericDomain("n", np.arange(size - null) ** 2, null)


def flat_categories(*, null: bool = False) -> Domain:
    return CategoricalDomain("c", flat(list("uvwxyz"), "c"), null)


def grouped_categories(*, null: bool = False) -> Domain:
    """Groups within groups, groups of one, and leaves right under the root."""
    leaves = ["aaa", "aab", "aac", "aba", "abb", "aca", "baa", "bab", "bba", "c", "da"]
    return CategoricalDomain("g", prefix(leaves, [1, 2], "g"), null)


def random_domain(generator: np.random.Generator) -> Domain:
    null = bool(generator.integers(0, 3) == 0)
    kinds: list[Callable[[], Domain]] = [
        lambda: numeric(int(generator.integers(2, 9)), null=null),
        lambda: numeric(700, null=null),  # so many codes that a region's records are sorted
        lambda: flat_categories(null=null),
        lambda: grouped_categories(null=null),
        lambda: grouped_categories(null=null),
    ]
    return kinds[int(generator.integers(0, len(kinds)))]()


def random_table(generator: np.random.Generator, rows: int) -> Table:
    domains = [random_domain(generator) for _ in range(int(generator.integers(1, 5)))]
    columns = []
    for domain in domains:
        few = generator.choice(domain.size, min(domain.size, int(generator.integers(1, 14))), replace=False)
        share = generator.dirichlet(np.full(len(few), 0.7))
        columns.append(generator.choice(few, rows, p=share))
    kind = np.min_scalar_type(max(domain.size for domain in domains) - 1)
    weights = generator.choice([0.5, 1.0, 1.0, 2.0], len(domains)).tolist()
    return Table(np.column_stack(columns).astype(kind), domains, weights)


def with_values(table: Table, generator: np.random.Generator) -> Table:
    drawn = generator.integers(0, generator.integers(2, 6), len(table.codes)).tolist()
    there = sorted(set(drawn))
    values: list[int | None] = [there.index(value) for value in drawn]
    if generator.integers(0, 2):
        for place in generator.choice(len(values), len(values) // 8, replace=False).tolist():
            if values.count(values[place]) > 1:
                values[place] = None
    numbers = sorted(generator.choice(np.arange(-9, 10), len(there), replace=False).tolist())
    return replace(table, values=values, numbers=numbers)


@dataclass(frozen=True)
class Slow:
    """Recursive division as it is written down, on lists of rows."""

    table: Table
    splits: Splits
    k: int
    asked: Sequence[Asked] = ()

    def classes(self) -> list[Part]:
        table = self.table
        secret = [len(table.numbers) if value is None else value for value in table.values or [0] * len(table.codes)]
        rows = range(len(table.codes))
        person = table.persons or list(rows)
        whole = sorted(rows, key=lambda row: (table.codes[row].tolist(), secret[row], person[row], row))
        return [sorted(part) for part in self.divided(whole)]

    def divided(self, rows: Part) -> list[Part]:
        for attribute in self.attributes(rows):
            for parts in self.candidates(rows, attribute):
                if all(self.holds(part) for part in parts):
                    return [leaf for part in parts for leaf in self.divided(part)]
        return [rows]

    def code(self, row: int, attribute: int) -> int:
        return int(self.table.codes[row, attribute])

    def attributes(self, rows: Part) -> list[int]:
        found = []
        for attribute in range(len(self.table.domains)):
            codes = [self.code(row, attribute) for row in rows]
            low, high = min(codes), max(codes)
            if low < high:
                reach = high - low if self.splits in ("strict", "relaxed") else 0
                found.append((-self.width(attribute, low, high), reach, attribute))
        return [attribute for _, _, attribute in sorted(found)]

    def width(self, attribute: int, low: int, high: int) -> Fraction:
        """The weighted range of two codes as a fraction of the whole, which is also that of null beside a value."""
        domain, weight = self.table.domains[attribute], Fraction(self.table.weights[attribute])
        if domain.has_null and high == domain.size - 1:
            return weight
        if isinstance(domain, NumericDomain):
            values = [int(value) for value in domain.values]
            return weight * Fraction(values[high] - values[low], values[-1] - values[0])
        assert isinstance(domain, CategoricalDomain)
        tree = domain.taxonomy
        if self.splits == "ordered":
            labels = [code for code in self.table.codes[:, attribute].tolist() if code < len(tree.leaves)]
            return weight * Fraction(high - low, max(labels) - min(labels))
        holding = [node for node in range(len(tree.labels)) if tree.first[node] <= low and high <= tree.last[node]]
        return weight * Fraction(min(int(tree.last[node] - tree.first[node]) + 1 for node in holding), len(tree.leaves))

    def candidates(self, rows: Part, attribute: int) -> Iterator[list[Part]]:
        domain = self.table.domains[attribute]
        by_code: dict[int, Part] = {}
        for row in rows:
            by_code.setdefault(self.code(row, attribute), []).append(row)
        codes = sorted(by_code)
        natural = self.natural(rows, attribute, domain if self.splits != "ordered" else None)
        if natural is not None:
            yield natural
        line = [row for code in codes for row in by_code[code]]
        middle = self.code(line[(len(rows) - 1) // 2], attribute)
        first_above = next((code for code in codes if code > middle), middle)  # the largest is parted from those below

        def distance(cut: int) -> int:
            return abs(2 * sum(self.code(row, attribute) < cut for row in rows) - len(rows))

        cuts = sorted(codes[1:], key=lambda cut: (distance(cut), cut))
        if not isinstance(domain, CategoricalDomain):
            cuts = [first_above, *cuts]
        if self.splits in ("published", "ordered"):
            as_numbers = self.splits == "ordered" or not isinstance(domain, CategoricalDomain)
            cuts = [cut for cut in dict.fromkeys((first_above, middle)) if as_numbers and cut in codes[1:]]
        thresholds = [
            [[r for r in rows if self.code(r, attribute) < cut], [r for r in rows if self.code(r, attribute) >= cut]]
            for cut in cuts
        ]
        below = set(line[: len(rows) // 2])
        halves = [[row for row in rows if row in below], [row for row in rows if row not in below]]
        if self.splits != "relaxed":
            yield from thresholds
        elif isinstance(domain, CategoricalDomain):
            yield from [*thresholds, halves]
        else:
            yield from [halves, *thresholds]

    def natural(self, rows: Part, attribute: int, domain: Domain | None) -> list[Part] | None:
        """The parts that a domain suggests; without one, only null is apart."""
        whole = self.table.domains[attribute]
        null = whole.size - 1 if whole.has_null else None
        nulls = [row for row in rows if self.code(row, attribute) == null]
        if nulls:
            return [[row for row in rows if row not in nulls], nulls]
        if not isinstance(domain, CategoricalDomain):
            return None
        paths = {row: self.path(domain, self.code(row, attribute)) for row in rows}
        level = 0
        while len({path[level] for path in paths.values()}) == 1:
            level += 1
        children = sorted({path[level] for path in paths.values()})
        return [[row for row in rows if paths[row][level] == child] for child in children]

    def path(self, domain: CategoricalDomain, leaf: int) -> list[int]:
        """The nodes from the root to a leaf; nodes are numbered in the order of their leaves."""
        taxonomy = domain.taxonomy
        return [node for node in range(len(taxonomy.labels)) if taxonomy.first[node] <= leaf <= taxonomy.last[node]]

    def holds(self, part: Part) -> bool:
        table = self.table
        members = part if table.persons is None else {table.persons[row] for row in part}
        if len(members) < self.k:
            return False
        known = [value for value in table.values if value is not None]
        reference = [Fraction(known.count(value), len(known)) for value in range(len(table.numbers))]
        counts = [[table.values[row] for row in part].count(value) for value in range(len(table.numbers))]
        return all(one.holds(counts, reference, table.numbers) for one in self.asked)


def requirements_for(k: int, asked: Sequence[Asked] = (), *, person: str | None = None) -> Requirements:
    return Requirements((KAnonymity(k), *(one.requirement for one in asked)), person)
