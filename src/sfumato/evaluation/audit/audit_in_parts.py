"""Audit a release of any size, a part of its classes at a time.

Every part consists of whole classes (``tables.external.partition_by_key``), so the code that audits a release in memory
also audits each part; the worst verdict of all parts is that of the release. Whatever is compared with the whole
release, such as the distribution of a sensitive column, is counted while the parts are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

from sfumato.errors import UsageError
from sfumato.evaluation.audit.audit import AuditReport, ClassVerdicts, class_key, verdicts_of_classes
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.tables.external.partition_by_key import PartsByKey
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.released_classes import ColumnTotals, ReleasedClasses, find_classes
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy

Inspect = Callable[[Source, ReleasedClasses], None]


def audit_in_parts(
    source: Source,
    policy: Policy,
    requirements: Requirements,
    taxonomies: Mapping[str, Taxonomy],
    *,
    memory: int,
    scratch: Scratch,
    progress: Progress,
    inspect: Inspect | None = None,
    further: Sequence[str] = (),
) -> AuditReport:
    """Compare a release with its policy, in a process of at most ``memory`` bytes.

    ``inspect`` is called with the rows and the classes of every part; the rows also have the columns ``further``.
    """
    key = class_key(policy, source.names)
    for name in requirements.columns:
        if name not in source.names:
            raise UsageError.unknown_column(name, "the policy", source.names)
    others = [name for name in dict.fromkeys([*requirements.columns, *further]) if name not in key]
    compared = [name for name in requirements.attributes if _needs_totals(name, requirements, taxonomies)]
    parts = PartsByKey(source, key, others, counted=compared, memory=memory, scratch=scratch, progress=progress)
    tokens, keep_null = policy.input.nulls, policy.privacy.null_sensitive == "value"
    totals: dict[str, ColumnTotals] = {}
    findings: list[ClassVerdicts] = []
    for part in parts:
        if not findings:
            totals = {name: ColumnTotals.of(parts.totals[name], tokens, keep_null=keep_null) for name in compared}
        classes = find_classes(part, key, by_row=bool(requirements.columns or further), counts=part.counts)
        findings.append(verdicts_of_classes(part, classes, policy, requirements, taxonomies, totals=totals))
        if inspect is not None:
            inspect(part, classes)
    return reduce(lambda joined, part: joined.joined(part, requirements), findings).report(policy, source.names)


def _needs_totals(name: str, requirements: Requirements, taxonomies: Mapping[str, Taxonomy]) -> bool:
    """Whether a requirement compares the column with the whole release, not only within one class."""
    counters = frozenset().union(*(part.counters for part in requirements.parts if part.attribute == name))
    return name in taxonomies or bool(counters & {"reference", "numbers", "hierarchy"})
