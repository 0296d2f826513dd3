"""Tables about the same persons: released together, checked jointly, and published all or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.engine import Draft, Prepared
from sfumato.engines.memory.classes import FormedClasses
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.engines.target_output import check_kept_columns, check_target_location, has_tabs, labels_of_numbers
from sfumato.errors import UnmetError, UsageError
from sfumato.evaluation.audit.audit import verdict_as_dict
from sfumato.evaluation.audit.joined_releases import JointReport, JointVerdict, check_jointly
from sfumato.evaluation.audit.personal_release import PersonalRelease
from sfumato.files.key_file import key_mark, read_key
from sfumato.methods import method_named
from sfumato.pipeline.capabilities import LINKED, MEMORY
from sfumato.pipeline.engine_choice import Chosen, plan_run
from sfumato.pipeline.examination import examined
from sfumato.pipeline.person_groups import TableOfPersons, check_groupable, classes_of_groups, group_persons
from sfumato.pipeline.recognition import record_release
from sfumato.pipeline.release import Release, codebook_target
from sfumato.pipeline.run import draft_of, prepare_release
from sfumato.policy import Policy
from sfumato.policy.linked_tables import JoinAttack, LinkedTables
from sfumato.progress import Progress
from sfumato.releases.certificate import certificate
from sfumato.releases.linked_certificate import linked_remarks, linked_section
from sfumato.tables.locations import FileLocation, certificate_path, location_of
from sfumato.tables.sources.person_numbers import PersonNumbers
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.file_target import FileTarget
from sfumato.tables.targets.staging import Stage
from sfumato.tables.targets.target import refuse_input_as_output

HELP: Mapping[JoinAttack, str] = {
    "pseudonyms": "give the person key the role identifier in all tables but one with one record per person, or set "
    "together = true",
    "records-per-person": "give the person key the role identifier in tables with several records per person",
    "shared-columns": "drop the shared columns in all tables but one, or make them quasi-identifiers",
    "kept-quasi-identifiers": "give such a column the role quasi-identifier in every table, or drop it",
}


@dataclass(frozen=True)
class LinkedRelease:
    """Releases that were made and checked together. files: what was published; empty if nothing was."""

    releases: Mapping[str, Release]
    joint: JointReport
    tables: LinkedTables
    files: tuple[Path, ...] = ()

    @property
    def open_lines(self) -> list[JointVerdict]:
        """The lines of the joint check that keep the releases from being published."""
        return self.joint.open_lines(self.tables.accepted)

    @property
    def holds(self) -> bool:
        """Whether every line of the joint check holds or is accepted."""
        return not self.open_lines

    def summary(self) -> dict[str, Any]:
        """Return what ``sfumato linked --json`` prints: also what was measured against the originals."""
        missing = self.open_lines
        lines = [
            {
                "attack": line.attack,
                **verdict_as_dict(line.verdict),
                "accepted": not line.verdict.holds and line not in missing,
            }
            for line in self.joint.lines
        ]
        return {
            "tables": {name: _without_seconds(release.summary()) for name, release in self.releases.items()},
            "joint": lines,
            "holds": self.holds,
            "persons_if_joined": self.joint.persons_if_joined,
            "together": self.tables.together,
            "private_figures": ["joint", "persons_if_joined"],
        }

    def __repr__(self) -> str:
        outcome = "hold jointly" if self.holds else "do not hold jointly"
        return f"<LinkedRelease of {len(self.releases)} tables, which {outcome}>"


def _without_seconds(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return a summary without the times, which are those of all tables so far."""
    return {key: value for key, value in summary.items() if key != "seconds"}


@dataclass(frozen=True)
class _Part:
    """One of the tables, with its policy and its output."""

    name: str
    data: str
    policy: Policy
    person: str
    output: Path


@dataclass(frozen=True)
class _Drafted:
    """A table with its rows for release. persons: int64[rows], those of the released rows."""

    part: _Part
    draft: Draft
    persons: NDArray[np.int64]

    def seen_as(self, source: Source) -> PersonalRelease:
        job = self.draft.job
        return PersonalRelease(
            self.part.name, source, self.persons, self.part.person, job.policy, job.requirements, job.taxonomies
        )


def check_linked(tables: LinkedTables, progress: Progress) -> LinkedRelease:
    """Make the releases and check them jointly, without writing anything."""
    parts = _parts(tables)
    releases, seen = {}, []
    for drafted in _drafted(tables, parts, progress):
        source = drafted.draft.engine.keep(drafted.draft.rows)
        releases[drafted.part.name] = Release(drafted.draft, examined(drafted.draft, source))
        seen.append(drafted.seen_as(source[0]))
    with progress.phase("audit"):
        return LinkedRelease(releases, check_jointly(seen), tables)


def publish_linked(tables: LinkedTables, progress: Progress, *, force: bool = False) -> LinkedRelease:
    """Make the releases, audit each, check them jointly, and publish them in one moment.

    Raises UnmetError, and writes nothing, if a line of the joint check does not hold and is not accepted. With
    ``force`` an output may be something that is no release.
    """
    parts = _parts(tables)
    replaced = _check_outputs(tables, parts, force=force)
    releases, seen, targets, codebooks = {}, [], [], dict[str, Path | None]()
    drafts = _drafted(tables, parts, progress)
    with Stage() as stage:
        for drafted in drafts:
            draft, location = drafted.draft, FileLocation(drafted.part.output)
            policy, rows = draft.job.policy, draft.rows.table
            codebooks[drafted.part.name] = codebook_target(draft, drafted.part.output, None, force=force)
            target = FileTarget(
                location,
                policy.written_text(tabs=has_tabs(location)),
                disarm=policy.release.formulas == "disarm",
                labels=labels_of_numbers(draft),
                stage=stage,
            )
            with progress.phase("write", rows.num_rows):
                source = target.write(rows.schema, rows.to_batches)
            releases[drafted.part.name] = Release(draft, examined(draft, (source, None)))
            draft.job.warnings.extend(target.warnings)
            seen.append(drafted.seen_as(source))
            targets.append(target)
        with progress.phase("audit"):
            linked = LinkedRelease(releases, check_jointly(seen), tables, _files(parts, codebooks))
        if not linked.holds:
            raise _unmet(linked)
        names = {part.name: part.output.name for part in parts}
        with progress.phase("certify"):
            for (name, release), target in zip(releases.items(), targets, strict=True):
                section = linked_section(name, names, linked.joint.lines, tables)
                summary = {**release.public_summary(), "linked": section}
                text = certificate(summary, release.policy, target.certified())
                release.certificate, release.replaced = json.loads(text), tuple(replaced[name])
                target.stage_certificate(text, release.pages(None, None, codebooks[name]))
            stage.publish()
    for drafted in drafts:
        release = releases[drafted.part.name]
        output = str(drafted.part.output.absolute())
        record_release(drafted.draft, output, release.audit.records, release.private_figures())
    return linked


def _parts(tables: LinkedTables) -> list[_Part]:
    """Read the policies, and refuse what cannot be released together before any table is read."""
    parts, marks = [], set()
    for name in tables.tables:
        policy = tables.policy(name)
        LINKED.refuse_on(policy.engine.name)
        policy.check_complete()
        if method_named(policy.method.name).separates:
            raise UsageError(
                f"the method of {name!r} releases two tables, which cannot be checked jointly with others. Choose "
                "another method."
            )
        if tables.together:
            check_groupable(name, policy)
        if policy.pseudonyms and policy.pseudonym_key_path is not None:
            marks.add(key_mark(read_key(policy.pseudonym_key_path)))
        parts.append(_Part(name, tables.data(name), policy, tables.person_of(name), tables.output(name)))
    if len(marks) > 1:
        raise tables.wrong(
            "the policies name different keys for pseudonyms, so a person would have another pseudonym in each table. "
            "Name one key here: pseudonym_key.",
            "tables",
        )
    return parts


def _check_outputs(tables: LinkedTables, parts: Sequence[_Part], *, force: bool) -> dict[str, list[str]]:
    """Refuse outputs that cannot appear together, and return what each replaces."""
    outputs = [part.output.absolute() for part in parts]
    for part, output in zip(parts, outputs, strict=True):
        keys = ("tables", part.name, "output")
        if not isinstance(location_of(str(part.output)), FileLocation):
            raise tables.wrong("linked tables are released as files, which appear together. Name a file.", *keys)
        if output.parent != outputs[0].parent:
            raise tables.wrong("the outputs are in different folders. Name files in one folder.", *keys)
        if outputs.count(output) > 1:
            raise tables.wrong("two tables have the same output. Name another file.", *keys)
        for other in parts:
            refuse_input_as_output(other.data, FileLocation(part.output))
    return {part.name: check_target_location(part.data, part.output, tables=1, force=force) for part in parts}


def _drafted(tables: LinkedTables, parts: Sequence[_Part], progress: Progress) -> list[_Drafted]:
    """Read all tables, form their classes, and recode them. Their rows are not audited yet."""
    numbers = PersonNumbers()
    of_table: list[tuple[Prepared, NDArray[np.int64]]] = []
    for number, part in enumerate(parts, start=1):
        progress.next_run(part.name, number, len(parts))
        with progress.phase("read"):
            persons = numbers.read(part.data, part.policy, part.person, part.name)
        plan, source = plan_run(part.data, part.policy)
        check_kept_columns(part.policy, source, part.output)
        chosen = Chosen(MemoryEngine(), source, replace(plan, engine=MEMORY).warnings)
        prepared = prepare_release(chosen, part.data, part.policy, progress)
        prepared.job.warnings.extend(_warnings(tables, part, persons))
        of_table.append((prepared, persons))
    groups = group_persons(_with_persons(tables, parts, of_table)) if tables.together else None
    drafts = []
    for number, (part, (prepared, persons)) in enumerate(zip(parts, of_table, strict=True), start=1):
        progress.next_run(part.name, number, len(parts))
        if groups is None:
            progress.decisions.clear()
            draft = draft_of(prepared, prepared.engine.form_classes)
        else:
            (table,) = _with_persons(tables, [part], [(prepared, persons)])
            classes, digest = classes_of_groups(table, groups)
            # The other tables decide the classes too, so the policy alone does not tell whether they are the same.
            draft = draft_of(prepared, _formed_already(classes), {"together": digest})
        drafts.append(_Drafted(part, draft, persons[draft.rows.input_rows]))
    return drafts


def _formed_already(classes: FormedClasses) -> Callable[[object], FormedClasses]:
    return lambda _: classes


def _with_persons(
    tables: LinkedTables, parts: Sequence[_Part], of_table: Sequence[tuple[Prepared, NDArray[np.int64]]]
) -> list[TableOfPersons]:
    """Return tables with the person of each of their rows, in the order in which these are in codes."""
    counted = "records-per-person" not in tables.accepted
    return [
        TableOfPersons(
            part.name,
            prepared.table,
            persons[prepared.table.encoded.input_rows],
            counted=counted and part.person in part.policy.pseudonyms,
        )
        for part, (prepared, persons) in zip(parts, of_table, strict=True)
    ]


def _warnings(tables: LinkedTables, part: _Part, persons: NDArray[np.int64]) -> list[str]:
    warnings = linked_remarks(tables)
    if part.policy.privacy.person is None and len(np.unique(persons)) < len(persons):
        warnings.append(
            f"{part.name!r} has several records per person, and its policy counts records: a class may have fewer than "
            f"k persons. Count persons with person = {part.person!r} under [privacy]"
        )
    return warnings


def _files(parts: Sequence[_Part], codebooks: Mapping[str, Path | None]) -> tuple[Path, ...]:
    files = [(part.output, certificate_path(part.output), codebooks[part.name]) for part in parts]
    return tuple(file for of_table in files for file in of_table if file is not None)


def _unmet(linked: LinkedRelease) -> UnmetError:
    missing = [(line.attack, line.verdict) for line in linked.open_lines]
    failed = []
    for _, verdict in missing:
        reached = "not checked" if verdict.holds is None else f"reached: {verdict.value}"
        failed.append(f"{verdict.requirement} ({reached})")
    attacks = list(dict.fromkeys(attack for attack, _ in missing))
    return UnmetError(
        f"the releases together do not hold, and nothing was written: {'; '.join(failed)}. What helps: "
        f"{'; '.join(HELP[attack] for attack in attacks)}. To publish them all the same, accept it by name: "
        f"accept_linked = {json.dumps(attacks)}."
    )
