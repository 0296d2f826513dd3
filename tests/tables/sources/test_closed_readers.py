"""No reader outlives its pass: nothing of ours is left in a thread of Arrow, no thread runs, and no file stays open.

A thread that still holds a Python object when the interpreter ends aborts the process after its work is done.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from database_tables import in_postgres
from source_kinds import as_csv

from sfumato.cli import main
from sfumato.errors import InputError
from sfumato.policy import InputOptions
from sfumato.tables.sources import csv_blocks, postgres_source, text_stream
from sfumato.tables.sources.source import Source, open_source

ROWS = 3_000
TABLE = pa.table(
    {
        "age": [str(20 + number % 50) for number in range(ROWS)],
        "city": [f'c"{number % 4}, é\n' for number in range(ROWS)],
        "diagnosis": [f"d{number % 3}" for number in range(ROWS)],
    }
)
TEXT_FILES: dict[str, tuple[str, str, Callable[[bytes], bytes]]] = {
    "csv": ("t.csv", "utf-8", bytes),
    "gz": ("t.csv.gz", "utf-8", gzip.compress),
    "zst": ("t.csv.zst", "utf-8", lambda content: pa.compress(content, codec="zstd", asbytes=True)),
    "cp1252": ("t.csv", "cp1252", bytes),
    "utf-16": ("t.csv.gz", "utf-16", gzip.compress),
}


class Readers:
    """The threads that read, and the files and connections that were opened."""

    def __init__(self) -> None:
        self.threads: set[threading.Thread] = set()
        self.opened: list[Any] = []

    def noting_thread(self, read: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            self.threads.add(threading.current_thread())
            return read(*arguments)

        return noted

    def noting_result(self, open_one: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            self.opened.append(open_one(*arguments))
            return self.opened[-1]

        return noted

    def assert_gone(self) -> None:
        assert self.threads
        # A thread that Python did not start is a dummy here, and says nothing of when it ends.
        assert not any(isinstance(thread, threading._DummyThread) for thread in self.threads)
        assert not any(thread.is_alive() for thread in self.threads - {threading.current_thread()})
        assert self.opened
        assert all(opened.closed for opened in self.opened)


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> Readers:
    readers = Readers()
    monkeypatch.setattr(text_stream._Utf8Stream, "_next", readers.noting_thread(text_stream._Utf8Stream._next))
    monkeypatch.setattr(psycopg.Copy, "read", readers.noting_thread(psycopg.Copy.read))
    monkeypatch.setattr(text_stream, "open_bytes", readers.noting_result(text_stream.open_bytes))
    monkeypatch.setattr(postgres_source, "open_postgres", readers.noting_result(postgres_source.open_postgres))
    return readers


@pytest.fixture(params=[*TEXT_FILES, pytest.param("postgresql", marks=pytest.mark.postgres)])
def source(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    """A table that is read in many blocks."""
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(text_stream, "READ_BYTES", 1 << 10)
    if request.param == "postgresql":
        source: Any = open_source(in_postgres(TABLE, request.getfixturevalue("postgres")), InputOptions())
        yield source
        source.close()
    else:
        name, encoding, packed = TEXT_FILES[request.param]
        (tmp_path / name).write_bytes(packed(as_csv(TABLE).encode(encoding)))
        yield open_source(tmp_path / name, InputOptions(encoding=encoding))


def test_a_reader_is_gone_when_its_table_is_read(source: Source, readers: Readers) -> None:
    before = threading.active_count()
    batches = list(source.batches(source.names))
    assert len(batches) > 9
    assert pa.Table.from_batches(batches).cast(TABLE.schema).equals(TABLE)
    readers.assert_gone()
    assert threading.active_count() == before


def test_a_reader_is_gone_when_its_iterator_is_dropped(source: Source, readers: Readers) -> None:
    before = threading.active_count()
    batches = source.batches(source.names)
    next(batches)
    del batches
    readers.assert_gone()
    assert threading.active_count() == before


def test_a_reader_is_gone_when_its_table_turns_out_bad(tmp_path: Path, readers: Readers) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 9 + "1,2,3\n")
    source = open_source(tmp_path / "t.csv", InputOptions())
    with pytest.raises(InputError, match="line 11"):
        list(source.batches(source.names))
    readers.assert_gone()


@pytest.mark.parametrize("command", ["audit", "measure"])
@pytest.mark.parametrize("kind", TEXT_FILES)
def test_a_reader_is_gone_when_its_command_ends(command: str, kind: str, tmp_path: Path, readers: Readers) -> None:
    name, encoding, packed = TEXT_FILES[kind]
    (tmp_path / name).write_bytes(packed(as_csv(TABLE).encode(encoding)))
    policy = tmp_path / "policy.toml"
    policy.write_text(
        f'[input]\nencoding = "{encoding}"\n[columns]\nage.role = "quasi-identifier"\ncity.role = "quasi-identifier"\n'
        'diagnosis.role = "sensitive"\n[privacy]\nk = 5\n[[privacy.sensitive]]\nattribute = "diagnosis"\n'
        'kind = "distinct"\nl = 2\n'
    )
    before = threading.active_count()
    tables = [str(tmp_path / name)] * (2 if command == "measure" else 1)
    assert main([command, *tables, "--policy", str(policy)]) == 0
    readers.assert_gone()
    assert threading.active_count() == before
