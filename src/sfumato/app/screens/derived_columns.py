"""Derived columns on the screen of columns: made from others before roles apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.app.background_run import start_run
from sfumato.app.forms import PostedForm, button, field, hidden, select, text_input
from sfumato.app.screens.column_roles import UNDECIDED, column_at, with_role
from sfumato.app.screens.opening import chosen_settings
from sfumato.app.view import ProjectView
from sfumato.errors import UsageError
from sfumato.report.html import Markup, element, folded, name

PARTS = ("year", "quarter", "month", "weekday", "year-quarter", "year-month")
UNITS = ("years", "months", "days")


def derive_form(view: ProjectView, examined: Mapping[str, Any]) -> Markup:
    """Make a column from others, before roles apply."""
    say = view.say
    names = {str(position): column["name"] for position, column in enumerate(examined["columns"])}
    rules = {
        "years": say("page_columns.derive.years"),
        "months": say("page_columns.derive.months"),
        "days": say("page_columns.derive.days"),
        "first": say("page_columns.derive.first"),
        "year": say("page_columns.derive.year"),
        "quarter": say("page_columns.derive.quarter"),
        "month": say("page_columns.derive.month"),
        "weekday": say("page_columns.derive.weekday"),
        "year-quarter": say("page_columns.derive.year_quarter"),
        "year-month": say("page_columns.derive.year_month"),
    }
    made = [
        element(
            "li",
            name(derived),
            " ",
            view.form(
                "underive",
                hidden("column", position),
                button(say("page_columns.derive.remove"), look="small"),
                class_="inline",
            ),
        )
        for position, derived in enumerate(view.policy.derive)
    ]
    return folded(
        say("page_columns.derive.title"),
        element("p", say("page_columns.derive.text"), class_="quiet"),
        element("ul", *made) if made else "",
        view.form(
            "derive",
            element(
                "div",
                field(say("page_columns.derive.name"), text_input("name", "", required=True, id="derive-name")),
                field(say("page_columns.derive.rule"), select("rule", rules, "years", id="derive-rule")),
                field(say("page_columns.derive.from"), select("from", names, "", id="derive-from")),
                field(
                    say("page_columns.derive.to"),
                    select("to", {"": "", **names}, "", id="derive-to"),
                    hint=say("page_columns.derive.to_hint"),
                ),
                field(
                    say("page_columns.derive.count"),
                    text_input("count", "", inputmode="numeric", id="derive-count"),
                    hint=say("page_columns.derive.count_hint"),
                ),
                class_="fields",
            ),
            button(say("page_columns.derive.do")),
        ),
    )


def derive(view: ProjectView, form: PostedForm) -> None:
    """Make a column from others. The table is then examined anew."""
    made, rule, source = form.text("name").strip(), form.text("rule"), column_at(view, form.text("from"))
    settings: dict[str, Any] = {"from": source}
    if rule in UNITS:
        settings |= {"to": column_at(view, form.text("to")), "unit": rule}
    elif rule in PARTS:
        settings |= {"part": rule}
    else:
        settings |= {"first": form.whole("count") or 1}
    if not made or made in view.roles:
        raise UsageError("a derived column needs a name of its own. Choose another.")

    def change(data: dict[str, Any]) -> dict[str, Any]:
        changed = {**data, "derive": {**data.get("derive", {}), made: settings}}
        return {**changed, "columns": {**data.get("columns", {}), made: {"role": UNDECIDED}}}

    view.change(form, "page.steps.derive", change)
    _examine_again(view)


def underive(view: ProjectView, form: PostedForm) -> None:
    """Remove a derived column. The table is then examined anew."""
    derived = list(view.policy.derive)
    position = form.whole("column") or 0
    if not 0 <= position < len(derived):
        raise UsageError("this column does not exist. Load the page again.")
    made = derived[position]

    def change(data: dict[str, Any]) -> dict[str, Any]:
        data = with_role(data, made, "drop", {})
        kept = {column: settings for column, settings in data["columns"].items() if column != made}
        rules = {column: rule for column, rule in data.get("derive", {}).items() if column != made}
        return {**data, "columns": kept, "derive": rules}

    view.change(form, "page.steps.underive", change)
    _examine_again(view)


def _examine_again(view: ProjectView) -> None:
    policy = view.project.policy
    start_run(
        view.project,
        "examine",
        {
            "input": chosen_settings(view),
            "derive": policy.to_dict().get("derive", {}),
            "column_nulls": {
                column: list(settings.nulls) for column, settings in policy.columns.items() if settings.nulls
            },
        },
    )
