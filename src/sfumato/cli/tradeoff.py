"""``sfumato tradeoff``: what another k or l would cost, and the largest within a limit of the loss."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from sfumato.cli.flag_values import many_ranges, many_shares
from sfumato.cli.flags import Force, InputTable, Json, ManyK, ManyL, PolicyFile
from sfumato.cli.output import TextConsole, plain_table
from sfumato.cli.policy_flags import FLAGS_OF_MANY, with_flags
from sfumato.cli.study import ResultsFile, StudyOptions, StudyRun, Theme, run_study
from sfumato.tables.locations import shown_name

if TYPE_CHECKING:
    from sfumato.evaluation.dual_problem import TradeoffStep
    from sfumato.policy import Policy
    from sfumato.progress import Progress
    from sfumato.report.tradeoff import Tradeoff


@with_flags(*FLAGS_OF_MANY)
def tradeoff(
    table: InputTable,
    max_loss: Annotated[
        float | None,
        typer.Option(
            "--max-loss",
            metavar="SHARE",
            help="Find the largest k (or l, if -l has several values) whose loss is at most this; 0.1 is 10%.",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", metavar="A,B", help="Methods that `sfumato methods` lists. Default: the policy's."),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(
            "--queries",
            metavar="LEVEL",
            help="Also measure the query error: the divergence of every group-by of LEVEL quasi-identifiers.",
        ),
    ] = None,
    suppressed: Annotated[
        str | None,
        typer.Option(
            "--suppressed",
            metavar="F",
            help="Show the loss by the share of records left out instead, at one k: 0..0.1, or 0,0.01,0.05.",
        ),
    ] = None,
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
    """Show what every k or l would cost, and find the largest within a limit of the loss. Makes no release.

    With --suppressed, shows instead what leaving out records would gain. The most useful go first, as many as allowed.

    Without -k, k goes from 2 to 100, unless -l has several values. Of a range with more than 20 values, some are
    computed, in growing steps; the output says which. With --target, models also learn from each release of a method
    with regions.

    Example: sfumato tradeoff patients.csv --policy policy.toml -k 2..100 --max-loss 0.1 -o tradeoff.html
    """
    every_k = None if k is None else many_ranges("-k", k)
    every_l = None if l is None else many_ranges("-l", l)
    shares = None if suppressed is None else many_shares("--suppressed", suppressed)

    def prepare(full_policy: Policy, progress: Progress) -> StudyRun[Tradeoff]:
        from sfumato.evaluation.dual_problem import TradeoffQuestion
        from sfumato.report.tradeoff import Tradeoff
        from sfumato.studies.tradeoff import TradeoffStudy

        question = TradeoffQuestion.of(full_policy, methods, every_k, every_l, max_loss, queries, shares)
        study = TradeoffStudy(table, question, progress)

        def results() -> Tradeoff | None:
            if not study.steps:
                return None
            return Tradeoff(
                study.steps, question, table, progress.seconds, original=study.original, complete=study.complete
            )

        return StudyRun(run=study.run, results=results)

    def show(console: TextConsole, results: Tradeoff) -> None:
        _show(console, results, _release_command(table, policy, flags))

    options = StudyOptions(table=table, policy=policy, flags=flags, output=output, theme=theme, force=force, json=json)
    return run_study(options, prepare, show)


def _show(console: TextConsole, tradeoff: Tradeoff, release_command: str) -> None:
    """Print the points, the answer and remarks."""
    console.heading(
        f"{tradeoff.records:,} records, {len(tradeoff.steps):,} points, effort {tradeoff.effort}; no release is kept"
    )
    steps = tradeoff.steps_to_show()
    several_methods = len({step.method for step in steps}) > 1
    console.print(_by_method(tradeoff, steps) if several_methods else _in_detail(tradeoff, steps))
    if len(steps) < len(tradeoff.steps):
        console.print(f"{len(tradeoff.steps) - len(steps):,} more points are in --json and in what -o writes")
    for remark in tradeoff.remarks():
        console.print(remark)
    for sentence in tradeoff.verdict():
        console.print(Text(sentence, style="bold"))
    answer = tradeoff.found
    if answer is not None:
        parameters = f"-k {answer.k}" + ("" if answer.l is None else f" -l {answer.l}")
        console.print(f"next    {release_command} --method {answer.method} {parameters}")


def _release_command(table: str, policy: Path | None, flags: Mapping[str, Any]) -> str:
    """Return the command that releases the answer, with an ellipsis for the flags of the policy."""
    files = f"{shlex.quote(shown_name(table))} -o OUTPUT"
    with_policy = "" if policy is None else f" --policy {shlex.quote(str(policy))}"
    return f"sfumato anonymize {files}{with_policy}{' ...' if flags else ''}"


def _in_detail(tradeoff: Tradeoff, steps: Sequence[TradeoffStep]) -> Table:
    """Make a table of the points of one method with all their figures."""
    from sfumato.report.comparison import outcome
    from sfumato.report.tradeoff import audited, columns_of, is_answer

    columns, answers = columns_of(steps), {answer.method: answer for answer in tradeoff.answers}
    table = _started_table(tradeoff)
    for heading in columns:
        table.add_column(heading.replace(" ", "\n"), justify="right", no_wrap=True)
    table.add_column("audit")
    for step in steps:
        cells = list(tradeoff.parameters(step).values())
        cells += [cell(step) if step.code == 0 else "" for cell in columns.values()]
        cells.append(audited(step) if step.code == 0 else outcome(step))
        table.add_row(*map(Text, cells), style="bold" if is_answer(step, answers) else "" if step.code == 0 else "dim")
    return table


def _by_method(tradeoff: Tradeoff, points: Sequence[TradeoffStep]) -> Table:
    """Make a table of the methods side by side: loss, and query error and accuracy where they were measured."""
    from sfumato.report.comparison import outcome
    from sfumato.report.tradeoff import columns_of, is_answer

    shown = ("GCP", "GCP released", "KL", "accuracy", "error")
    measures = {name: cell for name, cell in columns_of(points).items() if name in shown}
    answers = {answer.method: answer for answer in tradeoff.answers}
    steps = {(tuple(tradeoff.parameters(step).values()), step.method): step for step in points}
    methods = list(dict.fromkeys(step.method for step in points))
    table = _started_table(tradeoff)
    for method in methods:
        for measure in measures:
            table.add_column(f"{measure}\n{method}", justify="right")
    for parameters in dict.fromkeys(place for place, _ in steps):
        cells = list(map(Text, parameters))
        for method in methods:
            step = steps.get((parameters, method))
            if step is None or step.code != 0:
                cells += [Text("" if step is None else outcome(step)), *([Text()] * (len(measures) - 1))]
                continue
            style = "bold" if is_answer(step, answers) else ""
            cells += [Text(measures[measure](step), style=style) for measure in measures]
        table.add_row(*cells)
    return table


def _started_table(tradeoff: Tradeoff) -> Table:
    """Start a table with the columns of what was asked for: k, and l and the share to leave out where they were."""
    table = plain_table(collapse_padding=True)
    for name in tradeoff.parameters(tradeoff.steps[0]):
        table.add_column(name.replace(" ", "\n"), justify="right", no_wrap=True)
    return table
