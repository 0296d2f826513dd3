"""Rothko-T and Rothko-S (LeFevre 2008, section 6): nodes pruned, data read and written, quality by sample size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.section import Section, Table
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
SAMPLES = (100, 500, 1000, 2500, 10_000, 25_000)
MANY_K = (10, 100, 1000)
MANY_L = (2, 6)
VARIANCES = (7e7, 9e7)  # of a normal salary
CACHES = (1, 2, 4, 8, 16)
FITS = 4000
AMPLE = 10**9
QUALITY_K = 25
QUALITY_SAMPLES = (1000, 5000, 25_000)


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


def run(options: Options) -> Mapping[str, Table]:
    note = f"{options.size(RECORDS):,} records, median. In parentheses without tests; x: may not be minimal."
    pruned = {
        f"pruned, {name}": Table(f"Nodes pruned: {name}", rows, [note]) for name, rows in _pruned(options).items()
    }
    return {
        **pruned,
        "traffic": Table(f"Data read and written, k = 100, {FITS:,} records in memory", _traffic(options)),
        "quality": Table("Conditional entropy of the class and WMSE of the number, by sample size", _quality(options)),
    }


@contextmanager
def coded(data: pa.Table, policy: Policy) -> Iterator[Coded]:
    job = open_job(data, open_source(data, policy.input_options), policy, Progress())
    with Scratch() as scratch:
        yield Coded(encode_input(job, profile_input(job), MemoryBudget(AMPLE), scratch), job.requirements, scratch)


def drawn(options: Options, **settings: Any) -> pa.Table:
    """Generate Agrawal's table with salaries in thousands, so that frequency sets are as small as in the paper."""
    table = pa.Table.from_batches(list(Agrawal(**settings).batches(options.size(RECORDS), 0)))
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


def _pruned(options: Options) -> dict[str, list[dict[str, Any]]]:
    """Fig. 24: the memory holds only the sample, and trees grow to the paper's height."""
    samples, plain, normal = options.some(SAMPLES), drawn(options), drawn(options, salary="normal")
    return {
        "k": _table(samples, {f"k = {k:,}": (plain, policy_for(plain, k=k)) for k in options.some(MANY_K)}),
        "recursive": _table(
            samples,
            {
                f"l = {one}": (plain, policy_for(plain, "zipcode", k=1, require=[f"recursive(zipcode, c=1, l={one})"]))
                for one in options.some(MANY_L)
            },
        ),
        "variance": _table(
            samples,
            {
                f"v = {v:.0e}": (normal, policy_for(normal, "salary", k=1, require=[f"variance(salary, v={v})"]))
                for v in options.some(VARIANCES)
            },
        ),
    }


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


def _traffic(options: Options) -> list[dict[str, Any]]:
    """Fig. 18 and 19: passes over the data in comparison with section 5.3."""
    data = drawn(options)
    rows = []
    with coded(data, policy_for(data, k=100)) as packed:
        budget = Fits(AMPLE, FITS)
        for cache in options.some(CACHES):
            counted = IoCounters()
            rothko_t(
                packed.table, MondrianMethod(), packed.requirements, budget, packed.scratch, Progress(), cache=cache,
                counters=counted,
            )  # fmt: skip
            expected = expected_tree_io(data.num_rows, FITS, cache)
            rows.append(_passes(packed, f"Rothko-T, F_CACHE = {cache}", counted, expected.reads, expected.writes))
        for sample in options.some((500, 1000, 2000, FITS)):
            counted = IoCounters()
            rothko_s(
                packed.table, MondrianMethod(), packed.requirements, budget, packed.scratch, Progress(), sample=sample,
                counters=counted,
            )  # fmt: skip
            expected = expected_sample_io(data.num_rows, FITS, 100, sample)
            rows.append(_passes(packed, f"Rothko-S, n = {sample}", counted, expected.reads, expected.writes))
    return rows


def _passes(packed: Coded, name: str, counted: IoCounters, reads: int, writes: int) -> dict[str, Any]:
    read, written = counted.passes(packed.bytes)
    return {
        "method": name,
        "read": round(read, 2),
        "expected to be read": reads,
        "written": round(written, 2),
        "expected to be written": writes,
        "pruned": counted.pruned,
    }


def _quality(options: Options) -> list[dict[str, Any]]:
    """Fig. 22 and 23: what the classes leave unexplained if the first splits come from samples of a given size."""
    rows = []
    for function, rule, task in (("C2", "information-gain", "classification"), ("R7", "regression", "regression")):
        data = drawn(options, function=function)
        target = "class" if task == "classification" else "target"
        policy = policy_for(data, k=QUALITY_K).to_dict() | {"workload": {task: [{"target": target}]}}
        policy["method"] = {"name": f"mondrian:{rule}"}
        with coded(data, Policy.from_dict(policy)) as packed:
            method = MondrianMethod(rule=rule)  # type: ignore[arg-type]
            left = {}
            for n in options.some(QUALITY_SAMPLES):
                budget = Fits(AMPLE, n)
                classes = rothko_s(
                    packed.table, method, packed.requirements, budget, packed.scratch, Progress(), sample=n
                )
                left[f"n = {n:,}"] = _left(packed, target, classes)
            whole = Fits(AMPLE, data.num_rows)
            classes = rothko_t(packed.table, method, packed.requirements, whole, packed.scratch, Progress())
            left["all"] = _left(packed, target, classes)
        measure = "entropy of C2, bits" if task == "classification" else "squared error of R7"
        rows.append({"left": measure} | {name: f"{value:.4g}" for name, value in left.items()})
    return rows


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


SECTION = Section(
    run,
    timed=False,
    parameters={"records": RECORDS, "in memory": FITS, "height": HEIGHT, "k of quality": QUALITY_K},
)
