"""``sfumato aggregate``: MIN, MAX, AVG and SUM of a release of summary statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from sfumato._version import __version__
from sfumato.cli.flags import Json, PolicyFile, column_names, with_flags
from sfumato.cli.output import People, print_json
from sfumato.cli.progress_bar import progress_for_people

if TYPE_CHECKING:
    from sfumato.evaluation.aggregates import Aggregate


@with_flags("quasi_identifiers", "separator", "encoding", "sheet")
def aggregate(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="A release with --form statistics.")],
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="A,B", help="For the records that show each value of these quasi-identifiers."),
    ] = None,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    json: Json = False,
) -> None:
    """Compute MIN, MAX, AVG and SUM of the numbers of a release, from the release alone.

    Without a policy the certificate beside the release says what was asked for, and what means were rounded to.

    Example: sfumato aggregate release.csv --by sex
    """
    with progress_for_people() as progress, progress.phase("aggregate"):
        from sfumato import api
        from sfumato.policy import Policy

        asked = None if policy is None else Policy.load(policy)
        found = api.aggregate(release, asked, by=column_names("--by", by) if by else (), **_with_k(asked, flags))
    if json:
        seconds = {name: round(value, 4) for name, value in progress.seconds.items()}
        print_json({"aggregates": [one.as_dict() for one in found], "version": __version__, "seconds": seconds})
    else:
        _show(People(), found)


def _with_k(policy: object, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags that name the columns of a release made elsewhere; aggregates ask nothing of the classes."""
    return {**flags, "k": 1} if flags and policy is None else dict(flags)


def _show(console: People, found: list[Aggregate]) -> None:
    from sfumato.evaluation.aggregates import amount

    groups = list(found[0].group)
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    for heading in ("column", *groups):
        table.add_column(heading)
    for heading in ("records", "MIN", "MAX", "AVG", "within", "SUM"):
        table.add_column(heading, justify="right")
    for one in found:
        table.add_row(
            *(Text("null" if value is None else value) for value in (one.column, *one.group.values())),
            *(Text(text) for text in (f"{one.records:,}", amount(one.minimum), amount(one.maximum))),
            Text(amount(one.average)),
            Text("" if one.margin is None else f"± {one.margin:g}"),
            Text("" if one.sum is None else amount(one.sum)),
        )
    console.print(table)
    unknown = {one.column: 0 for one in found}
    for one in found:
        unknown[one.column] += one.unknown
    for name, count in unknown.items():
        if count:
            console.print(
                f"{count:,} records have no statistics of {name}: their class has missing values among others"
            )
