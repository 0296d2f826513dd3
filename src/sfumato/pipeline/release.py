"""A release: the anonymized table with its audit and its losses. It exists only after the audit has passed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import tomli_w

from sfumato._version import __version__
from sfumato.engines.engine import Draft
from sfumato.errors import SfumatoWarning
from sfumato.evaluation.public_figures import Examination, public_figures
from sfumato.methods import method_named
from sfumato.pipeline.capabilities import AGGREGATES, CODEBOOK, PLOT, REPORT, REPORT_PRIVATE, SPARK
from sfumato.releases.certificate import shareable_policy
from sfumato.tables.locations import FileLocation, codebook_path, location_of
from sfumato.tables.targets.target import ReleasePage

if TYPE_CHECKING:
    from sfumato.evaluation.aggregates import Aggregate
    from sfumato.pictures.picture import Picture
    from sfumato.report.codebook import Codebook
    from sfumato.report.private import PrivateReport
    from sfumato.report.release import ReleaseReport


class Release:
    """An audited release.

    ``data`` is the same kind of frame as came in, ``losses`` what it cost, ``audit`` what holds. ``write`` puts it into
    a file, a directory or a database, with its certificate. ``trial`` says whether it is one that is not to be
    published.
    """

    def __init__(self, draft: Draft, examination: Examination) -> None:
        self._draft = draft
        self._examination = examination
        self.certificate: Mapping[str, Any] | None = None
        """The certificate, once the release is written."""
        self.replaced: tuple[str, ...] = ()
        """What the release replaced when it was written."""
        self.audit = examination.audit
        self.losses = examination.losses
        self.policy = draft.job.policy
        self.trial = draft.trial

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._draft.job.warnings)

    @cached_property
    def data(self) -> Any:
        """The released table. If sensitive values are released apart, it has the quasi-identifiers and the groups."""
        return self._draft.engine.frame(self._draft)

    @cached_property
    def sensitive(self) -> Any:
        """The second table, with the sensitive values of each group; None if they are in the first."""
        return self._draft.engine.sensitive_frame(self._draft)

    def write(self, path: str | Path, *, force: bool = False, codebook: bool | None = None) -> str | Path:
        """Write the release and its certificate.

        The path names a file, a directory (with a slash at its end), or a table of a database. What was written is
        audited before it gets its name. An earlier release is replaced, with a warning. Anything else that exists is
        replaced only with ``force``. ``codebook`` says whether its codebook appears with it; by default, the policy
        does.
        """
        from sfumato.pipeline.run import published  # the story of a release ends with this class, so it is below it

        known = len(self.warnings)
        written = published(self._draft, path, force=force, codebook=codebook)
        self.certificate, self.replaced = written.certificate, written.replaced
        for text in (*(f"replaced {replaced}" for replaced in self.replaced), *self.warnings[known:]):
            warnings.warn(text, SfumatoWarning, stacklevel=2)
        location = location_of(path)
        return location.path if isinstance(location, FileLocation) else path

    def aggregates(self, by: str | Sequence[str] = ()) -> list[Aggregate]:
        """Return MIN, MAX, AVG and SUM of a release of statistics, also by what it shows for some columns."""
        from sfumato.evaluation.aggregates import aggregates_of

        AGGREGATES.refuse_on(self._draft.engine.name)
        source, _ = self._draft.engine.sources(self._draft.rows)
        grids = self._draft.rows.outcome.facts.get("statistics", {})
        return aggregates_of(source, self.policy, (by,) if isinstance(by, str) else by, grids)

    def plot(
        self, x: str | None = None, y: str | None = None, *, title: str | None = None, theme: str = "light"
    ) -> Picture:
        """Draw the classes on two quasi-identifiers, by default those with the most distinct released values."""
        from sfumato.pictures.classes import plot_classes

        PLOT.refuse_on(self._draft.engine.name)
        source, _ = self._draft.engine.sources(self._draft.rows)
        return plot_classes(source, self.policy, self._draft.job.taxonomies, x, y, title=title, theme=theme)

    def report(self, path: str | Path | None = None, *, force: bool = False) -> ReleaseReport:
        """Make one offline page that says what was released and what it cost, and write it if a path is given.

        It may go wherever the release may go. After ``write`` it also names the files and their hashes. With ``force``
        it replaces any file. A trial has none.
        """
        from sfumato.report.release import check_report, refuse_trial, release_report

        refuse_trial(self.trial)
        REPORT.refuse_on(self._draft.engine.name)
        if path is not None:
            check_report(Path(path), force=force)
        draft, certificate = self._draft, self.certificate
        with draft.job.progress.phase("report"):
            report = release_report(
                *draft.engine.sources(draft.rows),
                self.policy,
                draft.job.taxonomies,
                self.public_summary() if certificate is None else certificate,
                remarks=self.audit.remarks,
                where="finished table" if certificate is None else "released file",
                persons_counted=self.policy.privacy.person is not None,
            )
            if path is not None:
                report.write(path, force=force)
        return report

    def codebook(self) -> Codebook:
        """Make the codebook: what every column and label means, with counts from the release.

        It may go wherever the release may go. After ``write`` it also says how the files are written.
        """
        from sfumato.report.codebook import codebook_of

        CODEBOOK.refuse_on(self._draft.engine.name)
        draft, files = self._draft, () if self.certificate is None else self.certificate["files"]
        with draft.job.progress.phase("report"):
            return codebook_of(*draft.engine.sources(draft.rows), self.policy, draft.job.taxonomies, files)

    def report_private(self, path: str | Path, *, force: bool = False) -> PrivateReport:
        """Write a page that compares the release with the counts of the original. It must not be shared."""
        from sfumato.report.release import check_report

        check_report(Path(path), force=force)
        report = self._private_report()
        report.write(path, force=force)
        return report

    def _private_report(self) -> PrivateReport:
        from sfumato.report.private import private_report

        REPORT_PRIVATE.refuse_on(self._draft.engine.name)
        draft, job = self._draft, self._draft.job
        with job.progress.phase("report"):
            source, _ = draft.engine.sources(draft.rows)
            figures = self.private_figures()
            return private_report(
                job.source, source, self.policy, job.taxonomies, figures, self.warnings, trial=self.trial
            )

    def pages(
        self, report: Path | None, report_private: Path | None, codebook: Path | None, policy: Path | None = None
    ) -> list[ReleasePage]:
        """Make what is published together with the release: pages, and the policy that may be shared."""
        pages = []
        if codebook is not None:
            pages.append(ReleasePage(codebook, self.codebook().page()))
        if report is not None:
            pages.append(ReleasePage(report, self.report().page()))
        if report_private is not None:
            pages.append(ReleasePage(report_private, self._private_report().page(), private=True))
        if policy is not None:
            pages.append(ReleasePage(policy, tomli_w.dumps(shareable_policy(self.policy))))
        return pages

    def summary(self) -> dict[str, Any]:
        """Return what ``sfumato anonymize --json`` prints: also what was measured against the original."""
        summary = summary_of(self._draft, self._examination)
        if self.replaced:
            summary |= {"replaced": list(self.replaced), "private_figures": [*summary["private_figures"], "replaced"]}
        return summary

    def public_summary(self) -> dict[str, Any]:
        """Return what the certificate says: figures that follow from the release and its policy alone."""
        return public_summary_of(self._draft, self._examination)

    def private_figures(self) -> dict[str, Any]:
        """Return what was measured against the original or says how it was searched. It must not be shared."""
        summary = self.summary()
        return {
            key: summary[key] for key in summary["private_figures"] if key not in ("seconds", "warnings", "replaced")
        }

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a release cannot be pickled, since the original would go with it; use write, or pickle its data"
        )

    def __repr__(self) -> str:
        return (
            f"<{'Trial' if self.trial else 'Release'} of {self.audit.records:,} records in "
            f"{self.audit.classes:,} classes, smallest {self.audit.smallest_class:,}, GCP {self.losses.gcp:.4f}>"
        )


def codebook_target(draft: Draft, target: str | Path, wanted: bool | None, *, force: bool) -> Path | None:
    """Return where the codebook of a release goes; None if there should be none. wanted: None is what the policy says.

    An earlier codebook that would stay beside a new release is told.
    """
    job = draft.job
    wanted = job.policy.release.codebook if wanted is None else wanted
    if wanted:
        CODEBOOK.refuse_on(draft.engine.name)
    if draft.engine.name == SPARK:
        return None
    path = codebook_path(target)
    if wanted:
        from sfumato.report.codebook import check_codebook

        check_codebook(path, force=force)
        return path
    if path.exists():
        job.warnings.append(f"the codebook {path} is that of an earlier release. Remove it, or write it anew")
    return None


def public_summary_of(draft: Draft, examination: Examination) -> dict[str, Any]:
    """Return everything about a release that may be published."""
    policy, audit = draft.job.policy, examination.audit
    seed = policy.release.seed
    return {
        **({"trial": True} if draft.trial else {}),
        **public_figures(
            examination.totals,
            audit,
            policy,
            left_out=draft.records - audit.records,
            in_persons=policy.privacy.person is not None,
            grids=draft.rows.outcome.facts.get("statistics"),
        ),
        **{key: value for key, value in draft.rows.outcome.facts.items() if key == "levels"},
        "method": policy.method.name,
        "engine": draft.engine.name,
        "seed": seed if method_named(policy.method.name).separates else seed or 0,
        "version": __version__,
    }


def summary_of(draft: Draft, examination: Examination) -> dict[str, Any]:
    """Return everything that is known about a release. ``private_figures`` names what may not be published."""
    outcome, progress = draft.rows.outcome, draft.job.progress
    public, losses = public_summary_of(draft, examination), examination.losses
    summary = {
        **({"trial": True} if draft.trial else {}),
        **{key: public[key] for key in ("records", "released", "classes", "smallest_class", "suppressed")},
        "suppression_cost": losses.suppression_cost,
        **outcome.facts,
        **draft.facts,
        **losses.values,
        "columns": losses.columns,
        **({"workload": [task.as_dict() for task in losses.tasks]} if losses.tasks else {}),
        "audit": examination.audit.as_dict(),
        "method": public["method"],
        "chosen": outcome.chosen,
        **({"choice": outcome.choice} if outcome.choice else {}),
        "engine": public["engine"],
        **draft.engine.facts(),
        "seed": public["seed"],
        "version": public["version"],
        "seconds": {name: round(value, 4) for name, value in progress.seconds.items()},
        "warnings": draft.job.warnings,
    }
    private = [key for key, value in summary.items() if key not in public or public[key] != value]
    return {**summary, "private_figures": private}
