"""The time and memory of a command and of all processes that it starts, sampled many times a second.

A process is charged with the CPU time of the children that it waits for. Children of a parent that ignores their end,
as the daemon of Spark's Python workers does, and children that outlive their parent, are not charged to it: only
sampling sees what they take.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.process_usage import ROOT

INTERVAL = 0.1  # seconds between two samples
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class TreeUsage:
    """Wall-clock seconds, CPU seconds, peak memory in bytes and exit code of a command with its child processes."""

    seconds: float
    cpu: float
    peak_bytes: int
    output: str
    exit_code: int = 0


@dataclass
class TreeSampler:
    """What a process and its descendants were seen to take: peak memory and CPU seconds."""

    root: int
    peak_bytes: int = 0
    _seconds: dict[tuple[int, str], float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """The CPU seconds of every process that was seen, up to the last sight of it."""
        return sum(self._seconds.values())

    def sample(self) -> None:
        memory = 0
        for process in _tree(self.root):
            memory += _memory(process)
            if words := _stat(process):
                # A process number may be used again; the moment of its start tells two processes apart.
                self._seconds[process, words[19]] = sum(map(int, words[11:13])) / TICKS
        self.peak_bytes = max(self.peak_bytes, memory)


def run_tree(
    command: list[Any],
    environment: Mapping[str, str] | None = None,
    *,
    interval: float = INTERVAL,
    expected: Sequence[int] = (0,),
) -> TreeUsage:
    """Run a command to its end. Memory is what processes hold themselves: pages of files can be dropped at any time.

    expected: the exit codes that are no failure of the measurement.
    """
    started, before = time.perf_counter(), os.times()
    process = subprocess.Popen(
        list(map(str, command)), cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
    )
    sampler = TreeSampler(process.pid)
    while True:
        sampler.sample()
        try:
            output, _ = process.communicate(timeout=interval)
            break
        except subprocess.TimeoutExpired:
            continue
    after = os.times()
    if process.returncode not in expected:
        raise SystemExit(f"error: a measured process ended with exit code {process.returncode}")
    charged = after.children_user + after.children_system - before.children_user - before.children_system
    return TreeUsage(
        time.perf_counter() - started, max(charged, sampler.seconds), sampler.peak_bytes, output, process.returncode
    )


def _tree(root: int) -> list[int]:
    """Return a process and its descendants."""
    processes = [root]
    for process in processes:
        processes += _children(process)
    return processes


def _children(process: int) -> list[int]:
    children: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{process}/task")
    except OSError:  # it has ended
        return children
    for task in tasks:
        try:
            children += map(int, Path(f"/proc/{process}/task/{task}/children").read_text().split())
        except OSError:  # the thread has ended
            continue
    return children


def _memory(process: int) -> int:
    """Return the bytes of anonymous and shared memory of a process."""
    words = [line.split() for line in _status(process) if line.startswith(("RssAnon:", "RssShmem:"))]
    return 1024 * sum(int(word[1]) for word in words)


def _status(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:  # it has ended
        return []


def _stat(process: int) -> list[str]:
    """Return the fields of a process after its name, or nothing if it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
