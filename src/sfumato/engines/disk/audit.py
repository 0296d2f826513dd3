"""The audit and the losses of a release that may not fit into memory."""

from __future__ import annotations

from sfumato.engines.engine import Draft
from sfumato.evaluation.audit.audit_with_losses import audit_and_measure_in_parts
from sfumato.evaluation.public_figures import Examination
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.sources.source import Source


def audit_on_disk(draft: Draft, source: Source, memory: int, scratch: Scratch) -> Examination:
    """Judge and measure a finished table in parts of whole classes, within a limit of memory."""
    job = draft.job
    with job.progress.phase("audit", draft.records):
        return audit_and_measure_in_parts(
            source,
            job.policy,
            job.requirements,
            job.taxonomies,
            draft.domains,
            records=draft.records,
            memory=memory,
            scratch=scratch,
            progress=job.progress,
        )
