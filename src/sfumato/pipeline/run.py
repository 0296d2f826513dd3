"""One release, whatever the engine: read, profile, encode, check, form classes, recode, write, audit, certify."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.engines.engine import Draft, Prepared
from sfumato.kernels.decorator import on_compilation
from sfumato.pipeline.engine_choice import Chosen, choose_engine, tables_of
from sfumato.pipeline.examination import examined
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
    try:
        prepared = prepare_release(chosen, data, policy, progress)
        return draft_of(prepared, prepared.engine.form_classes, trial=trial)
    except BaseException:
        chosen.engine.close()  # an error that somebody holds would keep the files too
        raise


def prepare_release(chosen: Chosen, data: object, policy: Policy, progress: Progress) -> Prepared:
    """Read a table and make every check that needs no classes."""
    engine = chosen.engine
    with on_compilation(progress.compiling):
        job = open_job(data, chosen.source, policy, progress)
        job.warnings.extend(chosen.warnings)
        scan = engine.read(job)
        profile = engine.profile(scan)
        table = engine.encode(scan, profile)
        engine.check(table)
    return Prepared(engine, job, table)


def draft_of(
    prepared: Prepared,
    form_classes: Callable[[Any], Any],
    circumstances: Mapping[str, str] | None = None,
    *,
    trial: bool = False,
) -> Draft:
    """Form the classes of a table, and recode it. circumstances: what decides classes beside the table and its job."""
    engine, job, table = prepared.engine, prepared.job, prepared.table
    with on_compilation(job.progress.compiling):
        recipe = class_recipe(engine, job).in_circumstances(circumstances or {})
        fingerprints = None if trial else recognised(engine, job, table, recipe)
        rows = engine.recode(table, form_classes(table))
        if job.progress.stopped and not recipe.anew:
            recipe = replace(recipe, anew=True)
            job.warnings.append(STOPPED)
    return prepared.draft(rows, recipe, fingerprints, trial=trial)


def kept(draft: Draft) -> Release:
    """Audit a draft, and keep its rows for as long as the release lives."""
    try:
        written = draft.engine.keep(draft.rows)
        return Release(draft, examined(draft, written))
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
    shareable_policy: Path | None = None,
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
        release = Release(draft, examined(draft, written))
        with job.progress.phase("certify"):
            text = certificate(release.public_summary(), job.policy, output.certified())
        release.certificate, release.replaced = json.loads(text), tuple(replaced)
        pages = release.pages(report, report_private, explained, shareable_policy)
        with job.progress.phase("certify"):
            output.publish(text, pages)
    record_release(draft, output.recorded, release.audit.records, release.private_figures())
    return release
