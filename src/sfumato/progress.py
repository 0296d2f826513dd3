"""What a run tells while it works: phases with their times, and how far each has come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Progress:
    """Times the phases of a run. Says nothing; the command line draws by overriding the hooks."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.told: dict[str, Any] = {}
        """What was decided on the way, by name, for whoever wants to know."""
        self.stopped = False
        """Has a person asked to come to an end? What can end early with what it has, does."""

    @contextmanager
    def phase(self, name: str, total: int | None = None) -> Iterator[None]:
        """Measure what is done inside as the phase ``name`` of ``total`` steps."""
        started = time.perf_counter()
        self.began(name, total)
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
            self.ended(name)

    def began(self, name: str, total: int | None) -> None:
        """A phase has begun."""

    def advance(self, steps: int) -> None:
        """So many steps of the present phase are done."""

    def ended(self, name: str) -> None:
        """The phase is over."""

    def turned_to(self, name: str, number: int, total: int) -> None:
        """The next of several runs has begun; its phases follow."""

    def compiling(self) -> None:
        """A kernel is being compiled, which happens once per machine and version."""
