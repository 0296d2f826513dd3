"""``sfumato anonymize``: make a release."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.flag_values import load_policy
from sfumato.cli.flags import OUTPUT_HELP, Force, InputTable, Json, PolicyFile, Temporary, Trial
from sfumato.cli.output import TextConsole, print_json, say_replaced, saying_replaced
from sfumato.cli.policy_flags import EVERY_FLAG, with_flags
from sfumato.cli.progress_bar import terminal_progress
from sfumato.cli.report import SHAREABLE_POLICY, check_pages, warn_of_private_page
from sfumato.cli.summaries import show_choice, show_counters, show_plan, show_release
from sfumato.errors import UsageError
from sfumato.tables.locations import codebook_path, location_of, release_files, shown_name

if TYPE_CHECKING:
    from sfumato.errors import InfeasibleError
    from sfumato.policy import Policy


@with_flags(*EVERY_FLAG)
def anonymize(
    table: InputTable,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="OUTPUT", help=OUTPUT_HELP),
    ] = None,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="R.html",
            help="Also write a page about the release, for all who may have the release.",
            readable=False,
        ),
    ] = None,
    report_private: Annotated[
        Path | None,
        typer.Option(
            "--report-private",
            metavar="FILE",
            help="Also write a page that compares counts before and after. Do not share it.",
            readable=False,
        ),
    ] = None,
    shareable_policy: Annotated[
        Path | None,
        typer.Option(
            "--shareable-policy",
            metavar="P.toml",
            help="Also write the policy as the certificate has it, without paths and keys, for all who may have the "
            "release.",
            readable=False,
        ),
    ] = None,
    bound: Annotated[
        bool, typer.Option("--bound", help="Also prove how far the release is at most from the least possible loss.")
    ] = False,
    trial: Trial = False,
    temporary: Temporary = None,
    spark_master: Annotated[
        str | None,
        typer.Option(
            "--spark-master",
            metavar="URL",
            help="The master of the Spark engine, such as local[4]. Default: Spark's configuration.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show how the table is read, what a class may show and which requirements can be met. Write nothing.",
        ),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the engine, passes, bytes and memory: first planned, then counted.")
    ] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Make a release in which every record shares its quasi-identifiers with at least k - 1 others.

    Example: sfumato anonymize patients.csv -o release.csv --quasi-identifiers age,zip --sensitive diagnosis -k 10
    """
    files: list[str | Path] = []
    infeasible: InfeasibleError | None = None
    if output is None and not dry_run:
        raise UsageError("the output is missing. Name a file with -o, or add --dry-run to see what would be done.")
    with terminal_progress() as progress:
        from sfumato.api import anonymize_to_file
        from sfumato.pipeline.capabilities import BOUND, DRY_RUN, EXPLAIN, REPORT, REPORT_PRIVATE, SHARED_POLICY
        from sfumato.policy import merge_flags
        from sfumato.tables.targets.target import refuse_input_as_output

        if report is not None:
            from sfumato.report.release import refuse_trial

            refuse_trial(trial)
        full_policy = merge_flags(load_policy(policy), **flags)
        asked = {
            DRY_RUN: dry_run,
            EXPLAIN: explain,
            BOUND: bound,
            REPORT: report is not None,
            REPORT_PRIVATE: report_private is not None,
            SHARED_POLICY: shareable_policy is not None,
        }
        for feature in (feature for feature, wanted in asked.items() if wanted):
            feature.refuse_on(full_policy.engine.name)
        if temporary is not None:
            tempfile.tempdir = str(temporary)
        if explain:
            from sfumato.pipeline.engine_choice import plan_run

            plan, _ = plan_run(table, full_policy)
            show_choice(TextConsole(), plan.as_dict())
        pages = {"report": report, "report_private": report_private, SHAREABLE_POLICY: shareable_policy}
        codebook = _codebook(output, full_policy)
        if shareable_policy is not None and policy is not None:
            refuse_input_as_output(policy, shareable_policy)
        if any(page is not None for page in pages.values()):
            check_pages(full_policy, table, output, {**pages, "codebook": codebook}, force=force)
        if not dry_run and output is not None:
            written_pages = {key: file for key, file in {"codebook": codebook, **pages}.items() if file is not None}
            with saying_replaced(*written_pages.values()):
                release = anonymize_to_file(
                    table,
                    full_policy,
                    output,
                    progress,
                    force=force,
                    bound=bound,
                    trial=trial,
                    spark_master=spark_master,
                    **pages,
                )
                say_replaced(release.replaced)
            files = _files(output, full_policy, list(written_pages.values()))
            summary = release.summary() | {key: str(file) for key, file in written_pages.items()}
        else:
            from sfumato.studies.dry_run import examine

            summary, infeasible = examine(table, output, full_policy, progress, force=force, trial=trial)
    if json:
        print_json(summary, files)
    elif output is None or dry_run:
        show_plan(TextConsole(), summary)
    else:
        show_release(TextConsole(), summary, files, f"sfumato audit {shlex.quote(shown_name(output))}")
        if explain:
            show_counters(TextConsole(), summary)
        warn_of_private_page(TextConsole(), report_private, output)
    if infeasible is not None:
        raise infeasible


def _codebook(output: str | None, policy: Policy) -> Path | None:
    """Return where the codebook of the release is written, if the policy asks for one and the engine makes it."""
    if output is None or not policy.release.codebook or policy.engine.name == "spark":
        return None
    return codebook_path(output)


def _files(output: str, policy: Policy, pages: Sequence[Path]) -> list[str | Path]:
    """List what a release was written to."""
    if policy.engine.name == "spark":
        return [output]
    from sfumato.pipeline.engine_choice import tables_of

    return [*release_files(location_of(output), separated=tables_of(policy) > 1, pages=pages)]
