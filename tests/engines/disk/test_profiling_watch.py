"""Columns with too many values are refused by name while the table is profiled, before they take the memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from sfumato.engines.disk.coded_table import profile_input
from sfumato.engines.engine import Job
from sfumato.errors import PolicyError, UsageError
from sfumato.pipeline.prepare import open_job
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.tables.external import memory_limit
from sfumato.tables.external.memory_limit import MemoryLimit
from sfumato.tables.sources import parquet_source
from sfumato.tables.sources.source import open_source

RECORDS = 1_000
SECRET = "Muriel-Spark"


def job_of(path: Path, **asked: object) -> Job:
    policy = merge_flags(None, quasi_identifiers=["age", "income"], other="keep", k=5, **asked)  # type: ignore[arg-type]
    return open_job(path, open_source(path, policy.input_options), policy, Progress())


def table(notes: int) -> pa.Table:
    """A table with so many different notes, and as many incomes as records."""
    texts = [f"{SECRET}-{number % notes}" for number in range(RECORDS)]
    return pa.table({"age": np.arange(RECORDS) % 90, "income": np.arange(RECORDS) / 8, "note": texts})


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> MemoryLimit:
    """A limit that is reached as soon as columns claim half a megabyte."""
    monkeypatch.setattr(memory_limit, "SPARE", 0)
    monkeypatch.setattr(memory_limit, "held_memory", lambda: 10**8)
    limit = MemoryLimit(300 * 10**6 + 500_000)
    monkeypatch.setattr(memory_limit, "held_memory", lambda: 300 * 10**6)
    return limit


def refusal_of(job: Job, limit: MemoryLimit) -> str:
    with pytest.raises(UsageError) as caught:
        profile_input(job, limit)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def test_the_column_with_the_most_values_is_named(
    tmp_path: Path, limit: MemoryLimit, monkeypatch: pytest.MonkeyPatch
) -> None:
    csv.write_csv(table(notes=10), tmp_path / "in.csv")
    monkeypatch.setattr("sfumato.tables.coding.distinct_values.TEXT_BYTES", 1_000)
    said = refusal_of(job_of(tmp_path / "in.csv"), limit)
    assert said.startswith("column 'income' has about 1,000 different values in its first 1,000 records.")
    assert "more than the 300 MB that are allowed" in said
    assert "with --memory" in said
    assert "in a Parquet file" in said


def test_a_kept_text_that_is_linkable_for_certain_is_refused_as_such(
    tmp_path: Path, limit: MemoryLimit, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet.write_table(table(notes=900), tmp_path / "in.parquet")
    monkeypatch.setattr("sfumato.engines.disk.profiling_watch.BATCH_COPIES", 10**6)
    with pytest.raises(PolicyError, match=r"'note': at least 80% of the records that have a value are alone with it"):
        profile_input(job_of(tmp_path / "in.parquet"), limit)
    assert "different values" in refusal_of(job_of(tmp_path / "in.parquet", accept_linkable=["note"]), limit)


def test_a_kept_text_that_may_still_repeat_is_refused_by_its_size(
    tmp_path: Path, limit: MemoryLimit, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet.write_table(table(notes=900), tmp_path / "in.parquet")
    monkeypatch.setattr("sfumato.engines.disk.profiling_watch.BATCH_COPIES", 10**6)
    monkeypatch.setattr("sfumato.engines.disk.profiling_watch.FEW_BYTES", 0)
    monkeypatch.setattr(parquet_source, "BATCH_BYTES", 1 << 12)  # so the first batch has few of the records
    said = refusal_of(job_of(tmp_path / "in.parquet"), limit)
    assert said.startswith("column 'note' has about ")
    assert "it is refused as linkable in any case" in said


def test_batches_that_do_not_fit_are_not_blamed_on_a_column(
    tmp_path: Path, limit: MemoryLimit, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet.write_table(table(notes=10), tmp_path / "in.parquet")
    monkeypatch.setattr("sfumato.engines.disk.profiling_watch.BATCH_COPIES", 10**6)
    assert "few different values, but batches of these records" in refusal_of(job_of(tmp_path / "in.parquet"), limit)


def test_a_table_within_the_limit_is_profiled(tmp_path: Path) -> None:
    parquet.write_table(table(notes=900), tmp_path / "in.parquet")
    limit = MemoryLimit(10**9)
    profile = profile_input(job_of(tmp_path / "in.parquet"), limit)
    assert [encoder.domain.size for encoder in profile.encoders] == [90, RECORDS]
    assert profile.carried[0].codes == 900
    assert profile.carried[0].records == RECORDS
