"""The eligible tree against a slow version of it, and what its classes promise."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from coded import asking, random_records

import sfumato
from sfumato.losses.exact_costs import attribute_cost, total_cost
from sfumato.methods import methods
from sfumato.methods.method import ClassBatch, Records, SensitiveValues
from sfumato.methods.trees import eligible_tree as module
from sfumato.methods.trees.eligible_tree import EligibilityLimits, EligibleTree, eligible_leaves
from sfumato.progress import Progress
from sfumato.requirements import DistinctDiversity, FrequencyDiversity, KAnonymity, Requirements
from sfumato.tables.coding.domains import CategoricalDomain

VALUES = 4  # null is the one after


def eligible(values: list[int], l: int) -> bool:
    counts = Counter(value for value in values if value < VALUES)
    return bool(counts) and max(counts.values()) * l <= counts.total()


def slow_leaves(
    codes: Any, values: list[int], limits: EligibilityLimits, records: Records, part: list[int]
) -> list[list[int]]:
    """The tree as it is written down, on lists."""
    costs = records.costs

    def cost(rows: list[int]) -> int:
        low, high = codes[rows].min(axis=0), codes[rows].max(axis=0)
        boxes = zip(range(len(low)), low, high, strict=True)
        return len(rows) * sum(int(attribute_cost(costs.layout, costs.units, *box)) for box in boxes)

    best: tuple[int, list[int], list[int]] | None = None
    for q, domain in enumerate(records.domains):
        found = sorted({int(codes[row, q]) for row in part})
        for place, code in enumerate(found[:-1]):
            alone = isinstance(domain, CategoricalDomain) and place > 0
            for test in ([lambda c, code=code: c == code] if alone else []) + [lambda c, code=code: c <= code]:
                one = [row for row in part if test(codes[row, q])]
                other = [row for row in part if not test(codes[row, q])]
                enough = min(len(one), len(other)) >= max(limits.least, limits.l)
                if not enough or not all(eligible([values[row] for row in side], limits.l) for side in (one, other)):
                    continue
                if best is None or cost(one) + cost(other) < best[0]:
                    best = cost(one) + cost(other), one, other
    if best is None:
        return [part]
    return [leaf for side in best[1:] for leaf in slow_leaves(codes, values, limits, records, side)]


def with_values(records: Records, generator: np.random.Generator) -> Records:
    codes = generator.choice(VALUES + 1, records.count, p=[0.3, 0.25, 0.2, 0.15, 0.1]).astype(np.uint32)
    return replace(records, sensitive={"s": SensitiveValues(codes, VALUES, np.arange(float(VALUES)))})


@pytest.mark.parametrize("block", [1 << 14, 7])
def test_leaves_are_those_of_the_slow_version(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", block)
    generator, divided = np.random.default_rng(block), 0
    for _ in range(60):
        records = with_values(random_records(generator, int(generator.integers(4, 60))), generator)
        codes = np.take(records.codes, np.repeat(np.arange(len(records.codes)), np.diff(records.starts)), axis=0)
        values = records.sensitive["s"].codes
        limits = EligibilityLimits(int(generator.integers(1, 4)), int(generator.integers(1, 5)), VALUES)
        if not eligible(values.tolist(), limits.l):
            continue
        categorical = np.array([isinstance(domain, CategoricalDomain) for domain in records.domains])
        order, leaves = eligible_leaves(codes, values, limits, categorical, records.costs)
        found = [order[begin:end].tolist() for begin, end in pairwise(leaves)]
        assert found == slow_leaves(codes, values.tolist(), limits, records, list(range(len(codes))))
        divided += len(found) > 1
    assert divided > 15


def batch_of(records: Records, requirements: Requirements, method: str) -> ClassBatch:
    return ClassBatch.joined(list(methods()[method].classes(records, requirements, Progress())))


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("more", [(), (DistinctDiversity("s", 3),)])
def test_every_class_holds_and_every_row_is_in_one(k: int, more: tuple[DistinctDiversity, ...]) -> None:
    generator, several = np.random.default_rng(k), 0
    for _ in range(40):
        records = with_values(random_records(generator, int(generator.integers(8, 90))), generator)
        values = records.sensitive["s"].codes
        if not eligible(values.tolist(), 2) or len(set(values.tolist()) - {VALUES}) < 3:
            continue
        requirements = Requirements((KAnonymity(k), FrequencyDiversity("s", 2), *more))
        batch = batch_of(records, requirements, "eligible-tree")
        assert sorted(batch.rows.tolist()) == list(range(records.count))
        for begin, end in pairwise(batch.starts):
            found = values[batch.rows[begin:end]].tolist()
            assert len(found) >= k
            assert eligible(found, 2)
            assert not more or len(set(found) - {VALUES}) >= 3
        several += len(batch.starts) > 3
    assert several > 15


def test_it_loses_less_than_the_frontier_along_a_line() -> None:
    generator = np.random.default_rng(3)
    records = with_values(random_records(generator, 3000, kinds_of=[0, 2, 3, 0]), generator)
    requirements = Requirements((KAnonymity(1), FrequencyDiversity("s", 2)))
    cost = {}
    for method in ("hilbert", "gain-tree", "eligible-tree"):
        batch = batch_of(records, requirements, method)
        cost[method] = int(total_cost(batch.starts, batch.low, batch.high, records.costs.layout, records.costs.units))
    assert cost["eligible-tree"] < min(cost["hilbert"], cost["gain-tree"])


def test_without_a_frequency_it_is_the_gain_tree() -> None:
    records = random_records(np.random.default_rng(4), 200)
    found = [batch_of(records, asking(4), method) for method in ("eligible-tree", "gain-tree")]
    assert found[0].rows.tolist() == found[1].rows.tolist()
    assert found[0].starts.tolist() == found[1].starts.tolist()


def test_it_is_known_by_name_and_used_by_the_default_where_a_frequency_is_asked_for() -> None:
    assert isinstance(methods()["eligible-tree"], EligibleTree)
    generator = np.random.default_rng(8)
    table = pa.table({"age": generator.integers(18, 90, 300), "job": generator.choice(list("abcdef"), 300)})
    asks: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": "job"}
    tried = sfumato.anonymize(table, k=2, l=2, **asks).summary()["choice"]["tried"]
    assert "eligible-tree" in tried
    assert "eligible-tree" not in sfumato.anonymize(table, k=2, **asks).summary()["choice"]["tried"]
