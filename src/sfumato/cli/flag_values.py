"""What the text of a flag means: lists of columns, COL=VALUE pairs, numbers and ranges, the policy file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sfumato.errors import UsageError

if TYPE_CHECKING:
    from sfumato.policy import Policy

Value = TypeVar("Value")

RANGE = re.compile(r"(\d+)(?:\s*\.\.\s*(\d+))?")
SHARES = re.compile(r"(0?\.\d{1,18}|0)(?:\s*\.\.\s*(0?\.\d{1,18}|0))?")
STEPS = 10  # from one end of a range of shares to the other
MOST_VALUES = 1000
LARGEST_DIGITS = 18
CALL = re.compile(r"(?P<name>[a-z-]+)\s*\((?P<arguments>.*)\)")
DERIVATIONS = ("years(FROM,TO)", "first(COL,N)", "year(COL)", "groups(COL,FILE,LEVEL)", "ready(COL,NAME,LEVEL)")


def load_policy(file: Path | None) -> Policy | None:
    """Load the policy of ``--policy``, if there is one."""
    from sfumato.policy import Policy
    from sfumato.tables.targets.staging import recover

    if file is None:
        return None
    recover(file)
    return Policy.load(file)


def column_names(flag: str, values: Sequence[str] | None) -> list[str]:
    """Split every value of a repeated flag at its commas into the names of columns."""
    names = [name.strip() for value in values or () for name in value.split(",")]
    if "" in names:
        raise UsageError(f"{flag} has an empty name in its list. Separate the names of columns by single commas.")
    return names


def by_column(
    flag: str, metavar: str, values: Sequence[str] | None, read: Callable[[str], Value | None]
) -> dict[str, Value]:
    """Read a repeated flag of the form COL=VALUE; ``read`` returns None for a value that it does not understand."""
    by_name: dict[str, Value] = {}
    for value in values or ():
        name, equals, text = value.partition("=")
        meaning = read(text.strip())
        if not equals or not name.strip() or not text.strip() or meaning is None:
            raise UsageError(f"{flag} {value!r} is not understood. Write it as {flag} COL={metavar}.")
        if name.strip() in by_name:
            raise UsageError(f"{flag} is given twice for the column {name.strip()!r}. Give it once.")
        by_name[name.strip()] = meaning
    return by_name


def tokens_by_column(flag: str, values: Sequence[str]) -> dict[str, list[str]]:
    """Read a repeated flag of the form COL=TOKEN, which may be given several times for a column."""
    tokens: dict[str, list[str]] = {}
    for value in values:
        ((name, token),) = by_column(flag, "TOKEN", [value], str).items()
        tokens.setdefault(name, []).append(token)
    return tokens


def forms(values: Sequence[str]) -> dict[str | None, str]:
    """Read a repeated ``--form``: FORM for all columns, which is the form of None, or COL=FORM for one."""
    defaults = [value.strip() for value in values if "=" not in value]
    if len(defaults) > 1:
        raise UsageError("--form is given twice for all columns. Give it once, or as --form COL=FORM for one column.")
    by_name: dict[str | None, str] = {None: defaults[0]} if defaults else {}
    by_name.update(by_column("--form", "FORM", [value for value in values if "=" in value], str))
    return by_name


def derivations(values: Sequence[str]) -> dict[str, dict[str, str | int]]:
    """Read a repeated ``--derive`` of the form COL=RULE into what ``[derive.COL]`` holds."""
    return by_column("--derive", "RULE, where RULE is " + ", ".join(DERIVATIONS), values, _derivation)


def _derivation(text: str) -> dict[str, str | int] | None:
    match = CALL.fullmatch(text)
    if match is None:
        return None
    how, arguments = match["name"], [argument.strip() for argument in match["arguments"].split(",")]
    if not all(arguments):
        return None
    match how, arguments:
        case (("years" | "months" | "days"), [start, end]):
            return {"from": start, "to": end, "unit": how}
        case "first", [column, length] if length.isdecimal():
            return {"from": column, "first": int(length)}
        case "groups", [column, file]:
            return {"from": column, "groups": file}
        case "groups", [column, file, level] if level.isdecimal():
            return {"from": column, "groups": file, "level": int(level)}
        case "ready", [column, name, level]:
            return {"from": column, "ready": name, "level": int(level) if level.isdecimal() else level}
        case _, [column]:
            return {"from": column, "part": how}
    return None


def one_k(text: str) -> int:
    """Read the k of a command that makes or checks one release."""
    text = text.strip()
    pieces = [RANGE.fullmatch(piece.strip()) for piece in text.split(",")]
    if all(pieces) and (len(pieces) > 1 or ".." in text):
        raise UsageError(f"-k takes one value here, not {text!r}. Give a single number, such as -k 10.")
    if not text.isdecimal() or len(text) > LARGEST_DIGITS or int(text) < 1:
        raise UsageError(f"k must be a whole number of at least 1, not {text!r}. Give for example -k 10.")
    return int(text)


def many_values(flag: str, text: str) -> list[int]:
    """Read the distinct values of ``10``, ``5,10,25``, ``2..100``, or several of these with commas."""
    values: dict[int, None] = {}
    for values_of_piece in many_ranges(flag, text):
        if len(values_of_piece) + len(values) > MOST_VALUES:
            raise UsageError(f"{flag} {text!r} has more than {MOST_VALUES:,} values. Choose some of them.")
        values |= dict.fromkeys(values_of_piece)
    return list(values)


def many_ranges(flag: str, text: str) -> list[range]:
    """Read ``10``, ``5,10,25``, ``2..100``, or several of these with commas as ranges, which may be long."""
    ranges = []
    for piece in text.split(","):
        ends = RANGE.fullmatch(piece.strip())
        if ends is None or any(len(end) > LARGEST_DIGITS for end in ends.groups() if end is not None):
            raise UsageError(
                f"{flag} {text!r} is not understood. Give whole numbers, such as {flag} 10, {flag} 5,10,25 or "
                f"{flag} 2..100."
            )
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if not 1 <= first <= last:
            raise UsageError(
                f"{flag} {text!r} has a number below 1, or a range that ends before it starts. Write ranges upwards "
                f"from 1, such as {flag} 2..100."
            )
        ranges.append(range(first, last + 1))
    return ranges


def many_shares(flag: str, text: str) -> list[float]:
    """Read ``0.05``, ``0,0.01,0.05``, ``0..0.1``, which is eleven values, or several of these with commas."""
    shares: dict[float, None] = {}
    for piece in text.split(","):
        ends = SHARES.fullmatch(piece.strip())
        if ends is None:
            raise UsageError(
                f"{flag} {text!r} is not understood. Give shares below 1, such as {flag} 0.05, {flag} 0,0.01,0.05 or "
                f"{flag} 0..0.1."
            )
        first, last = Fraction(ends[1]), Fraction(ends[2] or ends[1])
        if first > last:
            raise UsageError(f"{flag} {text!r} has a range that ends before it starts. Write ranges upwards.")
        steps = STEPS if last > first else 1
        shares |= dict.fromkeys(float(first + (last - first) * step / steps) for step in range(steps + 1))
    return list(shares)
