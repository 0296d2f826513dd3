"""``sfumato evaluate``: what models learn from releases."""

from __future__ import annotations

from collections.abc import Mapping
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
    from sfumato.policy import Policy
    from sfumato.progress import Progress
    from sfumato.report.learning import Evaluation, What


@with_flags(*FLAGS_OF_MANY)
def evaluate(
    table: InputTable,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="A,B",
            help="Methods with regions, which apply to new records. Default: those that suit the target.",
        ),
    ] = None,
    models: Annotated[
        str,
        typer.Option(
            "--models",
            metavar="A,B",
            help="tree, bayes, forest, svm for classes; linear, regression-tree for numbers; or all.",
        ),
    ] = "all",
    folds: Annotated[
        int, typer.Option("--folds", metavar="N", help="The number of folds of the cross-validation.")
    ] = 10,
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
    """Compare what models learn from releases with what they learn from the original. Makes no release.

    Regions and models learn from all folds but one and are tested on that one. The exit code is 0 if any method has a
    result.

    Example: sfumato evaluate adult.csv --policy policy.toml --target income -k 25 --models tree,bayes -o learning.html
    """
    every_k = None if k is None else many_values("-k", k)
    every_l = None if l is None else many_values("-l", l)

    def prepare(full_policy: Policy, progress: Progress) -> StudyRun[Evaluation]:
        from sfumato.evaluation.learning.learning_study import Study
        from sfumato.report.learning import Evaluation
        from sfumato.studies.learning import LearningStudy

        question = Study(policy=full_policy, methods=methods, k=every_k, l=every_l, models=models, folds=folds)
        study = LearningStudy(table, question, progress)

        def results() -> Evaluation | None:
            if not study.results:
                return None
            return Evaluation(study.results, question, table, study.records, progress.seconds, complete=study.complete)

        return StudyRun(run=study.run, results=results)

    options = StudyOptions(table=table, policy=policy, flags=flags, output=output, theme=theme, force=force, json=json)
    return run_study(options, prepare, _show)


def _show(console: TextConsole, evaluation: Evaluation) -> None:
    """Print the tables, how the methods differ, and the reasons of rows without figures."""
    from sfumato.report.learning import by_target, columns_of

    targets = ", ".join(f"{name} as {kind}" for name, kind in evaluation.kinds.items())
    console.heading(
        f"{evaluation.records:,} records, {evaluation.study.folds} folds, {targets or 'selections'}; "
        "no release was made"
    )
    for headings in by_target(columns_of(evaluation.rows)):
        console.print(_table(evaluation, headings))
    for remark in evaluation.remarks():
        console.print(remark)
    for error, failed_rows in evaluation.failures().items():
        where = ", ".join(f"{row.method} {row.label}" for row in failed_rows)
        console.print(Text(f"{where}: ", style="yellow").append(error, style="default"))


def _table(evaluation: Evaluation, headings: Mapping[What, tuple[str, ...]]) -> Table:
    from sfumato.evaluation.learning.results import with_reach
    from sfumato.report.learning import table_rows

    with_l = any(row.l is not None for row in evaluation.rows)
    table = plain_table(collapse_padding=True)
    for name in ("k", "l") if with_l else ("k",):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("method", overflow="fold")
    for lines in headings.values():
        table.add_column("\n".join(lines), justify="right", no_wrap=not any(" " in line for line in lines))
    for row in table_rows(evaluation.rows):
        if not any(what in row.figures for what in headings):
            continue
        k, l = row.asked
        cells = [Text("" if k is None else f"{k:,}"), *([Text("" if l is None else f"{l:,}")] if with_l else [])]
        cells.append(Text(row.method))
        for what in headings:
            figure = row.figures.get(what)
            text = "" if figure is None else with_reach(figure)
            cells.append(Text(text, style="bold" if figure is not None and figure in row.best else ""))
        table.add_row(*cells)
    return table
