"""Frequency l-diversity (Ghinita 2007, definition 3): no sensitive value has more than 1/l of a class.

Whoever knows the class of a person guesses the person's value with a probability of at most 1/l. A record with null
has no value: null neither protects nor needs protection, so shares are those of the records that have a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.parameters import Parameter, whole_number
from sfumato.requirements.conjunction import FREQUENCY, LARGEST_SIZE
from sfumato.requirements.requirement import ClassCounts, Condition, Requirement, Verdict


@dataclass(frozen=True)
class FrequencyDiversity(Requirement):
    """At most one in ``l`` of the values of ``attribute`` in a class are the same."""

    attribute: str
    l: int
    kind = "frequency"
    parameters: ClassVar = {"l": Parameter(whole_number(1), nothing=1, whole=True)}
    example: ClassVar = {"l": 3}
    closed_under_union = True
    closed_under_addition = False

    def condition(self) -> Condition:
        return Condition(FREQUENCY, whole=min(self.l, LARGEST_SIZE))

    def check_feasible(self, table: ClassCounts) -> None:
        known, largest = int(table.known(self.attribute)[0]), int(table.largest(self.attribute)[0])
        if largest * self.l > known:
            feasible = known // largest
            raise InfeasibleError(
                f"frequency l-diversity of {self.attribute!r} with l = {self.l:,} allows the most frequent value "
                f"{1 / self.l:.1%} of the {table.counted}, but it has {largest / known:.1%}. "
                f"Choose an l of at most {feasible:,}."
            )

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        # A division, because a product with a very large l would not fit into 64 bits.
        return classes.largest(self.attribute) <= classes.known(self.attribute) // min(self.l, LARGEST_SIZE)

    def possible_in_persons(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """A class needs l different values, or none at all.

        Let m be the most persons with the same of d > 0 different values. Every person with a value is one of those
        with some value, so there are at most d m of them. The requirement asks for at least l m: d is at least l.
        Persons without a value do not count.
        """
        different = classes.different(self.attribute)
        result: NDArray[np.bool_] = (different >= self.l) | (different == 0)
        return result

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the l that the release reaches: the smallest ratio of known values to the most frequent one."""
        known, largest = classes.known(self.attribute), classes.largest(self.attribute)
        judged = largest > 0
        reached = float(np.min(known[judged] / largest[judged])) if judged.any() else float(self.l)
        text = f"frequency l-diversity of {self.attribute!r}, l = {self.l}"
        return Verdict(text, bool(self.holds(classes).all()), reached, vacuous=not judged.any())
