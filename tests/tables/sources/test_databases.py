"""Tables in directories and databases: which is meant, the types of columns, one order of rows, nothing secret told."""

from __future__ import annotations

import contextlib
import datetime
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from database_tables import address, in_directory, in_duckdb, in_postgres, in_sqlite
from pyarrow import parquet

from sfumato.errors import InputError, SfumatoError, UsageError
from sfumato.policy import InputOptions
from sfumato.tables.locations import (
    DatabaseLocation,
    DirectoryLocation,
    FileLocation,
    ServerLocation,
    location_of,
    without_password,
)
from sfumato.tables.sources.source import Source, open_source

PASSWORD = "Tr0ub4dor"
CELL = "Zaphod"
PEOPLE = pa.table({"name": [CELL, "Trillian", None], "age": [42, 31, None]})
DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 0, 250000)


def opened(name: object) -> Source:
    return open_source(name, InputOptions())


def read(source: Source, *names: str) -> dict[str, list[object]]:
    asked = names or source.names
    values: dict[str, list[object]] = {name: [] for name in asked}
    for batch in source.batches(asked):
        for name in asked:
            values[name] += batch.column(name).to_pylist()
    return values


def refusal(action: Callable[[], object], error: type[SfumatoError] = InputError) -> str:
    with pytest.raises(error) as caught:
        action()
    told = "".join(traceback.format_exception(caught.value))
    assert CELL not in told
    assert PASSWORD not in told
    return str(caught.value)


# Which table is meant


@pytest.mark.parametrize(
    "name, place",
    [
        ("people.csv", FileLocation(Path("people.csv"))),
        ("out/", DirectoryLocation(Path("out"))),
        ("a.duckdb#t", DatabaseLocation("duckdb", Path("a.duckdb"), "t")),
        ("b.DDB#s.t", DatabaseLocation("duckdb", Path("b.DDB"), "s.t")),
        ("c.sqlite3#a#b", DatabaseLocation("sqlite", Path("c.sqlite3"), "a#b")),
        ("d.sqlite", DatabaseLocation("sqlite", Path("d.sqlite"), None)),
        ("e.db#", DatabaseLocation("", Path("e.db"), None)),
        ("strange#name.csv", FileLocation(Path("strange#name.csv"))),
        ("postgres://u@h/d#s.t", ServerLocation("postgres://u@h/d", "s.t")),
        ("postgresql:///d", ServerLocation("postgresql:///d", None)),
    ],
)
def test_a_name_tells_where_the_table_is(name: str, place: object) -> None:
    assert location_of(name) == place


def test_the_first_bytes_of_a_database_tell_its_kind_better_than_its_name(tmp_path: Path) -> None:
    in_sqlite(PEOPLE, tmp_path / "one.db")
    in_duckdb(PEOPLE, tmp_path / "other.db")
    in_sqlite(PEOPLE, tmp_path / "wrong.duckdb")
    assert [opened(f"{tmp_path}/{name}#people").kind for name in ("one.db", "other.db", "wrong.duckdb")] == [
        "sqlite",
        "duckdb-table",
        "sqlite",
    ]
    (tmp_path / "text.db").write_text(CELL * 10)
    assert "cannot be read as SQLite" in refusal(lambda: opened(f"{tmp_path}/text.db#t"))


def test_a_file_that_is_named_like_a_table_in_a_database_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.db#b.csv").write_text("x\n1\n")
    assert read(opened(str(tmp_path / "a.db#b.csv"))) == {"x": ["1"]}


@pytest.mark.parametrize("make", [in_sqlite, in_duckdb])
def test_without_a_table_those_that_there_are_are_listed(tmp_path: Path, make: Callable[..., str]) -> None:
    path = tmp_path / ("h.sqlite" if make is in_sqlite else "h.duckdb")
    make(PEOPLE, path, "visits")
    make(PEOPLE, path, "people")
    assert refusal(lambda: opened(path)) == (
        f"the file {str(path)!r} is a database, which has 'people', 'visits'. Name a table after a #, such as "
        "'...#people'."
    )
    assert "has no table 'poeple'; it has 'people', 'visits'" in refusal(lambda: opened(f"{path}#poeple"))
    assert read(opened(f"{path}#PEOPLE"), "age") == {"age": [42, 31, None]}


def test_tables_of_a_server_are_listed_with_their_schemas(postgres: Any) -> None:
    postgres.execute("CREATE SCHEMA IF NOT EXISTS clinic")
    postgres.execute("CREATE TABLE IF NOT EXISTS clinic.visits AS SELECT 1 AS a")
    in_postgres(PEOPLE, postgres)
    message = refusal(lambda: opened(address(postgres)))
    assert "'clinic.visits'" in message
    assert "'people'" in message
    assert read(opened(f"{address(postgres)}#clinic.visits")) == {"a": [1]}


def test_missing_and_forbidden_databases_are_told(tmp_path: Path) -> None:
    for name in ("none.sqlite#t", "none.duckdb#t", "none.db#t", "none/"):
        assert "none" in refusal(lambda name=name: opened(f"{tmp_path}/{name}"))  # type: ignore[misc]
    (tmp_path / "empty.duckdb").touch()
    assert "is empty" in refusal(lambda: opened(f"{tmp_path}/empty.duckdb#t"))


# Directories


def test_files_of_other_columns_or_types_are_named(tmp_path: Path) -> None:
    in_directory(PEOPLE, tmp_path / "d")
    parquet.write_table(PEOPLE.select(["name"]), tmp_path / "d" / "b.pq")
    assert "a.parquet' has 'age'" in refusal(lambda: opened(tmp_path / "d"))
    parquet.write_table(pa.table({"name": ["x"], "age": [1.5]}), tmp_path / "d" / "b.pq")
    message = refusal(lambda: opened(tmp_path / "d"))
    assert "column 'age' of the file" in message
    assert "b.pq' has the type double" in message


def test_columns_of_a_directory_may_stand_in_another_order(tmp_path: Path) -> None:
    for number, names in enumerate((["name", "age"], ["age", "name"])):
        parquet.write_table(PEOPLE.slice(number, 1).select(names), tmp_path / f"{number}.parquet")
    assert read(opened(tmp_path)) == {"name": [CELL, "Trillian"], "age": [42, 31]}


def test_files_of_a_directory_come_by_name_and_hidden_ones_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    names = ("c.parquet", "b/a.parquet", "a.parquet", "_aside.parquet", ".hidden.parquet")
    for number, name in enumerate(names):
        parquet.write_table(pa.table({"number": [number]}), tmp_path / name)
    assert read(opened(tmp_path)) == {"number": [2, 1, 0]}


def test_a_directory_divided_by_a_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "year=2024").mkdir()
    parquet.write_table(PEOPLE, tmp_path / "year=2024" / "a.parquet")
    assert "divided by the values of a column" in refusal(lambda: opened(tmp_path))


def test_a_part_without_rows_is_passed_over(tmp_path: Path) -> None:
    for number, rows in enumerate((PEOPLE.slice(0, 0), PEOPLE, PEOPLE.slice(0, 0))):
        parquet.write_table(rows, tmp_path / f"{number}.parquet")
    assert read(opened(tmp_path), "age") == {"age": [42, 31, None]}


# Types


def test_sqlite_columns_have_the_type_that_all_their_cells_have(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE t (whole INT, real REAL, price DECIMAL(6,2), flag BOOLEAN, day DATE, moment DATETIME,"
            ' zoned TIMESTAMPTZ, exact DECIMAL_TEXT(6,2), bytes BLOB, "nothing" INT, free, loose DATE, number BOOL)'
        )
        connection.execute(
            "INSERT INTO t VALUES (7, 0.5, 1.25, 1, '2024-02-29', '2024-02-29 12:30:00.25', '2024-02-29 12:30:00.25Z',"
            " '1.10', x'00ff', NULL, 'text', 'in May', 2)"
        )
        connection.execute(
            "INSERT INTO t VALUES (NULL, NULL, 3, 0, NULL, '2024-02-29T12:30:00', NULL, NULL, NULL, NULL, NULL,"
            " '2024-02-29', 0)"
        )
    source = opened(f"{path}#t")
    assert source.rows == 2
    assert {name: str(kind) for name, kind in source.types.items()} == {
        "whole": "int64",
        "real": "double",
        "price": "double",
        "flag": "bool",
        "day": "date32[day]",
        "moment": "timestamp[us]",
        "zoned": "timestamp[us, tz=UTC]",
        "exact": "decimal128(6, 2)",
        "bytes": "binary",
        "nothing": "string",
        "free": "string",
        "loose": "string",
        "number": "int64",
    }
    assert read(source) == {
        "whole": [7, None],
        "real": [0.5, None],
        "price": [1.25, 3.0],
        "flag": [True, False],
        "day": [DAY, None],
        "moment": [MOMENT, MOMENT.replace(microsecond=0)],
        "zoned": [MOMENT.replace(tzinfo=datetime.UTC), None],
        "exact": [Decimal("1.10"), None],
        "bytes": [b"\x00\xff", None],
        "nothing": [None, None],
        "free": ["text", None],
        "loose": ["in May", "2024-02-29"],
        "number": [2, 0],
    }


@pytest.mark.parametrize("cells", [["1", 1], [b"x", "x"], [0.5, "0.5"], [2**60 + 1, 0.5]])
def test_a_sqlite_column_of_mixed_cells_is_refused_when_it_is_asked_for(tmp_path: Path, cells: list[object]) -> None:
    path = tmp_path / "t.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (mixed, sound INT)")
        connection.executemany("INSERT INTO t VALUES (?, 1)", [(cell,) for cell in cells])
    source = opened(f"{path}#t")
    assert read(source, "sound") == {"sound": [1, 1]}
    assert "column 'mixed' of the table 't'" in refusal(lambda: source.batches(["mixed"]))


def test_text_of_sqlite_that_is_not_utf8_is_refused_without_showing_it(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute(f"INSERT INTO t VALUES (CAST(x'{CELL.encode().hex()}ff' AS TEXT))")
    assert "could not be read" in refusal(lambda: read(opened(f"{path}#t")))


def test_duckdb_columns_keep_their_types(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 7::INT AS whole, 1.25::DECIMAL(6, 2) AS price, true AS flag,"
            " DATE '2024-02-29' AS day, TIMESTAMP '2024-02-29 12:30:00.25' AS moment,"
            " TIMESTAMPTZ '2024-02-29 12:30:00.25+00' AS zoned, '\\xFF'::BLOB AS bytes,"
            " 'low'::ENUM ('low', 'high') AS level, '00000000-0000-0000-0000-000000000007'::UUID AS id,"
            " '{\"a\": 1}'::JSON AS document, NULL::VARCHAR AS nothing, [1, 2] AS many"
        )
    source = opened(f"{path}#t")
    assert str(source.types["price"]) == "decimal128(6, 2)"
    assert str(source.types["zoned"]) == "timestamp[us, tz=UTC]"
    assert "not a single value" in refusal(lambda: source.batches(["many"]))
    assert read(source, *[name for name in source.names if name != "many"]) == {
        "whole": [7],
        "price": [Decimal("1.25")],
        "flag": [True],
        "day": [DAY],
        "moment": [MOMENT],
        "zoned": [MOMENT.replace(tzinfo=datetime.UTC)],
        "bytes": [b"\xff"],
        "level": ["low"],
        "id": ["00000000-0000-0000-0000-000000000007"],
        "document": ['{"a": 1}'],
        "nothing": [None],
    }


def test_postgresql_columns_keep_their_types(postgres: Any) -> None:
    postgres.execute("DROP TABLE IF EXISTS kinds; DROP DOMAIN IF EXISTS cents; DROP TYPE IF EXISTS level")
    postgres.execute("CREATE TYPE level AS ENUM ('low', 'high'); CREATE DOMAIN cents AS numeric(6, 2)")
    postgres.execute(
        "CREATE TABLE kinds AS SELECT 7::int AS whole, 1.25::numeric(6, 2) AS price, 2.50::cents AS domain,"
        " 123.4567::numeric AS free, 0.5::float8 AS real, 'NaN'::float8 AS odd, true AS flag,"
        " '2024-02-29'::date AS day,"
        " '2024-02-29 12:30:00.25'::timestamp AS moment, '2024-02-29 13:30:00.25+01'::timestamptz AS zoned,"
        " '10:30'::time AS hour, '\\xff'::bytea AS bytes, 'low'::level AS level,"
        " '00000000-0000-0000-0000-000000000007'::uuid AS id, '{\"a\": 1}'::json AS document, NULL::text AS nothing,"
        " E'a,\"b\\n\\\\.'::text AS odd_text, ARRAY[1, 2] AS many"
    )
    source = opened(f"{address(postgres)}#kinds")
    assert str(source.types["free"]) == "decimal128(7, 4)"
    assert str(source.types["price"]) == str(source.types["domain"]) == "decimal128(6, 2)"
    assert "not a single value" in refusal(lambda: source.batches(["many"]))
    found = read(source, *[name for name in source.names if name not in ("many", "odd")])
    assert found == {
        "whole": [7],
        "price": [Decimal("1.25")],
        "domain": [Decimal("2.50")],
        "free": [Decimal("123.4567")],
        "real": [0.5],
        "flag": [True],
        "day": [DAY],
        "moment": [MOMENT],
        "zoned": [MOMENT.replace(tzinfo=datetime.UTC)],
        "hour": [datetime.time(10, 30)],
        "bytes": [b"\xff"],
        "level": ["low"],
        "id": ["00000000-0000-0000-0000-000000000007"],
        "document": ['{"a": 1}'],
        "nothing": [None],
        "odd_text": ['a,"b\n\\.'],
    }


def test_a_value_of_postgresql_that_cannot_be_read_is_refused_without_showing_it(postgres: Any) -> None:
    postgres.execute("DROP TABLE IF EXISTS forever; CREATE TABLE forever AS SELECT 'infinity'::date AS day")
    assert "holds a value that cannot be read" in refusal(lambda: read(opened(f"{address(postgres)}#forever")))


# One order of rows


def test_rows_come_by_their_number_or_their_key(tmp_path: Path, postgres: Any) -> None:
    path = tmp_path / "t.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE keyed (a INT, b TEXT PRIMARY KEY) WITHOUT ROWID")
        connection.execute("CREATE TABLE shadowed (rowid TEXT, a INT)")
        for table in ("keyed", "shadowed"):
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", [("3", "b"), ("1", "c"), ("2", "a")])
    assert read(opened(f"{path}#keyed"))["b"] == ["a", "b", "c"]
    assert read(opened(f"{path}#shadowed"))["rowid"] == ["3", "1", "2"]
    postgres.execute("DROP TABLE IF EXISTS keyed; CREATE TABLE keyed (a int, b text PRIMARY KEY)")
    postgres.execute("INSERT INTO keyed VALUES (3, 'b'), (1, 'c'), (2, 'a')")
    assert read(opened(f"{address(postgres)}#keyed"))["a"] == [2, 3, 1]


def test_views_are_read_in_the_order_of_all_their_columns(tmp_path: Path, postgres: Any) -> None:
    view = "CREATE VIEW v AS SELECT age, name FROM people WHERE age IS NOT NULL"
    sqlite = in_sqlite(PEOPLE, tmp_path / "t.sqlite").partition("#")[0]
    with contextlib.closing(sqlite3.connect(sqlite)) as connection, connection:
        connection.execute(view)
    file = in_duckdb(PEOPLE, tmp_path / "t.duckdb").partition("#")[0]
    with duckdb.connect(file) as connection:
        connection.execute(view)
    postgres.execute("DROP VIEW IF EXISTS v")
    in_postgres(PEOPLE, postgres)
    postgres.execute(view)
    for place in (sqlite, file, address(postgres)):
        source = opened(f"{place}#v")
        assert read(source) == {"age": [31, 42], "name": ["Trillian", CELL]}
        assert read(source, "name") == {"name": ["Trillian", CELL]}
    postgres.execute("DROP VIEW v")


def test_all_passes_over_a_table_of_a_server_see_one_moment(postgres: Any) -> None:
    source = opened(in_postgres(PEOPLE, postgres))
    first = source.batches(["age"])
    next(first)
    postgres.execute("DELETE FROM people WHERE age = 31")
    postgres.execute("INSERT INTO people VALUES ('Ford', 200)")
    assert read(source) == {"name": [CELL, "Trillian", None], "age": [42, 31, None]}
    first.close()
    assert read(source, "age") == {"age": [42, 31, None]}
    assert read(opened(f"{address(postgres)}#people"), "age") == {"age": [42, None, 200]}


def test_partitions_of_a_table_are_one_table(postgres: Any) -> None:
    postgres.execute("DROP TABLE IF EXISTS parted; CREATE TABLE parted (a int) PARTITION BY RANGE (a)")
    for low in (0, 10):
        postgres.execute(f"CREATE TABLE parted_{low} PARTITION OF parted FOR VALUES FROM ({low}) TO ({low + 10})")
    postgres.execute("INSERT INTO parted SELECT 19 - n FROM generate_series(0, 19) n")
    source = opened(f"{address(postgres)}#parted")
    assert read(source)["a"] == read(source)["a"]
    assert sorted(map(str, read(source)["a"])) == sorted(map(str, range(20)))


@pytest.mark.not_quick
def test_a_pass_over_a_large_table_holds_a_part_of_it(tmp_path: Path) -> None:
    code = (
        "import sys; from sfumato.tables.sources.source import *\n"
        "source = open_source(sys.argv[1], InputOptions())\n"
        "def used():\n"
        "    lines = open('/proc/self/status')\n"
        "    return int(next(line for line in lines if line.startswith('RssAnon')).split()[1]) << 10\n"
        "next(iter(source.batches(source.names)))\n"
        "before, most = used(), 0\n"
        "for batch in source.batches(source.names): most = max(most, used())\n"
        "print(most - before)\n"
    )
    rows = 500_000
    numbers = pa.array(range(rows))
    table = pa.table(dict.fromkeys("abcdefghij", numbers))
    for make, name in ((in_duckdb, "t.duckdb"), (in_directory, "parts")):
        done = subprocess.run(
            [sys.executable, "-c", code, make(table, tmp_path / name)], capture_output=True, text=True, check=True
        )
        assert int(done.stdout) < table.nbytes * 0.8


# Errors and secrets


def test_a_duckdb_file_that_another_program_writes_to_is_refused(tmp_path: Path) -> None:
    name = in_duckdb(PEOPLE, tmp_path / "t.duckdb")
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "t.duckdb")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert "is open in another program" in refusal(lambda: opened(name))
        other.communicate(b"")
    assert read(opened(name), "age") == {"age": [42, 31, None]}


def test_a_duckdb_file_is_free_between_passes(tmp_path: Path) -> None:
    source = opened(in_duckdb(PEOPLE, tmp_path / "t.duckdb"))
    read(source)
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        assert connection.execute("SELECT count(*) FROM people").fetchall() == [(3,)]
        assert "is already open in this program" in refusal(lambda: read(source))


@pytest.mark.parametrize(
    "package, name, extra", [("duckdb", "t.duckdb#t", "duckdb"), ("psycopg", "postgresql://h/d#t", "postgres")]
)
def test_a_missing_package_is_named_by_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, name: str, extra: str
) -> None:
    in_duckdb(PEOPLE, tmp_path / "t.duckdb", "t")
    monkeypatch.setitem(sys.modules, package, None)
    place = name if "://" in name else f"{tmp_path}/{name}"
    assert f"pip install 'sfumato[{extra}]'" in refusal(lambda: opened(place))


@pytest.mark.parametrize(
    "given, shown",
    [
        (f"postgresql://me:{PASSWORD}@host:5433/db", "postgresql://me@host:5433/db"),
        (f"postgresql://host/db?password={PASSWORD}&user=me", "postgresql://host/db"),
        (f"postgresql://me:a@{PASSWORD}@host/db", "postgresql://me@host/db"),
        (f"postgresql://me:a?{PASSWORD}@host/db", "postgresql://..."),
        (f"postgresql://host/db?application_name=a@b&password={PASSWORD}", "postgresql://..."),
        ("postgresql:///db", "postgresql:///db"),
    ],
)
def test_no_password_is_shown(given: str, shown: str) -> None:
    assert without_password(given) == shown
    assert PASSWORD not in repr(location_of(f"{given}#t"))


@pytest.mark.parametrize("password", [PASSWORD, f"%{PASSWORD}", f"{PASSWORD}#x", f"x@{PASSWORD}", f"{PASSWORD}?y"])
def test_a_server_that_cannot_be_reached_is_told_without_the_password(password: str) -> None:
    message = refusal(lambda: opened(f"postgresql://me:{password}@127.0.0.1:1/db#people"))
    assert "cannot be reached" in message or "not understood" in message


def test_users_and_databases_that_are_not_there_are_told(postgres: Any) -> None:
    host = postgres.info.host
    place = f"postgresql://nobody:{PASSWORD}@/postgres?host={host}#people"
    assert "does not exist" in refusal(lambda: opened(place))
    assert "does not exist" in refusal(lambda: opened(f"postgresql://tester:{PASSWORD}@/nothing?host={host}#people"))


def test_a_table_that_a_user_may_not_read_is_told(postgres: Any) -> None:
    in_postgres(PEOPLE, postgres)
    postgres.execute("DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN")
    place = f"postgresql://guest@/postgres?host={postgres.info.host}#people"
    assert "may not be read by this user" in refusal(lambda: read(opened(place)))
    postgres.execute("GRANT SELECT ON people TO guest")
    assert read(opened(place), "age") == {"age": [42, 31, None]}
    postgres.execute("REVOKE ALL ON people FROM guest; DROP ROLE guest")


def test_the_environment_of_libpq_is_heeded(postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    in_postgres(PEOPLE, postgres)
    monkeypatch.setenv("PGHOST", postgres.info.host)
    monkeypatch.setenv("PGUSER", "tester")
    assert read(opened("postgresql:///postgres#people"), "age") == {"age": [42, 31, None]}


def test_an_address_given_as_a_path_is_refused() -> None:
    refusal(lambda: opened(Path("postgresql://u@h/d#t")), UsageError)


def test_a_source_lets_go_of_its_snapshot(postgres: Any) -> None:
    source: Any = opened(in_postgres(PEOPLE, postgres))
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sfumato' AND state = 'idle in transaction'"
    )
    before = postgres.execute(waiting).fetchone()[0]
    source.close()
    # The server takes a moment to notice.
    for _ in range(100):
        if postgres.execute(waiting).fetchone()[0] < before:
            break
        postgres.execute("SELECT pg_sleep(0.02)")
    assert postgres.execute(waiting).fetchone()[0] < before
