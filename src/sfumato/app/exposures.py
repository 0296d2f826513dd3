"""Shares of records, and sets of columns by which people can be singled out, as several screens show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.app.view import ProjectView
from sfumato.report.html import Markup, element, joined, name, table


def share_with_bar(view: ProjectView, share: float) -> Markup:
    """A share as a figure and as a bar. It has no style attribute, which the rules of the page forbid."""
    bar = element("meter", value=f"{share:.4f}", min="0", max="1", aria_hidden="true")
    return joined([view.say.percent(share), " ", bar])


def columns_together(columns: Sequence[str]) -> Markup:
    """The names of a set of columns: ``age + zip``."""
    return joined(part for index, column in enumerate(columns) for part in (" + " if index else "", name(column)))


def exposure_table(view: ProjectView, caption: str, exposures: Sequence[Mapping[str, Any]], records: int) -> Markup:
    """How many records each set of columns singles out. records: those of the table."""
    say = view.say
    rows = [
        (
            columns_together(found["columns"]),
            say.number(found["unique"]),
            share_with_bar(view, found["unique"] / records),
        )
        for found in exposures
    ]
    heads = (say("page_risk.set"), say("page_risk.records"), say("page_risk.share"))
    return table(caption, heads, rows, text=(0,))
