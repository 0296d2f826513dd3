"""Random range-count queries (Xiao and Tao 2006, section 6) and the relative error of their answers.

A query asks for some codes of each of its quasi-identifiers and for some sensitive values. Of each it takes the share
selectivity ** (1 / (quasi-identifiers + 1)) of the domain, rounded up, so that a table without dependencies has about
the share ``selectivity`` of its records in the answer. Numbers and dates are asked for as a run, categories and
sensitive values as any set: a run of leaves would all but pass over the first and the last leaf of a taxonomy. Null is
never asked for.

Errors are relative to the answer, or to a floor where the answer is less: the sanity bound of Xiao, Wang and Gehrke
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
"""Relative errors are taken against at least this share of the records, so that rare answers do not rule the mean."""


def range_accuracy(
    original: Original, released: Sequence[ReleasedPart], domains: Sequence[Domain], workload: QueryWorkload
) -> RangeAccuracy:
    """Ask random range-count queries."""
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
    """The query of that number: the same whichever others are asked, in whatever order."""
    random = np.random.default_rng([workload.seed, number])
    attributes = workload.range_attributes or len(domains)
    share = workload.selectivity ** (1 / (attributes + 1))
    columns = tuple(sorted(random.permutation(len(domains))[:attributes].tolist()))
    codes = tuple(_asked_codes(random, domains[q], share) for q in columns)
    return RangeQuery(columns, codes, _any(random, values, values, share))


def _asked_codes(random: np.random.Generator, domain: Domain, share: float) -> Flags:
    # A column of nulls alone has nothing else to ask for.
    known = (domain.size - domain.has_null) or domain.size
    if not isinstance(domain, NumericDomain):
        return _any(random, known, domain.size, share)
    asked = np.zeros(domain.size, np.bool_)
    length = math.ceil(known * share)
    low = random.integers(known - length + 1)
    asked[low : low + length] = True
    return asked


def _any(random: np.random.Generator, known: int, size: int, share: float) -> Flags:
    """A share of the first ``known`` of ``size`` codes, whichever they are."""
    asked = np.zeros(size, np.bool_)
    asked[random.permutation(known)[: math.ceil(known * share)]] = True
    return asked
