"""``sfumato policy``: a first policy for a table, with the reasons."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from sfumato._version import __version__
from sfumato.cli.flags import InputTable, Json, with_flags
from sfumato.cli.output import People, print_json
from sfumato.cli.progress_bar import progress_for_people
from sfumato.cli.risk import show_sets
from sfumato.cli.summaries import show_files, show_warnings
from sfumato.errors import UsageError
from sfumato.tables.locations import location_of, shown_name

if TYPE_CHECKING:
    from sfumato.proposal import Proposal
    from sfumato.proposal.propose import ProposedColumn

STYLES = {"identifier": "red", "quasi-identifier": "cyan", "decide": "yellow"}
SUFFIX = ".policy.toml"


@with_flags("k", "separator", "encoding", "decimal", "nulls", "date_format", "sheet")
def propose(
    table: InputTable,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="P.toml", help="The policy with its reasons.", readable=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a policy that is there already.")] = False,
    *,
    flags: Mapping[str, Any],
    json: Json = False,
) -> None:
    """Propose a policy: roles, types and taxonomies, each with its reason; and say which columns single people out.

    What neither name nor values tell is left to decide, and such a policy is refused until somebody has decided.

    Example: sfumato policy patients.csv -o policy.toml
    """
    if output is not None:
        _check_new(output, force=force)
    with progress_for_people() as progress:
        from sfumato.proposal import propose_policy

        proposal = propose_policy(table, k=flags.get("k"), input=flags.get("input"), progress=progress)
        if output is not None:
            proposal.save(output)
    if json:
        seconds = {name: round(value, 4) for name, value in progress.seconds.items()}
        file = None if output is None else str(output)
        print_json({**proposal.as_dict(), "file": file, "version": __version__, "seconds": seconds})
    else:
        _show(People(), proposal, table, output)


def _check_new(output: Path, *, force: bool) -> None:
    """Refuse to write over a policy that somebody may have worked on."""
    from sfumato.tables.targets.staging import check_target

    check_target(output)
    if output.exists() and not force:
        raise UsageError(f"{output} is there already. Choose another name, or add --force to write over it.")


def _show(console: People, proposal: Proposal, table: str, output: Path | None) -> None:
    console.heading(f"{proposal.records:,} records, {len(proposal.columns):,} columns; a proposal to check")
    _show_columns(console, proposal)
    read = proposal.policy.to_dict().get("input", {})
    if read:
        console.print("read with  " + ", ".join(f"{key} = {value!r}" for key, value in read.items()))
    if proposal.policy.privacy.person is not None:
        console.print(f"persons    have several records: {proposal.policy.privacy.person!r} says whose each is")
    for title, sets in (
        ("proposed quasi-identifiers that single people out together", proposal.dangerous(decided=True)),
        ("with columns that are still to decide", proposal.dangerous(decided=False)),
    ):
        if sets:
            console.print(f"\n{title}")
            show_sets(console, sets)
    if not any(one.unique for one in proposal.sets):
        console.print("\nno small set of these columns singles anybody out")
    for text in proposal.left_out:
        console.print(f"not all {text}")
    show_warnings(console, proposal.remarks)
    open_roles = len(proposal.undecided)
    if output is None:
        suggested = location_of(table).name.partition(".")[0] + SUFFIX
        console.print(
            f"nothing was written\nnext    sfumato policy {shlex.quote(shown_name(table))} -o {shlex.quote(suggested)}"
        )
    else:
        show_files(console, [output])
        left = f"give {open_roles:,} columns a role, " if open_roles else ""
        console.print(f"next    read {shlex.quote(str(output))}, {left}{_k_step(proposal)}then")
        console.print(
            f"        sfumato anonymize {shlex.quote(shown_name(table))} --policy {shlex.quote(str(output))} --dry-run"
        )


def _k_step(proposal: Proposal) -> str:
    return "set k, " if proposal.policy.privacy.k is None else ""


def _show_columns(console: People, proposal: Proposal) -> None:
    lines = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    lines.add_column("column", overflow="fold")
    lines.add_column("role", no_wrap=True)
    lines.add_column("as a quasi-identifier")
    lines.add_column("distinct", justify="right", no_wrap=True)
    lines.add_column("reason", overflow="fold")
    for column in proposal.columns:
        lines.add_row(
            Text(column.name),
            Text(column.role, style=STYLES[column.role]),
            Text(_kind(column), style="" if column.role == "quasi-identifier" else "dim"),
            f"{column.distinct:,}",
            Text(column.reason),
        )
    console.print(lines)


def _kind(column: ProposedColumn) -> str:
    """The type and the taxonomy, in a few words."""
    if column.described is None or column.role == "identifier":
        return ""
    taxonomy = column.described.model_dump(mode="json", exclude_none=True).get("taxonomy")
    if not isinstance(taxonomy, dict):
        return str(column.described.type)
    ((rule, steps),) = taxonomy.items()
    return f"{column.described.type}, {rule} {', '.join(map(str, steps))}"
