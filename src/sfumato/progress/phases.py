"""The progress of a run: its phases, the time each took, and how far the current one has come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Progress:
    """Times the phases of a run. It shows nothing; the command line overrides the hooks to draw a progress bar."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.decisions: dict[str, Any] = {}
        """Decisions made during the run, by name, for callers that report them."""
        self.stopped = False
        """Whether the user asked to stop. Searches that can end early then end with the best result so far."""

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Time the block as the phase ``name``, which has ``total`` steps if that is known."""
        started = time.perf_counter()
        self.began(name, total)
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
            self.ended(name)

    def began(self, name: str, total: int | None) -> None:
        """Called when a phase begins."""

    def expect(self, steps: int) -> None:
        """Called when it becomes known how many steps the current phase has, from its beginning to its end."""

    def advance(self, steps: int) -> None:
        """Called when ``steps`` more steps of the current phase are done."""

    def ended(self, name: str) -> None:
        """Called when a phase ends."""

    def next_run(self, name: str, number: int, total: int) -> None:
        """Called when the next of several runs begins: run ``number`` of ``total``. Its phases follow."""

    def compiling(self) -> None:
        """Called when a kernel is compiled, which happens once per machine and version."""
