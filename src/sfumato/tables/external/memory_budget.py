"""How the memory that a user allows is spent."""

from __future__ import annotations

from dataclasses import dataclass

# What the interpreter, the libraries and the compiled kernels take before any record is read.
BASE = 300 * 10**6
SHARE = 3  # of what is left, this part is for the records that are worked on; the rest is for what is made of them


@dataclass(frozen=True)
class Budget:
    """The bytes for records at any one time."""

    work: int

    @classmethod
    def of(cls, memory: int) -> Budget:
        """What is left of the memory of the whole process."""
        return cls(max(memory - BASE, memory // 8))

    def rows(self, width: int) -> int:
        """How many records of so many bytes, and all that sorting them takes, may be in memory at once."""
        return max(self.work // SHARE // (3 * width + 64), 16)
