"""Every kind of requirement by its definition, in whole numbers and fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.requirements import (
    AlphaAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    RecursiveDiversity,
    Requirement,
    TCloseness,
    VarianceDiversity,
)

Counts = Sequence[int]  # how often each value occurs in a class


Reference = Sequence[Fraction]  # the share of each value in the release


def shares(counts: Counts) -> list[Fraction]:
    return [Fraction(count, sum(counts)) for count in counts]


def entropy_holds(counts: Counts, l: int | Fraction) -> bool:
    """-sum p ln p >= ln l, with both sides raised: whole numbers throughout."""
    known = sum(counts)
    if known == 0:
        return l == 1
    return bool(known**known >= l**known * math.prod(count**count for count in counts))


def recursive_holds(counts: Counts, c: Fraction, l: int) -> bool:
    descending = sorted(counts, reverse=True)
    return l == 1 or max(descending, default=0) < c * sum(descending[l - 1 :])


def variance_of(counts: Counts, numbers: Sequence[int]) -> Fraction:
    known = sum(counts)
    if known == 0:
        return Fraction(0)
    mean = Fraction(sum(count * number for count, number in zip(counts, numbers, strict=True)), known)
    return (
        sum((count * (number - mean) ** 2 for count, number in zip(counts, numbers, strict=True)), Fraction()) / known
    )


def distance_of(counts: Counts, reference: Reference, kind: str) -> Fraction:
    if sum(counts) == 0:
        return Fraction(0)
    differences = [p - q for p, q in zip(shares(counts), reference, strict=True)]
    if kind == "equal":
        return sum(map(abs, differences), Fraction()) / 2
    moved = [abs(sum(differences[: place + 1], Fraction())) for place in range(len(differences))]
    return sum(moved, Fraction()) / max(len(differences) - 1, 1)


def alpha_holds(counts: Counts, alpha: Fraction) -> bool:
    return sum(counts) == 0 or max(shares(counts)) <= alpha


def beta_holds(counts: Counts, reference: Reference, beta: Fraction, enhanced: bool) -> bool:
    if sum(counts) == 0:
        return True
    for p, q in zip(shares(counts), reference, strict=True):
        if p > q and (p - q) / q > (min(beta, Fraction(-math.log(q))) if enhanced else beta):
            return False
    return True


def delta_of(counts: Counts, reference: Reference) -> float:
    if any(count == 0 for count, q in zip(counts, reference, strict=True) if q > 0):
        return math.inf
    if sum(counts) == 0:
        return 0.0
    return max(abs(math.log(p / q)) for p, q in zip(shares(counts), reference, strict=True) if q > 0)


@dataclass(frozen=True)
class Asked:
    """A requirement on the column "s", and its definition for one class."""

    requirement: Requirement
    holds: Callable[[Counts, Reference, Sequence[int]], bool]


def frequency(l: int) -> Asked:
    return Asked(FrequencyDiversity("s", l), lambda counts, _, __: max(counts, default=0) * l <= sum(counts))


def distinct(l: int) -> Asked:
    return Asked(DistinctDiversity("s", l), lambda counts, _, __: sum(count > 0 for count in counts) >= l)


def entropy(l: int | Fraction) -> Asked:
    return Asked(
        EntropyDiversity("s", l if isinstance(l, int) else float(l)), lambda counts, _, __: entropy_holds(counts, l)
    )


def recursive(c: Fraction, l: int) -> Asked:
    return Asked(RecursiveDiversity("s", float(c), l), lambda counts, _, __: recursive_holds(counts, c, l))


def variance(v: Fraction) -> Asked:
    return Asked(VarianceDiversity("s", float(v)), lambda counts, _, numbers: variance_of(counts, numbers) >= v)


def equal_closeness(t: Fraction) -> Asked:
    return Asked(TCloseness("s", float(t)), lambda counts, q, _: distance_of(counts, q, "equal") <= t)


def ordered_closeness(t: Fraction) -> Asked:
    return Asked(TCloseness("s", float(t), "ordered"), lambda counts, q, _: distance_of(counts, q, "ordered") <= t)


def alpha(share: Fraction) -> Asked:
    return Asked(AlphaAnonymity("s", float(share)), lambda counts, _, __: alpha_holds(counts, share))


def basic_likeness(beta: Fraction) -> Asked:
    return Asked(BetaLikeness("s", float(beta)), lambda counts, q, _: beta_holds(counts, q, beta, False))


def enhanced_likeness(beta: Fraction) -> Asked:
    return Asked(BetaLikeness("s", float(beta), True), lambda counts, q, _: beta_holds(counts, q, beta, True))


def disclosure(delta: Fraction) -> Asked:
    return Asked(DeltaDisclosure("s", float(delta)), lambda counts, q, _: delta_of(counts, q) < delta)


# One of each, for tests that try methods under all of them.
EACH_KIND: dict[str, list[Asked]] = {
    "frequency": [frequency(2)],
    "distinct": [distinct(2)],
    "entropy": [entropy(2)],
    "entropy, real": [entropy(Fraction(3, 2))],
    "recursive": [recursive(Fraction(3, 2), 2)],
    "variance": [variance(Fraction(1))],
    "closeness, equal": [equal_closeness(Fraction(1, 3))],
    "closeness, ordered": [ordered_closeness(Fraction(1, 5))],
    "alpha-k": [alpha(Fraction(1, 2))],
    "likeness": [basic_likeness(Fraction(1))],
    "likeness, enhanced": [enhanced_likeness(Fraction(1))],
    "disclosure": [disclosure(Fraction(1))],
    "several": [frequency(2), distinct(2), entropy(2), equal_closeness(Fraction(1, 2))],
}
