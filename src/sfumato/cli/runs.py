"""``sfumato runs``: the releases of the run record, and what became of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from sfumato._version import __version__
from sfumato.cli.flags import Json
from sfumato.cli.output import TextConsole, plain_table, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sfumato.releases.run_record import RecordedRun

NUMBERS = "N,N"
PANEL = "What became of a release"


def runs(
    never_published: Annotated[
        str | None,
        typer.Option(
            "--never-published",
            metavar=NUMBERS,
            rich_help_panel=PANEL,
            help="Nobody else has these releases: no later one is warned of them.",
        ),
    ] = None,
    withdrawn: Annotated[
        str | None,
        typer.Option(
            "--withdrawn",
            metavar=NUMBERS,
            rich_help_panel=PANEL,
            help="These were published and withdrawn: later ones are warned that somebody may still have a copy.",
        ),
    ] = None,
    unmark: Annotated[
        str | None,
        typer.Option("--unmark", metavar=NUMBERS, rich_help_panel=PANEL, help="Take such a mark back."),
    ] = None,
    json: Json = False,
) -> None:
    """List the releases that you have made on this machine, and say which of them nobody has.

    A later release of the same table, or of one that shares its records, is warned of every release in this list.
    Trials are not in it.

    Example: sfumato runs --never-published 3,4
    """
    from sfumato.cli.flag_values import many_values
    from sfumato.errors import UsageError
    from sfumato.releases.run_record import Mark, mark_runs
    from sfumato.releases.run_record import runs as recorded

    asked: list[tuple[str, str | None, Mark | None]] = [
        ("--never-published", never_published, "never-published"),
        ("--withdrawn", withdrawn, "withdrawn"),
        ("--unmark", unmark, None),
    ]
    marks: dict[int, Mark | None] = {}
    for flag, text, mark in asked:
        for number in [] if text is None else many_values(flag, text):
            if number in marks:
                raise UsageError(f"{flag} names the run {number:,}, which another flag names too. Name it once.")
            marks[number] = mark
    mark_runs(marks)
    found = recorded()
    if json:
        print_json({"runs": [run.as_dict() for run in found], "version": __version__})
        return
    _show(TextConsole(), found)


def _show(console: TextConsole, found: Sequence[RecordedRun]) -> None:
    from sfumato.releases.run_record import state_directory

    if not found:
        console.print("no release is recorded")
        return
    table = plain_table()
    table.add_column("run", justify="right")
    for heading in ("when (UTC)", "table", "release", "requirements"):
        table.add_column(heading, overflow="fold")
    table.add_column("records", justify="right")
    table.add_column("engine")
    table.add_column("mark")
    for run in found:
        table.add_row(
            str(run.number),
            Text("" if run.time is None else f"{run.time:%Y-%m-%d %H:%M}"),
            Text(_shortened(run.input or "")),
            Text(_shortened(run.output or "")),
            Text("; ".join(run.requirements)),
            "" if run.released is None else f"{run.released:,}",
            Text(run.engine or ""),
            Text((run.mark or "").replace("-", " ")),
        )
    console.print(table)
    console.print(f"record  {state_directory() / 'runs.jsonl'}, for you alone")
    if any(run.mark is None for run in found):
        console.print("next    sfumato runs --never-published N for one that nobody else has, so that it warns no more")


def _shortened(place: str) -> str:
    """Return a path of the record without the working directory, if it lies there."""
    return place.removeprefix(os.path.join(os.getcwd(), ""))
