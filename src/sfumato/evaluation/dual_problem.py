"""The trade-off between privacy and loss, and the dual problem (Ghinita 2007, section 7).

The dual problem: given the largest acceptable loss, what is the largest k (or l)? Loss usually grows with k, but only
for a few methods is that a theorem. So the search has three steps. The sampled values show between which two values the
answer lies; bisection narrows that interval; then the values above are computed one by one, all of them if the table is
small, else until ``BEYOND`` of them in a row lose too much. Finally the answer is produced, audited and measured as a
release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sfumato.errors import UsageError
from sfumato.evaluation.comparison_points import Point, Row, points_of
from sfumato.evaluation.parameter_values import ParameterValues, RequestedValues
from sfumato.methods import method_named
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.policy import EffortName, Policy, merge_flags

BEYOND = 20
"""The number of values above the answer to compute where a larger k may cost less."""
AFFORDABLE = 2_000_000
"""All values above the answer are computed if values times records is at most this."""
USUAL = range(2, 101)
QUICK: EffortName = "fast"
"""The effort of points, unless the policy names one: there are dozens of them, and with more they lose less still."""
ROUNDING = 1e-12
"""A sum of losses may differ by this much with the order of the classes; such an excess is within the limit."""


@dataclass(frozen=True, kw_only=True)
class TradeoffStep(Row):
    """The result of a point of a trade-off.

    ``audited``: the point was produced and audited as a release; otherwise the engine tested its classes by their
    counts. ``accuracy`` is that of a decision tree on test folds, ``mean_absolute_error`` that of a regression tree.
    ``max_suppressed`` is the share that may be left out, where that is what varies; ``gcp_released`` is the loss of the
    records that stay, ``cost`` the loss in which those left out count as the policy says.
    """

    max_suppressed: float | None = None
    gcp_released: float | None = None
    cost: float | None = None
    kl: float | None = None
    accuracy: float | None = None
    mean_absolute_error: float | None = None
    audited: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The step as JSON values."""
        seconds = None if self.total_seconds is None else round(self.total_seconds, 4)
        names = ("classes", "smallest_class", "suppressed", "hides_identity", "audited", "error", "code")
        return {
            "method": self.method,
            "k": self.k,
            "l": self.l,
            "max_suppressed": self.max_suppressed,
            "gcp": self.gcp,
            "gcp_released": self.gcp_released,
            "cost": self.cost,
            "kl": self.kl,
            "accuracy": self.accuracy,
            "mean_absolute_error": self.mean_absolute_error,
            "records": self.records,
            "seconds": seconds,
            **{name: getattr(self, name) for name in names},
        }

    @property
    def place(self) -> tuple[str, int, int | None, float | None]:
        return self.method, self.k, self.l, self.max_suppressed

    @property
    def label(self) -> str:
        """The requested k, l and share, in words."""
        if self.max_suppressed is None:
            return super().label
        return f"{super().label}, up to {self.max_suppressed:.4g} left out"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The largest k or l whose loss is within the limit, for one method.

    ``exact``: no larger requested value stays within the limit. ``because`` says how that is known, or what is known
    instead.
    """

    method: str
    k: int
    l: int | None
    gcp: float
    exact: bool
    because: str


@dataclass(frozen=True, kw_only=True)
class TradeoffQuestion:
    """The request for a trade-off. A k or l of None means the policy's.

    suppressed: the shares of records to leave out, at one k and l. The search then leaves out as many records as gain
    anything, whatever the cost of the policy: the cost decides which point of the curve is best, and not the curve.
    """

    policy: Policy
    methods: str | Sequence[str]
    k: ParameterValues | None
    l: ParameterValues | None
    max_loss: float | None = None
    queries: int | None = None
    suppressed: tuple[float, ...] | None = None

    @classmethod
    def of(
        cls,
        policy: Policy,
        methods: str | Sequence[str] | None = None,
        k: RequestedValues | None = None,
        l: RequestedValues | None = None,
        max_loss: float | None = None,
        queries: int | None = None,
        suppressed: float | Iterable[float] | None = None,
    ) -> TradeoffQuestion:
        """Build the question, and refuse every mistake that can be seen before a table is read."""
        if not policy.method.names_effort:
            policy = merge_flags(policy, effort=QUICK)
        many_k = None if k is None else ParameterValues.of("k", k)
        many_l = None if l is None else ParameterValues.of("l", l)
        shares = None if suppressed is None else _shares(suppressed)
        if shares is not None:
            _check_alone(policy, many_k, many_l, max_loss)
        elif many_k is None and (many_l is None or len(many_l) == 1):
            many_k = ParameterValues((USUAL,))
        if max_loss is not None:
            if isinstance(max_loss, bool) or not 0 <= max_loss <= 1:  # nor NaN
                raise UsageError(
                    "the largest loss must be a share between 0 and 1. Write 0.1 for an information loss of 10%."
                )
            if many_k is not None and many_l is not None and len(many_k) > 1 < len(many_l):
                raise UsageError(
                    "both k and l have several values, but a largest loss finds the largest value of only one of them. "
                    "Give a single value for the other."
                )
        question = cls(
            policy=policy,
            methods=policy.method.name if methods is None else methods,
            k=many_k,
            l=many_l,
            max_loss=max_loss,
            queries=queries,
            suppressed=shares,
        )
        _ = question.points  # raises what is wrong with the policy of any point
        return question

    @property
    def learns(self) -> bool:
        """Whether the policy names something to predict."""
        return bool(self.policy.workload.predicted)

    @property
    def varies(self) -> str:
        """Which of the two parameters varies: "k" or "l"."""
        return "l" if self.l is not None and (self.k is None or len(self.k) == 1 < len(self.l)) else "k"

    @property
    def values(self) -> ParameterValues:
        """The requested values of the parameter that varies."""
        values = self.l if self.varies == "l" else self.k
        assert values is not None
        return values

    def for_table(self, records: int) -> TradeoffQuestion:
        """This question without values above the size of the table, ``records``."""
        return replace(
            self,
            k=None if self.k is None else self.k.up_to(records),
            l=None if self.l is None else self.l.up_to(records),
        )

    @cached_property
    def points(self) -> list[Point]:
        """The points to compute first, points of one k together."""
        sampled_k, sampled_l = (None if values is None else values.sample() for values in (self.k, self.l))
        if self.suppressed is None:
            return points_of(self.policy, self.methods, sampled_k, sampled_l)
        points: list[Point] = []
        for share in self.suppressed:
            policy = merge_flags(self.policy, max_suppressed=share, suppression_cost=0.0)
            points += points_of(policy, self.methods, sampled_k, sampled_l)
        return points

    def point(self, method: str, value: int, like: Row) -> Point:
        """The point like ``like`` with another value of the parameter that varies."""
        k, l = (like.k, value) if self.varies == "l" else (value, like.l)
        return points_of(self.policy, [method], None if self.k is None else k, l)[0]

    def value_of(self, row: Row | Answer) -> int:
        """The row's value of the parameter that varies."""
        value = row.l if self.varies == "l" else row.k
        assert value is not None
        return value

    def allows(self, row: Row) -> bool:
        """Whether the row's loss is within the limit."""
        return self.max_loss is not None and row.gcp is not None and row.gcp <= self.max_loss + ROUNDING

    def answers(self, steps: Sequence[TradeoffStep]) -> list[Answer]:
        """The answer of each method that has one: its largest audited value within the limit."""
        if self.max_loss is None:
            return []
        answers = []
        for method, own_steps in by_method(steps).items():
            known = {self.value_of(step): step for step in own_steps}
            within = [step for step in own_steps if self.allows(step) and step.audited]
            if not within:
                continue
            best = max(within, key=self.value_of)
            exact, because = self._certainty(method, best, known)
            assert best.gcp is not None
            answers.append(Answer(method=method, k=best.k, l=best.l, gcp=best.gcp, exact=exact, because=because))
        return answers

    def answer(self, steps: Sequence[TradeoffStep]) -> Answer | None:
        """The best answer of all methods. Methods that do not hide identity lose nothing, so others go first."""
        answers = self.answers(steps)
        hiding = [answer for answer in answers if not method_named(answer.method).separates]
        return max(hiding or answers, key=lambda answer: (self.value_of(answer), -answer.gcp), default=None)

    def never_falls(self, method: str) -> bool:
        """Whether it is a theorem that with this method a larger k costs no less.

        The best cut of a line into classes of at least k + 1 records is also a cut into classes of at least k. This
        carries over to the loss of the release as long as no record is left out.
        """
        chosen = method_named(method)
        requirements = self.points[0].policy.requirements()
        return (
            self.varies == "k"
            and isinstance(chosen, OptimalOneDimensional)
            and chosen.cost == "box"
            and not requirements.attributes
            and requirements.person is None
            and self.policy.release.max_suppressed_fraction == 0
        )

    def beyond(self, method: str, records: int) -> int:
        """How many values above the answer to compute before the search ends."""
        if self.never_falls(method):
            return 0
        return len(self.values) if len(self.values) * records <= AFFORDABLE else BEYOND

    def _certainty(self, method: str, best: TradeoffStep, known: Mapping[int, TradeoffStep]) -> tuple[bool, str]:
        value, name = self.value_of(best), self.varies
        above = len(self.values) - 1 - self.values.index(value)
        computed = sum(other > value for other in known)
        if above == 0:
            return True, f"it is the largest {name} that was asked for"
        if computed == above:
            return True, f"every larger {name} that was asked for was computed and loses more than the limit"
        if self.never_falls(method):
            return True, f"with {method} a larger {name} never costs less"
        return False, (
            f"the next {BEYOND} larger {name} and {computed - BEYOND} more were computed and lose more than the limit; "
            f"the other {above - computed} were not computed, and with {method} a larger {name} may cost less"
        )


def _shares(given: float | Iterable[float]) -> tuple[float, ...]:
    """Return the shares of records to leave out, ascending, each once."""
    shares = sorted(set(given if isinstance(given, Iterable) else (given,)))
    if not shares:
        raise UsageError("the list of shares to leave out is empty. Give at least one, such as 0.05.")
    if any(isinstance(share, bool) or not 0 <= share < 1 for share in shares):  # nor NaN
        raise UsageError("a share of the records to leave out must be at least 0 and below 1. Write 0.05 for 5%.")
    return tuple(map(float, shares))


def _check_alone(policy: Policy, k: ParameterValues | None, l: ParameterValues | None, max_loss: float | None) -> None:
    """Refuse what cannot vary or be searched for together with the share of records that are left out."""
    if any(values is not None and len(values) > 1 for values in (k, l)):
        raise UsageError("the share left out varies at one k and one l. Give a single value for each of them.")
    if max_loss is not None:
        raise UsageError("a largest loss finds the largest k or l, not a share to leave out. Leave one of the two out.")
    if policy.release.max_suppressed_fraction:
        raise UsageError(
            "both a share that may be left out and shares to compare are given. Leave out max_suppressed_fraction or "
            "--max-suppressed."
        )


def largest_within(
    values: ParameterValues, allowed: Mapping[int, bool], allows: Callable[[int], bool], *, beyond: int
) -> int | None:
    """Find the largest value for which ``allows`` is true, by testing few of the values.

    ``allowed`` holds the results that are already known. When the search ends, ``beyond`` values in a row above the
    answer, and its two neighbours, were tested. Returns None if no tested value is within the limit.
    """
    known = {values.index(value): within for value, within in allowed.items()}

    def within_limit(index: int) -> bool:
        if index not in known:
            known[index] = allows(values[index])
        return known[index]

    low = max((index for index, within in known.items() if within), default=-1)
    high = min((index for index in known if index > low), default=len(values))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within_limit(middle) else (low, middle)
    while higher := [index for index in range(low + 1, min(low + 1 + beyond, len(values))) if within_limit(index)]:
        low = higher[-1]
    if low < 0:
        return None
    for neighbour in (low - 1, low + 1):
        if 0 <= neighbour < len(values):
            within_limit(neighbour)
    return values[low]


def by_method(steps: Iterable[TradeoffStep]) -> dict[str, list[TradeoffStep]]:
    """Group the steps by method. Methods, and the steps of each, keep their order."""
    grouped: dict[str, list[TradeoffStep]] = {}
    for step in steps:
        grouped.setdefault(step.method, []).append(step)
    return grouped


def latest(steps: Iterable[TradeoffStep]) -> list[TradeoffStep]:
    """The last step of each point, sorted by k, l, share and method, methods in order of first appearance."""
    last = {step.place: step for step in steps}
    methods = list(by_method(last.values()))
    return sorted(
        last.values(), key=lambda step: (step.k, step.l or 0, step.max_suppressed or 0, methods.index(step.method))
    )
