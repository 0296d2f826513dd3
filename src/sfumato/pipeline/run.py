"""One release, whatever the engine: read, profile, encode, check, form classes, recode, write, audit, certify."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.engines.engine import Draft
from sfumato.errors import AuditError
from sfumato.evaluation.audit.audit import require_pass
from sfumato.evaluation.public_figures import Examination
from sfumato.kernels.decorator import on_compilation
from sfumato.pipeline.engine_choice import choose_engine, tables_of
from sfumato.pipeline.prepare import STOPPED, open_job
from sfumato.pipeline.recognition import class_recipe, recognised, record_release
from sfumato.pipeline.release import Release, codebook_target
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.certificate import certificate


def draft_release(
    data: object,
    policy: Policy,
    progress: Progress,
    *,
    target: str | Path | None = None,
    force: bool = False,
    trial: bool = False,
    spark: Any = None,
) -> Draft:
    """Make the rows of a release. They are not audited yet. target, force, trial, spark: see ``choose_engine``."""
    chosen = choose_engine(data, policy, progress, target=target, force=force, trial=trial, spark=spark)
    engine = chosen.engine
    try:
        with on_compilation(progress.compiling):
            job = open_job(data, chosen.source, policy, progress)
            job.warnings.extend(chosen.warnings)
            scan = engine.read(job)
            profile = engine.profile(scan)
            table = engine.encode(scan, profile)
            engine.check(table)
            recipe = class_recipe(engine, job)
            fingerprints = None if trial else recognised(engine, job, table, recipe)
            classes = engine.form_classes(table)
            rows = engine.recode(table, classes)
            if progress.stopped and not recipe.anew:
                recipe = replace(recipe, anew=True)
                job.warnings.append(STOPPED)
    except BaseException:
        engine.close()  # an error that somebody holds would keep the files too
        raise
    return Draft(
        engine=engine,
        job=job,
        rows=rows,
        records=table.count,
        domains=table.domains,
        fingerprints=fingerprints,
        recipe=recipe,
        trial=trial,
    )


def kept(draft: Draft) -> Release:
    """Audit a draft, and keep its rows for as long as the release lives."""
    try:
        written = draft.engine.keep(draft.rows)
        return Release(draft, _examined(draft, written))
    except BaseException:
        draft.engine.close()
        raise


def published(
    draft: Draft,
    target: str | Path,
    *,
    force: bool = False,
    report: Path | None = None,
    report_private: Path | None = None,
    codebook: bool | None = None,
) -> Release:
    """Write a draft: stage it, audit what was written, certify it, and put all that belongs to it in place together.

    codebook: whether its codebook belongs to it; None is what the policy says.
    """
    engine, job = draft.engine, draft.job
    replaced = engine.check_target(job.data, target, tables=tables_of(job.policy), force=force, trial=draft.trial)
    explained = codebook_target(draft, target, codebook, force=force)
    with engine.output(draft, target) as output:
        written = output.write()
        release = Release(draft, _examined(draft, written))
        with job.progress.phase("certify"):
            text = certificate(release.public_summary(), job.policy, output.certified())
        release.certificate, release.replaced = json.loads(text), tuple(replaced)
        pages = release.pages(report, report_private, explained)
        with job.progress.phase("certify"):
            output.publish(text, pages)
    record_release(draft, output.recorded, release.audit.records, release.private_figures())
    return release


def _examined(draft: Draft, written: Any) -> Examination:
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
