"""What all tests share: markers, the quick selection, Hypothesis profiles, state, threads, kinds of frames."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    import pyarrow as pa

pytest_plugins = ("examined_page", "steward")

SLOW_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large]
DERANDOMIZED = settings(
    max_examples=60, derandomize=True, deadline=None, database=None, suppress_health_check=SLOW_CHECKS
)
settings.register_profile("quick", DERANDOMIZED, max_examples=6)
settings.register_profile("full", DERANDOMIZED)
settings.register_profile("thorough", max_examples=1500, deadline=None, suppress_health_check=SLOW_CHECKS)
# One file is tried in seconds; `make test` asks for the full profile, `make test-all` for the thorough one.
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

QUICK_CASES = 2  # of each test, however many it has parameters for
NOT_QUICK = ("spark", "browser", "postgres", "slow", "not_quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help=f"leave out tests marked {', '.join(NOT_QUICK)}, and try {QUICK_CASES} cases of each other test",
    )
    parser.addoption(
        "--write-docs", action="store_true", help="rewrite what README and docs show instead of comparing it"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        _mark_what_it_needs(item)
        if item.get_closest_marker("compiled") and os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
            item.add_marker(pytest.mark.skip(reason="the JIT is off"))
    if config.getoption("quick"):
        kept = _quick(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def _mark_what_it_needs(item: pytest.Item) -> None:
    """Mark a test by the programs that it needs: a browser, a server, or Java for a session of Spark."""
    fixtures = getattr(item, "fixturenames", ())
    for name in ("browser", "postgres"):
        if name in fixtures:
            item.add_marker(name)
    if hasattr(getattr(item, "module", None), "require_spark"):
        item.add_marker("spark")


def _quick(items: list[pytest.Item]) -> list[pytest.Item]:
    """Choose evenly spread cases of every test that needs nothing but Python and is not slow."""
    ready = [item for item in items if not any(item.get_closest_marker(name) for name in NOT_QUICK)]
    cases, seen, kept = Counter(map(_test_of, ready)), Counter[str](), []
    for item in ready:
        number, total = seen[_test_of(item)], cases[_test_of(item)]
        if number * QUICK_CASES // total != (number - 1) * QUICK_CASES // total or total <= QUICK_CASES:
            kept.append(item)
        seen[_test_of(item)] += 1
    return kept


def _test_of(item: pytest.Item) -> str:
    """The test without its parameters."""
    return item.nodeid.partition("[")[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where every requirement is promised to be there (CI=true), a test that does not run has failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    return report


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> Iterator[None]:
    """Heed SIGINT, here and in processes that tests start, even if the shell switched it off, as after ``nohup``."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def _state_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The run record of the tests is not the user's."""
    directory = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_STATE_DIR", str(directory))
        yield directory


@pytest.fixture(autouse=True)
def _empty_run_record(_state_directory: Path) -> None:
    """No test is warned of the releases of another, or takes the longer the more there were."""
    assert "SFUMATO_STATE_DIR" in os.environ, "an earlier test has removed it, so this one would use the user's record"
    (_state_directory / "runs.jsonl").unlink(missing_ok=True)


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Workers of the tests share the cores, and to start threads takes longer than the work on a small table.

    Tests of threads and of memory ask for several.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_THREADS", "1")
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


def _from_pandas(frame: Any) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pandas(frame)


def _to_polars(table: pa.Table) -> Any:
    import polars

    return polars.from_arrow(table)


def _to_duckdb(table: pa.Table) -> Any:
    import duckdb

    return duckdb.from_arrow(table)


FRAME_KINDS = [
    FrameKind("pyarrow", lambda table: table, lambda frame: frame),
    FrameKind("pandas", lambda table: table.to_pandas(), _from_pandas),
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
