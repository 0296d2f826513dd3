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
from naming import hiding_methods

import sfumato
from sfumato.kernels.threads import thread_count


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
            for method in hiding_methods():
                for k in (1, 2, 5):
                    if k <= table.num_rows:
                        release = sfumato.anonymize(table, quasi_identifiers=table.column_names, k=k, method=method)
                        rows = release.data.to_pylist()
                        assert oracle.smallest_class(rows, table.column_names) >= k
                        found.append([*rows, {"gcp": release.losses.gcp, "classes": release.audit.classes}])
        found += releases_for_workloads()
    return found


def releases_for_workloads() -> list[list[dict[str, Any]]]:
    """The same of the rules that have to know what a release is for: classes, numbers, both, and selections."""
    generator = np.random.default_rng(7)
    table = small_tables()[0].append_column("c", pa.array([*"xyzx", None] * 6))
    table = table.append_column("n", pa.array(generator.normal(size=30)))
    workloads: list[dict[str, Any]] = [
        {"classification": [{"target": "c"}]},
        {"regression": [{"target": "n"}]},
        {"classification": [{"target": "c"}], "regression": [{"target": "n"}], "selection": [{"where": "a > 1"}]},
        {"regression": [{"target": "n"}], "features": ["c"]},
    ]
    found = []
    for workload in workloads:
        for k in (2, 5):
            policy = sfumato.Policy.from_dict(
                {
                    "columns": {name: {"role": "quasi-identifier"} for name in "ab"},
                    "other": "keep",
                    "accept_linkable": ["c", "n"],
                    "privacy": {"k": k},
                    "workload": workload,
                }
            )
            release = sfumato.anonymize(table, policy)
            found.append([*release.data.to_pylist(), {"classes": release.audit.classes}])
    return found


def releases_of_a_process(**environment: str) -> Any:
    done = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.not_quick
@pytest.mark.compiled  # this process is the one with the JIT
def test_releases_without_the_jit_are_those_with_it() -> None:
    plain = releases_of_a_process(NUMBA_DISABLE_JIT="1")
    assert len(plain) > 20
    assert plain == json.loads(json.dumps(releases()))


@pytest.mark.not_quick
def test_any_number_of_threads_gives_the_same_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = releases()
    assert thread_count() == 1
    monkeypatch.setenv("SFUMATO_THREADS", "4")
    assert thread_count() == 4
    assert releases() == expected


if __name__ == "__main__":
    print(json.dumps(releases()))
