"""The time and memory of a command and of all processes that it starts, sampled ten times a second."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.process_usage import ROOT

INTERVAL = 0.1  # seconds between two samples
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class TreeUsage:
    """Wall-clock seconds, CPU seconds and peak memory in bytes of a finished command with its child processes."""

    seconds: float
    cpu: float
    peak_bytes: int
    output: str


def run_tree(command: list[Any], environment: Mapping[str, str] | None = None) -> TreeUsage:
    """Run a command to its end. Memory is what processes hold themselves: pages of files can be dropped at any time."""
    started, before = time.perf_counter(), os.times()
    process = subprocess.Popen(
        list(map(str, command)), cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
    )
    peak = 0
    cpu_seen = 0.0
    while True:
        tree = _tree(process.pid)
        peak = max(peak, sum(map(_memory, tree)))
        cpu_seen = max(cpu_seen, sum(map(_cpu_seconds, tree)))
        try:
            output, _ = process.communicate(timeout=INTERVAL)
            break
        except subprocess.TimeoutExpired:
            continue
    after = os.times()
    if process.returncode != 0:
        raise SystemExit(f"error: a measured process ended with exit code {process.returncode}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    # Processes that a child started may end without having been waited for; sampling has seen their CPU time.
    return TreeUsage(time.perf_counter() - started, max(cpu, cpu_seen), peak, output)


def _tree(root: int) -> list[int]:
    """Return a process and its descendants."""
    processes = [root]
    for process in processes:
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            try:
                processes += map(int, task.read_text().split())
            except OSError:  # it has ended
                continue
    return processes


def _memory(process: int) -> int:
    """Return the bytes of anonymous and shared memory of a process."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    words = [line.split() for line in lines if line.startswith(("RssAnon:", "RssShmem:"))]
    return 1024 * sum(int(word[1]) for word in words)


def _cpu_seconds(process: int) -> float:
    """Return the CPU seconds of a process and of its finished children."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, words[11:15])) / TICKS
