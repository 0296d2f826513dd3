"""The audit: does a finished release hold what its policy asks for?

It reads the release through the public reader, as anybody would, groups its rows anew and compares. It shares no code
with the methods. A release that fails is never returned or written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sfumato.errors import AuditError, UsageError
from sfumato.policy import Policy
from sfumato.requirements import (
    AlphaAnonymity,
    ClassCounts,
    Closeness,
    Disclosure,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Histogram,
    KAnonymity,
    Likeness,
    RecursiveDiversity,
    Requirement,
    Requirements,
    VarianceDiversity,
    Verdict,
)
from sfumato.tables.grouping import ReleasedClasses, distribution
from sfumato.tables.source import Source

KINDS: dict[str, Callable[..., Requirement]] = {
    "frequency": FrequencyDiversity,
    "distinct": DistinctDiversity,
    "entropy": EntropyDiversity,
    "recursive": RecursiveDiversity,
    "variance": VarianceDiversity,
    "t-closeness": Closeness,
    "alpha-k": AlphaAnonymity,
    "beta-likeness": Likeness,
    "delta-disclosure": Disclosure,
}


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


def requirements_of(policy: Policy) -> Requirements:
    """What the policy asks of every class."""
    policy.check_complete()
    parts: list[Requirement] = [KAnonymity(policy.k)]
    for asked in policy.privacy.sensitive:
        parts.append(KINDS[asked.kind](asked.attribute, **asked.parameters()))
    return Requirements(tuple(parts))


def class_counts(
    source: Source, classes: ReleasedClasses, requirements: Requirements, tokens: Collection[str]
) -> ClassCounts:
    """The classes of a finished release as requirements see them. What ``tokens`` say is null is no sensitive value."""
    histograms = {}
    for name in requirements.attributes:
        found = distribution(source, classes, name, tokens)
        histograms[name] = Histogram(found.owner, found.count, found.value, found.reference, found.numbers)
    return ClassCounts(classes.sizes, histograms)


def class_key(policy: Policy, names: Sequence[str]) -> list[str]:
    """The columns that say which class a released record is in: the quasi-identifiers and their typed bounds."""
    key = []
    for name in policy.quasi_identifiers:
        if name not in names:
            raise UsageError.unknown_column(name, "the policy", names)
        key.append(name)
        if policy.release.form == "bounds":
            key += [bound for bound in (f"{name}_min", f"{name}_max") if bound in names]
    return key


def audit_classes(source: Source, classes: ReleasedClasses, policy: Policy, requirements: Requirements) -> AuditReport:
    """Compare what a release shows with what its policy asks for."""
    names = source.names
    counts = class_counts(source, classes, requirements, policy.input.nulls)
    verdicts = [part.verdict(counts) for part in requirements.parts]
    verdicts += [
        Verdict(f"the identifier {name!r} is not released", False, 1) for name in policy.identifiers if name in names
    ]
    smallest = int(classes.sizes.min()) if len(classes.sizes) else 0
    return AuditReport(tuple(verdicts), classes.records, len(classes.sizes), smallest)


def require_pass(report: AuditReport) -> None:
    """Withhold a release of our own that does not pass."""
    if not report.holds:
        failed = "; ".join(verdict.requirement for verdict in report.verdicts if not verdict.holds)
        raise AuditError(
            f"the release did not pass its audit ({failed}) and was withheld; nothing was written. "
            "This is a fault in Sfumato: please report it."
        )
