"""Tables as methods see them, in codes, and the classes that a method makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.losses.exact_costs import exact_costs
from sfumato.methods.method import Method, Records
from sfumato.progress import Progress
from sfumato.requirements import KAnonymity, Requirements
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.tables.coding.sorting import Field, bits_for, sort_rows
from sfumato.taxonomies.derived_taxonomies import flat, prefix
from sfumato.taxonomies.widening import Calendar, Intervals, RoundingGrid

Group = Counter[int]  # how many records of each distinct one


def records_of(
    codes: NDArray[Any], domains: Sequence[Domain], weights: Sequence[float] | None = None, seed: int = 0
) -> Records:
    fields = [Field(codes[:, q], bits_for(domain.size)) for q, domain in enumerate(domains)]
    line = sort_rows(fields, len(codes))
    distinct = np.ascontiguousarray(codes[line.rows[line.starts[:-1]]])
    costs = exact_costs(domains, weights or [1.0] * len(domains), len(codes))
    return Records(distinct, line.starts, line.rows, domains, costs, seed=seed)


def random_records(
    generator: np.random.Generator, count: int, kinds_of: Sequence[int] | None = None, *, grids: bool = False
) -> Records:
    """Some or the given kinds of attributes, with and without null, and many equal records.

    With ``grids``, also numbers whose bounds are rounded: there a record costs something even if it is alone.
    """
    kinds: list[Callable[[bool], Domain]] = [
        lambda null: NumericDomain("a", np.unique(generator.integers(-50, 50, 10)), null),
        lambda null: NumericDomain("b", np.array([3]), null),
        lambda null: CategoricalDomain("c", flat(list("uvwxyz"), "c"), null),
        lambda null: CategoricalDomain("d", prefix(["aa", "ab", "ba", "bb", "bc", "ca"], [1], "d"), null),
        lambda null: NumericDomain("e", np.unique(generator.integers(-9, 40, 10)), null, snap=Intervals((5, 10))),
        lambda null: NumericDomain(
            "g", np.unique(generator.integers(18_000, 18_400, 9)), null, "date", Calendar(("month", "quarter"))
        ),
    ]
    if grids:
        kinds.append(
            lambda null: NumericDomain("f", np.unique(generator.normal(0, 9, 8)), null, snap=RoundingGrid(2.5))
        )
    chosen = kinds_of or generator.integers(0, len(kinds), generator.integers(1, 5)).tolist()
    domains = [kinds[kind](bool(generator.integers(0, 3) == 0)) for kind in chosen]
    columns = [generator.choice(domain.size, count, p=generator.dirichlet(np.ones(domain.size))) for domain in domains]
    weights = generator.choice([0.5, 1.0, 3.0], len(domains)).tolist()
    return records_of(np.stack(columns, axis=1).astype(np.uint8), domains, weights, int(generator.integers(0, 9)))


def asking(k: int) -> Requirements:
    return Requirements((KAnonymity(k),))


def groups_of(method: Method, records: Records, k: int, progress: Progress | None = None) -> list[Group]:
    """The classes, after a look at rows and boxes."""
    record_of_row = np.empty(records.count, np.int64)
    record_of_row[records.rows] = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
    found, rows = [], []
    for batch in method.classes(records, asking(k), progress or Progress()):
        for low, high, (start, end) in zip(batch.low, batch.high, pairwise(batch.starts), strict=True):
            members = record_of_row[batch.rows[start:end]]
            assert records.codes[members].min(axis=0).tolist() == low.tolist()
            assert records.codes[members].max(axis=0).tolist() == high.tolist()
            found.append(Counter(members.tolist()))
            rows += batch.rows[start:end].tolist()
    assert sorted(rows) == list(range(records.count))
    return found
