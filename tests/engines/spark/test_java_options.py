"""The options that Java is started with, on a session that only notes them."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sfumato.engines.spark import session as sessions
from sfumato.engines.spark.session import JAVA_OPTIONS, session_of


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The options of every session that was started."""
    pytest.importorskip("pyspark")
    noted: list[str | None] = []

    class Builder:
        def appName(self, name: str) -> Builder:
            return self

        def config(self, key: str, value: str) -> Builder:
            return self

        def getOrCreate(self) -> Any:
            noted.append(os.environ.get(JAVA_OPTIONS))
            return SimpleNamespace(sparkContext=SimpleNamespace(setLogLevel=lambda level: None))

    spark = SimpleNamespace(builder=Builder(), getActiveSession=lambda: None)
    monkeypatch.setattr(sessions, "_pyspark", lambda: SimpleNamespace(SparkSession=spark))
    monkeypatch.setenv("PYSPARK_PYTHON", "python3")
    monkeypatch.delenv(JAVA_OPTIONS, raising=False)
    monkeypatch.setattr(sessions, "runs_the_command", lambda: True)
    return noted


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        ("people.parquet", "release.parquet", "-XX:TieredStopAtLevel=1"),
        ("people", "release.parquet", "-XX:TieredStopAtLevel=1"),
        ("people.csv", "release.parquet", None),
        ("people.parquet", "s3a://bucket/release", None),
        ("people.parquet", None, None),
        ("clinic.people", "release.parquet", None),
    ],
    ids=["file", "directory", "text", "remote output", "no output", "table of the catalogue"],
)
def test_java_has_its_second_compiler_where_it_moves_rows(
    started: list[str | None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    target: str | None,
    expected: str | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    for present in ("people.parquet", "people", "people.csv"):
        Path(present).touch()
    session_of(name, target=target)
    assert started == [expected]
    assert JAVA_OPTIONS not in os.environ


def test_options_that_the_user_has_set_stay(
    started: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(JAVA_OPTIONS, "-Xss4m")
    (tmp_path / "people.parquet").touch()
    session_of(tmp_path / "people.parquet", target=tmp_path / "release")
    assert started == ["-Xss4m"]
    assert os.environ[JAVA_OPTIONS] == "-Xss4m"


def test_a_program_that_uses_the_package_gets_java_as_it_is(
    started: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "runs_the_command", lambda: False)
    (tmp_path / "people.parquet").touch()
    session_of(tmp_path / "people.parquet", target=tmp_path / "release")
    assert started == [None]
