"""The kernels as plain Python give the same releases as compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest

import sfumato
from sfumato.methods import methods


def small_tables() -> list[pa.Table]:
    """Tables of at most 30 records: wide codes and narrow ones, nulls, duplicates, text and numbers."""
    generator = np.random.default_rng(99)
    cities = [*"abcdefg", None]
    return [
        pa.table({"a": generator.integers(0, 4, 30), "b": [cities[i] for i in generator.integers(0, 8, 30)]}),
        pa.table({"a": generator.normal(size=24), "b": pa.array([None, 1, 2] * 8, pa.int64())}),
        pa.table({f"q{q}": generator.integers(0, 3, 12) for q in range(7)}),
        pa.table({"a": [5] * 9}),
        pa.table({"a": [1]}),
    ]


def releases() -> list[list[dict[str, Any]]]:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sfumato.SfumatoWarning)
        for table in small_tables():
            for method in sorted(name for name, one in methods().items() if not one.separates):
                for k in (1, 2, 5):
                    if k <= table.num_rows:
                        release = sfumato.anonymize(table, quasi_identifiers=table.column_names, k=k, method=method)
                        rows = release.data.to_pylist()
                        assert oracle.smallest_class(rows, table.column_names) >= k
                        found.append([*rows, {"gcp": release.losses.gcp, "classes": release.audit.classes}])
    return found


def releases_of_a_process(**environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_releases_without_the_jit_are_those_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    plain = releases_of_a_process(NUMBA_DISABLE_JIT="1")
    assert len(plain) > 20
    assert plain == releases_of_a_process()
    assert plain == json.loads(json.dumps(releases()))


def test_one_core_gives_the_same_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = releases()
    for module in ("sfumato.kernels", "sfumato.methods.optimal_1d"):
        monkeypatch.setattr(f"{module}.thread_count", lambda: 1)
    assert releases() == expected


if __name__ == "__main__":
    print(json.dumps(releases()))
