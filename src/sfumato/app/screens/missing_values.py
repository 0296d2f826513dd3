"""Values of a table that the hierarchy of their column does not have, and where they are put."""

from __future__ import annotations

from typing import Any

from sfumato.app.column_hierarchy import ColumnHierarchy, hierarchy_of
from sfumato.app.forms import PostedForm, button, field, text_input
from sfumato.app.screens.hierarchy_tree import PAGE, DrawnTree, change_tree, group_names
from sfumato.app.selected_column import SelectedColumn, column_form, selectable_columns, selected_column
from sfumato.app.view import ProjectView
from sfumato.errors import UsageError
from sfumato.report.html import Markup, element, name, shortened
from sfumato.taxonomies.group_tree import GroupTree, TreeNode
from sfumato.taxonomies.taxonomy import ROOT


def missing_section(view: ProjectView, column: SelectedColumn, hierarchy: ColumnHierarchy) -> Markup:
    """Values of the table that are not in the tree, with a place to put them."""
    say, outside = view.say, hierarchy.outside
    shown = outside[:PAGE]
    items = [
        element(
            "li",
            element(
                "div",
                element("input", type="checkbox", name="value", value=str(number),
                        aria_label=say("page_hierarchies.choose", name=shortened(value))),
                element("span", name(value), class_="label"),
                element("span", say("page_hierarchies.records", count=records), class_="records"),
                class_="node",
            ),
        )
        for number, (value, records) in enumerate(shown)
    ]  # fmt: skip
    parts: list[object] = [
        element("h3", say("page_hierarchies.missing", count=len(outside))),
        element("p", say("page_hierarchies.missing_text", records=sum(records for _, records in outside))),
        element("p", view.message(hierarchy.taxonomy.draft.remark), class_="quiet")
        if hierarchy.taxonomy.draft.remark
        else "",
    ]
    content: list[object] = [element("ul", *items, class_="tree")]
    if len(outside) > PAGE:
        content.append(element("p", say("page_hierarchies.more_missing", count=len(outside) - PAGE), class_="quiet"))
    drawn = DrawnTree(view, column, hierarchy)
    content += [
        field(say("page_hierarchies.into"),
              text_input("name", "", id="missing-name", list="missing-groups", autocomplete="off"),
              hint=say("page_hierarchies.into_hint")),
        group_names(drawn, "missing-groups"),
        element(
            "div",
            button(say("page_hierarchies.place"), look="small", name="do", value="place", id="place-some"),
            button(say("page_hierarchies.place_all", count=len(outside)), look="small", name="do", value="all",
                   id="place-all"),
            button(say("page_hierarchies.are_null"), look="small", name="do", value="null", id="place-null"),
            class_="row",
        ),
    ]  # fmt: skip
    form = column_form(view, column, "missing", *content, id="missing-form", class_="tree-form")
    return element("section", *parts, form, class_="block alarm-block")


# ---- action ----


def missing(view: ProjectView, form: PostedForm) -> str:
    """Put values that the tree does not have into a group, or say that they mean a missing value."""
    column = selected_column(view, selectable_columns(view))
    outside = [value for value, _ in hierarchy_of(view.project, column.examined, column.settings).outside]
    wanted = {int(text) for text in form.texts("value") if text.isdecimal() and len(text) < 10}
    values = (
        outside if form.text("do") == "all" else [value for number, value in enumerate(outside) if number in wanted]
    )
    if not values:
        raise UsageError("nothing is chosen. Choose values first.")
    if form.text("do") == "null":
        nulls = [*(column.settings.nulls or ()), *values]

        def as_null(data: dict[str, Any]) -> dict[str, Any]:
            settings = {**data["columns"][column.name], "nulls": nulls}
            return {**data, "columns": {**data["columns"], column.name: settings}}

        view.change(form, "page_hierarchies.steps.nulls", as_null)
        return column.address(view)
    given = form.text("name").strip()

    def change(tree: GroupTree, nodes: list[TreeNode]) -> None:
        existing = next((node for node in nodes if node.is_group and node.name == given), None)
        if given in ("", ROOT) or existing is not None:
            tree.add(values, existing or tree.root)
            return
        before = len(tree.root.members)
        tree.add(values, tree.root)
        tree.group(tree.root.members[before:], given)

    change_tree(view, form, column, "page_hierarchies.steps.missing", change)
    return column.address(view)


ACTIONS = {"missing": missing}
