"""Guess sensitive values from what many groups have in common: the deFinetti attack of Kifer 2009.

The attacker knows the quasi-identifiers of every person, the group or class of every person, and how often each value
occurs in it. Anatomy publishes all of this. With classes the attacker knows more than a release shows, since boxes
overlap: what is found is an upper limit for this model. Nothing else is used, no sensitive value of any person above
all.

A naive Bayes model says how likely each quasi-identifier is with each value. It is learnt by expectation and
maximisation: the model weighs the ways to hand out the values of a group among its records, and the weighted records
give the next model. So a group of a nurse and a carpenter, a woman and a man, is resolved by all the other groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROUNDS = 30  # of expectation and maximisation
BALANCINGS = 10  # of the values of a group over its records, in every round
BINS = 10  # of a numeric quasi-identifier

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PublishedGroups:
    """The group of every record, and how often each value occurs in a group: ``count`` of ``value`` in ``owner``."""

    group: Integers
    owner: Integers
    value: Integers
    count: Integers

    @classmethod
    def of(cls, group: Integers, owner: Integers, value: Integers, count: Integers) -> PublishedGroups:
        order = np.argsort(owner, kind="stable")
        return cls(group, owner[order], value[order], count[order])

    @property
    def largest_share(self) -> Floats:
        """For every record, the share of the most frequent value of its group."""
        sizes = np.bincount(self.owner, weights=self.count)
        largest = np.zeros(len(sizes))
        np.maximum.at(largest, self.owner, self.count)
        return (largest / sizes)[self.group]


@dataclass(frozen=True)
class ValueGuesses:
    """The likeliest value of every record, and how likely it is by the model."""

    value: Integers
    likelihood: Floats


def guess_values(features: Integers, published: PublishedGroups) -> ValueGuesses:
    """Guess the value of every record. features: int64[records, quasi-identifiers], each numbered from 0."""
    pairs = np.bincount(published.owner)
    first_pair = np.cumsum(pairs) - pairs
    # One cell for every record and every value of its group; the cells of a record are adjacent.
    cells = pairs[published.group]
    record = np.repeat(np.arange(len(features)), cells)
    first_cell = np.cumsum(cells) - cells
    pair = np.arange(len(record)) - first_cell[record] + first_pair[published.group][record]
    value, count = published.value[pair], published.count[pair].astype(np.float64)
    weight = count / np.bincount(record, weights=count)[record]
    for _ in range(ROUNDS):
        likelihood = log_likelihood(features, record, value, weight)
        weight = np.exp(likelihood - np.maximum.reduceat(likelihood, first_cell)[record])
        for _ in range(BALANCINGS):
            weight *= (published.count / np.bincount(pair, weights=weight))[pair]
            weight /= np.bincount(record, weights=weight)[record]
    best = np.maximum.reduceat(weight, first_cell)
    chosen = np.flatnonzero(weight == best[record])[::-1]
    guessed = np.empty(len(features), np.int64)
    guessed[record[chosen]] = value[chosen]  # of equally likely values the first
    return ValueGuesses(guessed, best)


def log_likelihood(features: Integers, record: Integers, value: Integers, weight: Floats) -> Floats:
    """Return how likely the quasi-identifiers of each cell's record are with the cell's value, as a logarithm."""
    values = int(value.max()) + 1
    total = np.bincount(value, weights=weight, minlength=values)
    likelihood = np.zeros(len(record))
    for column in features.T:
        width = int(column.max()) + 1
        cell = column[record] * values + value
        counted = np.bincount(cell, weights=weight, minlength=width * values).reshape(width, values)
        likelihood += np.log((counted + 1) / (total + width)).ravel()[cell]
    return likelihood


def right_without_release(features: Integers, truth: Integers, seed: int) -> NDArray[np.bool_]:
    """Return who is guessed rightly by somebody who knows the values of half of the persons, but has no release."""
    values = int(truth.max()) + 1
    half = np.random.default_rng(seed).permutation(len(truth)) % 2 == 0
    right = np.empty(len(truth), np.bool_)
    for known in (half, ~half):
        frequency = np.bincount(truth[known], minlength=values)
        likelihood = np.tile(np.log((frequency + 1) / (known.sum() + values)), (int((~known).sum()), 1))
        for column in features.T:
            width = int(column.max()) + 1
            cell = column[known] * values + truth[known]
            counted = np.bincount(cell, minlength=width * values).reshape(width, values)
            likelihood += np.log((counted + 1) / (frequency + width))[column[~known]]
        right[~known] = likelihood.argmax(axis=1) == truth[~known]
    return right


def number_features(columns: Sequence[Sequence[str]], numeric: Sequence[bool]) -> Integers:
    """Number the values of every quasi-identifier; numbers are put into tenths of the records first."""
    numbered = []
    for texts, is_number in zip(columns, numeric, strict=True):
        if is_number:
            numbers = np.array(texts, np.float64)
            edges = np.unique(np.quantile(numbers, np.arange(1, BINS) / BINS))
            numbered.append(np.searchsorted(edges, numbers, side="right"))
        else:
            numbered.append(np.unique(np.array(texts), return_inverse=True)[1])
    return np.stack(numbered, axis=1).astype(np.int64)
