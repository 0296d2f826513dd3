"""``sfumato aggregate``: MIN, MAX, AVG and SUM of a release of summary statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from sfumato.cli.flag_values import column_names, load_policy
from sfumato.cli.flags import Json, PolicyFile
from sfumato.cli.output import TextConsole, plain_table, print_json, version_and_seconds
from sfumato.cli.policy_flags import with_flags
from sfumato.cli.progress_bar import terminal_progress

if TYPE_CHECKING:
    from sfumato.evaluation.aggregates import Aggregate


@with_flags("quasi_identifiers", "separator", "encoding", "sheet", "max_expansion")
def aggregate(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="A release made with --form statistics.")],
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="A,B",
            help="One row for each combination of the released values of these quasi-identifiers.",
        ),
    ] = None,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    json: Json = False,
) -> None:
    """Compute MIN, MAX, AVG and SUM of the numbers of a release, from the release alone.

    Without a policy, the certificate beside the release names the columns and what means were rounded to.

    Example: sfumato aggregate release.csv --by sex
    """
    with terminal_progress() as progress, progress.phase("aggregate"):
        from sfumato import api

        loaded_policy = load_policy(policy)
        # Flags may name the columns of a release made elsewhere. Aggregates require nothing of its classes.
        settings = {**flags, "k": 1} if flags and loaded_policy is None else flags
        aggregates = api.aggregate(release, loaded_policy, by=column_names("--by", by) if by else (), **settings)
    if json:
        print_json({"aggregates": [row.as_dict() for row in aggregates], **version_and_seconds(progress)})
    else:
        _show(TextConsole(), aggregates)


def _show(console: TextConsole, aggregates: list[Aggregate]) -> None:
    from sfumato.evaluation.aggregates import amount

    table = plain_table("column", *aggregates[0].group)
    for heading in ("records", "MIN", "MAX", "AVG", "within", "SUM"):
        table.add_column(heading, justify="right")
    unknown = {row.column: 0 for row in aggregates}
    for row in aggregates:
        unknown[row.column] += row.unknown
        table.add_row(
            *(Text("null" if value is None else value) for value in (row.column, *row.group.values())),
            *(Text(text) for text in (f"{row.records:,}", amount(row.minimum), amount(row.maximum))),
            Text(amount(row.average)),
            Text("" if row.margin is None else f"± {row.margin:g}"),
            Text("" if row.sum is None else amount(row.sum)),
        )
    console.print(table)
    for name, count in unknown.items():
        if count:
            console.print(
                f"{count:,} records have no statistics of {name}: their class has missing values among others"
            )
