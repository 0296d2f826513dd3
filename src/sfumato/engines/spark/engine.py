"""The Spark engine: the verbs of a run as jobs of a Spark session."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.engines.engine import Draft, Job
from sfumato.engines.spark.audit import audit_and_measure_by_spark
from sfumato.engines.spark.bucket_counts import whole_table
from sfumato.engines.spark.buckets import sampled_bits
from sfumato.engines.spark.classes import ClassesOnSpark, SparkOptions, form_classes
from sfumato.engines.spark.coded_table import (
    ProfileOnSpark,
    ScanOnSpark,
    TableOnSpark,
    encode_with_spark,
    profile_with_spark,
    scan_with_spark,
)
from sfumato.engines.spark.column_profiles import content_of, used_codes
from sfumato.engines.spark.file_systems import Workspace, is_remote, location, temporary_for
from sfumato.engines.spark.linkability import linkable_by_spark
from sfumato.engines.spark.output import SparkOutput
from sfumato.engines.spark.publication import check_directory
from sfumato.engines.spark.record_sample import sample_by_spark
from sfumato.engines.spark.released_rows import RowsOnSpark, write_rows
from sfumato.engines.spark.session import Frame, Session
from sfumato.errors import UsageError
from sfumato.evaluation.linkability.identifiers import IdentifierRules
from sfumato.evaluation.linkability.refusal import refuse_linkable
from sfumato.evaluation.public_figures import Examination
from sfumato.policy import InputOptions
from sfumato.releases.fingerprints import Fingerprints, fingerprints
from sfumato.releases.ordered_fingerprints import content_fingerprints
from sfumato.releases.run_record import record_secret
from sfumato.tables.sources.source import Source, open_source


class SparkEngine:
    """Tables larger than a machine. What jobs hand to each other lies in a private directory that all nodes reach."""

    name = "spark"

    def __init__(self, session: Session, options: SparkOptions, target: str | Path | None = None) -> None:
        self._session, self._options = session, options
        self._target = None if target is None else location(target)
        self._workspaces: list[Workspace] = []
        self._buckets = 0
        self._close = weakref.finalize(self, _close_all, self._workspaces)

    def check_target(
        self, data: object, target: str | Path, *, tables: int, force: bool, trial: bool = False
    ) -> list[str]:
        place = location(target)
        if isinstance(data, str | Path) and location(data) == place:
            raise UsageError("the output is the input. Name another directory: the original is never overwritten.")
        return check_directory(self._session, place, force=force, trial=trial)

    def read(self, job: Job) -> ScanOnSpark:
        self._scratch = self._workspace(temporary_for(self._session, self._target))
        return scan_with_spark(job, self._session, self._scratch.path("input"))

    def profile(self, scan: ScanOnSpark) -> ProfileOnSpark:
        return profile_with_spark(scan)

    def encode(self, scan: ScanOnSpark, profile: ProfileOnSpark) -> TableOnSpark:
        records = profile.counts[scan.columns.quasi[0]].records
        return encode_with_spark(scan, profile, sampled_bits(records, self._options.bucket_records))

    def check(self, table: TableOnSpark) -> None:
        scan, counts = table.scan, table.profile.counts
        quasi = {name: scan.numbers[name] for name in scan.columns.quasi}
        with table.job.progress.phase("check"):
            most = {name: int(counts[name].counts.max()) for name in quasi}
            rules = IdentifierRules.of(table.job.source, table.job.policy)
            refuse_linkable(linkable_by_spark(table.profile.tally, scan.linkable, quasi, most, table.count, rules))
            table.job.requirements.check_feasible(whole_table(table.count, table.sensitive))

    def fingerprints(self, table: TableOnSpark) -> Fingerprints:
        profile = table.profile
        used = [used_codes(encoder, profile.counts[encoder.domain.name]) for encoder in profile.encoders]
        sample = partial(sample_by_spark, self._session, table)
        return fingerprints(record_secret(), table.domains, used, sample)

    def ordered_fingerprints(self, table: TableOnSpark) -> dict[str, str]:
        """The order of the rows did not matter to this engine."""
        counts = table.profile.counts
        contents = {name: content_of(counts[name]) for name in table.scan.columns.quasi}
        return content_fingerprints(record_secret(), contents)

    def form_classes(self, table: TableOnSpark) -> ClassesOnSpark:
        classes = form_classes(table, self._session, self._scratch, self._options)
        self._buckets = classes.buckets
        return classes

    def recode(self, table: TableOnSpark, classes: ClassesOnSpark) -> RowsOnSpark:
        """The tasks that form the classes also recode them, so the rows are ready to be written."""
        return RowsOnSpark(table, classes)

    def keep(self, rows: RowsOnSpark) -> str:
        directory = self._workspace(temporary_for(self._session, None)).path("release")
        write_rows(rows, self._session, directory)
        self._closed(self._scratch)
        return directory

    def output(self, draft: Draft, target: str | Path) -> SparkOutput:
        return SparkOutput(self._session, draft.rows, target)

    def audit(self, draft: Draft, written: str) -> Examination:
        """Audit the files as a Spark job. Copies of audited files have been compared with those instead."""
        rows: RowsOnSpark = draft.rows
        if rows.examined is None:
            self._closed(self._scratch)
            job = draft.job
            with job.progress.phase("audit"):
                rows.examined = audit_and_measure_by_spark(
                    self._session,
                    self._session.read.parquet(written),
                    job.policy,
                    job.requirements,
                    job.taxonomies,
                    draft.domains,
                    records=draft.records,
                )
        return rows.examined

    def sources(self, rows: RowsOnSpark) -> tuple[Source, None]:
        if rows.directory is None or is_remote(rows.directory):
            raise UsageError("the files of the release are not on this machine. Read them with Spark.")
        return open_source(Path(rows.directory), InputOptions()), None

    def frame(self, draft: Draft) -> Frame:
        """Return a frame of the files. They are in canonical order; a frame of Spark promises none."""
        return self._session.read.parquet(draft.rows.directory)

    def sensitive_frame(self, draft: Draft) -> None:
        """Sensitive values stay with their records."""

    def facts(self) -> Mapping[str, Any]:
        return {"buckets": self._buckets}

    def origin(self, job: Job) -> str:
        return self.name

    def close(self) -> None:
        self._close()

    def _workspace(self, parent: str) -> Workspace:
        workspace = Workspace(self._session, parent)
        workspace.open()
        self._workspaces.append(workspace)
        return workspace

    def _closed(self, workspace: Workspace) -> None:
        if workspace in self._workspaces:
            self._workspaces.remove(workspace)
            workspace.close()


def _close_all(workspaces: list[Workspace]) -> None:
    while workspaces:
        workspaces.pop().close()
