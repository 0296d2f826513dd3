"""The output of engines whose rows stream through this machine: a file, a directory or a table of a database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from sfumato.engines.engine import Draft, Job
from sfumato.policy import Policy
from sfumato.tables.locations import FileLocation, Location, location_of
from sfumato.tables.sources.source import Source, kind_of_file
from sfumato.tables.targets.file_writers import Batches
from sfumato.tables.targets.replacement import replaced_by
from sfumato.tables.targets.storable_columns import check_storable
from sfumato.tables.targets.target import (
    CertifiedTable,
    ReleasePage,
    check_location,
    open_target,
    refuse_input_as_output,
)


@dataclass(frozen=True)
class WritableTable:
    """A table as batches that can be made again."""

    schema: pa.Schema
    batches: Batches
    rows: int


class TargetOutput:
    """A target of ``tables``: the release, then the sensitive values if they are released separately."""

    def __init__(self, draft: Draft, target: str | Path, tables: Sequence[WritableTable]) -> None:
        self._job, self._tables = draft.job, tables
        self._location = location_of(target)
        policy = draft.job.policy
        self._target = open_target(
            self._location,
            policy.written_text(tabs=has_tabs(self._location)),
            disarm=policy.release.formulas == "disarm",
            labels=labels_of_numbers(draft),
        )

    def __enter__(self) -> Self:
        self._target.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._target.__exit__(kind, error, trace)

    @property
    def recorded(self) -> str:
        return self._location.recorded

    def write(self) -> tuple[Source, Source | None]:
        """Write the tables, and return what is there now to read."""
        written = []
        for table in self._tables:
            with self._job.progress.phase("write", table.rows):
                written.append(self._target.write(table.schema, table.batches))
        return written[0], written[1] if len(written) > 1 else None

    def certified(self) -> list[CertifiedTable]:
        return self._target.certified()

    def publish(self, certificate: str, pages: Sequence[ReleasePage] = ()) -> None:
        self._target.publish(certificate, pages)
        warnings = self._job.warnings
        warnings.extend(text for text in self._target.warnings if text not in warnings)


def labels_of_numbers(draft: Draft) -> frozenset[str]:
    """Return the columns that show numbers as text, since they show ranges of them."""
    return frozenset(domain.name for domain in draft.domains if domain.kind == "numeric")


def has_tabs(location: Location) -> bool:
    """Return whether the name of a file says that tabs separate its cells."""
    return isinstance(location, FileLocation) and kind_of_file(location.path)[0] == ".tsv"


def check_target_location(
    data: object, target: str | Path, *, tables: int, force: bool = False, trial: bool = False
) -> list[str]:
    """Refuse a location that cannot take a release of ``data`` with this number of tables, before any work is done.

    Return what the release replaces. Only with ``force`` may that be something that is no release, or, for a ``trial``,
    a release.
    """
    location = location_of(target)
    existing = check_location(location, tables=tables)
    for taken in (location, location.sensitive)[:tables]:
        refuse_input_as_output(data, taken)
    return replaced_by(location, existing, tables=tables, force=force, trial=trial)


def check_kept_columns(policy: Policy, source: Source, target: str | Path) -> None:
    """Refuse kept columns of types that the target cannot hold, before any work is done."""
    kept = [name for name in policy.kept_columns(source.names) if name not in policy.quasi_identifiers]
    check_storable(location_of(target), pa.schema({name: source.types[name] for name in kept}))


def origin_of(job: Job) -> str:
    """Return the input as the run record names it: where it is, or the kind of frame."""
    return location_of(job.data).recorded if isinstance(job.data, str | Path) else str(job.source.kind)
