"""``sfumato taxonomy``: skeletons, wizards and checks of taxonomies for a column."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.flag_values import load_policy
from sfumato.cli.flags import InputTable, Json, PolicyFile
from sfumato.cli.output import TextConsole, plain_table, print_json, saying_replaced, version_and_seconds
from sfumato.cli.policy_flags import READ_WITH, with_flags
from sfumato.cli.progress_bar import terminal_progress
from sfumato.cli.summaries import show_files
from sfumato.errors import TaxonomyError, UsageError
from sfumato.tables.locations import shown_name

if TYPE_CHECKING:
    from sfumato.studies.column_taxonomy import ColumnTaxonomy

WIZARDS = "Wizards: make a taxonomy"
OUTPUTS = "Outputs, which only you can read"


@with_flags(*READ_WITH)
def taxonomy(
    table: InputTable,
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="The column that needs a taxonomy.")],
    intervals: Annotated[
        str | None,
        typer.Option(
            "--intervals", metavar="5,10,20", rich_help_panel=WIZARDS, help="Numbers: intervals of these widths."
        ),
    ] = None,
    calendar: Annotated[
        str | None,
        typer.Option(
            "--calendar",
            metavar="month,year",
            rich_help_panel=WIZARDS,
            help="Dates: week, or some of month, quarter, year and decade.",
        ),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix",
            metavar="3,2",
            rich_help_panel=WIZARDS,
            help="Codes: groups that share as many first characters.",
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            metavar="8,4,2",
            rich_help_panel=WIZARDS,
            help="Groups of about equally many records, in the order of the values. Also on top of --intervals, "
            "--calendar or --prefix.",
        ),
    ] = None,
    frequent: Annotated[
        str | None,
        typer.Option(
            "--frequent",
            metavar="10",
            rich_help_panel=WIZARDS,
            help="The most frequent values apart, the others in one group.",
        ),
    ] = None,
    others: Annotated[
        str | None,
        typer.Option(
            "--others", metavar="NAME", rich_help_panel=WIZARDS, help="What --frequent calls the others: other."
        ),
    ] = None,
    ready: Annotated[
        str | None,
        typer.Option(
            "--ready",
            metavar="countries|months|weekdays|icd-10",
            rich_help_panel=WIZARDS,
            help="A ready-made taxonomy.",
        ),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            metavar="FILE",
            readable=False,
            help="Check this taxonomy file against the column. The exit code is 4 if it lacks a value.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            rich_help_panel=OUTPUTS,
            readable=False,
            help="The taxonomy file. Without a wizard, every value stands directly under *.",
        ),
    ] = None,
    missing: Annotated[
        Path | None,
        typer.Option(
            "--missing",
            metavar="FILE",
            rich_help_panel=OUTPUTS,
            readable=False,
            help="With --check or --ready: the values that the taxonomy lacks, as rows to fill in.",
        ),
    ] = None,
    counts: Annotated[
        Path | None,
        typer.Option(
            "--counts",
            metavar="FILE",
            rich_help_panel=OUTPUTS,
            readable=False,
            help="All values with their numbers of records.",
        ),
    ] = None,
    draw: Annotated[
        Path | None,
        typer.Option(
            "--draw",
            metavar="FILE",
            rich_help_panel=OUTPUTS,
            readable=False,
            help="A drawing of the tree with its records: .svg, .png or .pdf.",
        ),
    ] = None,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
    json: Json = False,
) -> int:
    """Make a taxonomy for a column, or check one: what the column holds, what fits, and which values are missing.

    No value is printed. Files with values of the table are readable by you alone.

    Example: sfumato taxonomy patients.csv country --ready countries
    """
    targets = {"taxonomy": output, "list of missing values": missing, "list of counts": counts, "picture": draw}
    files = [target for target in targets.values() if target is not None]
    if len({target.absolute() for target in files}) < len(files):
        raise UsageError("two outputs have the same name. Give each a file of its own.")
    if missing is not None and check is None and ready is None:
        raise UsageError("--missing lists what a taxonomy lacks. Name the taxonomy with --check or --ready.")
    recipe: dict[str, Any] = {
        "intervals": _numbers("--intervals", intervals),
        "calendar": _words(calendar),
        "prefix": _whole_numbers("--prefix", prefix),
        "groups": _whole_numbers("--groups", groups),
        "frequent": _whole_numbers("--frequent", frequent),
        "ready": ready,
        "check": check,
    }
    with terminal_progress() as progress:
        from sfumato.pictures.picture import check_picture
        from sfumato.studies.column_taxonomy import check_private_file
        from sfumato.studies.column_taxonomy import taxonomy as taxonomy_of

        for what, target in targets.items():
            if target is not None:
                check_private_file(target, what, table, force=force)
        if draw is not None:
            check_picture(draw, force=force)
        if others is not None:
            recipe["others"] = others
        result = taxonomy_of(table, column, load_policy(policy), input=flags.get("input"), progress=progress, **recipe)
        with progress.phase("write"), saying_replaced(*files):
            _write(result, targets, force=force)
    if json:
        written = list(map(str, files))
        print_json({**result.as_dict(), "files": written, **version_and_seconds(progress)}, written)
    else:
        command = f"sfumato taxonomy {shlex.quote(shown_name(table))} {shlex.quote(column)}"
        again = command if policy is None and not flags else "run the same command with"
        _show(TextConsole(), result, again, targets, checked=check is not None)
    # A file that is written has every value; a file or rule that exists already has not.
    return TaxonomyError.exit_code if result.outside and output is None else 0


def _write(result: ColumnTaxonomy, targets: Mapping[str, Path | None], *, force: bool) -> None:
    writers: dict[str, Callable[..., Path]] = {
        "taxonomy": result.write,
        "list of missing values": result.write_missing,
        "list of counts": result.write_counts,
        "picture": result.write_drawing,
    }
    for what, target in targets.items():
        if target is not None:
            writers[what](target, force=force)


def _show(
    console: TextConsole, result: ColumnTaxonomy, again: str, targets: Mapping[str, Path | None], *, checked: bool
) -> None:
    """Show what was found. again: the words before the flag of a wizard, in the command to run next."""
    counted = result.counted
    without = f", {counted.missing:,} records without a value" if counted.missing else ""
    console.heading(
        f"{result.column}: {result.type}, {result.distinct:,} different values in {counted.total:,} records{without}"
    )
    if result.fits:
        console.print("what fits")
        for flag, reason in result.fits.items():
            console.print(f"  {flag:<28} {reason}")
    if result.draft.rows.levels and result.draft.rows.leaves:
        _show_levels(console, result)
    output = targets["taxonomy"]
    if result.outside:
        console.warning(
            f"{result.made} lacks {len(result.outside):,} of the values, which {result.outside_records:,} records have"
            + (f"; {result.draft.remark}" if result.draft.remark else "")
            + ("; they stand directly under * in the file" if output is not None else "")
        )
    elif checked:
        console.print(f"{result.made} has every value of the column")
    if result.unused:
        console.print(f"unused  {result.unused:,} {'leaf' if result.unused == 1 else 'leaves'} that no record has")
    show_files(console, [target for target in targets.values() if target is not None])
    _show_next(console, result, again, targets, checked=checked)


def _show_levels(console: TextConsole, result: ColumnTaxonomy) -> None:
    shown = plain_table()
    for heading in ("level", "groups", "with records", "records of the smallest"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for level in result.levels():
        smallest = ", ".join(f"{count:,}" for count in level.smallest)
        name = f"{level.number} (values)" if level.number == 0 else str(level.number)
        shown.add_row(name, f"{level.groups:,}", f"{level.used:,}", smallest)
    console.print(shown)


def _show_next(
    console: TextConsole, result: ColumnTaxonomy, again: str, targets: Mapping[str, Path | None], *, checked: bool
) -> None:
    """Say what to write into the policy, or what to run."""
    from sfumato.proposal.toml_document import toml_value

    output, missing = targets["taxonomy"], targets["list of missing values"]
    if output is not None:
        console.print(f"policy  taxonomy = {toml_value(str(output))}")
    elif result.outside:
        step = "list them with --missing FILE" if missing is None else f"put the rows of {missing} into a taxonomy file"
        console.print(f"next    {step}, or name them in [input] nulls if they mean that the value is missing")
    elif result.fits:
        console.print(f"next    {again} {next(iter(result.fits))}")
    elif result.rule is not None:
        console.print(f"policy  taxonomy = {toml_value(result.rule)}")
    elif not checked:
        console.print("next    write it with -o FILE")


def _words(text: str | None) -> list[str]:
    return [] if text is None else [word.strip() for word in text.split(",")]


def _numbers(flag: str, text: str | None) -> list[float]:
    """Read numbers. Whole ones stay whole."""
    numbers: list[float] = []
    for word in _words(text):
        try:
            numbers.append(int(word) if word.isdecimal() else float(word))
        except ValueError:
            raise UsageError(f"{flag} {text!r} is not understood. Give numbers, such as {flag} 5,10,20.") from None
    return numbers


def _whole_numbers(flag: str, text: str | None) -> Sequence[int]:
    words = _words(text)
    if not all(word.isdecimal() and len(word) < 10 for word in words):
        raise UsageError(f"{flag} {text!r} is not understood. Give whole numbers, such as {flag} 3,2.")
    return [int(word) for word in words]
