"""The plan of a run: the engine, and what it is expected to read, write and hold in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.tables.external.memory_budget import MemoryBudget

if TYPE_CHECKING:
    from sfumato.engines.disk.rothko_io_cost import ExpectedIo

PACKED = 2  # bytes that a column takes in a file on the way, approximately
LINE_READS, LINE_WRITES = 8, 5  # how often packed records are read and written along a line
RELEASE_READS, RELEASE_WRITES = 6, 4  # how often they are read and written after the classes are formed
FREQUENCY_GROUPS = 1 << 10  # that are counted at once, approximately


@dataclass(frozen=True)
class Plan:
    """An engine, the reason for it, and what is expected of the run. Sizes are bytes; unknown ones are None.

    needed: memory for the table. read: the size of the input. way: how classes are formed on disk: along a line, by
    regions divided by counts or samples, or by levels of columns.
    """

    engine: str
    reason: str
    memory: int
    records: int | None
    needed: int | None
    read: int | None
    columns: int
    k: int
    way: str = "line"  # counts, samples, levels

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON and the summary of a run have it."""
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
            "scratch_bytes_read": None if packed is None else packed * reads,
            "scratch_bytes_written": None if packed is None else packed * writes,
        }

    @property
    def warnings(self) -> list[str]:
        """What the user should know before the run."""
        if self.engine != "memory" or self.needed is None or self.needed <= self.memory:
            return []
        return [
            f"the table is expected to need about {self.needed / 1e9:.1f} GB of memory, more than the "
            f"{self.memory / 1e9:.1f} GB that are free or allowed; --engine disk keeps what does not fit in files"
        ]

    @property
    def width(self) -> int:
        """The bytes of a packed record, approximately."""
        return self.columns * PACKED

    @property
    def _divided(self) -> ExpectedIo | None:
        """What the analysis of Rothko expects, if regions are divided on disk."""
        from sfumato.engines.disk.rothko_io_cost import expected_sample_io, expected_tree_io

        if self.engine != "disk" or self.way in ("line", "levels") or self.records is None:
            return None
        fits = MemoryBudget.of(self.memory).rows(self.width)
        if self.way == "samples":
            return expected_sample_io(self.records, fits, self.k)
        return expected_tree_io(self.records, fits, FREQUENCY_GROUPS)

    @property
    def _scratch(self) -> tuple[int, int]:
        """How often packed records are read and written."""
        if self.engine == "memory":
            return 0, 0
        if self.way == "levels":
            return RELEASE_READS + 1, RELEASE_WRITES
        if self._divided is None:
            return LINE_READS, LINE_WRITES
        return RELEASE_READS + self._divided.reads, RELEASE_WRITES + self._divided.writes

    @property
    def _passes(self) -> list[str]:
        if self.engine == "memory":
            return ["read the input once", "hold it in memory", "write the release once", "read it once to audit it"]
        formed = "spread the codes over ranges of keys, write each range in order"
        if self.way == "levels":
            formed = "read the codes once to count the distinct records, which are held in memory"
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
