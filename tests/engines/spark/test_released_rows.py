"""The order of released rows that Spark writes, tried without Spark: within a file, and between files."""

from __future__ import annotations

from itertools import product

import oracle
import pyarrow as pa

from sfumato.engines.spark.bucket_classes import SIZE
from sfumato.engines.spark.released_rows import _arranged, _key

SHOWN = ["q0", "q0_min", "q1"]


def test_rows_of_nothing_but_stars_come_last_in_a_file_and_between_files() -> None:
    pairs = list(product(["*", "a", None, "[1..2]"], ["z", "*", None]))
    classes = pa.table(
        {
            "q0": pa.array([first for first, _ in pairs], pa.string()),
            "q0_min": pa.array([1 if first == "[1..2]" else None for first, _ in pairs], pa.int64()),
            "q1": pa.array([second for _, second in pairs], pa.string()),
            SIZE: pa.array([2] * len(pairs), pa.int64()),
        }
    )
    carried = pa.table({"ill": [f"v{row % 5}" for row in range(2 * len(pairs))]})
    rows = [row for batch in _arranged(classes, carried, SHOWN) for row in batch.to_pylist()]
    assert rows == oracle.canonical_order(rows, ["q0", "q1"], ["ill"])
    assert [(row["q0"], row["q1"]) for row in rows[-2:]] == [("*", "*")] * 2
    by_key = sorted(range(len(pairs)), key=lambda row: _key(classes, row))
    assert [pairs[row] for row in by_key] == [(row["q0"], row["q1"]) for row in rows[::2]]
