"""Releases in directories and databases: whole, with their certificate, or not at all; nobody else's table touched."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
from database_tables import address, in_duckdb, in_postgres, in_sqlite
from pyarrow import parquet

import sfumato
from sfumato.cli import main
from sfumato.engines.memory import audit as memory_audit
from sfumato.engines.target_output import TargetOutput
from sfumato.errors import OutputError, SfumatoError, UsageError
from sfumato.pipeline import run
from sfumato.policy import InputOptions
from sfumato.releases.certificate import read_certificate
from sfumato.tables.locations import location_of
from sfumato.tables.sources.source import open_source
from sfumato.tables.targets import file_publication, parquet_directory_target
from sfumato.tables.targets.target import open_target

PASSWORD = "Tr0ub4dor"
FLAGS = {"quasi_identifiers": ["age", "sex"], "other": "keep", "k": 2, "accept_linkable": ["city"]}
PEOPLE = pa.table({"age": [1, 2, 3, 4], "sex": ["f", "m", "f", "m"], "city": ["Roma", "Bari", None, ""]})
OLD = pa.table({"old": [1, 2, 3]})

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


@dataclass
class Home:
    """One kind of place: the name of a release there, and what is there, read by the place's own means."""

    kind: str
    name: str
    tables: Callable[[], dict[str, list[tuple[Any, ...]]]]
    put: Callable[[pa.Table, str], object]
    folder: Path

    def left(self) -> list[str]:
        """Everything that is there and was not put there as a table or certificate."""
        stray = [name for name in self.tables() if "stage" in name]
        return stray + [path.name for path in self.folder.iterdir() if "stage" in path.name or "replaced" in path.name]


def sqlite_tables(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    if not path.exists():
        return {}
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def duckdb_tables(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    if not path.exists():
        return {}
    with duckdb.connect(str(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def postgres_tables(connection: Any) -> dict[str, list[tuple[Any, ...]]]:
    names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    # A prepared statement would not survive a table of other columns under the same name.
    return {name: connection.execute(f'SELECT * FROM "{name}"', prepare=False).fetchall() for (name,) in names}


def directory_tables(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    for folder in path.parent.iterdir():
        if folder.is_dir() and not folder.name.startswith("."):
            files = sorted(folder.glob("*.parquet"))
            rows = [tuple(row.values()) for file in files for row in parquet.read_table(file).to_pylist()]
            found[folder.name] = rows
            certificate = folder / "_certificate.sfumato.json"
            if certificate.exists():
                found["sfumato_certificates"] = [("release", certificate.read_text(), "")]
    return found


def put_directory(table: pa.Table, path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    parquet.write_table(table, path / "part-00000.parquet")


@pytest.fixture(params=["directory", "sqlite", "duckdb", pytest.param("postgresql", marks=pytest.mark.postgres)])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    if request.param == "directory":
        return Home(
            "directory",
            f"{tmp_path}/release/",
            lambda: directory_tables(tmp_path / "release"),
            lambda table, name: put_directory(table, tmp_path / name),
            tmp_path,
        )
    if request.param == "postgresql":
        connection = request.getfixturevalue("postgres")
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC")
        name = f"{address(connection)}#release"
        return Home(
            "postgresql",
            name,
            lambda: postgres_tables(connection),
            lambda table, name: in_postgres(table, connection, name),
            tmp_path,
        )
    path = tmp_path / f"out.{request.param}"
    tables, put = (sqlite_tables, in_sqlite) if request.param == "sqlite" else (duckdb_tables, in_duckdb)
    return Home(
        request.param, f"{path}#release", lambda: tables(path), lambda table, name: put(table, path, name), tmp_path
    )


def released(**flags: Any) -> sfumato.Release:
    return sfumato.anonymize(PEOPLE, **{**FLAGS, **flags})


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def test_a_release_is_there_with_its_certificate_and_holds(home: Home) -> None:
    release = released()
    assert release.write(home.name) == home.name
    tables = home.tables()
    assert set(tables) == {"release", "sfumato_certificates"}
    assert tables["release"] == rows_of(release.data)
    (name, text, _), *others = tables["sfumato_certificates"]
    assert (name, others) == ("release", [])
    assert json.loads(text)["released"] == 4
    report = sfumato.audit(home.name)
    assert report.holds
    assert not report.remarks
    assert report.verdicts[-1].requirement.endswith("the one that was certified")
    assert home.left() == []


def test_a_second_release_takes_the_place_of_the_first(home: Home) -> None:
    first = released()
    first.write(home.name)
    assert (first.replaced, "replaced" in first.summary()) == ((), False)
    release = released(k=4)
    with pytest.warns(sfumato.SfumatoWarning, match="^replaced the earlier release "):
        release.write(home.name)
    assert release.summary()["replaced"] == [f"the earlier release {location_of(home.name).shown}"]
    tables = home.tables()
    assert set(tables) == {"release", "sfumato_certificates"}
    assert tables["release"] == rows_of(release.data)
    assert json.loads(tables["sfumato_certificates"][0][1])["policy"]["privacy"]["k"] == 4
    assert sfumato.audit(home.name).holds
    assert home.left() == []


def test_what_is_no_release_is_replaced_by_force_alone(home: Home) -> None:
    home.put(OLD, "release")
    release = released()
    with pytest.raises(UsageError, match="exists, and there is no certificate that makes it a release") as refused:
        release.write(home.name)
    assert "add --force" in str(refused.value)
    assert home.tables() == {"release": rows_of(OLD)}
    assert home.left() == []
    release.write(home.name, force=True)
    assert home.tables()["release"] == rows_of(release.data)
    assert release.replaced == (f"{location_of(home.name).shown}, no release of Sfumato",)
    assert sfumato.audit(home.name).holds


# In a directory both tables are one release or none.
@pytest.mark.parametrize(
    "home", ["sqlite", "duckdb", pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)
def test_a_second_table_that_no_certificate_names_is_replaced_by_force_alone(home: Home) -> None:
    home.put(OLD, "release_sensitive")
    table = pa.table({"age": [1, 2, 3, 4], "diagnosis": ["a", "b", "c", "d"]})
    release = sfumato.anonymize(table, quasi_identifiers="age", sensitive="diagnosis", l=2, method="anatomy", seed=0)
    with pytest.raises(UsageError, match="release_sensitive exists"):
        release.write(home.name)
    assert home.tables() == {"release_sensitive": rows_of(OLD)}
    release.write(home.name, force=True)
    release.write(home.name)  # now its certificate names both
    assert release.replaced == (f"the earlier release {location_of(home.name).shown}",)
    before = home.tables()
    with pytest.raises(UsageError, match=r"has a second table, .*release_sensitive, which this one would leave behind"):
        released().write(home.name)
    assert home.tables() == before


def test_other_tables_are_not_touched(home: Home) -> None:
    home.put(OLD, "bystander")
    released().write(home.name)
    assert home.tables()["bystander"] == rows_of(OLD)


def test_a_release_that_was_changed_afterwards_is_found_out(home: Home, postgres: Any) -> None:
    released().write(home.name)
    change = "UPDATE release SET city = 'Napoli' WHERE city = 'Roma'"
    path = Path(home.name.partition("#")[0])
    if home.kind == "directory":
        parquet.write_table(pa.table(released(k=4).data), path / "part-00001.parquet")
    elif home.kind == "sqlite":
        with contextlib.closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(change)
    elif home.kind == "duckdb":
        with duckdb.connect(str(path)) as connection:
            connection.execute(change)
    else:
        postgres.execute(change)
    report = sfumato.audit(home.name)
    assert not report.holds
    assert [verdict.holds for verdict in report.verdicts][-1] is False


def test_a_release_without_its_certificate_is_incomplete(home: Home) -> None:
    home.put(PEOPLE, "release")
    assert read_certificate(home.name) is None
    report = sfumato.audit(home.name, quasi_identifiers=["sex"], k=2)
    assert "there is no certificate beside the release: it is incomplete, or was made elsewhere" in report.remarks


def test_both_tables_of_anatomy_are_there_or_none(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"age": [1, 2, 3, 4], "ill": ["a", "b", "c", "d"]})
    flags = {"quasi_identifiers": ["age"], "sensitive": "ill", "l": 2, "method": "anatomy"}
    release = sfumato.anonymize(table, **flags)
    with monkeypatch.context() as patch:
        write = TargetOutput.write

        def fails_at_the_second(output: TargetOutput) -> Any:
            first, second = output._tables
            output._tables = [first, replace(second, batches=_fail(MemoryError()))]
            return write(output)

        patch.setattr(TargetOutput, "write", fails_at_the_second)
        with pytest.raises(MemoryError):
            release.write(home.name)
    assert home.tables() == {}
    release.write(home.name)
    report = sfumato.audit(home.name)
    assert report.holds
    assert report.verdicts[-1].requirement.endswith("s are those that were certified")
    assert home.left() == []
    if home.kind != "directory":
        assert len(home.tables()["release_sensitive"]) == 4


def test_every_type_comes_back(home: Home) -> None:
    moment = datetime(2024, 2, 29, 12, 30, 0, 250000)
    table = pa.table(
        {
            "age": pa.array([1, 1], pa.int64()),
            "small": pa.array([1, None], pa.int8()),
            "large": pa.array([2**63 - 1, None], pa.uint64()),
            "real": pa.array([0.1, None]),
            "flag": [True, None],
            "day": [date(2024, 2, 29), None],
            "moment": pa.array([moment, None], pa.timestamp("us")),
            "zoned": pa.array([moment.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "exact": pa.array([Decimal("1.10"), None], pa.decimal128(6, 2)),
            "bytes": pa.array([b"\x00\xff", None]),
            "text": ['a,"b\n\\.é', None],
            "empty": ["", None],
            "nothing": pa.nulls(2, pa.string()),
        }
    )
    kept = [name for name in table.column_names if name != "age"]
    flags: dict[str, Any] = {"quasi_identifiers": ["age"], "other": "keep", "k": 2, "accept_linkable": kept}
    release = sfumato.anonymize(table, **flags)
    release.write(home.name)
    source = open_source(home.name, InputOptions())
    back = pa.Table.from_batches(source.batches(kept)).to_pydict()
    assert back == table.select(kept).to_pydict()
    assert source.types["exact"] == pa.decimal128(6, 2)
    assert source.types["zoned"] == pa.timestamp("us", "UTC")
    assert str(source.types["day"]) == "date32[day]"


def test_what_cannot_be_given_back_is_refused(home: Home) -> None:
    table = pa.table({"odd": pa.array([1, 2], pa.duration("s"))})
    with pytest.raises(OutputError, match="column 'odd'"), open_target(location_of(home.name)) as target:
        target.write(table.schema, lambda: iter(table.to_batches()))
    assert home.tables() == {}


def test_a_time_of_day_is_refused_by_sqlite(tmp_path: Path) -> None:
    table = pa.table({"hour": pa.array([3600], pa.time32("s"))})
    with (
        pytest.raises(OutputError, match="column 'hour'"),
        open_target(location_of(f"{tmp_path}/a.sqlite#t")) as target,
    ):
        target.write(table.schema, table.to_batches)


def _fail(failure: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise failure

    return fail


STEPS = {
    "write": (TargetOutput, "write"),
    "audit": (memory_audit, "find_classes"),
    "measure": (memory_audit, "measure_release"),
    "certificate": (run, "certificate"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("existing", [False, True])
def test_an_error_at_any_step_changes_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, step: str, existing: bool
) -> None:
    release = released()
    if existing:
        home.put(OLD, "release")
    before = home.tables()
    for failure in (KeyboardInterrupt(), MemoryError()):
        with monkeypatch.context() as patch:
            patch.setattr(*STEPS[step], _fail(failure))
            with pytest.raises(type(failure)):
                release.write(home.name, force=True)
    assert home.tables() == before
    assert home.left() == []
    if not existing and home.kind != "postgresql":
        assert list(home.folder.iterdir()) == []


KILLED = """
import os, signal, sys
import pyarrow as pa
from sfumato.tables.locations import location_of
from sfumato.tables.targets.target import open_target
def reached(moment):
    if moment == sys.argv[3]:
        print("ready", flush=True)
        if sys.argv[2] == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.stdin.read()
def batches():
    for number in range(300):
        if number == 299:
            reached("writing")
        yield pa.record_batch({"half": [number] * 1000})
with open_target(location_of(sys.argv[1])) as target:
    target.write(pa.schema({"half": pa.int64()}), batches)
    reached("written")
"""


@pytest.mark.not_quick
@pytest.mark.parametrize("moment", ["writing", "written"])
def test_what_a_killed_run_left_is_removed_by_the_next(home: Home, moment: str) -> None:
    home.put(OLD, "release")
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, home.name, "die", moment], check=False, stdout=subprocess.PIPE
    )
    assert killed.returncode == -signal.SIGKILL
    assert home.tables()["release"] == rows_of(OLD)
    # Of a transaction that was never finished the server keeps nothing.
    assert bool(home.left()) == (home.kind != "postgresql" or moment == "written")
    released().write(home.name, force=True)
    assert home.left() == []
    assert sfumato.audit(home.name).holds


@pytest.mark.not_quick
def test_what_a_living_run_has_staged_is_left_alone(home: Home) -> None:
    home.put(OLD, "release")
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, home.name, "live", "written"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        if home.kind == "duckdb":
            with pytest.raises(OutputError, match="is open in another program"):
                released().write(home.name, force=True)
        else:
            staged = home.left()
            assert staged
            released().write(home.name, force=True)
            assert home.left() == staged
        other.communicate(b"")
        assert other.returncode == 0
    assert home.left() == []


def test_a_database_made_for_a_release_appears_when_it_is_published(tmp_path: Path) -> None:
    for name in ("a.sqlite", "a.duckdb"):
        with open_target(location_of(f"{tmp_path / name}#t")) as target:
            target.write(OLD.schema, OLD.to_batches)
            target.certified()
            assert not (tmp_path / name).exists()
            target.publish("{}")
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_what_was_withheld_never_was_in_the_file_of_a_database(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    (in_sqlite if kind == "sqlite" else in_duckdb)(OLD, path)
    before = path.read_bytes()
    secret = pa.table({"a": ["Zaphod Beeblebrox"] * 50})
    with open_target(location_of(f"{path}#t")) as target:
        target.write(secret.schema, secret.to_batches)
        assert path.read_bytes() == before
        assert not path.with_name(f"{path.name}.wal").exists()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_table_on_a_server_is_its_owners_until_it_is_published(postgres: Any) -> None:
    postgres.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; DROP ROLE IF EXISTS reader; CREATE ROLE reader")
    postgres.execute("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO reader")

    def readable() -> dict[str, bool]:
        query = "SELECT tablename, has_table_privilege('reader', tablename, 'SELECT') FROM pg_tables"
        return dict(postgres.execute(f"{query} WHERE schemaname = 'public' AND tablename LIKE '%e'").fetchall())

    try:
        with open_target(location_of(f"{address(postgres)}#release")) as target:
            target.write(OLD.schema, OLD.to_batches)
            staged = postgres.execute(
                "SELECT tablename FROM pg_tables WHERE tablename LIKE 'sfumato_stage%'"
            ).fetchone()
            query = "SELECT has_table_privilege('reader', %s, 'SELECT')"
            assert postgres.execute(query, staged).fetchone() == (False,)
            target.publish("{}")
        assert readable() == {"release": True}
    finally:
        postgres.execute("ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE SELECT ON TABLES FROM reader")
        postgres.execute("DROP OWNED BY reader; DROP ROLE reader")


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_database_that_was_made_in_the_meantime_is_not_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"a.{kind}"
    put, tables = (in_sqlite, sqlite_tables) if kind == "sqlite" else (in_duckdb, duckdb_tables)
    with contextlib.suppress(OutputError), open_target(location_of(f"{path}#release")) as target:
        target.write(OLD.schema, OLD.to_batches)
        target.certified()
        put(PEOPLE, path, "others")
        target.publish("{}")
    assert tables(path)["others"] == rows_of(PEOPLE)


# Directories


def test_a_directory_is_divided_into_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_directory_target, "PART_ROWS", 1)
    table = pa.table({"a": range(5)})
    monkeypatch.setattr(
        parquet_directory_target,
        "row_groups",
        lambda schema, batches, coded: (table.slice(start, 2) for start in (0, 2, 4)),
    )
    with open_target(location_of(f"{tmp_path}/out/")) as target:
        source = target.write(table.schema, table.to_batches)
        assert [batch.num_rows for batch in source.batches(["a"])] == [2, 2, 1]
        target.publish("{}")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "_certificate.sfumato.json",
        "part-00000.parquet",
        "part-00001.parquet",
        "part-00002.parquet",
    ]


def test_a_directory_that_holds_other_things_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    for name in (f"{tmp_path}/mine/", f"{tmp_path}/mine"):
        for force in (False, True):
            with pytest.raises(UsageError, match="is a directory that holds other things than a release"):
                released().write(name, force=force)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("exchange", [True, False])
def test_a_directory_is_replaced_with_and_without_the_help_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    put_directory(OLD, tmp_path / "release")
    if not exchange:
        monkeypatch.setattr(file_publication, "exchange_atomically", lambda *_: False)
    released().write(f"{tmp_path}/release/", force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["release"]
    assert parquet.read_table(tmp_path / "release" / "part-00000.parquet").num_rows == 4


# What is refused before any work


def refusal(action: Callable[[], object], error: type[SfumatoError]) -> str:
    with pytest.raises(error) as caught:
        action()
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def test_the_input_is_never_the_output(tmp_path: Path, postgres: Any) -> None:
    people = in_sqlite(PEOPLE, tmp_path / "a.sqlite")
    same_file = f"{tmp_path}/a.sqlite#release"
    duck = in_duckdb(PEOPLE, tmp_path / "a.duckdb")
    for data, target in ((people, same_file), (people, people), (duck, f"{tmp_path}/a.duckdb#release")):
        message = refusal(lambda d=data, t=target: sfumato.anonymize(d, **FLAGS).write(t), UsageError)  # type: ignore[misc]
        assert "in the same file as the input" in message
    put_directory(PEOPLE, tmp_path / "parts")
    for target in (f"{tmp_path}/parts/", f"{tmp_path}/parts/out.parquet", f"{tmp_path}/parts/inner/"):
        release = sfumato.anonymize(str(tmp_path / "parts"), **FLAGS)
        assert "same directory" in refusal(lambda r=release, t=target: r.write(t), UsageError)  # type: ignore[misc]
    inner = sfumato.anonymize(tmp_path / "parts" / "part-00000.parquet", **FLAGS)
    assert "same directory" in refusal(lambda: inner.write(f"{tmp_path}/parts/"), UsageError)
    original = in_postgres(PEOPLE, postgres)
    other_spelling = f"{address(postgres)}&application_name=x#public.people"
    release = sfumato.anonymize(original, **FLAGS)
    assert "the output is the input" in refusal(lambda: release.write(other_spelling), UsageError)
    release.write(f"{address(postgres)}#of_the_same_server")
    assert sfumato.audit(f"{address(postgres)}#of_the_same_server").holds


def test_a_view_and_a_name_of_our_own_are_no_targets(tmp_path: Path, postgres: Any) -> None:
    view = "CREATE VIEW v AS SELECT 1 AS a"
    with contextlib.closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection, connection:
        connection.execute(view)
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute(view)
    postgres.execute("DROP VIEW IF EXISTS v")
    postgres.execute(view)
    places = [f"{tmp_path}/a.sqlite", f"{tmp_path}/a.duckdb", address(postgres)]
    for place in places:
        assert "never replaced" in refusal(lambda p=place: released().write(f"{p}#v"), UsageError)  # type: ignore[misc]
        for name in ("sfumato_certificates", "sfumato_stage_x"):
            message = refusal(lambda p=place, n=name: released().write(f"{p}#{n}"), UsageError)  # type: ignore[misc]
            assert "a name that Sfumato uses itself" in message
        assert "Name the table to write after a #" in refusal(lambda p=place: released().write(p), UsageError)  # type: ignore[misc]
    assert "Name it .sqlite or .duckdb" in refusal(lambda: released().write(f"{tmp_path}/new.db#t"), UsageError)
    postgres.execute("DROP VIEW v")


def test_names_that_a_database_cannot_tell_apart_are_refused(tmp_path: Path) -> None:
    table = pa.table({"age": [1, 1], "City": ["a", "b"], "city": ["a", "b"]})
    release = sfumato.anonymize(table, quasi_identifiers=["age"], other="drop", k=2)
    release.write(f"{tmp_path}/a.sqlite#t")
    for name in ("b.sqlite", "b.duckdb"):
        with (
            pytest.raises(OutputError, match="differ only in case"),
            open_target(location_of(f"{tmp_path / name}#t")) as target,
        ):
            target.write(table.schema, table.to_batches)


def test_no_permission_is_told_before_any_work(postgres: Any) -> None:
    postgres.execute("CREATE SCHEMA IF NOT EXISTS closed; DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN")
    place = f"postgresql://guest:{PASSWORD}@/postgres?host={postgres.info.host}#closed.release"
    assert "no permission to write postgresql://guest@/postgres#closed.release" in refusal(
        lambda: released().write(place), OutputError
    )
    missing = place.replace("closed", "nowhere")
    assert "there is no schema 'nowhere'" in refusal(lambda: released().write(missing), OutputError)
    postgres.execute("DROP ROLE guest")


def test_what_depends_on_the_old_table_keeps_it(postgres: Any) -> None:
    in_postgres(OLD, postgres, "release")
    postgres.execute("CREATE VIEW leaning AS SELECT * FROM release")
    assert "depend on it" in refusal(lambda: released().write(f"{address(postgres)}#release", force=True), OutputError)
    assert postgres_tables(postgres)["release"] == rows_of(OLD)
    assert not [name for name in postgres_tables(postgres) if "stage" in name]
    postgres.execute("DROP VIEW leaning; DROP TABLE release")


def test_a_locked_sqlite_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.tables.sources.sqlite_source.SECONDS", 0.1)
    in_sqlite(OLD, tmp_path / "a.sqlite")
    with contextlib.closing(sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert "in use by another program" in refusal(lambda: released().write(f"{tmp_path}/a.sqlite#t"), OutputError)


# As a user does it


@pytest.fixture
def census(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    ages = [20 + number % 7 for number in range(60)]
    parquet.write_table(pa.table({"age": ages, "sex": ["f", "m"] * 30, "ill": ["a", "b", "c"] * 20}), path)
    return path


@pytest.mark.not_quick
def test_the_commands_take_and_make_tables_of_every_kind(
    home: Home, census: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home.put(parquet.read_table(census), "people")
    original = home.name.replace("release/", "people").replace("#release", "#people")
    target = home.name.replace("out.", "other.")
    monkeypatch.chdir(home.folder)
    flags = ["--quasi-identifiers", "age,sex", "--sensitive", "ill", "-k", "3", "-l", "2"]
    assert main(["anonymize", original, "-o", target, *flags, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["released"] == 60
    assert main(["audit", target, "--original", original, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["holds"] is True
    assert main(["measure", original, target, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 60
    assert main(["risk", target, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 60
    assert main(["report", original, target, "-o", "page.html"]) == 0
    assert "60" in Path("page.html").read_text()
    capsys.readouterr()
    assert main(["policy", original, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 60
    assert main(["fit", original, "-o", "rules.json", *flags[:2], "--other", "drop", "-k", "3"]) == 0
    assert main(["apply", "rules.json", original, "-o", target]) == 0
    assert main(["audit", target]) == 0


def test_a_password_is_nowhere_but_in_the_connection(
    postgres: Any, census: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    in_postgres(parquet.read_table(census), postgres)
    server = f"postgresql://tester:{PASSWORD}@/postgres?host={postgres.info.host}"
    flags = ["--quasi-identifiers", "age,sex", "--sensitive", "ill", "-k", "3"]
    assert main(["anonymize", f"{server}#people", "-o", f"{server}#release", "--force", *flags]) == 0
    assert main(["audit", f"{server}#release"]) == 0
    assert main(["anonymize", f"{server}#people", "-o", f"{server}#nowhere.release", *flags]) == 4
    assert main(["audit", f"{server}#none", "-k", "3", "--quasi-identifiers", "age"]) == 4
    shown = capsys.readouterr()
    assert "postgresql://tester@/postgres#release" in shown.out
    kept = "".join(path.read_text() for path in (tmp_path / "state").rglob("*.jsonl"))
    assert "postgresql://tester@/postgres#people" in kept
    certificates = postgres.execute("SELECT certificate FROM sfumato_certificates").fetchall()
    for text in (shown.out, shown.err, kept, str(certificates)):
        assert PASSWORD not in text


def test_a_certificate_knows_nothing_of_the_input(postgres: Any) -> None:
    in_postgres(PEOPLE, postgres, "original_people")
    sfumato.anonymize(f"{address(postgres)}#original_people", **FLAGS).write(f"{address(postgres)}#release", force=True)
    certificate = json.dumps(read_certificate(f"{address(postgres)}#release"))
    assert "original_people" not in certificate
    assert postgres.info.host not in certificate


def test_comments_defaults_and_indexes_of_the_input_do_not_travel(postgres: Any) -> None:
    place = in_postgres(PEOPLE, postgres)
    postgres.execute("COMMENT ON COLUMN people.age IS 'of Zaphod'; ALTER TABLE people ALTER city SET DEFAULT 'Zaphod'")
    postgres.execute("CREATE INDEX ON people (age)")
    sfumato.anonymize(place, **FLAGS).write(f"{address(postgres)}#release", force=True)
    described = "SELECT count(*) FROM {} WHERE {} = 'release'::regclass"
    for catalogue, column in (("pg_description", "objoid"), ("pg_attrdef", "adrelid"), ("pg_index", "indrelid")):
        assert postgres.execute(described.format(catalogue, column)).fetchone() == (0,)


def test_the_umask_is_as_it_was(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        released().write(f"{tmp_path}/a.duckdb#t")
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


def test_a_server_that_goes_away_is_told(postgres: Any) -> None:
    table = pa.table({"a": range(10)})
    gone = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sfumato'"

    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        postgres.execute(gone)
        yield from table.to_batches()

    with (
        pytest.raises(OutputError, match="cannot write postgresql://tester@/postgres#lost"),
        open_target(location_of(f"{address(postgres)}#lost")) as target,
    ):
        target.write(table.schema, batches)
    with pytest.raises(psycopg.errors.UndefinedTable):
        postgres.execute("SELECT * FROM lost")
