"""Write a release as a file, with its certificate in a file beside it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from sfumato.policy import InputOptions, WrittenText
from sfumato.tables.decimal_commas import has_places
from sfumato.tables.formulas import FormulaCells
from sfumato.tables.locations import FileLocation, certificate_path
from sfumato.tables.sources.source import Source, is_text_file, open_location
from sfumato.tables.targets.digests import FileDigests
from sfumato.tables.targets.file_writers import Batches, check_format, write_batches
from sfumato.tables.targets.staging import Stage, write_staged
from sfumato.tables.targets.target import CertifiedTable, ReleasePage, stage_pages


class FileTarget:
    """A file with its certificate beside it, and a second file for a release of two tables.

    Several targets may share a ``stage``, which then publishes and cleans up for all of them.
    """

    def __init__(
        self,
        location: FileLocation,
        text: WrittenText,
        *,
        disarm: bool,
        labels: Collection[str],
        stage: Stage | None = None,
    ) -> None:
        self._location = location
        self._text, self._labels = text, labels
        self._formulas = FormulaCells(disarm=disarm)
        self._disarm = disarm
        self._stage = stage or Stage()
        self._files: dict[str, Path] = {}
        self._digests = FileDigests()
        self._numbers: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        check_format(self._location.path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._digests.close()
        self._stage.__exit__(kind, error, trace)

    def write(self, schema: pa.Schema, batches: Batches) -> Source:
        target = (self._location.sensitive if self._files else self._location).path
        staged = self._stage.path(target)
        self._files[target.name] = staged
        self._numbers[target.name] = self._with_commas(schema)
        write_batches(schema, batches, staged, text=self._text, formulas=self._formulas, labels=self._labels)
        self._digests.begin(staged)
        options = InputOptions(
            separator=self._text.separator,
            encoding=self._text.encoding,
            max_expansion=None,
            disarmed=self._disarm,
            comma_columns=frozenset(self._numbers[target.name]),
        )
        return open_location(FileLocation(staged), options)

    def _with_commas(self, schema: pa.Schema) -> list[str]:
        """Return the columns whose numbers have a decimal comma."""
        if self._text.decimal == ".":
            return []
        return [field.name for field in schema if field.name in self._labels or has_places(field.type)]

    @property
    def warnings(self) -> list[str]:
        return self._formulas.warnings()

    def certified(self) -> list[CertifiedTable]:
        return [self._entry(name, path) for name, path in self._files.items()]

    def _entry(self, name: str, path: Path) -> CertifiedTable:
        entry: CertifiedTable = {"name": name, "bytes": path.stat().st_size, "sha256": self._digests.of(path)}
        if is_text_file(Path(name)):
            text = self._text
            entry["text"] = {"separator": text.separator, "encoding": text.encoding, "decimal": text.decimal}
            if text.decimal == ",":
                entry["text"]["numbers"] = self._numbers[name]
        return entry

    def stage_certificate(self, certificate: str, pages: Sequence[ReleasePage] = ()) -> None:
        """Stage the certificate beside the tables, and the pages that belong to the release."""
        write_staged(self._stage, certificate_path(self._location.path), certificate)
        stage_pages(self._stage, pages)

    def publish(self, certificate: str, pages: Sequence[ReleasePage] = ()) -> None:
        self.stage_certificate(certificate, pages)
        self._stage.publish()
