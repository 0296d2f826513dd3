"""Random range-count queries (Xiao and Tao 2006, section 6) and the relative error of their answers.

A query asks for some codes of each of its quasi-identifiers and for some sensitive values. From each domain it takes
the share selectivity ** (1 / (quasi-identifiers + 1)), rounded up, so that in a table without dependencies the answer
has about the share ``selectivity`` of the records. Numbers and dates are drawn as a contiguous range, categories and
sensitive values as any set: a range of leaves would rarely include the first and the last leaf of a taxonomy. Null is
never drawn.

Errors are relative to the answer, or to a floor if the answer is smaller: the sanity bound of Xiao, Wang and Gehrke
(2010), a thousandth of the records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato.evaluation.queries.accuracy import RangeAccuracy
from sfumato.evaluation.queries.answers import Flags, Original, RangeQuery, ReleasedPart
from sfumato.evaluation.queries.box_estimates import exact
from sfumato.evaluation.queries.query_workload import QueryWorkload
from sfumato.kernels.threads import in_threads
from sfumato.tables.coding.domains import Domain, NumericDomain

FLOOR = 0.001
"""Errors are relative to at least this share of the records, so that small answers do not dominate the mean."""


def range_accuracy(
    original: Original, released: Sequence[ReleasedPart], domains: Sequence[Domain], workload: QueryWorkload
) -> RangeAccuracy:
    """Answer random range-count queries and measure the errors."""
    assert workload.ranges is not None
    truth = exact(original, domains)

    def answers(number: int) -> tuple[float, float]:
        query = random_query(workload, domains, original.values, number)
        return truth.count(query), math.fsum(part.count(query) for part in released)

    actual, estimate = np.array(in_threads(answers, range(workload.ranges))).T
    floor = max(1.0, FLOOR * len(original.codes))
    errors = np.abs(estimate - actual) / np.maximum(actual, floor)
    return RangeAccuracy(
        workload.ranges,
        workload.selectivity,
        workload.range_attributes or len(domains),
        workload.seed,
        floor,
        float(actual.mean()) / len(original.codes),
        float(errors.mean()),
        float(np.median(errors)),
    )


def random_query(workload: QueryWorkload, domains: Sequence[Domain], values: int, number: int) -> RangeQuery:
    """The query of this number. It depends on no other query and on no order."""
    random = np.random.default_rng([workload.seed, number])
    attributes = workload.range_attributes or len(domains)
    share = workload.selectivity ** (1 / (attributes + 1))
    columns = tuple(sorted(random.permutation(len(domains))[:attributes].tolist()))
    codes = tuple(_random_codes(random, domains[q], share) for q in columns)
    return RangeQuery(columns, codes, _random_set(random, values, values, share))


def _random_codes(random: np.random.Generator, domain: Domain, share: float) -> Flags:
    # In a column with only nulls there is nothing else to ask for.
    known = (domain.size - domain.has_null) or domain.size
    if not isinstance(domain, NumericDomain):
        return _random_set(random, known, domain.size, share)
    selected = np.zeros(domain.size, np.bool_)
    length = math.ceil(known * share)
    low = random.integers(known - length + 1)
    selected[low : low + length] = True
    return selected


def _random_set(random: np.random.Generator, known: int, size: int, share: float) -> Flags:
    """A random share of the first ``known`` of ``size`` codes: bool[size]."""
    selected = np.zeros(size, np.bool_)
    selected[random.permutation(known)[: math.ceil(known * share)]] = True
    return selected
