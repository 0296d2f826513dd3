"""The publication of a project: where its files go, and how the project is locked once its release stands.

Release, certificate, report, codebook, policy and private page appear in one moment, by the journal of the release. A
run may be killed before or after that moment, so what it left on disk decides, not how it ended.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from sfumato.app.background_run import BackgroundRun, last_run
from sfumato.app.project import Project, checked_policy
from sfumato.releases.certificate import read_certificate, shareable_policy
from sfumato.tables.locations import FileLocation, codebook_path, release_files


@dataclass(frozen=True)
class PublishedFiles:
    """The files of a release. directory: the folder of the project. name: that of the released table."""

    directory: Path
    name: str

    @property
    def release(self) -> Path:
        return self.directory / "releases" / self.name

    @property
    def report(self) -> Path:
        return self._beside(".report.html")

    @property
    def policy(self) -> Path:
        return self._beside(".policy.toml")

    @property
    def private(self) -> Path:
        return self.directory / "private" / f"{self._stem}.private.html"

    def shareable(self) -> list[Path]:
        """Everything that may be shared and is there."""
        pages = (codebook_path(self.release), self.report, self.policy)
        paths = map(Path, release_files(FileLocation(self.release), separated=True, pages=pages))
        return [path for path in paths if path.is_file()]

    @property
    def _stem(self) -> str:
        return self.name.partition(".")[0]

    def _beside(self, suffix: str) -> Path:
        return self.release.with_name(self._stem + suffix)


def is_publishing(project: Project) -> bool:
    """Whether a release is being written, under the policy as it is now."""
    run = last_run(project, "publish")
    return run is not None and run.state == "running"


def adopt_publication(project: Project) -> None:
    """Lock the project if its release stands, however the run ended that wrote it."""
    run = last_run(project, "publish")
    if run is None or project.locked or run.state == "running":
        return
    files = PublishedFiles(project.directory, run.request["options"]["file"])
    if not _stands(project, run, files):
        return
    found = (run.result or {}).get("found", {})
    names = sorted(path.name for path in files.shareable())
    published = {"files": names, "private": files.private.name, "warnings": found.get("warnings", [])}
    project.note(None, published={**published, "run": run.number})


def _stands(project: Project, run: BackgroundRun, files: PublishedFiles) -> bool:
    """Whether the release of a run that has ended is there. What a killed run began is ended or removed first."""
    certificate = read_certificate(files.release)
    policy = checked_policy(project, tomllib.loads(run.request["policy"]))
    return certificate is not None and certificate["policy"] == shareable_policy(policy)
