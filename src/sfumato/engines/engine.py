"""The contract of engines: the verbs of a run, in the order in which the pipeline calls them.

The memory, disk and Spark engines bring the right records together for the same kernels; none of them implements a
method again. Each keeps tables, classes and rows in its own form. The pipeline hands these on from verb to verb and
never looks inside. ``pipeline/capabilities.py`` lists what an engine cannot do; that is refused before the first verb.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sfumato.evaluation.public_figures import Examination
from sfumato.methods import AUTO, SSE_SEARCH, method_named
from sfumato.methods.lattice.lattice_method import LatticeMethod
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.fingerprints import Fingerprints
from sfumato.releases.run_record import ClassRecipe
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import Domain
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.target import CertifiedTable, ReleasePage
from sfumato.taxonomies.taxonomy import Taxonomy

if TYPE_CHECKING:
    from sfumato.releases.recoding import Recoding


class Input(Protocol):
    """A table of which no record has been read."""

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def kind(self) -> str:
        """The kind of file or frame, as the run record has it."""
        ...


@dataclass(frozen=True)
class Job:
    """One run: the table, what the policy asks of it, and where progress and warnings go."""

    data: object
    source: Any  # the Input of the engine
    policy: Policy
    requirements: Requirements
    taxonomies: Mapping[str, Taxonomy]
    kept: list[str]
    progress: Progress
    warnings: list[str] = field(default_factory=list)

    def under(self, policy: Policy, warnings: Sequence[str]) -> Job:
        """The job for the same table under a policy that differs in method, k and l alone."""
        return replace(self, policy=policy, requirements=policy.requirements(), warnings=list(warnings))


@dataclass(frozen=True)
class Outcome:
    """How the classes of a release came about.

    chosen: the method that formed them. choice: what ``auto`` tried. facts: further entries of the summary.
    """

    chosen: str
    choice: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


def outcome_of(method: str, progress: Progress) -> Outcome:
    """Name the method of a release. For ``auto`` that is the one whose classes the search started from."""
    choice = progress.decisions.get("choice", {}) if method in (AUTO, SSE_SEARCH) else {}
    facts = {}
    if isinstance(method_named(method), LatticeMethod):
        facts = {key: progress.decisions[key] for key in ("levels", "lattice")}
    return Outcome(choice.get("start", method), choice, facts)


@dataclass(frozen=True)
class Prepared:
    """A table that was read and checked, before its classes are formed."""

    engine: Engine
    job: Job
    table: Any  # in the form of the engine

    def draft(self, rows: Any, recipe: ClassRecipe, fingerprints: Fingerprints | None, *, trial: bool = False) -> Draft:
        """Return the draft with these rows. recipe, fingerprints, trial: see Draft."""
        return Draft(
            engine=self.engine,
            job=self.job,
            rows=rows,
            records=self.table.count,
            domains=self.table.domains,
            fingerprints=fingerprints,
            recipe=recipe,
            trial=trial,
        )


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A finished table before its audit. Users never get one."""

    engine: Engine
    job: Job
    rows: Any  # in the form of the engine, with their ``outcome``
    records: int  # of the original
    domains: Sequence[Domain]
    fingerprints: Fingerprints | None  # None if the run record cannot be kept, or should not know of the release
    recipe: ClassRecipe  # what decided the classes
    facts: Mapping[str, Any] = field(default_factory=dict)  # further entries of the summary
    trial: bool = False  # it is not to be published: its certificate says so, and the run record does not know of it


class Output(Protocol):
    """Where a release is written. It gets its name only when it is published."""

    @property
    def recorded(self) -> str:
        """The output as the run record names it."""
        ...

    def write(self) -> Any:
        """Write the rows where nobody looks for them, and return what the engine audits."""
        ...

    def certified(self) -> list[CertifiedTable]:
        """Return the entry of every written file or table in the certificate."""
        ...

    def publish(self, certificate: str, pages: Sequence[ReleasePage] = ()) -> None:
        """Put the written tables, their certificate and pages about them in place together."""
        ...


class Engine(Protocol):
    """What the pipeline asks of an engine."""

    @property
    def name(self) -> str: ...

    def check_target(
        self, data: object, target: str | Path, *, tables: int, force: bool, trial: bool = False
    ) -> list[str]:
        """Refuse a target that cannot take the release of ``data`` before any work is done.

        Return what the release replaces. Only with ``force`` may that be something that is no release, or, for a
        ``trial``, a release.
        """
        ...

    def read(self, job: Job) -> Any:
        """Read the columns that the run needs."""
        ...

    def profile(self, scan: Any) -> Any:
        """Find the domain of every quasi-identifier."""
        ...

    def encode(self, scan: Any, profile: Any) -> Any:
        """Return the table in codes; it has ``count``, the number of records, and ``domains``."""
        ...

    def check(self, table: Any) -> None:
        """Refuse columns that would undo the release, and requirements that no release can meet."""
        ...

    def fingerprints(self, table: Any) -> Fingerprints:
        """Return what the run record recognises the table by. Raises OSError if no record can be kept."""
        ...

    def ordered_fingerprints(self, table: Any) -> dict[str, str]:
        """Return what version 0.1 recognised the table by."""
        ...

    def form_classes(self, table: Any) -> Any:
        """Decide which records share a class."""
        ...

    def recode(self, table: Any, classes: Any) -> Any:
        """Return the released rows: what every record shows."""
        ...

    def keep(self, rows: Any) -> Any:
        """Keep the rows for as long as the release lives, and return what the engine audits."""
        ...

    def output(self, draft: Draft, target: str | Path) -> AbstractContextManager[Output]:
        """Open a target for the rows of a draft. What was not published is removed on the way out."""
        ...

    def audit(self, draft: Draft, written: Any) -> Examination:
        """Read the finished rows back, judge them, and measure what they lost."""
        ...

    def sources(self, rows: Any) -> tuple[Source, Source | None]:
        """Return the finished table to read, and the table of sensitive values if they are released separately."""
        ...

    def frame(self, draft: Draft) -> Any:
        """Return the release as the same kind of frame as the input."""
        ...

    def sensitive_frame(self, draft: Draft) -> Any:
        """Return the table of sensitive values as a frame, or None if they are in the first table."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """Return what the summary says about the engine beside its name."""
        ...

    def origin(self, job: Job) -> str:
        """Return the input as the run record names it."""
        ...

    def close(self) -> None:
        """Remove what the engine keeps outside memory."""
        ...


class LearningEngine(Engine, Protocol):
    """An engine that can learn a recoding."""

    def learn(self, table: Any) -> Recoding:
        """Learn the recoding whose regions meet the policy on the records of a table."""
        ...
