"""Timing of functions inside one process, and the anonymization that is timed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tables import QUICK
from sfumato import Policy
from sfumato.api import anonymize_to_file
from sfumato.policy import merge_flags
from sfumato.progress import Progress

ROUNDS = 3


@dataclass(frozen=True)
class Timed:
    """One run: wall-clock seconds, CPU seconds of all threads, and wall-clock seconds by phase."""

    seconds: float
    cpu: float
    phases: dict[str, float]


def timed(work: Callable[[], dict[str, float]]) -> Timed:
    """Time ``work``, which returns the seconds of its phases."""
    gc.collect()  # garbage of an earlier run does not count
    cpu, started = time.process_time(), time.perf_counter()
    phases = work()
    return Timed(time.perf_counter() - started, time.process_time() - cpu, phases)


def best_alternating(*works: Callable[[], dict[str, float]], rounds: int = ROUNDS) -> list[Timed]:
    """Return the fastest of the rounds of each function. They run in turns, after one uncounted run of each."""
    for work in works:
        work()
    runs = [[timed(work) for work in works] for _ in range(rounds)]
    return [fastest([one[number] for one in runs]) for number in range(len(works))]


def fastest(runs: Sequence[Timed]) -> Timed:
    return min(runs, key=lambda run: run.seconds)


def anonymization(source: Path, policy: Policy, target: Path) -> Callable[[], dict[str, float]]:
    """Return the work of anonymizing from file to file, including the audit, hash and certificate of the release.

    Nothing is searched for, unless the policy names an effort: a floor says what files and classes cost.
    """
    quick = policy if policy.method.names_effort else merge_flags(policy, effort=QUICK)

    def work() -> dict[str, float]:
        progress = Progress()
        anonymize_to_file(source, quick, target, progress)
        return progress.seconds

    return work
