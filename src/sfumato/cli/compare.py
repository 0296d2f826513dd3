"""``sfumato compare``: methods side by side on one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from sfumato.cli.flag_values import many_values
from sfumato.cli.flags import Force, InputTable, Json, ManyK, ManyL, PolicyFile
from sfumato.cli.output import TextConsole, plain_table
from sfumato.cli.policy_flags import FLAGS_OF_MANY, with_flags
from sfumato.cli.study import ResultsFile, StudyOptions, StudyRun, Theme, run_study

if TYPE_CHECKING:
    from sfumato.evaluation.comparison_points import Row
    from sfumato.policy import Policy
    from sfumato.progress import Progress
    from sfumato.report.comparison import Cell, Comparison

UNBOUNDED = 10_000  # characters in a line
# The columns that a narrow window leaves out, in this order.
EXPENDABLE = (
    "smallest box",
    "largest object box",
    "its ratio",
    "C_DM by groups",
    "least MAXSIZE",
    "MAXSIZE",
    "ratio",
    "C_DM",
    "total, seconds",
    "C_AVG",
    "left out",
)


@with_flags(*FLAGS_OF_MANY)
def compare(
    table: InputTable,
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            metavar="A,B",
            help="Methods that `sfumato methods` lists, or all: every one that accepts the requirements.",
        ),
    ] = "all",
    output: ResultsFile = None,
    theme: Theme = "light",
    policy: PolicyFile = None,
    k: ManyK = None,
    l: ManyL = None,
    *,
    flags: Mapping[str, Any],
    force: Force = False,
    json: Json = False,
) -> int:
    """Measure methods side by side: loss, classes and time, for every k and l. Makes no release.

    If a method fails, its row says why, and the others go on. The exit code is 0 if any has a result.

    Example: sfumato compare patients.csv --policy policy.toml --methods hilbert,idistance -k 5,10,25,50 -o methods.html
    """
    every_k = None if k is None else many_values("-k", k)
    every_l = None if l is None else many_values("-l", l)

    def prepare(full_policy: Policy, progress: Progress) -> StudyRun[Comparison]:
        from sfumato.evaluation.comparison_points import points_of
        from sfumato.report.comparison import Comparison
        from sfumato.studies.compare import compare_points

        points = points_of(full_policy, methods, every_k, every_l)
        rows: list[Row] = []

        def run() -> None:
            for row in compare_points(table, points, progress):
                rows.append(row)  # one by one: an interruption keeps those before it

        return StudyRun(run=run, results=lambda: Comparison(rows, points, table, progress.seconds) if rows else None)

    options = StudyOptions(table=table, policy=policy, flags=flags, output=output, theme=theme, force=force, json=json)
    return run_study(options, prepare, _show)


def _show(console: TextConsole, comparison: Comparison) -> None:
    """Print the table, the reasons of rows without figures, and remarks."""
    from sfumato.report.comparison import by_error, places, remarks

    rows = comparison.results
    console.heading(
        f"{comparison.records:,} records, {len(rows):,} points, effort {comparison.effort}; no release was made"
    )
    _show_table(console, rows)
    for error, failed_rows in by_error(rows).items():
        where = "; ".join(places(failed_rows, rows))
        console.print(Text(f"{where}: ", style="yellow").append(error, style="default"))
    for remark in remarks(rows):
        console.print(remark)
    if not comparison.complete:
        console.print(f"interrupted after {len(rows):,} of {comparison.points:,} points")


def _show_table(console: TextConsole, rows: Sequence[Row]) -> None:
    """Print as many columns as the window has room for."""
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
    table = plain_table(collapse_padding=True)
    table.add_column("k", justify="right", no_wrap=True)
    with_l = any(row.l is not None for row in rows)
    if with_l:
        table.add_column("l", justify="right", no_wrap=True)
    table.add_column("method", overflow="fold")
    for heading in columns:
        table.add_column(heading.replace(" ", "\n"), justify="right", no_wrap=True)
    table.add_column("audit")
    for number, row in enumerate(rows, start=1):
        cells = [f"{row.k:,}", *([f"{row.l:,}"] if with_l else []), row.method]
        cells += [cell(row) if row.code == 0 else "" for cell in columns.values()]
        style = "bold" if id(row) in least else "" if row.code == 0 else "dim"
        last = number == len(rows) or rows[number].label != row.label
        table.add_row(*(Text(cell) for cell in cells), Text(outcome(row)), style=style, end_section=last)
    return table
