"""The flags that several commands share, and what their text means."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from sfumato.errors import UsageError

Value = TypeVar("Value")
Outcome = TypeVar("Outcome")

COLUMNS = "What the columns are"
PRIVACY = "What is asked for"
WORKLOAD = "What the release is for"
RELEASE = "How the release is made"
READING = "How text is read"
RESOURCES = "What the run may take"
RANGE = re.compile(r"(\d+)(?:\s*\.\.\s*(\d+))?")
MOST_VALUES = 1000
LARGEST_DIGITS = 18

InputTable = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="CSV (also .gz, .zst), Parquet, Arrow IPC or Excel, a directory of Parquet, FILE.duckdb#TABLE, "
        "FILE.sqlite#TABLE or postgresql://USER@HOST/DATABASE#TABLE.",
    ),
]
OriginalTable = Annotated[str, typer.Argument(metavar="ORIGINAL", help="The table that the release was made from.")]
ReleasedTable = Annotated[str, typer.Argument(metavar="RELEASE", help="A released table, also one made elsewhere.")]
OUTPUT_HELP = (
    "The release: a file, whose suffix names the format, a DIRECTORY/ of Parquet, or a table in a database, named as "
    "INPUT is."
)
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
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="A,B",
        rich_help_panel=WORKLOAD,
        help="Columns that will be predicted from the release: classes, or numbers where there are many different "
        "ones. The release is then made for that.",
    ),
]
Selects = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="PREDICATE",
        rich_help_panel=WORKLOAD,
        help="Records that will be selected from the release, such as \"age > 40 and sex = 'Male'\". May be repeated.",
    ),
]
MethodName = Annotated[
    str | None,
    typer.Option("--method", metavar="NAME", rich_help_panel=RELEASE, help="See: sfumato methods."),
]
EffortLevel = Annotated[
    str | None,
    typer.Option(
        "--effort",
        metavar="fast|balanced|best",
        rich_help_panel=RELEASE,
        help="How much search for less loss: none, ten rounds, or as long as it gains; fast when absent.",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        "--seconds",
        metavar="S",
        rich_help_panel=RELEASE,
        help="Search so long instead. The same seed then no longer gives the same bytes.",
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="auto|memory|disk|spark",
        rich_help_panel=RELEASE,
        help="What the run works in: auto takes the disk for tables that do not fit into memory.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        rich_help_panel=RESOURCES,
        help="How much memory the run may take, such as 2GB; what does not fit is kept in files.",
    ),
]
Sampled = Annotated[
    bool,
    typer.Option(
        "--sampled",
        rich_help_panel=RESOURCES,
        help="On disk mondrian finds its first splits on a sample: less is read, and classes are others.",
    ),
]
Temporary = Annotated[
    Path | None,
    typer.Option(
        "--temporary",
        metavar="DIRECTORY",
        rich_help_panel=RESOURCES,
        readable=False,
        help="Where temporary files go that --memory needs; the system's place for them when absent.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", rich_help_panel=RELEASE, help="For methods that draw at random."),
]
KeepOrder = Annotated[
    bool,
    typer.Option("--keep-order", rich_help_panel=RELEASE, help="Leave the rows as they stand in the input."),
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
        metavar="labels|bounds|statistics",
        rich_help_panel=RELEASE,
        help="bounds adds typed columns COL_min and COL_max beside the label, statistics also the mean of the class.",
    ),
]
Boxes = Annotated[
    str | None,
    typer.Option(
        "--boxes",
        metavar="smallest|regions",
        rich_help_panel=RELEASE,
        help="What a class shows: the smallest box around its records, or its region, which holds for further ones.",
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


# The flags that a policy can be made of, by the names that ``merge_flags`` knows them by.
DECLARED: dict[str, Any] = {
    "quasi_identifiers": QuasiIdentifiers,
    "sensitive": Sensitive,
    "identifiers": Identifiers,
    "other": Other,
    "taxonomy": Taxonomies,
    "type": Types,
    "weight": Weights,
    "round": Rounds,
    "accept_linkable": AcceptLinkable,
    "k": K,
    "l": L,
    "require": Requires,
    "person": Person,
    "joint": Joint,
    "null_sensitive": NullSensitive,
    "target": Targets,
    "select": Selects,
    "method": MethodName,
    "effort": EffortLevel,
    "seconds": Seconds,
    "engine": Engine,
    "memory": Memory,
    "sampled": Sampled,
    "seed": Seed,
    "keep_order": KeepOrder,
    "max_suppressed": MaxSuppressed,
    "form": Form,
    "boxes": Boxes,
    "separator": Separator,
    "encoding": Encoding,
    "decimal": Decimal,
    "nulls": Nulls,
    "date_format": DateFormat,
    "sheet": Sheet,
}
READ_WITH = ("separator", "encoding", "decimal", "nulls", "date_format", "sheet")
EVERY_FLAG = tuple(DECLARED)
# For commands that try several policies and make no release.
FLAGS_OF_MANY = tuple(name for name in DECLARED if name not in ("k", "l", "method", "keep_order", "memory", "sampled"))


def with_flags(*names: str) -> Callable[[Callable[..., Outcome]], Callable[..., Outcome]]:
    """A command that is given these flags of a policy, where its parameter ``flags`` stands.

    There it finds those that the user gave, as ``merge_flags`` takes them. So each flag is declared once, and reads and
    means the same in every command.
    """

    def decorate(command: Callable[..., Outcome]) -> Callable[..., Outcome]:
        own = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in own.parameters.values():
            if parameter.name != "flags":
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
                continue
            for name in names:
                absent = False if DECLARED[name].__origin__ is bool else None
                parameters.append(
                    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=absent, annotation=DECLARED[name])
                )

        @functools.wraps(command)
        def run(**given: Any) -> Outcome:
            flags = policy_flags({name: given.pop(name) for name in names})
            return command(**given, flags=flags)

        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def policy_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that were given, as ``merge_flags`` takes them; those that were not are absent."""
    meant: dict[str, Callable[[Any], Any]] = {
        "quasi_identifiers": lambda value: column_names("--quasi-identifiers", value),
        "sensitive": lambda value: column_names("--sensitive", value),
        "identifiers": lambda value: column_names("--identifiers", value),
        "other": lambda value: value[0] if value in (["keep"], ["drop"]) else column_names("--other", value),
        "accept_linkable": lambda value: column_names("--accept-linkable", value),
        "target": lambda value: column_names("--target", value),
        "k": one_k,
        "taxonomy": lambda value: by_column("--taxonomy", "FILE", value, str),
        "type": lambda value: by_column("--type", "TYPE", value, str),
        "weight": lambda value: by_column("--weight", "W", value, _number),
        "round": lambda value: by_column("--round", "STEP", value, _number),
        # A tab may be written as a shell writes it.
        "separator": lambda value: "\t" if value in (r"\t", "tab") else value,
    }
    flags: dict[str, Any] = {}
    reading: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value is False or value == []:
            continue
        (reading if name in READ_WITH else flags)[name] = meant[name](value) if name in meant else value
    return {**flags, "input": reading} if reading else flags


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
    for piece in many_ranges(flag, text):
        if len(piece) + len(values) > MOST_VALUES:
            raise UsageError(f"{flag} {text!r} has more than {MOST_VALUES:,} values. Choose some of them.")
        values |= dict.fromkeys(piece)
    return list(values)


def many_ranges(flag: str, text: str) -> list[range]:
    """The same as ranges, which may be long."""
    found = []
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
        found.append(range(first, last + 1))
    return found


def _number(text: str) -> int | float | None:
    """Whole numbers stay whole: a step of 5 is exact."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
