"""Declarations of the flags about columns and their roles, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

COLUMNS = "Columns and their roles"

QuasiIdentifiers = Annotated[
    list[str] | None,
    typer.Option(
        "--quasi-identifiers",
        metavar="A,B",
        rich_help_panel=COLUMNS,
        help="Columns by which somebody could be recognised. May be repeated, like every list of columns. Put a name "
        "that contains a comma into a policy file.",
    ),
]
Sensitive = Annotated[
    list[str] | None,
    typer.Option(
        "--sensitive",
        metavar="A,B",
        rich_help_panel=COLUMNS,
        help="Columns whose values nobody may learn about a person.",
    ),
]
Identifiers = Annotated[
    list[str] | None,
    typer.Option(
        "--identifiers", metavar="A,B", rich_help_panel=COLUMNS, help="Columns that name somebody; never released."
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="A,B",
        rich_help_panel=COLUMNS,
        help="Columns that name nobody and are not released all the same.",
    ),
]
Pseudonyms = Annotated[
    list[str] | None,
    typer.Option(
        "--pseudonyms",
        metavar="A,B",
        rich_help_panel=COLUMNS,
        help="Columns to release as keyed hashes. They join the records of a person, so --accept-linkable must name "
        "them too.",
    ),
]
PseudonymKey = Annotated[
    Path | None,
    typer.Option(
        "--pseudonym-key",
        metavar="FILE",
        rich_help_panel=COLUMNS,
        help="The key of the pseudonyms, which 'sfumato key FILE' makes.",
        readable=False,
    ),
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
        help="The taxonomy of a quasi-identifier; COL=flat for no levels between a value and *. May be repeated.",
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="COL=TYPE",
        rich_help_panel=COLUMNS,
        help="numeric, categorical or date. Default: inferred from the values. May be repeated.",
    ),
]
Weights = Annotated[
    list[str] | None,
    typer.Option(
        "--weight",
        metavar="COL=W",
        rich_help_panel=COLUMNS,
        help="How much the loss of a column counts. Default: 1. May be repeated.",
    ),
]
Rounds = Annotated[
    list[str] | None,
    typer.Option(
        "--round",
        metavar="COL=STEP",
        rich_help_panel=COLUMNS,
        help="Widen released ranges to multiples of this step. May be repeated.",
    ),
]
Bottoms = Annotated[
    list[str] | None,
    typer.Option(
        "--bottom",
        metavar="COL=N",
        rich_help_panel=COLUMNS,
        help="Make all numbers from N down one value, shown as N-. May be repeated.",
    ),
]
Tops = Annotated[
    list[str] | None,
    typer.Option(
        "--top",
        metavar="COL=N",
        rich_help_panel=COLUMNS,
        help="Make all numbers from N up one value, shown as N+. May be repeated.",
    ),
]
FinestLevels = Annotated[
    list[str] | None,
    typer.Option(
        "--finest",
        metavar="COL=LEVEL",
        rich_help_panel=COLUMNS,
        help="Show nothing finer than this level of the taxonomy: its name (month) or number (1). May be repeated.",
    ),
]
CoarsestLevels = Annotated[
    list[str] | None,
    typer.Option(
        "--coarsest",
        metavar="COL=LEVEL",
        rich_help_panel=COLUMNS,
        help="Show nothing coarser than this level of the taxonomy: its name (decade) or number (3). May be repeated.",
    ),
]
ColumnNulls = Annotated[
    list[str] | None,
    typer.Option(
        "--column-null",
        metavar="COL=TOKEN",
        rich_help_panel=COLUMNS,
        help="Text that stands for a missing value in this column. It is released empty. May be repeated.",
    ),
]
Derivations = Annotated[
    list[str] | None,
    typer.Option(
        "--derive",
        metavar="COL=RULE",
        rich_help_panel=COLUMNS,
        help="Make a new column before roles apply: years(FROM,TO), also months and days; first(COL,N) characters; "
        "year(COL), also quarter, month, weekday, year-quarter and year-month; groups(COL,FILE,LEVEL) of a taxonomy, "
        "or ready(COL,NAME,LEVEL) of a ready-made one. "
        "May be repeated.",
    ),
]
AcceptLinkable = Annotated[
    list[str] | None,
    typer.Option(
        "--accept-linkable",
        metavar="A,B",
        rich_help_panel=COLUMNS,
        help="Keep these columns although they are nearly unique or reveal a quasi-identifier.",
    ),
]
