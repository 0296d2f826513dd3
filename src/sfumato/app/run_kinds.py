"""What can be run in the background. Each kind takes the context of its run and returns what it found, as JSON values.

Every kind is what a command does: ``policy``, ``anonymize --dry-run``, ``anonymize --trial``, ``risk``, ``tradeoff``
and ``anonymize``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow.parquet

from sfumato.app.background_run import BackgroundRun
from sfumato.app.examined_values import table_mark, values_path
from sfumato.app.worker import RunContext
from sfumato.errors import SfumatoError
from sfumato.texts import LANGUAGES, texts_in

if TYPE_CHECKING:
    from sfumato.app.column_hierarchy import ExaminedColumn

RunKind = Callable[[RunContext], Any]
ORDERED = ("whole", "decimal", "date")  # kinds of values


def examine(context: RunContext) -> dict[str, Any]:
    """Propose a policy, and keep what each column holds beside the result."""
    from sfumato.app.column_hierarchy import column_of_values, reading_of
    from sfumato.proposal import propose_policy

    asked, mark = context.options, table_mark(context.table)
    proposal = propose_policy(
        context.table,
        input=asked.get("input"),
        derive=asked.get("derive"),
        column_nulls=asked.get("column_nulls"),
        progress=context.progress,
    )
    reading, figures = reading_of(context.table, proposal.policy.input), {}
    with context.progress.phase("propose", len(proposal.figures)):
        for index, figure in enumerate(proposal.figures):
            pyarrow.parquet.write_table(figure.values, values_path(context.directory, index))
            column = column_of_values(figure.values, figure.name, figure.missing, reading)
            figures[figure.name] = {**figure.as_dict(), "index": index, "fits": _fitting(column)}
            context.progress.advance(1)
    found = proposal.as_dict()
    return {
        **found,
        "table": mark,
        "figures": figures,
        "settings": {column.name: column.settings for column in proposal.columns},
        "dangerous": [
            exposure.as_dict() for decided in (True, False) for exposure in proposal.dangerous(decided=decided)
        ],
    }


def _fitting(column: ExaminedColumn) -> list[str]:
    """The wizards that suit a column. They are looked for here, since that takes long for many values."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the proposal has said how the values read
            return list(column.fits())
    except SfumatoError:
        return []  # values that no hierarchy can have, which the screen of hierarchies says


def dry_run(context: RunContext) -> dict[str, Any]:
    """Say how the table is read and which requirements can be met."""
    return _examined(context, trial=True)


def precheck(context: RunContext) -> dict[str, Any]:
    """Say the same before a release, with earlier releases that it could be intersected with."""
    return _examined(context, trial=False)


def _examined(context: RunContext, *, trial: bool) -> dict[str, Any]:
    from sfumato.studies.dry_run import examine as examined

    summary, infeasible = examined(str(context.table), None, context.policy, context.progress, force=False, trial=trial)
    return {**summary, "message": None if infeasible is None else str(infeasible)}


def risk(context: RunContext) -> dict[str, Any]:
    """Measure the risk of the original under three attackers."""
    from sfumato.studies.risk import risk as measured

    with context.progress.phase("risk"):
        found = measured(context.table, context.policy, population=context.options.get("population"))
    return found.as_dict()


def trial(context: RunContext) -> dict[str, Any]:
    """Make a trial: a release that is not to be published, with a page that compares it with the original."""
    from sfumato.api import anonymize_to_file
    from sfumato.app.trial_facts import trial_facts

    target, policy = context.directory / "trial.parquet", context.policy
    if not policy.about.title:  # nobody has chosen the language of the report yet, so it is that of the page
        about = policy.about.model_copy(update={"language": context.options.get("language", policy.about.language)})
        policy = policy.model_copy(update={"about": about})
    release = anonymize_to_file(
        context.table,
        policy,
        target,
        context.progress,
        trial=True,
        bound=bool(context.options.get("bound")),
        report_private=context.directory / "private.html",
    )
    with context.progress.phase("report"):
        facts = trial_facts(release, target, context.directory, _axes(context))
    return {**release.summary(), **facts}


def _axes(context: RunContext) -> list[str]:
    """The quasi-identifiers that are numbers or dates, those with the most values first.

    All trials of a table are drawn on the same, so that two of them can be compared.
    """
    number = context.project.state.notes.get("examined", "")
    result = BackgroundRun(context.project.directory / "runs" / number).result if number else None
    figures = {} if result is None else result["found"]["figures"]
    columns = [] if result is None else result["found"]["columns"]
    distinct = {column["name"]: column["distinct"] for column in columns}
    ordered = [name for name in context.policy.quasi_identifiers if figures.get(name, {}).get("kind") in ORDERED]
    return sorted(ordered, key=lambda name: -distinct[name])


def curve(context: RunContext) -> dict[str, Any]:
    """Compute what every k would cost."""
    from sfumato.evaluation.dual_problem import QUICK, TradeoffQuestion
    from sfumato.pictures.curves import NARROW, WIDTH, curves
    from sfumato.policy import merge_flags
    from sfumato.report.result_files import scale_for
    from sfumato.report.tradeoff import Tradeoff
    from sfumato.studies.tradeoff import TradeoffStudy

    question = TradeoffQuestion.of(merge_flags(context.policy, effort=QUICK), k=range(2, 101))
    study = TradeoffStudy(context.table, question, context.progress)
    study.run()
    tradeoff = Tradeoff(study.steps, question, context.table, study.seconds, complete=study.complete)
    steps = [step.as_dict() for step in tradeoff.steps]
    for code in LANGUAGES:
        say = texts_in(code)
        for width, look in ((WIDTH, ""), (NARROW, "-narrow")):
            picture = curves(
                steps,
                title=say("page_try.curve_title"),
                y_title=say("page_try.curve_axis"),
                y_format=".3~p",
                x_scale=scale_for([step["k"] for step in steps]),
                width=width,
                say=say,
            )
            (context.directory / f"curve{look}-{code}.svg").write_text(picture.svg, "utf-8")
    return {"steps": [step.as_dict() for step in tradeoff.steps_to_show()], "records": tradeoff.records}


def publish(context: RunContext) -> dict[str, Any]:
    """Run the policy anew and write the release with all that belongs to it; the private page goes elsewhere."""
    from sfumato.api import anonymize_to_file
    from sfumato.app.publication import PublishedFiles

    files = PublishedFiles(context.project.directory, str(context.options["file"]))
    release = anonymize_to_file(
        context.table,
        context.policy,
        files.release,
        context.progress,
        report=files.report,
        report_private=files.private,
        shareable_policy=files.policy,
    )
    return release.summary()


RUN_KINDS: Mapping[str, RunKind] = {
    "examine": examine,
    "dry-run": dry_run,
    "precheck": precheck,
    "risk": risk,
    "trial": trial,
    "curve": curve,
    "publish": publish,
}
