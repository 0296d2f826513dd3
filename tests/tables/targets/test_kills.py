"""A run that is killed before any of its operations on files leaves the old release or the new one, whole.

Whole means: the tables, the certificate that names them, and the pages, with their usual permissions. The next command
on the same location, whichever it is, leaves nothing else behind.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
import signal
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from database_tables import address, in_duckdb, in_sqlite
from kills import AT_MOST, DONE, FAILED, run_to

import sfumato
from sfumato.engines.engine import Draft
from sfumato.errors import SfumatoError
from sfumato.pipeline.release import Release
from sfumato.pipeline.run import draft_release, published
from sfumato.policy import InputOptions, merge_flags
from sfumato.progress import Progress
from sfumato.tables.sources.source import open_source
from sfumato.tables.targets import file_publication
from sfumato.tables.targets.target import ReleasePage

PEOPLE = pa.table({"age": list(range(16)), "sex": ["f", "m"] * 8, "ill": ["a", "b", "c", "d"] * 4})
OTHERS = pa.table({"name": ["a table of somebody else"]})

pytestmark = [pytest.mark.not_quick, pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")]


def draft(**flags: Any) -> Draft:
    policy = merge_flags(**{"quasi_identifiers": ["age", "sex"], "sensitive": "ill", "k": 2, **flags})
    return draft_release(PEOPLE, policy, Progress())


@pytest.fixture(scope="module", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module")
def drafts(own_state: None) -> dict[str, Draft]:
    separated = {"k": None, "l": 2, "method": "anatomy"}
    return {
        "old": draft(),
        "new": draft(k=4),
        "old separated": draft(**separated, seed=1),
        "new separated": draft(**separated, seed=2),
    }


@dataclass
class Place:
    """A location for releases, and what is there, read by its own means."""

    name: str
    folder: Path
    separated: bool = False
    with_page: bool = True
    with_private_page: bool = True
    tables: Callable[[], dict[str, Any]] = dict
    put: Callable[[], object] = lambda: None
    settled: Callable[[], None] = lambda: None
    patches: list[tuple[Any, str, Any]] = field(default_factory=list)

    @property
    def pages(self) -> tuple[Path, Path]:
        return self.folder / "page.html", self.folder / "elsewhere" / "private.html"

    def publish(self, which: Draft, text: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            for home, name, value in self.patches:
                patch.setattr(home, name, value)
            page, private = self.pages
            pages = [ReleasePage(page, f"page {text}")] if self.with_page else []
            pages += [ReleasePage(private, f"private {text}", private=True)] if self.with_private_page else []
            patch.setattr(Release, "pages", lambda *_: pages)
            published(which, self.name)

    def state(self) -> dict[str, Any]:
        """Everything that is there, with its permissions. A database is what is in it."""
        found: dict[str, Any] = {}
        for path in sorted(self.folder.rglob("*")):
            mode = stat.S_IMODE(path.stat().st_mode)
            is_database = path.suffix in (".sqlite", ".duckdb")
            found[str(path.relative_to(self.folder))] = (
                mode,
                b"" if path.is_dir() or is_database else path.read_bytes(),
            )
        return found | self.tables()


def rows_of_sqlite(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def rows_of_duckdb(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    with duckdb.connect(str(path), read_only=True) as connection:
        names = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def without_times(tables: dict[str, Any]) -> dict[str, Any]:
    certificates = tables.get("sfumato_certificates", [])
    return tables | {"sfumato_certificates": [row[:2] for row in certificates]} if certificates else tables


# What is written, and whether it replaces an earlier release.
SLOW = pytest.mark.slow  # they take paths that others take too
KINDS = [
    pytest.param("csv", "new"),
    pytest.param("csv", "replaced"),
    pytest.param("two files", "new", marks=SLOW),
    pytest.param("two files", "replaced"),
    pytest.param("xlsx", "new", marks=SLOW),
    pytest.param("xlsx", "replaced", marks=SLOW),
    pytest.param("parquet", "replaced", marks=SLOW),
    pytest.param("directory", "new"),
    pytest.param("directory", "replaced"),
    pytest.param("directory without exchange", "new", marks=SLOW),
    pytest.param("directory without exchange", "replaced"),
    pytest.param("sqlite", "new"),
    pytest.param("sqlite", "replaced", marks=SLOW),
    pytest.param("shared sqlite", "new", marks=SLOW),
    pytest.param("shared sqlite", "replaced"),
    pytest.param("duckdb", "new"),
    pytest.param("duckdb", "replaced", marks=SLOW),
    pytest.param("shared duckdb", "new", marks=SLOW),
    pytest.param("shared duckdb", "replaced"),
    pytest.param("postgresql", "new", marks=[pytest.mark.postgres, SLOW]),
    pytest.param("postgresql", "replaced", marks=pytest.mark.postgres),
]


def place_of(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    folder = tmp_path / "place"
    (folder / "elsewhere").mkdir(parents=True)
    if kind in ("csv", "xlsx", "parquet"):
        return Place(str(folder / f"out.{kind}"), folder)
    if kind == "two files":
        return Place(str(folder / "out.csv"), folder, separated=True)
    if kind.startswith("directory"):
        found = Place(f"{folder}/out/", folder)
        if kind != "directory":
            found.patches.append((file_publication, "exchange_atomically", lambda *_: False))
        return found
    if kind == "postgresql":
        connection = request.getfixturevalue("postgres")
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")

        def tables() -> dict[str, Any]:
            names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            return without_times({name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in names})

        def settled() -> None:
            """Wait until the server has noticed that the client was killed: until then it seems to go on."""
            deadline = time.monotonic() + 30
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sfumato'"
            while connection.execute(query).fetchone()[0] > 0:
                assert time.monotonic() < deadline, "the server does not notice that its client is gone"
                time.sleep(0.01)

        return Place(f"{address(connection)}#out", folder, tables=tables, settled=settled)
    database = kind.rsplit(maxsplit=1)[-1]
    path = folder / f"out.{database}"
    rows, put = (rows_of_sqlite, in_sqlite) if database == "sqlite" else (rows_of_duckdb, in_duckdb)
    found = Place(f"{path}#out", folder, tables=lambda: without_times(rows(path)))
    if kind.startswith("shared"):
        found.put = lambda: put(OTHERS, path, "others")
    return found


@dataclass
class Run:
    """A run that publishes, from the same beginning again and again."""

    place: Place
    beginning: Path
    old: Draft | None
    new: Draft
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

    def begin(self) -> None:
        for path in self.place.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.beginning, self.place.folder, dirs_exist_ok=True)
        if self.place.name.startswith("postgresql"):
            drop_schema(self.place)
            if self.old is not None:
                self.place.publish(self.old, "old")

    def to(self, last: int, failure: OSError | None = None) -> int:
        ended = run_to(lambda: self.place.publish(self.new, "new"), self.place.folder, last, failure)
        self.place.settled()
        return ended


def run_of(place: Place, existing: bool, drafts: dict[str, Draft], tmp_path: Path) -> Run:
    separated = " separated" if place.separated else ""
    run = Run(place, tmp_path / "beginning", drafts[f"old{separated}"] if existing else None, drafts[f"new{separated}"])
    place.put()
    if run.old is not None:
        place.publish(run.old, "old")
        place.pages[0].chmod(0o640)  # the permissions of what is replaced are kept
    shutil.copytree(place.folder, run.beginning)
    run.begin()
    run.before = place.state()
    place.publish(run.new, "new")
    run.after = place.state()
    assert sfumato.audit(place.name).holds
    assert run.before != run.after
    run.begin()
    return run


def drop_schema(place: Place) -> None:
    import psycopg

    with psycopg.connect(place.name.partition("#")[0]) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


@pytest.mark.parametrize(("kind", "existing"), KINDS)
def test_a_kill_before_any_operation_leaves_the_old_or_the_new_release_whole(
    kind: str,
    existing: str,
    drafts: dict[str, Draft],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = place_of(kind, request, tmp_path)
    place.with_private_page = existing == "replaced"
    place.with_page = existing == "replaced" or kind.startswith(("shared", "postgresql"))
    run = run_of(place, existing == "replaced", drafts, tmp_path)
    monkeypatch.chdir(place.folder)  # where the pages of a table on a server are looked for
    published_by = []
    for last in range(1, AT_MOST):
        ended = run.to(last)
        with contextlib.suppress(SfumatoError):  # nothing was published, and nothing was there before
            if last % 8:
                open_source(place.name, InputOptions())
            else:
                sfumato.audit(place.name)
        now = place.state()
        assert now in (run.before, run.after), last
        published_by.append(now == run.after)
        run.begin()
        if ended == DONE:
            break
        assert ended == -signal.SIGKILL
    assert published_by == sorted(published_by)  # one operation commits
    assert not published_by[0]
    assert published_by.count(True) > 1  # after it, there is more to do


@pytest.mark.parametrize("kind", ["csv", "directory", "directory without exchange", "sqlite"])
def test_an_operation_that_fails_changes_nothing(
    kind: str, drafts: dict[str, Draft], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = place_of(kind, request, tmp_path)
    run = run_of(place, kind != "sqlite", drafts, tmp_path)
    ends = []
    for last in range(1, AT_MOST):
        ends.append(run.to(last, OSError(errno.ENOSPC, "full")))
        with contextlib.suppress(SfumatoError):  # what could not be removed, the next command removes
            open_source(place.name, InputOptions())
        assert place.state() == (run.before if ends[-1] == FAILED else run.after), last
        run.begin()
        if ends[-10:] == [DONE] * 10:
            break
    assert FAILED in ends
