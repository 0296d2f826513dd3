"""The limit of memory that a run keeps to: what the process holds, and whether it may take more.

The memory of a process is what it holds itself (RssAnon and RssShmem of Linux). Pages of files do not count, since the
system can drop them at any time. Estimates decide how much is done at once, so that a run on the same table with the
same limit does the same; what the process holds is measured only to refuse a step before it takes memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from sfumato.errors import UsageError

STATUS = Path("/proc/self/status")
LEAST = 250 * 10**6  # bytes with which the smallest table can be released
AT_THE_START = 150 * 10**6  # bytes that a process with the libraries holds at most, before it reads a table
SPARE = 20 * 10**6  # bytes that nobody claims: small objects, and a batch that is read ahead


class MemoryLimit:
    """A limit for the whole process, in bytes.

    What a Python session holds before the run counts only as far as every process holds it.
    """

    def __init__(self, memory: int) -> None:
        if memory < LEAST:
            raise UsageError(
                f"{in_words(memory)} of memory are too few for any run: Python and the libraries alone take most of "
                f"{in_words(LEAST)}. Free some memory, or allow at least 300 MB with --memory."
            )
        self.memory = memory
        self._most = memory + max(held_memory() - AT_THE_START, 0)

    def lacks(self, needed: int) -> int:
        """Return how many bytes a step of ``needed`` bytes would be above the limit; 0 if it is within."""
        if held_memory() + needed + SPARE > self._most:
            give_back_memory()
        return max(held_memory() + needed + SPARE - self._most, 0)

    def claim(self, needed: int, refusal: Callable[[int], UsageError]) -> None:
        """Refuse a step that would take ``needed`` bytes more than there are. refusal: the error, by missing bytes."""
        lacking = self.lacks(needed)
        if lacking:
            raise refusal(lacking)

    def claim_for(self, step: str, needed: int) -> None:
        """Refuse a step by its name, if nothing better can be said about it."""

        def refusal(lacking: int) -> UsageError:
            enough = more_than(self.memory + lacking)
            return UsageError(
                f"{step} takes about {in_words(self.memory + lacking)} of memory, and {in_words(self.memory)} are "
                f"allowed. Allow {in_words(enough)} with --memory, or release fewer columns."
            )

        self.claim(needed, refusal)


def held_memory() -> int:
    """Return the bytes that this process holds itself; 0 where the system does not tell."""
    try:
        lines = STATUS.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon:", "RssShmem:")))


def give_back_memory() -> None:
    """Give memory that was freed back to the system: the allocators of Arrow and of C keep it for later."""
    pa.default_memory_pool().release_unused()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):  # not the C library of GNU
        return


def more_than(memory: int) -> int:
    """Return a limit that should do, in round numbers."""
    return -(-int(memory * 1.15) // 10**8) * 10**8


def in_words(memory: int) -> str:
    return f"{memory / 1e9:,.1f} GB" if memory >= 10**9 else f"{memory / 1e6:,.0f} MB"
