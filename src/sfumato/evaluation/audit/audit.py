"""The audit: does a finished release meet its policy?

The audit reads the release through the public reader, as anybody would, groups its rows again and compares the classes
with the policy. It shares no code with the methods. A release that fails is never returned or written.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import AuditError, UsageError
from sfumato.evaluation.audit.shown_levels import joined_verdicts, level_verdicts
from sfumato.policy import Policy
from sfumato.requirements import (
    ClassCounts,
    Histogram,
    Refinement,
    Requirements,
    Verdict,
)
from sfumato.tables.coding.value_order import texts_of
from sfumato.tables.released_classes import ColumnTotals, ReleasedClasses, distribution, refine
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.sensitive_hierarchy import hierarchy_over
from sfumato.taxonomies.taxonomy import Taxonomy


@dataclass(frozen=True)
class AuditReport:
    """The result of an audit. ``remarks`` are sentences on what else a reader should know."""

    verdicts: tuple[Verdict, ...]
    records: int
    classes: int
    smallest_class: int
    remarks: tuple[str, ...] = ()
    pseudonyms: tuple[str, ...] = ()
    """The released columns that join the records of a person."""
    trial: bool = False
    """Whether the release is a trial, which is not to be published."""

    @property
    def holds(self) -> bool:
        """Whether every requirement was checked and holds. If not, ``failed`` and ``unchecked`` say which do not."""
        return all(verdict.holds for verdict in self.verdicts)

    @property
    def failed(self) -> tuple[Verdict, ...]:
        """The requirements that do not hold."""
        return tuple(verdict for verdict in self.verdicts if not verdict.holds and verdict.holds is not None)

    @property
    def unchecked(self) -> tuple[Verdict, ...]:
        """The requirements that could not be checked. The reason is in each verdict."""
        return tuple(verdict for verdict in self.verdicts if verdict.holds is None)

    def __repr__(self) -> str:
        outcome = "holds"
        if not self.holds:
            outcome = f"{len(self.failed)} of {len(self.verdicts)} requirements fail"
            if self.unchecked:
                outcome += f", {len(self.unchecked)} not checked"
        return (
            f"<AuditReport{' of a trial' if self.trial else ''}: {outcome}; {self.records:,} records, "
            f"{self.classes:,} classes, smallest class {self.smallest_class:,}>"
        )

    def as_dict(self) -> list[dict[str, object]]:
        """The verdicts as JSON values. JSON has no infinity, so an unbounded value is null.

        A requirement that could not be checked has null for ``holds``, and its ``reason``. ``counted`` says what the
        value counts, if that is not what the requirement counts.
        """
        return [verdict_as_dict(verdict) for verdict in self.verdicts]


def verdict_as_dict(verdict: Verdict) -> dict[str, object]:
    """Return a verdict as JSON values, as ``AuditReport.as_dict`` describes them."""
    return {
        "requirement": verdict.requirement,
        "holds": None if verdict.holds is None else bool(verdict.holds),  # a kind may give NumPy's own
        "value": verdict.value if math.isfinite(verdict.value) else None,
        **({"counted": verdict.counted} if verdict.counted else {}),
        **({"reason": verdict.reason} if verdict.reason or verdict.holds is None else {}),
    }


def class_counts(
    source: Source,
    classes: ReleasedClasses,
    policy: Policy,
    requirements: Requirements,
    taxonomies: Mapping[str, Taxonomy],
    persons: NDArray[np.uint32] | None,
    totals: Mapping[str, ColumnTotals] | None = None,
) -> ClassCounts:
    """Count the classes of a finished release in the form that requirements read.

    ``persons`` holds the person of each row, if persons are counted. ``totals`` are the values of the whole release, if
    the classes are only a part of it.
    """
    tokens, keep_null = policy.input.nulls, policy.privacy.null_sensitive == "value"

    def counts(grouping: ReleasedClasses, names: Sequence[str]) -> ClassCounts:
        histograms = {}
        for name in names:
            whole = None if totals is None else totals.get(name)
            spread = distribution(source, grouping, name, tokens, keep_null=keep_null, persons=persons, totals=whole)
            taxonomy = taxonomies.get(name)
            tree = None if taxonomy is None else hierarchy_over(texts_of(spread.values), taxonomy, name)
            histograms[name] = Histogram(
                spread.owner, spread.count, spread.value, spread.reference, spread.numbers, spread.known, tree
            )
        return ClassCounts(grouping.sizes if persons is None else grouping.members(persons), histograms)

    whole = counts(classes, requirements.attributes)
    refined = {}
    for name in requirements.attributes if requirements.joint else ():
        parts, parent = refine(source, classes, [other for other in requirements.joint if other != name], tokens)
        refined[name] = Refinement(counts(parts, [name]), parent)
    return ClassCounts(whole.sizes, whole.histograms, refined)


def class_key(policy: Policy, names: Sequence[str]) -> list[str]:
    """The columns that define the class of a released record: quasi-identifiers, their bounds, means and medians."""
    key = []
    for name in policy.quasi_identifiers:
        if name not in names:
            raise UsageError.unknown_column(name, "the policy", names)
        key.append(name)
        key += [column for added in policy.added(name) if (column := f"{name}_{added}") in names]
    return key


@dataclass(frozen=True)
class ClassVerdicts:
    """A verdict for every requirement and every limit on levels, and the sizes, of classes of a release or a part."""

    verdicts: tuple[Verdict, ...]
    records: int
    classes: int
    smallest_class: int
    levels: tuple[Verdict, ...] = ()

    def joined(self, other: ClassVerdicts, requirements: Requirements) -> ClassVerdicts:
        """Combine the findings of these classes with those of other classes of the same release."""
        pairs = zip(requirements.parts, self.verdicts, other.verdicts, strict=True)
        return ClassVerdicts(
            tuple(part.worse(verdict, other_verdict) for part, verdict, other_verdict in pairs),
            self.records + other.records,
            self.classes + other.classes,
            min(self.smallest_class, other.smallest_class),
            joined_verdicts(self.levels, other.levels),
        )

    def report(self, policy: Policy, names: Sequence[str]) -> AuditReport:
        """The findings with what the rows alone do not show."""
        pseudonyms = tuple(name for name in policy.pseudonyms if name in names)
        remarks = [pseudonym_remark(pseudonyms)] if pseudonyms else []
        if policy.privacy.sensitive and policy.privacy.null_sensitive == "value":
            remarks.append("null counts as a sensitive value like another, as the policy asks")
        verdicts = (*self.verdicts, *self.levels, *withheld_verdicts(policy, names))
        return AuditReport(verdicts, self.records, self.classes, self.smallest_class, tuple(remarks), pseudonyms)


def pseudonym_remark(columns: Sequence[str]) -> str:
    """Say what released pseudonyms undo. columns: those that hold them, at least one."""
    names = ", ".join(map(repr, columns))
    return (
        f"the pseudonyms of {names} join the records of a person across classes: k holds in every class, but not per "
        "person, and whoever recognises one record of a person has all of them"
    )


def withheld_verdicts(policy: Policy, names: Collection[str]) -> list[Verdict]:
    """Return a failed line for every released column that the policy withholds. names: the columns of the release."""
    withheld = [(name, "identifier") for name in policy.identifiers] + [(name, "column") for name in policy.dropped]
    return [Verdict(f"the {what} {name!r} is not released", False, 1) for name, what in withheld if name in names]


def audit_classes(
    source: Source,
    classes: ReleasedClasses,
    policy: Policy,
    requirements: Requirements,
    taxonomies: Mapping[str, Taxonomy],
    persons: NDArray[np.uint32] | None = None,
) -> AuditReport:
    """Compare the classes of a release with its policy."""
    findings = verdicts_of_classes(source, classes, policy, requirements, taxonomies, persons)
    return findings.report(policy, source.names)


def verdicts_of_classes(
    source: Source,
    classes: ReleasedClasses,
    policy: Policy,
    requirements: Requirements,
    taxonomies: Mapping[str, Taxonomy],
    persons: NDArray[np.uint32] | None = None,
    totals: Mapping[str, ColumnTotals] | None = None,
) -> ClassVerdicts:
    """Test every requirement on these classes. ``persons`` and ``totals``: see class_counts."""
    if requirements.person is not None and (persons is None or len(persons) != classes.records):
        raise AssertionError("persons must be counted, but the person of each row is unknown")  # never count records
    counts = class_counts(source, classes, policy, requirements, taxonomies, persons, totals)
    verdicts = tuple(part.verdict(counts) for part in requirements.parts)
    smallest = int(classes.sizes.min()) if len(classes.sizes) else 0
    levels = level_verdicts(classes, policy, taxonomies)
    return ClassVerdicts(verdicts, classes.records, len(classes.sizes), smallest, levels)


def require_pass(report: AuditReport) -> None:
    """Raise an error if a release of our own does not pass its audit. All of it must be checked: who makes it can."""
    if not report.holds:
        failed = "; ".join(verdict.requirement for verdict in report.verdicts if not verdict.holds)
        raise AuditError(
            f"the release did not pass its audit ({failed}) and was withheld; nothing was written. "
            "This is a fault in Sfumato: please report it."
        )
