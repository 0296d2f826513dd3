"""Declarations of the flags and arguments that several commands share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

PRIVACY = "Privacy requirements"
WORKLOAD = "Intended use of the release"
RELEASE = "Making the release"
READING = "Reading text"
RESOURCES = "Memory and temporary files"

InputTable = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="CSV or text in columns of fixed width (also .gz, .zst), Parquet, Arrow IPC, Excel, SPSS, Stata or SAS, a "
        "directory of Parquet files, FILE.duckdb#TABLE, FILE.sqlite#TABLE or postgresql://USER@HOST/DATABASE#TABLE.",
    ),
]
OriginalTable = Annotated[str, typer.Argument(metavar="ORIGINAL", help="The table that the release was made from.")]
ReleasedTable = Annotated[str, typer.Argument(metavar="RELEASE", help="A released table. Any tool may have made it.")]
OUTPUT_HELP = (
    "The release: a file whose suffix names the format, a DIRECTORY/ of Parquet files, or a database table, written as "
    "for INPUT."
)
Trial = Annotated[
    bool,
    typer.Option(
        "--trial",
        help="Write a trial, which is not to be published: its certificate says so, and no later release warns of it.",
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", readable=False, help="A policy in TOML; flags override it."),
]
K = Annotated[
    str | None,
    typer.Option("-k", "--k", metavar="K", rich_help_panel=PRIVACY, help="The least number of records in a class."),
]
L = Annotated[
    int | None,
    typer.Option(
        "-l",
        "--l",
        metavar="L",
        rich_help_panel=PRIVACY,
        help="No sensitive value may make up more than 1/L of a class.",
    ),
]
ManyK = Annotated[
    str | None,
    typer.Option(
        "-k",
        "--k",
        metavar="K",
        rich_help_panel=PRIVACY,
        help="The least number of records in a class: 10, or 5,10,25, or 2..100. Default: the policy's.",
    ),
]
ManyL = Annotated[
    str | None,
    typer.Option(
        "-l",
        "--l",
        metavar="L",
        rich_help_panel=PRIVACY,
        help="No sensitive value may make up more than 1/L of a class: 3, or 2,3,5, or 2..5.",
    ),
]
Requires = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        metavar="KIND(COL, NAME=N)",
        rich_help_panel=PRIVACY,
        help="A further requirement: distinct(COL, l=3), entropy(COL, l=2), t-closeness(COL, t=0.2). May be repeated.",
    ),
]
Person = Annotated[
    str | None,
    typer.Option(
        "--person",
        metavar="COL",
        rich_help_panel=PRIVACY,
        help="The column that says whose record it is: count persons, not records. It is never released.",
    ),
]
Joint = Annotated[
    bool,
    typer.Option(
        "--joint",
        rich_help_panel=PRIVACY,
        help="Protect each sensitive column even from somebody who knows the other ones.",
    ),
]
NullSensitive = Annotated[
    str | None,
    typer.Option(
        "--null-sensitive",
        metavar="missing|value",
        rich_help_panel=PRIVACY,
        help="An empty sensitive cell is missing (it protects nobody) or a value like any other. Default: missing.",
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="A,B",
        rich_help_panel=WORKLOAD,
        help="Columns that models will predict from the release, as classes or, if they have many different numbers, "
        "as numbers. The release is made for that purpose.",
    ),
]
Selects = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="PREDICATE",
        rich_help_panel=WORKLOAD,
        help="A selection that users will make, such as \"age > 40 and sex = 'Male'\". May be repeated.",
    ),
]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="NAME",
        rich_help_panel=RELEASE,
        help="A method that `sfumato methods` lists.",
    ),
]
LossName = Annotated[
    str | None,
    typer.Option(
        "--loss",
        metavar="ncp|sse",
        rich_help_panel=RELEASE,
        help="What to lower: ncp, the penalty of ranges; sse, squares around means, of numbers alone. Default: ncp.",
    ),
]
EffortLevel = Annotated[
    str | None,
    typer.Option(
        "--effort",
        metavar="fast|normal|balanced|best|exact",
        rich_help_panel=RELEASE,
        help="How long to search for less loss. fast: not at all; normal, the default: about a second for each 30,000 "
        "records, up to a million; balanced: longer; best: until it gains little; exact: then solve parts exactly.",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        "--seconds",
        metavar="S",
        rich_help_panel=RELEASE,
        help="Search for this many seconds instead. Equal seeds then no longer give equal bytes.",
    ),
]
Cells = Annotated[
    bool,
    typer.Option(
        "--cells",
        rich_help_panel=RELEASE,
        help="With --method global: suppress single cells before whole records are left out.",
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="auto|memory|disk|spark",
        rich_help_panel=RELEASE,
        help="Where the run works. auto chooses disk for tables that do not fit into memory. Default: auto.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        rich_help_panel=RESOURCES,
        help="How much memory the run may take, such as 2GB. It keeps what does not fit in temporary files.",
    ),
]
Sampled = Annotated[
    bool,
    typer.Option(
        "--sampled",
        rich_help_panel=RESOURCES,
        help="Let mondrian on disk find its first splits on a sample. It reads less and forms other classes.",
    ),
]
SampleSize = Annotated[
    int | None,
    typer.Option(
        "--sample-size",
        metavar="N",
        rich_help_panel=RESOURCES,
        help="How many records a sample of --sampled has. Default: 65536, or what fits into memory.",
    ),
]
SampleAlpha = Annotated[
    float | None,
    typer.Option(
        "--sample-alpha",
        metavar="A",
        rich_help_panel=RESOURCES,
        help="The level of the tests that a split on a sample must pass. Default: 0.05.",
    ),
]
SampleTests = Annotated[
    bool | None,
    typer.Option(
        "--sample-tests/--no-sample-tests",
        rich_help_panel=RESOURCES,
        help="Whether a split on a sample must pass tests. Default: it must.",
    ),
]
FrequencyGroups = Annotated[
    int | None,
    typer.Option(
        "--frequency-groups",
        metavar="N",
        rich_help_panel=RESOURCES,
        help="How many frequency groups mondrian on disk counts at once (F_CACHE). Default: as many as fit.",
    ),
]
Temporary = Annotated[
    Path | None,
    typer.Option(
        "--temporary",
        metavar="DIRECTORY",
        rich_help_panel=RESOURCES,
        readable=False,
        help="Where to keep temporary files. Default: the system's directory for them.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", rich_help_panel=RELEASE, help="The seed of methods that draw at random."),
]
KeepOrder = Annotated[
    bool,
    typer.Option("--keep-order", rich_help_panel=RELEASE, help="Release the rows in the order of the input."),
]
MaxSuppressed = Annotated[
    float | None,
    typer.Option(
        "--max-suppressed",
        metavar="F",
        rich_help_panel=RELEASE,
        help="The share of the records that may be left out, such as 0.01. Default: 0.",
    ),
]
SuppressionCost = Annotated[
    float | None,
    typer.Option(
        "--suppression-cost",
        metavar="C",
        rich_help_panel=RELEASE,
        help="What a left-out record costs, as a share of all its information, 0 to 1. Default: 1.",
    ),
]
Forms = Annotated[
    list[str] | None,
    typer.Option(
        "--form",
        metavar="FORM|COL=FORM",
        rich_help_panel=RELEASE,
        help="What stands beside the labels of numbers and dates, of all columns or of one: labels adds nothing, "
        "bounds COL_min and COL_max, mean COL_mean, median COL_median, statistics bounds and mean. May be repeated.",
    ),
]
Boxes = Annotated[
    str | None,
    typer.Option(
        "--boxes",
        metavar="smallest|regions",
        rich_help_panel=RELEASE,
        help="What a class shows: the smallest box around its records, or its region, which also fits new records.",
    ),
]
Formulas = Annotated[
    str | None,
    typer.Option(
        "--formulas",
        metavar="keep|disarm",
        rich_help_panel=RELEASE,
        help="Cells of a CSV release that a spreadsheet takes for formulas: keep them, or put an apostrophe first.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator", metavar="CHAR", rich_help_panel=READING, help="The character between the cells of a CSV file."
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", rich_help_panel=READING, help="The encoding of a CSV file, such as cp1252."
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", metavar=".|,", rich_help_panel=READING, help="The decimal mark of numbers in text."),
]
Thousands = Annotated[
    str | None,
    typer.Option(
        "--thousands",
        metavar="MARK",
        rich_help_panel=READING,
        help="The mark between groups of three digits in text, such as the point of 1.234,5.",
    ),
]
Nulls = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        metavar="TOKEN",
        rich_help_panel=READING,
        help="Text that stands for a missing value. May be repeated.",
    ),
]
DateFormat = Annotated[
    str | None,
    typer.Option(
        "--date-format",
        metavar="FORMAT",
        rich_help_panel=READING,
        help="The format of dates in text, such as %d.%m.%Y.",
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        "--sheet", metavar="NAME", rich_help_panel=READING, help="The sheet of an Excel file. Default: the first."
    ),
]
HeaderRow = Annotated[
    int | None,
    typer.Option(
        "--header-row",
        metavar="N",
        rich_help_panel=READING,
        help="The row of an Excel file, or the line of a CSV file, with the names of the columns. Default: the first "
        "below a title.",
    ),
]
Layout = Annotated[
    Path | None,
    typer.Option(
        "--layout",
        metavar="FILE",
        rich_help_panel=READING,
        readable=False,
        help="The layout of a text file without separators: a CSV file with name, start and width of each column.",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="on|off|A,B",
        rich_help_panel=READING,
        help="Whether values of SPSS and Stata files are read by their labels, or the columns that are. Default: on, "
        "for columns in which at least half of the values have a label.",
    ),
]
MaxExpansion = Annotated[
    int | None,
    typer.Option(
        "--max-expansion",
        metavar="N",
        rich_help_panel=READING,
        help="Read a compressed file with up to N times as much text as it has bytes. Default: 200.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace outputs that exist, whatever they are. Without it, only what Sfumato wrote is replaced.",
    ),
]
AcceptUnchecked = Annotated[
    bool,
    typer.Option(
        "--accept-unchecked", help="End with exit code 0, not 5, if nothing fails but something could not be checked."
    ),
]
