"""Lower bounds of the loss: what every release of a table under a policy loses at least."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from sfumato.bounds.bound import Bound, BoundEffort, MeasuredRelease, Suppression, effort_named, lower_bounds
from sfumato.bounds.squared_error_bound import SquaredErrorBound, squared_error_bounds
from sfumato.engines.engine import Draft
from sfumato.errors import UsageError
from sfumato.evaluation.queries import QueryWorkload
from sfumato.kernels.decorator import on_compilation
from sfumato.losses.squared_errors import check_numeric
from sfumato.methods import method_named
from sfumato.methods.method import Effort
from sfumato.methods.suppression import surplus_rows
from sfumato.pipeline.capabilities import check_method_of
from sfumato.pipeline.prepare import read_table
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.requirements import all_hold
from sfumato.studies.audit import audit_finished
from sfumato.studies.finished_release import FinishedRelease
from sfumato.studies.measure import measure_finished


def bounds_of(
    data: object, policy: Policy, effort: BoundEffort, seconds: float | None, progress: Progress
) -> Iterator[Bound]:
    """Yield bounds as they are proven, each at least as high as the one before."""
    check_bounded(policy)
    with on_compilation(progress.compiling):
        table = read_table(data, policy, progress)
        most = policy.most_suppressed(table.count)
        surplus_rows(table.records, table.job.requirements, most)  # raises InfeasibleError if no release is possible
        yield from lower_bounds(
            table.records,
            table.job.requirements,
            suppression=Suppression(most, policy.release.suppression_cost),
            effort=effort,
            seconds=seconds,
            progress=progress,
        )


def squared_error_bounds_of(
    data: object, policy: Policy, effort: BoundEffort, seconds: float | None, progress: Progress
) -> Iterator[SquaredErrorBound]:
    """Yield bounds on IL as they are proven, each at least as high as the one before."""
    check_method_of(policy)
    with on_compilation(progress.compiling):
        table = read_table(data, policy, progress)
        check_numeric(table.records.domains)
        surplus_rows(table.records, table.job.requirements, 0)  # raises InfeasibleError if no release is possible
        yield from squared_error_bounds(
            table.records, table.job.requirements, effort=effort, seconds=seconds, progress=progress
        )


def check_bounded(policy: Policy) -> None:
    """Refuse a policy whose releases lose nothing on the quasi-identifiers."""
    if method_named(policy.method.name).separates:
        raise UsageError(
            f"{policy.method.name} releases the quasi-identifiers as they are, so their loss is 0 and has no bound. "
            "Choose another method."
        )


def refuse_beside_release(policy: Policy) -> None:
    """Refuse a bound in the summary of a release whose loss is not the certainty penalty."""
    if policy.method.loss == "sse":
        raise UsageError(
            'the bound beside a release is that of the certainty penalty, and the loss is "sse". Run sfumato bound '
            "with --loss sse instead."
        )


def with_bound(draft: Draft) -> Draft:
    """Add to a draft how much every release of its table loses at least, searched for with the effort of the run."""
    job, bound = draft.job, 0.0
    effort = Effort.asked(job.policy.method)
    level = "best" if effort.is_exact else effort.level  # no bound is searched for any longer
    for proven in bounds_of(job.data, job.policy, effort_named(level), effort.seconds, job.progress):
        bound = proven.cost
    # Rounded down it is still a bound, and reveals no more about the table than a loss does.
    return replace(draft, facts={**draft.facts, "bound": math.floor(bound * 10_000) / 10_000})


def bounds_beside(
    data: object,
    policy: Policy,
    release: FinishedRelease | None,
    effort: str,
    seconds: float | None,
    progress: Progress,
) -> Iterator[Bound | SquaredErrorBound]:
    """Yield bounds as they are proven, each beside the loss of a release if there is one."""
    wanted = effort_named(effort)
    if seconds is not None and not seconds > 0:
        raise UsageError(f"the seconds must be a number above 0, not {seconds:g}.")
    check_bounded(policy)
    measured, squares = None, policy.method.loss == "sse"
    if release is not None:
        with progress.phase("measure"):
            measured = _measured(data, release)
        if squares and measured.il is None:
            raise UsageError(
                "the two tables do not show which records are in which class of the release, so its IL is not known. "
                "Leave the release out; the summary of its run says its IL."
            )
    if squares:
        for found in squared_error_bounds_of(data, policy, wanted, seconds, progress):
            yield found if measured is None else replace(found, release_il=measured.il, release_holds=measured.holds)
        return
    for proven in bounds_of(data, policy, wanted, seconds, progress):
        yield replace(proven, release=measured)


def _measured(data: object, release: FinishedRelease) -> MeasuredRelease:
    """Measure a release, and see whether it meets its policy."""
    progress = Progress()  # the caller times all of it as one phase
    losses = measure_finished(data, release, QueryWorkload(), None, progress, limited=False, temporary=None)
    report = audit_finished(release, None, progress, limited=False, temporary=None)
    allowed = release.policy.most_suppressed(report.records + losses.suppressed)
    verdicts = [losses.suppressed <= allowed, *(verdict.holds for verdict in report.verdicts)]
    return MeasuredRelease(float(losses.gcp), float(losses.cost), all_hold(verdicts), losses.values.get("il"))
