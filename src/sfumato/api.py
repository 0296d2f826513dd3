"""What Python users call: anonymize, fit, audit, measure, compare, evaluate and others. The commands call the same.

Every function takes a policy, as an object, a mapping or the path of a file, and keyword arguments that go over it.
``PolicyFlags`` in ``sfumato.policy`` lists these arguments with their types.
"""

from __future__ import annotations

import os
import warnings as python_warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from sfumato.errors import SfumatoWarning, UsageError
from sfumato.evaluation.learning.folds import USUAL
from sfumato.evaluation.parameter_values import ALL, RequestedValues
from sfumato.pipeline.capabilities import BOUND
from sfumato.pipeline.engine_choice import wants_spark
from sfumato.pipeline.release import Release
from sfumato.pipeline.run import draft_release, kept, published
from sfumato.policy import (
    CommonFlags,
    FormulaHandling,
    LevelFlags,
    Policy,
    PolicyFlags,
    PolicyLike,
    SearchFlags,
    UseFlags,
    WritingFlags,
    merge_flags,
)
from sfumato.progress import Progress
from sfumato.tables.locations import codebook_path, location_of
from sfumato.tables.targets.target import refuse_input_as_output

if TYPE_CHECKING:
    from sfumato.bounds.bound import Bound
    from sfumato.bounds.squared_error_bound import SquaredErrorBound
    from sfumato.engines.engine import Draft
    from sfumato.evaluation.aggregates import Aggregate
    from sfumato.evaluation.audit.audit import AuditReport
    from sfumato.evaluation.queries import Measured
    from sfumato.pictures.picture import Picture
    from sfumato.pipeline.linked import LinkedRelease
    from sfumato.releases.recoding import Recoding
    from sfumato.report.codebook import Codebook
    from sfumato.report.comparison import Comparison
    from sfumato.report.learning import Evaluation
    from sfumato.report.private import PrivateReport
    from sfumato.report.release import ReleaseReport
    from sfumato.report.tradeoff import Tradeoff


class ApplyFlags(LevelFlags, WritingFlags, total=False):
    """What a release under learnt rules may be asked for instead of their policy."""

    pseudonym_key: str | os.PathLike[str] | None
    max_suppressed: float | None
    require: str | Sequence[str]
    formulas: FormulaHandling | None


class MeasureFlags(CommonFlags, LevelFlags, SearchFlags, total=False):
    """The keyword arguments of ``measure``, which has a target and a seed of its own."""


class StudyFlags(CommonFlags, SearchFlags, UseFlags, total=False):
    """The keyword arguments of studies, which take many values of k and l."""


class EvaluateFlags(CommonFlags, SearchFlags, total=False):
    """The keyword arguments of ``evaluate``, which also has a target of its own."""

    seed: int | None


class BoundFlags(CommonFlags, LevelFlags, UseFlags, total=False):
    """The keyword arguments of ``bound``, which has an effort of its own."""


def anonymize(
    data: object,
    policy: PolicyLike | None = None,
    *,
    bound: bool = False,
    trial: bool = False,
    **flags: Unpack[PolicyFlags],
) -> Release:
    """Anonymize a frame or a file and audit the result.

    ``data`` is a pandas, Polars, PyArrow, DuckDB or Spark object or the path of a file. ``policy`` and keyword
    arguments say what is asked for; arguments go over the policy. With ``bound`` the summary also says how much every
    release of the table loses at least, whatever the method. A ``trial`` is not to be published: its certificate says
    so, it has no report to share, and no later release is warned of it.
    """
    return _with_warnings(kept(_drafted(data, merge_flags(policy, **flags), Progress(), bound=bound, trial=trial)))


def anonymize_to_file(
    data: object,
    policy: Policy,
    target: str | Path,
    progress: Progress,
    *,
    force: bool = False,
    bound: bool = False,
    trial: bool = False,
    report: Path | None = None,
    report_private: Path | None = None,
    shareable_policy: Path | None = None,
    spark_master: str | None = None,
) -> Release:
    """Anonymize and write in one go; the finished file is what is audited and measured.

    With ``force`` the target may be something that is no release, or a trial may replace a release. The pages
    ``report`` and ``report_private`` appear together with the release, or nothing does, and so does
    ``shareable_policy``, a file with the policy as the certificate has it. ``spark_master`` is the master of a Spark
    session that has to be made.
    """
    if report is not None:
        from sfumato.report.release import refuse_trial

        refuse_trial(trial)
    draft = _drafted(
        data, policy, progress, bound=bound, trial=trial, target=target, force=force, spark_master=spark_master
    )
    try:
        return published(
            draft,
            target,
            force=force,
            report=report,
            report_private=report_private,
            shareable_policy=shareable_policy,
        )
    except BaseException:
        draft.engine.close()  # nobody has a release that would still need the files
        raise


def anonymize_linked(
    tables: str | os.PathLike[str], *, write: bool = True, force: bool = False, progress: Progress | None = None
) -> LinkedRelease:
    """Release tables about the same persons together, and check what somebody gains who has all of the releases.

    ``tables`` is a folder with a file ``tables.toml``, or such a file: it names tables, policies, outputs and the
    person key. The outputs are written in one moment. If the releases do not hold jointly, UnmetError is raised, and
    nothing is written. Without ``write`` they are made and checked only, and ``holds`` and ``joint`` say the result.
    With ``force`` an output may replace something that is no release.
    """
    from sfumato.pipeline.linked import check_linked, publish_linked
    from sfumato.policy.linked_tables import LinkedTables

    asked, progress = LinkedTables.load(tables), progress or Progress()
    linked = publish_linked(asked, progress, force=force) if write else check_linked(asked, progress)
    for release in linked.releases.values():
        for text in (*(f"replaced {replaced}" for replaced in release.replaced), *release.warnings):
            python_warnings.warn(text, SfumatoWarning, stacklevel=2)
    return linked


def _drafted(
    data: object,
    policy: Policy,
    progress: Progress,
    *,
    bound: bool,
    trial: bool = False,
    target: str | Path | None = None,
    force: bool = False,
    spark_master: str | None = None,
) -> Draft:
    spark = None
    if wants_spark(data, policy):
        from sfumato.engines.spark.classes import SparkOptions

        spark = SparkOptions(master=spark_master)
        if bound:
            BOUND.refuse_on("spark")
    if bound:
        from sfumato.studies.bound import check_bounded, refuse_beside_release

        check_bounded(policy)
        refuse_beside_release(policy)
    draft = draft_release(data, policy, progress, target=target, force=force, trial=trial, spark=spark)
    if bound:
        from sfumato.studies.bound import with_bound

        return with_bound(draft)
    return draft


def _with_warnings(release: Release) -> Release:
    for text in release.warnings:
        python_warnings.warn(text, SfumatoWarning, stacklevel=3)
    return release


def fit(data: object, policy: PolicyLike | None = None, **flags: Unpack[PolicyFlags]) -> Recoding:
    """Learn a recoding of the quasi-identifiers that applies to further records.

    Arguments and checks are those of ``anonymize``. The method has to have regions, such as mondrian, which is also
    what ``auto`` means here. Every region that has records of ``data`` meets the policy on them. With
    ``engine="disk"``, or for a file that does not fit into ``memory``, mondrian learns the same regions on disk.
    """
    from sfumato.pipeline.learn import fit_recoding

    return fit_recoding(data, merge_flags(policy, **flags), Progress())


def apply(
    rules: Recoding | str | Path,
    data: object,
    *,
    max_suppressed: float | None = None,
    k: int | None = None,
    l: int | None = None,
    require: str | Sequence[str] = (),
    formulas: FormulaHandling | None = None,
    pseudonym_key: str | os.PathLike[str] | None = None,
    trial: bool = False,
    **written: Unpack[WritingFlags],
) -> Release:
    """Release a further table under a learnt recoding, or the file of its rules, audited under its policy.

    Records with a value outside the domain are left out, and so are those of regions that do not meet the policy in
    this table. If they are more than ``max_suppressed`` allows, by default the policy's share, UnmetError is raised.
    ``k``, ``l`` and ``require`` ask this release for something else than the rules were learnt under. ``formulas`` is
    "keep" or "disarm". ``pseudonym_key`` is the key of pseudonyms, which rules do not name. ``trial``: see
    ``anonymize``. ``written`` says how a file is written.
    """
    from sfumato.pipeline.apply import draft_applied

    asked: ApplyFlags = {
        "max_suppressed": max_suppressed,
        "k": k,
        "l": l,
        "require": require,
        "formulas": formulas,
        "pseudonym_key": pseudonym_key,
        **written,
    }
    recoding = _recoding(rules, **asked)
    return _with_warnings(kept(draft_applied(recoding, data, Progress(), trial=trial)))


def apply_to_file(
    rules: Path,
    data: object,
    target: str | Path,
    progress: Progress,
    *,
    force: bool = False,
    trial: bool = False,
    **flags: Unpack[ApplyFlags],
) -> Release:
    """Apply and write in one go; the finished file is what is audited and measured. ``flags`` go over the policy."""
    from sfumato.engines.target_output import check_target_location
    from sfumato.pipeline.apply import draft_applied
    from sfumato.report.codebook import check_codebook

    refuse_input_as_output(rules, location_of(target))
    check_target_location(data, target, tables=1, force=force, trial=trial)
    recoding = _recoding(rules, **flags)
    if recoding.policy.release.codebook:
        check_codebook(codebook_path(target), force=force)
    return published(draft_applied(recoding, data, progress, trial=trial), target, force=force)


def _recoding(rules: Recoding | str | Path, **flags: Unpack[ApplyFlags]) -> Recoding:
    from sfumato.releases.recoding import Recoding

    recoding = rules if isinstance(rules, Recoding) else Recoding.load(rules)
    return replace(recoding, policy=merge_flags(recoding.policy, **flags))


def audit(
    release: object,
    policy: PolicyLike | None = None,
    *,
    original: object | None = None,
    temporary: str | Path | None = None,
    progress: Progress | None = None,
    **flags: Unpack[PolicyFlags],
) -> AuditReport:
    """Say what holds in a finished release, also one made elsewhere.

    A release does not say whose its records are, so what a policy requires in persons may be left unchecked: ``holds``
    is then false, and ``unchecked`` lists it. ``failed`` lists what fails.

    ``release`` is a file or a frame. Without a policy the certificate beside the file says what to check; flags go over
    either. With the ``original`` the columns that were kept are compared as well. With ``memory``, such as "2GB", a
    release of any size is read in parts within that limit; what does not fit goes into files in ``temporary``, by
    default the system's temporary directory, and is removed at the end.
    """
    from sfumato.studies.audit import audit_finished
    from sfumato.studies.finished_release import FinishedRelease

    return audit_finished(
        FinishedRelease.of(release, policy, flags),
        original,
        progress or Progress(),
        limited=flags.get("memory") is not None,
        temporary=temporary,
    )


def measure(
    original: object,
    release: object,
    policy: PolicyLike | None = None,
    *,
    target: str | None = None,
    queries: int | None = None,
    bins: Mapping[str, Sequence[object]] | None = None,
    range_queries: int | None = None,
    range_attributes: int | None = None,
    selectivity: float = 0.05,
    seed: int = 0,
    temporary: str | Path | None = None,
    progress: Progress | None = None,
    **flags: Unpack[MeasureFlags],
) -> Measured:
    """Measure every loss of a release from the two tables alone. ``target`` names the class column for CM.

    ``queries`` is the level of the datacube to compare, ``bins`` the edges of its cells for columns of many numbers.
    ``range_queries`` is how many random range-count queries to ask, each on ``range_attributes`` quasi-identifiers
    (all by default) with about the share ``selectivity`` of the records in its answer. Both count the values of every
    sensitive column, or of the target if there is one. With ``memory``, such as "2GB", tables of any size are measured
    within that limit, but for queries and workloads; ``temporary`` is that of ``audit``.
    """
    from sfumato.evaluation.queries import QueryWorkload
    from sfumato.studies.finished_release import FinishedRelease
    from sfumato.studies.measure import measure_finished

    workload = QueryWorkload(
        level=queries,
        ranges=range_queries,
        selectivity=selectivity,
        range_attributes=range_attributes,
        seed=seed,
        bins=bins or {},
    )
    return measure_finished(
        original,
        FinishedRelease.of(release, policy, flags),
        workload,
        target,
        progress or Progress(),
        limited=flags.get("memory") is not None,
        temporary=temporary,
    )


def aggregate(
    release: object,
    policy: PolicyLike | None = None,
    *,
    by: str | Sequence[str] = (),
    **flags: Unpack[PolicyFlags],
) -> list[Aggregate]:
    """Return MIN, MAX, AVG and SUM of every column of a release of summary statistics, from the release alone.

    ``by`` are quasi-identifiers: then for the records of each combination of what the release shows for them. Without a
    policy the certificate beside the file says what was asked for, and what means were rounded to.
    """
    from sfumato.evaluation.aggregates import aggregates_of
    from sfumato.studies.finished_release import FinishedRelease

    finished = FinishedRelease.of(release, policy, flags)
    grids = {} if finished.certificate is None else finished.certificate.get("statistics", {})
    return aggregates_of(finished.source(), finished.policy, (by,) if isinstance(by, str) else by, grids)


def codebook(release: object, policy: PolicyLike | None = None, **flags: Unpack[PolicyFlags]) -> Codebook:
    """Explain every column and label of a finished release, with counts from the release alone.

    It may go wherever the release may go; its ``write`` saves it as an offline page. Without a policy the certificate
    beside the release says what was asked for.
    """
    from sfumato.releases.certificate import read_certificate
    from sfumato.studies.finished_release import FinishedRelease
    from sfumato.studies.report import codebook_finished

    if policy is None and (not isinstance(release, str | Path) or read_certificate(release) is None):
        flags = {"k": 1, **flags}  # a codebook asks nothing of the classes
    return codebook_finished(FinishedRelease.of(release, policy, flags))


def report_release(
    original: object,
    release: object,
    path: str | Path | None = None,
    policy: PolicyLike | None = None,
    *,
    force: bool = False,
    **flags: Unpack[PolicyFlags],
) -> ReleaseReport:
    """Make one offline page that says what a finished release shows and what it cost, and write it to ``path``.

    It may go wherever the release may go: of the ``original`` it says only how many records were left out. Without a
    policy the certificate beside the release says what was asked for. With ``force`` it replaces any file.
    """
    from sfumato.studies.finished_release import FinishedRelease
    from sfumato.studies.report import check_page, report_finished

    check_page(path, original, release, force=force)
    finished = FinishedRelease.of(release, policy, flags)
    report = report_finished(original, finished, limited=flags.get("memory") is not None)
    if path is not None:
        report.write(path, force=force)
    return report


def report_private(
    original: object,
    release: object,
    path: str | Path | None = None,
    policy: PolicyLike | None = None,
    *,
    force: bool = False,
    **flags: Unpack[PolicyFlags],
) -> PrivateReport:
    """Make a page that compares a release with the counts of its original. It must not be shared."""
    from sfumato.studies.finished_release import FinishedRelease
    from sfumato.studies.report import check_page, report_finished_privately

    check_page(path, original, release, force=force)
    report = report_finished_privately(original, FinishedRelease.of(release, policy, flags))
    if path is not None:
        report.write(path, force=force)
    return report


def compare(
    data: object,
    policy: PolicyLike | None = None,
    *,
    methods: str | Sequence[str] = ALL,
    k: int | Iterable[int] | None = None,
    l: int | Iterable[int] | None = None,
    **flags: Unpack[StudyFlags],
) -> Comparison:
    """Measure methods side by side, each under every ``k`` and ``l``. Makes no release.

    ``methods`` are names, or ``all`` for those that accept what is asked for. Further arguments are those of
    ``anonymize``. A method that fails has a row that says why.
    """
    from sfumato.evaluation.comparison_points import points_of
    from sfumato.report.comparison import Comparison
    from sfumato.studies.compare import compare_points

    points = points_of(merge_flags(policy, **flags), methods, k, l)
    progress = Progress()
    rows = list(compare_points(data, points, progress))
    return Comparison(rows, points, data, progress.seconds)


def tradeoff(
    data: object,
    policy: PolicyLike | None = None,
    *,
    k: RequestedValues | None = None,
    l: RequestedValues | None = None,
    methods: str | Sequence[str] | None = None,
    max_loss: float | None = None,
    queries: int | None = None,
    suppressed: float | Iterable[float] | None = None,
    **flags: Unpack[StudyFlags],
) -> Tradeoff:
    """Compute what every ``k`` or ``l`` would cost, and the largest that loses at most ``max_loss``. Makes no release.

    Values are a number, a list, of which each is computed, or a range, of which a long one is sampled. Without either,
    k is ``range(2, 101)``. ``methods`` are names, by default the policy's. ``queries`` is the level of the datacube
    whose error is measured too. ``suppressed`` are shares of the records: the loss is computed with up to so many left
    out, at one k. Further arguments are those of ``anonymize``.
    """
    from sfumato.evaluation.dual_problem import TradeoffQuestion
    from sfumato.report.tradeoff import Tradeoff
    from sfumato.studies.tradeoff import TradeoffStudy

    question = TradeoffQuestion.of(merge_flags(policy, **flags), methods, k, l, max_loss, queries, suppressed)
    study = TradeoffStudy(data, question, Progress())
    study.run()
    return Tradeoff(study.steps, question, data, study.seconds, original=study.original)


def evaluate(
    data: object,
    policy: PolicyLike | None = None,
    *,
    target: str | Sequence[str] = (),
    methods: str | Sequence[str] | None = None,
    models: str | Sequence[str] = ALL,
    k: int | Iterable[int] | None = None,
    l: int | Iterable[int] | None = None,
    folds: int = USUAL,
    **flags: Unpack[EvaluateFlags],
) -> Evaluation:
    """Compare what models learn from releases with what they learn from the original. Makes no release.

    ``target`` names what is predicted, or the workload of the policy does. For each fold the regions of a method and a
    model on them are learnt from all other folds, and tested on this one. ``methods`` are those with regions, by
    default those that suit the target; ``models`` are tree, bayes, forest, svm, linear and regression-tree, or ``all``
    for those that suit it. Further arguments are those of ``anonymize``.
    """
    from sfumato.evaluation.learning.learning_study import Study
    from sfumato.report.learning import Evaluation
    from sfumato.studies.learning import LearningStudy

    study = Study(
        policy=merge_flags(policy, target=target, **flags), methods=methods, k=k, l=l, models=models, folds=folds
    )
    progress = Progress()
    running = LearningStudy(data, study, progress)
    running.run()
    return Evaluation(running.results, study, data, running.records, progress.seconds)


def bound(
    data: object,
    policy: PolicyLike | None = None,
    *,
    release: object | None = None,
    effort: str = "balanced",
    seconds: float | None = None,
    **flags: Unpack[BoundFlags],
) -> Any:
    """Prove a lower bound on the loss of every release of a table, whatever the method.

    It is a ``Bound`` on GCP or, with ``loss="sse"``, a ``SquaredErrorBound`` on IL.

    ``effort`` is fast, balanced or best; ``seconds`` ends the search earlier. With a ``release``, a file, a frame or a
    ``Release``, the bound also says how far from the best possible that is at most; without a policy its certificate
    says what is asked for. Further arguments are those of ``anonymize``.
    """
    if isinstance(release, Release) and policy is None:
        policy = release.policy
    highest = None
    for highest in proven_bounds(  # noqa: B007 - the last one is the highest
        data, policy, release=release, effort=effort, seconds=seconds, progress=Progress(), **flags
    ):
        pass
    assert highest is not None
    return highest


def proven_bounds(
    data: object,
    policy: PolicyLike | None,
    *,
    release: object | None,
    effort: str,
    seconds: float | None,
    progress: Progress,
    **flags: Unpack[BoundFlags],
) -> Iterator[Bound | SquaredErrorBound]:
    """Yield bounds as they are proven, each at least as high as the one before."""
    from sfumato.studies.bound import bounds_beside
    from sfumato.studies.finished_release import FinishedRelease

    if release is None:
        return bounds_beside(data, merge_flags(policy, **flags), None, effort, seconds, progress)
    finished = FinishedRelease.of(release.data if isinstance(release, Release) else release, policy, flags)
    return bounds_beside(data, finished.policy, finished, effort, seconds, progress)


def plot(
    release: object,
    x: str | None = None,
    y: str | None = None,
    policy: PolicyLike | None = None,
    *,
    title: str | None = None,
    theme: str = "light",
    **flags: Unpack[PolicyFlags],
) -> Picture:
    """Draw the classes of a finished release on two of its quasi-identifiers, also of one made elsewhere.

    ``release`` is a ``Release``, a file or a frame. An axis that is not named is the quasi-identifier with the most
    distinct released values. Without a policy the certificate beside the file says which columns are
    quasi-identifiers; without a certificate they are ``x`` and ``y``. ``theme`` is light or dark.
    """
    from sfumato.studies.plot import plot_finished

    if isinstance(release, Release):
        if policy is not None or flags:
            raise UsageError("a Release knows its policy. Give none, or plot its data.")
        return release.plot(x, y, title=title, theme=theme)
    named: dict[str, Any] = {**flags}
    return plot_finished(release, x, y, policy, named, title=title, theme=theme)
