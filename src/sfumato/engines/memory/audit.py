"""The audit and the losses of a release whose rows fit into memory."""

from __future__ import annotations

from dataclasses import replace

from sfumato.engines.engine import Draft
from sfumato.evaluation.audit.anatomy_audit import audit_groups, group_sizes
from sfumato.evaluation.audit.audit import audit_classes, class_key, require_pass
from sfumato.evaluation.public_figures import Examination, PublicTotals
from sfumato.evaluation.release_losses import measure_release
from sfumato.evaluation.workload_tasks import measure_tasks, predictions_of_release
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import Source


def audit_in_memory(draft: Draft, source: Source, second: Source | None) -> Examination:
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
            report = audit_groups(source, second, policy, requirements, job.taxonomies)
        require_pass(report)  # a release that fails is not measured
        records, groups = draft.records, None if second is None else group_sizes(source)
        losses = measure_release(
            classes,
            domains,
            policy.weights(domains),
            records=records,
            k=policy.k,
            groups=groups,
            suppression_cost=policy.release.suppression_cost,
            errors=draft.rows.errors,
        )
        totals = PublicTotals.of(classes, policy, job.taxonomies, groups=groups)
        if tasks is not None:
            nulls, left_out = policy.input.nulls, records - report.records
            predicted = predictions_of_release(policy, source, classes, left_out=left_out)
            measured = measure_tasks(tasks, source, classes, domains, records=records, nulls=nulls, predicted=predicted)
            losses, totals = replace(losses, tasks=measured), replace(totals, tasks=predicted)
    return Examination(report, losses, totals)
