"""``sfumato compare``: methods side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from sfumato.cli.flags import FLAGS_OF_MANY, InputTable, Json, ManyK, ManyL, PolicyFile, many_values, with_flags
from sfumato.cli.output import People, print_json
from sfumato.cli.progress_bar import progress_for_people
from sfumato.cli.summaries import show_files

if TYPE_CHECKING:
    from sfumato.evaluation.comparison_points import Row
    from sfumato.report.comparison import Cell, Comparison

UNBOUNDED = 10_000  # characters in a line
# What a narrow window goes without, the first of them first.
EXPENDABLE = ("smallest box", "least MAXSIZE", "MAXSIZE", "ratio", "C_DM", "total, seconds", "C_AVG", "left out")


@with_flags(*FLAGS_OF_MANY)
def compare(
    table: InputTable,
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            metavar="A,B",
            help="See: sfumato methods. With 'all', every method that accepts what is asked for.",
        ),
    ] = "all",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=".html for a page, .svg, .png or .pdf for the curves, .csv or .json for the table.",
            readable=False,
        ),
    ] = None,
    theme: Annotated[
        str, typer.Option("--theme", metavar="light|dark", help="The colours of .svg, .png and .pdf.")
    ] = "light",
    policy: PolicyFile = None,
    k: ManyK = None,
    l: ManyL = None,
    *,
    flags: Mapping[str, Any],
    json: Json = False,
) -> int:
    """Measure methods side by side: loss, classes and time, for every k and l. Makes no release.

    A method that fails says why and the others go on. Exit code 0 when any has a result.

    Example: sfumato compare patients.csv --policy policy.toml --methods hilbert,idistance -k 5,10,25,50 -o methods.html
    """
    every_k = None if k is None else many_values("-k", k)
    every_l = None if l is None else many_values("-l", l)
    rows: list[Row] = []
    try:
        with progress_for_people() as progress:
            from sfumato.evaluation.comparison_points import points_of
            from sfumato.pictures.theme import theme_named
            from sfumato.policy import Policy, merge_flags
            from sfumato.report.comparison import Comparison
            from sfumato.report.result_files import check_results
            from sfumato.studies.compare import compare_points

            theme_named(theme)
            asked = merge_flags(None if policy is None else Policy.load(policy), **flags)
            points = points_of(asked, methods, every_k, every_l)
            if output is not None:
                check_results(table, output)
            for row in compare_points(table, points, progress):
                rows.append(row)
    finally:
        if rows:  # also when it was interrupted
            comparison = Comparison(rows, points, table, progress.seconds)
            if json:
                print_json(comparison.summary())
            else:
                _show(People(), comparison)
    if output is not None and comparison.has_results:
        comparison.write(output, theme=theme)
        if not json:
            show_files(People(), [output])
    return comparison.exit_code


def _show(console: People, comparison: Comparison) -> None:
    """The table, why rows have no figures, and what else is to be known."""
    from sfumato.report.comparison import by_error, places, remarks

    rows = comparison.results
    console.heading(f"{comparison.records:,} records, {len(rows):,} points; no release was made")
    _show_table(console, rows)
    for text, failed in by_error(rows).items():
        console.print(Text(f"{'; '.join(places(failed, rows))}: ", style="yellow").append(text, style="default"))
    for text in remarks(rows):
        console.print(text)
    if not comparison.complete:
        console.print(f"interrupted after {len(rows):,} of {comparison.points:,} points")


def _show_table(console: People, rows: Sequence[Row]) -> None:
    """As many columns as the window has room for."""
    from sfumato.report.comparison import columns_of

    columns = columns_of(rows)
    expendable = [name for name in EXPENDABLE if name in columns]
    left_out: list[str] = []
    table = _table(rows, columns)
    unbounded = console.options.update(width=UNBOUNDED)
    while console.measure(table, options=unbounded).maximum > console.width and len(left_out) < len(expendable):
        left_out.append(expendable[len(left_out)])
        table = _table(rows, {name: cell for name, cell in columns.items() if name not in left_out})
    console.print(table)
    if left_out:
        console.print(f"the window has no room for {'; '.join(left_out)}: widen it, or write a .csv with -o")


def _table(rows: Sequence[Row], columns: Mapping[str, Cell]) -> Table:
    from sfumato.evaluation.comparison_points import least_losses
    from sfumato.report.comparison import outcome

    least = {id(row) for row in least_losses(rows)}
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False, collapse_padding=True)
    table.add_column("k", justify="right", no_wrap=True)
    with_l = any(row.l is not None for row in rows)
    if with_l:
        table.add_column("l", justify="right", no_wrap=True)
    table.add_column("method", overflow="fold")
    for heading in columns:
        table.add_column(heading.replace(" ", "\n"), justify="right", no_wrap=True)
    table.add_column("audit")
    for place, row in enumerate(rows):
        cells = [f"{row.k:,}", *([f"{row.l:,}"] if with_l else []), row.method]
        cells += [cell(row) if row.code == 0 else "" for cell in columns.values()]
        style = "bold" if id(row) in least else "" if row.code == 0 else "dim"
        last = place + 1 == len(rows) or rows[place + 1].label != row.label
        table.add_row(*(Text(cell) for cell in cells), Text(outcome(row)), style=style, end_section=last)
    return table
