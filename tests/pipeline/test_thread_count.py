"""The bytes of a release do not depend on how many threads made it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato

RECORDS = 150_000  # several chunks of every step that threads share


def people() -> pa.Table:
    random = np.random.default_rng(0)
    texts = np.array([f"text {number}, with a comma" for number in range(5_000)])
    return pa.table(
        {
            "age": pa.array(random.integers(0, 99, RECORDS), mask=random.random(RECORDS) < 0.02),
            "zip": pa.array(random.integers(10_000, 10_400, RECORDS).astype(str)),
            "diagnosis": pa.array(random.integers(0, 30, RECORDS).astype(str), mask=random.random(RECORDS) < 0.1),
            "note": pa.array(texts[random.integers(0, len(texts), RECORDS)]),
            "cost": pa.array(np.round(random.normal(100, 20, RECORDS), 1)),
        }
    )


@pytest.mark.not_quick
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("method", ["auto", "mondrian"])
def test_one_thread_and_three_write_the_same_bytes(
    method: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    for threads in ("1", "3"):
        monkeypatch.setenv("SFUMATO_THREADS", threads)
        target = tmp_path / threads / f"release.{suffix}"
        target.parent.mkdir()
        release = sfumato.anonymize(
            people(),
            quasi_identifiers=["age", "zip"],
            sensitive=["diagnosis"],
            other="keep",
            accept_linkable=["note", "cost"],
            k=5,
            method=method,
            max_suppressed=0.01,
        )
        release.write(target)
        written.append([path.read_bytes() for path in sorted(target.parent.iterdir())])
    assert len(written[0]) == 2
    assert written[0] == written[1]
