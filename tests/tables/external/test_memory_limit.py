"""A limit of memory refuses a step before the step takes memory."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.tables.external import memory_limit
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.memory_limit import AT_THE_START, SPARE, MemoryLimit, held_memory

MB = 10**6


def holding(monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    monkeypatch.setattr(memory_limit, "held_memory", lambda: held)


def test_a_step_is_refused_if_it_would_pass_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    holding(monkeypatch, 100 * MB)
    limit = MemoryLimit(500 * MB)
    assert limit.lacks(400 * MB - SPARE) == 0
    assert limit.lacks(410 * MB - SPARE) == 10 * MB
    with pytest.raises(UsageError, match=r"sorting takes about 600 MB of memory, and 500 MB are allowed. Allow 700 MB"):
        limit.claim_for("sorting", 500 * MB - SPARE)


def test_what_a_session_holds_before_the_run_counts_no_more_than_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    holding(monkeypatch, 5_000 * MB)
    limit = MemoryLimit(500 * MB)
    assert limit.lacks(500 * MB - AT_THE_START - SPARE) == 0
    assert limit.lacks(500 * MB - AT_THE_START) == SPARE


def test_a_limit_that_the_libraries_alone_fill_is_refused_at_once() -> None:
    said = r"50 MB of memory are too few for any run.*allow at least 300 MB with --memory"
    with pytest.raises(UsageError, match=said):
        MemoryLimit(50 * MB)


def test_memory_that_is_used_is_held_and_memory_that_is_freed_is_given_back() -> None:
    before = held_memory()
    if not before:
        pytest.skip("the system does not say what a process holds")
    taken = np.ones(40 * MB, np.uint8)
    assert held_memory() - before > 30 * MB
    del taken
    memory_limit.give_back_memory()
    assert held_memory() - before < 10 * MB


def test_values_that_stay_in_memory_leave_less_for_records() -> None:
    budget = MemoryBudget(900)
    assert budget.beside(300) == MemoryBudget(600)
    assert budget.beside(1_000) == MemoryBudget(0)
