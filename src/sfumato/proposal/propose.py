"""A first policy for a table: what every column seems to be, why, and which columns single people out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.engines.memory.coded_table import scan
from sfumato.errors import InputError
from sfumato.evaluation.linkability.linkable_columns import UNIQUE_SHARE, determines
from sfumato.evaluation.risk.exposure import Exposure, Exposures, exposures, first_of_each_size, telling_more
from sfumato.policy import ColumnSettings, InputSettings, Policy
from sfumato.progress import Progress
from sfumato.proposal.column_facts import ColumnFacts, Settings, collect, facts_of, find_settings
from sfumato.proposal.column_names import NameHints, hints_of
from sfumato.proposal.roles import Suggestion, suggest
from sfumato.proposal.text_format import find_reading
from sfumato.proposal.toml_document import document
from sfumato.proposal.value_forms import is_identifier
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.locations import FileLocation, location_of
from sfumato.tables.released_classes import find_classes, with_one_null
from sfumato.tables.sources.in_memory_source import CollectedSource
from sfumato.tables.sources.source import Source, check_readable, is_text_file, open_source
from sfumato.tables.targets.staging import Stage

MOST_CANDIDATES = 30  # columns whose sets are looked at
SHOWN = 3  # sets of each size
MANY = 0.01  # of the records
MOST_COMPARED = 1_000_000_000  # records, over all pairs of columns


@dataclass(frozen=True)
class ProposedColumn:
    """One column: its role and the reason, and what is known of it."""

    name: str
    role: str
    reason: str
    distinct: int
    missing: int
    alone: int
    described: ColumnSettings | None
    """How it would be described as a quasi-identifier."""

    def as_dict(self) -> dict[str, Any]:
        described = {} if self.described is None else self.described.model_dump(mode="json", exclude_none=True)
        return {
            "name": self.name,
            "role": self.role,
            "reason": self.reason,
            "type": described.get("type"),
            "taxonomy": described.get("taxonomy"),
            "distinct": self.distinct,
            "missing": self.missing,
            "alone": self.alone,
        }


@dataclass(frozen=True)
class Proposal:
    """A first policy. It is to be read by a person: roles that nothing settles are ``decide``, and k is open.

    ``sets`` are small sets of columns with the records that they single out, the most dangerous first; ``left_out``
    says in words what was not looked at, ``remarks`` what else is to be checked.
    """

    policy: Policy
    columns: tuple[ProposedColumn, ...]
    records: int
    sets: tuple[Exposure, ...]
    left_out: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    table: str = field(default="", repr=False)

    @property
    def reasons(self) -> dict[str, str]:
        """Why every column has its role."""
        return {column.name: column.reason for column in self.columns}

    @property
    def undecided(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.role == "decide")

    def dangerous(self, *, decided: bool) -> list[Exposure]:
        """Sets that are worth showing: of proposed quasi-identifiers alone, or with a column that is still to decide.

        The first of each size that single out many records, without those that hardly add to a smaller one; or else
        the first that singles out any.
        """
        known = frozenset(self.policy.quasi_identifiers)
        sets = [one for one in telling_more(self.sets) if decided == known.issuperset(one.columns)]
        many = first_of_each_size((one for one in sets if one.unique_share >= MANY), SHOWN)
        return many or [one for one in sets[:1] if one.unique]

    def to_toml(self) -> str:
        """The policy as a file with its reasons as comments."""
        return document(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy with its reasons."""
        with Stage() as stage:
            stage.path(Path(path)).write_text(self.to_toml(), "utf-8", newline="\n")
            stage.publish()

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "records": self.records,
            "columns": [column.as_dict() for column in self.columns],
            "undecided": list(self.undecided),
            "sets": [one.as_dict() for one in self.sets],
            "left_out": list(self.left_out),
            "remarks": list(self.remarks),
            "policy": self.policy.to_dict(),
        }


def propose_policy(
    data: object, *, k: int | None = None, input: Mapping[str, Any] | None = None, progress: Progress | None = None
) -> Proposal:
    """Propose roles, types and taxonomies for the columns of a table, each with its reason.

    ``data`` is a file or a frame. How a file is written is found out, unless ``input`` says it as ``[input]`` of a
    policy does. ``k`` goes into the policy; without it k is left open, as is the role of every column that neither its
    name nor its values tell.
    """
    progress = progress or Progress()
    given = dict(input or {})
    InputSettings(**given)  # tells what is wrong with it before anything is read
    place = location_of(data) if isinstance(data, str | os.PathLike) else None
    if isinstance(place, FileLocation) and is_text_file(place.path):
        check_readable(place.path)
        reading = find_reading(place.path, given.get("encoding"), given.get("separator"))
        found = {"encoding": reading.encoding, "separator": reading.separator}
        given.update({key: value for key, value in found.items() if value is not None})
    source = open_source(data, Policy(input=InputSettings(**given)).input_options)
    _check_header(source)
    readable = [name for name in source.names if not _is_unreadable(source.types[name])]
    scanned = scan(source, readable, progress)
    with progress.phase("propose"):
        table = _Table(source, scanned.table, given)
        return table.propose(k, "" if place is None else place.name)


class _Table:
    """A table that was read, and what is known of its columns."""

    def __init__(self, source: Source, table: pa.Table, given: Mapping[str, Any]) -> None:
        self._names = source.names
        self._given = given
        self._records = table.num_rows
        self._table = table
        self._memory = CollectedSource.of_table(table, kind=source.kind, where="the table")
        text = source.text or source.kind == "excel"
        values = [collect(self._memory, name, text=text) for name in table.column_names]
        self._settings: Settings = find_settings(values, given)
        self._nulls = self._settings.nulls if text else ()
        self._facts: dict[str, ColumnFacts] = {one.name: facts_of(one, self._settings) for one in values}
        self._hints: dict[str, NameHints] = hints_of(source.names)

    def propose(self, k: int | None, table: str) -> Proposal:
        suggested = {name: self._suggested(name) for name in self._names}
        quasi = [name for name, one in suggested.items() if one.role == "quasi-identifier"]
        person = self._person(suggested)
        left_out: list[str] = []
        suggested |= self._determining(suggested, quasi, left_out)
        looked = self._exposures(suggested, quasi, person)
        columns = {name: self._column(one) for name, one in suggested.items()}
        privacy = {"k": k, "person": person}
        policy = Policy.from_dict(
            {
                "input": self._input(),
                "columns": columns,
                "privacy": {key: value for key, value in privacy.items() if value is not None},
            }
        )
        return Proposal(
            policy=policy,
            columns=tuple(self._proposed(name, one) for name, one in suggested.items()),
            records=self._records,
            sets=looked.sets,
            left_out=(*looked.left_out, *left_out),
            remarks=self._settings.remarks,
            table=table,
        )

    def _suggested(self, name: str) -> Suggestion:
        if name not in self._facts:
            return Suggestion("decide", "its type is not a single value for each record: drop it, or turn it into text")
        return suggest(self._facts[name], self._hints[name])

    def _person(self, suggested: Mapping[str, Suggestion]) -> str | None:
        """The identifier that says whose a record is, where persons have several records."""
        for name, one in suggested.items():
            facts = self._facts.get(name)
            if one.role != "identifier" or facts is None or not self._hints[name].numbers_persons:
                continue
            if facts.known == self._records and facts.distinct < self._records:
                return name
        return None

    def _determining(
        self, suggested: Mapping[str, Suggestion], quasi: Sequence[str], left_out: list[str]
    ) -> dict[str, Suggestion]:
        """Columns to decide that would tell a quasi-identifier if they were kept: their reason says so."""
        undecided = [
            name
            for name, one in suggested.items()
            if one.role == "decide"
            and name in self._facts
            and self._facts[name].distinct > 1
            and self._facts[name].alone_share < UNIQUE_SHARE  # one that is nearly unique tells everything
        ]
        if len(undecided) * len(quasi) * self._records > MOST_COMPARED:
            left_out.append("whether columns that are to decide tell a quasi-identifier was not looked at")
            return {}
        codes = {name: self._carried(name) for name in (*undecided, *quasi)}
        found = {}
        for name in undecided:
            values, size = codes[name]
            told = next((one for one in quasi if determines(values, size, codes[one])), None)
            if told is not None:
                before = suggested[name]
                reason = f"{before.reason}; it nearly tells the quasi-identifier {told!r}: make it one too, or drop it"
                found[name] = Suggestion(before.role, reason, before.column)
        return found

    def _carried(self, name: str) -> Any:
        return PassthroughColumn.of(name, self._table.column(name)).distinct

    def _exposures(self, suggested: Mapping[str, Suggestion], quasi: Sequence[str], person: str | None) -> Exposures:
        undecided = [
            name
            for name, one in suggested.items()
            if one.role == "decide" and one.column is not None and self._facts[name].distinct > 1
        ]
        # Those that tell most apart first, should there be too many.
        undecided.sort(key=lambda name: -self._facts[name].alone)
        chosen = {*[*quasi, *undecided][:MOST_CANDIDATES]}
        candidates = [name for name in self._names if name in chosen]
        if not candidates:
            return Exposures(())
        left = len(quasi) + len(undecided) - len(candidates)
        found = find_classes(self._memory, candidates if person is None else [*candidates, person])
        looked = exposures(with_one_null(found, candidates, self._nulls), candidates, person=person, preferred=quasi)
        if not left:
            return looked
        said = f"sets of columns were looked at among {len(candidates)} columns; {left:,} others were left out"
        return Exposures(looked.sets, (*looked.left_out, said))

    def _input(self) -> dict[str, Any]:
        settings = self._settings
        found = {"decimal": settings.decimal, "date_format": settings.date_format}
        said = {**self._given, **{key: value for key, value in found.items() if value is not None}}
        if settings.nulls != ("",):
            said["nulls"] = list(settings.nulls)
        return said

    def _column(self, suggestion: Suggestion) -> dict[str, Any]:
        if suggestion.role == "quasi-identifier" and suggestion.column is not None:
            return suggestion.column.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        return {"role": suggestion.role}

    def _proposed(self, name: str, suggestion: Suggestion) -> ProposedColumn:
        facts = self._facts.get(name)
        return ProposedColumn(
            name=name,
            role=suggestion.role,
            reason=suggestion.reason,
            distinct=0 if facts is None else facts.distinct,
            missing=0 if facts is None else self._records - facts.known,
            alone=0 if facts is None else facts.alone,
            described=suggestion.column,
        )


def _check_header(source: Source) -> None:
    """Refuse names that are cells of a record: they would stand in everything that is written."""
    if any(is_identifier(name) for name in source.names):
        raise InputError(
            "the names of the columns look like cells of a record, such as e-mail addresses or account numbers. Put a "
            "header over the table."
        )


def _is_unreadable(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind)) or isinstance(kind, pa.BaseExtensionType)
