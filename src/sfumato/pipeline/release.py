"""A release: the anonymized table with its audit and its losses. It exists only after the audit has passed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from sfumato._version import __version__
from sfumato.engines.engine import Engine
from sfumato.errors import AuditError
from sfumato.evaluation.aggregates import Aggregate, aggregates_of
from sfumato.evaluation.audit.anatomy_audit import audit_groups, group_sizes
from sfumato.evaluation.audit.audit import AuditReport, audit_classes, class_key, require_pass
from sfumato.evaluation.audit.audit_with_losses import examined_in_parts
from sfumato.evaluation.release_losses import Losses, measure_release
from sfumato.evaluation.workload_tasks import WorkloadTasks, measure_tasks
from sfumato.methods import AUTO
from sfumato.pictures.classes import plot_classes
from sfumato.pictures.picture import Picture
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.certificate import certificate
from sfumato.releases.run_record import record_run
from sfumato.report.private import PrivateReport, private_report
from sfumato.report.release import ReleaseReport, check_report, release_report
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Domain
from sfumato.tables.locations import FileLocation, Location, location_of
from sfumato.tables.sources.frames import to_kind
from sfumato.tables.sources.source import InputOptions, Source, open_source
from sfumato.tables.targets.target import check_place, open_target, refuse_input_as_output
from sfumato.taxonomies.taxonomy import Taxonomy


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A finished table before its audit. Never handed to a user."""

    released: Any  # as the engine holds it
    engine: Engine
    policy: Policy
    requirements: Requirements
    domains: list[Domain]
    taxonomies: Mapping[str, Taxonomy]
    records: int
    chosen: str
    source: Source
    data: object
    options: InputOptions
    fingerprints: Mapping[str, str]
    rules: str | None = None  # a digest of the rules that decided the classes, where they came from elsewhere
    facts: Mapping[str, Any] = field(default_factory=dict)  # what else the summary says
    tasks: WorkloadTasks | None = None
    warnings: list[str] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)

    @property
    def separated(self) -> bool:
        """Are the sensitive values released in a table of their own?"""
        return self.engine.sensitive_table(self.released) is not None

    def sources(self) -> tuple[Source, Source | None]:
        """The finished table, and that of sensitive values where they are released apart, to read."""
        second = self.engine.sensitive_table(self.released)
        first = open_source(self.engine.readable(self.released), InputOptions())
        return first, None if second is None else open_source(second, InputOptions())

    def examined(self, source: Source, second: Source | None) -> tuple[AuditReport, Losses]:
        """Audit and measure the table as ``source`` gives it back; a release that fails goes no further.

        ``second`` is the table of sensitive values, where they are released apart.
        """
        report, losses = self._judged(source, second)
        require_pass(report)
        if not 0 <= self.records - report.records <= most_suppressed(self.policy, self.records):
            raise AuditError(
                f"the release has {report.records:,} records and the table {self.records:,}, which leaves out more "
                "than the policy allows; it was withheld. This is a fault in Sfumato: please report it."
            )
        self.warnings.extend(text for text in report.remarks if text not in self.warnings)
        return report, losses

    def _judged(self, source: Source, second: Source | None) -> tuple[AuditReport, Losses]:
        if self.engine.limit is not None:
            memory, scratch = self.engine.limit
            with self.progress.phase("audit", self.records):
                return examined_in_parts(
                    source,
                    self.policy,
                    self.requirements,
                    self.taxonomies,
                    self.domains,
                    records=self.records,
                    memory=memory,
                    scratch=scratch,
                    progress=self.progress,
                )
        with self.progress.phase("audit", self.records):
            key = class_key(self.policy, source.names)
            persons = self.engine.persons_of(self.released)
            told = self.tasks if second is None else None
            by_row = second is None and (bool(self.requirements.attributes) or persons is not None or told is not None)
            classes = self.engine.group_count(source, key, by_row=by_row)
            if second is None:
                report = audit_classes(source, classes, self.policy, self.requirements, self.taxonomies, persons)
            else:
                report = audit_groups(source, second, self.policy, self.requirements)
            require_pass(report)  # what does not pass is not measured
            weights = [self.policy.columns[domain.name].weight for domain in self.domains]
            groups = None if second is None else group_sizes(source)
            losses = measure_release(
                classes, self.domains, weights, records=self.records, k=self.policy.k, groups=groups
            )
            if told is not None:
                nulls = self.policy.input.nulls
                served = measure_tasks(told, source, classes, self.domains, records=self.records, nulls=nulls)
                losses = replace(losses, tasks=served)
        return report, losses


class Release:
    """An audited release.

    ``data`` is the same kind of frame as came in, ``losses`` what it cost, ``audit`` what holds. ``write`` puts it into
    a file with its certificate beside.
    """

    def __init__(self, draft: Draft, audit: AuditReport, losses: Losses) -> None:
        self._draft = draft
        self._certificate: Mapping[str, Any] | None = None  # once it is written
        self.audit = audit
        self.losses = losses
        self.policy = draft.policy

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._draft.warnings)

    @classmethod
    def of(cls, draft: Draft) -> Release:
        """Audit a draft in memory."""
        return cls(draft, *draft.examined(*draft.sources()))

    @cached_property
    def data(self) -> Any:
        """The released table; the quasi-identifiers and groups where sensitive values are released apart."""
        return self._frame(self._draft.engine.table(self._draft.released))

    @cached_property
    def sensitive(self) -> Any:
        """The second table, the sensitive values of each group; none where they are in the first."""
        table = self._draft.engine.sensitive_table(self._draft.released)
        return None if table is None else self._frame(table)

    def _frame(self, table: pa.Table) -> Any:
        source = self._draft.source
        kept = (source.categories - set(self.policy.quasi_identifiers)) & set(table.column_names)
        return to_kind(table, source.kind, self._draft.data, kept)

    def write(self, path: str | Path) -> str | Path:
        """Write the release and its certificate: a file, a directory with a slash behind, a table in a database.

        What was written is audited before it gets its name.
        """
        self._certificate = publish(self._draft, path)._certificate
        place = location_of(path)
        return place.path if isinstance(place, FileLocation) else path

    def aggregates(self, by: str | Sequence[str] = ()) -> list[Aggregate]:
        """MIN, MAX, AVG and SUM of the columns of a release of statistics, also by what it shows for some columns."""
        names = (by,) if isinstance(by, str) else by
        grids = self._draft.facts.get("statistics", {})
        return aggregates_of(self._draft.sources()[0], self.policy, names, grids)

    def plot(
        self, x: str | None = None, y: str | None = None, *, title: str | None = None, theme: str = "light"
    ) -> Picture:
        """The classes on two quasi-identifiers, by default those with the most different released values."""
        source, _ = self._draft.sources()
        return plot_classes(source, self.policy, self._draft.taxonomies, x, y, title=title, theme=theme)

    def report(self, path: str | Path | None = None) -> ReleaseReport:
        """One offline page that says what was released and what it cost; safe to share. Written where a path is given.

        After ``write`` it names the files and their hashes too.
        """
        if path is not None:
            check_report(Path(path))
        draft, certified = self._draft, self._certificate
        with draft.progress.phase("report"):
            report = release_report(
                *draft.sources(),
                self.policy,
                draft.taxonomies,
                self.summary() if certified is None else certified,
                remarks=self.audit.remarks,
                where="finished table" if certified is None else "released file",
            )
            if path is not None:
                report.write(path)
        return report

    def report_private(self, path: str | Path) -> PrivateReport:
        """A page that compares the release with the counts of the original. Not to be shared."""
        check_report(Path(path))
        draft = self._draft
        with draft.progress.phase("report"):
            report = private_report(
                draft.source, draft.sources()[0], self.policy, draft.options, draft.taxonomies, self.warnings
            )
            report.write(path)
        return report

    def summary(self) -> dict[str, Any]:
        """What ``sfumato anonymize --json`` prints."""
        return summary_of(self._draft, self.audit, self.losses)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a release cannot be pickled, since the original would go with it; use write, or pickle its data"
        )

    def __repr__(self) -> str:
        return (
            f"<Release of {self.audit.records:,} records in {self.audit.classes:,} classes, "
            f"smallest {self.audit.smallest_class:,}, GCP {self.losses.gcp:.4f}>"
        )


def publish(draft: Draft, target: str | Path) -> Release:
    """Write a draft: stage, audit what was written, certify, and give it its name. The certificate comes last."""
    place = location_of(target)
    check_release_place(draft.data, place, separated=draft.separated)
    with open_target(place, separator=draft.options.separator) as sink:
        source = draft.engine.write(draft.released, sink)
        second = draft.engine.write_sensitive(draft.released, sink) if draft.separated else None
        release = Release(draft, *draft.examined(source, second))
        with draft.progress.phase("certify"):
            text = certificate(release.summary(), draft.policy, sink.certified())
            sink.publish(text)
    release._certificate = json.loads(text)
    if draft.fingerprints:
        origin = location_of(draft.data).recorded if isinstance(draft.data, str | Path) else draft.source.kind
        try:
            record_run(draft.fingerprints, draft.policy, origin, place.recorded, rules=draft.rules)
        except OSError:
            draft.warnings.append(
                "the release was written, but the run record was not (the state directory cannot be written), so a "
                "later release of this table under another policy will go unnoticed"
            )
    return release


def check_release_place(data: object, place: Location, *, separated: bool) -> None:
    """Refuse what can be seen to be no place for a release of ``data`` before any work is done."""
    check_place(place, tables=2 if separated else 1)
    for one in (place, place.sensitive) if separated else (place,):
        refuse_input_as_output(data, one)


def most_suppressed(policy: Policy, records: int) -> int:
    """How many records may be left out."""
    return int(policy.release.max_suppressed_fraction * records * (1 + 1e-12))  # 0.07 * 100 is less than 7


def summary_of(draft: Draft, audit: AuditReport, losses: Losses) -> dict[str, Any]:
    choice = draft.progress.told.get("choice", {}) if draft.chosen == AUTO else {}
    return {
        "records": draft.records,
        "released": audit.records,
        "classes": audit.classes,
        "smallest_class": audit.smallest_class,
        "suppressed": draft.records - audit.records,
        **draft.facts,
        **losses.values,
        "columns": losses.columns,
        **({"workload": [task.as_dict() for task in losses.tasks]} if losses.tasks else {}),
        "audit": audit.as_dict(),
        "method": draft.policy.method.name,
        "chosen": choice.get("start", draft.chosen),
        **({"choice": choice} if choice else {}),
        "engine": draft.engine.name,
        **_kept_to(draft),
        "seed": draft.policy.release.seed if draft.separated else draft.policy.release.seed or 0,
        "version": __version__,
        "seconds": {name: round(value, 4) for name, value in draft.progress.seconds.items()},
        "warnings": draft.warnings,
    }


def _kept_to(draft: Draft) -> dict[str, Any]:
    """The memory limit that was kept to, and what was read and written on the way, where there is one."""
    if draft.engine.limit is None:
        return {}
    memory, scratch = draft.engine.limit
    divided = draft.progress.told.get("divided")
    return {
        **({} if divided is None else {"divided": divided}),
        "memory": memory,
        "scratch": {"bytes_read": scratch.tally.read, "bytes_written": scratch.tally.written},
    }
