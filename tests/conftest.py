"""What all tests share: where state is kept, Hypothesis profiles, kinds of frames, kernels compiled beforehand."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings

SLOW_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "default", max_examples=60, derandomize=True, deadline=None, database=None, suppress_health_check=SLOW_CHECKS
)
settings.register_profile("thorough", max_examples=1500, deadline=None, suppress_health_check=SLOW_CHECKS)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "compiled: too slow without compiled kernels; left out when the JIT is off")
    # Workers of pytest-xdist would compile the same kernels side by side, so the first process does it for all.
    if not hasattr(config, "workerinput") and not config.getoption("collectonly"):
        # That every method is among them pays when every worker will meet every method: not for a few files.
        whole = not config.getoption("file_or_dir")
        _compile_kernels(everything=whole and bool(config.getoption("numprocesses", None)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        for item in items:
            if item.get_closest_marker("compiled"):
                item.add_marker(pytest.mark.skip(reason="the JIT is off"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where every requirement is promised to be there (CI=true), a test that does not run has failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


COMPILE_KERNELS = """
import sys
import pyarrow as pa, sfumato
for distinct in (4, 300):  # codes of one byte and of two
    table = pa.table({"number": range(distinct), "name": [str(row % 2) for row in range(distinct)]})
    for method in sys.argv[1:]:
        sfumato.anonymize(table, quasi_identifiers=["number", "name"], k=2, method=method)
        sfumato.anonymize(table, quasi_identifiers=["number"], sensitive="name", l=2, method=method)
"""
# What every test needs, and what the others share, comes first; then one process for each list.
FIRST = ("auto", "hilbert", "hilbert-fast", "idistance")
THEN = (("nng", "mapping-median", "close-k", "single-dimensional"), ("topdown", "mondrian", "mondrian-relaxed"))


def _compile_kernels(*, everything: bool) -> None:
    """In processes of their own; where one fails, the tests will tell why."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "SFUMATO_STATE_DIR": folder}
        for together in ((FIRST,), THEN) if everything else ((FIRST,),):
            running = [
                subprocess.Popen(
                    [sys.executable, "-c", COMPILE_KERNELS, *methods],
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                for methods in together
            ]
            for process in running:
                process.wait()


@pytest.fixture(scope="session", autouse=True)
def _state_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The run record of the tests is not the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A connection to a real PostgreSQL server of the tests' own."""
    from postgres import postgresql

    with postgresql() as connection:
        yield connection


@dataclass(frozen=True)
class FrameKind:
    """One library's frames: ``make`` from an Arrow table, ``read`` back into one."""

    name: str
    make: Callable[[pa.Table], Any]
    read: Callable[[Any], pa.Table]


def _to_polars(table: pa.Table) -> Any:
    import polars

    return polars.from_arrow(table)


def _to_duckdb(table: pa.Table) -> Any:
    import duckdb

    return duckdb.from_arrow(table)


FRAME_KINDS = [
    FrameKind("pyarrow", lambda table: table, lambda frame: frame),
    FrameKind("pandas", lambda table: table.to_pandas(), pa.Table.from_pandas),
    FrameKind("polars", _to_polars, lambda frame: frame.to_arrow()),
    FrameKind(
        "polars-lazy",
        lambda table: _to_polars(table).lazy(),
        lambda frame: frame.collect().to_arrow(),
    ),
    FrameKind("duckdb", _to_duckdb, lambda frame: frame.to_arrow_table()),
]


@pytest.fixture(params=FRAME_KINDS, ids=lambda kind: kind.name)
def frame_kind(request: pytest.FixtureRequest) -> FrameKind:
    """Every kind of frame that users bring."""
    kind: FrameKind = request.param
    return kind
