"""How long does ``global`` take beside the default method with effort ``fast``, from file to file?

Numbers have intervals, so that every column has levels. With records left out the search visits more of the lattice.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.section import Section, Table
from benchmarks.tables import GENERATOR, Options
from benchmarks.timing import ROUNDS, anonymization, best_alternating
from sfumato.policy import Policy, merge_flags

RECORDS = 1_000_000
K = 10
LEFT_OUT = (0.0, 0.05)
INTERVALS = {"age": {"intervals": [5, 10, 20]}, "education": {"intervals": [2, 4, 8]}}


def run(options: Options) -> Mapping[str, Table]:
    table = options.census(options.size(RECORDS))
    policy = merge_flags(Policy.load(table.policy_path), k=K, taxonomy=INTERVALS)
    shares = options.some(LEFT_OUT)
    policies = [merge_flags(policy, method="global", max_suppressed=share) for share in shares]
    works = [
        anonymization(table.path, each, options.work / f"global-{number}.parquet")
        for number, each in enumerate([policy, *policies])
    ]
    fast, *measured = best_alternating(*works)
    rows = [
        {
            "most left out": share,
            "fast s": fast.seconds,
            "global s": ours.seconds,
            "ratio": ours.seconds / fast.seconds,
            "fast CPU s": fast.cpu,
            "global CPU s": ours.cpu,
        }
        for share, ours in zip(shares, measured, strict=True)
    ]
    note = (
        f"Generator {GENERATOR}, {options.size(RECORDS):,} records, 7 quasi-identifiers, intervals on age and "
        f"education, k = {K}. Warm, best of {ROUNDS}, in turns, one process."
    )
    return {"times": Table("One level for each column: time beside the default", rows, [note], worst="ratio")}


SECTION = Section(run, timed=True, parameters={"records": RECORDS, "k": K, "left out": LEFT_OUT})
