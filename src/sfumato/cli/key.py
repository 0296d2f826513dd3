"""``sfumato key``: a new key for pseudonyms."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.output import TextConsole


def key(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the key. It must not exist.")],
) -> None:
    """Make a random key for pseudonyms, in a file that only you may read.

    The same key gives the same pseudonyms in every table. Whoever has it can find the pseudonym of anybody, and nobody
    can make it again: keep it apart from releases, and keep a copy.

    Example: sfumato key hospital.key
    """
    from sfumato.files.key_file import make_key

    make_key(file)
    console = TextConsole()
    console.print(f"wrote   {file}")
    console.print(f"next    name it with --pseudonym-key {shlex.quote(str(file))}, and keep it apart from releases")
