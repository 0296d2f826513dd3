"""``sfumato policy``: a first policy for a table, with a reason for every role."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from sfumato.cli.arx_project import convert_project
from sfumato.cli.flags import InputTable, Json
from sfumato.cli.output import TextConsole, plain_table, print_json, saying_replaced, version_and_seconds
from sfumato.cli.policy_flags import READ_WITH, with_flags
from sfumato.cli.progress_bar import terminal_progress
from sfumato.cli.risk import show_sets
from sfumato.cli.summaries import show_files
from sfumato.errors import UsageError
from sfumato.tables.locations import location_of, shown_name

if TYPE_CHECKING:
    from sfumato.proposal import Proposal
    from sfumato.proposal.propose import ProposedColumn

STYLES = {"identifier": "red", "drop": "red", "quasi-identifier": "cyan", "decide": "yellow"}
SUFFIX = ".policy.toml"


@with_flags("k", "derive", "column_nulls", *READ_WITH)
def propose(
    table: InputTable,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="P.toml", help="Where to write the policy with its reasons.", readable=False
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="FILE",
            help="With a project of ARX: where to write the table that it holds. Without it, the table is not read.",
            readable=False,
        ),
    ] = None,
    *,
    flags: Mapping[str, Any],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    json: Json = False,
) -> None:
    """Propose a policy: roles, types and taxonomies, each with its reason. Also show which columns single people out.

    A column whose name and values do not reveal its role is left for you to decide. A policy with such a column is
    refused. Of a project of ARX (.deid), the policy is what the project says, with its hierarchies as taxonomies.

    Example: sfumato policy patients.csv -o policy.toml
    """
    if table.lower().endswith(".deid"):
        convert_project(Path(table), output, data, flags, force=force, json=json)
        return
    if data is not None:
        raise UsageError("--data is for projects of ARX (.deid). Remove it.")
    with terminal_progress() as progress:
        from sfumato.proposal import propose_policy
        from sfumato.proposal.propose import check_policy_target

        if output is not None:
            check_policy_target(output, force=force)
        proposal = propose_policy(
            table,
            k=flags.get("k"),
            input=flags.get("input"),
            derive=flags.get("derive"),
            column_nulls=flags.get("column_nulls"),
            progress=progress,
        )
        if output is not None:
            with saying_replaced(output):
                proposal.save(output, force=force)
    if json:
        file = None if output is None else str(output)
        print_json(
            {**proposal.as_dict(), "file": file, **version_and_seconds(progress)}, [] if file is None else [file]
        )
    else:
        again = "run the same command with" if flags else f"sfumato policy {shlex.quote(shown_name(table))}"
        _show(TextConsole(), proposal, table, output, again)


def _show(console: TextConsole, proposal: Proposal, table: str, output: Path | None, again: str) -> None:
    """Show the proposal. again: the words before -o, in the command that writes the file."""
    console.heading(f"{proposal.records:,} records, {len(proposal.columns):,} columns; check this proposal")
    _show_columns(console, proposal)
    input_options = proposal.policy.to_dict().get("input", {})
    if input_options:
        console.print("read with  " + ", ".join(f"{key} = {value!r}" for key, value in input_options.items()))
    if proposal.policy.privacy.person is not None:
        console.print(f"persons    have several records each, told apart by {proposal.policy.privacy.person!r}")
    for title, sets in (
        ("proposed quasi-identifiers that together single people out", proposal.dangerous(decided=True)),
        ("with columns whose role is undecided", proposal.dangerous(decided=False)),
    ):
        if sets:
            console.print(f"\n{title}")
            show_sets(console, sets)
    if not any(exposure.unique for exposure in proposal.sets):
        console.print("\nno small set of these columns singles anybody out")
    for text in proposal.left_out:
        console.print(f"not all {text}")
    for remark in proposal.remarks:
        console.warning(remark)
    undecided = len(proposal.undecided)
    if output is None:
        suggested = location_of(table).name.partition(".")[0] + SUFFIX
        console.print(f"nothing was written\nnext    {again} -o {shlex.quote(suggested)}")
    else:
        show_files(console, [output])
        roles_step = f"give {undecided:,} columns a role, " if undecided else ""
        k_step = "set k, " if proposal.policy.privacy.k is None else ""
        console.print(f"next    read {shlex.quote(str(output))}, {roles_step}{k_step}then")
        console.print(
            f"        sfumato anonymize {shlex.quote(shown_name(table))} --policy {shlex.quote(str(output))} --dry-run"
        )


def _show_columns(console: TextConsole, proposal: Proposal) -> None:
    table = plain_table()
    table.add_column("column", overflow="fold")
    table.add_column("role", no_wrap=True)
    table.add_column("as a quasi-identifier")
    table.add_column("distinct", justify="right", no_wrap=True)
    table.add_column("reason", overflow="fold")
    for column in proposal.columns:
        table.add_row(
            Text(column.name),
            Text(column.role, style=STYLES[column.role]),
            Text(_kind(column), style="" if column.role == "quasi-identifier" else "dim"),
            f"{column.distinct:,}",
            Text(column.reason),
        )
    console.print(table)


def _kind(column: ProposedColumn) -> str:
    """Describe the type and the levels in a few words."""
    if column.role in ("identifier", "drop"):
        return ""
    settings = column.settings
    parts = [str(settings.pop("type", ""))]
    for rule, steps in settings.pop("taxonomy", {}).items():
        parts.append(f"{rule} {', '.join(map(str, steps)) if isinstance(steps, list) else steps}")
    return "; ".join([*parts, *(f"{key} {value}" for key, value in settings.items())])
