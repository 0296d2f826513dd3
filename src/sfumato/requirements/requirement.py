"""What a requirement is: a condition that every class of a release must meet.

One kind a file. A kind is found by its name in a policy, so it declares its parameters; a search asks what it may
assume (``closed_under_union``, ``closed_under_addition``). The audit asks ``verdict``, the definition written out over
the classes of the finished release. Methods test classes as they form them: the kinds of Sfumato are data to one kernel
(``conjunction``); a kind that the kernel does not know gives no ``condition``, and classes are joined until it holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InfeasibleError
from sfumato.parameters import Parameter

Counter = Literal["size", "values", "reference", "numbers", "hierarchy"]


@dataclass(frozen=True)
class Hierarchy:
    """A taxonomy over the values of a sensitive attribute, as a sum over its nodes sees it.

    order: int64[values], the values from leaf to leaf. first, last: int64[nodes], the values under a node are
    order[first:last]. weight: float64[nodes], half the height that the node is below its parent, as a share of the
    height of the tree: the distance of two values is the sum of the weights on the way between them.
    """

    order: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    weight: NDArray[np.float64]


@dataclass(frozen=True)
class Histogram:
    """How often each value of a sensitive attribute occurs in each class; null is no value and is not in it.

    owner, count, value: int64[pairs], one entry for every value that occurs in a class, by class; values are numbered
    in ascending order. reference: float64[values], the share of each in the whole release. numbers: float64[values],
    what each is as a number, NaN for what is none. known: int64[classes], those of each class that have a value; it is
    the sum of the counts, but where persons are counted, since a person may have several values.
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
    """The classes of a release as requirements see them: how many they are of, and of which values.

    ``refined`` holds, for requirements that are to hold jointly, the parts of the classes that are equal in the other
    sensitive attributes.
    """

    sizes: NDArray[np.int64]
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    refined: Mapping[str, Refinement] = field(default_factory=dict)
    counted: str = "records"  # or persons

    def sums(self, attribute: str, amounts: NDArray[np.number]) -> NDArray[np.float64]:
        """The sum over the values of each class. amounts: one for each pair of the attribute's histogram."""
        owner = self.histograms[attribute].owner
        return np.bincount(owner, weights=amounts.astype(np.float64), minlength=len(self.sizes)).astype(np.float64)

    def largest(self, attribute: str) -> NDArray[np.int64]:
        """The count of the most frequent value of each class, 0 for a class without one."""
        histogram = self.histograms[attribute]
        result = np.zeros(len(self.sizes), np.int64)
        np.maximum.at(result, histogram.owner, histogram.count)
        return result

    def known(self, attribute: str) -> NDArray[np.int64]:
        """Those of each class that have a value."""
        histogram = self.histograms[attribute]
        if histogram.known is not None:
            return histogram.known
        return self.sums(attribute, histogram.count).astype(np.int64)


@dataclass(frozen=True)
class Refinement:
    """Parts of classes: their counts, and the class that each is a part of."""

    counts: ClassCounts
    parent: NDArray[np.int64]


@dataclass(frozen=True)
class Verdict:
    """What the audit found: the requirement in words, whether it holds, and the value that the release reaches.

    ``vacuous``: no class had anything to judge, so that the value says nothing.
    """

    requirement: str
    holds: bool
    value: float | int
    vacuous: bool = False


@dataclass(frozen=True)
class Condition:
    """What the kernel of ``conjunction`` is told of a requirement: its own number of the kind, and two bounds."""

    kind: int
    whole: int = 0
    bound: float = 0.0


class Requirement(ABC):
    """One file a kind; declares what a policy may say and what a search may assume."""

    kind: ClassVar[str]
    """Its name in a policy."""
    parameters: ClassVar[Mapping[str, Parameter]] = {}
    """What a policy says of it; given to the constructor by name, after the attribute."""
    example: ClassVar[Mapping[str, object]] = {}
    """Parameters that one might ask for, to show how it is written."""
    larger_is_worse: bool = False
    """Is the value of a verdict the largest that a class reaches? Else it is the smallest."""
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
    """The sensitive attribute that it counts; none where it counts records."""

    @property
    def counters(self) -> frozenset[Counter]:
        """What it needs to know of a class."""
        return frozenset({"values"})

    @abstractmethod
    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """Whether each class meets it."""

    @abstractmethod
    def verdict(self, classes: ClassCounts) -> Verdict:
        """Whether the classes of a finished release meet it, and the value that they reach."""

    def worse(self, one: Verdict, other: Verdict) -> Verdict:
        """The verdict on the classes of both: it holds where both do, and has the value of the worse."""
        judged = [verdict for verdict in (one, other) if not verdict.vacuous] or [one]
        value = (max if self.larger_is_worse else min)(verdict.value for verdict in judged)
        return replace(judged[0], holds=one.holds and other.holds, value=value)

    def condition(self) -> Condition | None:
        """What the kernel is told; nothing where it does not know the kind."""
        return None

    def check_feasible(self, table: ClassCounts) -> None:
        """Raise InfeasibleError when the whole table, given as one class, does not meet it."""
        if not self.holds(table).all():
            found = self.verdict(table)
            raise InfeasibleError(
                f"{found.requirement} cannot be reached: the whole table reaches {found.value:.4g}. Ask for less."
            )


@dataclass(frozen=True)
class Requirements:
    """All of the policy's requirements together. With ``person``, persons are counted instead of records."""

    parts: tuple[Requirement, ...]
    person: str | None = None
    joint: tuple[str, ...] = ()
    """The sensitive columns, where each is to hold with the others as quasi-identifiers."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The sensitive attributes that are counted, each once."""
        return tuple(dict.fromkeys(part.attribute for part in self.parts if part.attribute is not None))

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive columns that have to be read."""
        return tuple(dict.fromkeys([*self.attributes, *self.joint]))

    @property
    def closed_under_union(self) -> bool:
        sensitive_persons = self.person is not None and bool(self.attributes)
        return not sensitive_persons and all(part.closed_under_union for part in self.parts)

    @property
    def tested(self) -> bool:
        """Does the kernel of ``conjunction`` decide, alone, whether a class meets all of them?"""
        return self.person is None and not self.joint and all(part.condition() is not None for part in self.parts)

    @property
    def least_class(self) -> int:
        """The smallest number of records a class can have."""
        sizes = (part.condition() for part in self.parts if part.attribute is None)
        return max((one.whole for one in sizes if one is not None), default=1)

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        """Whether each class meets all of them."""
        result = np.ones(len(classes.sizes), np.bool_)
        for part in self.parts:
            result &= part.holds(classes)
        return result

    def check_feasible(self, table: ClassCounts) -> None:
        for part in self.parts:
            part.check_feasible(table)
