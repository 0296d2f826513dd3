"""Which engine a run works in, and what that will cost: by the size of the table, as its file tells it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.engines.disk.rothko_io_cost import Expected, expected_sample_io, expected_tree_io
from sfumato.errors import UsageError
from sfumato.methods import AUTO, method_named
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.pipeline.disk import draft_on_disk, fit_on_disk, refuse_off_disk, refuse_to_fit_on_disk
from sfumato.pipeline.prepare import check_asked, draft_release
from sfumato.pipeline.prepare import fit_recoding as fit_in_memory
from sfumato.pipeline.release import Draft
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.learn_recoding import regional
from sfumato.releases.recoding import Recoding
from sfumato.tables.external.memory_budget import Budget
from sfumato.tables.sources.source import Source, is_text_file, kind_of_file, open_source

BASE = 300 * 10**6  # what a run takes before it reads a record
RECORD, COLUMN = 40, 10  # bytes that a record takes in memory, by itself and for every column; measured
PACKED = 2  # bytes that a column takes in a file on the way, about
LINE_READS, LINE_WRITES = 8, 5  # how often packed records are read and written along a line
RELEASE_READS, RELEASE_WRITES = 6, 4  # the same but for the forming of classes
FREQUENCY_GROUPS = 1 << 10  # that are counted at once, about
SHARE = 0.7  # of the memory that is free
LINE = 1 << 18  # bytes of text from which the length of a line is estimated
COMPRESSED = 6  # times as much text as the file has bytes, about


@dataclass(frozen=True)
class Choice:
    """An engine, why, and what is expected of it. Sizes are bytes; those that nobody knows yet are none."""

    engine: str
    reason: str
    memory: int
    records: int | None
    needed: int | None
    read: int | None
    columns: int
    k: int
    way: str = "line"  # or counts, samples: how regions are divided

    def as_dict(self) -> dict[str, Any]:
        """As JSON and the summary of a run have it."""
        packed = None if self.records is None else self.records * self.width
        reads, writes = self._scratch
        return {
            "engine": self.engine,
            "reason": self.reason,
            "memory": self.memory,
            "memory_needed": self.needed,
            "records": self.records,
            "passes": self._passes,
            "input_bytes": self.read,
            "scratch_bytes_read": _times(packed, reads),
            "scratch_bytes_written": _times(packed, writes),
        }

    @property
    def width(self) -> int:
        """Bytes of a packed record, about."""
        return self.columns * PACKED

    @property
    def _divided(self) -> Expected | None:
        """What the analysis of Rothko expects, where regions are divided on disk."""
        if self.engine != "disk" or self.way == "line" or self.records is None:
            return None
        fits = Budget.of(self.memory).rows(self.width)
        if self.way == "samples":
            return expected_sample_io(self.records, fits, self.k)
        return expected_tree_io(self.records, fits, FREQUENCY_GROUPS)

    @property
    def _scratch(self) -> tuple[int, int]:
        """How often packed records are read and written."""
        if self.engine == "memory":
            return 0, 0
        if self._divided is None:
            return LINE_READS, LINE_WRITES
        return RELEASE_READS + self._divided.reads, RELEASE_WRITES + self._divided.writes

    @property
    def _passes(self) -> list[str]:
        if self.engine == "memory":
            return ["read the input once", "hold it in memory", "write the release once", "read it once to audit it"]
        formed = "spread the codes over ranges of keys, write each range in order"
        if self._divided is not None:
            reads, writes = self._divided.reads, self._divided.writes
            formed = f"read the codes about {reads:,} times to divide them, and write them into parts {writes:,} times"
        return [
            "read the input twice: its values, then its records in codes",
            "read the codes twice to check them",
            formed,
            "read the classes twice: what they show, then every record with it",
            "spread the released rows over ranges, write the release in order",
            "read the release once to audit it",
        ]


def _times(size: int | None, times: int) -> int | None:
    return None if size is None else size * times


def choose(data: object, policy: Policy, refuse: Callable[[Policy], None] = refuse_off_disk) -> Choice:
    """The engine that the policy names, or the one that fits the table. refuse: what cannot be done on disk."""
    asked, given = policy.engine.name, policy.engine.memory
    check_asked(policy)
    if asked == "spark":
        raise UsageError("the Spark engine takes Spark's own tables. Use --engine auto, memory or disk for this one.")
    if asked == "disk":
        refuse(policy)
    source = open_source(data, policy.input_options)
    policy.check_columns(source.names)
    columns = len(policy.kept_columns(source.names))
    records, size = _size(data, source)
    needed = None if records is None else BASE + records * (RECORD + COLUMN * columns)
    memory = given or int(SHARE * free_memory())

    def chosen(engine: str, reason: str) -> Choice:
        return Choice(engine, reason, memory, records, needed, size, columns, policy.k, _way(policy))

    if asked != "auto":
        return chosen(asked, "asked for")
    if size is None:
        return chosen("memory", "the table is in memory already")
    if needed is None or needed <= memory:
        return chosen("memory", "the table fits into memory")
    try:
        refuse(policy)
    except UsageError as error:
        return chosen("memory", f"the table may not fit into memory, but {error}")
    return chosen("disk", "the table does not fit into memory")


def _way(policy: Policy) -> str:
    if not policy.method.name.startswith(MondrianMethod().name) and not (
        policy.workload and policy.method.name == AUTO
    ):
        return "line"
    return "samples" if policy.engine.sampled or policy.workload.selection else "counts"


def draft(data: object, policy: Policy, progress: Progress) -> Draft:
    """The released rows, made by the engine that fits, not yet audited."""
    choice = choose(data, policy)
    progress.told["engine"] = choice.as_dict()
    if choice.engine == "disk":
        return draft_on_disk(data, policy, choice.memory, progress)
    made = draft_release(data, policy, progress)
    if choice.needed is not None and choice.needed > choice.memory:
        made.warnings.append(
            f"about {choice.needed / 1e9:.1f} GB of memory were expected to be needed, more than the "
            f"{choice.memory / 1e9:.1f} GB that are free or allowed; --engine disk keeps to a limit"
        )
    return made


def fit_recoding(data: object, policy: Policy, progress: Progress) -> Recoding:
    """The recoding that a table teaches, learnt by the engine that fits."""
    regional(method_named(policy.method.name))  # or it is refused before the table is opened
    choice = choose(data, policy, refuse_to_fit_on_disk)
    progress.told["engine"] = {"engine": choice.engine, "reason": choice.reason}
    if choice.engine == "disk":
        return fit_on_disk(data, policy, choice.memory, progress)
    return fit_in_memory(data, policy, progress)


def free_memory() -> int:
    """The memory that this process can still get: of the machine, or of the group that it is limited to."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")] if hasattr(os, "sysconf") else [4 * 10**9]
    for path, key in (("/proc/meminfo", "MemAvailable:"), ("/sys/fs/cgroup/memory.max", "")):
        try:
            lines = Path(path).read_text("ascii").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        for line in lines:
            words = line.removeprefix(key).split()
            if line.startswith(key) and words and words[0].isdecimal():
                found.append(int(words[0]) * (1024 if len(words) > 1 else 1))
                break
    return min(found)


def _size(data: object, source: Source) -> tuple[int | None, int | None]:
    """How many records a table in a file has, about, and of how many bytes; of a frame no bytes are to be read."""
    if not isinstance(data, str | Path):
        return source.rows, None
    path = Path(data)
    try:
        if path.is_dir():
            return source.rows, sum(file.stat().st_size for file in path.rglob("*.parquet"))
        size = path.stat().st_size
        if source.rows is not None or not is_text_file(path):
            return source.rows, size
        with path.open("rb") as file:
            text = file.read(LINE)
    except OSError:
        return source.rows, 0  # no file of its own, such as a table of a database
    if kind_of_file(path)[1] is not None:
        return size * COMPRESSED // 64, size
    return size * (text.count(b"\n") or 1) // max(len(text), 1), size
