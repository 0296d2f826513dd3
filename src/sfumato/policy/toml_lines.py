"""The line of each key of a TOML text, so that an error can name it.

``tomllib`` has read the text before, so nothing is validated here. Keys inside an inline table have the line of the key
that holds the table.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KeyPath = tuple[str | int, ...]

_BASIC = r'"(?:[^"\\\n]|\\.)*"'
_LITERAL = r"'[^'\n]*'"
_PART = rf"(?:{_BASIC}|{_LITERAL}|[A-Za-z0-9_-]+)"
_KEY = re.compile(rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*")
_BLANK = re.compile(r"(?:\s+|#[^\n]*)*")
_HEADER = re.compile(r"(\[{1,2})[ \t]*")
# A closing delimiter of three quotes may have up to two more quotes before it that belong to the string.
_MULTILINE = r'"""(?:[^\\]|\\.)*?"{3,5}' + "|" + r"'''.*?'{3,5}"
_VALUE_TOKEN = re.compile(rf"{_MULTILINE}|{_BASIC}|{_LITERAL}|#[^\n]*|[^\"'#\[\]{{}}\n]+|.", re.DOTALL)


@dataclass(frozen=True)
class Origin:
    """The file that a policy was read from, and the line of every key in it.

    A line of None marks a value that a flag has replaced: an error about it must not blame the file.
    """

    file: str | None = None
    lines: Mapping[KeyPath, int | None] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the nearest table around it if the key itself is absent."""
        nearest = self._nearest(path)
        return None if nearest is None else self.lines[nearest]

    def place(self, path: KeyPath = ()) -> str:
        """Return ``P.toml, line 12`` or the known part of it; empty for a value that is not from the file."""
        nearest = self._nearest(path)
        if self.file is None or nearest is None:
            return self.file or ""
        line = self.lines[nearest]
        return "" if line is None else f"{self.file}, line {line}"

    def say(self, text: str, path: KeyPath = ()) -> str:
        """Return a message that begins with the file and line of a key."""
        place = self.place(path)
        return f"{place}: {text}" if place else text

    def _nearest(self, path: KeyPath) -> KeyPath | None:
        return next((path[:end] for end in range(len(path), 0, -1) if path[:end] in self.lines), None)


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line of every key and table header, counted from 1. Elements of arrays are numbered from 0."""
    lines: dict[KeyPath, int] = {}
    elements: dict[KeyPath, int] = {}
    table: KeyPath = ()
    line, counted = 1, 0
    position = _skip_blank(text, 0)
    while position < len(text):
        line += text.count("\n", counted, position)
        counted = position
        if header := _HEADER.match(text, position):
            parts, end = _key(text, header.end())
            is_element = header[1] == "[["
            table = _table(parts, elements, is_element)
            _note(lines, table[:-1] if is_element else table, line)
            lines[table] = line
            position = text.index("]", end) + len(header[1])
        else:
            parts, end = _key(text, position)
            _note(lines, table + parts, line)
            position = _skip_value(text, end)
        position = _skip_blank(text, position)
    return lines


def _note(lines: dict[KeyPath, int], path: KeyPath, line: int) -> None:
    """Record the line of a key, and of the tables that it opens, unless they were opened before."""
    for end in range(1, len(path) + 1):
        lines.setdefault(path[:end], line)


def _table(parts: KeyPath, elements: dict[KeyPath, int], is_element: bool) -> KeyPath:
    """Return the full path of a header. The name of an array of tables stands for its newest element."""
    path: KeyPath = ()
    for depth, part in enumerate(parts, start=1):
        path = (*path, part)
        if is_element and depth == len(parts):
            elements[path] = elements.get(path, -1) + 1
        if path in elements:
            path = (*path, elements[path])
    return path


def _key(text: str, position: int) -> tuple[KeyPath, int]:
    """Return the parts of the dotted key at this position, and the position where it ends."""
    match = _KEY.match(text, position)
    assert match is not None
    parts: list[str] = []
    inner: Any = tomllib.loads(f"{match[0]} = 0")
    while isinstance(inner, dict):
        ((part, inner),) = inner.items()
        parts.append(part)
    return tuple(parts), match.end()


def _skip_value(text: str, position: int) -> int:
    """Return the end of the value at this position: the next line break outside brackets, strings and comments."""
    depth = 0
    while token := _VALUE_TOKEN.match(text, position):
        if token[0] == "\n" and depth == 0:
            break
        depth += (token[0] in "[{") - (token[0] in "]}")
        position = token.end()
    return position


def _skip_blank(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    assert match is not None
    return match.end()
