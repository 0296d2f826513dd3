"""Classes for searches to improve, and what they must be like afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from coded import random_records

from sfumato.losses.exact_costs import attribute_cost, total_cost
from sfumato.methods import methods
from sfumato.methods.class_counting import Counting
from sfumato.methods.method import ClassBatch, Records, SensitiveValues
from sfumato.progress import Progress
from sfumato.requirements import (
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    KAnonymity,
    Requirement,
    Requirements,
)

KINDS: dict[str, tuple[Requirement, ...]] = {
    "k": (),
    "frequency": (FrequencyDiversity("s", 2),),
    "distinct": (DistinctDiversity("s", 3),),
    "entropy": (EntropyDiversity("s", 2),),
    "several": (FrequencyDiversity("s", 2), DistinctDiversity("s", 3)),
}


def with_values(records: Records, generator: np.random.Generator) -> Records:
    """Sensitive values of five kinds, some of them missing."""
    codes = generator.choice(6, records.count, p=[0.3, 0.2, 0.2, 0.15, 0.1, 0.05]).astype(np.uint32)
    return replace(records, sensitive={"s": SensitiveValues(codes, 5, np.arange(5.0))})


def feasible(kind: str, k: int, seed: int) -> Iterator[tuple[Records, Requirements]]:
    """Tables without end that meet what is asked for as one class."""
    generator = np.random.default_rng([seed, len(kind), k])
    while True:
        records = with_values(random_records(generator, int(generator.integers(2 * k + 4, 90))), generator)
        requirements = Requirements((KAnonymity(k), *KINDS[kind]))
        if requirements.holds(Counting(records, requirements).whole).all():
            yield records, requirements


def first_classes(records: Records, requirements: Requirements) -> ClassBatch:
    return ClassBatch.joined(list(methods()["hilbert"].classes(records, requirements, Progress())))


def cost_of(batch: ClassBatch, records: Records) -> int:
    return int(total_cost(batch.starts, batch.low, batch.high, records.costs.layout, records.costs.units))


def assert_classes(batch: ClassBatch, records: Records, requirements: Requirements) -> None:
    """Every row once, boxes that are tight, and requirements that hold."""
    assert sorted(batch.rows.tolist()) == sorted(records.rows.tolist())
    record_of_row = np.empty(records.count, np.int64)
    record_of_row[records.rows] = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
    for low, high, (start, end) in zip(batch.low, batch.high, pairwise(batch.starts), strict=True):
        codes = records.codes[record_of_row[batch.rows[start:end]]]
        assert (codes.min(axis=0).tolist(), codes.max(axis=0).tolist()) == (low.tolist(), high.tolist())
    assert requirements.holds(Counting(records, requirements).runs(batch.rows, batch.starts)).all()


def optimum(records: Records, requirements: Requirements) -> int | None:
    """The least cost of any partition into classes that meet the requirements, by trying all of them."""
    at = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
    costs, n = records.costs, len(at)

    def cost(rows: list[int]) -> int:
        codes = records.codes[at[rows]]
        low, high = codes.min(axis=0), codes.max(axis=0)
        one = sum(int(attribute_cost(costs.layout, costs.units, q, low[q], high[q])) for q in range(codes.shape[1]))
        return one * len(rows)

    def holds(subset: int) -> bool:
        rows = np.array([records.rows[row] for row in range(n) if subset >> row & 1], np.uint32)
        return bool(requirements.holds(Counting(records, requirements).runs(rows, np.array([0, len(rows)]))).all())

    allowed = [False] + [holds(subset) for subset in range(1, 1 << n)]
    worth = [cost([row for row in range(n) if subset >> row & 1]) if subset else 0 for subset in range(1 << n)]
    least: list[Any] = [0] + [None] * ((1 << n) - 1)
    for whole in range(1, 1 << n):
        lowest, part = whole & -whole, whole
        while part:  # the class of the first row of what is left
            if part & lowest and allowed[part] and least[whole ^ part] is not None:
                value = least[whole ^ part] + worth[part]
                least[whole] = value if least[whole] is None else min(least[whole], value)
            part = (part - 1) & whole
    found: int | None = least[-1]
    return found
