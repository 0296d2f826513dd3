"""A table that changes while it is read is refused, and so is a damaged part of it: never half a table."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import traceback
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from database_tables import in_directory, in_duckdb, in_sqlite
from pyarrow import parquet
from source_kinds import KINDS

import sfumato
from sfumato.errors import InputError
from sfumato.pipeline import engine_choice
from sfumato.policy import InputOptions, Policy
from sfumato.tables.sources.source import Source, open_source

CELL = "Zaphod"
PEOPLE = pa.table({"name": [CELL, "Trillian", "Ford", "Arthur"], "age": [42, 31, 200, 30]})
FILES = ["csv", "csv.gz", "tsv", "parquet", "ipc file", "ipc stream", "feather", "directory", "sqlite", "duckdb table"]


def read(source: Source) -> pa.Table:
    return pa.Table.from_batches(source.batches(source.names))


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        action()
    assert CELL not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def file_of(name: object) -> Path:
    path = Path(str(name).partition("#")[0])
    return path / "b.pq" if path.is_dir() else path


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_changed_since_it_was_opened_is_refused(tmp_path: Path, kind: str) -> None:
    name = KINDS[kind][1](PEOPLE, tmp_path)
    source = open_source(name, InputOptions())
    read(source)
    file = file_of(name)
    found = file.stat()
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns + 1))
    assert "changed while it was read. Run again" in refusal(lambda: read(source))


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_put_in_place_of_another_is_refused(tmp_path: Path, kind: str) -> None:
    name = KINDS[kind][1](PEOPLE, tmp_path)
    source = open_source(name, InputOptions())
    file = file_of(name)
    copy = file.with_name("copy")
    copy.write_bytes(file.read_bytes())
    found = file.stat()
    os.utime(copy, ns=(found.st_atime_ns, found.st_mtime_ns))
    copy.replace(file)
    assert "changed while it was read" in refusal(lambda: read(source))


def test_a_file_that_changes_between_two_batches_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(PEOPLE, path, row_group_size=1)
    batches = open_source(path, InputOptions()).batches(["age"])
    next(batches)
    parquet.write_table(pa.table({"age": [1, 2, 3, 4], "name": ["a", "b", "c", "d"]}), path, row_group_size=1)
    assert "changed while it was read" in refusal(lambda: list(batches))


def test_a_file_that_is_added_to_a_directory_is_noticed(tmp_path: Path) -> None:
    source = open_source(in_directory(PEOPLE, tmp_path / "d"), InputOptions())
    parquet.write_table(PEOPLE, tmp_path / "d" / "z.parquet")
    assert "changed while it was read" in refusal(lambda: read(source))


def test_a_write_that_is_only_in_the_log_of_a_database_is_noticed(tmp_path: Path) -> None:
    name = in_sqlite(PEOPLE, tmp_path / "t.sqlite")
    with contextlib.closing(sqlite3.connect(tmp_path / "t.sqlite", isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        source = open_source(name, InputOptions())
        read(source)
        writer.execute("UPDATE people SET age = 7")
        assert "changed while it was read" in refusal(lambda: read(source))
    name = in_duckdb(PEOPLE, tmp_path / "t.duckdb")
    source = open_source(name, InputOptions())
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("SET checkpoint_threshold = '1GB'; PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("UPDATE people SET age = 7")
    assert (tmp_path / "t.duckdb.wal").exists()
    assert "changed while it was read" in refusal(lambda: read(source))


def test_nothing_is_released_of_a_table_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age,sex\n1,f\n2,m\n")
    opened = engine_choice.open_input

    def opened_then_changed(data: object, policy: Policy) -> Source:
        source = opened(data, policy)
        path.write_text("age,sex\n1,f\n2,m\n3,f\n")
        return source

    monkeypatch.setattr(engine_choice, "open_input", opened_then_changed)
    assert "changed while it was read" in refusal(
        lambda: sfumato.anonymize(path, quasi_identifiers=["age", "sex"], k=2).write(tmp_path / "out.csv")
    )
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("place", ["file", "directory"])
def test_a_damaged_row_group_is_told_by_its_number(tmp_path: Path, place: str) -> None:
    (tmp_path / "parts").mkdir()
    path = tmp_path / "parts" / "t.parquet"
    table = pa.table({"name": [f"{CELL} {number * 7919 % 10_007}" for number in range(9_000)]})
    parquet.write_table(table, path, row_group_size=3_000, use_dictionary=False)
    group = parquet.ParquetFile(path).metadata.row_group(1).column(0)
    content = bytearray(path.read_bytes())
    middle = group.data_page_offset + group.total_compressed_size // 2
    content[middle : middle + 200] = bytes(byte ^ 0xFF for byte in content[middle : middle + 200])
    path.write_bytes(content)
    source = open_source(path if place == "file" else path.parent, InputOptions())
    message = refusal(lambda: read(source))
    assert message.startswith(f"row group 2 of 3 of the file {str(path)!r} cannot be read as Parquet: it is damaged")


def test_a_page_whose_checksum_is_wrong_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"age": range(1000)})
    parquet.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[content.index((500).to_bytes(8, "little"))] ^= 1
    path.write_bytes(content)
    assert "row group 1 of 1" in refusal(lambda: read(open_source(path, InputOptions())))
