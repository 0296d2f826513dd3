"""The tree of a hierarchy with the records of this table: looked at part by part, and changed group by group.

Only a part of a large tree is sent: a page of the members of one group, and as many levels below them as fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sfumato.app.column_hierarchy import ColumnHierarchy, hierarchy_of, write_rows
from sfumato.app.forms import PostedForm, button, field, hidden, text_input
from sfumato.app.selected_column import (
    SelectedColumn,
    column_form,
    selectable_columns,
    selected_column,
    with_hierarchy,
)
from sfumato.app.view import ProjectView
from sfumato.errors import UsageError
from sfumato.policy.taxonomy_paths import FLAT
from sfumato.report.html import Markup, element, joined, name, shortened
from sfumato.taxonomies.group_tree import GroupTree, TreeNode
from sfumato.taxonomies.taxonomy import ROOT

PAGE = 50  # members of the group that is looked at
MOST_SHOWN = 100  # values and groups on one page
MOST_NAMED = 300  # groups that are offered as names

TreeChange = Callable[[GroupTree, list[TreeNode]], None]


@dataclass(frozen=True)
class DrawnTree:
    """A tree with the records and values of the table under its nodes, as a page shows it.

    scale: the records of the longest bar.
    """

    view: ProjectView
    column: SelectedColumn
    hierarchy: ColumnHierarchy
    scale: int = 1

    def scaled(self, shown: Sequence[TreeNode]) -> DrawnTree:
        """The tree with bars that use the width, for the page with these nodes."""
        return replace(self, scale=max([1, *map(self.records, shown)]))

    @property
    def nodes(self) -> list[TreeNode]:
        return self.hierarchy.counted_tree.nodes

    @property
    def editable(self) -> bool:
        return self.hierarchy.is_categorical and not self.view.locked

    @property
    def counted(self) -> bool:
        """Whether the values of the table are still there, so that records are known."""
        return not self.view.locked

    def records(self, node: TreeNode) -> int:
        return self.hierarchy.counted_tree.records[self.number(node)]

    def values(self, node: TreeNode) -> int:
        return self.hierarchy.counted_tree.values[self.number(node)]

    def number(self, node: TreeNode) -> int:
        return self.hierarchy.counted_tree.numbers[id(node)]

    def asked(self, key: str) -> int:
        """A number of the address; 0 if there is none."""
        text = self.view.query.get(key, "")
        return int(text) if text.isdecimal() and len(text) < 10 else 0


def tree_section(view: ProjectView, column: SelectedColumn, hierarchy: ColumnHierarchy) -> Markup:
    """The tree, and what can be done with it."""
    say, drawn = view.say, DrawnTree(view, column, hierarchy)
    wanted = view.query.get("q", "").strip()
    listed = _found(drawn, wanted) if wanted else _members(drawn)
    if drawn.editable:
        listed = column_form(view, column, "groups", listed, _tools(drawn), id="groups-form", class_="tree-form",
                             data_tree=True)  # fmt: skip
    text = "page_hierarchies.tree_text" if hierarchy.is_categorical else "page_hierarchies.tree_fixed"
    title = "page_hierarchies.tree"
    if view.locked:
        title, text = "page_hierarchies.published.tree", "page_hierarchies.published.tree_text"
    return element(
        "section",
        element("h3", say(title), id="tree"),
        element("p", say(text), class_="quiet"),
        _search(drawn, wanted),
        listed,
        class_="block",
    )


def _search(drawn: DrawnTree, wanted: str) -> Markup:
    say = drawn.view.say
    clear = element("a", say("page_hierarchies.all"), href=drawn.column.address(drawn.view)) if wanted else ""
    return element(
        "form",
        hidden("column", drawn.column.position),
        element(
            "div",
            field(say("page_hierarchies.search"), text_input("q", wanted, type="search", id="tree-search")),
            button(say("page_hierarchies.find"), look="small"),
            clear,
            class_="row",
        ),
        method="get",
        action=f"{drawn.view.address('hierarchies')}",
        role="search",
    )


def _found(drawn: DrawnTree, wanted: str) -> Markup:
    """The groups and values whose names hold what is searched for."""
    say, text = drawn.view.say, wanted.casefold()
    found = [node for node in drawn.nodes[1:] if text in node.name.casefold()]
    first = min(drawn.asked("from"), max(0, len(found) - 1)) // PAGE * PAGE
    shown = found[first : first + PAGE]
    items = [_row(drawn.scaled(shown), node, place=True) for node in shown]
    return joined(
        [
            element("p", say("page_hierarchies.found", count=len(found)), role="status"),
            element("ul", *items, class_="tree") if items else "",
            _pages(drawn, len(found), first, q=wanted),
        ]
    )


def _members(drawn: DrawnTree) -> Markup:
    """The members of the group that is looked at, and the levels below them that fit on the page."""
    nodes = drawn.nodes
    asked = drawn.asked("node")
    node = nodes[asked] if asked < len(nodes) and nodes[asked].is_group else nodes[0]
    first = min(drawn.asked("from"), max(0, len(node.members) - 1)) // PAGE * PAGE
    shown = node.members[first : first + PAGE]
    depth = _depth_that_fits(shown)
    items = [_branch(drawn.scaled(shown), member, depth) for member in shown]
    return joined(
        [
            _path(drawn, node),
            element("ul", *items, class_="tree"),
            _pages(drawn, len(node.members), first, **({"node": drawn.number(node)} if node is not nodes[0] else {})),
        ]
    )


def _depth_that_fits(shown: Sequence[TreeNode]) -> int:
    """How many further levels of members fit on the page below these nodes."""
    count, depth, below = len(shown), 0, list(shown)
    while True:
        below = [member for node in below for member in node.members]
        count += len(below)
        if not below or count > MOST_SHOWN:
            return depth
        depth += 1


def _branch(drawn: DrawnTree, node: TreeNode, depth: int) -> Markup:
    """A node, with its members to a depth."""
    inside: object = ""
    if node.is_group and depth > 0:
        inside = element("ul", *(_branch(drawn, member, depth - 1) for member in node.members))
    return _row(drawn, node, inside)


def _row(drawn: DrawnTree, node: TreeNode, inside: object = "", *, place: bool = False) -> Markup:
    """One line of the tree: its name and its records, with a bar of them."""
    view, number = drawn.view, drawn.number(node)
    say = view.say
    records = drawn.records(node)
    label: object = name(drawn.hierarchy.shown(node.name))
    if node.is_group:
        label = element("a", label, href=drawn.column.address(view, node=number), class_="group")
    above = [group for group in node.above() if group.name != ROOT] if place else []
    facts = say("page_hierarchies.node_values", count=drawn.values(node)) if node.is_group and drawn.counted else ""
    closed = node.is_group and not inside and not place
    notes: list[object] = [facts] if facts else []
    if above:
        notes.append(joined([say("page_hierarchies.in_group"), " ", name(above[0].name)]))
    if closed and len(node.members) != drawn.values(node):  # otherwise it would be said twice
        notes.append(say("page_hierarchies.closed", count=len(node.members)))
    further = [element("span", " \N{MIDDLE DOT} ", note, class_="quiet") for note in notes]
    line = [element("span", label, *further, class_="label")]
    if drawn.counted:
        line += [
            element("meter", min="0", max=str(drawn.scale), value=str(records), aria_hidden="true"),
            element("span", say("page_hierarchies.records", count=records), class_="records"),
        ]
    if drawn.editable:
        box = element("input", type="checkbox", name="node", value=str(number), id=f"node-{number}",
                      aria_label=say("page_hierarchies.choose", name=shortened(node.name)))  # fmt: skip
        line.insert(0, box)
    return element(
        "li",
        element("div", *line, class_="node"),
        inside,
        draggable="true" if drawn.editable else None,
        data_node=str(number) if drawn.editable else None,
        data_group=node.is_group and drawn.editable,
        class_="unused" if drawn.counted and not records else None,
    )


def _path(drawn: DrawnTree, node: TreeNode) -> Markup:
    """The groups above the one that is looked at."""
    chain = [*reversed(node.above()), node]
    steps = [
        element(
            "li",
            element("a", name(group.name) if group.name != ROOT else drawn.view.say("page_hierarchies.root"),
                    href=drawn.column.address(drawn.view, node=drawn.number(group)),
                    aria_current="true" if group is node else None),
            data_node=str(drawn.number(group)) if drawn.editable else None,
            data_group=drawn.editable,
        )
        for group in chain
    ]  # fmt: skip
    facts = drawn.view.say("page_hierarchies.records", count=drawn.records(node)) if drawn.counted else ""
    return element(
        "nav", element("ol", *steps, class_="path"), element("span", facts, class_="quiet"),
        class_="row", aria_label=drawn.view.say("page_hierarchies.path_label"),
    )  # fmt: skip


def _pages(drawn: DrawnTree, count: int, first: int, **place: int | str) -> Markup:
    """How many are not shown, and the way to them."""
    if count <= PAGE:
        return Markup("")
    say, last = drawn.view.say, min(first + PAGE, count)
    links: list[object] = []
    if first > 0:
        links.append(element("a", say("page_hierarchies.before"), href=drawn.column.address(
            drawn.view, **place, **{"from": first - PAGE}), class_="button small"))  # fmt: skip
    if last < count:
        links.append(element("a", say("page_hierarchies.after"), href=drawn.column.address(
            drawn.view, **place, **{"from": last}), class_="button small"))  # fmt: skip
    text = say("page_hierarchies.shown", first=first + 1, last=last, count=count, hidden=count - (last - first))
    return element("div", element("span", text, class_="quiet"), *links, class_="row")


def _tools(drawn: DrawnTree) -> Markup:
    """What can be done with the chosen nodes."""
    say = drawn.view.say
    buttons = [
        button(say("page_hierarchies.group"), look="small", name="do", value="group", id="do-group"),
        button(say("page_hierarchies.move"), look="small", name="do", value="move", id="do-move"),
        button(say("page_hierarchies.rename"), look="small", name="do", value="rename", id="do-rename"),
        button(say("page_hierarchies.dissolve"), look="small", name="do", value="dissolve", id="do-dissolve"),
    ]
    return element(
        "div",
        field(say("page_hierarchies.group_name"),
              text_input("name", "", id="group-name", list="group-names", autocomplete="off")),
        element("div", *buttons, class_="row"),
        group_names(drawn, "group-names"),
        element("p", say("page_hierarchies.tools_text"), class_="hint"),
        hidden("target", ""),
        class_="tools",
        role="group",
        aria_label=say("page_hierarchies.tools"),
    )  # fmt: skip


def group_names(drawn: DrawnTree, key: str) -> Markup:
    names = [node.name for node in drawn.nodes[1:] if node.is_group]
    return element("datalist", *(element("option", value=text) for text in names[:MOST_NAMED]), id=key)


# ---- actions ----


def groups(view: ProjectView, form: PostedForm) -> str:
    """Make, rename, fill or dissolve groups."""
    column = selected_column(view, selectable_columns(view))
    given, target = form.text("name").strip(), form.whole("target")

    def change(tree: GroupTree, nodes: list[TreeNode]) -> None:
        chosen = _chosen(form, nodes)
        match form.text("do"):
            case "group":
                tree.group(chosen, given)
            case "move":
                tree.move(
                    chosen, nodes[target] if target is not None and 0 <= target < len(nodes) else _named(nodes, given)
                )
            case "rename":
                if len(chosen) != 1:
                    raise UsageError("one group gets a new name at a time. Choose one group.")
                tree.rename(chosen[0], given)
            case "dissolve":
                for node in chosen:
                    tree.dissolve(node)
            case _:
                raise UsageError("there is no such change. Load the page again.")

    change_tree(view, form, column, "page_hierarchies.steps.groups", change)
    # The numbers of groups are others after a change, so the tree is shown from its top unless it was searched.
    return column.address(view, **({"q": view.query["q"]} if view.query.get("q") else {}))


def change_tree(view: ProjectView, form: PostedForm, column: SelectedColumn, what: str, change: TreeChange) -> None:
    """Change the tree of a column, and write it into the project as a file."""
    hierarchy = hierarchy_of(view.project, column.examined, column.settings)
    if not hierarchy.is_categorical:
        raise UsageError("numbers and dates keep their order. Make other intervals or units, or groups by a wizard.")
    tree = hierarchy.tree()
    change(tree, tree.nodes)
    finest, coarsest = (tree.level_now(level) for level in hierarchy.levels)
    rows, top = tree.rows(), tree.root.level

    def changed(data: dict[str, Any]) -> dict[str, Any]:
        if not rows.levels:  # no group is left
            return with_hierarchy(data, column.name, FLAT if column.settings.role == "quasi-identifier" else None)
        levels = {"finest": finest if 0 < finest < top else None, "coarsest": coarsest if coarsest < top else None}
        levels = levels if hierarchy.is_named else {}
        return with_hierarchy(data, column.name, write_rows(view.project, column.name, rows), **levels)

    view.change(form, what, changed)


def _chosen(form: PostedForm, nodes: Sequence[TreeNode]) -> list[TreeNode]:
    numbers = [int(text) for text in form.texts("node") if text.isdecimal() and len(text) < 10]
    if not numbers or any(number >= len(nodes) for number in numbers):
        raise UsageError("nothing is chosen. Choose values or groups first.")
    return [nodes[number] for number in numbers]


def _named(nodes: Sequence[TreeNode], text: str) -> TreeNode:
    found = next((node for node in nodes if node.is_group and node.name == text), None)
    if found is None:
        raise UsageError("there is no group of this name. Choose one from the list, or make a new group.")
    return found


ACTIONS = {"groups": groups}
