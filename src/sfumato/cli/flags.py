"""The flags that several commands share, and what their text means."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from sfumato.errors import UsageError

Value = TypeVar("Value")

COLUMNS = "What the columns are"
PRIVACY = "What is asked for"
RELEASE = "How the release is made"
READING = "How text is read"
RANGE = re.compile(r"(\d+)(?:\s*\.\.\s*(\d+))?")
MOST_VALUES = 1000
LARGEST_DIGITS = 18

PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", readable=False, help="A policy in TOML; flags override it."),
]
QuasiIdentifiers = Annotated[
    list[str] | None,
    typer.Option(
        "--quasi-identifiers",
        metavar="A,B",
        rich_help_panel=COLUMNS,
        help="Columns by which somebody could be recognised. May be repeated, as all lists of columns; a name that "
        "holds a comma goes into a policy file.",
    ),
]
Sensitive = Annotated[
    list[str] | None,
    typer.Option("--sensitive", metavar="A,B", rich_help_panel=COLUMNS, help="Columns that nobody may learn."),
]
Identifiers = Annotated[
    list[str] | None,
    typer.Option("--identifiers", metavar="A,B", rich_help_panel=COLUMNS, help="Columns that are never released."),
]
Other = Annotated[
    list[str] | None,
    typer.Option(
        "--other",
        metavar="keep|drop|A,B",
        rich_help_panel=COLUMNS,
        help="Columns without a role: keep or drop them all, or name those to keep as they are.",
    ),
]
Taxonomies = Annotated[
    list[str] | None,
    typer.Option(
        "--taxonomy",
        metavar="COL=FILE",
        rich_help_panel=COLUMNS,
        help="The taxonomy of a quasi-identifier, or COL=flat for none. May be repeated.",
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="COL=TYPE",
        rich_help_panel=COLUMNS,
        help="numeric, categorical or date; inferred when absent. May be repeated.",
    ),
]
Weights = Annotated[
    list[str] | None,
    typer.Option(
        "--weight",
        metavar="COL=W",
        rich_help_panel=COLUMNS,
        help="How much the loss of a column counts; 1 when absent. May be repeated.",
    ),
]
Rounds = Annotated[
    list[str] | None,
    typer.Option(
        "--round",
        metavar="COL=STEP",
        rich_help_panel=COLUMNS,
        help="Widen released ranges of numbers to multiples of a step. May be repeated.",
    ),
]
AcceptLinkable = Annotated[
    list[str] | None,
    typer.Option(
        "--accept-linkable",
        metavar="A,B",
        rich_help_panel=COLUMNS,
        help="Keep these columns although their values are nearly unique or tell a quasi-identifier.",
    ),
]
K = Annotated[
    str | None,
    typer.Option("-k", "--k", metavar="K", rich_help_panel=PRIVACY, help="Records that every class has at least."),
]
L = Annotated[
    int | None,
    typer.Option(
        "-l",
        "--l",
        metavar="L",
        rich_help_panel=PRIVACY,
        help="No value of the sensitive column has more than 1/L of a class.",
    ),
]
ManyK = Annotated[
    str | None,
    typer.Option(
        "-k",
        "--k",
        metavar="K",
        rich_help_panel=PRIVACY,
        help="Records that every class has at least: 10, or 5,10,25, or 2..100; the policy's when absent.",
    ),
]
ManyL = Annotated[
    str | None,
    typer.Option(
        "-l",
        "--l",
        metavar="L",
        rich_help_panel=PRIVACY,
        help="No value of the sensitive column has more than 1/L of a class: 3, or 2,3,5, or 2..5.",
    ),
]
Requires = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        metavar="KIND(COL, NAME=N)",
        rich_help_panel=PRIVACY,
        help="Such as distinct(COL, l=3), entropy(COL, l=2) or t-closeness(COL, t=0.2). May be repeated.",
    ),
]
Person = Annotated[
    str | None,
    typer.Option(
        "--person",
        metavar="COL",
        rich_help_panel=PRIVACY,
        help="Whose a record is: count persons, not records. The column is never released.",
    ),
]
Joint = Annotated[
    bool,
    typer.Option(
        "--joint",
        rich_help_panel=PRIVACY,
        help="Requirements hold for each sensitive column also when the others are known.",
    ),
]
NullSensitive = Annotated[
    str | None,
    typer.Option(
        "--null-sensitive",
        metavar="missing|value",
        rich_help_panel=PRIVACY,
        help="What an empty sensitive cell is: no value (it protects nobody), or a value like another.",
    ),
]
MaxSuppressed = Annotated[
    float | None,
    typer.Option(
        "--max-suppressed",
        metavar="F",
        rich_help_panel=RELEASE,
        help="The share of the records that may be left out, such as 0.01; none when absent.",
    ),
]
Form = Annotated[
    str | None,
    typer.Option(
        "--form",
        metavar="labels|bounds",
        rich_help_panel=RELEASE,
        help="bounds adds typed columns COL_min and COL_max beside the label.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option("--separator", metavar="CHAR", rich_help_panel=READING, help="Between the cells of a CSV file."),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", rich_help_panel=READING, help="Of a CSV file, such as cp1252."),
]
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", metavar=".|,", rich_help_panel=READING, help="The decimal mark of numbers in text."),
]
Nulls = Annotated[
    list[str] | None,
    typer.Option("--null", metavar="TOKEN", rich_help_panel=READING, help="Text that means: missing. May be repeated."),
]
DateFormat = Annotated[
    str | None,
    typer.Option(
        "--date-format", metavar="FORMAT", rich_help_panel=READING, help="Of dates in text, such as %d.%m.%Y."
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        "--sheet", metavar="NAME", rich_help_panel=READING, help="Of an Excel file; the first sheet when absent."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def policy_flags(
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] | None = None,
    identifiers: Sequence[str] | None = None,
    other: Sequence[str] | None = None,
    accept_linkable: Sequence[str] | None = None,
    k: str | None = None,
    taxonomy: Sequence[str] | None = None,
    column_type: Sequence[str] | None = None,
    weight: Sequence[str] | None = None,
    round_to: Sequence[str] | None = None,
    reading: dict[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """The flags that were given, as ``merge_flags`` takes them; those that were not are absent."""
    flags = {
        "quasi_identifiers": column_names("--quasi-identifiers", quasi_identifiers),
        "sensitive": column_names("--sensitive", sensitive),
        "identifiers": column_names("--identifiers", identifiers),
        "other": other[0] if other in (["keep"], ["drop"]) else column_names("--other", other),
        "accept_linkable": column_names("--accept-linkable", accept_linkable),
        "k": None if k is None else one_k(k),
        "taxonomy": by_column("--taxonomy", "FILE", taxonomy, str),
        "type": by_column("--type", "TYPE", column_type, str),
        "weight": by_column("--weight", "W", weight, _number),
        "round": by_column("--round", "STEP", round_to, _number),
        "input": {key: value for key, value in (reading or {}).items() if value is not None},
        **settings,
    }
    return {name: value for name, value in flags.items() if value not in (None, [], {})}


def reading_flags(
    *,
    separator: str | None,
    encoding: str | None,
    sheet: str | None,
    decimal: str | None = None,
    nulls: Sequence[str] | None = None,
    date_format: str | None = None,
) -> dict[str, Any]:
    """What goes into the table ``input`` of a policy. A tab may be written as a shell writes it."""
    return {
        "separator": "\t" if separator in (r"\t", "tab") else separator,
        "encoding": encoding,
        "sheet": sheet,
        "decimal": decimal,
        "nulls": list(nulls) if nulls else None,
        "date_format": date_format,
    }


def column_names(flag: str, values: Sequence[str] | None) -> list[str]:
    """The columns that a repeated flag names, each value split at its commas."""
    names = [name.strip() for value in values or () for name in value.split(",")]
    if "" in names:
        raise UsageError(f"{flag} has an empty name in its list. Separate the names of columns by single commas.")
    return names


def by_column(
    flag: str, metavar: str, values: Sequence[str] | None, read: Callable[[str], Value | None]
) -> dict[str, Value]:
    """What a repeated flag of the form column=value says of each column."""
    found: dict[str, Value] = {}
    for value in values or ():
        name, equals, text = value.partition("=")
        meant = read(text.strip())
        if not equals or not name.strip() or not text.strip() or meant is None:
            raise UsageError(f"{flag} {value!r} is not understood. Write it as {flag} COL={metavar}.")
        if name.strip() in found:
            raise UsageError(f"{flag} is given twice for the column {name.strip()!r}. Give it once.")
        found[name.strip()] = meant
    return found


def one_k(text: str) -> int:
    """The k of a command that makes or checks one release."""
    plain = text.strip()
    pieces = [RANGE.fullmatch(piece.strip()) for piece in plain.split(",")]
    if all(pieces) and (len(pieces) > 1 or ".." in plain):
        raise UsageError(f"-k takes one value here, not {plain!r}. Give a single number, such as -k 10.")
    if not plain.isdecimal() or len(plain) > LARGEST_DIGITS or int(plain) < 1:
        raise UsageError(f"k must be a whole number of at least 1, not {plain!r}. Give for example -k 10.")
    return int(plain)


def many_values(flag: str, text: str) -> list[int]:
    """The values of a command that compares: ``10``, ``5,10,25``, ``2..100``, or several of these with commas."""
    values: dict[int, None] = {}
    for piece in text.split(","):
        ends = RANGE.fullmatch(piece.strip())
        if ends is None or any(len(end) > LARGEST_DIGITS for end in ends.groups() if end is not None):
            raise UsageError(
                f"{flag} {text!r} is not understood. Give whole numbers, such as {flag} 10, {flag} 5,10,25 or "
                f"{flag} 2..100."
            )
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if not 1 <= first <= last:
            raise UsageError(f"{flag} {text!r} has a number below 1, or a range whose end is below its start.")
        if last - first + len(values) >= MOST_VALUES:
            raise UsageError(f"{flag} {text!r} has more than {MOST_VALUES:,} values. Choose some of them.")
        values |= dict.fromkeys(range(first, last + 1))
    return list(values)


def _number(text: str) -> int | float | None:
    """Whole numbers stay whole: a step of 5 is exact."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
