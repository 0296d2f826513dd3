"""What compare, evaluate and tradeoff share: their flags, the run, its interruption, and what they print and write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import typer

from sfumato.cli.flag_values import load_policy
from sfumato.cli.output import TextConsole, print_json, saying_replaced, standard_output
from sfumato.cli.progress_bar import terminal_progress
from sfumato.cli.summaries import show_files

if TYPE_CHECKING:
    from sfumato.policy import Policy
    from sfumato.progress import Progress
    from sfumato.report.result_files import Results

AnyResults = TypeVar("AnyResults", bound="Results")

ResultsFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help=".html for a page, .svg, .png or .pdf for a picture, .csv or .json for the figures.",
        readable=False,
    ),
]
Theme = Annotated[str, typer.Option("--theme", metavar="light|dark", help="The colours of .svg, .png and .pdf.")]


@dataclass(frozen=True, kw_only=True)
class StudyRun(Generic[AnyResults]):
    """A study that is ready to run. ``results`` returns what it has so far, or None before the first result."""

    run: Callable[[], None]
    results: Callable[[], AnyResults | None]


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """The table, policy and output of a study; ``prepare`` knows its question."""

    table: str
    policy: Path | None
    flags: Mapping[str, Any]
    output: Path | None
    theme: str
    force: bool
    json: bool


def run_study(
    options: StudyOptions,
    prepare: Callable[[Policy, Progress], StudyRun[AnyResults]],
    show: Callable[[TextConsole, AnyResults], None],
) -> int:
    """Run the study that ``prepare`` makes of the policy; print and write its results; return the exit code.

    ``prepare`` refuses a question that cannot be answered before the table is read. An interrupted study prints the
    results that it has and writes no file.
    """
    study: StudyRun[AnyResults] | None = None
    results: AnyResults | None = None
    try:
        with terminal_progress() as progress:
            from sfumato.pictures.theme import theme_named
            from sfumato.policy import merge_flags
            from sfumato.report.result_files import check_results

            theme_named(options.theme)
            study = prepare(merge_flags(load_policy(options.policy), **options.flags), progress)
            if options.output is not None:
                check_results(options.table, options.output, force=options.force)
            study.run()
    finally:
        results = None if study is None else study.results()
        if results is not None and options.json:
            print_json(results.summary())
        elif results is not None:
            show(TextConsole(), results)
    assert results is not None, "a study that ran to its end has results"
    if options.output is not None and results.has_results:
        with saying_replaced(options.output):
            results.write(options.output, theme=options.theme, force=options.force)
        if options.json:
            standard_output.files.append(str(options.output))
        else:
            show_files(TextConsole(), [options.output])
    return results.exit_code
