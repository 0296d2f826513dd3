"""``sfumato report``: a page about a finished release. ``anonymize`` writes the same pages with ``--report``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.exit_codes import exit_code_of
from sfumato.cli.flag_values import load_policy
from sfumato.cli.flags import AcceptUnchecked, Force, Json, OriginalTable, PolicyFile, ReleasedTable
from sfumato.cli.output import TextConsole, print_json, saying_replaced, version_and_seconds
from sfumato.cli.policy_flags import READ_WITH, with_flags
from sfumato.cli.progress_bar import terminal_progress
from sfumato.cli.summaries import TRIAL, show_files
from sfumato.errors import SfumatoError, UsageError
from sfumato.tables.locations import location_of, release_files

if TYPE_CHECKING:
    from sfumato.policy import Policy

SUFFIX = ".report.html"
SHAREABLE_POLICY = "shareable_policy"  # the key of the policy among the pages that are written with a release


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
    "form",
    "language",
    *READ_WITH,
)
def report_release(
    original: OriginalTable,
    release: ReleasedTable,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="R.html", help=f"The page. Default: RELEASE{SUFFIX}.", readable=False),
    ] = None,
    private: Annotated[
        Path | None,
        typer.Option(
            "--private",
            metavar="FILE",
            help="Also write a page that compares counts before and after. Do not share it.",
            readable=False,
        ),
    ] = None,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    accept_unchecked: AcceptUnchecked = False,
    force: Force = False,
    json: Json = False,
) -> int:
    """Make one page that says what a release shows and what it cost: offline, printable, as public as the release.

    Without a policy, the certificate beside the release says what is required, and taxonomies are looked for beside the
    release and in taxonomies/. The exit code is 1 if the release does not hold, and 5 if nothing fails but something
    could not be checked; the page says so too. A trial has a private page alone.

    Example: sfumato report patients.csv release.csv --policy policy.toml -o report.html
    """
    target = location_of(release).beside(SUFFIX) if output is None else output
    with terminal_progress() as progress, progress.phase("report"):
        from sfumato import api
        from sfumato.releases.certificate import read_certificate
        from sfumato.report.release import refuse_trial
        from sfumato.studies.report import check_page

        trial = bool((read_certificate(release) or {}).get("trial"))
        refuse_trial(trial and (private is None or output is not None))
        if private is not None:
            _check_different([target, private])
            check_page(private, original, release, force=force)
        loaded_policy, page = load_policy(policy), None
        written: list[Path] = []
        if not trial:
            with saying_replaced(target):
                page = api.report_release(original, release, target, loaded_policy, force=force, **flags)
            written.append(target)
        if private is not None:
            with _beside(*written), saying_replaced(private):
                api.report_private(original, release, private, loaded_policy, force=force, **flags)
            written.append(private)
    if json:
        about: dict[str, Any] = {"trial": True}
        if page is not None:
            about = {**page.summary(), "holds": page.holds, "file": str(target)}
        private_file = {} if private is None else {"private": str(private)}
        print_json({**about, **private_file, **version_and_seconds(progress)}, written)
    else:
        console = TextConsole()
        console.heading(TRIAL if page is None else page.verdict)
        show_files(console, written)
        warn_of_private_page(console, private, release)
    return 0 if page is None else exit_code_of(page.holds, accept_unchecked=accept_unchecked)


def check_pages(
    policy: Policy, table: str, output: str | None, pages: Mapping[str, Path | None], *, force: bool
) -> None:
    """Refuse pages that cannot be written, before the table is read."""
    from sfumato.report.release import check_report
    from sfumato.tables.targets.target import refuse_input_as_output

    wanted = [page for page in pages.values() if page is not None]
    for name, page in pages.items():
        if page is None:
            continue
        refuse_input_as_output(table, page)
        if name == SHAREABLE_POLICY:
            check_policy_file(page, force=force)
        else:
            check_report(page, force=force)
    outputs = wanted if output is None else release_files(location_of(output), separated=True, pages=wanted)
    _check_different(list(map(Path, outputs)))
    policy.check_complete()


def check_policy_file(target: Path, *, force: bool) -> None:
    """Refuse a target that cannot hold a policy."""
    from sfumato.tables.targets.replacement import check_replaceable
    from sfumato.tables.targets.staging import check_target

    if target.suffix.lower() != ".toml":
        raise UsageError(f"the policy to share, {target.name!r}, is a TOML file. Give it a name that ends in .toml.")
    check_target(target)
    check_replaceable(target, "policy", force=force)


@contextmanager
def _beside(*written: str | Path) -> Iterator[None]:
    """Say in an error what is in place although the next file could not be written."""
    try:
        yield
    except SfumatoError as error:
        if not written:
            raise
        text = f"{error} These were written and are complete: {', '.join(map(str, written))}."
        raise type(error)(text) from None


def warn_of_private_page(console: TextConsole, private: Path | None, release: str) -> None:
    """Repeat that the private page must not be shared, above all if it lies beside the release."""
    if private is None:
        return
    text = f"{private} contains counts of the original: do not share it"
    if private.absolute().parent == location_of(release).home:
        text += ", and move it away from the release"
    console.warning(text)


def _check_different(files: list[Path]) -> None:
    if len({file.absolute() for file in files}) < len(files):
        raise UsageError("two outputs have the same name. Give each page a file of its own.")
