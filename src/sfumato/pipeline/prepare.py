"""From a table and a policy to a draft of a release: reading, checking, and the verbs of the engine in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.memory.engine import Encoded, MemoryEngine
from sfumato.errors import AuditError, PolicyError, UsageError
from sfumato.evaluation.audit.audit import requirements_of
from sfumato.evaluation.linkability.linkable_columns import linkable_columns
from sfumato.evaluation.release_losses import Losses, measure_release
from sfumato.evaluation.workload_tasks import WorkloadTasks
from sfumato.kernels.decorator import on_compilation
from sfumato.methods import Effort, Kinds, Method, check_method, chosen_name, method_named
from sfumato.methods.anatomy import COUNT, GROUP
from sfumato.methods.method import Records
from sfumato.pipeline.release import Draft, most_suppressed
from sfumato.policy import EngineSettings, Policy, merge_flags
from sfumato.progress import Progress
from sfumato.releases.learn_recoding import grown_recoding, regional
from sfumato.releases.local_recoding import Recoded, kept_columns
from sfumato.releases.recoding import Recoding
from sfumato.releases.run_record import earlier_releases, fingerprints
from sfumato.releases.statistics import WARNING, grid_of, has_statistics, stated
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Codes, Domain
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.sources.source import InputOptions, Source, open_source
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.taxonomies.taxonomy_file import read_taxonomy


@dataclass(frozen=True)
class PreparedTable:
    """A table that was read and understood, before any class is formed."""

    data: object
    kept: list[str]
    encoded: Encoded
    records: Records
    requirements: Requirements
    taxonomies: Mapping[str, Taxonomy]
    source: Source
    options: InputOptions
    warnings: list[str]


@dataclass(frozen=True)
class Opened:
    """A table of which no record was read yet, and what the policy says of its columns."""

    source: Source
    options: InputOptions
    taxonomies: Mapping[str, Taxonomy]
    kept: list[str]
    requirements: Requirements


def open_table(data: object, policy: Policy, taxonomies: Mapping[str, Taxonomy] | None = None) -> Opened:
    """Everything that can be wrong with policy, files and schema. Taxonomies are read from files unless given."""
    requirements = requirements_of(policy)
    options = InputOptions(**policy.input.model_dump())
    source = open_source(data, options)
    taxonomies = load_taxonomies(policy) if taxonomies is None else taxonomies
    policy.check_columns(source.names)
    kept = kept_columns(policy, source.names)
    check_bound_names(policy, kept)
    if method_named(policy.method.name).separates:
        _check_separable(policy, kept)
    return Opened(source, options, taxonomies, kept, requirements)


def prepare(data: object, policy: Policy, progress: Progress) -> PreparedTable:
    """Everything that can be wrong with flags, policy, files, schema, data and feasibility, in that order."""
    check_asked(policy)
    return prepared_for(read_table(data, policy, progress), policy, progress)


def check_asked(policy: Policy) -> None:
    """Refuse what can be seen to be wrong before the table is looked at."""
    method = method_named(policy.method.name)
    if policy.release.boxes == "regions":
        method = regional(method)
    _check_method(method, policy, Kinds.of(policy.workload))


def read_table(
    data: object, policy: Policy, progress: Progress, taxonomies: Mapping[str, Taxonomy] | None = None
) -> PreparedTable:
    """The table in codes. It serves any policy that differs from this one in method, k and l alone.

    The taxonomies are read from the policy's files unless they are given.
    """
    opened = open_table(data, policy, taxonomies)
    source, options, kept, requirements = opened.source, opened.options, opened.kept, opened.requirements
    taxonomies, person = opened.taxonomies, requirements.person
    engine = MemoryEngine(progress)
    scanned = engine.scan(source, kept if person is None else [*kept, person])
    persons = engine.persons(scanned, policy)
    scanned = replace(scanned, table=scanned.table.select(kept))
    encoders = engine.profile(scanned, policy, options, taxonomies)
    encoded = engine.encode(scanned, encoders)
    with progress.phase("check"):
        _check_linkable(encoded, policy)
        sensitive = engine.sensitive(encoded, requirements.columns, policy, taxonomies)
    weights = [policy.columns[domain.name].weight for domain in encoded.domains]
    records = engine.order(encoded, weights, sensitive, persons=persons, seed=policy.release.seed)
    workload = engine.workload(encoded, policy) if policy.workload else None
    records = replace(records, effort=Effort(policy.method.effort, policy.method.seconds), workload=workload)
    return PreparedTable(
        data, kept, encoded, records, requirements, taxonomies, source, options, policy_warnings(policy)
    )


def prepared_for(table: PreparedTable, policy: Policy, progress: Progress) -> PreparedTable:
    """A table that was read, once it is seen that the policy's method can be used and what it asks for can be met."""
    requirements, workload = requirements_of(policy), table.records.workload
    method = method_of(table, policy)
    _check_method(method, policy, Kinds() if workload is None else workload.kinds)
    if method.separates:
        _check_separable(policy, table.kept)
    # Regions tile the domain with outliers and without, so no record is left out for their sake.
    most = 0 if policy.release.boxes == "regions" else most_suppressed(policy, table.records.count)
    MemoryEngine(progress).check_feasible(table.records, requirements, most)
    warnings = [*policy_warnings(policy), *_empty_selections(table, policy)]
    return replace(table, requirements=requirements, warnings=warnings)


def method_of(prepared: PreparedTable, policy: Policy) -> Method:
    """The method that the classes are formed by: one that has regions where they are shown."""
    method = method_named(chosen_name(policy.method.name, prepared.records.workload))
    return regional(method) if policy.release.boxes == "regions" else method


def shared(table: PreparedTable) -> PreparedTable:
    """The table for several runs: what one has made of it and does not depend on k or l, the next ones use."""
    return replace(table, records=replace(table.records, lines={}))


def recoding_of(prepared: PreparedTable, policy: Policy, progress: Progress) -> Recoding:
    """The recoding that a table teaches that was prepared for this policy."""
    method = regional(method_of(prepared, policy))
    with progress.phase("partition", prepared.records.count):
        return grown_recoding(
            method, prepared.records, prepared.requirements, policy, prepared.taxonomies, prepared.kept, progress
        )


def learning_policy(policy: Policy) -> Policy:
    """What a recoding is learnt under: it shows regions, and is the same whatever engine finds them."""
    return merge_flags(policy, boxes="regions").model_copy(update={"engine": EngineSettings()})


def fit_recoding(data: object, policy: Policy, progress: Progress) -> Recoding:
    """The recoding that a table teaches, after every check that a release of it would go through."""
    policy = learning_policy(policy)
    with on_compilation(progress.compiling):
        return recoding_of(prepare(data, policy, progress), policy, progress)


def draft_release(data: object, policy: Policy, progress: Progress) -> Draft:
    """The released table and all that is known of it, not yet audited."""
    with on_compilation(progress.compiling):
        prepared = prepare(data, policy, progress)
        encoded = prepared.encoded
        prints = fingerprints_of([encoded.codes], encoded.used(), encoded.domains, policy, prepared.warnings, progress)
        return draft_of(prepared, policy, progress, prints)


@dataclass(frozen=True)
class Sketch:
    """What is known of a release that was not made: its classes, as it would show them, and what it would lose."""

    classes: int
    smallest_class: int
    losses: Losses


def sketch_of(prepared: PreparedTable, policy: Policy, progress: Progress) -> Sketch:
    """The figures of the release that ``draft_of`` would make, without its rows.

    The engine tests every class on its own counts. Nobody reads the release back, so this is no audit.
    """
    encoded, requirements = prepared.encoded, prepared.requirements
    engine = MemoryEngine(progress)
    most = most_suppressed(policy, encoded.records)
    recoded = _recoded(prepared, policy, engine, progress)
    shown = engine.shown(prepared.records, recoded, requirements)
    if shown is None or not 0 <= encoded.records - shown.records <= most:
        raise AuditError(
            "the classes do not meet the policy, or leave out more than it allows, so nothing is told of them. This is "
            "a fault in Sfumato: please report it."
        )
    weights = [policy.columns[domain.name].weight for domain in encoded.domains]
    losses = measure_release(shown, encoded.domains, weights, records=encoded.records, k=policy.k)
    return Sketch(len(shown.sizes), int(shown.sizes.min(initial=encoded.records)), losses)


def draft_of(prepared: PreparedTable, policy: Policy, progress: Progress, prints: Mapping[str, str]) -> Draft:
    """The draft of a table that was prepared for this policy. Its ``prints`` are what the run record knows it by."""
    encoded, requirements = prepared.encoded, prepared.requirements
    engine = MemoryEngine(progress)
    method = method_of(prepared, policy)
    facts: dict[str, Any] = {}
    if method.separates:
        most = most_suppressed(policy, encoded.records)
        classes = engine.assign(prepared.records, method, requirements, bounds=False, most_suppressed=most)
        released = engine.separate(encoded, prepared.records, classes, requirements.attributes[0])
    else:
        recoded = _recoded(prepared, policy, engine, progress)
        grids = _grids(encoded, policy)
        released = engine.release(
            encoded,
            recoded,
            prepared.kept,
            bounds=policy.release.bounds,
            means=grids,
            keep_order=policy.release.keep_order,
            persons=prepared.records.persons,
        )
        if grids:
            domains = {domain.name: domain for domain in encoded.domains}
            facts["statistics"] = {name: stated(domains[name], grid) for name, grid in grids.items()}
    return Draft(
        released=released,
        engine=engine,
        policy=policy,
        requirements=requirements,
        domains=encoded.domains,
        taxonomies=prepared.taxonomies,
        records=encoded.records,
        chosen=method.name,
        source=prepared.source,
        data=prepared.data,
        options=prepared.options,
        fingerprints=prints,
        facts=facts,
        tasks=_tasks(prepared, policy),
        warnings=prepared.warnings,
        progress=progress,
    )


def _recoded(prepared: PreparedTable, policy: Policy, engine: MemoryEngine, progress: Progress) -> Recoded:
    """What every class shows: the smallest box around its records, or the region that they are in."""
    encoded, bounds = prepared.encoded, policy.release.bounds
    if policy.release.boxes == "regions":
        recoding = recoding_of(prepared, policy, progress)
        regions = recoding.regions.regions_of(encoded.codes, encoded.domains)
        shown = replace(encoded, domains=list(recoding.domains))
        return engine.recode(shown, iter([recoding.regions.classes(regions)]), bounds=bounds)
    most = most_suppressed(policy, encoded.records)
    method = method_of(prepared, policy)
    classes = engine.assign(prepared.records, method, prepared.requirements, bounds=bounds, most_suppressed=most)
    return engine.recode(encoded, classes, bounds=bounds)


def _tasks(prepared: PreparedTable, policy: Policy) -> WorkloadTasks | None:
    """What the release is for, to be measured on it."""
    records = prepared.records
    if records.workload is None:
        return None
    return WorkloadTasks.of(policy, records.workload, records.codes, np.diff(records.starts))


def _grids(encoded: Encoded, policy: Policy) -> dict[str, Fraction]:
    """What the means of each column are rounded to, where the release has means."""
    if policy.release.form != "statistics":
        return {}
    return {
        domain.name: grid_of(domain, policy.columns[domain.name])
        for domain in encoded.domains
        if has_statistics(domain)
    }


def load_taxonomies(policy: Policy) -> dict[str, Taxonomy]:
    """The taxonomies that are files, by column; read before the data, so that their mistakes are found at once."""
    return {
        name: read_taxonomy(policy.taxonomy_path(name), name)
        for name, column in policy.columns.items()
        if column.taxonomy_file is not None
    }


def check_bound_names(policy: Policy, names: Sequence[str]) -> None:
    """Refuse columns that a release with bounds would add a second time."""
    if not policy.release.bounds:
        return
    added = ("min", "max", "mean") if policy.release.form == "statistics" else ("min", "max")
    for name in policy.quasi_identifiers:
        for column in (f"{name}_{what}" for what in added):
            if column in names:
                raise PolicyError(
                    f'form = "{policy.release.form}" adds the column {column!r}, which the table has already. '
                    "Rename or drop it."
                )


def _check_separable(policy: Policy, kept: Sequence[str]) -> None:
    """Refuse what would tie the two tables together, or what they have no place for."""
    for name in kept:
        role = policy.columns[name].role if name in policy.columns else "other"
        required = {asked.attribute for asked in policy.privacy.sensitive}
        if role not in ("quasi-identifier", "sensitive") or (role == "sensitive" and name not in required):
            raise UsageError(
                f"{policy.method.name} releases quasi-identifiers and one sensitive column, so the column {name!r} "
                "cannot be kept. Give it the role identifier, which drops it, or choose another method."
            )
        if name in (GROUP, COUNT):
            raise UsageError(
                f"{policy.method.name} adds the columns {GROUP!r} and {COUNT!r}, and the table has a column {name!r}. "
                "Rename it."
            )


def _check_method(method: Method, policy: Policy, kinds: Kinds) -> None:
    """Refuse what the method cannot meet, or has no place for."""
    if method.separates and (policy.release.keep_order or policy.release.form != "labels"):
        key = "keep_order" if policy.release.keep_order else "form"
        raise UsageError(f"{key} does not go with {policy.method.name}. Remove one of the two.")
    check_method(method, requirements_of(policy), kinds)


def _check_linkable(encoded: Encoded, policy: Policy) -> None:
    accepted = {*policy.accept_linkable, *policy.sensitive}
    others: list[PassthroughColumn] = [column for column in encoded.carried if column.name not in accepted]
    refuse_linkable(linkable_columns(others, encoded.codes, encoded.domains))


def refuse_linkable(found: Mapping[str, str]) -> None:
    """Refuse columns that would undo the release, each with its reason."""
    if found:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in found.items())
        raise PolicyError(
            f"kept columns would undo the release: {reasons}. Drop them (role identifier), make them "
            "quasi-identifiers, or list them in accept_linkable if nobody else can know them."
        )


def policy_warnings(policy: Policy) -> list[str]:
    """What a data steward should know of a release under this policy, whatever the table."""
    found = []
    required = {asked.attribute for asked in policy.privacy.sensitive}
    unprotected = [name for name in policy.sensitive if name not in required]
    if unprotected:
        names = ", ".join(repr(name) for name in unprotected)
        found.append(
            f"the sensitive column {names} is released as it is: k-anonymity hides who a record is, not what it says; "
            "a class whose records all share one value reveals it"
        )
    if policy.release.form == "statistics":
        found.append(WARNING)
        if (policy.privacy.k or 1) < policy.k:
            found.append(f"means are given of classes of at least {policy.k} records, so k = {policy.k} is asked for")
    if policy.release.keep_order:
        found.append("rows keep the order of the input, which can tell who they are when that order is known")
    return found


def _empty_selections(table: PreparedTable, policy: Policy) -> list[str]:
    """A selection without a record is more often a slip than meant."""
    workload = table.records.workload
    boxes = None if workload is None else workload.selections
    if boxes is None:
        return []
    empty = [
        repr(selection.where)
        for box, selection in enumerate(policy.workload.selection)
        if not boxes.holds(box, table.records.codes).any()
    ]
    return [f"no record of this table is selected by {where}" for where in empty]


def fingerprints_of(
    batches: Iterable[Codes],
    used: Sequence[NDArray[np.int64]],
    domains: Sequence[Domain],
    policy: Policy,
    warnings: list[str],
    progress: Progress,
    *,
    rules: str | None = None,
) -> dict[str, str]:
    """What the run record knows the table by; an earlier release of it under another policy or rules is warned of.

    batches, used: the codes of the table, and how often each occurs.
    """
    return known_by(lambda: fingerprints(batches, used, domains), policy, warnings, progress, rules=rules)


def known_by(
    take: Callable[[], dict[str, str]],
    policy: Policy,
    warnings: list[str],
    progress: Progress,
    *,
    rules: str | None = None,
) -> dict[str, str]:
    """The same, however fingerprints are taken."""
    with progress.phase("check"):
        try:
            prints = take()
            drawn = policy.release.seed is None and method_named(policy.method.name).separates
            earlier = earlier_releases(prints, policy, drawn=drawn, rules=rules)
        except OSError:
            warnings.append(
                "no run record can be kept (the state directory is not writable), so an earlier release of this table "
                "under another policy would go unnoticed"
            )
            return {}
    if earlier:
        warnings.append(
            f"this table was released {earlier:,} time{'s' if earlier > 1 else ''} before"
            f"{', drawn anew each time' if drawn else ' under another policy'}: "
            "whoever has both releases can intersect their classes, which may be smaller than k"
        )
    return prints
