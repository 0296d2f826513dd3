"""Anonymize with Spark: the same policy, checks and promises as in memory, for tables larger than a machine."""

from __future__ import annotations

import contextlib
import secrets
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfumato.drafting import check_bound_names, known_by, load_taxonomies, policy_warnings, refuse_linkable
from sfumato.engines.spark.arranging import write_arranged
from sfumato.engines.spark.classing import Work, write_classes
from sfumato.engines.spark.division import (
    BUCKET_RECORDS,
    LEAST_SAMPLE,
    NONE,
    SAMPLE_A_BUCKET,
    Splitters,
    joined,
    refined,
    splitters_of,
)
from sfumato.engines.spark.encoding import Kept, SampledRecords, numbered, sample_records, write_coded
from sfumato.engines.spark.meeting import BucketCounts, counted_buckets, whole_table
from sfumato.engines.spark.places import Placing
from sfumato.engines.spark.profiling import (
    CountedColumn,
    Counts,
    content_of,
    counts_of,
    encoder_of,
    sensitive_of,
    target_of,
)
from sfumato.engines.spark.publishing import check_directory, digests, tidied
from sfumato.engines.spark.reading import columns, open_table, written
from sfumato.engines.spark.regions import Regions, grown_regions
from sfumato.engines.spark.session import Frame, Session, in_our_words, session_of
from sfumato.engines.spark.storage import Workspace, location, temporary_for
from sfumato.errors import AuditError, UsageError
from sfumato.evaluation.audit import require_pass, requirements_of
from sfumato.evaluation.spark_linkage import linkable_by_spark
from sfumato.evaluation.spark_parts import examined_by_spark
from sfumato.methods import AUTO, Method, check_method, chosen_name, method_named, methods
from sfumato.methods.auto import CURVES, Auto, best_curve
from sfumato.methods.gain_tree import GainTree
from sfumato.methods.mondrian import Mondrian
from sfumato.methods.optimal_1d import OptimalOneDimensional
from sfumato.methods.workload import Kinds
from sfumato.orderings import Hilbert
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.recode import kept_columns
from sfumato.releases.run_record import fingerprints_of_contents, secret_number
from sfumato.requirements import KAnonymity, Requirements
from sfumato.spark_release import SparkRelease, Told, parent_of
from sfumato.tables.delivery import NoRecordsError
from sfumato.tables.domains import Domain
from sfumato.tables.profile import Encoder
from sfumato.tables.source import InputOptions
from sfumato.taxonomies.tree import Taxonomy

TRIED = 1 << 16  # records that methods are tried on
TREE_SAMPLE = 1 << 20  # records that a tree is grown on, at most


@dataclass(frozen=True)
class SparkOptions:
    """What a run may be told beside the policy.

    master: of a session that has to be made. bucket_records: how many records a bucket should have; it decides where
    classes may end, so other numbers give other classes.
    """

    master: str | None = None
    bucket_records: int = BUCKET_RECORDS


@dataclass(frozen=True)
class Prepared:
    """A table that was read and understood. frame: numbered, each column under its place."""

    session: Session
    policy: Policy
    requirements: Requirements
    taxonomies: Mapping[str, Taxonomy]
    frame: Frame
    kept: Kept
    names: list[str]  # of the released columns, in the order of the table
    encoders: list[Encoder]
    sensitive: Mapping[str, CountedColumn]
    targets: Mapping[str, CountedColumn]
    told: Told

    @property
    def domains(self) -> list[Domain]:
        return [encoder.domain for encoder in self.encoders]

    @property
    def carried(self) -> dict[str, str]:
        """The columns of files by the names that users know."""
        return dict(zip(self.kept.carried, self.kept.carried_columns, strict=True))

    def work(self, method: Method, *, search: bool = False) -> Work:
        """What executors have to know. Methods without a line of their own take the records along the Hilbert curve."""
        ordering = method.ordering if isinstance(method, OptimalOneDimensional) else Hilbert()
        return Work(
            method.name,
            self.policy,
            self.requirements,
            Placing(ordering, self.domains),
            self.carried,
            self.sensitive,
            self.targets,
            search,
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
        prepared = _prepared(session, data, policy, progress, scratch)
        recoded = _recoded(prepared, options, scratch, progress)
        with progress.phase("arrange"):
            _arrange(prepared, recoded, staged)
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
    return isinstance(method, Auto | Mondrian | GainTree)


def _prepared(session: Session, data: object, policy: Policy, progress: Progress, scratch: Workspace) -> Prepared:
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
    frame = table.selected(kept.names)
    if not table.steady:
        # A frame may give other rows, or in another order, whenever it is computed, so it is computed once.
        with progress.phase("read"), in_our_words("read the input"):
            frame = written(session, frame, scratch.path("input"))
    warnings = policy_warnings(policy)
    with progress.phase("profile"):
        served = {*policy.workload.predicted, *policy.workload.features}
        counted = {*quasi, *requirements.columns, *served}
        found = counts_of(frame, {name: place for place, name in enumerate(kept.names) if name in counted}, table)
        records = found[quasi[0]].records
        if not records:
            raise NoRecordsError("the Spark table has no records. Give a table with at least one.")
        encoders = [encoder_of(table, name, found[name], policy, input_options, taxonomies.get(name)) for name in quasi]
    with progress.phase("check"):
        _check_linkable(frame, kept, policy, found, records)
        sensitive = {
            name: sensitive_of(name, found[name], policy, taxonomies.get(name)) for name in requirements.columns
        }
        targets = {name: target_of(name, found[name], policy) for name in kept.carried if name in served}
        requirements.check_feasible(whole_table(records, sensitive))
    prints = known_by(
        lambda: fingerprints_of_contents({name: content_of(found[name]) for name in quasi}), policy, warnings, progress
    )
    told = Told(records, warnings, fingerprints=prints)
    frame = numbered(frame, _secret())
    return Prepared(session, policy, requirements, taxonomies, frame, kept, names, encoders, sensitive, targets, told)


def _secret() -> int:
    try:
        return secret_number()
    except OSError:
        return secrets.randbits(63)  # that no record can be kept was warned of


def _check_linkable(frame: Frame, kept: Kept, policy: Policy, found: Mapping[str, Counts], records: int) -> None:
    accepted = {*policy.accept_linkable, *policy.sensitive}
    places = dict(zip(kept.names, columns(len(kept.names)), strict=True))
    others = {name: places[name] for name in kept.carried if name not in accepted}
    quasi = {name: places[name] for name in kept.quasi}
    most = {name: int(found[name].counts.max()) for name in kept.quasi}
    refuse_linkable(linkable_by_spark(frame, others, quasi, most, records))


def _recoded(prepared: Prepared, options: SparkOptions, scratch: Workspace, progress: Progress) -> Frame:
    """Every record with what its class shows."""
    session, told, target = prepared.session, prepared.told, options.bucket_records
    buckets = -(-told.records // target)
    with progress.phase("encode"):
        sample = None
        if buckets > 1 or prepared.policy.method.name == AUTO:
            wanted = max(buckets * SAMPLE_A_BUCKET, LEAST_SAMPLE)
            counted = {name: prepared.carried[name] for name in {**prepared.sensitive, **prepared.targets}}
            sample = sample_records(prepared.frame, prepared.kept, prepared.encoders, told.records, wanted, counted)
        method = _method(prepared, sample)
        search = prepared.policy.method.name == AUTO and prepared.policy.method.effort != "fast"
        work = prepared.work(method, search=search)
        coded = write_coded(
            session, prepared.frame, prepared.kept, prepared.encoders, work.placing, scratch.path("coded")
        )
        scratch.remove("input")
    with progress.phase("partition"):
        parts: Splitters | Regions = NONE
        if sample is not None and buckets > 1:
            if isinstance(method, OptimalOneDimensional):
                parts = _splitters(prepared, coded, splitters_of(sample.placed(work.placing), buckets), target)
            else:
                parts = _regions(prepared, coded, method, work, sample, target)
        told.buckets = parts.buckets
        recoded = write_classes(session, coded, work, parts.of, parts.buckets, scratch.path("classes"))
        scratch.remove("coded")
    return recoded


def _method(prepared: Prepared, sample: SampledRecords | None) -> Method:
    """The method that was asked for. ``auto`` is what the workload asks for, or the better of two lines on a sample."""
    told, method = prepared.told, method_named(prepared.policy.method.name)
    if isinstance(method, Auto):
        assert sample is not None
        codes, counted = sample.few(TRIED)
        records = prepared.work(CURVES[0]).records(codes, counted)
        if records.workload is not None:
            method = method_named(chosen_name(AUTO, records.workload))
        else:
            # Which line is shorter hardly depends on what else is asked for.
            k = min(prepared.requirements.least_class, len(codes))
            method, told.choice = best_curve(records, Requirements((KAnonymity(k),)), Progress())
    told.chosen = method.name
    return method


def _regions(
    prepared: Prepared, coded: Frame, method: Method, work: Work, sample: SampledRecords, target: int
) -> Regions:
    """Those that a tree on the sample divides the table into, and that meet the requirements on all records."""
    codes, counted = sample.few(TREE_SAMPLE)
    dividing = Mondrian(rule=method.rule) if isinstance(method, Mondrian) else Mondrian()
    records = work.records(codes, counted)
    grown = grown_regions(records, prepared.requirements, dividing, prepared.told.records, target, work.placing)
    return grown.merged(_counted(prepared, coded, grown))


def _counted(prepared: Prepared, coded: Frame, parts: Splitters | Regions) -> BucketCounts:
    sensitive = {name: (prepared.carried[name], column) for name, column in prepared.sensitive.items()}
    return counted_buckets(prepared.session, coded, parts.of, parts.buckets, sensitive, prepared.requirements)


def _splitters(prepared: Prepared, coded: Frame, splitters: Splitters, target: int) -> Splitters:
    """Those between buckets that are not too large and can meet the requirements, each by itself."""
    found = _counted(prepared, coded, splitters)
    finer = refined(prepared.session, coded, splitters, found.sizes, target)
    if finer is not splitters:
        splitters, found = finer, _counted(prepared, coded, finer)
    number = joined(found.holds, found.sizes)
    return splitters.only(np.diff(number) > 0)


def _arrange(prepared: Prepared, recoded: Frame, staged: str) -> None:
    """The released columns in the order of the table, the rows in canonical order."""
    places = {name: f"q{q}" for q, name in enumerate(prepared.kept.quasi)}
    names = {}
    for name in prepared.names:
        if name not in places:
            names[prepared.carried[name]] = name
            continue
        names[places[name]] = name
        for bound in ("min", "max"):
            if f"{places[name]}_{bound}" in recoded.columns:
                names[f"{places[name]}_{bound}"] = f"{name}_{bound}"
    labels = [name for name in recoded.columns if name[0] == "q" and not name.endswith("_max")]
    write_arranged(prepared.session, recoded, labels, names, prepared.told.records, staged)
