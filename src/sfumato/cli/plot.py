"""``sfumato plot``: the classes of a release as a picture."""

from __future__ import annotations

import shlex
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
from sfumato.tables.locations import location_of, shown_name

SUFFIX = ".classes.svg"


@with_flags("quasi_identifiers", "taxonomy", "type", "separator", "encoding", "nulls", "sheet", "max_expansion")
def plot(
    release: ReleasedTable,
    x: Annotated[
        str | None,
        typer.Option(
            "--x", metavar="COL", help="The horizontal quasi-identifier. Default: the one with the most values."
        ),
    ] = None,
    y: Annotated[
        str | None,
        typer.Option(
            "--y", metavar="COL", help="The vertical quasi-identifier. Default: the one with the most values after --x."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=f".svg, .png or .pdf. Default: RELEASE{SUFFIX}.",
            readable=False,
        ),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The title of the picture.")] = None,
    theme: Annotated[str, typer.Option("--theme", metavar="light|dark", help="The colours.")] = "light",
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw the classes of a release on two of its quasi-identifiers.

    Without a policy, the certificate beside the release names the quasi-identifiers, and the taxonomies that put
    categories in order are looked for beside the release and in taxonomies/.

    Example: sfumato plot release.csv --x age --y zip -o classes.svg
    """
    target = location_of(release).beside(SUFFIX) if output is None else output
    with terminal_progress() as progress, progress.phase("draw"):
        from sfumato.api import plot as plot_release
        from sfumato.pictures.picture import check_picture

        check_picture(target, force=force)
        picture = plot_release(release, x, y, load_policy(policy), title=title, theme=theme, **flags)
        with saying_replaced(target):
            picture.write(target, force=force)
    if json:
        print_json({**picture.facts, "file": str(target), **version_and_seconds(progress)}, [target])
    else:
        console = TextConsole()
        console.heading(picture.title)
        console.print(picture.description)
        for remark in picture.remarks:
            console.print(f"remark  {remark}; give the policy with --policy")
        show_files(console, [target])
        if x is None and y is None:
            console.print(f"next    sfumato plot {shlex.quote(shown_name(release))} --x COLUMN --y COLUMN")
