"""A finished release, also one made elsewhere: its policy, its tables, and its certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.errors import UsageError
from sfumato.methods import method_named
from sfumato.policy import InputOptions, Policy, PolicyLike, merge_flags
from sfumato.releases.certificate import read_certificate
from sfumato.releases.release_reading import release_options
from sfumato.tables.locations import location_of
from sfumato.tables.sources.input_table import open_studied
from sfumato.tables.sources.source import Source, is_text_file, open_location, open_source
from sfumato.tables.targets.target import recover_location


@dataclass(frozen=True)
class FinishedRelease:
    """A release as the caller gave it: a file, a frame, or a pair of tables."""

    given: object
    policy: Policy
    certificate: Mapping[str, Any] | None
    reading: Mapping[str, Any] = field(default_factory=dict)
    """What the caller said about how files are read."""

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
        return cls(release, merged, certificate, flags.get("input") or {})

    @property
    def trial(self) -> bool:
        """Whether its certificate says that it is a trial. A file without its certificate cannot be told from one."""
        return self.certificate is not None and self.certificate.get("trial", False)

    def source(self) -> Source:
        """Open the release; the first table, if there are two."""
        first = self.given[0] if isinstance(self.given, tuple) else self.given
        return open_source(first, self._options(first, 0))

    def _options(self, table: object, number: int) -> InputOptions:
        """How a table of the release is read. The certificate knows it, whatever policy the release is judged by."""
        if not isinstance(table, str | Path):
            return self.policy.foreign_release_options
        location = location_of(table)
        recover_location(location)
        return release_options(location, self.policy, self.certificate, given=self.reading, table=number)

    def files(self) -> Sequence[Mapping[str, Any]]:
        """The files of the release and how they are written, by the certificate or as they look."""
        if self.certificate is not None:
            files: list[Mapping[str, Any]] = self.certificate["files"]
            return files
        if not isinstance(self.given, str | Path) or not is_text_file(Path(self.given)):
            return ()
        options = self._options(self.given, 0)
        commas = sorted(options.comma_columns)
        text = {"separator": options.separator, "encoding": options.encoding, "decimal": "," if commas else "."}
        return [{"name": location_of(self.given).name, "text": {**text, "numbers": commas}}]

    def sensitive_source(self) -> Source | None:
        """Open the table of sensitive values if the method releases them separately: beside the first, or of a pair."""
        if not method_named(self.policy.method.name).separates:
            return None
        if isinstance(self.given, tuple):
            return open_source(self.given[1], self._options(self.given[1], 1))
        if not isinstance(self.given, str | Path):
            raise UsageError("a release by anatomy is two tables. Give both, as (first, second).")
        second = location_of(self.given).sensitive
        return open_location(second, release_options(second, self.policy, self.certificate, table=1))


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
