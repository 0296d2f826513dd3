"""The audit: does a finished release hold what its policy asks for?

It reads the release through the public reader, as anybody would, groups its rows anew and compares. It shares no code
with the methods. A release that fails is never returned or written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import AuditError, UsageError
from sfumato.policy import Policy
from sfumato.requirements import (
    ClassCounts,
    Histogram,
    Refinement,
    Requirements,
    Verdict,
)
from sfumato.tables.coding.value_order import texts_of
from sfumato.tables.released_classes import ReleasedClasses, Totals, distribution, refine
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.sensitive_hierarchy import hierarchy_over
from sfumato.taxonomies.taxonomy import Taxonomy


@dataclass(frozen=True)
class AuditReport:
    """What an audit found. ``remarks`` say what else a person should know."""

    verdicts: tuple[Verdict, ...]
    records: int
    classes: int
    smallest_class: int
    remarks: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return all(verdict.holds for verdict in self.verdicts)

    def as_dict(self) -> list[dict[str, object]]:
        """As JSON holds it, which has no infinity: a value without bound is null."""
        return [
            {
                "requirement": one.requirement,
                "holds": one.holds,
                "value": one.value if math.isfinite(one.value) else None,
            }
            for one in self.verdicts
        ]


def class_counts(
    source: Source,
    classes: ReleasedClasses,
    policy: Policy,
    requirements: Requirements,
    taxonomies: Mapping[str, Taxonomy],
    persons: NDArray[np.uint32] | None,
    totals: Mapping[str, Totals] | None = None,
) -> ClassCounts:
    """The classes of a finished release as requirements see them; ``persons`` by row, where they are counted.

    ``totals`` are the values of the whole release, where the classes are a part of it.
    """
    tokens, keep_null = policy.input.nulls, policy.privacy.null_sensitive == "value"

    def counts(some: ReleasedClasses, names: Sequence[str]) -> ClassCounts:
        histograms = {}
        for name in names:
            whole = None if totals is None else totals.get(name)
            found = distribution(source, some, name, tokens, keep_null=keep_null, persons=persons, totals=whole)
            taxonomy = taxonomies.get(name)
            tree = None if taxonomy is None else hierarchy_over(texts_of(found.values), taxonomy, name)
            histograms[name] = Histogram(
                found.owner, found.count, found.value, found.reference, found.numbers, found.known, tree
            )
        return ClassCounts(some.sizes if persons is None else some.members(persons), histograms)

    whole = counts(classes, requirements.attributes)
    refined = {}
    for name in requirements.attributes if requirements.joint else ():
        parts, parent = refine(source, classes, [other for other in requirements.joint if other != name], tokens)
        refined[name] = Refinement(counts(parts, [name]), parent)
    return ClassCounts(whole.sizes, whole.histograms, refined)


def class_key(policy: Policy, names: Sequence[str]) -> list[str]:
    """The columns that say which class a released record is in: the quasi-identifiers, their bounds and means."""
    key = []
    for name in policy.quasi_identifiers:
        if name not in names:
            raise UsageError.unknown_column(name, "the policy", names)
        key.append(name)
        if policy.release.bounds:
            key += [told for told in (f"{name}_min", f"{name}_max") if told in names]
        if policy.release.form == "statistics":
            key += [told for told in (f"{name}_mean",) if told in names]
    return key


@dataclass(frozen=True)
class Findings:
    """What was found in the classes of a release, or in a part of them: a verdict for every requirement, and sizes."""

    verdicts: tuple[Verdict, ...]
    records: int
    classes: int
    smallest_class: int

    def joined(self, other: Findings, requirements: Requirements) -> Findings:
        """What these classes and others of the same release come to."""
        pairs = zip(requirements.parts, self.verdicts, other.verdicts, strict=True)
        return Findings(
            tuple(part.worse(one, another) for part, one, another in pairs),
            self.records + other.records,
            self.classes + other.classes,
            min(self.smallest_class, other.smallest_class),
        )

    def report(self, policy: Policy, names: Sequence[str], *, persons: bool = False) -> AuditReport:
        """Beside what the rows alone do not tell; ``persons`` says that they were counted."""
        released = [
            Verdict(f"the identifier {name!r} is not released", False, 1)
            for name in policy.identifiers
            if name in names
        ]
        remarks = []
        if policy.privacy.person is not None and not persons:
            remarks.append(
                "the policy counts persons, and a release does not say whose its records are: only that every class "
                "has k records was checked; persons were counted when the release was made"
            )
        if policy.privacy.sensitive and policy.privacy.null_sensitive == "value":
            remarks.append("null counts as a sensitive value like another, as the policy asks")
        verdicts = (*self.verdicts, *released)
        return AuditReport(verdicts, self.records, self.classes, self.smallest_class, tuple(remarks))


def audit_classes(
    source: Source,
    classes: ReleasedClasses,
    policy: Policy,
    requirements: Requirements,
    taxonomies: Mapping[str, Taxonomy],
    persons: NDArray[np.uint32] | None = None,
) -> AuditReport:
    """Compare what a release shows with what its policy asks for."""
    found = judge(source, classes, policy, requirements, taxonomies, persons)
    return found.report(policy, source.names, persons=persons is not None)


def judge(
    source: Source,
    classes: ReleasedClasses,
    policy: Policy,
    requirements: Requirements,
    taxonomies: Mapping[str, Taxonomy],
    persons: NDArray[np.uint32] | None = None,
    totals: Mapping[str, Totals] | None = None,
) -> Findings:
    """What every requirement says of these classes. ``totals``: see class_counts."""
    if requirements.person is not None and (persons is None or len(persons) != classes.records):
        raise AssertionError("persons are asked for, and it is not known whose the records are")  # never count records
    counts = class_counts(source, classes, policy, requirements, taxonomies, persons, totals)
    verdicts = tuple(part.verdict(counts) for part in requirements.parts)
    smallest = int(classes.sizes.min()) if len(classes.sizes) else 0
    return Findings(verdicts, classes.records, len(classes.sizes), smallest)


def require_pass(report: AuditReport) -> None:
    """Withhold a release of our own that does not pass."""
    if not report.holds:
        failed = "; ".join(verdict.requirement for verdict in report.verdicts if not verdict.holds)
        raise AuditError(
            f"the release did not pass its audit ({failed}) and was withheld; nothing was written. "
            "This is a fault in Sfumato: please report it."
        )
