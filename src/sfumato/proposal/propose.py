"""Propose a first policy for a table: what every column seems to be, why, and which columns single people out."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.engines.memory.coded_table import scan
from sfumato.errors import PolicyError
from sfumato.evaluation.linkability.column_facts import (
    ColumnFacts,
    TextSettings,
    collect_values,
    facts_of,
    find_text_settings,
)
from sfumato.evaluation.linkability.column_names import NameHints, hints_of
from sfumato.evaluation.linkability.linkable_columns import UNIQUE_SHARE, determines
from sfumato.evaluation.linkability.sentinels import reading_remarks
from sfumato.evaluation.risk.exposure import Exposure, Exposures, exposures, first_of_each_size, more_revealing_sets
from sfumato.policy import ColumnSettings, InputSettings, Policy, merge_flags
from sfumato.progress import Progress
from sfumato.proposal.column_figures import ColumnFigure, figure_of
from sfumato.proposal.derived_input import has_texts, input_of_derived
from sfumato.proposal.header_check import check_names, check_names_beside_cells
from sfumato.proposal.roles import Suggestion, suggest
from sfumato.proposal.text_format import find_text_format
from sfumato.proposal.toml_document import policy_document
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.locations import FileLocation, location_of
from sfumato.tables.released_classes import find_classes, unify_nulls
from sfumato.tables.sources.derived_columns import with_derived
from sfumato.tables.sources.in_memory_source import CollectedSource
from sfumato.tables.sources.input_table import open_input
from sfumato.tables.sources.source import Source, check_readable, is_text_file, place_of
from sfumato.tables.targets.replacement import check_replaceable
from sfumato.tables.targets.staging import Stage, check_target, write_staged

EXAMINATIONS = 2  # of each column: its values are collected, then judged
MOST_CANDIDATES = 30  # columns whose sets are examined
SHOWN = 3  # sets of each size
MANY = 0.01  # share of the records
MOST_COMPARED = 1_000_000_000  # records, over all pairs of columns
PROPOSED_KEYS = ("type", "taxonomy", "round", "top", "finest")  # of a quasi-identifier


@dataclass(frozen=True)
class ProposedColumn:
    """A column with its proposed role, the reason, and what is known about it."""

    name: str
    role: str
    reason: str
    distinct: int
    missing: int
    alone: int
    described: ColumnSettings | None
    """Its settings as a quasi-identifier."""
    levels_reason: str
    """Why it has these levels as a quasi-identifier; empty if there is nothing to say."""
    nulls: tuple[str, ...] = ()
    """Texts that mean a missing value in it, as they were given."""
    description: str = ""
    """What the file says that the column is: its variable label in SPSS, Stata or SAS."""

    @property
    def settings(self) -> dict[str, Any]:
        """What the policy says about it as a quasi-identifier, beside the role."""
        if self.described is None:
            return {}
        return self.described.model_dump(mode="json", exclude_none=True, exclude={"role", "weight"})

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.description,
            "role": self.role,
            "reason": self.reason,
            **{key: self.settings.get(key) for key in PROPOSED_KEYS},
            "levels_reason": self.levels_reason,
            "nulls": list(self.nulls),
            "distinct": self.distinct,
            "missing": self.missing,
            "alone": self.alone,
        }


@dataclass(frozen=True)
class Proposal:
    """A first policy, for a person to review: roles that are not clear are ``decide``, and k may be open.

    ``sets`` are small sets of columns with the records that they single out, the most dangerous first. ``left_out``
    says in words what was not examined, and ``remarks`` what else to check.
    """

    policy: Policy
    columns: tuple[ProposedColumn, ...]
    records: int
    sets: tuple[Exposure, ...]
    left_out: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    table: str = field(default="", repr=False)
    figures: tuple[ColumnFigure, ...] = field(default=(), repr=False, compare=False)
    """What each readable column holds, to be drawn. It shows values of the table: keep it private."""

    @property
    def reasons(self) -> dict[str, str]:
        """The reason for the role of every column."""
        return {column.name: column.reason for column in self.columns}

    @property
    def undecided(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.role == "decide")

    def dangerous(self, *, decided: bool) -> list[Exposure]:
        """Return the sets worth showing: of proposed quasi-identifiers only, or with a column still to decide.

        These are the first sets of each size that single out many records, without those that hardly add to a smaller
        one. If there are none, it is the first set that singles out any record.
        """
        known = frozenset(self.policy.quasi_identifiers)
        sets = [
            exposure for exposure in more_revealing_sets(self.sets) if decided == known.issuperset(exposure.columns)
        ]
        many = first_of_each_size((exposure for exposure in sets if exposure.unique_share >= MANY), SHOWN)
        return many or [exposure for exposure in sets[:1] if exposure.unique]

    def to_toml(self) -> str:
        """Return the text of the policy file, with the reasons as comments."""
        return policy_document(self)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the policy file, with the reasons as comments. An existing file is replaced only with ``force``."""
        target = Path(path)
        check_policy_target(target, force=force)
        with Stage() as stage:
            write_staged(stage, target, policy_document(self, target.absolute().parent))
            stage.publish()

    def as_dict(self) -> dict[str, Any]:
        """Return the proposal as JSON values."""
        return {
            "records": self.records,
            "columns": [column.as_dict() for column in self.columns],
            "undecided": list(self.undecided),
            "sets": [exposure.as_dict() for exposure in self.sets],
            "left_out": list(self.left_out),
            "remarks": list(self.remarks),
            "policy": self.policy.to_dict(),
        }


def check_policy_target(target: Path, *, force: bool) -> None:
    """Refuse a file that cannot be written, or that exists: people edit policies, so also one that Sfumato wrote."""
    check_target(target)
    check_replaceable(target, "policy", force=force)


def propose_policy(
    data: object,
    *,
    k: int | None = None,
    input: Mapping[str, Any] | None = None,
    derive: Mapping[str, Mapping[str, Any]] | None = None,
    column_nulls: Mapping[str, str | Sequence[str]] | None = None,
    progress: Progress | None = None,
) -> Proposal:
    """Propose roles, types and taxonomies for the columns of a table, each with its reason.

    ``data`` is a file or a frame. The format of a file is detected, except for what ``input`` sets, as ``[input]`` in a
    policy does. ``k`` goes into the policy; without it k is left open. Columns of ``derive`` are made first, as
    ``[derive.NAME]`` in a policy says it, and go into the policy too. So do ``column_nulls``: by column, texts that
    mean a missing value there. If neither the name nor the values of a column show its role, the role is left open.
    """
    progress = progress or Progress()
    preset = dict(input or {})
    InputSettings(**preset)  # reports wrong settings before anything is read
    nulls = {
        name: (tokens,) if isinstance(tokens, str) else tuple(tokens) for name, tokens in (column_nulls or {}).items()
    }
    undecided = {name: {"role": "decide", "nulls": list(tokens)} for name, tokens in nulls.items()}
    reading = merge_flags({"columns": undecided}, derive=derive)
    location = location_of(data) if isinstance(data, str | os.PathLike) else None
    is_fixed = preset.get("layout") is not None
    if isinstance(location, FileLocation) and (is_fixed or is_text_file(location.path)):
        check_readable(location.path)
        separator = "," if is_fixed else preset.get("separator")  # in columns of fixed width there is none to find
        detected = find_text_format(location.path, preset.get("encoding"), separator, preset.get("header_row"))
        settings = {"encoding": detected.encoding, "separator": detected.separator}
        preset.update({key: value for key, value in settings.items() if value is not None})
    source = open_input(data, reading.model_copy(update={"input": InputSettings(**preset), "derive": {}}))
    check_names(source.names)
    for name in nulls:
        if name not in source.names:
            raise PolicyError.unknown_column(name, "--column-null, or column_nulls,", source.names)
    by_labels: tuple[str, ...] | None = getattr(source, "read_by_labels", None)
    if by_labels is not None and "labels" not in preset:
        # Written out, so that a later file is read in the same way whatever values occur in it.
        preset["labels"] = list(by_labels) or False
    source = with_derived(source, reading.model_copy(update={"input": input_of_derived(source, reading, preset)}))
    readable = [name for name in source.names if not _is_unreadable(source.types[name])]
    scanned = scan(source, readable, progress)
    check_names_beside_cells(scanned.table)
    with progress.phase("propose", EXAMINATIONS * len(readable)):
        table = _Table(source, scanned.table, preset, nulls, progress)
    with progress.phase("risk"):
        return table.propose(k, "" if location is None else location.name, reading.to_dict().get("derive", {}))


class _Table:
    """A table in memory, and what is known about its columns."""

    def __init__(
        self,
        source: Source,
        table: pa.Table,
        preset: Mapping[str, Any],
        column_nulls: Mapping[str, tuple[str, ...]],
        progress: Progress,
    ) -> None:
        self._names = source.names
        self._descriptions: Mapping[str, str] = getattr(source, "descriptions", {})
        self._preset = preset
        self._column_nulls = column_nulls
        self._records = table.num_rows
        self._table = table
        self._memory = CollectedSource.of_table(table, kind=source.kind, where="the table")
        text = has_texts(source)
        values = [collect_values(self._memory, name, text=text) for name in table.column_names]
        progress.advance(len(values))
        self._settings: TextSettings = find_text_settings(values, preset)
        self._nulls = self._settings.nulls if text else ()
        self._facts: dict[str, ColumnFacts] = {}
        self._hints: dict[str, NameHints] = hints_of(source.names)
        remarks: list[str] = []
        self._figures: list[ColumnFigure] = []
        for column in values:
            self._facts[column.name] = facts_of(column, self._settings)
            self._figures.append(figure_of(column, self._facts[column.name].kind, self._settings))
            remarks += reading_remarks(column, self._settings, partial(self._place, source, column.name))
            progress.advance(EXAMINATIONS - 1)
        self._remarks = tuple(remarks)

    def propose(self, k: int | None, table: str, derive: Mapping[str, Any]) -> Proposal:
        suggestions = {name: self._suggest(name) for name in self._names}
        suggestions |= _superseded(suggestions, derive)
        quasi = [name for name, suggestion in suggestions.items() if suggestion.role == "quasi-identifier"]
        person = self._person(suggestions)
        left_out: list[str] = []
        suggestions |= self._determining(suggestions, quasi, left_out)
        exposed = self._exposures(suggestions, quasi, person)
        columns = {name: self._column(name, suggestion) for name, suggestion in suggestions.items()}
        privacy = {"k": k, "person": person}
        policy = Policy.from_dict(
            {
                "input": self._input(),
                "derive": derive,
                "columns": columns,
                "privacy": {key: value for key, value in privacy.items() if value is not None},
            }
        )
        return Proposal(
            policy=policy,
            columns=tuple(self._proposed(name, suggestion) for name, suggestion in suggestions.items()),
            records=self._records,
            sets=exposed.sets,
            left_out=(*exposed.left_out, *left_out),
            remarks=(*self._settings.remarks, *self._remarks),
            table=table,
            figures=tuple(self._figures),
        )

    def _place(self, source: Source, name: str, texts: Collection[str]) -> str:
        """Return where the first record is that holds one of the texts."""
        column = self._table.column(name)
        found = pc.is_in(column.cast(pa.string()), value_set=pa.array(sorted(texts)))
        return place_of(source, pc.index(found, True).as_py() + 1)

    def _suggest(self, name: str) -> Suggestion:
        if name not in self._facts:
            return Suggestion(
                "decide", "its type is not a single value for each record: drop it, or convert it to text"
            )
        return suggest(self._facts[name], self._hints[name])

    def _person(self, suggestions: Mapping[str, Suggestion]) -> str | None:
        """Return the identifier of the person of a record, if persons have several records."""
        for name, suggestion in suggestions.items():
            facts = self._facts.get(name)
            if suggestion.role != "identifier" or facts is None or not self._hints[name].numbers_persons:
                continue
            if facts.known == self._records and facts.distinct < self._records:
                return name
        return None

    def _determining(
        self, suggestions: Mapping[str, Suggestion], quasi: Sequence[str], left_out: list[str]
    ) -> dict[str, Suggestion]:
        """Find columns to decide that would reveal a quasi-identifier if they were kept, and add that to the reason."""
        undecided = [
            name
            for name, suggestion in suggestions.items()
            if suggestion.role == "decide"
            and name in self._facts
            and self._facts[name].distinct > 1
            and self._facts[name].alone_share < UNIQUE_SHARE  # a nearly unique column determines every other
        ]
        if len(undecided) * len(quasi) * self._records > MOST_COMPARED:
            left_out.append("it was not examined whether columns to decide reveal a quasi-identifier")
            return {}
        codes = {name: self._distinct_codes(name) for name in (*undecided, *quasi)}
        determining = {}
        for name in undecided:
            values, size = codes[name]
            revealed = next((column for column in quasi if determines(values, size, codes[column])), None)
            if revealed is not None:
                before = suggestions[name]
                reason = (
                    f"{before.reason}; it nearly reveals the quasi-identifier {revealed!r}: make it one too, or drop it"
                )
                determining[name] = Suggestion(before.role, reason, before.levels)
        return determining

    def _distinct_codes(self, name: str) -> Any:
        return PassthroughColumn.of(name, self._table.column(name)).distinct

    def _exposures(self, suggestions: Mapping[str, Suggestion], quasi: Sequence[str], person: str | None) -> Exposures:
        undecided = [
            name
            for name, suggestion in suggestions.items()
            if suggestion.role == "decide" and suggestion.levels is not None and self._facts[name].distinct > 1
        ]
        # If there are too many, those that make most records unique come first.
        undecided.sort(key=lambda name: -self._facts[name].alone)
        examined = {*[*quasi, *undecided][:MOST_CANDIDATES]}
        candidates = [name for name in self._names if name in examined]
        if not candidates:
            return Exposures(())
        others = len(quasi) + len(undecided) - len(candidates)
        classes = find_classes(self._memory, candidates if person is None else [*candidates, person])
        exposed = exposures(unify_nulls(classes, candidates, self._nulls), candidates, person=person, preferred=quasi)
        if not others:
            return exposed
        remark = f"sets of columns were examined among {len(candidates)} columns; {others:,} others were left out"
        return Exposures(exposed.sets, (*exposed.left_out, remark))

    def _input(self) -> dict[str, Any]:
        settings = self._settings
        found = {"decimal": settings.decimal, "thousands": settings.thousands, "date_format": settings.date_format}
        options = {**self._preset, **{key: value for key, value in found.items() if value is not None}}
        if settings.nulls != ("",):
            options["nulls"] = list(settings.nulls)
        return options

    def _column(self, name: str, suggestion: Suggestion) -> dict[str, Any]:
        nulls = {"nulls": list(self._nulls_of(name, suggestion))} if self._nulls_of(name, suggestion) else {}
        if suggestion.role == "quasi-identifier" and suggestion.levels is not None:
            return suggestion.levels.column.model_dump(mode="json", exclude_defaults=True, exclude_none=True) | nulls
        return {"role": suggestion.role, **nulls}

    def _nulls_of(self, name: str, suggestion: Suggestion) -> tuple[str, ...]:
        """Return the texts that mean "missing" in the column; an identifier has none, since it is never released."""
        return () if suggestion.role == "identifier" else self._column_nulls.get(name, ())

    def _proposed(self, name: str, suggestion: Suggestion) -> ProposedColumn:
        facts = self._facts.get(name)
        return ProposedColumn(
            name=name,
            role=suggestion.role,
            reason=suggestion.reason,
            distinct=0 if facts is None else facts.distinct,
            missing=0 if facts is None else self._records - facts.known,
            alone=0 if facts is None else facts.alone,
            described=None if suggestion.levels is None else suggestion.levels.column,
            levels_reason="" if suggestion.levels is None else suggestion.levels.reason,
            nulls=self._nulls_of(name, suggestion),
            description=self._descriptions.get(name, ""),
        )


def _superseded(suggestions: Mapping[str, Suggestion], derive: Mapping[str, Any]) -> dict[str, Suggestion]:
    """Drop the columns from which others are derived, which say less and are there to be released instead."""
    return {
        rule["from"]: Suggestion("drop", f"the column {name!r} is derived from it")
        for name, rule in derive.items()
        if suggestions[rule["from"]].role in ("quasi-identifier", "decide")
    }


def _is_unreadable(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind)) or isinstance(kind, pa.BaseExtensionType)
