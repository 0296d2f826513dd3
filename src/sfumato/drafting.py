"""From a table and a policy to a draft of a release: reading, checking, and the verbs of the engine in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.engines.memory import Encoded, MemoryEngine, kept_columns
from sfumato.errors import AuditError, PolicyError, UsageError
from sfumato.evaluation.audit import requirements_of
from sfumato.evaluation.linkage import linkable_columns
from sfumato.evaluation.measure import Losses, measure_release
from sfumato.evaluation.tasks import Tasks
from sfumato.kernels import on_compilation
from sfumato.methods import Effort, Kinds, Method, check_method, chosen_name, method_named
from sfumato.methods.anatomy import COUNT, GROUP
from sfumato.methods.method import Records
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.release import Draft, most_suppressed
from sfumato.releases.run_record import earlier_releases, fingerprints
from sfumato.requirements import Requirements
from sfumato.tables.columns import CarriedColumn
from sfumato.tables.source import InputOptions, Source, open_source
from sfumato.taxonomies.files import read_taxonomy
from sfumato.taxonomies.tree import Taxonomy


@dataclass(frozen=True)
class Prepared:
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


def prepare(data: object, policy: Policy, progress: Progress) -> Prepared:
    """Everything that can be wrong with flags, policy, files, schema, data and feasibility, in that order."""
    check_method(method_named(policy.method.name), requirements_of(policy), Kinds.of(policy.workload))
    return prepared_for(read_table(data, policy, progress), policy, progress)


def read_table(data: object, policy: Policy, progress: Progress) -> Prepared:
    """The table in codes. It serves any policy that differs from this one in method, k and l alone."""
    requirements = requirements_of(policy)
    options = InputOptions(**policy.input.model_dump())
    source = open_source(data, options)
    taxonomies = load_taxonomies(policy)
    policy.check_columns(source.names)
    kept, person = kept_columns(policy, source.names), requirements.person
    _check_bound_names(policy, kept)
    if method_named(policy.method.name).separates:
        _check_separable(policy, kept)
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
    return Prepared(data, kept, encoded, records, requirements, taxonomies, source, options, _warnings(policy))


def prepared_for(table: Prepared, policy: Policy, progress: Progress) -> Prepared:
    """A table that was read, once it is seen that the policy's method can be used and what it asks for can be met."""
    requirements, workload = requirements_of(policy), table.records.workload
    method = method_named(chosen_name(policy.method.name, workload))
    check_method(method, requirements, Kinds() if workload is None else workload.kinds)
    if method.separates:
        _check_separable(policy, table.kept)
    most = most_suppressed(policy, table.records.count)
    MemoryEngine(progress).check_feasible(table.records, requirements, most)
    warnings = [*_warnings(policy), *_empty_selections(table, policy)]
    return replace(table, requirements=requirements, warnings=warnings)


def method_of(prepared: Prepared, policy: Policy) -> Method:
    """The method that the classes are formed by."""
    return method_named(chosen_name(policy.method.name, prepared.records.workload))


def shared(table: Prepared) -> Prepared:
    """The table for several runs: what one has made of it and does not depend on k or l, the next ones use."""
    return replace(table, records=replace(table.records, lines={}))


def draft_release(data: object, policy: Policy, progress: Progress) -> Draft:
    """The released table and all that is known of it, not yet audited."""
    with on_compilation(progress.compiling):
        prepared = prepare(data, policy, progress)
        prints = _fingerprints(prepared.encoded, policy, prepared.warnings, progress)
        return draft_of(prepared, policy, progress, prints)


@dataclass(frozen=True)
class Sketch:
    """What is known of a release that was not made: its classes, as it would show them, and what it would lose."""

    classes: int
    smallest_class: int
    losses: Losses


def sketch_of(prepared: Prepared, policy: Policy, progress: Progress) -> Sketch:
    """The figures of the release that ``draft_of`` would make, without its rows.

    The engine tests every class on its own counts. Nobody reads the release back, so this is no audit.
    """
    encoded, requirements = prepared.encoded, prepared.requirements
    engine = MemoryEngine(progress)
    bounds, most = policy.release.form == "bounds", most_suppressed(policy, encoded.records)
    method = method_of(prepared, policy)
    classes = engine.assign(prepared.records, method, requirements, bounds=bounds, most_suppressed=most)
    shown = engine.shown(prepared.records, engine.recode(encoded, classes, bounds=bounds), requirements)
    if shown is None or not 0 <= encoded.records - shown.records <= most:
        raise AuditError(
            "the classes do not meet the policy, or leave out more than it allows, so nothing is told of them. This is "
            "a fault in Sfumato: please report it."
        )
    weights = [policy.columns[domain.name].weight for domain in encoded.domains]
    losses = measure_release(shown, encoded.domains, weights, records=encoded.records, k=policy.k)
    return Sketch(len(shown.sizes), int(shown.sizes.min(initial=encoded.records)), losses)


def draft_of(prepared: Prepared, policy: Policy, progress: Progress, prints: Mapping[str, str]) -> Draft:
    """The draft of a table that was prepared for this policy. Its ``prints`` are what the run record knows it by."""
    encoded, requirements = prepared.encoded, prepared.requirements
    engine = MemoryEngine(progress)
    method = method_of(prepared, policy)
    bounds = policy.release.form == "bounds"
    most = most_suppressed(policy, encoded.records)
    classes = engine.assign(prepared.records, method, requirements, bounds=bounds, most_suppressed=most)
    if method.separates:
        released = engine.separate(encoded, prepared.records, classes, requirements.attributes[0])
    else:
        released = engine.release(
            encoded,
            engine.recode(encoded, classes, bounds=bounds),
            prepared.kept,
            bounds=bounds,
            keep_order=policy.release.keep_order,
            persons=prepared.records.persons,
        )
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
        tasks=_tasks(prepared, policy),
        warnings=prepared.warnings,
        progress=progress,
    )


def _tasks(prepared: Prepared, policy: Policy) -> Tasks | None:
    """What the release is for, to be measured on it."""
    records = prepared.records
    if records.workload is None:
        return None
    return Tasks.of(policy, records.workload, records.codes, np.diff(records.starts))


def load_taxonomies(policy: Policy) -> dict[str, Taxonomy]:
    """The taxonomies that are files, by column; read before the data, so that their mistakes are found at once."""
    return {
        name: read_taxonomy(policy.taxonomy_path(name), name)
        for name, column in policy.columns.items()
        if column.taxonomy_file is not None
    }


def _check_bound_names(policy: Policy, names: Sequence[str]) -> None:
    if policy.release.form != "bounds":
        return
    for name in policy.quasi_identifiers:
        for bound in (f"{name}_min", f"{name}_max"):
            if bound in names:
                raise PolicyError(
                    f'form = "bounds" adds the column {bound!r}, which the table has already. Rename or drop it.'
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
    if policy.release.keep_order or policy.release.form != "labels":
        key = "keep_order" if policy.release.keep_order else "form"
        raise UsageError(f"{key} does not go with {policy.method.name}. Remove one of the two.")


def _check_linkable(encoded: Encoded, policy: Policy) -> None:
    accepted = {*policy.accept_linkable, *policy.sensitive}
    others: list[CarriedColumn] = [column for column in encoded.carried if column.name not in accepted]
    found = linkable_columns(others, encoded.codes, encoded.domains)
    if found:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in found.items())
        raise PolicyError(
            f"kept columns would undo the release: {reasons}. Drop them (role identifier), make them "
            "quasi-identifiers, or list them in accept_linkable if nobody else can know them."
        )


def _warnings(policy: Policy) -> list[str]:
    found = []
    required = {asked.attribute for asked in policy.privacy.sensitive}
    unprotected = [name for name in policy.sensitive if name not in required]
    if unprotected:
        names = ", ".join(repr(name) for name in unprotected)
        found.append(
            f"the sensitive column {names} is released as it is: k-anonymity hides who a record is, not what it says; "
            "a class whose records all share one value reveals it"
        )
    if policy.release.keep_order:
        found.append("rows keep the order of the input, which can tell who they are when that order is known")
    return found


def _empty_selections(table: Prepared, policy: Policy) -> list[str]:
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


def _fingerprints(encoded: Encoded, policy: Policy, warnings: list[str], progress: Progress) -> dict[str, str]:
    with progress.phase("check"):
        try:
            prints = fingerprints(encoded.codes, encoded.domains)
            drawn = policy.release.seed is None and method_named(policy.method.name).separates
            earlier = earlier_releases(prints, policy, drawn=drawn)
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
