"""Anonymize with Spark: the same policy, checks and promises as in memory, for tables larger than a machine."""

from __future__ import annotations

import contextlib
import secrets
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sfumato.engines.spark.audit import examined_by_spark
from sfumato.engines.spark.bucket_classes import FILE_RECORDS, BucketTask, shown_fields, write_classes
from sfumato.engines.spark.bucket_counts import BucketCounts, counted_buckets, whole_table
from sfumato.engines.spark.bucket_regions import BucketRegions, grown_regions
from sfumato.engines.spark.buckets import (
    BUCKET_RECORDS,
    NONE,
    Splitters,
    divided_anew,
    joined,
    refined,
    sampled_bits,
    splitters_of,
)
from sfumato.engines.spark.coded_table import Kept, SampledRecords, sample_of, write_coded
from sfumato.engines.spark.column_profiles import (
    CountedColumn,
    content_of,
    counts_of,
    encoder_of,
    sensitive_of,
    target_of,
)
from sfumato.engines.spark.file_systems import Workspace, location, temporary_for
from sfumato.engines.spark.input_scan import Intake, rows_of, take_in
from sfumato.engines.spark.line_keys import Placing
from sfumato.engines.spark.linkability import linkable_by_spark
from sfumato.engines.spark.publication import check_directory, digests, tidied
from sfumato.engines.spark.released_rows import write_arranged
from sfumato.engines.spark.session import Frame, Session, session_of
from sfumato.engines.spark.spark_tables import open_table
from sfumato.errors import AuditError, UsageError
from sfumato.evaluation.audit.audit import require_pass, requirements_of
from sfumato.methods import AUTO, Method, check_method, chosen_name, method_named, methods
from sfumato.methods.auto import CURVES, Auto, best_curve
from sfumato.methods.coded_workload import Kinds
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.methods.trees.gain_tree import GainTree
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.orderings import Hilbert
from sfumato.pipeline.prepare import check_bound_names, known_by, load_taxonomies, policy_warnings, refuse_linkable
from sfumato.pipeline.spark_release import SparkRelease, Told, parent_of
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.local_recoding import kept_columns
from sfumato.releases.run_record import fingerprints_of_contents, secret_number
from sfumato.requirements import KAnonymity, Requirements
from sfumato.tables.coding.domains import Domain
from sfumato.tables.coding.profile import Encoder
from sfumato.tables.sources.source import InputOptions
from sfumato.tables.sources.source_batches import NoRecordsError
from sfumato.taxonomies.taxonomy import Taxonomy

TRIED = 1 << 16  # records that methods are tried on
TREE_SAMPLE = 1 << 20  # records that a tree is grown on, at most


@dataclass(frozen=True)
class SparkOptions:
    """What a run may be told beside the policy.

    master: of a session that has to be made. bucket_records: how many records a bucket should have; it decides where
    classes may end, so other numbers give other classes. file_records: how many a file of the release should have.
    """

    master: str | None = None
    bucket_records: int = BUCKET_RECORDS
    file_records: int = FILE_RECORDS


@dataclass(frozen=True)
class PreparedFrame:
    """A table that was read and understood."""

    session: Session
    policy: Policy
    requirements: Requirements
    taxonomies: Mapping[str, Taxonomy]
    intake: Intake
    kept: Kept
    names: list[str]  # of the released columns, in the order of the table
    encoders: list[Encoder]
    sensitive: Mapping[str, CountedColumn]
    targets: Mapping[str, CountedColumn]
    sample: SampledRecords
    told: Told
    options: SparkOptions

    @property
    def domains(self) -> list[Domain]:
        return [encoder.domain for encoder in self.encoders]

    @property
    def carried(self) -> dict[str, str]:
        """The columns of files by the names that users know."""
        return dict(zip(self.kept.carried, self.kept.carried_columns, strict=True))

    def work(self, method: Method, *, search: bool = False) -> BucketTask:
        """What executors have to know. Methods without a line of their own take the records along the Hilbert curve."""
        ordering = method.ordering if isinstance(method, OptimalOneDimensional) else Hilbert()
        return BucketTask(
            method.name,
            self.policy,
            self.requirements,
            Placing(ordering, self.domains),
            self.carried,
            self.sensitive,
            self.targets,
            search,
            self.options.file_records,
        )


def anonymize_with_spark(
    data: object, policy: Policy, progress: Progress, options: SparkOptions | None = None
) -> SparkRelease:
    """Anonymize a table of Spark and audit the result, which is kept in temporary files until it is written."""
    options = options or SparkOptions()
    _check_supported(policy)
    session = session_of(data, options.master)
    with contextlib.ExitStack() as stack:
        kept = Workspace(session, temporary_for(session, None))
        kept.open()
        stack.callback(kept.close)
        release = _release(session, data, policy, progress, options, kept)
        stack.pop_all()
        weakref.finalize(release, kept.close)
    return release


def anonymize_to_directory(
    data: object, policy: Policy, target: Path | str, progress: Progress, options: SparkOptions | None = None
) -> SparkRelease:
    """Anonymize and write in one go; the finished files are what is audited."""
    options = options or SparkOptions()
    _check_supported(policy)
    session = session_of(data, options.master)
    place = location(target)
    check_directory(session, place)
    if isinstance(data, str | Path) and location(data) == place:
        raise UsageError("the output is the input. Name another directory: the original is never overwritten.")
    with Workspace(session, parent_of(place)) as beside:
        release = _release(session, data, policy, progress, options, beside, place)
        release.publish(beside, beside.path("release"), place)
    return release


def _release(
    session: Session,
    data: object,
    policy: Policy,
    progress: Progress,
    options: SparkOptions,
    stage: Workspace,
    target: str | None = None,
) -> SparkRelease:
    """The finished files, audited, in the workspace ``stage``."""
    staged = stage.path("release")
    with Workspace(session, temporary_for(session, target)) as scratch:
        prepared = _prepared(session, data, policy, progress, options, scratch)
        classes, work = _classes(prepared, scratch, progress)
        with progress.phase("arrange"):
            _arrange(prepared, classes, work, staged)
            tidied(session, staged)
    with progress.phase("audit"):
        examined = examined_by_spark(
            session,
            session.read.parquet(staged),
            policy,
            prepared.requirements,
            prepared.taxonomies,
            prepared.domains,
            records=prepared.told.records,
        )
        require_pass(examined[0])
        if examined[0].records != prepared.told.records:
            raise AuditError(
                f"the release has {examined[0].records:,} records and the table {prepared.told.records:,}; it was "
                "withheld. This is a fault in Sfumato: please report it."
            )
    return SparkRelease(session, policy, staged, digests(session, staged), examined, prepared.told, progress)


def _check_supported(policy: Policy) -> None:
    """Refuse what the Spark engine does not do, before any work is done."""
    requirements = requirements_of(policy)
    asked = {
        "max_suppressed": policy.release.max_suppressed_fraction > 0,
        "keep_order": policy.release.keep_order,
        'form = "statistics"': policy.release.form == "statistics",
        'boxes = "regions"': policy.release.boxes == "regions",
        "seconds": policy.method.seconds is not None,  # a task that is run again must do the same
        "a person key": policy.privacy.person is not None,
        "joint": policy.privacy.joint,
        "a requirement of another package": not requirements.tested,
    }
    refused = [name for name, given in asked.items() if given]
    if refused:
        raise UsageError(f"the Spark engine does not know {refused[0]}. Leave it out, or choose another engine.")
    method = method_named(policy.method.name)
    check_method(method, requirements, Kinds.of(policy.workload))
    if not _is_known(method):
        known = ", ".join(name for name, one in methods().items() if _is_known(one))
        raise UsageError(f"the Spark engine does not know the method {policy.method.name!r}. It has: {known}.")


def _is_known(method: Method) -> bool:
    if isinstance(method, OptimalOneDimensional):
        return method.ordering.needs_no_table
    return isinstance(method, Auto | MondrianMethod | GainTree)


def _prepared(
    session: Session, data: object, policy: Policy, progress: Progress, options: SparkOptions, scratch: Workspace
) -> PreparedFrame:
    """Everything that can be wrong with policy, files, schema, data and feasibility, in that order."""
    requirements = requirements_of(policy)
    input_options = InputOptions(**policy.input.model_dump())
    table = open_table(session, data, input_options)
    taxonomies = load_taxonomies(policy)
    policy.check_columns(table.names)
    names = kept_columns(policy, table.names)
    check_bound_names(policy, names)
    table.check(names)
    quasi = list(policy.quasi_identifiers)
    kept = Kept(quasi, [name for name in names if name not in quasi])
    warnings = policy_warnings(policy)
    places = {name: place for place, name in enumerate(kept.names)}
    accepted = {*policy.accept_linkable, *policy.sensitive}
    others = {name: places[name] for name in kept.carried if name not in accepted}
    served = {*policy.workload.predicted, *policy.workload.features}
    counted = {name: places[name] for name in kept.names if name in {*quasi, *requirements.columns, *served}}
    with progress.phase("read"):
        alone = sorted({*counted.values(), *others.values()})
        pairs = [(places[name], other) for other in others.values() for name in quasi]
        intake = take_in(session, rows_of(session, table, kept.names), _secret(), alone, pairs, scratch.path("input"))
    with progress.phase("profile"):
        tally = intake.tally(session, scratch.path("tally"))
        found = counts_of(tally, counted, table)
        records = found[quasi[0]].records
        if not records:
            raise NoRecordsError("the Spark table has no records. Give a table with at least one.")
        encoders = [encoder_of(table, name, found[name], policy, input_options, taxonomies.get(name)) for name in quasi]
    with progress.phase("check"):
        most = {name: int(found[name].counts.max()) for name in quasi}
        refuse_linkable(linkable_by_spark(tally, others, {name: places[name] for name in quasi}, most, records))
        sensitive = {
            name: sensitive_of(name, found[name], policy, taxonomies.get(name)) for name in requirements.columns
        }
        targets = {name: target_of(name, found[name], policy) for name in kept.carried if name in served}
        requirements.check_feasible(whole_table(records, sensitive))
        coming = {name: f"c{places[name]}" for name in {**sensitive, **targets}}
        bits = sampled_bits(records, options.bucket_records)
        sample = sample_of(intake, encoders, bits, coming)
        scratch.remove("tally")
    prints = known_by(
        lambda: fingerprints_of_contents({name: content_of(found[name]) for name in quasi}), policy, warnings, progress
    )
    told = Told(records, warnings, fingerprints=prints)
    return PreparedFrame(
        session=session,
        policy=policy,
        requirements=requirements,
        taxonomies=taxonomies,
        intake=intake,
        kept=kept,
        names=names,
        encoders=encoders,
        sensitive=sensitive,
        targets=targets,
        sample=sample,
        told=told,
        options=options,
    )


def _secret() -> int:
    try:
        return secret_number()
    except OSError:
        return secrets.randbits(63)  # that no record can be kept was warned of


def _classes(prepared: PreparedFrame, scratch: Workspace, progress: Progress) -> tuple[Frame, BucketTask]:
    """The classes of every bucket and their records."""
    session, told, target = prepared.session, prepared.told, prepared.options.bucket_records
    with progress.phase("encode"):
        method = _method(prepared)
        search = prepared.policy.method.name == AUTO and prepared.policy.method.effort != "fast"
        work = prepared.work(method, search=search)
        parts = _parts(prepared, method, work, -(-told.records // target))
        coded = write_coded(
            session, prepared.intake, prepared.kept, prepared.encoders, work.placing, parts.of, scratch.path("coded")
        )
        scratch.remove("input")
    with progress.phase("partition"):
        found = _counted(prepared, coded, parts)
        if isinstance(parts, Splitters):
            finer = refined(session, coded, work.placing, parts, found.sizes, target)
            if finer is not parts:
                coded = divided_anew(session, coded, work.placing, parts, finer, scratch.path("divided"))
                found = _counted(prepared, coded, finer)
            number = joined(found.holds, found.sizes)
        else:
            number = parts.joined(found)
        told.buckets = int(number.max()) + 1
        classes = write_classes(session, coded, work, number, scratch.path("classes"))
        scratch.remove("coded")
        scratch.remove("divided")
    return classes, work


def _parts(prepared: PreparedFrame, method: Method, work: BucketTask, buckets: int) -> Splitters | BucketRegions:
    """What divides the table into buckets, by the sample: splitters of a line, or the regions of a tree."""
    if buckets < 2:
        return NONE
    if isinstance(method, OptimalOneDimensional):
        return splitters_of(prepared.sample.placed(work.placing), buckets)
    codes, counted = prepared.sample.few(TREE_SAMPLE)
    dividing = MondrianMethod(rule=method.rule) if isinstance(method, MondrianMethod) else MondrianMethod()
    records, target = work.records(codes, counted), prepared.options.bucket_records
    return grown_regions(records, prepared.requirements, dividing, prepared.told.records, target, work.placing)


def _method(prepared: PreparedFrame) -> Method:
    """The method that was asked for. ``auto`` is what the workload asks for, or the better of two lines on a sample."""
    told, method = prepared.told, method_named(prepared.policy.method.name)
    if isinstance(method, Auto):
        codes, counted = prepared.sample.few(TRIED)
        records = prepared.work(CURVES[0]).records(codes, counted)
        if records.workload is not None:
            method = method_named(chosen_name(AUTO, records.workload))
        else:
            # Which line is shorter hardly depends on what else is asked for.
            k = min(prepared.requirements.least_class, len(codes))
            method, told.choice = best_curve(records, Requirements((KAnonymity(k),)), Progress())
    told.chosen = method.name
    return method


def _counted(prepared: PreparedFrame, coded: Frame, parts: Splitters | BucketRegions) -> BucketCounts:
    sensitive = {name: (prepared.carried[name], column) for name, column in prepared.sensitive.items()}
    return counted_buckets(prepared.session, coded, parts.buckets, sensitive, prepared.requirements)


def _arrange(prepared: PreparedFrame, classes: Frame, work: BucketTask, staged: str) -> None:
    """The released columns in the order of the table, the rows in canonical order."""
    kinds = {field.name: field for field in prepared.intake.kinds}
    fields = [*shown_fields(work), *(kinds[column] for column in prepared.kept.carried_columns)]
    places = {name: f"q{q}" for q, name in enumerate(prepared.kept.quasi)}
    there = [field.name for field in fields]
    names = {}
    for name in prepared.names:
        if name not in places:
            names[prepared.carried[name]] = name
            continue
        names[places[name]] = name
        for bound in ("min", "max"):
            if f"{places[name]}_{bound}" in there:
                names[f"{places[name]}_{bound}"] = f"{name}_{bound}"
    files = -(-prepared.told.records // prepared.options.file_records)
    write_arranged(prepared.session, classes, fields, names, files, staged)
