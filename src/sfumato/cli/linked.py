"""``sfumato linked``: release several tables about the same persons together."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.exit_codes import FAILS, HOLDS
from sfumato.cli.flags import Force, Json
from sfumato.cli.output import TextConsole, print_json, say_replaced, version_and_seconds
from sfumato.cli.progress_bar import terminal_progress
from sfumato.cli.summaries import show_audit, show_counts, show_files


def linked(
    tables: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="The folder with tables.toml, or another file that names tables.", readable=False
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Make the releases and check them, and write nothing.")
    ] = False,
    force: Force = False,
    json: Json = False,
) -> int:
    """Release tables about the same persons together, once they hold jointly.

    Every table is released under its own policy. The releases are then joined by all that they share: pseudonyms, kept
    columns, quasi-identifiers. They are published if at least k persons are left for every record, or not at all.

    Example: sfumato linked hospital
    """
    with terminal_progress() as progress:
        from sfumato.api import anonymize_linked

        release = anonymize_linked(tables, write=not dry_run, force=force, progress=progress)
        summary = release.summary()
    if json:
        print_json({"dry_run": dry_run, **summary, **version_and_seconds(progress)}, release.files)
        return HOLDS if release.holds else FAILS
    for each in release.releases.values():
        say_replaced(each.replaced)
    console = TextConsole()
    for name, of_table in summary["tables"].items():
        console.heading(name)
        show_counts(console, of_table)
        show_audit(console, of_table["audit"])
        console.print(f"loss    {of_table['gcp']:.1%} (GCP), measured against the original: do not publish it")
    console.heading("joined")
    show_audit(console, [_with_acceptance(line) for line in summary["joint"]])
    persons = summary["persons_if_joined"]
    console.print(
        f"\nif something else joined the records of persons, the fewest who share all classes would be {persons:,}. "
        "Values reached are counted with the person key: do not publish them"
    )
    for text in _warnings(summary["tables"]):
        console.warning(text)
    seconds = sum(progress.seconds.values())
    console.print(f"\n{len(release.releases)} tables, {seconds:.1f} seconds")
    if dry_run:
        outcome = "the releases hold together" if release.holds else "the releases do not hold together"
        console.print(f"{outcome}; nothing was written")
    show_files(console, release.files)
    if not dry_run:
        console.print(f"next    sfumato audit {shlex.quote(str(release.files[0]))}")
    return HOLDS if release.holds else FAILS


def _with_acceptance(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a line that says whether the policy accepts that it does not hold."""
    return {**line, "requirement": f"accepted: {line['requirement']}"} if line["accepted"] else line


def _warnings(tables: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return every warning once, after the names of the tables that it is about, unless it is about all."""
    about: dict[str, list[str]] = {}
    for name, summary in tables.items():
        for text in summary["warnings"]:
            about.setdefault(text, []).append(name)
    return [text if len(names) == len(tables) else f"{', '.join(names)}: {text}" for text, names in about.items()]
