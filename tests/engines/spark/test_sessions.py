"""Other ways to run Spark: executors in processes of their own, killed while they work, and Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import oracle
import pyarrow.parquet as pq
import pytest
from spark import SOURCES, require_spark, session
from spark_kills import OPTIONS, PHASES, POLICY, people

from sfumato.pipeline.run import draft_release, kept
from sfumato.progress import Progress

pytestmark = [pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning"), pytest.mark.compiled]

TESTS = Path(__file__).parents[2]


def rows_of(folder: str) -> list[dict[str, object]]:
    """The rows of the files, file after file. Their bytes differ: Spark lists encodings in another order each time."""
    return [row for file in sorted(Path(folder).glob("*.parquet")) for row in pq.read_table(file).to_pylist()]


def run_program(name: str, target: Path, folder: Path) -> dict[str, Any]:
    """What a program in the folder of all tests tells at its end."""
    paths = os.pathsep.join([SOURCES, str(TESTS), os.environ.get("PYTHONPATH", "")])
    program = [sys.executable, str(TESTS / name), str(target)]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(program, capture_output=True, text=True, env=environment, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.fixture(scope="module")
def expected() -> Any:
    """The release of a classic session on threads."""
    require_spark()
    return kept(draft_release(session().createDataFrame(people()), POLICY, Progress(), spark=OPTIONS))


@pytest.mark.slow
def test_a_release_is_the_same_when_an_executor_is_killed_in_every_stage(expected: Any, tmp_path: Path) -> None:
    target = tmp_path / "killed"
    told = run_program("spark_kills.py", target, tmp_path)
    assert set(told["phases"]) == set(PHASES)
    assert len(told["phases"]) >= 2 * len(PHASES)
    rows = rows_of(str(target))
    assert rows == rows_of(expected._draft.rows.directory)
    assert len(rows) == 3000
    assert oracle.smallest_class(rows, ["age", "city"]) >= 5
    assert oracle.reached_frequency(rows, ["age", "city"], "ill") >= 2
    assert told["buckets"] == expected.summary()["buckets"] > 2
    assert [path.name for path in tmp_path.iterdir() if "scratch" in path.name] == []


@pytest.mark.slow
def test_a_session_of_spark_connect_releases_the_same(expected: Any, tmp_path: Path) -> None:
    told = run_program("spark_connect.py", tmp_path, tmp_path)
    assert told["session"].startswith("pyspark.sql.connect")
    assert (told["rows"], told["risk"]) == (3000, 3000)
    assert told["buckets"] == expected.summary()["buckets"]
    assert rows_of(str(tmp_path / "release")) == rows_of(expected._draft.rows.directory)
    rows = rows_of(str(tmp_path / "by_path"))
    assert oracle.smallest_class(rows, ["age", "city"]) >= 5
    assert "Spark Connect, which has no access to files" in told["refused"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["by_path", "people.parquet", "release"]
