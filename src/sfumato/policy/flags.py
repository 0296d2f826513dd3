"""Flags and keyword arguments over a policy: the command line and ``sfumato.anonymize`` take the same way."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.errors import PolicyError
from sfumato.policy.model import FLAT, ColumnType, Grouping, Policy, Role, moved, path_text
from sfumato.policy.toml_lines import KeyPath, Origin

_REQUIREMENT = re.compile(r"(?P<kind>[\w-]+)\s*\(\s*(?P<column>[^,\s][^,]*?)\s*(?:,(?P<rest>.+))?\)")
_PARAMETER = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<value>[^,=]+?)\s*")

TaxonomyFlag = str | os.PathLike[str] | Grouping | Mapping[str, Any]


def merge_flags(
    policy: Policy | None = None,
    *,
    quasi_identifiers: str | Sequence[str] = (),
    sensitive: str | Sequence[str] = (),
    identifiers: str | Sequence[str] = (),
    other: str | Sequence[str] | None = None,
    k: int | None = None,
    l: int | None = None,
    require: str | Sequence[str] = (),
    person: str | None = None,
    joint: bool | None = None,
    null_sensitive: str | None = None,
    taxonomy: Mapping[str, TaxonomyFlag] | None = None,
    target: str | Sequence[str] = (),
    select: str | Sequence[str] = (),
    method: str | None = None,
    least_gain: float | None = None,
    effort: str | None = None,
    seconds: float | None = None,
    engine: str | None = None,
    memory: int | str | None = None,
    sampled: bool | None = None,
    seed: int | None = None,
    keep_order: bool | None = None,
    max_suppressed: float | None = None,
    form: str | None = None,
    boxes: str | None = None,
    accept_linkable: str | Sequence[str] = (),
    input: Mapping[str, Any] | None = None,
    round: Mapping[str, float] | None = None,
    weight: Mapping[str, float] | None = None,
    type: Mapping[str, ColumnType] | None = None,
) -> Policy:
    """The policy with the flags over it; without a policy, the policy that the flags alone make.

    A column named in a role changes its role and keeps nothing that does not fit the new one. ``other`` is "keep",
    "drop", or the names of the columns to keep, where every column left must then have a role. Columns of
    ``accept_linkable`` are added to those of the policy; anything else replaces what the policy says. Relative
    taxonomy paths start from the working directory. ``l`` asks for frequency l-diversity of the sensitive column,
    ``require`` for any requirement, written as ``distinct(diagnosis, l=3)``. ``person`` names the column that says
    whose a record is; one without a role becomes an identifier. ``target`` names what will be predicted from the
    release, ``select`` which records will be selected from it, such as ``age > 40 and sex = 'Male'``; a target without
    a role becomes a column that is kept. ``max_suppressed`` is the share of the records that may be left out.
    """
    start = policy or Policy()
    merged = _Merged(start)
    kept: str | Sequence[str] = ()
    if isinstance(other, str):
        merged.put(other, "other")
    elif other is not None:
        kept = other
        merged.drop("other")
    merged.put_roles(
        {"quasi-identifier": quasi_identifiers, "sensitive": sensitive, "identifier": identifiers, "other": kept}
    )
    if person is not None:
        merged.put_person(person)
    if target:
        merged.put_targets(_names(target))
    if select:
        merged.put([{"where": where} for where in _names(select)], "workload", "selection")
    merged.describe("type", type)
    merged.describe("round", round)
    merged.describe("weight", weight)
    merged.describe("taxonomy", {name: _seen_from(start.base, value) for name, value in (taxonomy or {}).items()})
    for key, value in (input or {}).items():
        merged.put(value, "input", key)
    settings = {
        ("privacy", "k"): k,
        ("privacy", "person"): person,
        ("privacy", "joint"): joint,
        ("privacy", "null_sensitive"): null_sensitive,
        ("method", "name"): method,
        ("method", "least_gain"): least_gain,
        ("method", "effort"): effort,
        ("method", "seconds"): seconds,
        ("engine", "name"): engine,
        ("engine", "memory"): memory,
        ("engine", "sampled"): sampled,
        ("release", "seed"): seed,
        ("release", "keep_order"): keep_order,
        ("release", "max_suppressed_fraction"): max_suppressed,
        ("release", "form"): form,
        ("release", "boxes"): boxes,
    }
    for (section, key), setting in settings.items():
        if setting is not None:
            merged.put(setting, section, key)
    if l is not None:
        merged.put_diversity(l)
    for text in _names(require):
        merged.put_requirement(_requirement(text))
    if accept_linkable:
        merged.put(list(dict.fromkeys([*start.accept_linkable, *_names(accept_linkable)])), "accept_linkable")
    return merged.policy()


class _Merged:
    """The contents of a policy, changed key by key; a changed key no longer counts as the file's."""

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
        given: dict[str, Role] = {}
        for role, names in named.items():
            for name in _names(names):
                if given.setdefault(name, role) != role:
                    raise PolicyError(
                        f"the column {name!r} is in two roles, {given[name]!r} and {role!r}. Name it in one of them."
                    )
        for name, role in given.items():
            if self._role(name) != role:
                self.columns.pop(name, None)
                self.put(role, "columns", name, "role")

    def describe(self, key: str, values: Mapping[str, Any] | None) -> None:
        for name, value in (values or {}).items():
            allowed = {"quasi-identifier", "sensitive"} if key == "taxonomy" else {"quasi-identifier"}
            if self._role(name) not in allowed:
                also = " or sensitive" if key == "taxonomy" else ""
                raise PolicyError(
                    f"{key} is given for the column {name!r}, which is not a quasi-identifier{also}. "
                    f"Name it among the quasi-identifiers, or leave out its {key}."
                )
            self.put(value, "columns", name, key)

    def put_person(self, name: str) -> None:
        if self._role(name) is None:
            self.put("identifier", "columns", name, "role")

    def put_targets(self, names: Sequence[str]) -> None:
        """What is to be predicted, of which the data say whether it is classes or numbers."""
        for kind in ("classification", "regression"):
            if self._data.get("workload", {}).pop(kind, None) is not None:
                self._lines[("workload", kind)] = None
        self.put(list(dict.fromkeys(names)), "workload", "targets")
        for name in names:
            if self._role(name) is None:
                self.put("other", "columns", name, "role")

    def put_diversity(self, l: int) -> None:
        """Frequency l-diversity of the one sensitive column."""
        sensitive = [name for name, column in self.columns.items() if column.get("role") == "sensitive"]
        if len(sensitive) != 1:
            count = "no column is" if not sensitive else f"{len(sensitive)} columns are"
            raise PolicyError(
                f"l is given, but {count} sensitive. Name one sensitive column, or say which is meant: "
                "--require 'frequency(COLUMN, l=3)'."
            )
        self.put_requirement({"attribute": sensitive[0], "kind": "frequency", "l": l})

    def put_requirement(self, asked: dict[str, Any]) -> None:
        """One more requirement, in the place of what the policy says of the same kind and column."""
        before = self._data.get("privacy", {}).get("sensitive", [])
        same = (asked["attribute"], asked["kind"])
        kept = [one for one in before if (one.get("attribute"), one.get("kind")) != same]
        self.put([*kept, asked], "privacy", "sensitive")

    def policy(self) -> Policy:
        origin = Origin(self._start.origin.file, self._lines)
        return Policy.from_dict(self._data, self._start.base, origin=origin)

    @property
    def columns(self) -> dict[str, dict[str, Any]]:
        columns: dict[str, dict[str, Any]] = self._data.setdefault("columns", {})
        return columns

    def _role(self, name: str) -> str | None:
        role: str | None = self.columns.get(name, {}).get("role")
        return role


def _names(names: str | Sequence[str]) -> Sequence[str]:
    return (names,) if isinstance(names, str) else names


def _requirement(text: str) -> dict[str, Any]:
    """``kind(column, name=value, ...)`` as the policy holds it."""
    match = _REQUIREMENT.fullmatch(text.strip())
    given = match["rest"].split(",") if match and match["rest"] else []
    parts = [_PARAMETER.fullmatch(part) for part in given]
    if match is None or not all(parts):
        raise PolicyError(
            f"the requirement {text!r} is not understood. Write it as kind(column, name=value), for example "
            "frequency(diagnosis, l=3) or recursive(diagnosis, c=2, l=3)."
        )
    asked: dict[str, Any] = {"attribute": match["column"], "kind": match["kind"]}
    for part in filter(None, parts):
        if part["name"] in asked:
            raise PolicyError(f"the requirement {text!r} says {part['name']!r} twice. Leave one of the two out.")
        asked[part["name"]] = _plain_value(part["value"])
    return asked


def _plain_value(text: str) -> Any:
    """What TOML would make of it; a word stays one."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # not TOML, or a number or nesting beyond what Python reads
        return text


def _seen_from(base: Path | None, taxonomy: TaxonomyFlag) -> TaxonomyFlag:
    """A taxonomy given in a flag, with its path as the policy would hold it."""
    if base is None or taxonomy == FLAT or not isinstance(taxonomy, str | os.PathLike):
        return taxonomy
    return moved(path_text(taxonomy), Path.cwd(), base)
