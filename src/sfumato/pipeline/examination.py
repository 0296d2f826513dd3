"""The gate before every release: what was written is audited and measured, and fails or goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sfumato.engines.engine import Draft
from sfumato.errors import AuditError
from sfumato.evaluation.audit.audit import require_pass
from sfumato.evaluation.public_figures import Examination


def examined(draft: Draft, written: Any) -> Examination:
    """Audit and measure what was written. A release that fails goes no further."""
    policy, records = draft.job.policy, draft.records
    examination = draft.engine.audit(draft, written)
    report = replace(examination.audit, trial=draft.trial)
    require_pass(report)
    if not 0 <= records - report.records <= policy.most_suppressed(records):
        raise AuditError(
            f"the release has {report.records:,} records and the table {records:,}, which leaves out more than the "
            "policy allows; it was withheld. This is a fault in Sfumato: please report it."
        )
    warnings = draft.job.warnings
    warnings.extend(text for text in report.remarks if text not in warnings)
    return examination._replace(audit=report)
