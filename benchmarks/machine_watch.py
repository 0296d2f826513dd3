"""How much of the machine other processes take while a command runs.

The CPU time of the whole machine, with what a hypervisor gave to others, less the CPU time of the command and of all
its descendants. Descendants whose parent ends before them become children of this process, and those that no parent
waits for are sampled, so that none is missed.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.process_tree import TreeSampler
from benchmarks.process_usage import ROOT

STAT = Path("/proc/stat")
TICKS = os.sysconf("SC_CLK_TCK")
BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
PR_SET_CHILD_SUBREAPER = 36
INTERVAL = 0.2  # seconds between two samples


@dataclass(frozen=True)
class Watched:
    """A finished command: its exit code, its CPU seconds, and the share of all cores that other processes took."""

    exit: int
    own_seconds: float
    others: float


def run_watched(command: Sequence[str]) -> Watched:
    """Run a command from the project's directory, and wait for everything that it started."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the processes of a benchmark cannot be counted on this system")
    started, machine, charged = time.perf_counter(), _machine_seconds(), _charged_seconds()
    process, sampler = subprocess.Popen(command, cwd=ROOT), TreeSampler(os.getpid())
    while True:
        sampler.sample()
        try:
            code = process.wait(INTERVAL)
            break
        except subprocess.TimeoutExpired:
            continue
    _wait_for_orphans()
    seconds = time.perf_counter() - started
    own = max(_charged_seconds() - charged, sampler.seconds)
    others = _machine_seconds() - machine - own
    return Watched(code, own, max(0.0, others) / (seconds * _cores()))


def _wait_for_orphans() -> None:
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:  # there are none left
            return


def _machine_seconds() -> float:
    """Return the CPU seconds of all cores since the start of the machine. Waiting for a disk is not work."""
    counts = dict(zip(FIELDS, map(int, STAT.read_text().splitlines()[0].split()[1:]), strict=False))
    return sum(counts[name] for name in BUSY) / TICKS


def _charged_seconds() -> float:
    """Return the CPU seconds of this process and of all that it has waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _cores() -> int:
    return sum(line.startswith("cpu") for line in STAT.read_text().splitlines()) - 1
