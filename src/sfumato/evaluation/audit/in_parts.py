"""The audit of a release of any size: the same judgement as in memory, a part of its classes at a time.

Every part has whole classes (``tables.runs``), so each is judged by the code that judges a release in memory, and the
worst of what is found is what holds of the release. What is compared with the whole release, such as the distribution
of a sensitive column, is counted while the parts are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from sfumato.errors import UsageError
from sfumato.evaluation.audit.audit import AuditReport, Findings, class_key, judge
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.external.partition_by_key import PartsByKey
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.released_classes import ReleasedClasses, Totals, find_classes
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy

Look = Callable[[Source, ReleasedClasses], None]


def audit_in_parts(
    source: Source,
    policy: Policy,
    requirements: Requirements,
    taxonomies: Mapping[str, Taxonomy],
    *,
    memory: int,
    scratch: Scratch,
    progress: Progress,
    look: Look | None = None,
    further: Sequence[str] = (),
) -> AuditReport:
    """Compare what a release shows with what its policy asks for, in a process of at most ``memory`` bytes.

    ``look`` is shown the classes of every part with their rows, which also have the columns ``further``.
    """
    key = class_key(policy, source.names)
    for name in requirements.columns:
        if name not in source.names:
            raise UsageError.unknown_column(name, "the policy", source.names)
    others = [name for name in dict.fromkeys([*requirements.columns, *further]) if name not in key]
    compared = [name for name in requirements.attributes if _of_the_whole(name, requirements, taxonomies)]
    parts = PartsByKey(source, key, others, counted=compared, memory=memory, scratch=scratch, progress=progress)
    tokens, keep_null = policy.input.nulls, policy.privacy.null_sensitive == "value"
    totals: dict[str, Totals] = {}
    found: list[Findings] = []
    for part in parts:
        if not found:
            totals = {name: Totals.of(parts.totals[name], tokens, keep_null=keep_null) for name in compared}
        classes = find_classes(part, key, by_row=bool(requirements.columns or further), counts=part.counts)
        found.append(judge(part, classes, policy, requirements, taxonomies, totals=totals))
        if look is not None:
            look(part, classes)
    return reduce(lambda one, other: one.joined(other, requirements), found).report(policy, source.names)


def _of_the_whole(name: str, requirements: Requirements, taxonomies: Mapping[str, Taxonomy]) -> bool:
    """Does a requirement see more of a column than the records of one class?"""
    counters = frozenset().union(*(part.counters for part in requirements.parts if part.attribute == name))
    return name in taxonomies or bool(counters & {"reference", "numbers", "hierarchy"})
