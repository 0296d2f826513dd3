"""A release that Spark made: audited files, the frame that reads them, and the place they get."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from sfumato._version import __version__
from sfumato.engines.spark.file_systems import Workspace, files_of, location
from sfumato.engines.spark.publication import check_directory, digests, put_in_place
from sfumato.engines.spark.session import Frame, Session
from sfumato.errors import AuditError, UsageError
from sfumato.evaluation.audit.audit import AuditReport
from sfumato.evaluation.release_losses import Losses
from sfumato.pipeline.release import Release
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.certificate import certificate
from sfumato.releases.run_record import record_run
from sfumato.tables.targets.target import Certified

ENGINE = "spark"


@dataclass
class Told:
    """What was found on the way to a release."""

    records: int
    warnings: list[str]
    chosen: str = ""
    choice: dict[str, Any] = field(default_factory=dict)
    buckets: int = 1
    fingerprints: Mapping[str, str] = field(default_factory=dict)


class SparkRelease(Release):
    """An audited release.

    ``data`` is a DataFrame of Spark, ``losses`` what it cost, ``audit`` what holds. ``write`` puts it into a directory
    with its certificate. What was not written goes with this object.
    """

    def __init__(
        self,
        session: Session,
        policy: Policy,
        path: str,
        entries: Sequence[Certified],
        examined: tuple[AuditReport, Losses],
        told: Told,
        progress: Progress,
    ) -> None:
        self._session, self._path, self._entries, self._told = session, path, list(entries), told
        self._progress = progress
        self.policy = policy
        self.audit, self.losses = examined

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._told.warnings)

    @property
    def data(self) -> Frame:
        """The released rows. In the files they are in canonical order; a frame of Spark promises none."""
        return self._session.read.parquet(self._path)

    def summary(self) -> dict[str, Any]:
        """What ``sfumato anonymize --json`` prints."""
        told, audit, losses = self._told, self.audit, self.losses
        return {
            "records": told.records,
            "released": audit.records,
            "classes": audit.classes,
            "smallest_class": audit.smallest_class,
            "suppressed": told.records - audit.records,
            **losses.values,
            "columns": losses.columns,
            "audit": audit.as_dict(),
            "method": self.policy.method.name,
            "chosen": told.chosen,
            **({"choice": told.choice} if told.choice else {}),
            "engine": ENGINE,
            "buckets": told.buckets,
            "seed": self.policy.release.seed or 0,
            "version": __version__,
            "seconds": {name: round(value, 4) for name, value in self._progress.seconds.items()},
            "warnings": told.warnings,
        }

    @property
    def sensitive(self) -> None:
        """No sensitive values are released apart."""

    def write(self, path: str | Path) -> Path:
        """Put the release into a directory of Parquet files; they are compared with those that were audited."""
        target = location(path)
        check_directory(self._session, target)
        files = files_of(self._session, target)
        with Workspace(self._session, parent_of(target)) as beside:
            staged = beside.path("release")
            files.make_private(staged)
            for entry in self._entries:
                files.copy(f"{self._path}/{entry['name']}", f"{staged}/{entry['name']}")
            if digests(self._session, staged) != self._entries:
                raise AuditError("the copied files are not those that were audited; nothing was written. Run again.")
            self.publish(beside, staged, target)
        return Path(path)

    def aggregates(self, by: str | Sequence[str] = ()) -> NoReturn:
        raise _not_here("aggregates")

    def plot(self, *_: object, **__: object) -> NoReturn:
        raise _not_here("plot")

    def report(self, path: str | Path | None = None) -> NoReturn:
        raise _not_here("report")

    def report_private(self, path: str | Path) -> NoReturn:
        raise _not_here("report_private")

    def publish(self, workspace: Workspace, staged: str, target: str) -> None:
        """Give staged files, those that were audited, their place."""
        with self._progress.phase("certify"):
            if os.path.isdir(staged):
                mask = os.umask(0)
                os.umask(mask)
                os.chmod(staged, 0o777 & ~mask)
            text = certificate(self.summary(), self.policy, self._entries)
            put_in_place(self._session, workspace, staged, target, self._entries, text)
            self._path = target
        if self._told.fingerprints:
            try:
                record_run(self._told.fingerprints, self.policy, ENGINE, target)
            except OSError:
                self._told.warnings.append(
                    "the release was written, but the run record was not (the state directory cannot be written), so "
                    "a later release of this table under another policy will go unnoticed"
                )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a release cannot be pickled, since it goes with its session; use write, or its data")

    def __repr__(self) -> str:
        return (
            f"<Release of {self.audit.records:,} records in {self.audit.classes:,} classes, "
            f"smallest {self.audit.smallest_class:,}, GCP {self.losses.gcp:.4f}, by Spark>"
        )


def _not_here(what: str) -> UsageError:
    return UsageError(f"{what} needs the release in memory or in a file. Write it, and use the written files.")


def parent_of(target: str) -> str:
    return target.rpartition("/")[0] or "/"
