"""k persons as k different values: classes are the same to both ways of counting, and searches keep k persons."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from coded import random_records

from sfumato.methods import methods
from sfumato.methods.class_counting import Counting
from sfumato.methods.method import ClassBatch, Effort, Records, SensitiveValues
from sfumato.methods.persons_as_values import persons_as_values
from sfumato.methods.search.shortfall import ROWS, lack_of_counted, part_tests, shortfall_tests
from sfumato.progress import Progress
from sfumato.requirements import DistinctDiversity, FrequencyDiversity, KAnonymity, Requirements
from sfumato.requirements.conjunction import conjunction


def with_persons(generator: np.random.Generator, count: int, persons: int) -> Records:
    """Records of persons with one to many each, who stand in any order."""
    records = random_records(generator, count)
    return replace(records, persons=generator.integers(0, persons, count).astype(np.uint32))


def fewest_persons(batch: ClassBatch, persons: np.ndarray) -> int:
    return min(len({int(persons[row]) for row in batch.rows[begin:end]}) for begin, end in pairwise(batch.starts))


@pytest.mark.parametrize("seed", range(20))
def test_a_class_holds_by_its_values_exactly_if_it_has_k_persons(seed: int) -> None:
    generator = np.random.default_rng(seed)
    k = int(generator.integers(2, 5))
    records = with_persons(generator, 60, 12)
    requirements = Requirements((KAnonymity(k),), person="who")
    said, same = persons_as_values(records, requirements)
    assert said.persons is None
    assert same.decided_by_kernel
    rows, starts = generator.permutation(records.rows), np.arange(0, 61, 6)
    holds = [len({int(records.persons[row]) for row in rows[begin:end]}) >= k for begin, end in pairwise(starts)]
    assert same.holds(Counting(said, same).runs(rows, starts)).tolist() == holds


@pytest.mark.parametrize("effort", ["normal", "balanced", "best"])
@pytest.mark.parametrize("seed", range(6))
def test_every_class_of_a_search_has_k_persons_before_anything_is_merged(seed: int, effort: str) -> None:
    generator = np.random.default_rng(seed)
    k = int(generator.integers(2, 6))
    count = int(generator.integers(60, 200))
    records = replace(with_persons(generator, count, count // 3), effort=Effort(effort))
    requirements = Requirements((KAnonymity(k),), person="who")
    batch = ClassBatch.joined(list(methods()["auto"].classes(records, requirements, Progress())))
    assert sorted(batch.rows.tolist()) == sorted(records.rows.tolist())
    assert fewest_persons(batch, records.persons) >= k
    assert len(batch.starts) > 2


def test_values_of_persons_and_tables_without_persons_are_left_as_they_are() -> None:
    records = with_persons(np.random.default_rng(0), 20, 10)
    of_values = Requirements((KAnonymity(2), FrequencyDiversity("s", 2)), person="who")
    assert persons_as_values(records, of_values) == (records, of_values)
    by_records = replace(records, persons=None)
    alone = Requirements((KAnonymity(2),))
    assert persons_as_values(by_records, alone) == (by_records, alone)


def test_values_that_are_numbered_anew_in_a_part_lack_as_much() -> None:
    """Many more values than rows, some rows without one: the space for all of them would be cleared for every part."""
    generator = np.random.default_rng(3)
    tests = conjunction(
        Requirements((KAnonymity(3), DistinctDiversity("s", 3))),
        [SensitiveValues(np.empty(0, np.uint32), 1000, np.full(1000, np.nan))],
        [np.full(1000, 0.001)],
    )
    for _ in range(50):
        values = generator.choice([0, 7, 400, 999, 1000], (12, 1)).astype(np.uint32)
        renumbered, here = part_tests(values, tests)
        assert len(here.space) < 100
        everywhere = shortfall_tests(12, tests)
        for count in range(1, 12):
            lacks = []
            for kept, prepared in ((renumbered, here), (values, everywhere)):
                prepared.space[prepared.space[ROWS] : prepared.space[ROWS] + count] = np.arange(count)
                lacks.append(int(lack_of_counted(kept, count, 3, prepared)))
            different = len({int(value) for value in values[:count, 0]} - {1000})
            assert lacks == [max(3 - count, 3 - different, 0)] * 2
