"""Every loss of a finished release, measured from the release and its original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sfumato.engines.memory.coded_table import encode, profile, scan, workload_of
from sfumato.errors import UsageError
from sfumato.evaluation.audit.anatomy_audit import group_sizes
from sfumato.evaluation.audit.audit import class_key
from sfumato.evaluation.audit.audit_with_losses import measured_in_parts
from sfumato.evaluation.class_membership import class_membership
from sfumato.evaluation.queries import Measured, QueryAccuracy, QueryWorkload, ask_release, queried_columns
from sfumato.evaluation.release_losses import measure_release
from sfumato.evaluation.workload_tasks import WorkloadTasks, measure_tasks
from sfumato.losses.squared_errors import class_errors, has_means
from sfumato.pipeline.prepare import load_taxonomies
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.studies.finished_release import FinishedRelease, open_original
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.released_classes import find_classes, majorities
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy


def measure_finished(
    original: object,
    release: FinishedRelease,
    workload: QueryWorkload,
    target: str | None,
    progress: Progress,
    *,
    limited: bool,
    temporary: str | Path | None,
) -> Measured:
    """Measure a release. limited: the caller set a memory limit, beside any of the policy."""
    policy, source, second = release.policy, release.source(), release.sensitive_source()
    if second is not None and target is not None:
        raise UsageError("a release by anatomy has no class column beside its records, so it has no target.")
    before = open_original(original, policy)
    taxonomies = load_taxonomies(policy)
    queried = () if workload.empty else queried_columns(policy, target, before, second or source)
    workload.check(policy.quasi_identifiers, queried)
    limit, whole = policy.engine.memory, second is not None or not workload.empty or bool(policy.workload)
    if limit is not None and not whole:
        with Scratch(None if temporary is None else Path(temporary)) as scratch:
            losses = measured_in_parts(
                before, source, policy, taxonomies, target=target, memory=limit, scratch=scratch, progress=progress
            )
        return Measured(losses.values, losses.columns, losses.suppressed, suppression_cost=losses.suppression_cost)
    if limited:
        raise UsageError(
            "queries, workloads and releases of two tables are measured on tables in memory. Leave out memory, or "
            "measure the losses alone."
        )
    with progress.phase("measure"):
        return _measured(before, source, second, policy, taxonomies, target, workload, queried)


def _measured(
    original: Source,
    source: Source,
    second: Source | None,
    policy: Policy,
    taxonomies: Mapping[str, Taxonomy],
    target: str | None,
    workload: QueryWorkload,
    queried: Sequence[str],
) -> Measured:
    """Measure everything that can be measured of tables in memory."""
    progress = Progress()  # the caller times all of it as one phase
    serving = _workload_columns(policy, original) if second is None else ()
    scanned = scan(original, list(dict.fromkeys([*policy.quasi_identifiers, *queried, *serving])), progress)
    encoders = profile(scanned, policy, taxonomies, progress)
    domains = [encoder.domain for encoder in encoders]
    by_row = second is None and (target is not None or not workload.empty or bool(policy.workload))
    classes = find_classes(source, class_key(policy, source.names), by_row=by_row)
    codes = encode(scanned.only(policy.quasi_identifiers), encoders, progress).codes
    errors = None
    if second is None and has_means(domains):
        owner = class_membership(codes, classes, domains)
        errors = None if owner is None else class_errors(codes, owner, domains)
    losses = measure_release(
        classes,
        domains,
        policy.weights(domains),
        records=scanned.count,
        k=policy.k,
        majority=None if target is None else majorities(source, classes, target),
        groups=None if second is None else group_sizes(source),
        suppression_cost=policy.release.suppression_cost,
        errors=errors,
    )
    answers: tuple[QueryAccuracy, ...] = ()
    if not workload.empty:
        sensitive = {name: scanned.table.column(name) for name in queried}
        answers = ask_release(workload, codes, domains, sensitive, source, second, classes, policy.input_options)
    if policy.workload and second is None:
        encoded = encode(scanned.only([*policy.quasi_identifiers, *serving]), encoders, progress)
        tasks = WorkloadTasks.of(policy, workload_of(encoded, policy, progress), encoded.codes)
        nulls = policy.input.nulls
        measured = measure_tasks(tasks, source, classes, domains, records=scanned.count, nulls=nulls)
        losses = replace(losses, tasks=measured)
    return Measured(
        losses.values, losses.columns, losses.suppressed, losses.tasks, losses.suppression_cost, queries=answers
    )


def _workload_columns(policy: Policy, original: Source) -> tuple[str, ...]:
    """Return the columns beside the quasi-identifiers that the workload needs."""
    names = (*policy.workload.predicted, *policy.workload.features)
    for name in names:
        if name not in original.names:
            raise UsageError.unknown_column(name, "the workload", original.names)
    return names
