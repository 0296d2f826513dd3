"""Joint requirements on several sensitive attributes (Machanavajjhala et al. 2006, section 4.3).

Each sensitive attribute is protected with the others as quasi-identifiers, because whoever knows a person's class and
one sensitive value may learn another from it. A requirement holds jointly if it holds in every part of a class whose
records are equal in the other sensitive attributes. If it is closed under union, it then holds in the class too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.requirements.requirement import ClassCounts, Condition, Counter, Requirement, Verdict


@dataclass(frozen=True)
class Joint(Requirement):
    """Requires ``part`` in every part of a class that is equal in the other sensitive attributes."""

    part: Requirement

    @property
    def kind(self) -> str:  # type: ignore[override]
        return self.part.kind

    @property
    def attribute(self) -> str | None:  # type: ignore[override]
        return self.part.attribute

    @property
    def closed_under_union(self) -> bool:  # type: ignore[override]
        return self.part.closed_under_union

    @property
    def larger_is_worse(self) -> bool:  # type: ignore[override]
        return self.part.larger_is_worse

    closed_under_addition = False  # the record may start a part of its own

    @property
    def counters(self) -> frozenset[Counter]:
        return self.part.counters

    def condition(self) -> Condition | None:
        """The condition of ``part``: necessary, since a class that fails it fails jointly too, but not sufficient."""
        return self.part.condition()

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        refined = classes.refined[self.attribute or ""]
        result = np.ones(len(classes.sizes), np.bool_)
        result[refined.parent[~self.part.holds(refined.counts)]] = False
        return result

    def verdict(self, classes: ClassCounts) -> Verdict:
        verdict = self.part.verdict(classes.refined[self.attribute or ""].counts)
        return replace(verdict, requirement=f"{verdict.requirement}, jointly")

    def worse(self, one: Verdict, other: Verdict) -> Verdict:
        return self.part.worse(one, other)

    def check_feasible(self, table: ClassCounts) -> None:
        self.part.check_feasible(table)
        if not self.holds(table).all():
            verdict = self.verdict(table)
            raise InfeasibleError(
                f"{verdict.requirement} cannot be reached: some records that are equal in the other sensitive columns "
                f"reach only {verdict.value:.4g} even if the whole table is one class. Ask for less, or not jointly."
            )
