"""``sfumato report``: a page about a finished release; and the same at the end of ``anonymize``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from sfumato._version import __version__
from sfumato.cli.flags import Json, OriginalTable, PolicyFile, ReleasedTable, with_flags
from sfumato.cli.output import People, print_json
from sfumato.cli.progress_bar import progress_for_people
from sfumato.cli.summaries import show_files
from sfumato.errors import TaxonomyError, UsageError
from sfumato.tables.locations import location_of, release_files

if TYPE_CHECKING:
    from sfumato.pipeline.release import Release
    from sfumato.policy import Policy

SUFFIX = ".report.html"


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
    "form",
    "separator",
    "encoding",
    "decimal",
    "nulls",
    "date_format",
    "sheet",
)
def report_release(
    original: OriginalTable,
    release: ReleasedTable,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="R.html", help=f"RELEASE{SUFFIX} when absent.", readable=False),
    ] = None,
    private: Annotated[
        Path | None,
        typer.Option(
            "--private",
            metavar="FILE",
            help="Also a page with counts of the original, before and after: not to be shared.",
            readable=False,
        ),
    ] = None,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    json: Json = False,
) -> int:
    """Make one page that says what a release shows and what it cost: offline, printable, safe to share.

    Without a policy the certificate beside the release says what was asked for. The policy is also where taxonomies are
    found. Exit code 1 when the release is not what the policy asks for; the page says so too.

    Example: sfumato report patients.csv release.csv --policy policy.toml -o report.html
    """
    target = location_of(release).beside(SUFFIX) if output is None else output
    with progress_for_people() as progress, progress.phase("report"):
        from sfumato import api
        from sfumato.policy import Policy

        if private is not None:
            _check_different([target, private])
        asked = None if policy is None else Policy.load(policy)
        try:
            made = api.report_release(original, release, target, asked, **flags)
            if private is not None:
                api.report_private(original, release, private, asked, **flags)
        except TaxonomyError as error:
            if asked is not None:
                raise
            raise TaxonomyError(
                f"{error} A certificate tells taxonomies by name only: give the policy with --policy, or each taxonomy "
                "with --taxonomy."
            ) from None
    summary = made.summary()
    holds = all(one["holds"] for one in summary["audit"])
    if json:
        seconds = {name: round(value, 4) for name, value in progress.seconds.items()}
        files = {"file": str(target)} | ({} if private is None else {"private": str(private)})
        print_json({**summary, "holds": holds, **files, "version": __version__, "seconds": seconds})
    else:
        console = People()
        console.heading(made.verdict)
        show_files(console, [target, *([] if private is None else [private])])
        show_private(console, private, release)
    return 0 if holds else 1


def check_pages(policy: Policy, table: str, output: str | None, pages: Mapping[str, Path | None]) -> None:
    """Refuse what can be seen to go wrong with the pages before the table is read."""
    from sfumato.report.release import check_report
    from sfumato.tables.targets.target import refuse_input_as_output

    given = [page for page in pages.values() if page is not None]
    for page in given:
        check_report(page)
        refuse_input_as_output(table, page)
    outputs = [] if output is None else release_files(location_of(output), separated=True)
    _check_different([*given, *map(Path, outputs)])
    policy.check_complete()


def write_pages(release: Release, pages: Mapping[str, Path | None]) -> dict[str, Path]:
    """Write the pages that were asked for about a release that was just written."""
    report, private = pages["report"], pages["report_private"]
    written = {}
    if report is not None:
        release.report(report)
        written["report"] = report
    if private is not None:
        release.report_private(private)
        written["report_private"] = private
    return written


def show_private(console: People, private: Path | None, release: str) -> None:
    """Say again what must not be shared, above all where it could be by accident."""
    if private is None:
        return
    text = f" {private} holds counts of the original: do not share it"
    if private.absolute().parent == location_of(release).home:
        text += ", and move it away from the release"
    console.print(Text("warning", style="yellow").append(text, style="default"))


def _check_different(files: list[Path]) -> None:
    if len({file.absolute() for file in files}) < len(files):
        raise UsageError("two outputs have the same name. Give each page a file of its own.")
