"""The audit: does a finished release hold what its policy asks for?

It reads the release through the public reader, as anybody would, groups its rows anew and compares. It shares no code
with the methods. A release that fails is never returned or written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.errors import AuditError, UsageError
from sfumato.policy import Policy
from sfumato.requirements import KAnonymity, Requirements, Verdict
from sfumato.tables.grouping import ReleasedClasses


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
        return [{"requirement": one.requirement, "holds": one.holds, "value": one.value} for one in self.verdicts]


def requirements_of(policy: Policy) -> Requirements:
    """What the policy asks of every class."""
    policy.check_complete()
    assert policy.privacy.k is not None  # check_complete has refused its absence
    return Requirements((KAnonymity(policy.privacy.k),))


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


def audit_classes(
    classes: ReleasedClasses, names: Sequence[str], policy: Policy, requirements: Requirements
) -> AuditReport:
    """Compare what a release shows with what its policy asks for."""
    verdicts = [part.verdict(classes.sizes) for part in requirements.parts]
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
