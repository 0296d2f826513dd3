"""The protocol of all targets: a file, a directory of Parquet, a table in a database. Each appears whole or not at all.

A target is used inside ``with``. Tables are written where no reader looks, read back and audited there, and published
with their certificate and pages in one step. What was not published is removed on exit; what a killed run leaves
behind, the next command on the same location ends or removes (``recover_location``).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import NotRequired, Protocol, Self, TypedDict

import pyarrow as pa

from sfumato.errors import InputError, UsageError
from sfumato.files.regular_file import open_regular
from sfumato.policy import InputOptions, WrittenText
from sfumato.tables.locations import (
    DatabaseLocation,
    DirectoryLocation,
    FileLocation,
    Location,
    ServerLocation,
    certificate_path,
    location_of,
)
from sfumato.tables.sources.parquet_directory_source import parquet_files
from sfumato.tables.sources.source import Source, open_location
from sfumato.tables.targets.digests import file_digest, table_digest
from sfumato.tables.targets.file_writers import PLAIN_TEXT, Batches, check_format
from sfumato.tables.targets.staging import Stage, check_target, recover, write_staged


class CertifiedText(TypedDict):
    """How a CSV file was written, so that it is read in the same way. numbers: the columns with a decimal comma."""

    separator: str
    encoding: str
    decimal: str
    numbers: NotRequired[list[str]]


class CertifiedTable(TypedDict):
    """The entry of a certificate for one file or table."""

    name: str
    bytes: int
    sha256: str
    text: NotRequired[CertifiedText]


@dataclass(frozen=True)
class ReleasePage:
    """A page or another text that is published with a release. Only its owner can read a private one."""

    path: Path
    text: str
    private: bool = False


class Target(Protocol):
    """A location that a release is written to."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        """Write the next table, first the release and then the table of sensitive values; return a source for it."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """What the user should know about what was written."""
        ...

    def certified(self) -> list[CertifiedTable]:
        """Return the entries of the certificate for the tables written."""
        ...

    def publish(self, certificate: str, pages: Sequence[ReleasePage] = ()) -> None:
        """Publish the tables, the certificate and the pages together, in place of an earlier release."""
        ...


def open_target(
    location: Location,
    text: WrittenText = PLAIN_TEXT,
    *,
    disarm: bool = False,
    labels: Collection[str] = (),
) -> Target:
    """Return the target at a location. The other arguments are for CSV.

    text: how it is written. disarm: whether formulas begin with an apostrophe. labels: the columns that show numbers as
    text.
    """
    if isinstance(location, FileLocation):
        from sfumato.tables.targets.file_target import FileTarget

        return FileTarget(location, text, disarm=disarm, labels=labels)
    if isinstance(location, DirectoryLocation):
        from sfumato.tables.targets.parquet_directory_target import DirectoryTarget

        return DirectoryTarget(location)
    if isinstance(location, ServerLocation):
        from sfumato.tables.targets.postgres_target import PostgresTarget

        return PostgresTarget(location)
    if location.kind == "duckdb":
        from sfumato.tables.targets.duckdb_target import DuckdbTarget

        return DuckdbTarget(location)
    from sfumato.tables.targets.sqlite_target import SqliteTarget

    return SqliteTarget(location)


def check_location(location: Location, *, tables: int = 1) -> Sequence[DatabaseLocation | ServerLocation]:
    """Refuse, before any work is done, a location that cannot take a release of that many tables.

    Return those of the tables that a database has already.
    """
    recover_location(location)
    if isinstance(location, FileLocation):
        check_format(location.path)
        for file in (location, location.sensitive)[:tables]:
            check_target(file.path)
    elif isinstance(location, DirectoryLocation):
        from sfumato.tables.targets.parquet_directory_target import check_directory

        check_directory(location)
    elif isinstance(location, ServerLocation):
        from sfumato.tables.targets.postgres_target import check_server

        return [table for table in (location, location.sensitive)[:tables] if check_server(table)]
    elif location.kind == "duckdb":
        from sfumato.tables.targets.duckdb_target import check_duckdb

        return check_duckdb(location, tables)
    elif location.kind == "sqlite":
        from sfumato.tables.targets.sqlite_target import check_sqlite

        return check_sqlite(location, tables)
    else:
        raise UsageError(
            f"it is not clear what kind of database {str(location.path)!r} should become. Name it .sqlite or .duckdb."
        )
    return ()


def recover_location(location: Location) -> None:
    """End what killed runs have begun to publish at a location, and remove what they had only staged there.

    The pages of a table on a server are looked for in the working directory.
    """
    if isinstance(location, ServerLocation):
        from sfumato.tables.targets.postgres_target import drop_staged

        drop_staged(location)
        recover(location.journal_base, location)
        return
    if isinstance(location, DatabaseLocation) and location.path.exists():
        if location.kind == "duckdb":
            from sfumato.tables.targets.duckdb_target import take_up_log

            take_up_log(location.path)
        else:
            from sfumato.tables.targets.sqlite_target import undo_transaction

            undo_transaction(location.path)
    recover(location.path)


def check_database(location: DatabaseLocation | ServerLocation) -> None:
    """Raise InputError if a database exists but cannot be opened."""
    if isinstance(location, ServerLocation):
        from sfumato.tables.sources.postgres_source import open_postgres

        open_postgres(location, InputError).close()
    elif location.path.exists() and location.kind == "duckdb":
        from sfumato.tables.sources.duckdb_source import open_duckdb

        with open_duckdb(location.path, InputError, read_only=True):
            pass
    elif location.path.exists():
        from sfumato.tables.sources.sqlite_source import check_sqlite_file

        check_sqlite_file(location.path)


def stage_pages(stage: Stage, pages: Sequence[ReleasePage]) -> None:
    for page in pages:
        write_staged(stage, page.path, page.text, private=page.private)


def refuse_input_as_output(data: object, target: Path | Location) -> None:
    """Refuse to overwrite the original, and to write a release into the same file or directory as the original."""
    if not isinstance(data, str | Path):
        return
    source, output = location_of(data), FileLocation(target) if isinstance(target, Path) else target
    if isinstance(source, ServerLocation) or isinstance(output, ServerLocation):
        if (
            isinstance(source, ServerLocation)
            and isinstance(output, ServerLocation)
            and _same_on_server(source, output)
        ):
            raise UsageError("the output is the input. Name another table: the original is never overwritten.")
        return
    if (
        isinstance(source, DatabaseLocation)
        and isinstance(output, DatabaseLocation)
        and _same_file(source.path, output.path)
    ):
        raise UsageError(
            "the output is in the same file as the input, so whoever gets the release would get the original too. Name "
            "another file."
        )
    if isinstance(output, DirectoryLocation) or isinstance(source, DirectoryLocation):
        output_path, source_path = output.path.absolute().resolve(), source.path.absolute().resolve()
        input_in_output = isinstance(output, DirectoryLocation) and output_path in source_path.parents
        output_in_input = (
            isinstance(source, DirectoryLocation) and source_path in output_path.parents and _is_parquet(output)
        )
        if output_path == source_path or input_in_output or output_in_input:
            raise UsageError(
                "the output and the input are in the same directory of Parquet. Name another directory: the original "
                "is never overwritten."
            )
    if _same_file(source.path, output.path):
        raise UsageError("the output is the input. Name another file: the original is never overwritten.")


def certificate_text(location: Location) -> str | None:
    """Return the certificate of a release, or None if there is none. Raise OSError if its file cannot be read."""
    if isinstance(location, FileLocation | DirectoryLocation):
        path = certificate_path(location.path) if isinstance(location, FileLocation) else location.certificate
        try:
            with open_regular(path) as file:
                return file.read().decode("utf-8")
        except FileNotFoundError:
            return None
    if location.table is None:
        return None  # opening the release reports it
    if isinstance(location, ServerLocation):
        from sfumato.tables.targets.postgres_target import certificate_on_server

        return certificate_on_server(location)
    if not location.path.exists():
        return None
    if location.kind == "duckdb":
        from sfumato.tables.targets.duckdb_target import certificate_in_duckdb

        return certificate_in_duckdb(location)
    from sfumato.tables.targets.sqlite_target import certificate_in_sqlite

    return certificate_in_sqlite(location)


def current_digests(location: Location, names: list[str]) -> dict[str, str]:
    """Return the current digests of the certified ``names`` that exist; for a directory, of all its files."""
    if isinstance(location, FileLocation):
        # A certificate names files beside it and no others, whoever wrote it.
        files = {name: os.path.join(location.path.parent, name) for name in names if os.path.basename(name) == name}
        return {name: file_digest(Path(file)) for name, file in files.items() if os.path.isfile(file)}
    if isinstance(location, DirectoryLocation):
        tables = [location.path, *([location.sensitive.path] if location.sensitive.path.is_dir() else [])]
        parts = [file for table in tables for file in parquet_files(table)]
        return {file.relative_to(location.path).as_posix(): file_digest(file) for file in parts}
    own_name, digests = location.table or "", {}
    schema = own_name.rpartition(".")[0] if location.table not in names else ""
    for name in names:
        table = replace(location, table=f"{schema}.{name}" if schema else name)
        try:
            digests[name] = table_digest(open_location(table, InputOptions()))[1]
        except InputError:
            continue  # the audit reports a table that is missing or cannot be read
    return digests


def _same_file(path: Path, other: Path) -> bool:
    try:
        return path.exists() and other.exists() and path.samefile(other)
    except (OSError, ValueError):
        return False


def _same_on_server(source: ServerLocation, output: ServerLocation) -> bool:
    from sfumato.tables.sources.postgres_source import table_identity

    identity = table_identity(source)
    return identity is not None and identity == table_identity(output)


def _is_parquet(location: Location) -> bool:
    """Return whether the output would become part of the table of the directory around it."""
    return isinstance(location, DirectoryLocation) or location.name.lower().endswith((".parquet", ".pq"))
