"""Progress on standard error: one line a phase, once a run has lasted two seconds, and only on a terminal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Lock, Timer, current_thread, main_thread
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.text import Text

from sfumato.progress import Progress

DELAY = 2.0
COMPILING = "compiling kernels (once per machine and version)"
SEARCH = "improve"
WORDS = {
    "read": "reading",
    "profile": "profiling the columns",
    "encode": "encoding",
    "check": "checking",
    "collapse": "collapsing equal records",
    "partition": "forming classes",
    SEARCH: "searching for less loss (Ctrl-C takes what was found)",
    "neighbours": "finding the nearest neighbours",
    "boxes": "searching the cheapest boxes",
    "prices": "raising prices",
    "recode": "recoding",
    "arrange": "arranging",
    "write": "writing",
    "audit": "auditing",
    "certify": "certifying",
    "measure": "measuring",
    "generate": "generating",
    "draw": "drawing",
    "risk": "counting small classes",
    "propose": "looking at the columns",
    "report": "drawing the report",
}


@contextmanager
def progress_for_people() -> Iterator[Progress]:
    """Progress that is drawn where somebody can see it, and only timed elsewhere."""
    console = Console(stderr=True)
    if sys.stderr is None or not console.is_terminal:
        yield StoppableProgress()
        return
    drawn = DrawnProgress(console)
    try:
        yield drawn
    finally:
        drawn.close()


class StoppableProgress(Progress):
    """An interruption while a search goes on ends the search, and the run goes on with what was found; a second one
    ends the run.
    """

    _before: Any = None

    def began(self, name: str, total: int | None) -> None:
        free = current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
        if name == SEARCH and free:
            self._before = signal.signal(signal.SIGINT, self._interrupted)

    def ended(self, name: str) -> None:
        if name == SEARCH and self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _interrupted(self, *_: object) -> None:
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True


class PaceColumn(ProgressColumn):
    """How many records a second the present phase does, and how long it will go on so."""

    def render(self, task: Task) -> Text:
        if task.finished or not task.speed or task.time_remaining is None:
            return Text("")
        return Text(
            f"{_many(task.speed)}/s, {timedelta(seconds=int(task.time_remaining))} left", style="progress.remaining"
        )


def _many(number: float) -> str:
    """A number as people read it at a glance."""
    for name, size in (("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f}{name}"
    return f"{number:.0f}"


class DrawnProgress(StoppableProgress):
    """Draws the phases of a run, those that are over and the present one. Names no column and no value."""

    def __init__(self, console: Console, delay: float = DELAY) -> None:
        super().__init__()
        self._bars = Bars(
            SpinnerColumn(finished_text="·"),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            PaceColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._tasks: dict[str, TaskID] = {}
        self._runs: TaskID | None = None
        self._present: str | None = None
        self._closed = False
        self._lock = Lock()
        self._timer = Timer(delay, self._show)
        self._timer.daemon = True
        self._timer.start()

    def began(self, name: str, total: int | None) -> None:
        super().began(name, total)
        self._present = name
        if name in self._tasks:
            self._bars.reset(self._tasks[name], total=total, description=_words(name))
        else:
            self._tasks[name] = self._bars.add_task(_words(name), total=total)

    def advance(self, steps: int) -> None:
        if self._present is not None:
            self._bars.update(self._tasks[self._present], advance=steps, description=_words(self._present))

    def ended(self, name: str) -> None:
        super().ended(name)
        self._bars.update(self._tasks[name], total=1, completed=1, description=_words(name))
        self._present = None

    def turned_to(self, name: str, number: int, total: int) -> None:
        if self._runs is None:
            self._runs = self._bars.add_task("", total=total)
        told = f"{name} ({number:,} of {total:,})"
        self._bars.update(self._runs, completed=number - 1, total=total, description=told)

    def compiling(self) -> None:
        if self._present is not None:
            self._bars.update(self._tasks[self._present], description=COMPILING)

    def close(self) -> None:
        """Take everything off the screen."""
        with self._lock:
            self._closed = True
            self._timer.cancel()
            self._bars.stop()

    def _show(self) -> None:
        with self._lock:
            if not self._closed:
                self._bars.start()


def _words(name: str) -> str:
    return WORDS.get(name, name)
