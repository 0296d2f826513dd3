"""Executors in processes of their own, killed while they work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import oracle
import pyarrow.parquet as pq
import pytest
from spark import SOURCES, require_spark, session
from spark_kills import OPTIONS, PHASES, POLICY, people

from sfumato.progress import Progress
from sfumato.sparking import anonymize_with_spark

pytestmark = [pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning"), pytest.mark.compiled]


def rows_of(folder: str) -> list[dict[str, object]]:
    """The rows of the files, file after file. Their bytes differ: Spark lists encodings in another order each time."""
    return [row for file in sorted(Path(folder).glob("*.parquet")) for row in pq.read_table(file).to_pylist()]


def test_a_release_is_the_same_when_an_executor_is_killed_in_every_stage(tmp_path: Path) -> None:
    require_spark()
    expected = anonymize_with_spark(session().createDataFrame(people()), POLICY, Progress(), OPTIONS)
    paths = os.pathsep.join([SOURCES, str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    target = tmp_path / "killed"
    program = [sys.executable, str(Path(__file__).with_name("spark_kills.py")), str(target)]
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(program, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert set(told["phases"]) == set(PHASES)
    assert len(told["phases"]) > 2 * len(PHASES)
    rows = rows_of(str(target))
    assert rows == rows_of(expected._path)
    assert len(rows) == 3000
    assert oracle.smallest_class(rows, ["age", "city"]) >= 5
    assert oracle.reached_frequency(rows, ["age", "city"], "ill") >= 2
    assert told["buckets"] == expected.summary()["buckets"] > 2
    assert [path.name for path in tmp_path.iterdir() if "scratch" in path.name] == []
