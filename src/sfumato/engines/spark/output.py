"""The output of the Spark engine: a directory of Parquet files, staged beside its place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from sfumato.engines.spark.file_systems import Workspace, files_of, is_remote, location
from sfumato.engines.spark.publication import digests, publish_locally, publish_remotely
from sfumato.engines.spark.released_rows import RowsOnSpark, write_rows
from sfumato.engines.spark.session import Session
from sfumato.errors import AuditError
from sfumato.tables.targets.target import CertifiedTable, ReleasePage


class SparkOutput:
    """A directory for released rows. Rows that have been written before are copied."""

    def __init__(self, session: Session, rows: RowsOnSpark, target: str | Path) -> None:
        self._session, self._rows = session, rows
        self._target = location(target)
        self._workspace = Workspace(session, parent_of(self._target))

    def __enter__(self) -> Self:
        self._workspace.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workspace.close()

    @property
    def recorded(self) -> str:
        return self._target

    def write(self) -> str:
        """Write the rows to staged files, and return their directory."""
        staged = self._workspace.path("release")
        if self._rows.directory is None:
            write_rows(self._rows, self._session, staged)
            return staged
        files = files_of(self._session, self._target)
        files.make_private(staged)
        for entry in self._rows.entries:
            files.copy(f"{self._rows.directory}/{entry['name']}", f"{staged}/{entry['name']}")
        if digests(self._session, staged) != self._rows.entries:
            raise AuditError("the copied files are not those that were audited; nothing was written. Run again.")
        return staged

    def certified(self) -> list[CertifiedTable]:
        return self._rows.entries

    def publish(self, certificate: str, pages: Sequence[ReleasePage] = ()) -> None:
        staged = self._workspace.path("release")
        if is_remote(self._target):
            assert not pages  # refused before any work: reports are not made with Spark
            publish_remotely(
                files_of(self._session, self._target), staged, self._target, self._rows.entries, certificate
            )
        else:
            publish_locally(Path(staged), Path(self._target), certificate, pages)
        self._rows.directory = self._target


def parent_of(target: str) -> str:
    """Return the directory that a location is in."""
    return target.rpartition("/")[0] or "/"
