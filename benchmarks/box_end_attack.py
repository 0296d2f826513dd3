"""Find persons who are certainly in a class, since nobody else could be the record at the end of its box.

The attacker has the release and a register: the quasi-identifiers of everybody who may be in the table. A class that
shows the smallest box around its records has, at each end of each range, a record with exactly that value. If one
person alone of the register is in the box and has that value, that person is in the table and in this class for
certain, whatever other boxes they would fit. With ``round`` the attacker looks for persons within a step of the end.
Ranges of numbers alone are used, so the figures are a lower limit: groups of a taxonomy are the smallest, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CHUNK = 256  # classes that are compared with the register at once

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NumericEnds:
    """The ends of a numeric quasi-identifier: those of every class, NaN where it shows no range, and the register's."""

    low: Floats
    high: Floats
    register: Floats
    step: float
    """0 if ends are values of records; otherwise some record is nearer than this to each end."""

    def at_end(self, classes: slice) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether each person of the register could be the record at the low or high end: bool[classes, persons]."""
        low, high = self.low[classes, None], self.high[classes, None]
        if self.step:
            return self.register < low + self.step, self.register > high - self.step
        return self.register == low, self.register == high


def place_persons(register: Integers, low: Integers, high: Integers, ends: Sequence[NumericEnds]) -> Integers:
    """Return pairs of a class and the only person who could be the record at one of its ends: int64[pairs, 2].

    register: codes of all persons, int64[persons, quasi-identifiers]. low, high: the codes that every class covers.
    """
    pairs = []
    for begin in range(0, len(low), CHUNK):
        classes = slice(begin, begin + CHUNK)
        inside = np.ones((len(low[classes]), len(register)), np.bool_)
        for column in range(register.shape[1]):
            codes = register[:, column]
            inside &= (low[classes, column, None] <= codes) & (codes <= high[classes, column, None])
        for column_ends in ends:
            for at_end in column_ends.at_end(classes):
                candidates = at_end & inside
                alone = np.flatnonzero(candidates.sum(axis=1) == 1)
                pairs.append(np.stack([begin + alone, candidates[alone].argmax(axis=1)], axis=1))
    return np.unique(np.concatenate(pairs), axis=0) if pairs else np.empty((0, 2), np.int64)
