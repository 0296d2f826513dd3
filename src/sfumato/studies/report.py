"""The reports of a finished release: the one to share, and the private one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sfumato.evaluation.queries import QueryWorkload
from sfumato.pipeline.prepare import load_taxonomies
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.report.private import PrivateReport, private_report
from sfumato.report.release import ReleaseReport, check_report, empty_report, release_report
from sfumato.studies.audit import audit_finished
from sfumato.studies.finished_release import FinishedRelease, open_original
from sfumato.studies.measure import measure_finished
from sfumato.tables.sources.source_batches import NoRecordsError
from sfumato.tables.targets.target import refuse_input_as_output

CERTIFIED = ("method", "chosen", "engine", "seed", "version", "bound", "libraries", "files")


def check_page(path: str | Path | None, *tables: object) -> None:
    """Refuse a page that cannot be written, or that would overwrite one of the tables."""
    if path is not None:
        check_report(Path(path))
        for table in tables:
            refuse_input_as_output(table, Path(path))


def report_finished(original: object, release: FinishedRelease, *, limited: bool) -> ReleaseReport:
    """Make the report of a release. The original is only measured against. limited: see ``audit_finished``."""
    policy, certificate = release.policy, release.certificate or {}
    about = {key: certificate[key] for key in CERTIFIED if key in certificate}
    try:
        source = release.source()
        for _ in source.batches(source.names[:1]):
            break
    except NoRecordsError:
        return empty_report(policy, _nothing_released(original, policy) | about)
    progress = Progress()
    audit = audit_finished(release, None, progress, limited=limited, temporary=None)
    measured = measure_finished(original, release, QueryWorkload(), None, progress, limited=limited, temporary=None)
    summary = {
        "records": audit.records + measured.suppressed,
        "released": audit.records,
        "classes": audit.classes,
        "smallest_class": audit.smallest_class,
        "suppressed": measured.suppressed,
        **measured.values,
        "columns": measured.columns,
        "audit": audit.as_dict(),
        **about,
    }
    second = release.sensitive_source()
    return release_report(source, second, policy, load_taxonomies(policy), summary, remarks=audit.remarks)


def report_finished_privately(original: object, release: FinishedRelease) -> PrivateReport:
    """Compare a release with the counts of its original."""
    policy = release.policy
    return private_report(open_original(original, policy), release.source(), policy, load_taxonomies(policy))


def _nothing_released(original: object, policy: Policy) -> dict[str, Any]:
    """Return the summary of a release without a record: all were left out."""
    records = sum(batch.num_rows for batch in open_original(original, policy).batches(policy.quasi_identifiers[:1]))
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
