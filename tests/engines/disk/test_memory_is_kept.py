"""The disk engine keeps to the memory limit, or refuses before it is passed: seen from outside, by a sampler."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from benchmarks.process_tree import run_tree

RECORDS = 300_000
LIMIT = 300 * 10**6
EVERY = 0.05  # seconds


def wide_text(path: Path) -> list[str]:
    """A kept text that is different in every record, of 160 letters."""
    notes = [f"{number:0160}" for number in range(RECORDS)]
    parquet.write_table(pa.table({"age": np.arange(RECORDS) % 90, "note": notes}), path / "in.parquet")
    return ["in.parquet", "--quasi-identifiers", "age", "--other", "note", "--accept-linkable", "note"]


def many_numbers(path: Path) -> list[str]:
    """Three quasi-identifiers, each with a number of its own in every record, as text."""
    random = np.random.default_rng(1)
    columns = {name: random.permutation(RECORDS) / 100 for name in ("income", "rent", "tax")}
    csv.write_csv(pa.table(columns), path / "in.csv")
    return ["in.csv", "--quasi-identifiers", "income,rent,tax"]


def few_values(path: Path) -> list[str]:
    """Columns with few values, which the limit suffices for."""
    random = np.random.default_rng(1)
    columns = {"age": random.integers(0, 90, RECORDS), "zip": random.integers(0, 900, RECORDS)}
    parquet.write_table(pa.table({**columns, "ill": random.integers(0, 9, RECORDS)}), path / "in.parquet")
    return ["in.parquet", "--quasi-identifiers", "age,zip", "--other", "ill"]


@pytest.mark.not_quick
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say what a process holds")
@pytest.mark.parametrize("make, exit_code", [(wide_text, 2), (many_numbers, 2), (few_values, 0)])
def test_a_run_keeps_to_its_limit_or_is_refused_before(
    make: object, exit_code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SFUMATO_THREADS")  # every thread takes memory
    assert callable(make)
    name, *columns = make(tmp_path)
    command = [sys.executable, "-m", "sfumato", "anonymize", tmp_path / name, "-o", tmp_path / "out.parquet", *columns]
    command += ["-k", "10", "--engine", "disk", "--memory", "300MB", "--method", "hilbert", "--temporary", tmp_path]
    usage = run_tree(command, interval=EVERY, expected=(0, 2))
    assert usage.exit_code == exit_code
    assert usage.peak_bytes < LIMIT
    assert (tmp_path / "out.parquet").exists() == (exit_code == 0)
    assert not list(tmp_path.glob(".sfumato-scratch-*"))
