"""A requirement: a condition that every class of a release must meet.

There is one kind a file. A policy names the kind, so the kind declares its parameters. It also declares what a search
may assume about it (``closed_under_union``, ``closed_under_addition``). The audit calls ``verdict``, which is the
definition applied to the classes of the finished release. Methods test classes while they form them: our own kinds are
data to one kernel (``conjunction``). A kind that the kernel does not know has no ``condition``; classes are then joined
until it holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.parameters import Parameter

Counter = Literal["size", "values", "reference", "numbers", "hierarchy"]


@dataclass(frozen=True)
class Hierarchy:
    """A taxonomy over the values of a sensitive attribute, prepared for sums over its nodes.

    order: int64[values], the values from leaf to leaf. first, last: int64[nodes]; the values under a node are
    order[first:last]. weight: float64[nodes], half the difference in height between a node and its parent, as a share
    of the height of the tree. The distance of two values is the sum of the weights on the path between them.
    """

    order: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    weight: NDArray[np.float64]


@dataclass(frozen=True)
class Histogram:
    """How often each value of a sensitive attribute occurs in each class. Null is not a value and is not counted.

    owner, count, value: int64[pairs], one entry for every class and value that occurs in it, ordered by class; values
    are numbered in ascending order. reference: float64[values], the share of each value in the whole release. numbers:
    float64[values], each value as a number, or NaN. known: int64[classes], how many records of each class have a value.
    It is None where it equals the sum of the counts; a person may have several values, so with persons it may be less.
    """

    owner: NDArray[np.int64]
    count: NDArray[np.int64]
    value: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    reference: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    numbers: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    known: NDArray[np.int64] | None = None
    hierarchy: Hierarchy | None = None


@dataclass(frozen=True)
class ClassCounts:
    """The classes of a release as requirements see them: their sizes, and how often each sensitive value occurs.

    sizes: int64[classes]. histograms: by sensitive attribute. refined: by sensitive attribute, for joint requirements,
    the parts of the classes that are equal in the other sensitive attributes.
    """

    sizes: NDArray[np.int64]
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    refined: Mapping[str, Refinement] = field(default_factory=dict)
    counted: str = "records"  # or persons

    def sums(self, attribute: str, amounts: NDArray[np.number]) -> NDArray[np.float64]:
        """Sum the amounts of each class. amounts: one for each pair of the attribute's histogram."""
        owner = self.histograms[attribute].owner
        return np.bincount(owner, weights=amounts.astype(np.float64), minlength=len(self.sizes)).astype(np.float64)

    def largest(self, attribute: str) -> NDArray[np.int64]:
        """Return the count of the most frequent value of each class; 0 for a class without values."""
        histogram = self.histograms[attribute]
        result = np.zeros(len(self.sizes), np.int64)
        np.maximum.at(result, histogram.owner, histogram.count)
        return result

    def different(self, attribute: str) -> NDArray[np.int64]:
        """Return how many different values each class has. It does not depend on whether records or persons count."""
        return np.bincount(self.histograms[attribute].owner, minlength=len(self.sizes))

    def known(self, attribute: str) -> NDArray[np.int64]:
        """Return how many records, or persons, of each class have a value."""
        histogram = self.histograms[attribute]
        if histogram.known is not None:
            return histogram.known
        return self.sums(attribute, histogram.count).astype(np.int64)


@dataclass(frozen=True)
class Refinement:
    """Parts of classes. parent: int64[parts], the class that each part belongs to."""

    counts: ClassCounts
    parent: NDArray[np.int64]


@dataclass(frozen=True)
class Verdict:
    """A line of the audit: the requirement in words, whether it holds, and the value that the release reaches.

    ``holds`` is None if that could not be checked. ``vacuous``: no class had anything to judge, so the value means
    nothing. ``reason``: why the line could not be checked, or how it was decided if not by the value; otherwise empty.
    ``counted``: what the value counts, such as records, if that is not what the requirement counts; otherwise empty.
    """

    requirement: str
    holds: bool | None
    value: float | int
    vacuous: bool = False
    reason: str = ""
    counted: str = ""


def all_hold(verdicts: Iterable[bool | None]) -> bool | None:
    """Return False if one of the verdicts is; otherwise None, for not checked, if one of them is; otherwise True."""
    found = set(verdicts)
    return False if False in found else None if None in found else True


@dataclass(frozen=True)
class Condition:
    """A requirement in the form that the kernel of ``conjunction`` takes: its number for the kind, and two bounds."""

    kind: int
    whole: int = 0
    bound: float = 0.0


class Requirement(ABC):
    """The base class of every kind. It declares what a policy may set and what a search may assume.

    Methods form classes of a table that meets the requirement as a whole: joining failing classes may end with a
    single class. A table that does not meet it is refused, also where smaller classes could.
    """

    kind: ClassVar[str]
    """The name of the kind in a policy."""
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    """The parameters that a policy sets. The constructor takes them by name, after the attribute."""
    example: ClassVar[Mapping[str, object]] = {}
    """Parameters for an example of how the requirement is written."""
    larger_is_worse: bool = False
    """Whether the value of a verdict is the largest that any class reaches. Otherwise it is the smallest."""
    closed_under_union: bool
    """If two disjoint classes meet it, does their union meet it too?

    Classes that show the same are one class in the release. Where this is false, the engine counts them together and
    joins them with neighbours until they hold, and the engines that cannot do so refuse the requirement.
    """
    closed_under_addition: bool
    """If a class meets it, does the class with any further records meet it too? Then ``closed_under_union`` is true.

    The cut of a line then looks for the shortest run that meets it, and takes every longer one as good.
    """
    attribute: str | None
    """The sensitive attribute whose values are counted; None if only records are counted."""

    @property
    def counters(self) -> frozenset[Counter]:
        """What has to be counted in a class to decide the requirement."""
        return frozenset({"values"})

    @abstractmethod
    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """Return whether each class meets the requirement: bool[classes]."""

    @abstractmethod
    def verdict(self, classes: ClassCounts) -> Verdict:
        """Return whether all classes of a finished release meet the requirement, and the value that they reach."""

    def worse(self, one: Verdict, other: Verdict) -> Verdict:
        """Combine the verdicts on two parts of a release: it holds if both hold, with the worse of the two values."""
        judged = [verdict for verdict in (one, other) if not verdict.vacuous] or [one]
        value = (max if self.larger_is_worse else min)(verdict.value for verdict in judged)
        return replace(judged[0], holds=one.holds and other.holds, value=value)

    def possible_in_persons(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """Return whether each class may meet the requirement in persons, by its records alone: bool[classes].

        ``classes`` count records, and nobody knows whose they are. False says that the class fails, whoever they belong
        to: any record may belong to anybody. By default nothing is known.
        """
        return np.ones(len(classes.sizes), np.bool_)

    def certain_in_persons(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """Return whether each class meets the requirement in persons, whoever its records belong to: bool[classes]."""
        return np.zeros(len(classes.sizes), np.bool_)

    def condition(self) -> Condition | None:
        """Return the requirement in the form that the kernel takes, or None if the kernel does not know the kind."""
        return None

    def check_feasible(self, table: ClassCounts) -> None:
        """Raise InfeasibleError if the whole table, given as one class, does not meet the requirement."""
        if not self.holds(table).all():
            verdict = self.verdict(table)
            raise InfeasibleError(
                f"{verdict.requirement} cannot be reached: the whole table reaches {verdict.value:.4g}. Ask for less."
            )


@dataclass(frozen=True)
class DerivedRequirement(Requirement):
    """A requirement made of another one, ``part``. It declares what that one declares."""

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
    def closed_under_addition(self) -> bool:  # type: ignore[override]
        return self.part.closed_under_addition

    @property
    def larger_is_worse(self) -> bool:  # type: ignore[override]
        return self.part.larger_is_worse

    @property
    def counters(self) -> frozenset[Counter]:
        return self.part.counters

    def condition(self) -> Condition | None:
        return self.part.condition()

    def worse(self, one: Verdict, other: Verdict) -> Verdict:
        return self.part.worse(one, other)


@dataclass(frozen=True)
class Requirements:
    """All requirements of a policy. With ``person``, persons are counted instead of records."""

    parts: tuple[Requirement, ...]
    person: str | None = None
    joint: tuple[str, ...] = ()
    """All sensitive columns, if each is protected with the others as quasi-identifiers; otherwise empty."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The sensitive attributes whose values are counted, without repetition."""
        return tuple(dict.fromkeys(part.attribute for part in self.parts if part.attribute is not None))

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive columns that have to be read."""
        return tuple(dict.fromkeys([*self.attributes, *self.joint]))

    @property
    def closed_under_union(self) -> bool:
        """Whether the union of two classes that meet all requirements meets them too.

        It need not if the values of persons are counted: a person may have records in both classes.
        """
        sensitive_persons = self.person is not None and bool(self.attributes)
        return not sensitive_persons and all(part.closed_under_union for part in self.parts)

    @property
    def decided_by_kernel(self) -> bool:
        """Whether the kernel of ``conjunction`` alone decides whether a class meets all requirements."""
        return self.person is None and not self.joint and all(part.condition() is not None for part in self.parts)

    @property
    def least_class(self) -> int:
        """The smallest number of records that a class may have."""
        conditions = (part.condition() for part in self.parts if part.attribute is None)
        return max((condition.whole for condition in conditions if condition is not None), default=1)

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """Return whether each class meets all requirements: bool[classes]."""
        result = np.ones(len(classes.sizes), np.bool_)
        for part in self.parts:
            result &= part.holds(classes)
        return result

    def check_feasible(self, table: ClassCounts) -> None:
        """Raise InfeasibleError if the whole table, given as one class, does not meet a requirement."""
        for part in self.parts:
            part.check_feasible(table)
