"""The census-like tables of the figures, and the names that the paper gives to methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from benchmarks.tables import without_columns
from reproduce.figure import OURS, Result, Row, Size
from reproduce.runs import Bench
from sfumato import Policy
from sfumato.policy import merge_flags

KEY = "ghinita"
PAPER_RECORDS = 200_000
RUNS = "runs"  # the table of all rows of a figure

HILBERT, IDISTANCE = "hilbert", "idistance"
HILBERT_FAST, IDISTANCE_FAST = "hilbert-fast", "idistance-fast"
PUBLISHED, ORDERED, LOWER_NCP = "mondrian:published", "mondrian:ordered", "topdown:lower-ncp"
MONDRIAN, TOPDOWN, ELIGIBLE_TREE, ANATOMY = "mondrian", "topdown", "eligible-tree", "anatomy"

NAMES: Mapping[str, str] = {
    HILBERT: "Hilb",
    IDISTANCE: "iDist",
    HILBERT_FAST: "HilbFast",
    IDISTANCE_FAST: "iDistFast",
    PUBLISHED: "Mondrian, published",
    ORDERED: "Mondrian, ordered",
    LOWER_NCP: "TopDown, lower NCP",
    MONDRIAN: "Mondrian, ours",
    TOPDOWN: "TopDown, ours",
    ELIGIBLE_TREE: "eligible-tree, ours",
    ANATOMY: "Anatomy",
}
"""The paper's names for its methods, and for each baseline the way in which it is read."""

READINGS: Mapping[str, str] = {
    PUBLISHED: "`mondrian:published`",
    ORDERED: "`mondrian:ordered`",
    LOWER_NCP: "`topdown:lower-ncp`",
    MONDRIAN: f"{OURS}`mondrian`",
    TOPDOWN: f"{OURS}`topdown`",
    ANATOMY: "`anatomy`",
}


def readings(*methods: str) -> str:
    """Say how the baselines among the methods are read."""
    return ", ".join(READINGS[method] for method in methods if method in READINGS) or "none"


def seeds(size: Size) -> Sequence[int]:
    """Return the seeds of the tables: one table for each trial."""
    return range(size.of(tenth=1, quick=3, full=5))


def tables(size: Size, records: int, many_seeds: Sequence[int] | None = None) -> Iterator[tuple[int, pa.Table, Policy]]:
    """Yield a table of so many records for each seed, with its policy, which has the same seed."""
    for seed in seeds(size) if many_seeds is None else many_seeds:
        data, policy = size.tables.census_data(records, seed=seed)
        yield seed, data, merge_flags(policy, seed=seed)


def first_columns(policy: Policy, d: int) -> Policy:
    """Return the policy with the first d quasi-identifiers, in the order of the paper's Table 1."""
    return without_columns(policy, policy.quasi_identifiers[d:])


def anonymous_rows(data: pa.Table, policy: Policy, methods: Sequence[str], many_k: Sequence[int]) -> Iterator[Row]:
    """Yield a row for each method and k."""
    bench = Bench(data, merge_flags(policy, k=1))
    for method in methods:
        for k in many_k:
            yield _kept(bench.row(method, k=k))


def diverse_rows(data: pa.Table, policy: Policy, methods: Sequence[str], many_l: Sequence[int]) -> Iterator[Row]:
    """Yield a row for each method and l."""
    bench = Bench(data, merge_flags(policy, l=2))
    for method in methods:
        for l in many_l:
            yield _kept(bench.row(method, l=l))


def census_result(
    size: Size,
    many_records: Sequence[int],
    rows_of: Callable[[pa.Table, Policy], Iterable[Row]],
    settings: Mapping[str, Any],
) -> Result:
    """Return the rows of every table: one for each number of records and each seed."""
    rows = [
        {"seed": seed, **row}
        for records in many_records
        for seed, data, policy in tables(size, records)
        for row in rows_of(data, policy)
    ]
    published = "50,000 to 400,000" if len(many_records) > 1 else f"{PAPER_RECORDS:,}"
    return Result(sizes(size, many_records, f"the paper: {published} of a census"), {RUNS: rows}, settings)


def paper_records(size: Size) -> Sequence[int]:
    """Return how many records a table has where the paper does not vary it."""
    return [size.of(tenth=2_000, quick=PAPER_RECORDS, full=PAPER_RECORDS)]


def varied_records(size: Size) -> Sequence[int]:
    """Return how many records the tables have where the paper varies it."""
    return size.of(
        tenth=(1_000, 2_000),
        quick=(50_000, 100_000, 200_000, 400_000),
        full=tuple(range(50_000, 400_001, 50_000)),
    )


def many_dimensions(size: Size) -> Sequence[int]:
    """Return the numbers of quasi-identifiers that the paper tries."""
    return size.of(tenth=(1, 3), quick=range(1, 8), full=range(1, 8))


def _kept(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "max_size"}


def sizes(size: Size, records: Sequence[int], published: str) -> str:
    """Say the sizes of a run of census-like tables beside those of the paper."""
    ours = " to ".join(f"{count:,}" for count in dict.fromkeys((min(records), max(records))))
    trials = len(seeds(size))
    return f"{ours} generated records ({published}), {trials} table{'s' if trials > 1 else ''}"
