"""The reports of a finished release: the one to share, and the private one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.evaluation.audit.anatomy_audit import group_sizes
from sfumato.evaluation.audit.audit import class_key
from sfumato.evaluation.public_figures import PublicTotals, public_figures
from sfumato.evaluation.queries import QueryWorkload
from sfumato.evaluation.workload_tasks import predictions_of_release
from sfumato.pipeline.prepare import load_taxonomies
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.report.codebook import Codebook, codebook_of
from sfumato.report.private import PrivateReport, private_report
from sfumato.report.release import ReleaseReport, check_report, empty_report, refuse_trial, release_report
from sfumato.studies.audit import audit_finished
from sfumato.studies.finished_release import FinishedRelease, open_original
from sfumato.studies.measure import measure_finished
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import Source
from sfumato.tables.sources.source_batches import NoRecordsError
from sfumato.tables.targets.target import refuse_input_as_output
from sfumato.taxonomies.taxonomy import Taxonomy

# What a certificate says about how a release was made. Its figures are computed anew: those of format 1 were private.
CERTIFIED = ("method", "engine", "seed", "version", "libraries", "files")


def check_page(path: str | Path | None, *tables: object, force: bool) -> None:
    """Refuse a page that cannot be written, or that would replace one of the tables, or any other file but a page."""
    if path is not None:
        for table in tables:
            refuse_input_as_output(table, Path(path))
        check_report(Path(path), force=force)


def report_finished(original: object, release: FinishedRelease, *, limited: bool) -> ReleaseReport:
    """Make the report of a release. limited: see ``audit_finished``.

    The release is measured against the original to see that both belong together. Of what is found there, the report
    has only how many records were left out.
    """
    refuse_trial(release.trial)
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
    second, taxonomies = release.sensitive_source(), load_taxonomies(policy)
    totals = _public_totals(source, second, policy, taxonomies, left_out=measured.suppressed)
    figures = public_figures(totals, audit, policy, left_out=measured.suppressed)
    return release_report(source, second, policy, taxonomies, {**figures, **about}, remarks=audit.remarks)


def codebook_finished(release: FinishedRelease) -> Codebook:
    """Make the codebook of a release, from the release and its policy alone."""
    source, second, policy = release.source(), release.sensitive_source(), release.policy
    return codebook_of(source, second, policy, load_taxonomies(policy), release.files())


def _public_totals(
    source: Source, second: Source | None, policy: Policy, taxonomies: Mapping[str, Taxonomy], *, left_out: int
) -> PublicTotals:
    by_row = second is None and bool(policy.workload.predicted)
    classes = find_classes(source, class_key(policy, source.names), by_row=by_row)
    tasks = predictions_of_release(policy, source, classes, left_out=left_out) if by_row else ()
    groups = None if second is None else group_sizes(source)
    return PublicTotals.of(classes, policy, taxonomies, groups=groups, tasks=tasks)


def report_finished_privately(original: object, release: FinishedRelease) -> PrivateReport:
    """Compare a release with its original: the losses, and the counts of both."""
    policy = release.policy
    measured = measure_finished(original, release, QueryWorkload(), None, Progress(), limited=False, temporary=None)
    figures: dict[str, Any] = {**measured.values, "columns": measured.columns}
    if measured.tasks:
        figures["workload"] = [task.as_dict() for task in measured.tasks]
    source = open_original(original, policy)
    return private_report(source, release.source(), policy, load_taxonomies(policy), figures, trial=release.trial)


def _nothing_released(original: object, policy: Policy) -> dict[str, Any]:
    """Return the summary of a release without a record: all were left out."""
    records = sum(batch.num_rows for batch in open_original(original, policy).batches(policy.quasi_identifiers[:1]))
    return {
        "records": records,
        "released": 0,
        "classes": 0,
        "smallest_class": 0,
        "suppressed": records,
        "blur": 1.0,
        "blur_by_column": dict.fromkeys(policy.quasi_identifiers, 1.0),
        "audit": [],
    }
