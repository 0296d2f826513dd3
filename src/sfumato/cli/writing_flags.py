"""Declarations of the flags about how a release is written, with their help."""

from __future__ import annotations

from typing import Annotated

import typer

WRITING = "Writing the release"

ReleaseSeparator = Annotated[
    str | None,
    typer.Option(
        "--release-separator",
        metavar="CHAR",
        rich_help_panel=WRITING,
        help="The character between the cells of a CSV release. Default: that of the input.",
    ),
]
ReleaseEncoding = Annotated[
    str | None,
    typer.Option(
        "--release-encoding",
        metavar="NAME",
        rich_help_panel=WRITING,
        help="The encoding of a CSV release, such as utf-8-sig, which spreadsheets recognise. Default: utf-8.",
    ),
]
ReleaseDecimal = Annotated[
    str | None,
    typer.Option(
        "--release-decimal",
        metavar=".|,",
        rich_help_panel=WRITING,
        help="The decimal mark of numbers in a CSV release. Default: a point.",
    ),
]
Codebook = Annotated[
    bool,
    typer.Option(
        "--codebook",
        rich_help_panel=WRITING,
        help="Also write OUTPUT.codebook.html, which explains every column and label, for all who have the release.",
    ),
]
PageLanguage = Annotated[
    str | None,
    typer.Option(
        "--language",
        metavar="en|de",
        rich_help_panel=WRITING,
        help="The language of pages: en (English) or de (German). Default: what the policy says, or en.",
    ),
]
