"""A requirement of a policy that counts persons, judged by records: a finished release does not say whose they are.

Any record may belong to anybody. So the requirement fails if it fails whoever the records belong to, it holds if it
holds whoever they belong to, and otherwise it cannot be checked. That the records alone would meet it says nothing: all
of them may belong to one person. Each kind declares what its records decide (``possible_in_persons``,
``certain_in_persons``); a kind that declares nothing is never checked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.requirements.requirement import ClassCounts, DerivedRequirement, Verdict, all_hold

REASONS = {
    True: "it holds whoever the records belong to",
    False: "it fails whoever the records belong to",
    None: "the policy counts persons, and a release does not say whose its records are",
}


@dataclass(frozen=True)
class WithoutPersons(DerivedRequirement):
    """What the records of a class say of ``part``, which counts persons."""

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return self.part.certain_in_persons(classes)

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is that of the records. Persons may reach more or less."""
        in_records = self.part.verdict(classes)
        if not self.part.possible_in_persons(classes).all():
            return _decided(in_records, False)
        return _decided(in_records, True if self.part.certain_in_persons(classes).all() else None)

    def worse(self, one: Verdict, other: Verdict) -> Verdict:
        return _decided(self.part.worse(one, other), all_hold([one.holds, other.holds]))


def _decided(in_records: Verdict, holds: bool | None) -> Verdict:
    return replace(in_records, holds=holds, reason=REASONS[holds], counted="records")
