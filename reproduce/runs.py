"""Releases for figures: a table is read once, and methods are run on it, audited and timed in CPU seconds.

Seconds are those of forming classes, with the mapping to a line and its sorting, as the papers time their methods.
Reading and recoding cost the same for all. Before a method counts, it runs once on few records, so that neither
compilation nor loading of its kernels is in its time.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from reproduce.figure import Row
from sfumato import InfeasibleError, Policy, SfumatoWarning
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.pipeline.prepare import read_table, table_for
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.studies.trial import trial_release

FORMING = "partition"  # the phase in which classes are formed
WARM_RECORDS = 500
LOSSES = ("gcp", "c_dm", "max_size")
GROUPS = ("groups", "c_dm_groups")
"""How many groups a method formed, and C_DM over them, as the papers count. Groups that show the same are one class."""


class CpuProgress(Progress):
    """Counts the CPU seconds of every phase."""

    def __init__(self) -> None:
        super().__init__()
        self.cpu: dict[str, float] = {}
        self._started: dict[str, float] = {}

    def began(self, name: str, total: int | None) -> None:
        self._started[name] = time.process_time()

    def ended(self, name: str) -> None:
        self.cpu[name] = self.cpu.get(name, 0.0) + time.process_time() - self._started[name]


class Bench:
    """A table on which methods are tried. It is read once for all policies that differ in method, k and l alone.

    The policy must be complete: give it a k or an l, which every row then sets.
    """

    def __init__(self, data: pa.Table, policy: Policy) -> None:
        self._policy = policy
        self._progress = CpuProgress()
        with quiet():
            self.table = read_table(data, merge_flags(policy, method="auto"), self._progress)
            self._few = read_table(data.slice(0, WARM_RECORDS), merge_flags(policy, method="auto"), Progress())
        self._warm: set[str] = set()

    @property
    def records(self) -> int:
        return self.table.count

    def row(self, method: str, **flags: Any) -> Row:
        """Return the losses and CPU seconds of a release. They are None where no release can meet the policy."""
        asked = {name: value for name, value in flags.items() if name in ("k", "l")}
        if method not in self._warm:
            self._warm.add(method)
            self._run(self._few, method, {**flags, **{name: min(value, 2) for name, value in asked.items()}})
        found = self._run(self.table, method, flags)
        return {"method": method, **asked, "records": self.records, **found}

    def _run(self, table: TableInMemory, method: str, flags: dict[str, Any]) -> Row:
        before = self._progress.cpu.get(FORMING, 0.0)
        try:
            with quiet():
                release = trial_release(table_for(table, merge_flags(self._policy, method=method, **flags)))
        except InfeasibleError:
            return dict.fromkeys((*LOSSES, *GROUPS, "classes", "cpu seconds"))
        summary = release.summary()
        return {
            **{name: release.losses.values.get(name) for name in LOSSES},
            **{name: summary[name] for name in GROUPS},
            "classes": release.audit.classes,
            "cpu seconds": self._progress.cpu[FORMING] - before if table is self.table else None,
        }


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out the warnings that a steward needs: nothing is published here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SfumatoWarning)
        yield
