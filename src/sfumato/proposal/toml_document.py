"""The proposed policy as a TOML file, with its reasons as comments."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

import tomli_w

from sfumato._version import __version__
from sfumato.evaluation.risk.exposure import Exposure

if TYPE_CHECKING:
    from sfumato.policy import ColumnSettings
    from sfumato.proposal.propose import Proposal

WIDTH = 110
WHY = {
    "separator": "between the cells",
    "encoding": "the file is not UTF-8; check that letters such as ä, é or ñ are read right",
    "decimal": "numbers are written with a comma",
    "nulls": "what means that a value is missing",
    "date_format": "how dates are written",
    "sheet": "of the file",
}


def document(proposal: Proposal) -> str:
    """The text of the file. Comments hold names of columns and figures, never a value."""
    lines = [*_heading(proposal), ""]
    settings = proposal.policy.to_dict().get("input", {})
    if settings:
        lines += ["[input]", *(f"{key} = {_value(value)}  # {WHY[key]}" for key, value in settings.items()), ""]
    for column in proposal.columns:
        lines += [_header("columns", column.name), *_comment(column.reason), f"role = {_value(column.role)}"]
        if column.role == "quasi-identifier" and column.described is not None:
            lines += _described(column.described)
        elif column.role == "decide" and column.described is not None:
            lines += [f"# as a quasi-identifier: {', '.join(_described(column.described))}"]
        lines.append("")
    return "\n".join([*lines, *_privacy(proposal)]) + "\n"


def plain_name(name: str) -> str:
    """A name that can stand in a comment: on one line, with nothing in it that is not seen."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in name)


def _heading(proposal: Proposal) -> list[str]:
    of = f" for {plain_name(proposal.table)}" if proposal.table else ""
    text = (
        f"A first policy{of}, proposed from {proposal.records:,} records by Sfumato {__version__}. It is a start and "
        "no decision: read the reasons, change what is wrong, give a role (identifier, quasi-identifier, sensitive or "
        'other) to every column that says "decide", and set k. Until then the file is refused.'
    )
    lines = _comment(text)
    for title, sets in (
        ("Proposed quasi-identifiers that single people out together:", proposal.dangerous(decided=True)),
        ("With columns that are still to decide:", proposal.dangerous(decided=False)),
    ):
        if sets:
            lines += ["#", f"# {title}", *(f"#   {_said(one)}" for one in sets)]
    for remark in (*proposal.left_out, *proposal.remarks):
        lines += ["#", *_comment(f"To know: {plain_name(remark)}.")]
    return lines


def _said(one: Exposure) -> str:
    return f"{' + '.join(map(plain_name, one.columns))}: {unique_text(one)}"


def unique_text(one: Exposure) -> str:
    """How many records a set of columns leaves unique, in words; never 0% or 100% where it is not exactly that."""
    share = one.unique_share
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
            *_comment("Some persons have several records, so persons are counted. Remove it if this is wrong."),
            f"person = {_value(privacy.person)}",
        ]
    return lines


def _described(column: ColumnSettings) -> list[str]:
    found = column.model_dump(mode="json", exclude_none=True, exclude={"role", "weight"})
    return [f"{key} = {_value(value)}" for key, value in found.items()]


def _value(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")


def _header(*keys: str) -> str:
    table: dict[str, Any] = {}
    for key in reversed(keys):
        table = {key: table}
    # Not splitlines, which also breaks at characters that may stand in a name.
    return tomli_w.dumps(table).rstrip("\n").rpartition("\n")[2]


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in wrap(plain_name(text), WIDTH, break_long_words=False, break_on_hyphens=False)]
