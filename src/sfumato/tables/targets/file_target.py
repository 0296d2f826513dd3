"""Write a release as a file, with its certificate in a file beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from sfumato.policy import InputOptions
from sfumato.tables.formulas import FormulaCells
from sfumato.tables.locations import FileLocation, certificate_path
from sfumato.tables.sources.source import Source, open_location
from sfumato.tables.targets.digests import file_digest
from sfumato.tables.targets.file_writers import Batches, check_format, write_batches
from sfumato.tables.targets.staging import Stage, write_staged
from sfumato.tables.targets.target import CertifiedTable, ReleasePage, stage_pages


class FileTarget:
    """A file with its certificate beside it, and a second file for a release of two tables.

    Several targets may share a ``stage``, which then publishes and cleans up for all of them.
    """

    def __init__(self, location: FileLocation, separator: str, *, disarm: bool, stage: Stage | None = None) -> None:
        self._location = location
        self._options = InputOptions(separator=separator, max_expansion=None, disarmed=disarm)
        self._formulas = FormulaCells(disarm=disarm)
        self._stage = stage or Stage()
        self._files: dict[str, Path] = {}

    def __enter__(self) -> Self:
        check_format(self._location.path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stage.__exit__(kind, error, trace)

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        target = (self._location.sensitive if self._files else self._location).path
        staged = self._stage.path(target)
        self._files[target.name] = staged
        write_batches(schema, batches, staged, separator=self._options.separator, formulas=self._formulas)
        return open_location(FileLocation(staged), self._options)

    @property
    def warnings(self) -> list[str]:
        return self._formulas.warnings()

    def certified(self) -> list[CertifiedTable]:
        return [
            {"name": name, "bytes": path.stat().st_size, "sha256": file_digest(path)}
            for name, path in self._files.items()
        ]

    def stage_certificate(self, certificate: str) -> None:
        """Stage the certificate beside the tables."""
        write_staged(self._stage, certificate_path(self._location.path), certificate)

    def publish(self, certificate: str, pages: Sequence[ReleasePage] = ()) -> None:
        self.stage_certificate(certificate)
        stage_pages(self._stage, pages)
        self._stage.publish()
