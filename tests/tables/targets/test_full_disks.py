"""Databases on a disk that fills up at any moment: the reason is told, and what it says about the release is true."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from small_disk import small_disk

import sfumato
from sfumato.errors import OutputError
from sfumato.tables.locations import location_of
from sfumato.tables.targets.target import open_target

ROWS = 4000

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


@pytest.fixture(scope="module")
def release() -> sfumato.Release:
    columns = {"age": [number % 60 for number in range(ROWS)], "note": [f"{number % 7} " * 9 for number in range(ROWS)]}
    return sfumato.anonymize(pa.table(columns), quasi_identifiers="age", other="keep", k=5, method="hilbert-fast")


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Databases with a release, which is what is there before."""
    directory = tmp_path_factory.mktemp("databases")
    small = sfumato.anonymize(pa.table({"age": [1, 1, 2, 2]}), quasi_identifiers="age", k=2)
    for kind in ("sqlite", "duckdb"):
        small.write(f"{directory}/old.{kind}#people")
    return directory


def rows_in(path: Path) -> dict[str, int]:
    """The rows of every table, read by the database itself."""
    if path.suffix == ".sqlite":
        with contextlib.closing(sqlite3.connect(path)) as connection:
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            return {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}
    with duckdb.connect(str(path)) as file:
        names = [name for (name,) in file.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        counts = [file.execute(f'SELECT count(*) FROM "{name}"').fetchone() for name in names]
    return {name: count[0] for name, count in zip(names, counts, strict=True) if count is not None}


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize(
    "kind, sizes",
    [
        ("sqlite", [0, 600, 5_000, 9_000, 20_000, 60_000, 200_000, 400_000, 10**7]),
        ("duckdb", [0, 5_000, 20_000, 60_000, 200_000, 300_000, 600_000, 900_000, 10**7]),
    ],
)
def test_a_disk_that_fills_up_leaves_the_old_release_and_no_stray_row(
    kind: str, sizes: list[int], existing: bool, release: sfumato.Release, databases: Path, tmp_path: Path
) -> None:
    outcomes, logged = set(), False
    for number, size in enumerate(sizes):
        directory = tmp_path / str(number)
        directory.mkdir()
        path = directory / f"out.{kind}"
        old: dict[str, int] = {}
        taken = 0
        if existing:
            shutil.copy(databases / f"old.{kind}", path)
            old = rows_in(path)
            taken = path.stat().st_size  # a full disk has room for what is there already
        message = None
        with small_disk(taken + size):
            try:
                release.write(f"{path}#people")
            except OutputError as error:
                message = str(error)
        outcomes.add("written" if message is None else "refused")
        if message is not None:
            assert message.startswith(f"no space left for {path}")
            assert "it was not written" in message
            left = {file.name for file in directory.iterdir()}
            if existing:
                left -= {f"{path.name}.wal"}  # the log that DuckDB keeps until it has room, or the file is next opened
            assert left == ({path.name} if existing else set())
            assert (rows_in(path) if existing else {}) == old
        else:
            log = path.with_name(f"{path.name}.wal")  # where rows of DuckDB stay that find no room in the file
            assert log.exists() == any(str(log) in warning for warning in release.warnings)
            logged |= log.exists()
            assert rows_in(path) == {"people": ROWS, "sfumato_certificates": 1}
            assert sfumato.audit(f"{path}#people").holds
    # Into an existing file of DuckDB a release is written in any case: into its log, and a warning says so.
    assert logged == (kind == "duckdb" and existing)
    assert outcomes == ({"written"} if logged else {"refused", "written"})


@pytest.mark.parametrize("pages", [2, 3, 5, 20])
def test_sqlite_tells_a_full_disk_also_where_it_has_ended_the_transaction_itself(pages: int, tmp_path: Path) -> None:
    rows = pa.table({"note": [f"{number} " * 50 for number in range(2000)]})

    def batches() -> Iterator[pa.RecordBatch]:
        target._connection.execute(f"PRAGMA max_page_count = {pages}")  # type: ignore[attr-defined]
        yield from rows.to_batches()

    with (
        pytest.raises(OutputError, match=r"no space left for .*/out\.sqlite#people; it was not written"),
        open_target(location_of(f"{tmp_path}/out.sqlite#people")) as target,
    ):
        target.write(rows.schema, batches)
    assert list(tmp_path.iterdir()) == []
