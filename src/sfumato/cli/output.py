"""Standard output: text for people, or exactly one JSON object for programs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

NARROWEST = 120


class People(Console):
    """Writes for people. A reader that goes away is no error: the work is done all the same."""

    def __init__(self) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, soft_wrap=True)
        if not self.is_terminal:
            self.width = max(self.width, NARROWEST)  # a file or a pipe has no width of its own

    def on_broken_pipe(self) -> None:
        self.quiet = True
        forget_standard_output()

    def heading(self, text: str) -> None:
        self.print(Text(text, style="bold"))

    @property
    def draws_blocks(self) -> bool:
        """Whether the characters that bars are made of can be written."""
        return self.encoding.lower().startswith("utf")


def print_json(content: Mapping[str, Any]) -> None:
    """Print one object. Only ASCII characters, so that it can be written and read anywhere."""
    try:
        print(json.dumps(content, indent=2), flush=True)
    except BrokenPipeError:
        forget_standard_output()


def forget_standard_output() -> None:
    """Send what is still to come to nowhere; otherwise the interpreter would complain when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(io.UnsupportedOperation):  # not a file: whoever put it there looks after it
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
