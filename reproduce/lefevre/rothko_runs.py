"""Runs of Rothko-T and Rothko-S on generated tables (section 6.1): what they read, write, prune and take.

The input is the coded table in a file of fixed-width records, as the paper's input is. The memory is limited by the
number of records that fit, TM in the paper, so that one thing varies at a time.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.engines.disk.class_file import ClassFile
from sfumato.engines.disk.coded_table import CodedTable, encode_input, profile_input
from sfumato.engines.disk.rothko_io_cost import IoCounters
from sfumato.engines.disk.rothko_s import rothko_s
from sfumato.engines.disk.rothko_t import rothko_t
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.pipeline.prepare import open_job
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.synthetic.agrawal import Agrawal
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.sources.source import open_source

AMPLE = 10**9  # bytes of memory: only the number of records is limited
BLOCK = 512  # bytes of an I/O request, as the paper counts them
SCHEDULING = Path("/proc/self/schedstat")
MEDIAN_SPLITS = MondrianMethod()
GAIN_SPLITS, REGRESSION_SPLITS = MondrianMethod(rule="information-gain"), MondrianMethod(rule="regression")


@dataclass(frozen=True)
class Fits(MemoryBudget):
    """A memory budget that limits the number of records alone."""

    records: int = 0

    def rows(self, width: int) -> int:
        return self.records


@dataclass(frozen=True)
class Coded:
    """A table in a file of coded records."""

    table: CodedTable
    requirements: Requirements
    scratch: Scratch

    @property
    def blocks(self) -> int:
        return -(-self.table.count * self.table.file.kind.itemsize // BLOCK)


@dataclass(frozen=True)
class Seconds:
    """CPU seconds in the program and in the system, and seconds in which the program could not go on."""

    user: float
    system: float
    wait: float

    @property
    def cpu(self) -> float:
        return self.user + self.system

    @property
    def total(self) -> float:
        return self.user + self.system + self.wait


@dataclass(frozen=True)
class RothkoRun:
    """The classes of a run, what it read, wrote and pruned, and how long it took."""

    classes: ClassFile
    counters: IoCounters
    seconds: Seconds

    @property
    def reads(self) -> int:
        return self.counters.read // BLOCK

    @property
    def writes(self) -> int:
        return self.counters.written // BLOCK


@contextmanager
def coded(data: pa.Table, policy: Policy) -> Iterator[Coded]:
    """Write the coded records of a table to a temporary file."""
    job = open_job(data, open_source(data, policy.input_options), policy, Progress())
    with Scratch() as scratch:
        yield Coded(encode_input(job, profile_input(job), MemoryBudget(AMPLE), scratch), job.requirements, scratch)


def drawn(records: int, seed: int = 0, **settings: Any) -> pa.Table:
    """Generate Agrawal's table. Salaries are in thousands, so that a histogram of them is as small as in the paper."""
    table = pa.Table.from_batches(list(Agrawal(**settings).batches(records, seed)))
    position = table.column_names.index("salary")
    return table.set_column(position, "salary", pa.array(table["salary"].to_numpy() // 1000 * 1000))


def policy_for(data: pa.Table, sensitive: str | None = None, **settings: Any) -> Policy:
    """Return a policy whose attributes are all numbers, as in section 6.1."""
    targets = [name for name in data.column_names if name in ("class", "target")]
    quasi = [name for name in data.column_names if name not in (*targets, sensitive)]
    return merge_flags(
        quasi_identifiers=quasi,
        sensitive=sensitive or (),
        other=targets,
        type=dict.fromkeys(quasi, "numeric"),
        accept_linkable=[*targets, *([sensitive] if sensitive else [])],
        **{"method": "mondrian", **settings},
    )


def by_counts(packed: Coded, fits: int, cache: int | None = None, method: MondrianMethod = MEDIAN_SPLITS) -> RothkoRun:
    """Run Rothko-T. ``cache``: how many frequency groups are counted at once, F_CACHE in the paper."""
    counters = IoCounters()
    classes, seconds = timed(
        lambda: rothko_t(
            packed.table,
            method,
            packed.requirements,
            Fits(AMPLE, fits),
            packed.scratch,
            Progress(),
            cache=cache,
            counters=counters,
        )
    )
    return RothkoRun(classes, counters, seconds)


def by_sample(
    packed: Coded, fits: int, sample: int | None = None, method: MondrianMethod = MEDIAN_SPLITS, **settings: Any
) -> RothkoRun:
    """Run Rothko-S as published: a part that no sample divides becomes one class, and is counted as nonminimal."""
    counters = IoCounters()
    classes, seconds = timed(
        lambda: rothko_s(
            packed.table,
            method,
            packed.requirements,
            Fits(AMPLE, fits),
            packed.scratch,
            Progress(),
            sample=sample,
            exact=False,
            counters=counters,
            **settings,
        )
    )
    return RothkoRun(classes, counters, seconds)


def timed(work: Callable[[], ClassFile]) -> tuple[ClassFile, Seconds]:
    """Do some work, and say how long it took.

    The seconds of waiting are those in which the main thread neither ran nor stood in the queue for a core. Where the
    system does not count that queue, they have it in them.
    """
    before, started, (ran, queued) = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter(), _scheduled()
    done = work()
    (ran_after, queued_after), ended = _scheduled(), time.perf_counter()
    after = resource.getrusage(resource.RUSAGE_SELF)
    wait = max(0.0, ended - started - (ran_after - ran) - (queued_after - queued))
    return done, Seconds(after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, wait)


def _scheduled() -> tuple[float, float]:
    """Return the seconds for which the main thread has run, and has stood in the queue for a core."""
    if not SCHEDULING.exists():
        return time.thread_time(), 0.0
    ran, queued, _ = SCHEDULING.read_text().split()
    return int(ran) / 1e9, int(queued) / 1e9
