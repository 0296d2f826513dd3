"""Rothko-T and Rothko-S (LeFevre 2008, section 6): nodes pruned, data read and written, quality by sample size."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.markdown import show
from benchmarks.tables import Options
from sfumato.engines.disk.class_file import ClassFile
from sfumato.engines.disk.coded_table import CodedTable, encode_input, profile_input
from sfumato.engines.disk.rothko_io_cost import IoCounters, expected_sample_io, expected_tree_io
from sfumato.engines.disk.rothko_s import rothko_s
from sfumato.engines.disk.rothko_t import rothko_t
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.pipeline.prepare import open_job
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.requirements import Requirements
from sfumato.synthetic.agrawal import Agrawal
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.sources.source import open_source

RECORDS = 100_000
HEIGHT = 8  # of a tree, before the data are divided (section 6.6)
SAMPLES = (100, 250, 500, 1000, 2500, 5000, 10_000, 25_000)
MANY_K = (10, 100, 1000, 10_000)
MANY_L = (2, 4, 6, 8)
VARIANCES = {"uniform": (1.1e9, 1.2e9, 1.3e9), "normal": (7e7, 8e7, 9e7)}
CACHES = (1, 2, 4, 8, 16)
FITS = 4000
AMPLE = 10**9
QUALITY_K = (25, 100)
QUALITY_SAMPLES = (500, 1000, 2500, 5000, 10_000, 25_000)


@dataclass(frozen=True)
class Fits(MemoryBudget):
    """A memory budget that limits only the number of records, so that one thing varies at a time."""

    records: int = 0

    def rows(self, width: int) -> int:
        return self.records


@dataclass(frozen=True)
class Coded:
    """A generated table in a file."""

    table: CodedTable
    requirements: Requirements
    scratch: Scratch

    @property
    def bytes(self) -> int:
        return self.table.count * self.table.file.kind.itemsize


def run(options: Options) -> dict[str, list[dict[str, Any]]]:
    results = {}
    for name, rows in pruned(SAMPLES, MANY_K, MANY_L, VARIANCES).items():
        results[name] = rows
        show(
            f"Nodes pruned: {name}",
            rows,
            [f"{RECORDS:,} records, median. In parentheses without tests; x: may not be minimal."],
        )
    results["reads"] = traffic()
    show(f"Data read and written, {RECORDS:,} records, k = 100, {FITS:,} of them in memory", results["reads"])
    results["quality"], results["quality claims"] = quality(QUALITY_SAMPLES, QUALITY_K)
    show("Conditional entropy of the class and WMSE of the number, by sample size", results["quality"])
    show("Claims about samples", results["quality claims"])
    return results


@contextmanager
def coded(data: pa.Table, policy: Policy) -> Iterator[Coded]:
    job = open_job(data, open_source(data, policy.input_options), policy, Progress())
    with Scratch() as scratch:
        yield Coded(encode_input(job, profile_input(job), MemoryBudget(AMPLE), scratch), job.requirements, scratch)


def drawn(seed: int = 0, **settings: Any) -> pa.Table:
    """Generate Agrawal's table with salaries in thousands, so that frequency sets are as small as in the paper."""
    table = pa.Table.from_batches(list(Agrawal(**settings).batches(RECORDS, seed)))
    position = table.column_names.index("salary")
    return table.set_column(position, "salary", pa.array(table["salary"].to_numpy() // 1000 * 1000))


def policy_for(data: pa.Table, sensitive: str | None = None, **settings: Any) -> Policy:
    """Return a policy whose attributes are all numbers, as in section 6.1."""
    targets = [name for name in data.column_names if name in ("class", "target")]
    quasi = [name for name in data.column_names if name not in (*targets, sensitive)]
    return merge_flags(
        quasi_identifiers=quasi,
        sensitive=sensitive or (),
        other=targets,
        type=dict.fromkeys(quasi, "numeric"),
        accept_linkable=[*targets, *([sensitive] if sensitive else [])],
        method="mondrian",
        **settings,
    )


def pruned(
    samples: Sequence[int],
    many_k: Sequence[int],
    many_l: Sequence[int],
    variances: dict[str, tuple[float, ...]],
) -> dict[str, list[dict[str, Any]]]:
    """Fig. 24: the memory holds only the sample, and trees grow to the paper's height."""
    tables: dict[str, list[dict[str, Any]]] = {}
    plain = drawn()
    tables["k-anonymity"] = _table(samples, {f"k = {k}": (plain, policy_for(plain, k=k)) for k in many_k})
    tables["recursive (1, l)-diversity"] = _table(
        samples,
        {
            f"l = {one}": (plain, policy_for(plain, "zipcode", k=1, require=[f"recursive(zipcode, c=1, l={one})"]))
            for one in many_l
        },
    )
    for salary, many_v in variances.items():
        data = drawn(salary=salary)
        tables[f"variance diversity, {salary} salary"] = _table(
            samples,
            {
                f"v = {v:.1e}": (data, policy_for(data, "salary", k=1, require=[f"variance(salary, v={v})"]))
                for v in many_v
            },
        )
    return tables


def _table(samples: Sequence[int], policies: dict[str, tuple[pa.Table, Policy]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"n": n} for n in samples]
    for name, (data, policy) in policies.items():
        with coded(data, policy) as packed:
            for row in rows:
                counts = []
                for tests in (True, False):
                    counted = IoCounters()
                    rothko_s(
                        packed.table, MondrianMethod(), packed.requirements,
                        Fits(AMPLE, row["n"]), packed.scratch, Progress(),
                        sample=row["n"], tests=tests, enough=0, height=HEIGHT, exact=False, counters=counted,
                    )  # fmt: skip
                    counts.append("x" if counted.nonminimal else str(counted.pruned))
                row[name] = f"{counts[0]} ({counts[1]})"
    return rows


def traffic() -> list[dict[str, Any]]:
    """Fig. 18 and 19: passes over the data in comparison with section 5.3, and CPU time."""
    data = drawn()
    rows = []
    with coded(data, policy_for(data, k=100)) as packed:
        budget = Fits(AMPLE, FITS)
        for cache in CACHES:
            counted, seconds = IoCounters(), time.process_time()
            rothko_t(
                packed.table, MondrianMethod(), packed.requirements, budget, packed.scratch, Progress(), cache=cache,
                counters=counted,
            )  # fmt: skip
            expected = expected_tree_io(RECORDS, FITS, cache)
            rows.append(
                _passes(packed, f"Rothko-T, F_CACHE = {cache}", counted, expected.reads, expected.writes, seconds)
            )
        for sample in (500, 1000, 2000, FITS):
            counted, seconds = IoCounters(), time.process_time()
            rothko_s(
                packed.table, MondrianMethod(), packed.requirements, budget, packed.scratch, Progress(), sample=sample,
                counters=counted,
            )  # fmt: skip
            expected = expected_sample_io(RECORDS, FITS, 100, sample)
            rows.append(_passes(packed, f"Rothko-S, n = {sample}", counted, expected.reads, expected.writes, seconds))
    return rows


def _passes(packed: Coded, name: str, counted: IoCounters, reads: int, writes: int, started: float) -> dict[str, Any]:
    read, written = counted.passes(packed.bytes)
    return {
        "method": name,
        "read": round(read, 2),
        "expected": reads,
        "written": round(written, 2),
        "as expected": writes,
        "pruned": counted.pruned,
        "processor s": round(time.process_time() - started, 1),
    }


def quality(samples: Sequence[int], many_k: Sequence[int]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Fig. 22 and 23: what the classes leave unexplained if the first splits come from samples of a given size."""
    rows, claims = [], []
    for function, rule, task in (("C2", "information-gain", "classification"), ("R7", "regression", "regression")):
        data = drawn(function=function)
        target = "class" if task == "classification" else "target"
        for k in many_k:
            policy = policy_for(data, k=k).to_dict() | {"workload": {task: [{"target": target}]}}
            policy["method"] = {"name": f"mondrian:{rule}"}
            with coded(data, Policy.from_dict(policy)) as packed:
                method = MondrianMethod(rule=rule)  # type: ignore[arg-type]
                whole = Fits(AMPLE, RECORDS)
                left = {}
                for n in samples:
                    budget = Fits(AMPLE, n)
                    classes = rothko_s(
                        packed.table, method, packed.requirements, budget, packed.scratch, Progress(), sample=n
                    )
                    left[n] = _left(packed, target, classes)
                classes = rothko_t(packed.table, method, packed.requirements, whole, packed.scratch, Progress())
                left[RECORDS] = _left(packed, target, classes)
            measure = "H(C|R*)" if task == "classification" else "WMSE"
            rows.append({"measure": measure, "k": k} | {f"n = {n:,}": f"{value:.4g}" for n, value in left.items()})
            largest = max(samples)
            claims.append(
                {
                    "claim": f"{measure}, k = {k}: a sample of {largest:,} leaves within 5% of all records",
                    "first": left[largest],
                    "second": left[RECORDS],
                    "verdict": "holds" if left[largest] <= 1.05 * left[RECORDS] + 1e-9 else "fails",
                }
            )
    return rows, claims


def _left(packed: Coded, target: str, classed: ClassFile) -> float:
    """Return the entropy of the target within classes in bits, or the mean squared error of the class means."""
    owner = np.repeat(np.arange(classed.sizes.count), classed.sizes.read())
    values = packed.table.targets[target].of(classed.rows.read())
    sizes = np.bincount(owner)
    if target == "target":
        numbers = values.numbers[values.codes]
        means = np.bincount(owner, weights=numbers) / sizes
        return float(np.mean((numbers - means[owner]) ** 2))
    both = np.bincount(owner * values.distinct + values.codes)
    both = both[both > 0]
    return float((sizes @ np.log2(sizes) - both @ np.log2(both)) / sizes.sum())
