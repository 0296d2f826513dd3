"""``sfumato demo``: the whole path on a synthetic table. Every step is a command that the user could type."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from sfumato.cli.flags import Force
from sfumato.cli.output import TextConsole, plain_table, say_replaced
from sfumato.cli.progress_bar import terminal_progress
from sfumato.cli.summaries import show_audit, show_counts, show_files, show_loss, show_losses
from sfumato.errors import AuditError

RECORDS = 100_000
K = 10
SHOWN = 6


def demo(
    directory: Annotated[
        Path,
        typer.Option(
            "--directory", metavar="DIRECTORY", help="Where to put the files of the demonstration.", readable=False
        ),
    ] = Path("demo"),
    force: Force = False,
) -> None:
    """Show the whole path on synthetic records: generate, anonymize, audit, measure, report. Takes less than a minute.

    Example: sfumato demo --directory demo
    """
    from sfumato.api import anonymize_to_file, report_release
    from sfumato.api import audit as audit_release
    from sfumato.api import measure as measure_losses
    from sfumato.policy import USUAL_EFFORT, Policy, merge_flags
    from sfumato.synthetic import generate
    from sfumato.tables.locations import certificate_path
    from sfumato.tables.targets.staging import cannot_write

    console = TextConsole()
    table, release = directory / "census.parquet", directory / "release.parquet"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(directory, error) from None

    _step(console, "1. a census-like table of synthetic records", "generate", "census", "-n", RECORDS, "-o", table)
    with terminal_progress() as progress, progress.phase("generate"):
        generated = generate("census", RECORDS, table, force=force)
    policy = merge_flags(Policy.load(policy_file := generated[1]), k=K)
    console.print(f"{RECORDS:,} records; the policy says which columns are quasi-identifiers: {policy_file}")

    with_policy = ("--policy", policy_file)
    _step(
        console, f"2. a release with k = {K}, searched for with effort {USUAL_EFFORT}",
        "anonymize", table, "-o", release, *with_policy, "-k", K,
    )  # fmt: skip
    with terminal_progress() as progress:
        released = anonymize_to_file(table, policy, release, progress, force=force)
        say_replaced(released.replaced)
        summary = released.summary()
    show_counts(console, summary)
    for text in summary["warnings"]:
        console.warning(text)
    console.print(_excerpt(release))
    console.print(f"{SHOWN} of the released records; a range or group stands for any value in it, * for any value")

    _step(console, "3. the proof, from the file alone", "audit", release)
    with terminal_progress() as progress, progress.phase("audit"):
        report = audit_release(release)
    show_audit(console, report.as_dict())
    if not report.holds:
        raise AuditError(
            "the release of the demonstration does not hold. This is a fault in Sfumato: please report it."
        )

    _step(console, "4. the price, from the two files", "measure", table, release, *with_policy)
    with terminal_progress() as progress, progress.phase("measure"):
        losses = measure_losses(table, release, policy)
    show_loss(console, losses.values["gcp"], losses.columns)
    show_losses(console, losses.values)

    page = directory / "report.html"
    _step(console, "5. a page to share", "report", table, release, *with_policy, "-o", page)
    with terminal_progress() as progress, progress.phase("report"):
        release_page = report_release(table, release, page, policy, force=force)
    console.print(release_page.verdict)
    console.print(f"open it in a browser: {page.absolute().as_uri()}")

    console.heading("\nthe files")
    show_files(console, [page, release, certificate_path(release), *generated[:2], directory / "taxonomies"])
    console.heading("\nwhat to try next")
    for command in (
        ("anonymize", table, "-o", directory / "release.csv", *with_policy, "-k", 50),
        ("anonymize", table, *with_policy, "--dry-run"),
        ("anonymize", "--help"),
    ):
        console.print(_command(*command))


def _step(console: TextConsole, title: str, *command: object) -> None:
    console.heading(f"\n{title}")
    console.print(Text(f"$ {_command(*command)}", style="dim"))


def _command(*parts: object) -> str:
    return shlex.join(["sfumato", *map(str, parts)])


def _excerpt(release: Path) -> Table:
    """Show some released records that are far from each other, because neighbours share a class and look alike."""
    import pyarrow as pa

    from sfumato.policy import InputOptions
    from sfumato.tables.sources.source import open_source

    source = open_source(release, InputOptions())
    records = pa.Table.from_batches(source.batches(source.names))
    rows = [number * records.num_rows // SHOWN for number in range(SHOWN)]
    table = plain_table()
    for name in source.names:
        table.add_column(Text(name), overflow="fold")
    for record in records.take(rows).to_pylist():
        table.add_row(*(Text("" if value is None else str(value)) for value in record.values()))
    return table
