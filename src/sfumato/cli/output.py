"""Standard output: text for people, or exactly one JSON object for programs.

Standard output that is closed, or whose reader goes away, is no error: nobody wants the text. Standard output that
cannot be written, as on a full disk, is an error of a command that only prints. The files of a command that writes some
are in place by then, so its exit code stays, and a line on standard error names them (``cli/main.py``).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfumato._version import __version__
from sfumato.progress import Progress

NARROWEST = 120
BAR = 24


class StandardOutput:
    """What became of standard output in this run, and the files that were written whatever became of it.

    ``reading_warnings``: what was said about how tables are read, which a program that reads JSON must see too.
    """

    def __init__(self) -> None:
        self.failure: OSError | None = None
        self.files: list[str] = []
        self.reading_warnings: list[str] = []

    def begin(self) -> None:
        """Start a run. Descriptors that the caller has closed lead nowhere from now on.

        Otherwise the next file that is opened would get the number of standard output, and text that a library prints
        would end up in it.
        """
        self.failure, self.files, self.reading_warnings = None, [], []
        for number in range(3):
            try:
                os.fstat(number)
            except OSError:
                os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest free number
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open until the end

    def failed(self, error: OSError) -> None:
        """Discard further output; remember the reason unless the reader went away."""
        if not isinstance(error, BrokenPipeError):
            self.failure = self.failure or error
        forget_standard_output()


standard_output = StandardOutput()


class TextConsole(Console):
    """Writes text for people. Text that cannot be written ends no command: its work goes on."""

    def __init__(self) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, soft_wrap=True)
        if not self.is_terminal:
            self.width = max(self.width, NARROWEST)  # a file or a pipe has no width of its own

    def print(self, *objects: Any, **options: Any) -> None:
        try:
            super().print(*objects, **options)
        except OSError as error:
            self.quiet = True
            standard_output.failed(error)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def heading(self, text: str) -> None:
        self.print(Text(text, style="bold"))

    def warning(self, text: str) -> None:
        self.print(Text("warning", style="yellow").append(f" {text}", style="default"))

    def bar(self, share: float) -> Text:
        """Draw a share between 0 and 1 as a bar, in block characters where the terminal can write them."""
        full, empty = ("█", "░") if self.encoding.lower().startswith("utf") else ("#", ".")
        length = round(BAR * share)
        return Text(full * length, style="cyan").append(empty * (BAR - length), style="dim")


def plain_table(*headings: str, collapse_padding: bool = False) -> Table:
    """Start a table with a line under its headings and no other rule."""
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False, collapse_padding=collapse_padding)
    for heading in headings:
        table.add_column(heading)
    return table


def print_json(content: Mapping[str, Any], written: Iterable[str | Path] = ()) -> None:
    """Print one object, in ASCII characters only, so that it can be written and read anywhere.

    What was noticed while tables were read is among its ``warnings``. written: the files of the command.
    """
    standard_output.files += map(str, written)
    if standard_output.reading_warnings:
        content = {**content, "warnings": [*content.get("warnings", ()), *standard_output.reading_warnings]}
    try:
        print(json.dumps(content, indent=2), flush=True)
    except OSError as error:
        standard_output.failed(error)


def say_replaced(replaced: Iterable[str | Path]) -> None:
    """Say on standard error what an output has replaced."""
    for what in replaced:
        with contextlib.suppress(OSError):  # nobody reads it; the summary says it too
            print(f"replaced {what}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def saying_replaced(*files: Path) -> Iterator[None]:
    """Say which of these files were replaced, once the block has written them."""
    existing = [file for file in files if os.path.lexists(file)]
    yield
    say_replaced(existing)


def version_and_seconds(progress: Progress) -> dict[str, Any]:
    """Return the two entries at the end of a command's JSON: the version, and the seconds of each phase."""
    return {
        "version": __version__,
        "seconds": {phase: round(seconds, 4) for phase, seconds in progress.seconds.items()},
    }


def forget_standard_output() -> None:
    """Discard further output. Otherwise the interpreter would complain about the broken pipe when it exits."""
    null_device = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(io.UnsupportedOperation):  # not a file: whoever replaced standard output handles it
        os.dup2(null_device, sys.stdout.fileno())
    os.close(null_device)
