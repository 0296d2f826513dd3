"""The census-like tables of the figures, and the names that the paper gives to methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from benchmarks.tables import without_columns
from reproduce.figure import Row, Size
from reproduce.runs import Bench
from sfumato import Policy
from sfumato.policy import merge_flags

KEY = "ghinita"
PAPER_RECORDS = 200_000

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
    MONDRIAN: "our `mondrian`",
    TOPDOWN: "our `topdown`",
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


def _kept(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "max_size"}


def sizes(size: Size, records: Sequence[int], published: str) -> str:
    """Say the sizes of a run of census-like tables beside those of the paper."""
    ours = " to ".join(f"{count:,}" for count in dict.fromkeys((min(records), max(records))))
    trials = len(seeds(size))
    return f"{ours} generated records ({published}), {trials} table{'s' if trials > 1 else ''}"
