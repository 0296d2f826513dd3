"""Joint requirements on several sensitive attributes (Machanavajjhala et al. 2006, section 4.3).

Each sensitive attribute is protected with the others as quasi-identifiers, because whoever knows a person's class and
one sensitive value may learn another from it. A requirement holds jointly if it holds in every part of a class whose
records are equal in the other sensitive attributes. If it is closed under union, it then holds in the class too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.requirements.requirement import ClassCounts, Condition, DerivedRequirement, Verdict


@dataclass(frozen=True)
class Joint(DerivedRequirement):
    """Requires ``part`` in every part of a class that is equal in the other sensitive attributes."""

    closed_under_addition = False  # the record may start a part of its own

    def condition(self) -> Condition | None:
        """The condition of ``part``: necessary, since a class that fails it fails jointly too, but not sufficient."""
        return self.part.condition()

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return self._in_every_part(self.part.holds, classes)

    # The values of a record decide which part it is in, not its person. So what is said of a class is said of a part.

    def possible_in_persons(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return self._in_every_part(self.part.possible_in_persons, classes)

    def certain_in_persons(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return self._in_every_part(self.part.certain_in_persons, classes)

    def verdict(self, classes: ClassCounts) -> Verdict:
        verdict = self.part.verdict(classes.refined[self.attribute or ""].counts)
        return replace(verdict, requirement=f"{verdict.requirement}, jointly")

    def check_feasible(self, table: ClassCounts) -> None:
        self.part.check_feasible(table)
        if not self.holds(table).all():
            verdict = self.verdict(table)
            raise InfeasibleError(
                f"{verdict.requirement} cannot be reached: some records that are equal in the other sensitive columns "
                f"reach only {verdict.value:.4g} even if the whole table is one class. Ask for less, or not jointly."
            )

    def _in_every_part(
        self, test: Callable[[ClassCounts], NDArray[np.bool_]], classes: ClassCounts
    ) -> NDArray[np.bool_]:
        """Return whether the test is true of every part of each class."""
        refined = classes.refined[self.attribute or ""]
        result = np.ones(len(classes.sizes), np.bool_)
        result[refined.parent[~test(refined.counts)]] = False
        return result
