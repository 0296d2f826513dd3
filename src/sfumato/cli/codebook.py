"""``sfumato codebook``: what the columns and labels of a finished release mean."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.flag_values import load_policy
from sfumato.cli.flags import Force, Json, PolicyFile, ReleasedTable
from sfumato.cli.output import TextConsole, print_json, saying_replaced, version_and_seconds
from sfumato.cli.policy_flags import with_flags
from sfumato.cli.progress_bar import terminal_progress
from sfumato.cli.summaries import show_files
from sfumato.tables.locations import codebook_path


@with_flags(
    *("quasi_identifiers", "sensitive", "taxonomy", "type", "form", "separator", "encoding", "nulls", "sheet"),
    "language",
)
def codebook(
    release: ReleasedTable,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.html", help="Default: RELEASE.codebook.html.", readable=False),
    ] = None,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    force: Force = False,
    json: Json = False,
) -> None:
    """Explain every column and label of a release on one page, with counts from the release.

    Whoever may have the release may have the page. Without a policy, the certificate beside the release says what was
    asked for, and the taxonomies are looked for beside the release and in taxonomies/.

    Example: sfumato codebook release.csv
    """
    target = codebook_path(release) if output is None else output
    with terminal_progress() as progress, progress.phase("report"):
        from sfumato.api import codebook as codebook_of_release
        from sfumato.report.codebook import check_codebook
        from sfumato.tables.targets.target import refuse_input_as_output

        refuse_input_as_output(release, target)
        check_codebook(target, force=force)
        book = codebook_of_release(release, load_policy(policy), **flags)
        with saying_replaced(target):
            book.write(target, force=force)
    if json:
        print_json({**book.as_dict(), "file": str(target), **version_and_seconds(progress)}, [target])
    else:
        console = TextConsole()
        console.heading(book.title)
        show_files(console, [target])
