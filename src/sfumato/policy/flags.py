"""Flags and keyword arguments over a policy, for the command line and for Python alike."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from sfumato.errors import PolicyError
from sfumato.policy.column_forms import ColumnForm
from sfumato.policy.column_settings import ColumnType, Grouping, Role
from sfumato.policy.model import Policy, PolicyLike
from sfumato.policy.privacy_settings import NullSensitive
from sfumato.policy.release_settings import BoxKind, FormulaHandling
from sfumato.policy.run_settings import EffortName, EngineName, LossName
from sfumato.policy.taxonomy_paths import FLAT, moved, path_text
from sfumato.policy.toml_lines import KeyPath, Origin
from sfumato.policy.written_text import WRITING_SETTINGS, WritingFlags

_REQUIREMENT = re.compile(r"(?P<kind>[\w-]+)\s*\(\s*(?P<column>[^,\s][^,]*?)\s*(?:,(?P<rest>.+))?\)")
_PARAMETER = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<value>[^,=]+?)\s*")

FormFlag = ColumnForm | Mapping[str, ColumnForm] | Mapping[str | None, ColumnForm]
TaxonomyFlag = str | os.PathLike[str] | Grouping | Mapping[str, Any]


class LevelFlags(TypedDict, total=False):
    """How much privacy. Studies of many releases take lists of these and leave the two flags out."""

    k: int | None
    """The records, or persons, that every class must have at least."""
    l: int | None
    """Frequency l-diversity of the one sensitive column."""


class SearchFlags(TypedDict, total=False):
    """How long a method searches. Bounds have an effort of their own and leave the two flags out."""

    effort: EffortName | None
    """How long the search for a smaller loss goes on, where the method has one."""
    seconds: float | None
    """How long it goes on in seconds; the same seed then no longer gives the same bytes."""


class UseFlags(TypedDict, total=False):
    """What the release is for, and the random numbers. Measuring takes its own and leaves the two flags out."""

    target: str | Sequence[str]
    """Columns that will be predicted from the release; one without a role becomes a column that is kept."""
    seed: int | None
    """The start of random numbers, for methods that use them."""


class CommonFlags(WritingFlags, total=False):
    """The flags that every function takes."""

    quasi_identifiers: str | Sequence[str]
    """Columns by which somebody could be recognised."""
    sensitive: str | Sequence[str]
    """Columns that must not be learnt about anybody."""
    identifiers: str | Sequence[str]
    """Columns that name somebody; they are never released."""
    drop: str | Sequence[str]
    """Columns that name nobody and are not released all the same, such as costs or free text."""
    pseudonyms: str | Sequence[str]
    """Columns that name somebody; they are released as keyed hashes, and accept_linkable must name them too."""
    other: str | Sequence[str] | None
    """"keep" or "drop" for columns without a role, or the names of those to keep; every column then needs a role."""
    require: str | Sequence[str]
    """Requirements on sensitive columns, each written as ``distinct(diagnosis, l=3)``."""
    person: str | None
    """The column that says whose a record is; one without a role becomes an identifier."""
    pseudonym_key: str | os.PathLike[str] | None
    """The key that pseudonyms are made with. A relative path starts from the working directory."""
    joint: bool | None
    """Whether each sensitive column must be protected from those who know the others."""
    null_sensitive: NullSensitive | None
    """Whether null in a sensitive column is a missing value or a value like any other."""
    taxonomy: Mapping[str, TaxonomyFlag] | None
    """By column: a file, "flat" or a rule. Relative paths start from the working directory."""
    select: str | Sequence[str]
    """Records that will be selected from the release, such as ``age > 40 and sex = 'Male'``."""
    method: str | None
    """How classes are found: the name of an ordering, a tree or another method, or "auto"."""
    loss: LossName | None
    """What a search lowers: "ncp", the certainty penalty, or "sse", the sum of squares around the means of classes."""
    least_gain: float | None
    """Where a split gains less than this for the workload, regions are divided at the median."""
    cells: bool | None
    """Whether "global" suppresses single cells before it leaves out whole records."""
    engine: EngineName | None
    """What the computation runs on."""
    memory: int | str | None
    """How much memory a run may take, in bytes or as text such as "2GB"."""
    sampled: bool | None
    """Whether Mondrian on disk finds its first splits on a sample."""
    sample_size: int | None
    """How many records such a sample has."""
    sample_alpha: float | None
    """The level of the tests that a split on a sample must pass."""
    sample_tests: bool | None
    """Whether a split on a sample must pass tests."""
    frequency_groups: int | None
    """How many frequency groups Mondrian on disk counts at once: F_CACHE."""
    keep_order: bool | None
    """Whether the rows keep the order of the input."""
    max_suppressed: float | None
    """The share of the records that may be left out."""
    suppression_cost: float | None
    """What a record that is left out costs, from 0 to 1: a share of all its information."""
    form: FormFlag | None
    """What stands beside the labels of numbers and dates: a word for all columns, or by column, where None is the word
    for all others."""
    boxes: BoxKind | None
    """Whether a class shows the smallest box around its records, or its whole region."""
    formulas: FormulaHandling | None
    """Whether cells of CSV that a spreadsheet takes for formulas stay as they are, or begin with an apostrophe."""
    accept_linkable: str | Sequence[str]
    """Columns to release although they single out records; they are added to those of the policy."""
    derive: Mapping[str, Mapping[str, Any]] | None
    """By new column: how it is made before roles apply, as the keys of ``[derive.NAME]`` in a policy file say it."""
    input: Mapping[str, Any] | None
    """How text is read: the keys of ``[input]`` in a policy file."""
    round: Mapping[str, float] | None
    """By numeric column: the released bounds are multiples of this."""
    bottom: Mapping[str, float] | None
    """By numeric column: numbers from here down are one value, shown as 18-."""
    top: Mapping[str, float] | None
    """By numeric column: numbers from here up are one value, shown as 90+."""
    finest: Mapping[str, int | str] | None
    """By quasi-identifier: the finest level of its taxonomy that may be shown, by name or number."""
    coarsest: Mapping[str, int | str] | None
    """By quasi-identifier: the coarsest level of its taxonomy that may be shown, by name or number."""
    weight: Mapping[str, float] | None
    """By quasi-identifier: how much it counts in losses."""
    type: Mapping[str, ColumnType] | None
    """By quasi-identifier: numeric, categorical or date."""
    column_nulls: Mapping[str, str | Sequence[str]] | None
    """By column that is released: texts that mean a missing value there, beside those of ``input``."""


class PolicyFlags(CommonFlags, LevelFlags, SearchFlags, UseFlags, total=False):
    """Everything that can be laid over a policy. A flag that is absent or None leaves the policy as it is."""


# Flags whose value goes into the policy as it is: the section and the key that hold it.
_PLAIN_SETTINGS: Final = {
    "k": ("privacy", "k"),
    "person": ("privacy", "person"),
    "joint": ("privacy", "joint"),
    "null_sensitive": ("privacy", "null_sensitive"),
    "method": ("method", "name"),
    **{name: ("method", name) for name in ("loss", "least_gain", "cells", "effort", "seconds")},
    "engine": ("engine", "name"),
    **{name: ("engine", name) for name in ("memory", "sampled", "frequency_groups")},
    **{name: ("engine", name) for name in ("sample_size", "sample_alpha", "sample_tests")},
    "seed": ("release", "seed"),
    "keep_order": ("release", "keep_order"),
    "max_suppressed": ("release", "max_suppressed_fraction"),
    "suppression_cost": ("release", "suppression_cost"),
    "boxes": ("release", "boxes"),
    "formulas": ("release", "formulas"),
    **WRITING_SETTINGS,
}

# The roles beside quasi-identifiers whose columns may have a setting.
_FURTHER_ROLES: Final[Mapping[str, tuple[Role, ...]]] = {"taxonomy": ("sensitive",), "nulls": ("sensitive", "other")}


def merge_flags(policy: PolicyLike | None = None, **flags: Unpack[PolicyFlags]) -> Policy:
    """Return the policy with the flags laid over it; without a policy, the policy that the flags alone make.

    A column that a flag gives another role loses all its other settings. Columns of
    ``accept_linkable`` are added to those of the policy; every other flag replaces what the policy says.
    """
    _refuse_unknown(flags)
    start = Policy.of(policy)
    merged = _Merged(start)
    other = flags.get("other")
    kept: str | Sequence[str] = ()
    if isinstance(other, str):
        merged.put(other, "other")
    elif other is not None:
        kept = other
        merged.drop("other")
    merged.put_roles(
        {
            "quasi-identifier": flags.get("quasi_identifiers", ()),
            "sensitive": flags.get("sensitive", ()),
            "identifier": flags.get("identifiers", ()),
            "drop": flags.get("drop", ()),
            "pseudonym": flags.get("pseudonyms", ()),
            "other": kept,
        }
    )
    person = flags.get("person")
    if person is not None:
        merged.put_person(person)
    if target := flags.get("target"):
        merged.put_targets(_names(target))
    if select := flags.get("select"):
        merged.put([{"where": where} for where in _names(select)], "workload", "selection")
    merged.describe("type", flags.get("type"))
    merged.describe("round", flags.get("round"))
    merged.describe("bottom", flags.get("bottom"))
    merged.describe("top", flags.get("top"))
    merged.describe("finest", flags.get("finest"))
    merged.describe("coarsest", flags.get("coarsest"))
    merged.describe("weight", flags.get("weight"))
    merged.describe("nulls", {name: list(_names(tokens)) for name, tokens in (flags.get("column_nulls") or {}).items()})
    form_of_all, form_by_column = _forms(flags.get("form"))
    if form_of_all is not None:
        merged.put(form_of_all, "release", "form")
    merged.describe("form", form_by_column)
    taxonomies = flags.get("taxonomy") or {}
    merged.describe("taxonomy", {name: _seen_from(start.base, value) for name, value in taxonomies.items()})
    for name, rule in (flags.get("derive") or {}).items():
        groups = rule.get("groups")
        located = {"groups": _seen_from(start.base, Path(groups))} if isinstance(groups, str | os.PathLike) else {}
        merged.put_derived(name, {**rule, **located})
    for key, value in (flags.get("input") or {}).items():
        is_path = key == "layout" and isinstance(value, str | os.PathLike)
        merged.put(_seen_from(start.base, Path(value)) if is_path else value, "input", key)
    for flag, path in _PLAIN_SETTINGS.items():
        setting = flags.get(flag)
        if setting is not None:
            merged.put(setting, *path)
    key_file = flags.get("pseudonym_key")
    if key_file is not None:
        merged.put(_seen_from(start.base, Path(key_file)), "privacy", "pseudonym_key")
    l = flags.get("l")
    if l is not None:
        merged.put_diversity(l)
    for text in _names(flags.get("require", ())):
        merged.put_requirement(_requirement(text))
    if accepted := flags.get("accept_linkable"):
        merged.put(list(dict.fromkeys([*start.accept_linkable, *_names(accepted)])), "accept_linkable")
    return merged.policy()


def _refuse_unknown(flags: Iterable[str]) -> None:
    """Raise TypeError for a misspelt keyword argument, as a function with named parameters does."""
    known = sorted(PolicyFlags.__optional_keys__)
    for flag in flags:
        if flag not in known:
            near = get_close_matches(flag, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Available: {', '.join(known)}."
            raise TypeError(f"unexpected keyword argument {flag!r}. {hint}")


class _Merged:
    """The contents of a policy, changed key by key. An error about a changed key no longer names a line of the file."""

    def __init__(self, start: Policy) -> None:
        self._start = start
        self._data = start.to_dict()
        self._lines: dict[KeyPath, int | None] = dict(start.origin.lines)

    def put(self, value: Any, *path: str) -> None:
        table = self._data
        for part in path[:-1]:
            table = table.setdefault(part, {})
        table[path[-1]] = value
        for end in range(1, len(path)):
            self._lines.setdefault(path[:end], None)
        self._lines[path] = None

    def drop(self, key: str) -> None:
        self._data.pop(key, None)
        self._lines[(key,)] = None

    def put_roles(self, named: Mapping[Role, str | Sequence[str]]) -> None:
        role_of: dict[str, Role] = {}
        for role, names in named.items():
            for name in _names(names):
                if role_of.setdefault(name, role) != role:
                    raise PolicyError(
                        f"the column {name!r} is in two roles, {role_of[name]!r} and {role!r}. Name it in one of them."
                    )
        for name, role in role_of.items():
            if self._role(name) != role:
                self.columns.pop(name, None)
                self.put(role, "columns", name, "role")

    def describe(self, key: str, values: Mapping[str, Any] | None) -> None:
        for name, value in (values or {}).items():
            further = _FURTHER_ROLES.get(key, ())
            if self._role(name) not in ("quasi-identifier", *further):
                also = "".join(f" or {role}" for role in further)
                raise PolicyError(
                    f"{key} is given for the column {name!r}, which is not a quasi-identifier{also}. "
                    f"Name it among the quasi-identifiers, or leave out its {key}."
                )
            self.put(value, "columns", name, key)

    def put_person(self, name: str) -> None:
        if self._role(name) is None:
            self.put("identifier", "columns", name, "role")

    def put_derived(self, name: str, rule: Mapping[str, Any]) -> None:
        """Derive a column. The rule replaces one of the same name."""
        self._data.get("derive", {}).pop(name, None)
        for key in {path[2] for path in self._lines if path[:2] == ("derive", name) and len(path) > 2}:
            self._lines[("derive", name, key)] = None
        for key, value in rule.items():
            self.put(value, "derive", name, key)

    def put_targets(self, names: Sequence[str]) -> None:
        """Set the columns to predict; the data decide whether each is categorical or numeric."""
        for kind in ("classification", "regression"):
            if self._data.get("workload", {}).pop(kind, None) is not None:
                self._lines[("workload", kind)] = None
        self.put(list(dict.fromkeys(names)), "workload", "targets")
        for name in names:
            if self._role(name) is None:
                self.put("other", "columns", name, "role")

    def put_diversity(self, l: int) -> None:
        """Require frequency l-diversity of the one sensitive column."""
        sensitive = [name for name, column in self.columns.items() if column.get("role") == "sensitive"]
        if len(sensitive) != 1:
            count = "no column is" if not sensitive else f"{len(sensitive)} columns are"
            raise PolicyError(
                f"l is given, but {count} sensitive. Name one sensitive column, or name the column that l is for: "
                "--require 'frequency(COLUMN, l=3)'."
            )
        self.put_requirement({"attribute": sensitive[0], "kind": "frequency", "l": l})

    def put_requirement(self, requirement: dict[str, Any]) -> None:
        """Add a requirement. It replaces those of the same kind and column."""
        before = self._data.get("privacy", {}).get("sensitive", [])
        same = (requirement["attribute"], requirement["kind"])
        kept = [other for other in before if (other.get("attribute"), other.get("kind")) != same]
        self.put([*kept, requirement], "privacy", "sensitive")

    def policy(self) -> Policy:
        origin = Origin(self._start.origin.file, self._lines)
        return Policy.from_dict(self._data, self._start.base, origin=origin, places=self._start.places)

    @property
    def columns(self) -> dict[str, dict[str, Any]]:
        columns: dict[str, dict[str, Any]] = self._data.setdefault("columns", {})
        return columns

    def _role(self, name: str) -> str | None:
        role: str | None = self.columns.get(name, {}).get("role")
        return role


def _names(names: str | Sequence[str]) -> Sequence[str]:
    return (names,) if isinstance(names, str) else names


def _forms(form: FormFlag | None) -> tuple[ColumnForm | None, dict[str, ColumnForm]]:
    """Return the form of all columns, and those of single ones."""
    if not isinstance(form, Mapping):
        return form, {}
    by_column = {name: each for name, each in form.items() if name is not None}
    return next((each for name, each in form.items() if name is None), None), by_column


def _requirement(text: str) -> dict[str, Any]:
    """Parse ``kind(column, name=value, ...)`` into what a policy holds."""
    match = _REQUIREMENT.fullmatch(text.strip())
    arguments = match["rest"].split(",") if match and match["rest"] else []
    parameters = [_PARAMETER.fullmatch(argument) for argument in arguments]
    if match is None or not all(parameters):
        raise PolicyError(
            f"the requirement {text!r} is not understood. Write it as kind(column, name=value), for example "
            "frequency(diagnosis, l=3) or recursive(diagnosis, c=2, l=3)."
        )
    requirement: dict[str, Any] = {"attribute": match["column"], "kind": match["kind"]}
    for parameter in filter(None, parameters):
        name = parameter["name"]
        if name in requirement:
            raise PolicyError(f"the requirement {text!r} sets {name!r} twice. Leave one of the two out.")
        requirement[name] = _plain_value(parameter["value"])
    return requirement


def _plain_value(text: str) -> Any:
    """Return the value that TOML would read; a bare word stays text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # not TOML, or a number or nesting beyond what Python reads
        return text


def _seen_from(base: Path | None, taxonomy: TaxonomyFlag) -> TaxonomyFlag:
    """Return the taxonomy of a flag with its path as the policy would hold it."""
    if base is None or taxonomy == FLAT or not isinstance(taxonomy, str | os.PathLike):
        return taxonomy
    return moved(path_text(taxonomy), Path.cwd(), base)
