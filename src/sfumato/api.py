"""What Python users call: anonymize, fit, audit, measure, compare, evaluate and others. The commands call the same."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.bounds.bound import Bound, MeasuredRelease, effort_named
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.engines.spark.session import is_spark_frame
from sfumato.errors import UsageError
from sfumato.evaluation.aggregates import Aggregate, aggregates_of
from sfumato.evaluation.audit.anatomy_audit import (
    audit_groups,
    group_sizes,
    quasi_identifiers_of_original,
    values_of_original,
)
from sfumato.evaluation.audit.audit import AuditReport, audit_classes, class_key, requirements_in
from sfumato.evaluation.audit.audit_in_parts import audit_in_parts
from sfumato.evaluation.audit.audit_with_losses import measured_in_parts
from sfumato.evaluation.audit.kept_columns import kept_columns_hold, kept_columns_hold_in_parts
from sfumato.evaluation.comparison_points import ALL, points_of
from sfumato.evaluation.dual_problem import Question
from sfumato.evaluation.learning.folds import USUAL
from sfumato.evaluation.learning.learning_study import Study
from sfumato.evaluation.parameter_values import Given
from sfumato.evaluation.queries import (
    Measured,
    QueryAccuracy,
    QueryWorkload,
    ask_release,
    queried_columns,
)
from sfumato.evaluation.release_losses import measure_release
from sfumato.evaluation.workload_tasks import WorkloadTasks, measure_tasks
from sfumato.methods import method_named
from sfumato.pictures.classes import plot_classes
from sfumato.pictures.picture import Picture
from sfumato.pipeline.apply import draft_applied
from sfumato.pipeline.plan import draft, fit_recoding
from sfumato.pipeline.prepare import load_taxonomies
from sfumato.pipeline.release import Draft, Release, check_release_place, most_suppressed, publish
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.releases.certificate import read_certificate
from sfumato.releases.recoding import Recoding
from sfumato.report.comparison import Comparison
from sfumato.report.learning import Evaluation
from sfumato.report.private import PrivateReport, private_report
from sfumato.report.release import ReleaseReport, check_report, empty_report, release_report
from sfumato.report.tradeoff import Tradeoff
from sfumato.requirements import Requirements, Verdict
from sfumato.studies.bound import bounds_of, check_bounded, with_bound
from sfumato.studies.compare import compare_points
from sfumato.studies.learning import LearningStudy
from sfumato.studies.tradeoff import TradeoffStudy
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.locations import DirectoryLocation, FileLocation, Location, location_of
from sfumato.tables.released_classes import find_classes, majorities
from sfumato.tables.sources.delivery import NoRecordsError
from sfumato.tables.sources.source import InputOptions, Source, open_place, open_source
from sfumato.tables.targets.target import digests_now, refuse_input_as_output
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.taxonomies.taxonomy_file import read_taxonomy


class SfumatoWarning(UserWarning):
    """Something that a data steward should know about a release."""


def anonymize(
    data: object,
    policy: Policy | None = None,
    *,
    quasi_identifiers: Sequence[str] = (),
    sensitive: str | Sequence[str] = (),
    identifiers: str | Sequence[str] = (),
    other: str | Sequence[str] | None = None,
    k: int | None = None,
    l: int | None = None,
    taxonomy: Mapping[str, Any] | None = None,
    method: str | None = None,
    bound: bool = False,
    **settings: Any,
) -> Release:
    """Anonymize a frame or a file and audit the result.

    ``data`` is a pandas, Polars, PyArrow, DuckDB or Spark object or the path of a file. What is asked for comes from
    ``policy``, from keyword arguments, or from both; arguments override the policy. Further arguments are those of
    ``merge_flags``: require, person, joint, null_sensitive, max_suppressed, engine, seed, keep_order, form,
    accept_linkable, input, round, weight, type. With ``bound`` the summary also says how much every release of the
    table loses at least, whatever the method.
    """
    asked = merge_flags(
        policy,
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        identifiers=identifiers,
        other=other,
        k=k,
        l=l,
        taxonomy=taxonomy,
        method=method,
        **settings,
    )
    if wants_spark(data, asked):
        from sfumato.pipeline.spark import anonymize_with_spark

        release: Release = anonymize_with_spark(data, asked, Progress())
    else:
        release = Release.of(_drafted(data, asked, Progress(), bound=bound))
    for text in release.warnings:
        python_warnings.warn(text, SfumatoWarning, stacklevel=2)
    return release


def anonymize_to_file(
    data: object,
    policy: Policy,
    target: str | Path,
    progress: Progress,
    *,
    bound: bool = False,
    spark_master: str | None = None,
) -> Release:
    """Anonymize and write in one go; the finished file is what is audited and measured.

    ``spark_master`` is for the Spark engine, where no session is there.
    """
    if wants_spark(data, policy):
        from sfumato.pipeline.spark import SparkOptions, anonymize_to_directory

        return anonymize_to_directory(data, policy, target, progress, SparkOptions(master=spark_master))
    check_output(data, policy, target)
    return publish(_drafted(data, policy, progress, bound=bound), target)


def wants_spark(data: object, policy: Policy) -> bool:
    """Whether a run is for the Spark engine: it was asked for, or the table is Spark's."""
    if not is_spark_frame(data):
        return policy.engine.name == "spark"
    if policy.engine.name not in ("auto", "spark"):
        raise UsageError(
            f"a DataFrame of Spark cannot be read by the engine {policy.engine.name!r}. Leave the engine out, or turn "
            "the frame into another kind, such as with toArrow()."
        )
    return True


def _drafted(data: object, policy: Policy, progress: Progress, *, bound: bool) -> Draft:
    if bound:
        check_bounded(policy)
    made = draft(data, policy, progress)
    return with_bound(made, data) if bound else made


def fit(data: object, policy: Policy | None = None, **flags: Any) -> Recoding:
    """Learn a recoding of the quasi-identifiers that applies to further records.

    Arguments and checks are those of ``anonymize``; the method has to be one with regions, such as mondrian, which is
    also what ``auto`` means here. Every region that has records of ``data`` meets the policy on them. With
    ``engine="disk"``, or for a file that does not fit into ``memory``, mondrian learns the same regions on disk.
    """
    return fit_recoding(data, merge_flags(policy, **flags), Progress())


def apply(
    rules: Recoding | str | Path,
    data: object,
    *,
    max_suppressed: float | None = None,
    k: int | None = None,
    l: int | None = None,
    require: str | Sequence[str] = (),
) -> Release:
    """Release a further table under a learnt recoding, or the file of its rules, audited under its policy.

    Records with a value outside the domain are left out, and those of regions that do not meet the policy in this
    table; where they are more than ``max_suppressed`` allows, by default the policy's share, UnmetError is raised. What
    is asked of this release may differ from what the rules were learnt under: ``k``, ``l`` and ``require``.
    """
    recoding = _recoding(rules, max_suppressed=max_suppressed, k=k, l=l, require=require)
    release = Release.of(draft_applied(recoding, data, Progress()))
    for text in release.warnings:
        python_warnings.warn(text, SfumatoWarning, stacklevel=2)
    return release


def apply_to_file(rules: Path, data: object, target: str | Path, progress: Progress, **flags: Any) -> Release:
    """Apply and write in one go; the finished file is what is audited and measured. ``flags`` go over the policy."""
    place = location_of(target)
    check_release_place(data, place, separated=False)
    refuse_input_as_output(rules, place)
    return publish(draft_applied(_recoding(rules, **flags), data, progress), target)


def _recoding(rules: Recoding | str | Path, **flags: Any) -> Recoding:
    recoding = rules if isinstance(rules, Recoding) else Recoding.load(rules)
    return replace(recoding, policy=merge_flags(recoding.policy, **flags))


def check_output(data: object, policy: Policy, target: str | Path) -> None:
    """Refuse what can be seen to go wrong with the output before the table is read."""
    policy.check_complete()
    check_release_place(data, location_of(target), separated=method_named(policy.method.name).separates)


def audit(
    release: object,
    policy: Policy | None = None,
    *,
    original: object | None = None,
    temporary: str | Path | None = None,
    progress: Progress | None = None,
    **flags: Any,
) -> AuditReport:
    """What holds in a finished release, also one made elsewhere.

    ``release`` is a file or a frame. Without a policy the certificate beside the file says what to check; flags go over
    either. With the ``original`` the columns that were kept are compared as well. With ``memory``, such as "2GB", a
    release of any size is read in parts within that limit; what does not fit goes into files in ``temporary``, by
    default the system's directory for such, and is removed at the end.
    """
    asked, source, certified = _released(release, policy, flags)
    progress = progress or Progress()
    limit = asked.engine.memory
    with progress.phase("audit", None if limit is None else source.rows):
        second = _sensitive_table(release, asked)
        before = None if original is None else open_source(original, InputOptions(**asked.input.model_dump()))
        if second is not None:
            if flags.get("memory") is not None:
                raise UsageError(f"a release by {asked.method.name} is audited as a whole. Leave out memory.")
            report = _audit_of_two(source, second, before, asked)
        elif limit is None:
            report = _audit_in_memory(source, before, asked)
        else:
            with Scratch(_place(temporary)) as scratch:
                report = _audit_within(limit, scratch, source, before, asked, progress)
        return _with_file_checks(report, release, certified)


def _audit_of_two(source: Source, second: Source, original: Source | None, policy: Policy) -> AuditReport:
    requirements = requirements_in(policy)
    report = audit_groups(source, second, policy, requirements)
    if original is None:
        return report
    compared = (
        _same_quasi_identifiers(source, original, policy),
        values_of_original(second, original, requirements),
    )
    return replace(report, verdicts=(*report.verdicts, *compared))


def _audit_in_memory(source: Source, original: Source | None, policy: Policy) -> AuditReport:
    requirements, key = requirements_in(policy), class_key(policy, source.names)
    taxonomies = _sensitive_taxonomies(requirements, policy)
    classes = find_classes(source, key, by_row=bool(requirements.attributes))
    report = audit_classes(source, classes, policy, requirements, taxonomies)
    kept = [] if original is None else kept_columns_hold(source, original, key)
    return replace(report, verdicts=(*report.verdicts, *kept))


def _audit_within(
    memory: int, scratch: Scratch, source: Source, original: Source | None, policy: Policy, progress: Progress
) -> AuditReport:
    requirements, key = requirements_in(policy), class_key(policy, source.names)
    taxonomies = _sensitive_taxonomies(requirements, policy)
    report = audit_in_parts(source, policy, requirements, taxonomies, memory=memory, scratch=scratch, progress=progress)
    kept = [] if original is None else kept_columns_hold_in_parts(source, original, key, memory=memory, scratch=scratch)
    return replace(report, verdicts=(*report.verdicts, *kept))


def _sensitive_taxonomies(requirements: Requirements, policy: Policy) -> dict[str, Taxonomy]:
    """Those that a requirement measures distances by."""
    by_taxonomy = {part.attribute for part in requirements.parts if "hierarchy" in part.counters}
    return {
        name: read_taxonomy(policy.taxonomy_path(name), name)
        for name in requirements.attributes
        if name in by_taxonomy and policy.columns[name].taxonomy_file is not None
    }


def _place(temporary: str | Path | None) -> Path | None:
    return None if temporary is None else Path(temporary)


def _with_file_checks(report: AuditReport, release: object, certified: Mapping[str, Any] | None) -> AuditReport:
    """Is every file of the release the one that was certified?"""
    if not isinstance(release, str | Path):
        return report
    if certified is None:
        remark = "there is no certificate beside the release: it is incomplete, or was made elsewhere"
        return replace(report, remarks=(*report.remarks, remark))
    return replace(report, verdicts=(*report.verdicts, _unchanged(location_of(release), certified)))


def _sensitive_table(release: object, policy: Policy) -> Source | None:
    """The second table of a release that has two: beside the first, or given as a pair."""
    if not method_named(policy.method.name).separates:
        return None
    options = InputOptions(separator=policy.input.separator)
    if isinstance(release, tuple):
        return open_source(release[1], options)
    if not isinstance(release, str | Path):
        raise UsageError("a release by anatomy is two tables. Give both, as (first, second).")
    return open_place(location_of(release).sensitive, options)


def measure(
    original: object,
    release: object,
    policy: Policy | None = None,
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
    **flags: Any,
) -> Measured:
    """Every loss of a release, measured from the two tables alone. ``target`` names the class column for CM.

    ``queries`` is the level of the datacube to compare, ``bins`` the edges of its cells for columns of many numbers.
    ``range_queries`` is how many random range-count queries to ask, each on ``range_attributes`` quasi-identifiers
    (all when absent) with about the share ``selectivity`` of the records in its answer. Both count the values of every
    sensitive column, or of the target where there is one. With ``memory``, such as "2GB", tables of any size are
    measured within that limit, but for queries and workloads; ``temporary`` is that of ``audit``.
    """
    asked, source, _ = _released(release, policy, flags)
    second = _sensitive_table(release, asked)
    if second is not None and target is not None:
        raise UsageError("a release by anatomy has no class column beside its records, so it has no target.")
    original_source = _original(original, asked)
    taxonomies = load_taxonomies(asked)
    progress = progress or Progress()
    workload = QueryWorkload(
        level=queries,
        ranges=range_queries,
        selectivity=selectivity,
        range_attributes=range_attributes,
        seed=seed,
        bins=bins or {},
    )
    queried = () if workload.empty else queried_columns(asked, target, original_source, second or source)
    workload.check(asked.quasi_identifiers, queried)
    limit, whole = asked.engine.memory, second is not None or not workload.empty or bool(asked.workload)
    if limit is not None and not whole:
        with Scratch(_place(temporary)) as scratch:
            losses = measured_in_parts(
                original_source,
                source,
                asked,
                taxonomies,
                target=target,
                memory=limit,
                scratch=scratch,
                progress=progress,
            )
        return Measured(losses.values, losses.columns, losses.suppressed)
    if flags.get("memory") is not None:
        raise UsageError(
            "queries, workloads and releases of two tables are measured on tables in memory. Leave out memory, or "
            "measure the losses alone."
        )
    with progress.phase("measure"):
        return _measured(original_source, source, second, asked, taxonomies, target, workload, queried)


def _measured(
    original_source: Source,
    source: Source,
    second: Source | None,
    asked: Policy,
    taxonomies: Mapping[str, Taxonomy],
    target: str | None,
    workload: QueryWorkload,
    queried: Sequence[str],
) -> Measured:
    """Everything that can be measured of tables in memory."""
    options = InputOptions(**asked.input.model_dump())
    engine = MemoryEngine(Progress())
    served = _served(asked, original_source) if second is None else ()
    scanned = engine.scan(original_source, list(dict.fromkeys([*asked.quasi_identifiers, *queried, *served])))
    encoders = engine.profile(scanned, asked, options, taxonomies)
    domains = [encoder.domain for encoder in encoders]
    by_row = second is None and (target is not None or not workload.empty or bool(asked.workload))
    classes = find_classes(source, class_key(asked, source.names), by_row=by_row)
    losses = measure_release(
        classes,
        domains,
        [asked.columns[domain.name].weight for domain in domains],
        records=scanned.records,
        k=asked.k,
        majority=None if target is None else majorities(source, classes, target),
        groups=None if second is None else group_sizes(source),
    )
    answered: tuple[QueryAccuracy, ...] = ()
    if not workload.empty:
        quasi = replace(scanned, table=scanned.table.select(asked.quasi_identifiers))
        codes = engine.encode(quasi, encoders).codes
        sensitive = {name: scanned.table.column(name) for name in queried}
        answered = ask_release(workload, codes, domains, sensitive, source, second, classes, options)
    if asked.workload and second is None:
        quasi = replace(scanned, table=scanned.table.select([*asked.quasi_identifiers, *served]))
        encoded = engine.encode(quasi, encoders)
        tasks = WorkloadTasks.of(asked, engine.workload(encoded, asked), encoded.codes)
        nulls = asked.input.nulls
        told = measure_tasks(tasks, source, classes, domains, records=scanned.records, nulls=nulls)
        losses = replace(losses, tasks=told)
    return Measured(losses.values, losses.columns, losses.suppressed, losses.tasks, answered)


def _served(policy: Policy, original: Source) -> tuple[str, ...]:
    """The columns beside the quasi-identifiers that the workload is about."""
    names = (*policy.workload.predicted, *policy.workload.features)
    for name in names:
        if name not in original.names:
            raise UsageError.unknown_column(name, "the workload", original.names)
    return names


def aggregate(
    release: object, policy: Policy | None = None, *, by: str | Sequence[str] = (), **flags: Any
) -> list[Aggregate]:
    """MIN, MAX, AVG and SUM of every column of a finished release of summary statistics, from the release alone.

    ``by`` are quasi-identifiers: then for the records of each combination of what the release shows for them. Without a
    policy the certificate beside the file says what was asked for, and what means were rounded to.
    """
    asked, source, certified = _released(release, policy, flags)
    grids = {} if certified is None else certified.get("statistics", {})
    return aggregates_of(source, asked, (by,) if isinstance(by, str) else by, grids)


def report_release(
    original: object,
    release: object,
    path: str | Path | None = None,
    policy: Policy | None = None,
    **flags: Any,
) -> ReleaseReport:
    """One offline page that says what a finished release shows and what it cost; written where a path is given.

    It is safe to share: the ``original`` is only measured against, as ``measure`` does. Without a policy the
    certificate beside the release says what was asked for.
    """
    if path is not None:
        check_report(Path(path))
        for table in (original, release):
            refuse_input_as_output(table, Path(path))
    asked, certified = _asked(release, policy, flags)
    told = ("method", "chosen", "engine", "seed", "version", "bound", "libraries", "files")
    about = {key: certified[key] for key in told if certified is not None and key in certified}
    try:
        source = _open_release(release, asked, certified)
        for _ in source.batches(source.names[:1]):
            break
    except NoRecordsError:
        made = empty_report(asked, _nothing_released(original, asked) | about)
    else:
        found = audit(release, policy, **flags)
        measured = measure(original, release, policy, **flags)
        summary = {
            "records": found.records + measured.suppressed,
            "released": found.records,
            "classes": found.classes,
            "smallest_class": found.smallest_class,
            "suppressed": measured.suppressed,
            **measured.values,
            "columns": measured.columns,
            "audit": found.as_dict(),
            **about,
        }
        second = _sensitive_table(release, asked)
        made = release_report(source, second, asked, load_taxonomies(asked), summary, remarks=found.remarks)
    if path is not None:
        made.write(path)
    return made


def report_private(
    original: object, release: object, path: str | Path | None = None, policy: Policy | None = None, **flags: Any
) -> PrivateReport:
    """A page that compares a release with the counts of its original. Not to be shared."""
    if path is not None:
        check_report(Path(path))
        for table in (original, release):
            refuse_input_as_output(table, Path(path))
    asked, source, _ = _released(release, policy, flags)
    options = InputOptions(**asked.input.model_dump())
    made = private_report(_original(original, asked), source, asked, options, load_taxonomies(asked))
    if path is not None:
        made.write(path)
    return made


def _original(original: object, policy: Policy) -> Source:
    """The table that a release was made of, with its quasi-identifiers."""
    source = open_source(original, InputOptions(**policy.input.model_dump()))
    for name in policy.quasi_identifiers:
        if name not in source.names:
            raise UsageError.unknown_column(name, "the policy", source.names)
    return source


def _nothing_released(original: object, policy: Policy) -> dict[str, Any]:
    """What is to be said of a release without a record: all were left out."""
    records = sum(batch.num_rows for batch in _original(original, policy).batches(policy.quasi_identifiers[:1]))
    return {
        "records": records,
        "released": 0,
        "classes": 0,
        "smallest_class": 0,
        "suppressed": records,
        "gcp": 1.0,
        "columns": dict.fromkeys(policy.quasi_identifiers, 1.0),
        "audit": [],
    }


def compare(
    data: object,
    policy: Policy | None = None,
    *,
    methods: str | Sequence[str] = ALL,
    k: int | Iterable[int] | None = None,
    l: int | Iterable[int] | None = None,
    **flags: Any,
) -> Comparison:
    """Measure methods side by side, each under every ``k`` and ``l``. Makes no release.

    ``methods`` are names, or ``all`` for those that accept what is asked for. Further arguments are those of
    ``anonymize``. A method that fails has a row that says why.
    """
    points = points_of(merge_flags(policy, **flags), methods, k, l)
    progress = Progress()
    rows = list(compare_points(data, points, progress))
    return Comparison(rows, points, data, progress.seconds)


def tradeoff(
    data: object,
    policy: Policy | None = None,
    *,
    k: Given | None = None,
    l: Given | None = None,
    methods: str | Sequence[str] | None = None,
    max_loss: float | None = None,
    queries: int | None = None,
    **flags: Any,
) -> Tradeoff:
    """What every ``k`` or ``l`` would cost, and the largest whose loss is at most ``max_loss``. Makes no release.

    Values are a number, a list, of which each is computed, or a range, of which a long one is sampled; where neither
    is given, k is ``range(2, 101)``. ``methods`` are names, by default the policy's. ``queries`` is the level of the
    datacube whose error is measured too. Further arguments are those of ``anonymize``.
    """
    question = Question.of(merge_flags(policy, **flags), methods, k, l, max_loss, queries)
    trace = TradeoffStudy(data, question, Progress())
    trace.run()
    return Tradeoff(trace.steps, question, data, trace.seconds, original=trace.original)


def evaluate(
    data: object,
    policy: Policy | None = None,
    *,
    target: str | Sequence[str] = (),
    methods: str | Sequence[str] | None = None,
    models: str | Sequence[str] = ALL,
    k: int | Iterable[int] | None = None,
    l: int | Iterable[int] | None = None,
    folds: int = USUAL,
    **flags: Any,
) -> Evaluation:
    """What models learn from releases beside what they learn from the original. Makes no release.

    ``target`` names what is predicted, or the workload of the policy does. For each fold the regions of a method and a
    model on them are learnt from all other folds, and tested on this one. ``methods`` are those with regions, by
    default those that suit the target; ``models`` are tree, bayes, forest, svm, linear and regression-tree, or ``all``
    for those that suit it. Further arguments are those of ``anonymize``.
    """
    asked = merge_flags(policy, target=target, **flags)
    study = Study(policy=asked, methods=methods, k=k, l=l, models=models, folds=folds)
    progress = Progress()
    running = LearningStudy(data, study, progress)
    running.run()
    return Evaluation(running.results, study, data, running.records, progress.seconds)


def bound(
    data: object,
    policy: Policy | None = None,
    *,
    release: object | None = None,
    effort: str = "balanced",
    seconds: float | None = None,
    **flags: Any,
) -> Bound:
    """A proven lower bound on the GCP of every release of a table, whatever the method.

    ``effort`` is fast, balanced or best; ``seconds`` ends the search earlier. With a ``release``, a file, a frame or a
    ``Release``, the bound also says how far from the best possible that is at most; without a policy its certificate
    says what is asked for. Further arguments are those of ``anonymize``.
    """
    asked = release.policy if isinstance(release, Release) and policy is None else policy
    found = None
    for found in proven_bounds(  # noqa: B007 - the last one is the highest
        data, asked, release=release, effort=effort, seconds=seconds, progress=Progress(), **flags
    ):
        pass
    assert found is not None
    return found


def proven_bounds(
    data: object,
    policy: Policy | None,
    *,
    release: object | None,
    effort: str,
    seconds: float | None,
    progress: Progress,
    **flags: Any,
) -> Iterator[Bound]:
    """Bounds as they are proven, each at least as high as the one before."""
    wanted = effort_named(effort)
    if seconds is not None and not seconds > 0:
        raise UsageError(f"the seconds must be a number above 0, not {seconds:g}.")
    if release is None:
        asked, measured = merge_flags(policy, **flags), None
        check_bounded(asked)
    else:
        frame = release.data if isinstance(release, Release) else release
        asked, _, _ = _released(frame, policy, flags)
        check_bounded(asked)
        with progress.phase("measure"):
            losses = measure(data, frame, policy, **flags)
            report = audit(frame, policy, **flags)
        left_out = losses.suppressed <= most_suppressed(asked, report.records + losses.suppressed)
        measured = MeasuredRelease(float(losses.gcp), report.holds and left_out)
    for found in bounds_of(data, asked, wanted, seconds, progress):
        yield replace(found, release=measured)


def plot(
    release: object,
    x: str | None = None,
    y: str | None = None,
    policy: Policy | None = None,
    *,
    title: str | None = None,
    theme: str = "light",
    **flags: Any,
) -> Picture:
    """Draw the classes of a finished release on two of its quasi-identifiers, also of one made elsewhere.

    ``release`` is a ``Release``, a file or a frame. An axis that is not named is the quasi-identifier with the most
    different released values. Without a policy the certificate beside the file says which columns are
    quasi-identifiers; where there is none either, they are ``x`` and ``y``. ``theme`` is light or dark.
    """
    if isinstance(release, Release):
        if policy is not None or flags:
            raise UsageError("a Release knows its policy. Give none, or plot its data.")
        return release.plot(x, y, title=title, theme=theme)
    told = policy is not None or bool(flags.get("quasi_identifiers"))
    if not told and (not isinstance(release, str | Path) or read_certificate(release) is None):
        if x is None or y is None:
            open_source(release, InputOptions())  # that there is no such table is to be told first
            raise UsageError(
                "nothing says which columns are quasi-identifiers: there is no certificate beside the release. Give a "
                "policy, the quasi-identifiers, or both x and y."
            )
        flags = {**flags, "quasi_identifiers": [x, y]}
    # A picture asks nothing of the classes, so a k need not be known.
    asked, source, _ = _released(release, policy, {**flags, "k": 1})
    taxonomies = {}
    for name in (x, y) if x is not None and y is not None else asked.quasi_identifiers:
        column = asked.columns.get(name)
        if column is None or column.taxonomy_file is None:
            continue
        path = asked.taxonomy_path(name)
        # A certificate tells taxonomies by name only; one that is not beside the release can be done without.
        if policy is not None or name in (flags.get("taxonomy") or {}) or path.exists():
            taxonomies[name] = read_taxonomy(path, name)
    return plot_classes(source, asked, taxonomies, x, y, title=title, theme=theme)


def _released(
    release: object, policy: Policy | None, flags: Mapping[str, Any]
) -> tuple[Policy, Source, dict[str, Any] | None]:
    """What to check, the release to read, and its certificate where it has one."""
    asked, certified = _asked(release, policy, flags)
    return asked, _open_release(release, asked, certified), certified


def _asked(release: object, policy: Policy | None, flags: Mapping[str, Any]) -> tuple[Policy, dict[str, Any] | None]:
    certified = read_certificate(release) if isinstance(release, str | Path) else None
    if policy is None and certified is not None:
        policy = Policy.from_dict(certified["policy"], location_of(release).home)  # type: ignore[arg-type]
    if policy is None and not flags:
        raise UsageError(
            "nothing says what to check: there is no certificate beside the release. "
            "Give a policy, or the quasi-identifiers and k."
        )
    asked = merge_flags(policy, **flags)
    asked.check_complete()
    return asked, certified


def _open_release(release: object, policy: Policy, certified: Mapping[str, Any] | None) -> Source:
    # Our own releases are always UTF-8; what was made elsewhere is read as the policy says.
    options = policy.input.model_dump() if certified is None else {"separator": policy.input.separator}
    return open_source(release[0] if isinstance(release, tuple) else release, InputOptions(**options))


def _unchanged(place: Location, certified: Mapping[str, Any]) -> Verdict:
    expected = {file["name"]: file["sha256"] for file in certified["files"]}
    found = digests_now(place, list(expected))
    what = "file" if isinstance(place, FileLocation | DirectoryLocation) else "table"
    text = f"the {what} is the one that was certified"
    if len(expected) > 1:
        text = f"the {what}s are those that were certified"
    # A certificate that was given to another file says nothing of it; in a directory or database it has its own place.
    named = place.name in expected if isinstance(place, FileLocation) else bool(expected)
    return Verdict(text, named and found == expected, len(found))


def _same_quasi_identifiers(first: Source, original: Source, policy: Policy) -> Verdict:
    """Whether the first of two tables has every record of the original, as its quasi-identifiers are shown."""
    for name in policy.quasi_identifiers:
        if name not in original.names:
            return Verdict(f"the column {name!r} is in the original", False, 0)
    # Categories are shown as they are, so that the files of their taxonomies need not be there.
    files = [name for name in policy.quasi_identifiers if policy.columns[name].taxonomy_file is not None]
    policy = merge_flags(policy, taxonomy=dict.fromkeys(files, "flat"))
    engine = MemoryEngine(Progress())
    scanned = engine.scan(original, policy.quasi_identifiers)
    encoders = engine.profile(scanned, policy, InputOptions(**policy.input.model_dump()), {})
    encoded = engine.encode(scanned, encoders)
    left_out = most_suppressed(policy, encoded.records)
    return quasi_identifiers_of_original(first, encoded.codes, encoded.domains, left_out)
