"""Tables in memory and on disk at once, to compare Rothko with Mondrian."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.engines.disk.class_file import ClassFile
from sfumato.engines.disk.coded_table import CodedTable, encode_input, profile_input
from sfumato.engines.disk.rothko_io_cost import IoCounters
from sfumato.engines.disk.rothko_s import rothko_s
from sfumato.engines.disk.rothko_t import rothko_t
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.pipeline.prepare import read_table
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.packed_records import ROW
from sfumato.tables.external.scratch import Scratch

Classes = set[frozenset[int]]  # rows of the input


SMALL = MemoryBudget(0)  # 16 records are finished in memory


@dataclass(frozen=True)
class OnDisk:
    """A table as memory has it, and in a file."""

    memory: TableInMemory
    table: CodedTable
    scratch: Scratch

    def in_memory(self, method: MondrianMethod) -> Classes:
        found = set()
        input_rows = self.memory.encoded.input_rows
        assert input_rows is not None
        for batch in method.classes(self.memory.records, self.memory.job.requirements, Progress()):
            for begin, end in zip(batch.starts[:-1], batch.starts[1:], strict=True):
                found.add(frozenset(input_rows[batch.rows[begin:end]].tolist()))
        return found

    def sampled(self, method: MondrianMethod, budget: MemoryBudget = SMALL, **settings: Any) -> Classes:
        requirements = self.memory.job.requirements
        return classes_in(rothko_s(self.table, method, requirements, budget, self.scratch, Progress(), **settings))

    def by_counts(
        self,
        method: MondrianMethod,
        budget: MemoryBudget = SMALL,
        *,
        cache: int | None = None,
        counters: IoCounters | None = None,
    ) -> Classes:
        requirements = self.memory.job.requirements
        return classes_in(
            rothko_t(self.table, method, requirements, budget, self.scratch, Progress(), cache=cache, counters=counters)
        )


def classes_in(classed: ClassFile) -> Classes:
    rows = classed.rows.read()[ROW]
    ends = np.cumsum(classed.sizes.read(), dtype=np.int64)
    assert sorted(rows.tolist()) == list(range(len(rows)))
    return {frozenset(part.tolist()) for part in np.split(rows, ends[:-1])}


@contextmanager
def on_disk(data: pa.Table, policy: Policy) -> Iterator[OnDisk]:
    policy = merge_flags(policy, keep_order=True)
    memory = read_table(data, policy, Progress())
    with tempfile.TemporaryDirectory() as folder, Scratch(Path(folder)) as scratch:
        yield OnDisk(memory, encode_input(memory.job, profile_input(memory.job), SMALL, scratch), scratch)


def people(rows: int, seed: int) -> pa.Table:
    """Numbers with gaps, categories of unequal size, nulls, a skewed sensitive value, a class and a number to tell."""
    generator = np.random.default_rng(seed)
    age = generator.integers(0, 60, rows)
    place = np.minimum(generator.geometric(0.3, rows), 9)
    income = np.rint(generator.lognormal(3, 1, rows))
    return pa.table(
        {
            "age": pa.array(np.where(generator.random(rows) < 0.03, np.nan, age), from_pandas=True),
            "place": [f"p{one}" for one in place],
            "income": income,
            "ill": pa.array([None if one < 0.05 else f"i{min(int(one * 7), 4)}" for one in generator.random(rows)]),
            "risk": (age * 3 + income + generator.normal(0, 20, rows)).round(1),
            "grade": ["high" if one else "low" for one in (age > 30) ^ (income > 25)],
            "ward": generator.choice(["a", "b", "c"], rows),
            "pulse": generator.integers(50, 120, rows),
        }
    )


def policy_for(rule: str = "median", k: int = 3, require: Sequence[str] = (), **workload: Any) -> Policy:
    columns: dict[str, Any] = {name: {"role": "quasi-identifier"} for name in ("age", "place", "income")}
    columns |= {name: {"role": "other"} for name in ("risk", "grade", "ward", "pulse")}
    columns["ill"] = {"role": "sensitive"}
    name = "mondrian" if rule == "median" else f"mondrian:{rule}"
    policy = Policy.from_dict(
        {
            "columns": columns,
            "accept_linkable": ["risk", "grade", "ward", "pulse", "ill"],
            "privacy": {"k": k},
            "method": {"name": name},
            "workload": workload,
        }
    )
    return merge_flags(policy, require=list(require)) if require else policy


MEDIAN = MondrianMethod()


REQUIRED = [
    ["frequency(ill, l=2)"],
    ["distinct(ill, l=3)"],
    ["entropy(ill, l=2)"],
    ["recursive(ill, c=2, l=2)"],
    ["alpha-k(ill, alpha=0.6)"],
    ["t-closeness(ill, t=0.3)"],
    ["t-closeness(ill, t=0.25, distance=ordered)"],
    ["beta-likeness(ill, beta=2)"],
    ["delta-disclosure(ill, delta=1.5)"],
    ["variance(pulse, v=200)"],
    ["frequency(ill, l=2)", "distinct(ward, l=2)"],
]


WORKLOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "a class": ("information-gain", {"classification": [{"target": "grade"}]}),
    "two classes": ("information-gain", {"classification": [{"target": "grade"}, {"target": "ill", "weight": 2.0}]}),
    "a class beside features": (
        "information-gain",
        {"classification": [{"target": "grade"}], "features": ["ward", "pulse"]},
    ),
    "a number": ("regression", {"regression": [{"target": "risk"}]}),
    "two numbers": ("regression", {"regression": [{"target": "risk"}, {"target": "pulse", "weight": 3.0}]}),
    "a number beside a feature": ("regression", {"regression": [{"target": "risk"}], "features": ["ward"]}),
    "both": ("regression", {"regression": [{"target": "risk"}], "classification": [{"target": "grade"}]}),
}
