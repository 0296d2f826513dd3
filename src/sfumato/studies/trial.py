"""Trials on a table that was read once: a release that is not written, or only the figures of one."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.engines.engine import Draft
from sfumato.engines.memory.classes import form_classes
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.engines.memory.released_rows import errors_of, recode, shown_classes_of
from sfumato.errors import AuditError
from sfumato.evaluation.release_losses import Losses, measure_release
from sfumato.pipeline.recognition import class_recipe
from sfumato.pipeline.release import Release
from sfumato.pipeline.run import kept


def trial_draft(table: TableInMemory) -> Draft:
    """Make the rows of a release that is never written."""
    engine = MemoryEngine()
    rows = engine.recode(table, engine.form_classes(table))
    return Draft(
        engine=engine,
        job=table.job,
        rows=rows,
        records=table.count,
        domains=table.domains,
        fingerprints=None,
        recipe=class_recipe(engine, table.job),
        trial=True,
    )


def trial_release(table: TableInMemory) -> Release:
    """Make and audit a release of a table that was prepared for its policy."""
    return kept(trial_draft(table))


@dataclass(frozen=True)
class Sketch:
    """The figures of a release that was not made."""

    classes: int
    smallest_class: int
    losses: Losses


def sketch(table: TableInMemory) -> Sketch:
    """Return the figures of the release that ``trial_release`` would make, without its rows.

    The engine tests every class on its own counts. Nobody reads the release back, so this is no audit.
    """
    job, encoded = table.job, table.encoded
    classes, numbered = form_classes(table), job.policy.numbered
    recoded = recode(encoded.count, classes.batches, classes.domains, job.progress, numbered=numbered)
    shown = shown_classes_of(table.records, recoded, job.requirements, job.progress)
    if shown is None or not 0 <= encoded.count - shown.records <= job.policy.most_suppressed(encoded.count):
        raise AuditError(
            "the classes do not meet the policy, or leave out more than it allows, so they have no figures. This is a "
            "fault in Sfumato: please report it."
        )
    weights = job.policy.weights(encoded.domains)
    losses = measure_release(
        shown,
        encoded.domains,
        weights,
        records=encoded.count,
        k=job.policy.k,
        suppression_cost=job.policy.release.suppression_cost,
        errors=errors_of(encoded, recoded),
    )
    return Sketch(len(shown.sizes), int(shown.sizes.min(initial=encoded.count)), losses)
