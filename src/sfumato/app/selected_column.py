"""The column whose hierarchy is looked at, which the address names by its position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlencode

from sfumato.app.column_hierarchy import ExaminedColumn, examined_column
from sfumato.app.forms import hidden
from sfumato.app.view import ProjectView
from sfumato.errors import UsageError
from sfumato.policy import ColumnSettings
from sfumato.report.html import Markup, element

OF_TAXONOMIES = ("taxonomy", "finest", "coarsest")
NOT_WITH_TAXONOMIES = ("type", "round")  # a taxonomy says what the column is, and what is shown of it
OF_NUMBERS = ("bottom", "top")
OF_RANGES = ("form", "statistic_round")
KEPT_IN_ADDRESS = ("node", "q", "from")  # where in the tree one looks


@dataclass(frozen=True)
class SelectedColumn:
    """A column that can have a hierarchy.

    position: among the columns of the examination. kind: what its values are, as in ``ColumnFacts``. fits: flags of
    ``sfumato taxonomy`` that suit it.
    """

    position: int
    name: str
    kind: str
    settings: ColumnSettings
    fits: tuple[str, ...]
    load: Callable[[], ExaminedColumn]

    @property
    def examined(self) -> ExaminedColumn:
        """Its values, which are read when somebody wants to see them."""
        return self.load()

    def address(self, view: ProjectView, **place: int | str) -> str:
        """The address of the column, at a place in its tree."""
        return f"{view.address('hierarchies')}?{urlencode({'column': self.position, **place})}"

    def address_here(self, view: ProjectView) -> str:
        """The address of the column at the place that is looked at."""
        return self.address(view, **{key: view.query[key] for key in KEPT_IN_ADDRESS if key in view.query})


def selectable_columns(view: ProjectView) -> list[SelectedColumn]:
    """The quasi-identifiers and sensitive columns of a project that has been examined."""
    examined, found = view.examined or {"columns": [], "figures": {}}, []
    run = str(view.state.notes.get("examined", ""))
    for position, column in enumerate(examined["columns"]):
        settings = view.policy.columns.get(column["name"])
        figure = examined["figures"].get(column["name"])
        if settings is not None and figure is not None and settings.role in ("quasi-identifier", "sensitive"):
            load = partial(examined_column, view.project, run, figure)
            fits = tuple(figure.get("fits", ()))
            found.append(SelectedColumn(position, column["name"], figure["kind"], settings, fits, load))
    return sorted(found, key=lambda column: column.settings.role != "quasi-identifier")


def values_gone(view: ProjectView) -> Markup:
    """What stands in the place of the columns once their values are removed."""
    text = view.say("page_columns.values_gone")
    way = element("a", view.say("page_open.again"), href=view.address("open"))
    return element("p", text, " ", way, class_="note")


def selected_column(view: ProjectView, columns: list[SelectedColumn]) -> SelectedColumn:
    """The column that the address names, or else the first."""
    if not columns:
        raise UsageError("no column can have a hierarchy. Give a column the role of a quasi-identifier first.")
    wanted = view.query.get("column", "")
    return next((column for column in columns if str(column.position) == wanted), columns[0])


def column_form(
    view: ProjectView, column: SelectedColumn, action: str, *content: object, **attributes: str | bool | None
) -> Markup:
    """A form about a column, which comes back to the same place if something is wrong."""
    place = {key: view.query[key] for key in KEPT_IN_ADDRESS if key in view.query}
    query = urlencode({"column": column.position, **place})
    return view.post(
        f"{view.address('hierarchies')}/{action}?{query}", hidden("version", view.state.version), *content, **attributes
    )


def with_hierarchy(data: dict[str, Any], column: str, taxonomy: Any, **levels: int | None) -> dict[str, Any]:
    """The policy with another taxonomy for a column, and without what no longer fits it."""
    before = data["columns"][column]
    left = {key: value for key, value in before.items() if key not in OF_TAXONOMIES}
    if taxonomy is not None:
        left["taxonomy"] = taxonomy
        is_numeric = isinstance(taxonomy, dict) and "intervals" in taxonomy
        is_range = is_numeric or (isinstance(taxonomy, dict) and "calendar" in taxonomy)
        gone = (*NOT_WITH_TAXONOMIES, *(() if is_numeric else OF_NUMBERS), *(() if is_range else OF_RANGES))
        left = {key: value for key, value in left.items() if key not in gone}
    left |= {key: level for key, level in levels.items() if level is not None}
    return {**data, "columns": {**data["columns"], column: left}}
