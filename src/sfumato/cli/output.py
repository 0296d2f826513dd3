"""Standard output: text for people, or exactly one JSON object for programs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfumato._version import __version__
from sfumato.progress import Progress

NARROWEST = 120
BAR = 24


class TextConsole(Console):
    """Writes text for people. A reader that closes the pipe early is no error: the work is done."""

    def __init__(self) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, soft_wrap=True)
        if not self.is_terminal:
            self.width = max(self.width, NARROWEST)  # a file or a pipe has no width of its own

    def on_broken_pipe(self) -> None:
        self.quiet = True
        forget_standard_output()

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


def print_json(content: Mapping[str, Any]) -> None:
    """Print one object, in ASCII characters only, so that it can be written and read anywhere."""
    try:
        print(json.dumps(content, indent=2), flush=True)
    except BrokenPipeError:
        forget_standard_output()


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
