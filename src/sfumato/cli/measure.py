"""``sfumato measure``: what a release lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from sfumato.cli.flag_values import by_column, load_policy
from sfumato.cli.flags import Json, OriginalTable, PolicyFile, ReleasedTable, Temporary
from sfumato.cli.output import TextConsole, print_json, version_and_seconds
from sfumato.cli.policy_flags import READ_WITH, with_flags
from sfumato.cli.progress_bar import terminal_progress
from sfumato.cli.summaries import (
    show_audit,
    show_counts,
    show_left_out,
    show_loss,
    show_losses,
    show_queries,
    show_tasks,
)

QUERIES = "Accuracy of queries"


@with_flags(
    "quasi_identifiers",
    "sensitive",
    "taxonomy",
    "type",
    "weight",
    "round",
    "bottom",
    "top",
    "finest",
    "coarsest",
    "column_nulls",
    "derive",
    "k",
    "l",
    "require",
    "select",
    "suppression_cost",
    "form",
    *READ_WITH,
    "memory",
)
def measure(
    original: OriginalTable,
    release: ReleasedTable,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="COLUMN",
            help="A column of the release whose values are classes, for the classification metric CM and for queries.",
        ),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(
            "--queries",
            metavar="LEVEL",
            rich_help_panel=QUERIES,
            help="Compare all group-bys of LEVEL quasi-identifiers with each sensitive column or the target.",
        ),
    ] = None,
    bins: Annotated[
        list[str] | None,
        typer.Option(
            "--bins",
            metavar="COL=A,B",
            rich_help_panel=QUERIES,
            help="The edges of the bins of a column with many numbers. May be repeated.",
        ),
    ] = None,
    range_queries: Annotated[
        int | None,
        typer.Option(
            "--range-queries", metavar="N", rich_help_panel=QUERIES, help="Ask N random queries that count a range."
        ),
    ] = None,
    range_attributes: Annotated[
        int | None,
        typer.Option(
            "--range-attributes",
            metavar="D",
            rich_help_panel=QUERIES,
            help="How many quasi-identifiers a range query restricts. Default: all.",
        ),
    ] = None,
    selectivity: Annotated[
        float,
        typer.Option(
            "--selectivity", metavar="S", rich_help_panel=QUERIES, help="The share of the records that a query selects."
        ),
    ] = 0.05,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", rich_help_panel=QUERIES, help="Same seed, same range queries.")
    ] = 0,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    temporary: Temporary = None,
    json: Json = False,
) -> None:
    """Measure every loss of a release, from the two tables alone.

    Without a policy, the certificate beside the release says how, and taxonomies are looked for beside the release and
    in taxonomies/. Do not publish what is measured against the original: it can reveal records that were left out. The
    JSON lists it under private_figures.

    Example: sfumato measure patients.csv release.csv --policy policy.toml
    """
    with terminal_progress() as progress:
        from sfumato.api import audit as audit_release
        from sfumato.api import measure as measure_losses
        from sfumato.evaluation.public_figures import SIZE_LOSSES
        from sfumato.methods import AUTO
        from sfumato.releases.certificate import read_certificate

        loaded_policy = load_policy(policy)
        losses = measure_losses(
            original,
            release,
            loaded_policy,
            target=target,
            queries=queries,
            bins=by_column("--bins", "A,B", bins, lambda text: text.split(",")),
            range_queries=range_queries,
            range_attributes=range_attributes,
            selectivity=selectivity,
            seed=seed,
            temporary=temporary,
            progress=progress,
            **flags,
        )
        report = audit_release(release, loaded_policy, temporary=temporary, progress=progress, **flags)
        certificate = read_certificate(release) or {}
        method = certificate.get("method")
    tasks = [task.as_dict() for task in losses.tasks]
    summary: dict[str, Any] = {
        "records": report.records + losses.suppressed,
        "released": report.records,
        "classes": report.classes,
        "smallest_class": report.smallest_class,
        "suppressed": losses.suppressed,
        "suppression_cost": losses.suppression_cost,
        **losses.values,
        **({"workload": tasks} if tasks else {}),
        "columns": losses.columns,
        **({"queries": [accuracy.as_dict() for accuracy in losses.queries]} if losses.queries else {}),
        "audit": report.as_dict(),
        "method": method,
        "chosen": None if method == AUTO else method,  # what auto chose depends on the original, so nobody says
        **{key: certificate.get(key) for key in ("engine", "seed")},
        **version_and_seconds(progress),
    }
    public = {loss.name for loss in SIZE_LOSSES}
    measured = [*(name for name in losses.values if name not in public), "workload", "columns", "queries"]
    summary["private_figures"] = [key for key in measured if key in summary]
    if json:
        print_json(summary)
    else:
        console = TextConsole()
        show_counts(console, summary)
        show_audit(console, summary["audit"])
        show_loss(console, losses.values["gcp"], losses.columns)
        show_left_out(console, summary)
        show_losses(console, losses.values)
        show_tasks(console, tasks)
        show_queries(console, losses.queries)
