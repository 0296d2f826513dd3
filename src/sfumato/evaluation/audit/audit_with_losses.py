"""Audit a release of any size and measure its losses in one pass over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from sfumato.errors import UsageError
from sfumato.evaluation.audit.audit_in_parts import audit_in_parts
from sfumato.evaluation.public_figures import Examination, PublicTotals
from sfumato.evaluation.release_losses import Losses, losses_of, measure_classes
from sfumato.losses.all_losses import Measurement
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.requirements import KAnonymity, Requirements
from sfumato.tables.coding.domains import Domain
from sfumato.tables.coding.profile import profile_source
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.released_classes import ReleasedClasses, majorities
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy


def audit_and_measure_in_parts(
    source: Source,
    policy: Policy,
    requirements: Requirements,
    taxonomies: Mapping[str, Taxonomy],
    domains: Sequence[Domain],
    *,
    records: int,
    memory: int,
    scratch: Scratch,
    progress: Progress,
    target: str | None = None,
) -> Examination:
    """Do the work of ``audit_classes`` and ``measure_release`` in a process of at most ``memory`` bytes.

    ``records`` is the size of the original, ``target`` a column of the release for the metric CM. Persons cannot be
    counted, because a release does not say which person a record belongs to.
    """
    if target is not None and target not in source.names:
        raise UsageError.unknown_column(target, "the target", source.names)
    weights = policy.weights(domains)
    measurements: list[Measurement] = []
    totals: list[PublicTotals] = []

    def measure(part: Source, classes: ReleasedClasses) -> None:
        majority = None if target is None else majorities(part, classes, target)
        measured = measure_classes(
            classes,
            domains,
            weights,
            records=records,
            k=policy.k,
            majority=majority,
            suppression_cost=policy.release.suppression_cost,
        )
        measurements.append(measured)
        totals.append(PublicTotals.of(classes, policy, taxonomies))

    report = audit_in_parts(
        source,
        policy,
        requirements,
        taxonomies,
        memory=memory,
        scratch=scratch,
        progress=progress,
        inspect=measure,
        further=() if target is None else (target,),
    )
    losses = losses_of(reduce(Measurement.join, measurements), domains)
    return Examination(report, losses, reduce(PublicTotals.join, totals))


def measured_in_parts(
    original: Source,
    release: Source,
    policy: Policy,
    taxonomies: Mapping[str, Taxonomy],
    *,
    target: str | None,
    memory: int,
    scratch: Scratch,
    progress: Progress,
) -> Losses:
    """Measure every loss of a release from the two tables alone, reading both batch by batch."""
    columns = {name: policy.columns[name] for name in policy.quasi_identifiers}
    encoders, records = profile_source(original, columns, policy.input_options, taxonomies, progress)
    with progress.phase("measure", release.rows):
        examination = audit_and_measure_in_parts(
            release,
            policy,
            Requirements((KAnonymity(policy.k),)),
            taxonomies,
            [encoder.domain for encoder in encoders],
            records=records,
            memory=memory,
            scratch=scratch,
            progress=progress,
            target=target,
        )
    return examination.losses
