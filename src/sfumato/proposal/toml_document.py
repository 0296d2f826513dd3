"""The proposed policy as a TOML file, with its reasons as comments."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import tomli_w

from sfumato._version import __version__
from sfumato.evaluation.risk.exposure import Exposure

if TYPE_CHECKING:
    from sfumato.proposal.propose import Proposal, ProposedColumn

WIDTH = 110
INPUT_COMMENTS = {
    "separator": "between the cells",
    "encoding": "the file is not UTF-8; check that letters such as ä, é or ñ are read correctly",
    "decimal": "numbers are written with a comma",
    "thousands": "between groups of three digits",
    "nulls": "texts that mean a missing value",
    "date_format": "how dates are written",
    "sheet": "of the file",
    "header_row": "the row or line with the names of the columns",
    "layout": "the positions of the columns",
    "labels": "the columns whose values are the labels of their codes",
    "max_expansion": "times as much text as the compressed file has bytes",
}


def policy_document(proposal: Proposal, directory: Path | None = None) -> str:
    """Return the text of the file. Comments hold names of columns and figures, and no value but suspected sentinels.

    directory: where the file will lie, so that its paths lead to the same taxonomies; None is the working directory.
    """
    lines = [*_heading(proposal), ""]
    content = proposal.policy.with_paths_from(directory or Path.cwd())
    settings = content.get("input", {})
    if settings:
        lines += [
            "[input]",
            *(f"{key} = {toml_value(value)}  # {INPUT_COMMENTS[key]}" for key, value in settings.items()),
            "",
        ]
    for name, rule in content.get("derive", {}).items():
        lines += [table_header("derive", name), *(f"{key} = {toml_value(value)}" for key, value in rule.items()), ""]
    for column in proposal.columns:
        lines += [
            table_header("columns", column.name),
            *comment_lines(column.description),
            *comment_lines(column.reason),
        ]
        lines.append(f"role = {toml_value(column.role)}")
        if column.nulls:
            lines.append(f"nulls = {toml_value(list(column.nulls))}  # texts that mean a missing value in this column")
        if column.role not in ("identifier", "drop"):
            lines += _settings(column)
        lines.append("")
    return "\n".join([*lines, *_privacy(proposal)]) + "\n"


def plain_name(name: str) -> str:
    """Return a name that can stand in a comment: on one line, with invisible characters escaped."""
    return "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in name)


def _heading(proposal: Proposal) -> list[str]:
    of = f" for {plain_name(proposal.table)}" if proposal.table else ""
    text = (
        f"A first policy{of}, proposed from {proposal.records:,} records by Sfumato {__version__}. It is a start, not "
        "a decision: read the reasons, change what is wrong, give a role (identifier, drop, quasi-identifier, "
        'sensitive or other) to every column that says "decide", and set k. Until then the file is refused.'
    )
    lines = comment_lines(text)
    for title, sets in (
        ("Proposed quasi-identifiers that single people out together:", proposal.dangerous(decided=True)),
        ("Together with columns whose role is still open:", proposal.dangerous(decided=False)),
    ):
        if sets:
            lines += ["#", f"# {title}", *(f"#   {_exposure_text(exposure)}" for exposure in sets)]
    for remark in (*proposal.left_out, *proposal.remarks):
        lines += ["#", *comment_lines(f"Note: {plain_name(remark)}.")]
    return lines


def _exposure_text(exposure: Exposure) -> str:
    return f"{' + '.join(map(plain_name, exposure.columns))}: {unique_text(exposure)}"


def unique_text(exposure: Exposure) -> str:
    """Say in words how many records a set of columns makes unique; 0% and 100% only if exactly so."""
    share = exposure.unique_share
    shown = (
        f"{share:.0%}" if 0.01 <= share <= 0.99 or share in (0, 1) else "more than 99%" if share > 0.5 else "below 1%"
    )
    return f"{shown} of the records are unique"


def _privacy(proposal: Proposal) -> list[str]:
    privacy = proposal.policy.privacy
    lines = ["[privacy]"]
    if privacy.k is None:
        lines += ["# k = 10  # decide: every record shares its quasi-identifiers with at least k - 1 others"]
    else:
        lines += [f"k = {privacy.k}"]
    if privacy.person is not None:
        lines += [
            *comment_lines(
                "Some persons have several records, so persons are counted. Remove this line if that is wrong."
            ),
            f"person = {toml_value(privacy.person)}",
        ]
    return lines


def _settings(column: ProposedColumn) -> list[str]:
    """Return the lines about the column as a quasi-identifier: the type first, then the levels with their reason."""
    lines = [f"{key} = {toml_value(value)}" for key, value in column.settings.items()]
    if column.role == "decide":
        lines = [f"# as a quasi-identifier: {', '.join(lines)}"] if lines else []
    return [*lines[:1], *comment_lines(column.levels_reason), *lines[1:]]


def toml_value(value: Any) -> str:
    """Write a value on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")


def table_header(*keys: str) -> str:
    """Return the header of a table, such as [columns.age]."""
    table: dict[str, Any] = {}
    for key in reversed(keys):
        table = {key: table}
    # Not splitlines, which also splits at characters that a name may contain.
    return tomli_w.dumps(table).rstrip("\n").rpartition("\n")[2]


def comment_lines(text: str) -> list[str]:
    """Return a comment of as many lines as it takes."""
    return [f"# {line}" for line in wrap(plain_name(text), WIDTH, break_long_words=False, break_on_hyphens=False)]
