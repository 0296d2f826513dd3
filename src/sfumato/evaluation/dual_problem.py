"""Privacy against loss: what is asked, what came of each point, and the dual problem (Ghinita 2007, section 7).

The dual problem: given the most that may be lost, which is the largest k (or l)? Loss grows with k, but for few methods
is that a theorem. So the values that were sampled say between which two the answer lies, bisection narrows that down,
and then the values above are computed one by one: all of them where the table is small, else until ``BEYOND`` of them
in a row lose too much. The answer is in the end made, audited and measured as a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sfumato.errors import UsageError
from sfumato.evaluation.comparison_points import Point, Row, points_of
from sfumato.evaluation.parameter_values import Given, ParameterValues
from sfumato.methods import method_named
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.policy import Grouping, Policy

BEYOND = 20
"""So many values above the answer are computed where a larger k may cost less."""
AFFORDABLE = 2_000_000
"""All values above the answer are computed where that many records are in all their tables together."""
USUAL = range(2, 101)
ROUNDING = 1e-12
"""Sums of losses differ by so much with the order of the classes; that is not more than the limit."""


@dataclass(frozen=True, kw_only=True)
class Step(Row):
    """What came of a point of a trade-off.

    ``audited``: it was made and audited as a release; else its classes were tested by the engine, on their counts.
    ``accuracy`` is that of a decision tree on test folds, ``mean_absolute_error`` that of a regression tree.
    """

    kl: float | None = None
    accuracy: float | None = None
    mean_absolute_error: float | None = None
    audited: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As Python users and JSON have it."""
        seconds = None if self.total_seconds is None else round(self.total_seconds, 4)
        names = ("classes", "smallest_class", "suppressed", "hides_identity", "audited", "error", "code")
        return {
            "method": self.method,
            "k": self.k,
            "l": self.l,
            "gcp": self.gcp,
            "kl": self.kl,
            "accuracy": self.accuracy,
            "mean_absolute_error": self.mean_absolute_error,
            "records": self.records,
            "seconds": seconds,
            **{name: getattr(self, name) for name in names},
        }

    @property
    def place(self) -> tuple[str, int, int | None]:
        return self.method, self.k, self.l


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The largest k or l whose loss is not above the limit, for one method.

    ``exact``: no larger value that was asked for stays within the limit. ``because`` says how that is known, or what
    is known instead.
    """

    method: str
    k: int
    l: int | None
    gcp: float
    exact: bool
    because: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """What a trade-off is asked for. Of k and l those that are none are the policy's."""

    policy: Policy
    methods: str | Sequence[str]
    k: ParameterValues | None
    l: ParameterValues | None
    max_loss: float | None = None
    queries: int | None = None

    @classmethod
    def of(
        cls,
        policy: Policy,
        methods: str | Sequence[str] | None = None,
        k: Given | None = None,
        l: Given | None = None,
        max_loss: float | None = None,
        queries: int | None = None,
    ) -> Question:
        """Refuses what can be seen to be wrong before a table is read."""
        many_k = None if k is None else ParameterValues.of("k", k)
        many_l = None if l is None else ParameterValues.of("l", l)
        if many_k is None and (many_l is None or len(many_l) == 1):
            many_k = ParameterValues((USUAL,))
        if max_loss is not None:
            if isinstance(max_loss, bool) or not 0 <= max_loss <= 1:  # nor NaN
                raise UsageError(
                    "the largest loss is a share between 0 and 1. Write 0.1 for an information loss of 10%."
                )
            if many_k is not None and many_l is not None and len(many_k) > 1 < len(many_l):
                raise UsageError(
                    "both k and l have several values, and the largest of one of them is looked for. Give one value of "
                    "the other."
                )
        asked = cls(
            policy=policy,
            methods=policy.method.name if methods is None else methods,
            k=many_k,
            l=many_l,
            max_loss=max_loss,
            queries=queries,
        )
        _ = asked.points  # what is wrong with the policy of any of them is told here
        return asked

    @property
    def learns(self) -> bool:
        """Does the policy name something to predict?"""
        return bool(self.policy.workload.predicted)

    @property
    def varies(self) -> str:
        """Which of k and l the loss is drawn and looked for against."""
        return "l" if self.l is not None and (self.k is None or len(self.k) == 1 < len(self.l)) else "k"

    @property
    def values(self) -> ParameterValues:
        """Those of what varies."""
        values = self.l if self.varies == "l" else self.k
        assert values is not None
        return values

    def for_table(self, records: int) -> Question:
        """Without the part of ranges that asks for more than a table of so many records has."""
        return replace(
            self,
            k=None if self.k is None else self.k.up_to(records),
            l=None if self.l is None else self.l.up_to(records),
        )

    @cached_property
    def points(self) -> list[Point]:
        """Those that are computed at first, those of one k together."""
        many_k, many_l = (None if values is None else values.sample() for values in (self.k, self.l))
        return points_of(self.policy, self.methods, many_k, many_l)

    def point(self, method: str, value: int, like: Row) -> Point:
        """The point of another value of what varies."""
        k, l = (like.k, value) if self.varies == "l" else (value, like.l)
        return points_of(self.policy, [method], None if self.k is None else k, l)[0]

    def value_of(self, row: Row | Answer) -> int:
        """What it has of that which varies."""
        value = row.l if self.varies == "l" else row.k
        assert value is not None
        return value

    def allows(self, row: Row) -> bool:
        """Does it stay within the limit?"""
        return self.max_loss is not None and row.gcp is not None and row.gcp <= self.max_loss + ROUNDING

    def answers(self, steps: Sequence[Step]) -> list[Answer]:
        """For each method the largest value within the limit that was audited; none where there is no such value."""
        if self.max_loss is None:
            return []
        found = []
        for method, own in by_method(steps).items():
            known = {self.value_of(step): step for step in own}
            good = [step for step in own if self.allows(step) and step.audited]
            if not good:
                continue
            best = max(good, key=self.value_of)
            exact, because = self._certainty(method, best, known)
            assert best.gcp is not None
            found.append(Answer(method=method, k=best.k, l=best.l, gcp=best.gcp, exact=exact, because=because))
        return found

    def answer(self, steps: Sequence[Step]) -> Answer | None:
        """The best of all methods; those that do not hide identity lose nothing and are no match for the others."""
        found = self.answers(steps)
        hiding = [one for one in found if not method_named(one.method).separates]
        return max(hiding or found, key=lambda one: (self.value_of(one), -one.gcp), default=None)

    def never_falls(self, method: str) -> bool:
        """Is it a theorem that a larger k costs no less?

        The best cut of a line into classes of k + 1 records or more is also one into classes of k or more. That holds
        for the loss that is released as long as nothing widens what is released and nobody is left out.
        """
        found = method_named(method)
        asked = self.points[0].policy.requirements()
        columns = [self.policy.columns[name] for name in self.policy.quasi_identifiers]
        return (
            self.varies == "k"
            and isinstance(found, OptimalOneDimensional)
            and found.cost == "box"
            and not asked.attributes
            and asked.person is None
            and self.policy.release.max_suppressed_fraction == 0
            and all(column.round is None and not _widens(column.taxonomy) for column in columns)
        )

    def beyond(self, method: str, records: int) -> int:
        """How many values above the answer are to be looked at before the search ends."""
        if self.never_falls(method):
            return 0
        return len(self.values) if len(self.values) * records <= AFFORDABLE else BEYOND

    def _certainty(self, method: str, best: Step, known: Mapping[int, Step]) -> tuple[bool, str]:
        value, name = self.value_of(best), self.varies
        above = len(self.values) - 1 - self.values.index(value)
        seen = sum(other > value for other in known)
        if above == 0:
            return True, f"it is the largest {name} that was asked for"
        if seen == above:
            return True, f"every larger {name} that was asked for was computed and loses more than the limit"
        if self.never_falls(method):
            return True, f"with {method} a larger {name} never costs less"
        return False, (
            f"the next {BEYOND} larger {name} and {seen - BEYOND} more were computed and lose more than the limit; the "
            f"other {above - seen} were not computed, and with {method} a larger {name} may cost less"
        )


def largest_within(
    values: ParameterValues, allowed: Mapping[int, bool], allows: Callable[[int], bool], *, beyond: int
) -> int | None:
    """The largest value that ``allows`` says is within the limit, as far as can be seen from few of them.

    ``allowed`` is what is known already. In the end ``beyond`` values in a row above the answer, and one on either side
    of it, were looked at. None where no value was found to be within the limit.
    """
    known = {values.index(value): good for value, good in allowed.items()}

    def look(place: int) -> bool:
        if place not in known:
            known[place] = allows(values[place])
        return known[place]

    low = max((place for place, good in known.items() if good), default=-1)
    high = min((place for place in known if place > low), default=len(values))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if look(middle) else (low, middle)
    while further := [place for place in range(low + 1, min(low + 1 + beyond, len(values))) if look(place)]:
        low = further[-1]
    if low < 0:
        return None
    for place in (low - 1, low + 1):
        if 0 <= place < len(values):
            look(place)
    return values[low]


def by_method(steps: Iterable[Step]) -> dict[str, list[Step]]:
    """The steps of each method, in their order."""
    found: dict[str, list[Step]] = {}
    for step in steps:
        found.setdefault(step.method, []).append(step)
    return found


def latest(steps: Iterable[Step]) -> list[Step]:
    """One step for each point, the last that came of it, by k, l and method in the order in which methods came."""
    found = {step.place: step for step in steps}
    methods = list(by_method(found.values()))
    return sorted(found.values(), key=lambda step: (step.k, step.l or 0, methods.index(step.method)))


def _widens(taxonomy: object) -> bool:
    """Are ranges released wider than the records of a class? Prefixes are categories, which the search knows."""
    return isinstance(taxonomy, Grouping) and taxonomy.prefix is None
