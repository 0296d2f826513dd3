"""Several sensitive attributes jointly (Machanavajjhala et al. 2006, section 4.3): each with the others as
quasi-identifiers.

Whoever knows a person's class and one sensitive value may learn another from it. A requirement that holds jointly holds
in every part of a class whose records are equal in the other sensitive attributes. Then it holds in the class too, as
far as unions keep it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.requirements.requirement import ClassCounts, Condition, Counter, Requirement, Verdict


@dataclass(frozen=True)
class Joint(Requirement):
    """``part`` in every part of a class that is equal in the other sensitive attributes."""

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

    closed_under_addition = False  # a record may be the first of its part

    @property
    def counters(self) -> frozenset[Counter]:
        return self.part.counters

    def condition(self) -> Condition | None:
        """Not all that is asked for, but a class that fails it fails the rest too."""
        return self.part.condition()

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        refined = classes.refined[self.attribute or ""]
        result = np.ones(len(classes.sizes), np.bool_)
        result[refined.parent[~self.part.holds(refined.counts)]] = False
        return result

    def verdict(self, classes: ClassCounts) -> Verdict:
        found = self.part.verdict(classes.refined[self.attribute or ""].counts)
        return replace(found, requirement=f"{found.requirement}, jointly")

    def worse(self, one: Verdict, other: Verdict) -> Verdict:
        return self.part.worse(one, other)

    def check_feasible(self, table: ClassCounts) -> None:
        self.part.check_feasible(table)
        if not self.holds(table).all():
            found = self.verdict(table)
            raise InfeasibleError(
                f"{found.requirement} cannot be reached: some records that are equal in the other sensitive columns "
                f"reach only {found.value:.4g} even if the whole table is one class. Ask for less, or not jointly."
            )
