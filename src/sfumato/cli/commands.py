"""The commands. Each loads what it needs when it runs, so that asking for help is quick."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato._version import __version__
from sfumato.cli.aggregate import aggregate
from sfumato.cli.bound import bound
from sfumato.cli.compare import compare
from sfumato.cli.evaluate import evaluate
from sfumato.cli.flags import (
    EVERY_FLAG,
    OUTPUT_HELP,
    InputTable,
    Json,
    OriginalTable,
    PolicyFile,
    ReleasedTable,
    Temporary,
    by_column,
    with_flags,
)
from sfumato.cli.output import People, print_json
from sfumato.cli.plot import plot
from sfumato.cli.policy import propose
from sfumato.cli.progress_bar import progress_for_people
from sfumato.cli.report import check_pages, report_release, show_private, write_pages
from sfumato.cli.risk import risk
from sfumato.cli.rules import apply, fit
from sfumato.cli.summaries import (
    show_audit,
    show_choice,
    show_counters,
    show_counts,
    show_files,
    show_loss,
    show_losses,
    show_plan,
    show_queries,
    show_release,
    show_tasks,
)
from sfumato.cli.tradeoff import tradeoff
from sfumato.errors import TaxonomyError, UsageError
from sfumato.tables.locations import location_of, release_files

if TYPE_CHECKING:
    from sfumato.policy import Policy

QUERIES = "How well queries are answered"

# Paths are declared with readable=False throughout: Typer would call a file that may not be read a wrong flag (2), but
# it is an input that cannot be read (4), and an output need not be readable at all.
app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sfumato {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def sfumato(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version.")
    ] = False,
) -> None:
    """Anonymize microdata: blur quasi-identifiers until nobody can be singled out, prove it, and measure the loss.

    Example: sfumato anonymize patients.csv -o release.csv --quasi-identifiers age,zip,sex --other keep -k 10
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


@app.command()
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
            "--report", metavar="R.html", help="Also a page that says what was released; safe to share.", readable=False
        ),
    ] = None,
    report_private: Annotated[
        Path | None,
        typer.Option(
            "--report-private",
            metavar="FILE",
            help="Also a page with counts of the original, before and after: not to be shared.",
            readable=False,
        ),
    ] = None,
    bound: Annotated[
        bool, typer.Option("--bound", help="Also prove how far from the least possible loss the release is at most.")
    ] = False,
    temporary: Temporary = None,
    spark_master: Annotated[
        str | None,
        typer.Option(
            "--spark-master",
            metavar="URL",
            help="Of the Spark engine, such as local[4]; as Spark is configured when absent.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show how the table is understood and what would be done; write nothing.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the engine, passes, bytes and memory: planned, then counted.")
    ] = False,
    json: Json = False,
) -> None:
    """Make a release in which every record shares its quasi-identifiers with at least k - 1 others.

    Example: sfumato anonymize patients.csv -o release.csv --quasi-identifiers age,zip --sensitive diagnosis -k 10
    """
    if output is None and not dry_run:
        raise UsageError("the output is missing. Name a file with -o, or add --dry-run to see what would be done.")
    with progress_for_people() as progress:
        from sfumato.api import anonymize_to_file, check_output
        from sfumato.pipeline.prepare import prepare
        from sfumato.policy import merge_flags

        asked = merge_flags(_loaded(policy), **flags)
        if asked.engine.name == "spark":
            _check_with_spark(
                {"--dry-run": dry_run, "--explain": explain, "--bound": bound, "--report": report is not None},
                report_private,
            )
        if temporary is not None:
            tempfile.tempdir = str(temporary)
        if explain:
            from sfumato.pipeline.plan import choose

            show_choice(People(), choose(table, asked).as_dict())
        pages = {"report": report, "report_private": report_private}
        if report is not None or report_private is not None:
            check_pages(asked, table, output, pages)
        if not dry_run and output is not None:
            release = anonymize_to_file(table, asked, output, progress, bound=bound, spark_master=spark_master)
            written = write_pages(release, pages)
            summary = release.summary() | {key: str(file) for key, file in written.items()}
        else:
            from sfumato.cli.dry_run import plan_of

            if output is not None:
                check_output(table, asked, output)
            summary = plan_of(prepare(table, asked, progress), asked, progress)
    if json:
        print_json(summary)
    elif output is None or dry_run:
        show_plan(People(), summary)
    else:
        from sfumato.methods import method_named

        place = location_of(output)
        files: list[str | Path] = [output] if asked.engine.name == "spark" else []
        if not files:
            files += release_files(place, separated=method_named(asked.method.name).separates)
        files += written.values()
        show_release(People(), summary, files, f"sfumato audit {shlex.quote(place.shown)}")
        if explain:
            show_counters(People(), summary)
        show_private(People(), report_private, output)


def _check_with_spark(given: Mapping[str, bool], report_private: Path | None) -> None:
    """Refuse what the Spark engine does not do."""
    for flag, wanted in {**given, "--report-private": report_private is not None}.items():
        if wanted:
            raise UsageError(f"{flag} does not go with --engine spark. Leave it out; sfumato report reads the release.")


@app.command()
@with_flags(
    "quasi_identifiers",
    "sensitive",
    "identifiers",
    "k",
    "l",
    "require",
    "form",
    "separator",
    "encoding",
    "sheet",
    "memory",
)
def audit(
    release: ReleasedTable,
    original: Annotated[
        str | None,
        typer.Option("--original", metavar="TABLE", help="Also compare the kept columns with this table."),
    ] = None,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    temporary: Temporary = None,
    json: Json = False,
) -> int:
    """Say what holds in a finished release. Exit code 1 when it is not what the policy asks for.

    Without a policy the certificate beside the release says what to check.

    Example: sfumato audit release.csv --quasi-identifiers age,zip -k 10
    """
    with progress_for_people() as progress:
        from sfumato.api import audit as audit_release

        report = audit_release(
            release, _loaded(policy), original=original, temporary=temporary, progress=progress, **flags
        )
    if json:
        print_json(
            {
                "records": report.records,
                "classes": report.classes,
                "smallest_class": report.smallest_class,
                "holds": report.holds,
                "audit": report.as_dict(),
                "remarks": list(report.remarks),
                "version": __version__,
                "seconds": _rounded(progress.seconds),
            }
        )
    else:
        console = People()
        show_counts(
            console,
            {"released": report.records, "classes": report.classes, "smallest_class": report.smallest_class},
        )
        show_audit(console, report.as_dict())
        for remark in report.remarks:
            console.print(f"remark  {remark}")
        console.print("the release holds" if report.holds else "the release does not hold: do not share it")
    return 0 if report.holds else 1


@app.command()
@with_flags(
    "quasi_identifiers",
    "sensitive",
    "taxonomy",
    "type",
    "weight",
    "round",
    "k",
    "l",
    "require",
    "select",
    "form",
    "separator",
    "encoding",
    "decimal",
    "nulls",
    "date_format",
    "sheet",
    "memory",
)
def measure(
    original: OriginalTable,
    release: ReleasedTable,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="COLUMN", help="A class column of the release, for the metric CM and for queries."
        ),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(
            "--queries",
            metavar="LEVEL",
            rich_help_panel=QUERIES,
            help="Compare all group-bys of so many quasi-identifiers, with each sensitive column or the target.",
        ),
    ] = None,
    bins: Annotated[
        list[str] | None,
        typer.Option(
            "--bins",
            metavar="COL=A,B",
            rich_help_panel=QUERIES,
            help="Edges of the cells of a column with many numbers. May be repeated.",
        ),
    ] = None,
    range_queries: Annotated[
        int | None,
        typer.Option(
            "--range-queries", metavar="N", rich_help_panel=QUERIES, help="Ask so many random range-count queries."
        ),
    ] = None,
    range_attributes: Annotated[
        int | None,
        typer.Option(
            "--range-attributes",
            metavar="D",
            rich_help_panel=QUERIES,
            help="How many quasi-identifiers a range query has; all when absent.",
        ),
    ] = None,
    selectivity: Annotated[
        float,
        typer.Option(
            "--selectivity", metavar="S", rich_help_panel=QUERIES, help="The share of records a range query asks for."
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

    Without a policy the certificate beside the release says how.

    Example: sfumato measure patients.csv release.csv --policy policy.toml
    """
    with progress_for_people() as progress:
        from sfumato.api import audit as audit_release
        from sfumato.api import measure as measure_losses
        from sfumato.releases.certificate import read_certificate

        asked = _loaded(policy)
        try:
            losses = measure_losses(
                original,
                release,
                asked,
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
        except TaxonomyError as error:
            if asked is not None:
                raise
            raise TaxonomyError(
                f"{error} A certificate tells taxonomies by name only: give the policy with --policy, or each "
                "taxonomy with --taxonomy."
            ) from None
        report = audit_release(release, asked, temporary=temporary, progress=progress, **flags)
        certified = read_certificate(release) or {}
    summary: dict[str, Any] = {
        "records": report.records + losses.suppressed,
        "released": report.records,
        "classes": report.classes,
        "smallest_class": report.smallest_class,
        "suppressed": losses.suppressed,
        **losses.values,
        **({"workload": [task.as_dict() for task in losses.tasks]} if losses.tasks else {}),
        "columns": losses.columns,
        **({"queries": [one.as_dict() for one in losses.queries]} if losses.queries else {}),
        "audit": report.as_dict(),
        **{key: certified.get(key) for key in ("method", "chosen", "engine", "seed")},
        "version": __version__,
        "seconds": _rounded(progress.seconds),
    }
    if json:
        print_json(summary)
    else:
        console = People()
        show_counts(console, summary)
        show_audit(console, summary["audit"])
        show_loss(console, losses.values["gcp"], losses.columns)
        show_losses(console, losses.values)
        show_tasks(console, [task.as_dict() for task in losses.tasks])
        show_queries(console, losses.queries)


app.command()(aggregate)
app.command()(fit)
app.command()(apply)
app.command()(bound)
app.command()(compare)
app.command()(tradeoff)
app.command()(evaluate)
app.command()(plot)
app.command("policy")(propose)
app.command()(risk)
app.command("report")(report_release)


@app.command()
def generate(
    generator: Annotated[str, typer.Argument(metavar="census|agrawal|normal", help="The kind of table.")],
    records: Annotated[int, typer.Option("-n", "--records", metavar="N", help="How many records.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help=".parquet, .csv, .csv.gz or .csv.zst", readable=False)
    ],
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Same seed, same table.")] = 0,
    function: Annotated[
        str | None,
        typer.Option("--function", metavar="NAME", rich_help_panel="agrawal", help="C2 to C7, C9, R7 or R10."),
    ] = None,
    salary: Annotated[
        str | None, typer.Option("--salary", metavar="uniform|normal", rich_help_panel="agrawal", help="Its shape.")
    ] = None,
    random_constants: Annotated[
        bool,
        typer.Option(
            "--random-constants", rich_help_panel="agrawal", help="Draw the constants of C2 to C6 by the seed."
        ),
    ] = False,
    dimensions: Annotated[
        int | None,
        typer.Option("--dimensions", metavar="D", rich_help_panel="normal", help="How many quasi-identifiers."),
    ] = None,
    mean: Annotated[
        float | None, typer.Option("--mean", metavar="M", rich_help_panel="normal", help="Of every column.")
    ] = None,
    deviation: Annotated[
        float | None,
        typer.Option("--deviation", metavar="S", rich_help_panel="normal", help="Standard deviation of every column."),
    ] = None,
    json: Json = False,
) -> None:
    """Make a table of synthetic records with its policy and taxonomies; no real person is in it.

    Example: sfumato generate census -n 100000 -o census.parquet
    """
    options = {
        "function": function,
        "salary": salary,
        "random_constants": random_constants or None,
        "dimensions": dimensions,
        "mean": mean,
        "deviation": deviation,
    }
    given = {name: value for name, value in options.items() if value is not None}
    with progress_for_people() as progress, progress.phase("generate"):
        from sfumato.synthetic import GENERATORS
        from sfumato.synthetic import generate as generate_files

        files = generate_files(generator, records, output, seed=seed, **given)
    if json:
        print_json(
            {
                "generator": generator,
                "generator_version": GENERATORS[generator].version,
                "records": records,
                "seed": seed,
                "options": given,
                "files": [str(file) for file in files],
                "version": __version__,
                "seconds": _rounded(progress.seconds),
            }
        )
    else:
        console = People()
        console.heading(f"{records:,} synthetic records by {generator}, version {GENERATORS[generator].version}")
        show_files(console, files)
        table, policy = (shlex.quote(str(file)) for file in files[:2])
        console.print(f"next    sfumato anonymize {table} --policy {policy} -o release.parquet")


@app.command()
def methods(json: Json = False) -> None:
    """List the methods, their papers, and when to use which.

    Example: sfumato methods
    """
    from sfumato.cli.methods import listed_kinds, listed_methods, show_methods

    found, known = listed_methods(), listed_kinds()
    if json:
        print_json({"methods": found, "requirements": known, "version": __version__})
    else:
        show_methods(People(), found, known)


@app.command()
def demo(
    directory: Annotated[
        Path,
        typer.Option(
            "--directory", metavar="DIRECTORY", help="Where the files of the demonstration go.", readable=False
        ),
    ] = Path("demo"),
) -> None:
    """Show the whole path on synthetic records: generate, anonymize, audit, measure, report. Takes less than a minute.

    Example: sfumato demo --directory demo
    """
    from sfumato.cli.demo import run_demo

    run_demo(directory, People())


def _loaded(file: Path | None) -> Policy | None:
    from sfumato.policy import Policy

    return None if file is None else Policy.load(file)


def _rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in seconds.items()}
