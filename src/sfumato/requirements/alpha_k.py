"""(alpha, k)-anonymity (Wong et al. 2006): no sensitive value has more than the share alpha of a class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.parameters import Parameter, share
from sfumato.requirements.conjunction import ALPHA, EXACT
from sfumato.requirements.requirement import ClassCounts, Condition, Requirement, Verdict


@dataclass(frozen=True)
class AlphaAnonymity(Requirement):
    """At most the share ``alpha`` of the values of ``attribute`` in a class are the same."""

    attribute: str
    alpha: float
    kind = "alpha-k"
    parameters: ClassVar = {"alpha": Parameter(share, nothing=1)}
    example: ClassVar = {"alpha": 0.5}
    larger_is_worse = True
    closed_under_union = True
    closed_under_addition = False

    def condition(self) -> Condition:
        return Condition(ALPHA, bound=self.alpha)

    def check_feasible(self, table: ClassCounts) -> None:
        reached = self.verdict(table)
        if not reached.holds:
            enough = math.ceil(reached.value * 1e4) / 1e4
            raise InfeasibleError(
                f"(alpha, k)-anonymity of {self.attribute!r} with alpha = {self.alpha:g} cannot be reached: the most "
                f"frequent value has {reached.value:.1%} of the table. Choose an alpha of at least {enough:.4f}."
            )

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return self._share(classes) <= self.alpha + EXACT

    def verdict(self, classes: ClassCounts) -> Verdict:
        """The value is the largest share of a value in a class."""
        shares = self._share(classes)
        worst = float(shares.max()) if shares.size else 0.0
        text = f"(alpha, k)-anonymity of {self.attribute!r}, alpha = {self.alpha:g}"
        return Verdict(text, worst <= self.alpha + EXACT, worst)

    def _share(self, classes: ClassCounts) -> NDArray[np.float64]:
        return classes.largest(self.attribute) / np.maximum(classes.known(self.attribute), 1)
