"""A command and all the processes that it starts, looked at ten times a second until it ends."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.child import ROOT

EVERY = 0.1  # seconds between two looks
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Watched:
    """A finished command: seconds by the clock, CPU seconds, and the most memory that its processes held.

    largest_part: the most that a process which was looked for held with all that it started.
    """

    seconds: float
    cpu: float
    peak_bytes: int
    output: str
    largest_part: int = 0


def watch(command: list[Any], environment: Mapping[str, str] | None = None, part: str | None = None) -> Watched:
    """Run a command to its end. Memory is what processes hold by themselves: no pages of files that could be dropped.

    part: a word of the command line of the processes that are looked at each by itself.
    """
    started, before = time.perf_counter(), os.times()
    process = subprocess.Popen(
        list(map(str, command)), cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
    )
    peak = largest = 0
    seen = 0.0
    while True:
        tree = _tree(process.pid)
        peak = max(peak, sum(_held(one) for one in tree))
        seen = max(seen, sum(_used(one) for one in tree))
        if part is not None:
            for root in tree:
                if part.encode() in _command(root):
                    largest = max(largest, sum(_held(one) for one in _tree(root)))
        try:
            output, _ = process.communicate(timeout=EVERY)
            break
        except subprocess.TimeoutExpired:
            continue
    after = os.times()
    if process.returncode != 0:
        raise SystemExit(f"error: a measured process ended with exit code {process.returncode}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    # What was started by others than the command itself may end without having been waited for.
    return Watched(time.perf_counter() - started, max(cpu, seen), peak, output, largest)


def _tree(root: int) -> list[int]:
    """A process and all that it started."""
    found = [root]
    for process in found:
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:  # it has ended
                continue
    return found


def _held(process: int) -> int:
    """The bytes of memory that a process holds by itself."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    words = [line.split() for line in lines if line.startswith(("RssAnon:", "RssShmem:"))]
    return 1024 * sum(int(word[1]) for word in words)


def _used(process: int) -> float:
    """The CPU seconds of a process and of those of its children that have ended."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, words[11:15])) / TICKS


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""
