"""From a table and a policy to what no release of it can do better than."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from sfumato.bounds.bound import Bound, BoundEffort, effort_named, lower_bounds
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.errors import UsageError
from sfumato.kernels.decorator import on_compilation
from sfumato.methods import method_named
from sfumato.pipeline.prepare import read_table
from sfumato.pipeline.release import Draft
from sfumato.policy import Policy
from sfumato.progress import Progress


def bounds_of(
    data: object, policy: Policy, effort: BoundEffort, seconds: float | None, progress: Progress
) -> Iterator[Bound]:
    """Bounds as they are proven, each at least as high as the one before."""
    check_bounded(policy)
    with on_compilation(progress.compiling):
        table = read_table(data, policy, progress)
        most = policy.most_suppressed(table.records.count)
        MemoryEngine(progress).check_feasible(table.records, table.requirements, most)
        yield from lower_bounds(
            table.records,
            table.requirements,
            most_suppressed=most,
            effort=effort,
            seconds=seconds,
            progress=progress,
        )


def check_bounded(policy: Policy) -> None:
    """Refuse a policy whose releases lose nothing on the quasi-identifiers."""
    if method_named(policy.method.name).separates:
        raise UsageError(
            f"{policy.method.name} releases the quasi-identifiers as they are, so their loss is 0 and has no bound. "
            "Choose another method."
        )


def with_bound(draft: Draft, data: object) -> Draft:
    """A draft that also says how much every release of its table loses at least, searched for with its own effort."""
    method, bound = draft.policy.method, 0.0
    for found in bounds_of(data, draft.policy, effort_named(method.effort), method.seconds, draft.progress):
        bound = found.gcp
    # Rounded down it is still a bound, and tells no more of the table than a loss does.
    return replace(draft, facts={**draft.facts, "bound": math.floor(bound * 10_000) / 10_000})
