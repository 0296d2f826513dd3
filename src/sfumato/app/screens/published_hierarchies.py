"""The hierarchy of a column once the release is published: what the policy allowed, without values and their records.

The values of the table are removed by then. The groups of a taxonomy file are part of the policy, and stay.
"""

from __future__ import annotations

from sfumato.app.column_hierarchy import ColumnHierarchy, hierarchy_of
from sfumato.app.screens.hierarchy_levels import level_names
from sfumato.app.screens.hierarchy_tree import tree_section
from sfumato.app.selected_column import SelectedColumn
from sfumato.app.view import ProjectView
from sfumato.errors import SfumatoError
from sfumato.policy import ColumnSettings, Grouping
from sfumato.policy.taxonomy_paths import FLAT
from sfumato.report.html import Markup, capitalised, element, name, table

LIMITS = {
    "round": "page_hierarchies.published.round",
    "bottom": "page_hierarchies.published.bottom",
    "top": "page_hierarchies.published.top",
}


def published_column(view: ProjectView, column: SelectedColumn, rule: str) -> Markup:
    """What was allowed to be shown of a column. rule: its hierarchy in a few words."""
    say, settings = view.say, column.settings
    parts: list[object] = [
        element("h2", name(column.name), id="column-title"),
        element(
            "p",
            capitalised(rule) if settings.taxonomy is None else say("page_hierarchies.published.rule", rule=rule),
            ".",
            class_="sentence",
        ),
    ]
    for key, text in LIMITS.items():
        limit = getattr(settings, key)
        if limit is not None:
            shown = f"{limit:.12g}".replace(".", say.language.decimal)
            parts.append(element("p", say(text, limit=shown), class_="sentence"))
    if settings.role != "quasi-identifier":
        parts.append(element("p", say("page_hierarchies.sensitive"), class_="quiet"))
    try:
        hierarchy = _file_hierarchy(view, column)
        if settings.role == "quasi-identifier" and settings.taxonomy not in (None, FLAT):
            parts.append(_levels(view, column, _top_level(settings, hierarchy)))
        if hierarchy is not None:
            parts.append(tree_section(view, column, hierarchy))
    except SfumatoError as error:  # the file has been changed or removed since
        parts.append(element("p", view.message(str(error)), class_="alarm", role="alert"))
    return element("section", *parts, aria_labelledby="column-title")


def _file_hierarchy(view: ProjectView, column: SelectedColumn) -> ColumnHierarchy | None:
    """The tree of a taxonomy file; what follows from a rule has no tree without values."""
    if column.settings.taxonomy_file is None:
        return None
    return hierarchy_of(view.project, column.examined, column.settings)


def _top_level(settings: ColumnSettings, hierarchy: ColumnHierarchy | None) -> int:
    """The number of the level that is ``*``."""
    if hierarchy is not None:
        return hierarchy.top_level
    if settings.level_names:
        return len(settings.level_names)
    assert isinstance(settings.taxonomy, Grouping)
    return len(settings.taxonomy.intervals or settings.taxonomy.prefix or ()) + 1


def _levels(view: ProjectView, column: SelectedColumn, top_level: int) -> Markup:
    """Every level, and whether it was allowed to be shown."""
    say = view.say
    finest, coarsest = column.settings.levels(column.name, top_level)
    words = {True: say("page_hierarchies.published.shown"), False: say("page_hierarchies.published.never")}
    rows = [
        (level, words[finest <= number <= coarsest])
        for number, level in enumerate(level_names(view, column.settings, top_level))
    ]
    heads = (say("page_hierarchies.published.level"), say("page_hierarchies.published.allowed"))
    return table(say("page_hierarchies.published.levels"), heads, rows, text=(0, 1))
