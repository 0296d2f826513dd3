"""Hierarchies: how each column may become coarser: by levels, intervals, periods, prefixes or groups of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.app.column_hierarchy import ColumnHierarchy, hierarchy_of, write_rows
from sfumato.app.examined_values import has_values
from sfumato.app.forms import PostedForm, link_button
from sfumato.app.screens.hierarchy_levels import level_section, range_section
from sfumato.app.screens.hierarchy_tree import ACTIONS as TREE_ACTIONS
from sfumato.app.screens.hierarchy_tree import tree_section
from sfumato.app.screens.hierarchy_wizards import READY, UNIT_NAMES, asked_wizard, wizard_section
from sfumato.app.screens.missing_values import ACTIONS as MISSING_ACTIONS
from sfumato.app.screens.missing_values import missing_section
from sfumato.app.screens.published_hierarchies import published_column
from sfumato.app.selected_column import (
    SelectedColumn,
    selectable_columns,
    selected_column,
    values_gone,
    with_hierarchy,
)
from sfumato.app.view import ProjectView, Screen
from sfumato.errors import SfumatoError, UsageError
from sfumato.policy import Grouping
from sfumato.policy.taxonomy_paths import FLAT
from sfumato.report.html import Markup, element, joined, name
from sfumato.taxonomies.taxonomy_file import read_rows

CHECKED = 30  # columns of which the list says whether values are missing


def draw(view: ProjectView) -> Markup:
    say = view.say
    if view.examined is None:
        return element("p", say("page_columns.not_read"), " ",
                       element("a", say("page_columns.to_open"), href=view.address("open")))  # fmt: skip
    if not has_values(view.project) and not view.locked:
        return values_gone(view)
    columns = selectable_columns(view)
    if not columns:
        way = element("a", say("page_hierarchies.to_columns"), href=view.address("columns"))
        return element("p", say("page_hierarchies.none"), " ", way, class_="note")
    selected = selected_column(view, columns)
    if view.locked:
        shown = published_column(view, selected, rule_words(view, selected))
        return joined([_list(view, columns, selected), shown, _go_on(view, columns, selected)])
    return joined([_list(view, columns, selected), _column(view, selected), _go_on(view, columns, selected)])


def _list(view: ProjectView, columns: list[SelectedColumn], selected: SelectedColumn) -> Markup:
    """All columns that can have a hierarchy, with what they have."""
    items = []
    for column in columns:
        missing = _missing(view, column) if len(columns) <= CHECKED and not view.locked else 0
        note = element("span", rule_words(view, column), class_="count")
        lacks = element("strong", view.say("page_hierarchies.lacks", count=missing), class_="lacks") if missing else ""
        items.append(
            element(
                "li",
                element(
                    "a", name(column.name), " ", note, lacks,
                    href=f"{view.address('hierarchies')}?column={column.position}", id=f"column-{column.position}",
                    aria_current="true" if column.position == selected.position else None,
                ),
            )
        )  # fmt: skip
    return element("nav", element("ul", *items), class_="filters", aria_label=view.say("page_hierarchies.columns"))


def _missing(view: ProjectView, column: SelectedColumn) -> int:
    if column.settings.taxonomy_file is None and column.settings.ready_name is None:
        return 0
    try:
        return len(hierarchy_of(view.project, column.examined, column.settings).outside)
    except SfumatoError:
        return 0  # what is wrong with the file is said where the column is shown


def rule_words(view: ProjectView, column: SelectedColumn) -> str:
    """The hierarchy of a column in a few words."""
    say, rule = view.say, column.settings.taxonomy
    if isinstance(rule, Grouping):
        (key,) = rule.model_fields_set
        texts = {
            "intervals": "page_hierarchies.rules.intervals",
            "calendar": "page_hierarchies.rules.calendar",
            "prefix": "page_hierarchies.rules.prefix",
            "ready": "page_hierarchies.rules.ready",
        }
        given = getattr(rule, key)
        if key == "ready":
            return say(texts[key], steps=say(READY[given]))
        steps = [say(UNIT_NAMES[step]) if key == "calendar" else say.number(step, ".12g") for step in given]
        return say(texts[key], steps=", ".join(steps))
    if rule is not None:
        return say("page_hierarchies.rules.flat" if rule == FLAT else "page_hierarchies.rules.file")
    if column.settings.round is not None:
        return say("page_hierarchies.rules.round", step=say.number(column.settings.round, ".12g"))
    return say("page_hierarchies.rules.nothing")


def _column(view: ProjectView, column: SelectedColumn) -> Markup:
    say = view.say
    heading = element("h2", name(column.name), id="column-title")
    try:
        hierarchy = hierarchy_of(view.project, column.examined, column.settings)
        _ = hierarchy.levels  # an edited file may have fewer
    except SfumatoError as error:
        broken = element("p", view.message(str(error)), class_="alarm", role="alert")
        return element("section", heading, broken, wizard_section(view, column), aria_labelledby="column-title")
    counted = hierarchy.taxonomy.counted
    kinds = {
        "numeric": "page_hierarchies.kinds.numeric",
        "date": "page_hierarchies.kinds.date",
        "categorical": "page_hierarchies.kinds.categorical",
    }
    facts = say(
        "page_hierarchies.facts", kind=say(kinds[hierarchy.taxonomy.type]), values=len(counted.values),
        records=int(counted.records.sum()), rule=rule_words(view, column),
    )  # fmt: skip
    is_quasi = column.settings.role == "quasi-identifier"
    parts: list[object] = [heading, element("p", facts, class_="quiet")]
    if not is_quasi:
        parts.append(element("p", say("page_hierarchies.sensitive"), class_="quiet"))
    if counted.missing:
        parts.append(element("p", say("page_hierarchies.without", count=counted.missing), class_="quiet"))
    if hierarchy.outside:
        parts.append(missing_section(view, column, hierarchy))
    if is_quasi and hierarchy.is_named:
        parts.append(level_section(view, column, hierarchy))
    if is_quasi and (
        hierarchy.taxonomy.type == "numeric" or (hierarchy.taxonomy.type == "date" and not hierarchy.is_named)
    ):
        parts.append(range_section(view, column, hierarchy))
    if hierarchy.is_named or hierarchy.is_categorical:
        parts.append(tree_section(view, column, hierarchy))
    parts.append(wizard_section(view, column))
    return element("section", *parts, aria_labelledby="column-title")


def _go_on(view: ProjectView, columns: list[SelectedColumn], selected: SelectedColumn) -> Markup:
    """The way to the next column, and to the next step."""
    positions = [column.position for column in columns]
    here = positions.index(selected.position)
    further: object = ""
    if here + 1 < len(columns):
        label = joined([view.say("page_hierarchies.next_column"), " ", name(columns[here + 1].name)])
        further = link_button(label, f"{view.address('hierarchies')}?column={positions[here + 1]}")
    on = link_button(view.say("page_hierarchies.go_on"), view.address("requirements"), look="main")
    return element("div", further, on, class_="row go-on")


# ---- actions ----


def make(view: ProjectView, form: PostedForm) -> str:
    """Give a column the hierarchy that a wizard makes: a rule where the policy has one for it, else a file."""
    column = selected_column(view, selectable_columns(view))
    wizard = asked_wizard(form)
    taxonomy = column.examined.drafted(wizard, column.settings.type)
    draft = taxonomy.draft

    def change(data: dict[str, Any]) -> dict[str, Any]:
        if draft.rule is not None and column.settings.role == "quasi-identifier":
            return with_hierarchy(data, column.name, draft.rule)
        rows = draft.rows.with_leaves(draft.outside)
        return with_hierarchy(data, column.name, write_rows(view.project, column.name, rows))

    view.change(form, "page_hierarchies.steps.made", change)
    return column.address(view)


def use_file(view: ProjectView, form: PostedForm) -> str:
    """Give a column the hierarchy of a file in the folder. The file is copied into the project."""
    column = selected_column(view, selectable_columns(view))
    rows = read_rows(view.project.folder.path(form.text("path").strip()), column.name)
    view.change(
        form,
        "page_hierarchies.steps.made",
        lambda data: with_hierarchy(data, column.name, write_rows(view.project, column.name, rows)),
    )
    return column.address(view)


def remove(view: ProjectView, form: PostedForm) -> str:
    """Take the hierarchy of a column away."""
    column = selected_column(view, selectable_columns(view))
    view.change(form, "page_hierarchies.steps.removed", lambda data: with_hierarchy(data, column.name, None))
    return column.address(view)


def levels(view: ProjectView, form: PostedForm) -> str:
    """Set the finest and the coarsest level that may be shown."""
    column = selected_column(view, selectable_columns(view))
    hierarchy: ColumnHierarchy = hierarchy_of(view.project, column.examined, column.settings)
    finest = min(max(form.whole("finest") or 0, 0), hierarchy.top_level - 1)
    coarsest = form.whole("coarsest")
    coarsest = hierarchy.top_level if coarsest is None else min(max(coarsest, finest), hierarchy.top_level)
    names = column.settings.level_names

    def change(data: dict[str, Any]) -> dict[str, Any]:
        settings = _without(data["columns"][column.name], "finest", "coarsest")
        if finest > 0:
            settings["finest"] = names[finest] if names else finest
        if coarsest < hierarchy.top_level:
            settings["coarsest"] = names[coarsest] if names else coarsest
        return {**data, "columns": {**data["columns"], column.name: settings}}

    view.change(form, "page_hierarchies.steps.levels", change)
    return column.address(view)


def numbers(view: ProjectView, form: PostedForm) -> str:
    """Set the grid of released bounds, and the values from which on numbers are one."""
    column = selected_column(view, selectable_columns(view))
    given = {key: form.number(key) for key in ("round", "bottom", "top") if key in form}
    if not given:
        raise UsageError("the form is not complete. Load the page again.")

    def change(data: dict[str, Any]) -> dict[str, Any]:
        settings = _without(data["columns"][column.name], *given)
        settings |= {key: _plain(value) for key, value in given.items() if value is not None}
        return {**data, "columns": {**data["columns"], column.name: settings}}

    view.change(form, "page_hierarchies.steps.numbers", change)
    return column.address(view)


def _plain(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _without(settings: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in keys}


SCREEN = Screen(
    key="hierarchies",
    title="page_hierarchies.title",
    task="page_hierarchies.task",
    draw=draw,
    actions={
        "make": make,
        "file": use_file,
        "remove": remove,
        "levels": levels,
        "numbers": numbers,
        **TREE_ACTIONS,
        **MISSING_ACTIONS,
    },
    original="until published",
)
