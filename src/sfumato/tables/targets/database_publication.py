"""Publish a release in a database, with its certificate in another table of the same schema.

On a server, the release waits for its audit in a table under another name. For a database in a file, it waits in a
private database of its own (``StagedDatabase``), since others may read an existing file and the log that the database
writes beside it. A new database is this file, renamed. An existing one gets a copy of the tables in one transaction;
the copy is compared with what was audited before the transaction is committed.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import NamedTuple, Self

from sfumato.errors import AuditError, OutputError
from sfumato.tables.databases import Relation, quoted
from sfumato.tables.locations import DatabaseLocation
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.digests import table_digest
from sfumato.tables.targets.journal import Transaction, text_digest
from sfumato.tables.targets.staging import Stage, cannot_write, scratch_directory
from sfumato.tables.targets.target import CertifiedTable, ReleasePage, stage_pages


class WrittenTable(NamedTuple):
    """A table of the release, and the source that reads it back before it is published."""

    relation: Relation
    source: Source


class StagedDatabase:
    """A private database beside the one that a release goes to."""

    def __init__(self, location: DatabaseLocation) -> None:
        self._location = location
        self._stage, self._scratch = Stage(), ExitStack()

    def __enter__(self) -> Self:
        self._locked = self._stage.path(self._location.path)
        try:
            self.path = self._scratch.enter_context(scratch_directory(self._locked)) / self._location.path.name
        except OSError as error:
            self._stage.__exit__(None, None, None)
            raise cannot_write(self._location.path, error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scratch.close()
        self._stage.__exit__(kind, error, trace)

    def publish_file(self, pages: Sequence[ReleasePage]) -> None:
        """Make the staged database, which is closed, the database that the release goes to."""
        self._stage.fill(self._locked, self.path)
        stage_pages(self._stage, pages)
        self._stage.publish(self._refuse_existing)

    def publish_tables(self, certificate: str, pages: Sequence[ReleasePage], commit: Callable[[], None]) -> None:
        """Publish what ``commit`` copies into an existing database, together with the pages."""
        self._stage.withdraw(self._locked)
        stage_pages(self._stage, pages)
        self._stage.publish_with(
            Transaction(self._location, text_digest(certificate)), commit, self._location.path.absolute()
        )

    def _refuse_existing(self) -> None:
        if self._location.path.exists():
            raise OutputError(f"{self._location.path} was made by another program in the meantime. Run again.")


def certified_tables(tables: Sequence[WrittenTable]) -> list[CertifiedTable]:
    """Return the entries of the certificate for the tables written."""
    entries: list[CertifiedTable] = []
    for relation, source in tables:
        size, digest = table_digest(source)
        entries.append({"name": relation.name, "bytes": size, "sha256": digest})
    return entries


def check_copy(tables: Sequence[WrittenTable], certified: Sequence[CertifiedTable]) -> None:
    """Refuse copies that are not the tables that were audited, before they are committed."""
    if certified_tables(tables) != list(certified):
        raise AuditError("the copied tables are not those that were audited; nothing was written. Run again.")


def rename_staged(execute: Callable[..., object], staged: Relation, relation: Relation) -> None:
    """Rename a staged table in place of an earlier one, inside the caller's transaction."""
    execute(f"DROP TABLE IF EXISTS {relation.sql}")
    execute(f"ALTER TABLE {staged.sql} RENAME TO {quoted(relation.name)}")


def store_certificate(
    execute: Callable[..., object],
    relations: Sequence[Relation],
    certificate: str,
    *,
    certificates: str,
    columns: str,
    parameter: str,
) -> None:
    """Store the certificate of some tables, inside the caller's transaction.

    certificates: the SQL name of the table of certificates; columns: its definition. parameter: the placeholder for a
    value in a statement.
    """
    execute(f"CREATE TABLE IF NOT EXISTS {certificates} ({columns})")
    for relation in relations:
        execute(f"DELETE FROM {certificates} WHERE table_name = {parameter}", [relation.name])  # noqa: S608
    written_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    values = ", ".join([parameter] * 3)
    execute(f"INSERT INTO {certificates} VALUES ({values})", [relations[0].name, certificate, written_at])  # noqa: S608
