"""The audit of a finished release, within a limit of memory if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.engines.memory.coded_table import encode, profile, scan
from sfumato.errors import TaxonomyError, UsageError
from sfumato.evaluation.audit.anatomy_audit import audit_groups, quasi_identifiers_of_original, values_of_original
from sfumato.evaluation.audit.audit import AuditReport, audit_classes, class_key
from sfumato.evaluation.audit.audit_in_parts import audit_in_parts
from sfumato.evaluation.audit.kept_columns import kept_columns_hold, kept_columns_hold_in_parts
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.releases.linked_certificate import certified_remarks
from sfumato.requirements import Requirements, Verdict
from sfumato.studies.finished_release import FinishedRelease
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.locations import DirectoryLocation, FileLocation, Location, location_of
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.input_table import open_studied
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.target import current_digests
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.taxonomies.taxonomy_file import read_taxonomy


def audit_finished(
    release: FinishedRelease,
    original: object | None,
    progress: Progress,
    *,
    limited: bool,
    temporary: str | Path | None,
) -> AuditReport:
    """Say what holds in a release. limited: the caller set a memory limit, beside any of the policy."""
    policy, source = release.policy, release.source()
    limit = policy.engine.memory
    with progress.phase("audit", None if limit is None else source.rows):
        second = release.sensitive_source()
        before = None if original is None else open_studied(original, policy)
        if second is not None:
            if limited:
                raise UsageError(f"a release by {policy.method.name} is audited as a whole. Leave out memory.")
            report = _audit_of_two(source, second, before, policy)
        elif limit is None:
            report = _audit_in_memory(source, before, policy)
        else:
            with Scratch(None if temporary is None else Path(temporary)) as scratch:
                report = _audit_within(limit, scratch, source, before, policy, progress)
        return _with_file_checks(report, release)


def _audit_of_two(source: Source, second: Source, original: Source | None, policy: Policy) -> AuditReport:
    requirements = policy.requirements_without_persons()
    report = audit_groups(source, second, policy, requirements, _needed_taxonomies(requirements, policy))
    if original is None:
        return report
    compared = (
        _same_quasi_identifiers(source, original, policy),
        values_of_original(second, original, requirements),
    )
    return replace(report, verdicts=(*report.verdicts, *compared))


def _audit_in_memory(source: Source, original: Source | None, policy: Policy) -> AuditReport:
    persons, key = _released_persons(source, policy), class_key(policy, source.names)
    requirements = policy.requirements_without_persons() if persons is None else policy.requirements()
    taxonomies = _needed_taxonomies(requirements, policy)
    classes = find_classes(source, key, by_row=bool(requirements.attributes) or persons is not None)
    report = audit_classes(source, classes, policy, requirements, taxonomies, persons)
    unknown = _unknown_pseudonyms(source, policy)
    kept = [] if original is None else [*kept_columns_hold(source, original, [*key, *unknown]), *unknown.values()]
    return replace(report, verdicts=(*report.verdicts, *kept))


def _released_persons(source: Source, policy: Policy) -> NDArray[np.uint32] | None:
    """Return the person of each row, if the release shows them as pseudonyms."""
    name = policy.privacy.person
    if name not in policy.pseudonyms or name not in source.names:
        return None
    column = pa.chunked_array([batch.column(0) for batch in source.batches([name])])
    persons, null = PassthroughColumn.of(name, column).distinct
    return None if np.any(persons == null - 1) else persons.astype(np.uint32)


def _unknown_pseudonyms(source: Source, policy: Policy) -> dict[str, Verdict]:
    """Return the pseudonyms of a release that cannot be compared with the original, since nobody named their key."""
    if policy.pseudonym_key_path is not None:
        return {}
    reason = "pseudonyms are compared with the original by their key: give it with --pseudonym-key FILE"
    return {
        name: Verdict(f"the pseudonyms of {name!r} are those of the original", None, 0, reason=reason)
        for name in policy.pseudonyms
        if name in source.names
    }


def _audit_within(
    memory: int, scratch: Scratch, source: Source, original: Source | None, policy: Policy, progress: Progress
) -> AuditReport:
    requirements, key = policy.requirements_without_persons(), class_key(policy, source.names)
    taxonomies = _needed_taxonomies(requirements, policy)
    report = audit_in_parts(source, policy, requirements, taxonomies, memory=memory, scratch=scratch, progress=progress)
    if original is None:
        return report
    unknown = _unknown_pseudonyms(source, policy)
    kept = kept_columns_hold_in_parts(source, original, [*key, *unknown], memory=memory, scratch=scratch)
    return replace(report, verdicts=(*report.verdicts, *kept, *unknown.values()))


def _needed_taxonomies(requirements: Requirements, policy: Policy) -> dict[str, Taxonomy]:
    """Read the taxonomies that a requirement measures distances by, and those with levels as far as they are there."""
    by_taxonomy = {part.attribute for part in requirements.parts if "hierarchy" in part.counters}
    taxonomies = {
        name: read_taxonomy(policy.taxonomy_path(name), name)
        for name in requirements.attributes
        if name in by_taxonomy and policy.columns[name].taxonomy_file is not None
    }
    for name in _with_levels(policy):
        if (path := _path_if_there(policy, name)) is not None:
            taxonomies[name] = read_taxonomy(path, name)
    return taxonomies


def _with_levels(policy: Policy) -> list[str]:
    """Return the quasi-identifiers with a taxonomy file that say which of its levels may be shown."""
    return [
        name
        for name in policy.quasi_identifiers
        if (column := policy.columns[name]).taxonomy_file is not None
        and (column.finest is not None or column.coarsest is not None)
    ]


def _path_if_there(policy: Policy, name: str) -> Path | None:
    """Return the path of a taxonomy file; None if a certificate names it and nobody copied it beside the release."""
    try:
        path = policy.taxonomy_path(name)
    except TaxonomyError:
        return None
    return path if path.exists() else None


def _with_file_checks(report: AuditReport, release: FinishedRelease) -> AuditReport:
    """Add whether every file of the release is the one that was certified."""
    if not isinstance(release.given, str | Path):
        return report
    if release.certificate is None:
        remark = "there is no certificate beside the release: it is incomplete, or was made elsewhere"
        return replace(report, remarks=(*report.remarks, remark))
    unchanged = _unchanged(location_of(release.given), release.certificate)
    remarks = [*report.remarks, *certified_remarks(release.certificate)]
    if report.unchecked and unchanged.holds:
        remarks += _certified_in_persons(release.certificate)
    verdicts, trial = (*report.verdicts, unchanged), release.trial
    return replace(report, verdicts=verdicts, remarks=tuple(remarks), trial=trial)


def _certified_in_persons(certificate: Mapping[str, Any]) -> list[str]:
    """Say what was checked when the release was made, if persons were counted then."""
    if certificate["policy"].get("privacy", {}).get("person") is None:
        return []
    held = "; ".join(line["requirement"] for line in certificate.get("audit", ()) if line["holds"])
    return [f"the certificate states what held when the release was made and its persons were counted: {held}"]


def _unchanged(location: Location, certificate: Mapping[str, Any]) -> Verdict:
    expected = {file["name"]: file["sha256"] for file in certificate["files"]}
    digests = current_digests(location, list(expected))
    what = "file" if isinstance(location, FileLocation | DirectoryLocation) else "table"
    text = f"the {what} is the one that was certified"
    if len(expected) > 1:
        text = f"the {what}s are those that were certified"
    # The certificate of another file says nothing about this one; in a directory or database it has its own place.
    named = location.name in expected if isinstance(location, FileLocation) else bool(expected)
    return Verdict(text, named and digests == expected, len(digests))


def _same_quasi_identifiers(first: Source, original: Source, policy: Policy) -> Verdict:
    """Judge whether the first of two tables has every record of the original, as its quasi-identifiers are shown."""
    for name in policy.quasi_identifiers:
        if name not in original.names:
            return Verdict(f"the column {name!r} is in the original", False, 0)
    # Without levels, categories are shown as they are, so the files of their taxonomies are not needed.
    levels = _with_levels(policy)
    files = [name for name in policy.quasi_identifiers if policy.columns[name].taxonomy_file is not None]
    flat = {name: "flat" for name in files if name not in levels}
    policy, progress = merge_flags(policy, taxonomy=flat), Progress()
    taxonomies = {name: read_taxonomy(policy.taxonomy_path(name), name) for name in levels}
    scanned = scan(original, policy.quasi_identifiers, progress)
    encoded = encode(scanned, profile(scanned, policy, taxonomies, progress), progress)
    left_out = policy.most_suppressed(encoded.count)
    return quasi_identifiers_of_original(first, encoded.codes, encoded.domains, left_out)
