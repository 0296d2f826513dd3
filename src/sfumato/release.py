"""A release: the anonymized table with its audit and its losses. It exists only after the audit has passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from sfumato._version import __version__
from sfumato.engines.engine import Engine
from sfumato.errors import AuditError, UsageError
from sfumato.evaluation.audit import AuditReport, audit_classes, class_key, require_pass
from sfumato.evaluation.measure import Losses, measure_release
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.certificate import certificate, certificate_path
from sfumato.releases.run_record import record_run
from sfumato.requirements import Requirements
from sfumato.tables.domains import Domain
from sfumato.tables.frames import to_kind
from sfumato.tables.source import InputOptions, Source, open_source
from sfumato.tables.staging import Stage, cannot_write
from sfumato.tables.write import check_format


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A finished table before its audit. Never handed to a user."""

    released: Any  # as the engine holds it
    engine: Engine
    policy: Policy
    requirements: Requirements
    domains: list[Domain]
    records: int
    chosen: str
    source: Source
    data: object
    options: InputOptions
    fingerprints: Mapping[str, str]
    warnings: list[str] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)

    def examined(self, source: Source) -> tuple[AuditReport, Losses]:
        """Audit and measure the table as ``source`` gives it back; a release that fails goes no further."""
        with self.progress.phase("audit", self.records):
            key = class_key(self.policy, source.names)
            classes = self.engine.group_count(source, key, by_row=bool(self.requirements.attributes))
            report = audit_classes(source, classes, self.policy, self.requirements)
            require_pass(report)
            if report.records != self.records:
                raise AuditError(
                    f"the release has {report.records:,} records and the table {self.records:,}; it was withheld. "
                    "This is a fault in Sfumato: please report it."
                )
            weights = [self.policy.columns[domain.name].weight for domain in self.domains]
            losses = measure_release(classes, self.domains, weights, records=self.records, k=self.policy.k)
        return report, losses


class Release:
    """An audited release.

    ``data`` is the same kind of frame as came in, ``losses`` what it cost, ``audit`` what holds. ``write`` puts it into
    a file with its certificate beside.
    """

    def __init__(self, draft: Draft, audit: AuditReport, losses: Losses) -> None:
        self._draft = draft
        self.audit = audit
        self.losses = losses
        self.policy = draft.policy

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._draft.warnings)

    @classmethod
    def of(cls, draft: Draft) -> Release:
        """Audit a draft in memory."""
        return cls(draft, *draft.examined(open_source(draft.engine.table(draft.released), InputOptions())))

    @cached_property
    def data(self) -> Any:
        """The released table."""
        source = self._draft.source
        kept = source.categories - set(self.policy.quasi_identifiers)
        return to_kind(self._draft.engine.table(self._draft.released), source.kind, self._draft.data, kept)

    def write(self, path: str | Path) -> Path:
        """Write the release and its certificate; the finished file is audited before it gets its name."""
        publish(self._draft, Path(path))
        return Path(path)

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


def publish(draft: Draft, target: Path) -> Release:
    """Write a draft: stage, audit the finished file, certify, rename. The certificate comes last."""
    check_format(target)
    refuse_input_as_output(draft.data, target)
    with Stage() as stage:
        staged = stage.path(target)
        draft.engine.write(draft.released, staged, separator=draft.options.separator)
        options = InputOptions(separator=draft.options.separator)
        release = Release(draft, *draft.examined(open_source(staged, options)))
        with draft.progress.phase("certify"):
            text = certificate(release.summary(), draft.policy, {target.name: staged})
            try:
                stage.path(certificate_path(target)).write_text(text, "utf-8")
            except OSError as error:
                raise cannot_write(certificate_path(target), error) from None
            stage.publish()
    if draft.fingerprints:
        source = str(Path(draft.data).absolute()) if isinstance(draft.data, str | Path) else draft.source.kind
        try:
            record_run(draft.fingerprints, draft.policy, source, target)
        except OSError:
            draft.warnings.append(
                "the release was written, but the run record was not (the state directory cannot be written), so a "
                "later release of this table under another policy will go unnoticed"
            )
    return release


def refuse_input_as_output(data: object, target: Path) -> None:
    if isinstance(data, str | Path) and target.exists() and Path(data).exists() and target.samefile(data):
        raise UsageError("the output is the input. Name another file: the original is never overwritten.")


def summary_of(draft: Draft, audit: AuditReport, losses: Losses) -> dict[str, Any]:
    return {
        "records": draft.records,
        "released": audit.records,
        "classes": audit.classes,
        "smallest_class": audit.smallest_class,
        "suppressed": draft.records - audit.records,
        **losses.values,
        "columns": losses.columns,
        "audit": audit.as_dict(),
        "method": draft.policy.method.name,
        "chosen": draft.chosen,
        "engine": draft.engine.name,
        "seed": draft.policy.release.seed,
        "version": __version__,
        "seconds": {name: round(value, 4) for name, value in draft.progress.seconds.items()},
        "warnings": draft.warnings,
    }
