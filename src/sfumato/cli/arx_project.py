"""``sfumato policy PROJECT.deid``: the policy of an ARX project."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from sfumato.cli.output import TextConsole, plain_table, print_json, saying_replaced, version_and_seconds
from sfumato.cli.progress_bar import terminal_progress
from sfumato.cli.summaries import show_files
from sfumato.errors import UsageError

if TYPE_CHECKING:
    from sfumato.proposal import ArxProject


def convert_project(
    path: Path, output: Path | None, data: Path | None, flags: Mapping[str, Any], *, force: bool, json: bool
) -> None:
    """Write the policy and the taxonomies of a project, and its table if that is asked for."""
    if flags:
        raise UsageError("flags about k, derived columns and reading are not for a project of ARX. Edit its policy.")
    if data is not None and output is None:
        raise UsageError("--data writes the table beside a policy. Name the policy too, with -o.")
    with terminal_progress() as progress:
        from sfumato.proposal.arx_project import arx_project

        with progress.phase("read"):
            project = arx_project(path)
        files: list[Path] = []
        if output is not None:
            planned = [
                output,
                *(output.parent / name for name in project.taxonomies),
                *([] if data is None else [data]),
            ]
            with saying_replaced(*planned):
                files = project.save(output, data=data, force=force)
    if json:
        written = list(map(str, files))
        print_json({**project.as_dict(), "files": written, **version_and_seconds(progress)}, written)
    else:
        _show(TextConsole(), project, path, output, data, files)


def _show(
    console: TextConsole, project: ArxProject, path: Path, output: Path | None, data: Path | None, files: list[Path]
) -> None:
    policy = project.policy
    console.heading(f"{len(policy.columns):,} columns of the ARX project {project.name}")
    table = plain_table("column", "role", "taxonomy", "finest", "coarsest")
    for name, column in policy.columns.items():
        settings = (column.taxonomy_file, column.finest, column.coarsest)
        table.add_row(Text(name), column.role, *("" if value is None else str(value) for value in settings))
    console.print(table)
    if policy.privacy.k is not None:
        console.print(f"k       {policy.privacy.k}")
    for requirement in policy.privacy.sensitive:
        parameters = ", ".join(f"{key} = {value}" for key, value in requirement.parameters().items())
        console.print(f"needs   {requirement.kind} of {requirement.attribute!r}, {parameters}")
    for remark in project.remarks:
        console.print(f"note    {remark}")
    for item in project.unsupported:
        console.warning(f"not taken over: {item}")
    if output is None:
        suggested = f"{path.stem}.policy.toml"
        console.print(
            f"nothing was written\nnext    sfumato policy {shlex.quote(str(path))} -o {shlex.quote(suggested)}"
        )
        return
    show_files(console, files)
    source = "TABLE" if data is None else shlex.quote(str(data))
    console.print(f"next    read {shlex.quote(str(output))}, then")
    console.print(f"        sfumato anonymize {source} --policy {shlex.quote(str(output))} --dry-run")
