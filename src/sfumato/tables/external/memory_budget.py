"""How many records may be in memory at once under the limit that the user sets."""

from __future__ import annotations

from dataclasses import dataclass

# Bytes that the interpreter, the libraries and the compiled kernels take before any record is read.
BASE = 300 * 10**6
SHARE = 3  # one part in three of the rest is for the records themselves, the other two for what is computed from them


@dataclass(frozen=True)
class MemoryBudget:
    """The bytes that are left for records and for what is computed from them."""

    work: int

    @classmethod
    def of(cls, memory: int) -> MemoryBudget:
        """Subtract what the process itself takes from ``memory``, the limit of the whole process in bytes."""
        return cls(max(memory - BASE, memory // 8))

    def rows(self, width: int) -> int:
        """Return how many records of ``width`` bytes may be in memory at once, with all that sorting them takes."""
        return max(self.work // SHARE // (3 * width + 64), 16)

    def words(self, width: int) -> int:
        """Return how many records may be in memory as words that are sorted in place, and in rows of ``width`` bytes.

        While some are processed, the next ones are sorted.
        """
        return max(self.work // SHARE // (2 * (8 + width)), 16)

    def beside(self, values: int) -> MemoryBudget:
        """Return what is left beside ``values`` bytes that stay in memory."""
        return MemoryBudget(max(self.work - values, 0))
