"""The audit and the losses of a release whose rows fit into memory."""

from __future__ import annotations

from dataclasses import replace

from sfumato.engines.engine import Draft
from sfumato.evaluation.audit.anatomy_audit import audit_groups, group_sizes
from sfumato.evaluation.audit.audit import AuditReport, audit_classes, class_key, require_pass
from sfumato.evaluation.release_losses import Losses, measure_release
from sfumato.evaluation.workload_tasks import measure_tasks
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import Source


def audit_in_memory(draft: Draft, source: Source, second: Source | None) -> tuple[AuditReport, Losses]:
    """Judge and measure a finished table. second: the table of sensitive values, if they are released separately."""
    job = draft.job
    policy, requirements, domains = job.policy, job.requirements, list(draft.domains)
    with job.progress.phase("audit", draft.records):
        key = class_key(policy, source.names)
        persons, tasks = draft.rows.persons, draft.rows.tasks if second is None else None
        by_row = second is None and (bool(requirements.attributes) or persons is not None or tasks is not None)
        classes = find_classes(source, key, by_row=by_row)
        if second is None:
            report = audit_classes(source, classes, policy, requirements, job.taxonomies, persons)
        else:
            report = audit_groups(source, second, policy, requirements)
        require_pass(report)  # a release that fails is not measured
        losses = measure_release(
            classes,
            domains,
            policy.weights(domains),
            records=draft.records,
            k=policy.k,
            groups=None if second is None else group_sizes(source),
        )
        if tasks is not None:
            nulls = policy.input.nulls
            measured = measure_tasks(tasks, source, classes, domains, records=draft.records, nulls=nulls)
            losses = replace(losses, tasks=measured)
    return report, losses
