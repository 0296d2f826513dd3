"""Progress on standard error: one line per phase, drawn only on a terminal and only after two seconds."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer, current_thread, main_thread
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.text import Text

from sfumato.progress import Progress
from sfumato.progress.time_left import TimeLeft, in_words

DELAY = 2.0
LEAST_PACE = 10  # steps a second that are worth a number: fewer are no records
COMPILING = "compiling kernels (once per machine and version)"
SEARCH = "improve"
WORDS = {
    "read": "reading",
    "profile": "profiling the columns",
    "encode": "encoding",
    "check": "checking",
    "order": "putting the records in order",
    "partition": "forming classes",
    SEARCH: "searching for less loss (Ctrl-C: stop and use the best so far)",
    "search": "searching the levels of the columns",
    "neighbours": "finding nearest neighbours",
    "boxes": "searching for the cheapest boxes",
    "prices": "raising prices",
    "recode": "recoding",
    "arrange": "ordering the rows",
    "write": "writing",
    "audit": "auditing",
    "certify": "certifying",
    "measure": "measuring",
    "generate": "generating",
    "draw": "drawing",
    "risk": "counting small classes",
    "propose": "examining the columns",
    "report": "making the report",
}


@contextmanager
def terminal_progress() -> Iterator[Progress]:
    """Yield progress that is drawn on a terminal and only timed elsewhere."""
    console = Console(stderr=True)
    if sys.stderr is None or not console.is_terminal:
        yield StoppableProgress()
        return
    progress = DrawnProgress(console)
    try:
        yield progress
    finally:
        progress.close()


class StoppableProgress(Progress):
    """Progress of a run whose search can be interrupted.

    The first interruption ends the search, and the run goes on with the best result so far. The second one ends the
    run.
    """

    _previous_handler: Any = None

    def began(self, name: str, total: int | None) -> None:
        interruptible = current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
        if name == SEARCH and interruptible:
            self._previous_handler = signal.signal(signal.SIGINT, self._interrupted)

    def ended(self, name: str) -> None:
        if name == SEARCH and self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)
            self._previous_handler = None

    def _interrupted(self, *_: object) -> None:
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True


class PaceColumn(ProgressColumn):
    """Shows how many records a second the current phase does, and about how long the rest will take."""

    def __init__(self) -> None:
        super().__init__()
        self._estimates: dict[TaskID, TimeLeft] = {}

    def render(self, task: Task) -> Text:
        if task.finished or task.start_time is None:
            return Text("")
        estimate = self._estimates.get(task.id)
        if estimate is None or estimate.started != task.start_time:  # a phase that begins again is another one
            estimate = self._estimates[task.id] = TimeLeft(task.start_time)
        left = estimate.seconds(task.get_time(), task.completed, task.total)
        speed = task.speed or 0.0
        pace = f"{_short_number(speed)}/s" if speed >= LEAST_PACE else None
        words = [pace, None if left is None else in_words(left)]
        return Text(", ".join(word for word in words if word is not None), style="progress.remaining")


def _short_number(number: float) -> str:
    """Write a number so that people read it at a glance."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}"


class DrawnProgress(StoppableProgress):
    """Draws the finished phases of a run and the current one. Shows no name of a column and no value."""

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
        self._current: str | None = None
        self._closed = False
        self._lock = Lock()
        self._timer = Timer(delay, self._show)
        self._timer.daemon = True
        self._timer.start()

    def began(self, name: str, total: int | None) -> None:
        super().began(name, total)
        self._current = name
        if name in self._tasks:
            self._task(name).total = total
            self._bars.reset(self._tasks[name], description=_description(name))
        else:
            self._tasks[name] = self._bars.add_task(_description(name), total=total)

    def _task(self, name: str) -> Task:
        return next(task for task in self._bars.tasks if task.id == self._tasks[name])

    def expect(self, steps: int) -> None:
        if self._current is not None:
            self._bars.update(self._tasks[self._current], total=steps)

    def advance(self, steps: int) -> None:
        current = self._current
        if current is None:
            return
        task = self._task(current)
        if task.total is not None and task.completed + steps > task.total:
            # There is more to do than was known, and nobody knows how much.
            task.total = task.finished_time = None
        self._bars.update(task.id, advance=steps, description=_description(current))

    def ended(self, name: str) -> None:
        super().ended(name)
        self._bars.update(self._tasks[name], total=1, completed=1, description=_description(name))
        self._current = None

    def next_run(self, name: str, number: int, total: int) -> None:
        if self._runs is None:
            self._runs = self._bars.add_task("", total=total)
        description = f"{name} ({number:,} of {total:,})"
        self._bars.update(self._runs, completed=number - 1, total=total, description=description)

    def compiling(self) -> None:
        if self._current is not None:
            self._bars.update(self._tasks[self._current], description=COMPILING)

    def close(self) -> None:
        """Remove the bars from the screen."""
        with self._lock:
            self._closed = True
            self._timer.cancel()
            self._bars.stop()

    def _show(self) -> None:
        with self._lock:
            if not self._closed:
                self._bars.start()


def _description(name: str) -> str:
    return WORDS.get(name, name)
