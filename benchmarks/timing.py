"""Timing inside one process, and the run that is timed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato import Policy
from sfumato.api import anonymize_to_file
from sfumato.progress import Progress

ROUNDS = 3


@dataclass(frozen=True)
class Timed:
    """One run: seconds by the clock, CPU seconds of all threads, and seconds by phase."""

    seconds: float
    cpu: float
    phases: dict[str, float]


def timed(work: Callable[[], dict[str, float]]) -> Timed:
    """Run ``work``, which tells its phases."""
    gc.collect()  # what an earlier run left is not this one's time
    cpu, started = time.process_time(), time.perf_counter()
    phases = work()
    return Timed(time.perf_counter() - started, time.process_time() - cpu, phases)


def best_alternating(*works: Callable[[], dict[str, float]]) -> list[Timed]:
    """The best of three runs of each, taken in turns after one of each that is not counted."""
    for work in works:
        work()
    rounds = [[timed(work) for work in works] for _ in range(ROUNDS)]
    return [fastest([runs[place] for runs in rounds]) for place in range(len(works))]


def fastest(runs: Sequence[Timed]) -> Timed:
    return min(runs, key=lambda run: run.seconds)


def anonymization(source: Path, policy: Policy, target: Path) -> Callable[[], dict[str, float]]:
    """From file to file, the audit of the finished file, its hash and its certificate included."""

    def work() -> dict[str, float]:
        progress = Progress()
        anonymize_to_file(source, policy, target, progress)
        return progress.seconds

    return work
