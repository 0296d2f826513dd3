"""Where a release goes: a file, a directory of Parquet, a table in a database. Each appears whole or not at all.

A target is used inside ``with``: tables are written to a place that nobody looks at, read back and audited there, and
published with their certificate in one step. What was not published is removed on the way out; what a killed run has
left, the next one removes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypedDict

import pyarrow as pa

from sfumato.errors import InputError, UsageError
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
from sfumato.tables.sources.source import InputOptions, Source, open_location
from sfumato.tables.targets.digests import file_digest, table_digest
from sfumato.tables.targets.file_writers import Batches, check_format, write_batches
from sfumato.tables.targets.staging import Stage, cannot_write, check_target


class Certified(TypedDict):
    """What a certificate knows of one file or table."""

    name: str
    bytes: int
    sha256: str


class Target(Protocol):
    """One place for a release."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        """Write the next table, the release first and then that of sensitive values; what is there now, to read."""
        ...

    def certified(self) -> list[Certified]:
        """What was written, as the certificate has it."""
        ...

    def publish(self, certificate: str) -> None:
        """Give the tables their names, in place of what is there, together with the certificate."""
        ...


def open_target(place: Location, *, separator: str) -> Target:
    """A place to write to; ``separator`` is for CSV."""
    if isinstance(place, FileLocation):
        return FileTarget(place, separator)
    if isinstance(place, DirectoryLocation):
        from sfumato.tables.targets.parquet_directory_target import DirectoryTarget

        return DirectoryTarget(place)
    if isinstance(place, ServerLocation):
        from sfumato.tables.targets.postgres_target import PostgresTarget

        return PostgresTarget(place)
    if place.kind == "duckdb":
        from sfumato.tables.targets.duckdb_target import DuckdbTarget

        return DuckdbTarget(place)
    from sfumato.tables.targets.sqlite_target import SqliteTarget

    return SqliteTarget(place)


def check_location(place: Location, *, tables: int = 1) -> None:
    """Refuse what can be seen to be no place for a release of so many tables before any work is done."""
    if isinstance(place, FileLocation):
        check_format(place.path)
        for file in (place, place.sensitive)[:tables]:
            check_target(file.path)
    elif isinstance(place, DirectoryLocation):
        from sfumato.tables.targets.parquet_directory_target import check_directory

        check_directory(place)
    elif isinstance(place, ServerLocation):
        from sfumato.tables.targets.postgres_target import check_server

        for table in (place, place.sensitive)[:tables]:
            check_server(table)
    elif place.kind == "duckdb":
        from sfumato.tables.targets.duckdb_target import check_duckdb

        check_duckdb(place, tables)
    elif place.kind == "sqlite":
        from sfumato.tables.targets.sqlite_target import check_sqlite

        check_sqlite(place, tables)
    else:
        raise UsageError(
            f"nothing tells what kind of database {str(place.path)!r} is to be. Name it .sqlite or .duckdb."
        )


def refuse_input_as_output(data: object, target: Path | Location) -> None:
    """The original is never overwritten, and never handed on with its release."""
    if not isinstance(data, str | Path):
        return
    source, place = location_of(data), FileLocation(target) if isinstance(target, Path) else target
    if isinstance(source, ServerLocation) or isinstance(place, ServerLocation):
        if isinstance(source, ServerLocation) and isinstance(place, ServerLocation) and _same_on_server(source, place):
            raise UsageError("the output is the input. Name another table: the original is never overwritten.")
        return
    if (
        isinstance(source, DatabaseLocation)
        and isinstance(place, DatabaseLocation)
        and _same_file(source.path, place.path)
    ):
        raise UsageError(
            "the output is in the same file as the input, so that whoever gets the release gets the original too. Name "
            "another file."
        )
    if isinstance(place, DirectoryLocation) or isinstance(source, DirectoryLocation):
        ours, theirs = place.path.absolute().resolve(), source.path.absolute().resolve()
        within = isinstance(place, DirectoryLocation) and ours in theirs.parents
        around = isinstance(source, DirectoryLocation) and theirs in ours.parents and _is_table(place)
        if ours == theirs or within or around:
            raise UsageError(
                "the output and the input are in the same directory of Parquet. Name another directory: the original "
                "is never overwritten."
            )
    if _same_file(source.path, place.path):
        raise UsageError("the output is the input. Name another file: the original is never overwritten.")


def certificate_text(place: Location) -> str | None:
    """The certificate of a release, none where there is none. Raises OSError where it cannot be read."""
    if isinstance(place, FileLocation | DirectoryLocation):
        path = certificate_path(place.path) if isinstance(place, FileLocation) else place.certificate
        try:
            return path.read_text("utf-8")
        except FileNotFoundError:
            return None
    if place.table is None:
        return None  # told when it is opened
    if isinstance(place, ServerLocation):
        from sfumato.tables.targets.postgres_target import certificate_on_server

        return certificate_on_server(place)
    if not place.path.exists():
        return None
    if place.kind == "duckdb":
        from sfumato.tables.targets.duckdb_target import certificate_in_duckdb

        return certificate_in_duckdb(place)
    from sfumato.tables.targets.sqlite_target import certificate_in_sqlite

    return certificate_in_sqlite(place)


def digests_now(place: Location, names: list[str]) -> dict[str, str]:
    """The digests of what is there, of the certified ``names`` and, in a directory, of all it has."""
    if isinstance(place, FileLocation):
        files = {name: place.path.with_name(name) for name in names}
        return {name: file_digest(file) for name, file in files.items() if file.exists()}
    if isinstance(place, DirectoryLocation):
        tables = [place.path, *([place.sensitive.path] if place.sensitive.path.is_dir() else [])]
        found = [file for table in tables for file in parquet_files(table)]
        return {file.relative_to(place.path).as_posix(): file_digest(file) for file in found}
    own, digests = place.table or "", {}
    schema = own.rpartition(".")[0] if place.table not in names else ""
    for name in names:
        table = replace(place, table=f"{schema}.{name}" if schema else name)
        try:
            digests[name] = table_digest(open_location(table, InputOptions()))[1]
        except InputError:
            continue  # that it is not there, or cannot be read, is the verdict
    return digests


class FileTarget:
    """A file, its certificate beside it, and a second file where there are two tables."""

    def __init__(self, place: FileLocation, separator: str) -> None:
        self._place = place
        self._separator = separator
        self._stage = Stage()
        self._files: dict[str, Path] = {}

    def __enter__(self) -> Self:
        check_format(self._place.path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stage.__exit__(kind, error, trace)

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        target = (self._place.sensitive if self._files else self._place).path
        staged = self._stage.path(target)
        self._files[target.name] = staged
        write_batches(schema, batches, staged, separator=self._separator)
        return open_location(FileLocation(staged), InputOptions(separator=self._separator))

    def certified(self) -> list[Certified]:
        return [
            {"name": name, "bytes": path.stat().st_size, "sha256": file_digest(path)}
            for name, path in self._files.items()
        ]

    def publish(self, certificate: str) -> None:
        target = certificate_path(self._place.path)
        try:
            self._stage.path(target).write_text(certificate, "utf-8")
        except OSError as error:
            raise cannot_write(target, error) from None
        self._stage.publish()


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.exists() and other.exists() and one.samefile(other)
    except (OSError, ValueError):
        return False


def _same_on_server(source: ServerLocation, place: ServerLocation) -> bool:
    from sfumato.tables.sources.postgres_source import table_identity

    found = table_identity(source)
    return found is not None and found == table_identity(place)


def _is_table(place: Location) -> bool:
    """Whether what is written there would become a part of the directory's table."""
    return isinstance(place, DirectoryLocation) or place.name.lower().endswith((".parquet", ".pq"))
