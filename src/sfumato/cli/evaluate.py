"""``sfumato evaluate``: what models learn from releases."""

from __future__ import annotations

from collections.abc import Mapping
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
    from sfumato.report.learning import Evaluation, What


@with_flags(*FLAGS_OF_MANY)
def evaluate(
    table: InputTable,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="A,B",
            help="Methods with regions, which apply to new records; those that suit the target when absent.",
        ),
    ] = None,
    models: Annotated[
        str,
        typer.Option(
            "--models",
            metavar="A,B",
            help="tree, bayes, forest, svm for a class; linear, regression-tree for a number; or all.",
        ),
    ] = "all",
    folds: Annotated[int, typer.Option("--folds", metavar="N", help="Parts to test on, one after the other.")] = 10,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help=".html for a page, .svg, .png or .pdf for the picture, .csv or .json for the table.",
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
    """Show what models learn from releases beside what they learn from the original. Makes no release.

    Regions and models are learnt from all folds but one and tested on that one. Exit code 0 when any method has a
    result.

    Example: sfumato evaluate adult.csv --policy policy.toml --target income -k 25 --models tree,bayes -o learning.html
    """
    every_k = None if k is None else many_values("-k", k)
    every_l = None if l is None else many_values("-l", l)
    running = None
    try:
        with progress_for_people() as progress:
            from sfumato.evaluation.learning.learning_study import Study
            from sfumato.pictures.theme import theme_named
            from sfumato.policy import Policy, merge_flags
            from sfumato.report.learning import Evaluation
            from sfumato.report.result_files import check_results
            from sfumato.studies.learning import LearningStudy

            theme_named(theme)
            asked = merge_flags(None if policy is None else Policy.load(policy), **flags)
            study = Study(policy=asked, methods=methods, k=every_k, l=every_l, models=models, folds=folds)
            running = LearningStudy(table, study, progress)
            if output is not None:
                check_results(table, output)
            running.run()
    finally:
        if running is not None and running.results:  # also when it was interrupted
            found = Evaluation(
                running.results, study, table, running.records, progress.seconds, complete=running.complete
            )
            if json:
                print_json(found.summary())
            else:
                _show(People(), found)
    if output is not None and found.has_results:
        found.write(output, theme=theme)
        if not json:
            show_files(People(), [output])
    return found.exit_code


def _show(console: People, found: Evaluation) -> None:
    """The table, how the methods differ, and why rows have no figures."""
    from sfumato.report.learning import by_target, columns_of

    learnt = ", ".join(f"{name} as {kind}" for name, kind in found.kinds.items())
    console.heading(
        f"{found.records:,} records, {found.study.folds} folds, {learnt or 'selections'}; no release was made"
    )
    for heads in by_target(columns_of(found.rows)):
        console.print(_table(found, heads))
    for text in found.remarks():
        console.print(text)
    for text, failed in found.failures().items():
        where = ", ".join(f"{row.method} {row.label}" for row in failed)
        console.print(Text(f"{where}: ", style="yellow").append(text, style="default"))


def _table(found: Evaluation, heads: Mapping[What, tuple[str, ...]]) -> Table:
    from sfumato.evaluation.learning.results import with_reach
    from sfumato.report.learning import table_rows

    with_l = any(row.l is not None for row in found.rows)
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False, collapse_padding=True)
    for name in ("k", "l") if with_l else ("k",):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("method", overflow="fold")
    for lines in heads.values():
        table.add_column("\n".join(lines), justify="right", no_wrap=not any(" " in line for line in lines))
    for cells in table_rows(found.rows):
        if not any(what in cells.figures for what in heads):
            continue
        k, l = cells.asked
        row = [Text("" if k is None else f"{k:,}"), *([Text("" if l is None else f"{l:,}")] if with_l else [])]
        row.append(Text(cells.method))
        for what in heads:
            figure = cells.figures.get(what)
            shown = "" if figure is None else with_reach(figure)
            row.append(Text(shown, style="bold" if figure is not None and figure in cells.best else ""))
        table.add_row(*row)
    return table
