"""Publish a release in a database: staged tables get their names, and the certificate is stored beside them.

For a database in a file, a locked file beside it belongs to the run that staged a table. A killed run loses its lock,
and the next run drops its tables.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sfumato.tables.databases import STAGE, Relation, quoted
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.digests import table_digest
from sfumato.tables.targets.staging import MARK, Stage
from sfumato.tables.targets.target import CertifiedTable


class StagedTable(NamedTuple):
    """A table of the release, its name until it is published, and the source that reads it back."""

    relation: Relation
    staged: Relation
    source: Source


def certified_tables(tables: Sequence[StagedTable]) -> list[CertifiedTable]:
    """Return the entries of the certificate for staged tables."""
    entries: list[CertifiedTable] = []
    for table in tables:
        size, digest = table_digest(table.source)
        entries.append({"name": table.relation.name, "bytes": size, "sha256": digest})
    return entries


def put_in_place(
    execute: Callable[..., object],
    tables: Sequence[StagedTable],
    certificate: str,
    *,
    certificates: str,
    columns: str,
    parameter: str,
) -> None:
    """Rename staged tables in place of earlier ones, and store the certificate, inside the caller's transaction.

    certificates: the SQL name of the table of certificates; columns: its definition. parameter: the placeholder for a
    value in a statement.
    """
    for relation, staged, _ in tables:
        execute(f"DROP TABLE IF EXISTS {relation.sql}")
        execute(f"ALTER TABLE {staged.sql} RENAME TO {quoted(relation.name)}")
    execute(f"CREATE TABLE IF NOT EXISTS {certificates} ({columns})")
    for relation, *_ in tables:
        execute(f"DELETE FROM {certificates} WHERE table_name = {parameter}", [relation.name])  # noqa: S608
    written_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    values = ", ".join([parameter] * 3)
    execute(f"INSERT INTO {certificates} VALUES ({values})", [tables[0].relation.name, certificate, written_at])  # noqa: S608


def owner_token(stage: Stage, path: Path) -> str:
    """Return the name of a new file beside the database, which is locked while this run is alive."""
    return stage.path(path).name.removeprefix(".").partition(MARK)[0]


def drop_abandoned(relations: Sequence[Relation], path: Path, execute: Callable[[str], object]) -> None:
    """Drop the tables that killed runs have staged in the database file ``path``."""
    for relation in relations:
        if relation.name.startswith(STAGE) and not relation.view:
            token = relation.name.removeprefix(STAGE).partition("_")[0]
            # The files of runs that have ended were removed when this run created its own.
            if not path.with_name(f".{token}{MARK}{path.name}").exists():
                execute(f"DROP TABLE IF EXISTS {relation.sql}")


def remove_database(path: Path, *companions: str) -> None:
    """Remove a database file, and the files beside it with these suffixes."""
    for file in (path, *(path.with_name(path.name + suffix) for suffix in companions)):
        with suppress(OSError):
            file.unlink(missing_ok=True)
