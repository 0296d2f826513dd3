"""What is wrong with a text that is not TOML, and what to write instead.

``tomllib`` says where it stopped. What the author meant stands on that line: a text without its second quotation mark,
a name that needs quotation marks, a word that is not a value.
"""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*(\[{1,2})([^\[\]#]*?)(\]{0,2})\s*(#.*)?")
_ASSIGNMENT = re.compile(r"\s*([^=\[\]#]+?)\s*=\s*(.*?)\s*")
_WITH_COLON = re.compile(r"\s*([A-Za-z0-9_-]+)\s*:\s*(.*?)\s*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_QUOTED = re.compile(r'"[^"]*"|\'[^\']*\'')
_PARTS = re.compile(r'(?:"[^"]*"|\'[^\']*\'|[^."\'])+')
_WORDS = re.compile(r"[^\W\d][\w -]*")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_CURLY = dict.fromkeys("“”„‟«»", '"') | dict.fromkeys("\u2018\u2019\u201a\u201b", "'")
_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_TWICE = re.compile(r"Cannot declare \((.*?),?\) twice")
_LONGEST_SHOWN = 60


def syntax_sentence(file: str, text: str, message: str) -> str:
    """Put the error of ``tomllib`` about a text into a sentence with the line, and with what to write there."""
    lines = text.split("\n")
    position = _POSITION.search(message)
    reason = message[: position.start()] if position else message
    if position and position[1]:
        number = int(position[1])
    else:
        number = text.count("\n", 0, len(text.rstrip())) + 1
        if reason in ("Unclosed array", "Unterminated string", "Expected \"'''\"", 'Expected "\'"'):
            number = _opening_line(lines, number)
    line = lines[number - 1]
    column = int(position[2]) if position and position[2] else len(line) + 1
    return f"{file}, line {number}: not valid TOML: {_fault(line, column, reason)}"


def _opening_line(lines: list[str], last: int) -> int:
    """Return the line of the key whose value never ends: the last line that assigns one."""
    assigning = (number for number in range(last, 0, -1) if _ASSIGNMENT.fullmatch(lines[number - 1]))
    return next(assigning, last)


def _fault(line: str, column: int, reason: str) -> str:
    """Return what is wrong in a line, and what to write."""
    curly = next((mark for mark in _QUOTED.sub("", line) if mark in _CURLY), None)
    if curly is not None and "Illegal character" not in reason:
        return f'{curly} is not a quotation mark of TOML. Write {_shown(_straight(line))} with the plain marks " ".'
    if reason.startswith("Illegal character '\\n'") or reason in ("Unterminated string", 'Expected "\'"'):
        return _open_quote(line)
    if reason.startswith("Illegal character"):
        return "the line holds an invisible character that TOML does not allow. Delete it, or write the line anew."
    if reason.startswith("Unescaped '\\'"):
        return (
            "unescaped '\\' in a string. Write / instead, or put the text between single quotation marks: 'C:\\data'."
        )
    if twice := _TWICE.match(reason):
        name = ".".join(part.strip().strip("'\"") for part in twice[1].split(", "))
        return f"the section [{name}] is there twice. Write all its keys into the first one."
    if reason == "Cannot overwrite a value":
        return "this key is there twice. Remove one of the two."
    if line.lstrip().startswith("[") and reason.startswith(("Expected ']'", "Invalid initial character for a key")):
        return _header_fault(line)
    if reason == "Unclosed array" or (reason == "Invalid value" and line.rstrip().endswith("[")):
        return _unclosed_array(line, column)
    if reason == "Invalid value" and _HEADER.fullmatch(line):
        return "a list that begins above this line is not closed. Write ] at its end."
    if reason == "Unclosed inline table":
        return "a table between { and } must end on the line on which it begins. Close it, or write it on one line."
    return _assignment_fault(line, column, reason)


def _open_quote(line: str) -> str:
    what = "a quotation mark is missing: a text must end on the line on which it begins"
    if header := _HEADER.fullmatch(line):
        return f"{what}. Close it before the bracket{_example(_header(header[1], header[2]))}."
    assignment = _ASSIGNMENT.fullmatch(line)
    if assignment is None:
        return f"{what}. Close it."
    key, value = assignment.groups()
    word = value[1:]
    if value[:1] in ('"', "'") and not any(mark in word for mark in "\"'[],#"):
        return f"{what}{_example(f'{key} = {value[0]}{word.strip()}{value[0]}')}."
    return f"{what}. Close every text in the value of {key}."


def _header_fault(line: str) -> str:
    header = _HEADER.fullmatch(line)
    if header is None:
        return "the name of a section is not understood. Write it between brackets, such as [privacy]."
    correct = _header(header[1], header[2])
    if header[3] != "]" * len(header[1]) and not _needs_quotes(header[2]):
        return f"a bracket is missing at the end of the section's name{_example(correct)}."
    return (
        "a name with anything but the letters a to z, digits, - and _ stands between quotation marks"
        f"{_example(correct)}."
    )


def _header(brackets: str, name: str) -> str:
    """Return the header of a section, each part of its name in quotation marks if it needs them."""
    parts = [part.strip() for part in _PARTS.findall(name)]
    return brackets + ".".join(map(_key, parts)) + "]" * len(brackets)


def _needs_quotes(name: str) -> bool:
    return any(_key(part.strip()) != part.strip() for part in _PARTS.findall(name))


def _key(name: str) -> str:
    if _BARE.fullmatch(name) or _QUOTED.fullmatch(name):
        return name
    return '"' + name.replace('"', "").replace("\\", "\\\\") + '"'


def _unclosed_array(line: str, column: int) -> str:
    if line[: column - 1].count('"') % 2 == 0 and line.count('"') % 2:
        return "a quotation mark is missing in a list. Close every text in it."
    return 'a list is not closed, or a comma between two of its items is missing. Write it as [1, 2] or ["a", "b"].'


def _assignment_fault(line: str, column: int, reason: str) -> str:
    if with_colon := _WITH_COLON.fullmatch(line):
        return (
            f"a key and its value are separated by =, not by a colon{_example(f'{with_colon[1]} = {with_colon[2]}')}."
        )
    assignment = _ASSIGNMENT.fullmatch(line)
    if assignment is None:
        return f"{reason[:1].lower()}{reason[1:]}. Write a key and its value, such as k = 10."
    key, value = assignment.groups()
    if not _BARE.fullmatch(key) and not reason.startswith("Expected newline"):
        return (
            "a name with anything but the letters a to z, digits, - and _ stands between quotation marks"
            f"{_example(f'{_key(key)} = {value}')}."
        )
    if not value:
        return f"the key {key} has no value. Write one, or remove the line."
    if value.lower() in ("true", "false"):
        return f"true and false are written in small letters{_example(f'{key} = {value.lower()}')}."
    if _WORDS.fullmatch(value):
        quoted = f'{key} = "{value}"'
        return f"a text stands between quotation marks{_example(quoted)}."
    if _DECIMAL_COMMA.fullmatch(value):
        number = value.replace(",", ".")
        return f"a number has a decimal point, not a comma{_example(f'{key} = {number}')}."
    return f"{reason[:1].lower()}{reason[1:]}. Put texts between quotation marks, and items of a list between [ and ]."


def _straight(line: str) -> str:
    return "".join(_CURLY.get(character, character) for character in line.strip())


def _example(text: str) -> str:
    """Return how the line should be written, unless that is too long to help."""
    return f". Write {text}" if len(text) <= _LONGEST_SHOWN else ""


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else "the line"
