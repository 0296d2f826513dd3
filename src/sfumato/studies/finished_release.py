"""A finished release, also one made elsewhere: its policy, its tables, and its certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.errors import UsageError
from sfumato.methods import method_named
from sfumato.policy import InputOptions, Policy, PolicyLike, merge_flags
from sfumato.releases.certificate import read_certificate
from sfumato.tables.locations import location_of
from sfumato.tables.sources.input_table import open_studied
from sfumato.tables.sources.source import Source, open_location, open_source


@dataclass(frozen=True)
class FinishedRelease:
    """A release as the caller gave it: a file, a frame, or a pair of tables."""

    given: object
    policy: Policy
    certificate: Mapping[str, Any] | None

    @classmethod
    def of(cls, release: object, policy: PolicyLike | None, flags: Mapping[str, Any]) -> FinishedRelease:
        """Find the policy of a release. Flags override the policy, or the certificate beside the file."""
        certificate = read_certificate(release) if isinstance(release, str | Path) else None
        if policy is None and certificate is not None:
            home = location_of(release).home  # type: ignore[arg-type]
            policy = Policy.from_dict(certificate["policy"], home, places=_taxonomy_places(home))
        if policy is None and not flags:
            open_source(release[0] if isinstance(release, tuple) else release, InputOptions())  # is there a table?
            raise UsageError(
                "nothing says what to check: there is no certificate beside the release. "
                "Give a policy, or the quasi-identifiers and k."
            )
        merged = merge_flags(policy, **flags)
        merged.check_complete()
        return cls(release, merged, certificate)

    @property
    def trial(self) -> bool:
        """Whether its certificate says that it is a trial. A file without its certificate cannot be told from one."""
        return self.certificate is not None and self.certificate.get("trial", False)

    def source(self) -> Source:
        """Open the release; the first table, if there are two."""
        # Sfumato writes UTF-8. A release made elsewhere is read as the policy says.
        options = self.policy.foreign_release_options if self.certificate is None else self._written_options
        return open_source(self.given[0] if isinstance(self.given, tuple) else self.given, options)

    @property
    def _written_options(self) -> InputOptions:
        """How the release was written. The certificate knows about formulas, whatever policy it is judged by."""
        written = {} if self.certificate is None else self.certificate["policy"].get("release", {})
        disarmed = isinstance(written, Mapping) and written.get("formulas") == "disarm"
        return replace(self.policy.release_input_options, disarmed=disarmed)

    def sensitive_source(self) -> Source | None:
        """Open the table of sensitive values if the method releases them separately: beside the first, or of a pair."""
        if not method_named(self.policy.method.name).separates:
            return None
        options = self._written_options
        if isinstance(self.given, tuple):
            return open_source(self.given[1], options)
        if not isinstance(self.given, str | Path):
            raise UsageError("a release by anatomy is two tables. Give both, as (first, second).")
        return open_location(location_of(self.given).sensitive, options)


def _taxonomy_places(home: Path) -> list[Path]:
    """Return where the taxonomies of a release may lie: beside it or in the working directory, or in taxonomies/ there.

    ``home`` is the directory of the release.
    """
    return [place for directory in (home, Path.cwd()) for place in (directory, directory / "taxonomies")]


def open_original(original: object, policy: Policy) -> Source:
    """Open the table that a release was made of. It must have the quasi-identifiers."""
    source = open_studied(original, policy)
    for name in policy.quasi_identifiers:
        if name not in source.names:
            raise UsageError.unknown_column(name, "the policy", source.names)
    return source
