"""The picture of a finished release: its classes on two quasi-identifiers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import TaxonomyError, UsageError
from sfumato.pictures.classes import plot_classes
from sfumato.pictures.picture import Picture
from sfumato.policy import InputOptions, PolicyLike
from sfumato.releases.certificate import read_certificate
from sfumato.studies.finished_release import FinishedRelease
from sfumato.tables.sources.source import open_source
from sfumato.taxonomies.taxonomy_file import read_taxonomy


def plot_finished(
    release: object,
    x: str | None,
    y: str | None,
    policy: PolicyLike | None,
    flags: Mapping[str, Any],
    *,
    title: str | None,
    theme: str,
) -> Picture:
    """Draw the classes of a release. Without a policy and a certificate the quasi-identifiers are ``x`` and ``y``."""
    named = policy is not None or bool(flags.get("quasi_identifiers"))
    if not named and (not isinstance(release, str | Path) or read_certificate(release) is None):
        if x is None or y is None:
            open_source(release, InputOptions())  # a missing table is reported first
            raise UsageError(
                "nothing says which columns are quasi-identifiers: there is no certificate beside the release. Give a "
                "policy, the quasi-identifiers, or both x and y."
            )
        flags = {**flags, "quasi_identifiers": [x, y]}
    # A picture requires nothing of the classes, so k need not be known.
    finished = FinishedRelease.of(release, policy, {**flags, "k": 1})
    source, taxonomies = finished.source(), {}
    for name in (x, y) if x is not None and y is not None else finished.policy.quasi_identifiers:
        column = finished.policy.columns.get(name)
        if column is None or column.taxonomy_file is None:
            continue
        try:
            path = finished.policy.taxonomy_path(name)
        except TaxonomyError:
            # A certificate has only the name of a taxonomy. The picture does without one that is not found.
            if name in (flags.get("taxonomy") or {}):
                raise
        else:
            taxonomies[name] = read_taxonomy(path, name)
    return plot_classes(source, finished.policy, taxonomies, x, y, title=title, theme=theme)
