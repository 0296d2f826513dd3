"""Error messages about a policy: pydantic finds what is wrong, and this module puts it into our words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from sfumato.errors import PolicyError
from sfumato.policy.toml_lines import KeyPath, Origin

# The names of the two forms of a taxonomy. Pydantic puts them into the path of an error, and _path removes them.
FILE_TAG: Final = "<file>"
GROUPING_TAG: Final = "<grouping>"

_EXPECTED = {
    "bool_type": "must be true or false",
    "path_type": "must be the path of a directory",
}
_TABLE_KINDS = {"model_type", "dict_type"}
_LONGEST_SHOWN = 40
_MOST_LISTED = 20


def wrong(text: str, *keys: str, show: bool = True) -> PydanticCustomError:
    """Make the error for a value that does not fit. ``text`` continues the sentence that begins with its name.

    ``keys`` lead from a table to the value that is to blame. ``show``: whether the message ends with the value.
    """
    return PydanticCustomError("wrong", "{text}", {"text": text, "keys": list(keys), "show": show and not keys})


def unknown_key(key: object, available: Sequence[str]) -> PydanticCustomError:
    return PydanticCustomError("unknown_key", "unknown key", {"keys": [str(key)], "available": list(available)})


def unknown_choice(key: str, value: object, available: Sequence[str]) -> PydanticCustomError:
    return PydanticCustomError(
        "unknown_choice", "unknown choice", {"keys": [key], "sentence": _one_of(available, value)}
    )


def explain(error: ValidationError, origin: Origin) -> PolicyError:
    """Return an error for the problem that stands first in the file."""
    problems = [(_path(problem), problem) for problem in error.errors(include_url=False)]
    path, problem = min(problems, key=lambda pair: origin.line(pair[0]) or 0)
    return PolicyError(origin.say(_sentence(path, problem), path))


def unknown_key_sentence(path: KeyPath, available: Sequence[str]) -> str:
    *table, key = path
    where = f" in [{_dotted(table)}]" if table else ""
    near = get_close_matches(str(key), available, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Available: {listed(available)}."
    return f"unknown key {_shown(key)}{where}. {hint}"


def listed(names: Iterable[str]) -> str:
    """Return the names in quotes; after the first twenty, only how many more there are."""
    quoted = [repr(name) for name in names]
    more = len(quoted) - _MOST_LISTED
    return ", ".join(quoted[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _sentence(path: KeyPath, problem: ErrorDetails) -> str:
    kind, context = problem["type"], problem.get("ctx", {})
    name, value = _name(path), problem["input"]
    if kind == "unknown_key":
        return unknown_key_sentence(path, context["available"])
    if kind == "wrong":
        return f"{name} {context['text']}{instead(value) if context['show'] else ''}."
    if kind == "value_error":
        return f"{name} {context['error']}{instead(value)}."
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        return f"{name} {_one_of(choices, value)}"
    if kind == "unknown_choice":
        return f"{name} {context['sentence']}"
    if kind in _TABLE_KINDS:
        return f"{_dotted(path)} must be a table{instead(value)}. Write [{_dotted(path)}] and its keys below."
    return f"{name} {_EXPECTED.get(kind, 'has a value that is not allowed')}{instead(value)}."


def _path(problem: ErrorDetails) -> KeyPath:
    """Return the keys that lead to the problem, as the user wrote them."""
    parts = problem["loc"]
    tags = {index for index in range(1, len(parts)) if parts[index - 1] == "taxonomy"}
    path = tuple(part for index, part in enumerate(parts) if not (index in tags and part in {FILE_TAG, GROUPING_TAG}))
    return (*path, *problem.get("ctx", {}).get("keys", ()))


def _name(path: KeyPath) -> str:
    """Return the name of a setting in messages, which fits a file, a flag and Python."""
    match path:
        case ("columns" | "derive", _, "[key]"):
            return "the name of a column"
        case ("derive", column, *keys) if keys:
            return f"{_dotted(keys)} of the derived column {_shown(column)}"
        case ("columns", column, *keys) if keys:
            return f"{_dotted(keys)} of column {_shown(column)}"
        case ("method" | "engine" as section, "name"):
            return str(section)
        case ("about" | "input" | "privacy" | "release" | "engine", key):
            return str(key)
    return _dotted(path) or "the table"


def _dotted(path: Iterable[str | int]) -> str:
    """Return a path in the syntax of TOML."""
    return ".".join(
        str(part) if re.fullmatch(r"[A-Za-z0-9_-]+", str(part)) else json.dumps(str(part), ensure_ascii=False)
        for part in path
    )


def _one_of(choices: Sequence[str], value: object) -> str:
    near = get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"must be one of {listed(choices)}{instead(value)}.{hint}"


def instead(value: object) -> str:
    """Return the end of a sentence that names the wrong value."""
    return f", not {_shown(value)}"


def _shown(value: object) -> str:
    """Return a value in a form that is short enough for one line of text."""
    match value:
        case bool():
            return str(value).lower()
        case int() if abs(value) >= 10**_LONGEST_SHOWN:
            return "a number of very many digits"
        case str() if len(value) > _LONGEST_SHOWN:
            return repr(value[:_LONGEST_SHOWN] + "...")
        case str():
            return repr(value)
        case int() | float():
            return str(value)
        case dict():
            return "a table"
        case list() | tuple():
            return "a list"
        case None:
            return "nothing"
    return f"a value of type {type(value).__name__}"
