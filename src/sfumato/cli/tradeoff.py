"""``sfumato tradeoff``: what another k or l would cost, and the largest that stays within a limit."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from sfumato.cli.flags import FLAGS_OF_MANY, InputTable, Json, ManyK, ManyL, PolicyFile, many_ranges, with_flags
from sfumato.cli.output import People, print_json
from sfumato.cli.progress_bar import progress_for_people
from sfumato.cli.summaries import show_files
from sfumato.tables.locations import shown_name

if TYPE_CHECKING:
    from sfumato.evaluation.dual_problem import Step
    from sfumato.report.tradeoff import Tradeoff


@with_flags(*FLAGS_OF_MANY)
def tradeoff(
    table: InputTable,
    max_loss: Annotated[
        float | None,
        typer.Option(
            "--max-loss",
            metavar="SHARE",
            help="Look for the largest k (or l, where -l has several values) whose loss is at most this; 0.1 is 10%.",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", metavar="A,B", help="See: sfumato methods. The policy's when absent."),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(
            "--queries",
            metavar="LEVEL",
            help="Also measure the query error: the divergence of every group-by of so many quasi-identifiers.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=".html for a page, .svg, .png or .pdf for the curve, .csv or .json for the points.",
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
    """Show what every k or l would cost, and find the largest that stays within a loss. Makes no release.

    Without -k, and unless -l has several values, k goes from 2 to 100. Of a range with more than 20 values some are
    computed, in growing steps; the output says which. With --target, what can be learnt from each of them is measured
    too; methods with regions can be learnt from.

    Example: sfumato tradeoff patients.csv --policy policy.toml -k 2..100 --max-loss 0.1 -o tradeoff.html
    """
    every_k = None if k is None else many_ranges("-k", k)
    every_l = None if l is None else many_ranges("-l", l)
    trace = None
    try:
        with progress_for_people() as progress:
            from sfumato.evaluation.dual_problem import Question
            from sfumato.pictures.theme import theme_named
            from sfumato.policy import Policy, merge_flags
            from sfumato.report.result_files import check_results
            from sfumato.report.tradeoff import Tradeoff
            from sfumato.studies.tradeoff import TradeoffStudy

            theme_named(theme)
            asked = merge_flags(None if policy is None else Policy.load(policy), **flags)
            question = Question.of(asked, methods, every_k, every_l, max_loss, queries)
            if output is not None:
                check_results(table, output)
            trace = TradeoffStudy(table, question, progress)
            trace.run()
    finally:
        if trace is not None and trace.steps:  # also when it was interrupted
            found = Tradeoff(
                trace.steps, question, table, progress.seconds, original=trace.original, complete=trace.complete
            )
            if json:
                print_json(found.summary())
            else:
                _show(People(), found, _release_command(table, policy, flags))
    if output is not None and found.has_results:
        found.write(output, theme=theme)
        if not json:
            show_files(People(), [output])
    return found.exit_code


def _show(console: People, found: Tradeoff, again: str) -> None:
    """The points, the answer, and what else is to be known."""
    console.heading(f"{found.records:,} records, {len(found.steps):,} points; no release is kept")
    steps = found.shortly()
    console.print(_by_method(found, steps) if len({step.method for step in steps}) > 1 else _in_detail(found, steps))
    if len(steps) < len(found.steps):
        console.print(f"{len(found.steps) - len(steps):,} more points are in --json and in what -o writes")
    for text in found.remarks():
        console.print(text)
    for text in found.verdict():
        console.print(Text(text, style="bold"))
    if found.found is not None:
        asked = f"-k {found.found.k}" + ("" if found.found.l is None else f" -l {found.found.l}")
        console.print(f"next    {again} --method {found.found.method} {asked}")


def _release_command(table: str, policy: Path | None, flags: Mapping[str, Any]) -> str:
    """How the answer is released; what was said by flags is not said again."""
    files = f"{shlex.quote(shown_name(table))} -o OUTPUT"
    told = "" if policy is None else f" --policy {shlex.quote(str(policy))}"
    return f"sfumato anonymize {files}{told}{' ...' if flags else ''}"


def _in_detail(found: Tradeoff, steps: Sequence[Step]) -> Table:
    """The points of one method, with all their figures."""
    from sfumato.report.comparison import outcome
    from sfumato.report.tradeoff import audited, columns_of, is_answer

    columns, answers = columns_of(steps), {one.method: one for one in found.answers}
    table, with_l = _headed(found)
    for heading in columns:
        table.add_column(heading.replace(" ", "\n"), justify="right", no_wrap=True)
    table.add_column("audit")
    for step in steps:
        cells = [f"{step.k:,}", *([f"{step.l:,}"] if with_l else [])]
        cells += [cell(step) if step.code == 0 else "" for cell in columns.values()]
        cells.append(audited(step) if step.code == 0 else outcome(step))
        table.add_row(*map(Text, cells), style="bold" if is_answer(step, answers) else "" if step.code == 0 else "dim")
    return table


def _by_method(found: Tradeoff, shown: Sequence[Step]) -> Table:
    """The loss of each method beside the others, and the query error where it was measured."""
    from sfumato.report.comparison import outcome
    from sfumato.report.tradeoff import columns_of, is_answer

    measures = {name: cell for name, cell in columns_of(shown).items() if name in ("GCP", "KL", "accuracy", "error")}
    answers = {one.method: one for one in found.answers}
    steps = {(step.k, step.l, step.method): step for step in shown}
    methods = list(dict.fromkeys(step.method for step in shown))
    table, with_l = _headed(found)
    for method in methods:
        for measure in measures:
            table.add_column(f"{measure}\n{method}", justify="right")
    for k, l in dict.fromkeys((step.k, step.l) for step in shown):
        cells = [Text(f"{k:,}"), *([Text(f"{l:,}")] if with_l else [])]
        for method in methods:
            step = steps.get((k, l, method))
            if step is None or step.code != 0:
                cells += [Text("" if step is None else outcome(step)), *([Text()] * (len(measures) - 1))]
                continue
            style = "bold" if is_answer(step, answers) else ""
            cells += [Text(measures[measure](step), style=style) for measure in measures]
        table.add_row(*cells)
    return table


def _headed(found: Tradeoff) -> tuple[Table, bool]:
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False, collapse_padding=True)
    with_l = any(step.l is not None for step in found.steps)
    for name in ("k", "l") if with_l else ("k",):
        table.add_column(name, justify="right", no_wrap=True)
    return table, with_l
