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
from benchmarks.setting import Setting
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
from sfumato.tables.external.memory_budget import Budget
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
class Fits(Budget):
    """Memory for so many records, and as much beside as there is need for: what is varied is one thing at a time."""

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


def run(setting: Setting) -> dict[str, list[dict[str, Any]]]:
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
    show("What is claimed of samples", results["quality claims"])
    return results


@contextmanager
def coded(data: pa.Table, policy: Policy) -> Iterator[Coded]:
    job = open_job(data, open_source(data, policy.input_options), policy, Progress())
    with Scratch() as scratch:
        yield Coded(encode_input(job, profile_input(job), scratch), job.requirements, scratch)


def drawn(seed: int = 0, **settings: Any) -> pa.Table:
    """Agrawal's table; salaries in thousands, so that their frequency histograms are as small as the paper needs."""
    table = pa.Table.from_batches(list(Agrawal(**settings).batches(RECORDS, seed)))
    place = table.column_names.index("salary")
    return table.set_column(place, "salary", pa.array(table["salary"].to_numpy() // 1000 * 1000))


def policy_for(data: pa.Table, sensitive: str | None = None, **settings: Any) -> Policy:
    """All attributes are numbers, as in section 6.1."""
    told = [name for name in data.column_names if name in ("class", "target")]
    quasi = [name for name in data.column_names if name not in (*told, sensitive)]
    return merge_flags(
        quasi_identifiers=quasi,
        sensitive=sensitive or (),
        other=told,
        type=dict.fromkeys(quasi, "numeric"),
        accept_linkable=[*told, *([sensitive] if sensitive else [])],
        method="mondrian",
        **settings,
    )


def pruned(
    samples: Sequence[int],
    many_k: Sequence[int],
    many_l: Sequence[int],
    variances: dict[str, tuple[float, ...]],
) -> dict[str, list[dict[str, Any]]]:
    """Fig. 24: the memory holds the sample alone, and trees are grown to the paper's height."""
    found: dict[str, list[dict[str, Any]]] = {}
    plain = drawn()
    found["k-anonymity"] = _table(samples, {f"k = {k}": (plain, policy_for(plain, k=k)) for k in many_k})
    found["recursive (1, l)-diversity"] = _table(
        samples,
        {
            f"l = {one}": (plain, policy_for(plain, "zipcode", k=1, require=[f"recursive(zipcode, c=1, l={one})"]))
            for one in many_l
        },
    )
    for salary, many_v in variances.items():
        data = drawn(salary=salary)
        found[f"variance diversity, {salary} salary"] = _table(
            samples,
            {
                f"v = {v:.1e}": (data, policy_for(data, "salary", k=1, require=[f"variance(salary, v={v})"]))
                for v in many_v
            },
        )
    return found


def _table(samples: Sequence[int], asked: dict[str, tuple[pa.Table, Policy]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"n": n} for n in samples]
    for name, (data, policy) in asked.items():
        with coded(data, policy) as there:
            for row in rows:
                told = []
                for tests in (True, False):
                    counted = IoCounters()
                    rothko_s(
                        there.table, MondrianMethod(), there.requirements,
                        Fits(AMPLE, row["n"]), there.scratch, Progress(),
                        sample=row["n"], tests=tests, enough=0, height=HEIGHT, exact=False, counters=counted,
                    )  # fmt: skip
                    told.append("x" if counted.nonminimal else str(counted.pruned))
                row[name] = f"{told[0]} ({told[1]})"
    return rows


def traffic() -> list[dict[str, Any]]:
    """Fig. 18 and 19: passes over the data, beside those of section 5.3, and processor time."""
    data = drawn()
    rows = []
    with coded(data, policy_for(data, k=100)) as there:
        budget = Fits(AMPLE, FITS)
        for cache in CACHES:
            counted, seconds = IoCounters(), time.process_time()
            rothko_t(
                there.table, MondrianMethod(), there.requirements, budget, there.scratch, Progress(), cache=cache,
                counters=counted,
            )  # fmt: skip
            expected = expected_tree_io(RECORDS, FITS, cache)
            rows.append(
                _passes(there, f"Rothko-T, F_CACHE = {cache}", counted, expected.reads, expected.writes, seconds)
            )
        for sample in (500, 1000, 2000, FITS):
            counted, seconds = IoCounters(), time.process_time()
            rothko_s(
                there.table, MondrianMethod(), there.requirements, budget, there.scratch, Progress(), sample=sample,
                counters=counted,
            )  # fmt: skip
            expected = expected_sample_io(RECORDS, FITS, 100, sample)
            rows.append(_passes(there, f"Rothko-S, n = {sample}", counted, expected.reads, expected.writes, seconds))
    return rows


def _passes(there: Coded, name: str, counted: IoCounters, reads: int, writes: int, started: float) -> dict[str, Any]:
    read, written = counted.passes(there.bytes)
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
    """Fig. 22 and 23: what the classes leave to be told, after the tree was begun on samples of a size."""
    rows, claims = [], []
    for function, rule, task in (("C2", "information-gain", "classification"), ("R7", "regression", "regression")):
        data = drawn(function=function)
        target = "class" if task == "classification" else "target"
        for k in many_k:
            policy = policy_for(data, k=k).to_dict() | {"workload": {task: [{"target": target}]}}
            policy["method"] = {"name": f"mondrian:{rule}"}
            with coded(data, Policy.from_dict(policy)) as there:
                method = MondrianMethod(rule=rule)  # type: ignore[arg-type]
                whole = Fits(AMPLE, RECORDS)
                told = {}
                for n in samples:
                    budget = Fits(AMPLE, n)
                    found = rothko_s(
                        there.table, method, there.requirements, budget, there.scratch, Progress(), sample=n
                    )
                    told[n] = _left(there, target, found)
                found = rothko_t(there.table, method, there.requirements, whole, there.scratch, Progress())
                told[RECORDS] = _left(there, target, found)
            measure = "H(C|R*)" if task == "classification" else "WMSE"
            rows.append({"measure": measure, "k": k} | {f"n = {n:,}": f"{value:.4g}" for n, value in told.items()})
            largest = max(samples)
            claims.append(
                {
                    "claim": f"{measure}, k = {k}: a sample of {largest:,} leaves within 5% of all records",
                    "first": told[largest],
                    "second": told[RECORDS],
                    "verdict": "holds" if told[largest] <= 1.05 * told[RECORDS] + 1e-9 else "fails",
                }
            )
    return rows, claims


def _left(there: Coded, target: str, classed: ClassFile) -> float:
    """The entropy of the class of a record in its class, in bits, or the mean squared error of the class's mean."""
    owner = np.repeat(np.arange(classed.sizes.count), classed.sizes.read())
    values = there.table.targets[target].of(classed.rows.read())
    sizes = np.bincount(owner)
    if target == "target":
        numbers = values.numbers[values.codes]
        means = np.bincount(owner, weights=numbers) / sizes
        return float(np.mean((numbers - means[owner]) ** 2))
    both = np.bincount(owner * values.distinct + values.codes)
    both = both[both > 0]
    return float((sizes @ np.log2(sizes) - both @ np.log2(both)) / sizes.sum())
