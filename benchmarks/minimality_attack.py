"""Find sensitive values that become certain to somebody who knows the method: the minimality attack of Wong 2007.

The attacker has the release, knows the method and the policy, knows who is in the table and the quasi-identifier of
everybody, and knows which sensitive values there are. The attacker tries out every original: all ways to give the
persons values for which the policy can be met. Originals that lead to another release are excluded. A person's value is
certain if it is the same in all that are left. Somebody who does not know the method can exclude none of them: within a
class of two values or more, any two persons could be exchanged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

Values = tuple[str, ...]
Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class MinimalityCounts:
    """What trying out all originals gave, summed over originals.

    certain: persons whose value is certain. right: the sum over persons of how likely the likeliest value is, all
    remaining originals being equally likely. right_by_class: the same sum for the most frequent value of the class.
    """

    originals: int
    with_certain: int
    persons: int
    certain: int
    right: float
    right_by_class: float

    def __add__(self, other: MinimalityCounts) -> MinimalityCounts:
        return MinimalityCounts(
            self.originals + other.originals,
            self.with_certain + other.with_certain,
            self.persons + other.persons,
            self.certain + other.certain,
            self.right + other.right,
            self.right_by_class + other.right_by_class,
        )


NONE = MinimalityCounts(0, 0, 0, 0, 0.0, 0.0)


def eligible_originals(persons: int, values: Sequence[str], l: int) -> list[Values]:
    """Return all ways to give the persons values such that no value has more than 1/l of the persons."""
    every = product(values, repeat=persons)
    return [original for original in every if max(Counter(original).values()) * l <= persons]


def try_out(originals: Iterable[Values], release_of: Callable[[Values], Rows | None]) -> MinimalityCounts:
    """Count what becomes certain. release_of: the released rows, value last; None if nothing would be published."""
    by_release: dict[Rows, list[Values]] = defaultdict(list)
    for original in originals:
        released = release_of(original)
        if released is not None:
            by_release[released].append(original)
    total = NONE
    for released, left in by_release.items():
        counts = [Counter(values) for values in zip(*left, strict=True)]
        certain = sum(len(count) == 1 for count in counts)
        total += MinimalityCounts(
            originals=len(left),
            with_certain=len(left) if certain else 0,
            persons=len(left) * len(counts),
            certain=len(left) * certain,
            right=float(sum(max(count.values()) for count in counts)),
            right_by_class=float(len(left) * _most_frequent(released)),
        )
    return total


def _most_frequent(released: Rows) -> int:
    """Return the number of records that have the most frequent value of their class."""
    values: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for *shown, value in released:
        values[tuple(shown)][value] += 1
    return sum(max(count.values()) for count in values.values())
