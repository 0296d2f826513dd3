"""Parts of a table on disk that no class reaches beyond, also parts that do not fit into memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import sfumato
from sfumato.tables.external.memory_budget import MemoryBudget

pytestmark = [pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning"), pytest.mark.not_quick]
K = 4
FLAGS: dict[str, Any] = {
    "quasi_identifiers": ["age", "zip"],
    "taxonomy": {"age": {"intervals": [5, 20]}, "zip": {"prefix": [2, 3]}},
    "finest": {"age": 1},
    "coarsest": {"age": 2, "zip": 2},
    "other": "keep",
    "k": K,
}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    random, count = np.random.default_rng(8), 900
    table = pa.table(
        {
            "age": random.integers(20, 80, count),
            "zip": random.integers(100, 160, count).astype(str),
            "illness": random.choice(list("vwxyz"), count),
        }
    )
    parquet.write_table(table, tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def assert_within_parts(release: pa.Table) -> None:
    rows = release.select(["age", "zip"]).to_pylist()
    assert min(Counter((row["age"], row["zip"]) for row in rows).values()) >= K
    for row in rows:
        low, high = map(int, row["age"].strip("[]").split(".."))
        assert low // 20 == high // 20
        assert (low % 5, high % 5) == (0, 4)
        assert len(row["zip"].rstrip("*")) >= 2


@pytest.mark.parametrize("method", ["hilbert", "hilbert-fast", "snake", "mondrian"])
def test_the_classes_are_those_of_memory_whatever_fits(
    method: str, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_memory = sfumato.anonymize(people, method=method, engine="memory", **FLAGS).data
    assert_within_parts(in_memory)
    for budget in (1, 40_000):  # a few records at a time, so that parts are tables of their own; and parts that fit
        monkeypatch.setattr(MemoryBudget, "of", staticmethod(lambda _, budget=budget: MemoryBudget(budget)))
        on_disk = sfumato.anonymize(people, method=method, engine="disk", memory="1GB", **FLAGS).data
        assert on_disk.to_pylist() == in_memory.to_pylist()


@pytest.mark.parametrize("method", ["hilbert", "mondrian", "auto"])
@pytest.mark.parametrize("effort", ["fast", "balanced"])
def test_requirements_and_searches_stay_within_parts(
    method: str, effort: Any, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryBudget, "of", staticmethod(lambda _: MemoryBudget(4_000)))
    release = sfumato.anonymize(
        people, method=method, effort=effort, engine="disk", memory="1GB", sensitive="illness", l=2, **FLAGS
    )
    assert_within_parts(release.data)
    groups: dict[tuple[str, str], Counter[str]] = {}
    for row in release.data.to_pylist():
        groups.setdefault((row["age"], row["zip"]), Counter())[row["illness"]] += 1
    assert all(max(group.values()) * 2 <= group.total() for group in groups.values())
