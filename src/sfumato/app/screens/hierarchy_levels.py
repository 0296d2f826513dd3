"""The levels of a hierarchy: the finest and the coarsest that may be shown, with examples of what is shown on each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.app.column_hierarchy import ColumnHierarchy
from sfumato.app.forms import button, field, text_input
from sfumato.app.selected_column import SelectedColumn, column_form
from sfumato.app.view import ProjectView
from sfumato.errors import SfumatoError
from sfumato.policy import ColumnSettings, Grouping
from sfumato.report.html import Markup, element, joined, name, scrolling
from sfumato.tables.coding.domains import NumericDomain

EXAMPLES = 7  # values of which every level is shown
RANGES, PART = 3, 8  # examples of what a class of numbers shows, and the part of the values that each has
NAMED_LEVELS = {
    "day": "page_hierarchies.level_names.day",
    "week": "page_hierarchies.level_names.week",
    "month": "page_hierarchies.level_names.month",
    "quarter": "page_hierarchies.level_names.quarter",
    "year": "page_hierarchies.level_names.year",
    "decade": "page_hierarchies.level_names.decade",
    "half-year": "page_hierarchies.level_names.half_year",
    "weekday": "page_hierarchies.level_names.weekday",
    "week-part": "page_hierarchies.level_names.week_part",
    "country": "page_hierarchies.level_names.country",
    "subregion": "page_hierarchies.level_names.subregion",
    "region": "page_hierarchies.level_names.region",
    "code": "page_hierarchies.level_names.code",
    "category": "page_hierarchies.level_names.category",
    "block": "page_hierarchies.level_names.block",
    "chapter": "page_hierarchies.level_names.chapter",
}


def level_names(view: ProjectView, settings: ColumnSettings, top_level: int) -> list[str]:
    """What the levels are called, from the values to ``*``, which is the top level."""
    say = view.say
    if settings.level_names:
        named = [say(NAMED_LEVELS[level]) for level in settings.level_names]
    else:
        rule, named = settings.taxonomy, [say("page_hierarchies.level_names.value")]
        for number in range(1, top_level):
            if isinstance(rule, Grouping) and rule.intervals is not None:
                width = say.number(rule.intervals[number - 1], ".12g")
                named.append(say("page_hierarchies.level_names.intervals", width=width))
            elif isinstance(rule, Grouping) and rule.prefix is not None:
                named.append(say("page_hierarchies.level_names.characters", count=rule.prefix[-number]))
            else:
                named.append(say("page_hierarchies.level_names.level", number=number))
    return [*named, say("page_hierarchies.level_names.all")]


def level_section(view: ProjectView, column: SelectedColumn, hierarchy: ColumnHierarchy) -> Markup:
    """Two sliders, and a table of levels that follows them."""
    say, names = view.say, level_names(view, hierarchy.settings, hierarchy.top_level)
    finest, coarsest = hierarchy.levels
    sliders = column_form(
        view, column, "levels",
        element(
            "div",
            _slider("finest", say("page_hierarchies.finest"), say("page_hierarchies.finest_hint"), finest, names[:-1]),
            _slider("coarsest", say("page_hierarchies.coarsest"), say("page_hierarchies.coarsest_hint"),
                    coarsest, names),
            class_="fields sliders",
        ),
        element("noscript", button(say("page.apply"), look="small")),
        id="levels-form",
    )  # fmt: skip
    divides = element("p", say("page_hierarchies.divides"), class_="quiet") if coarsest < hierarchy.top_level else ""
    return element(
        "section",
        element("h3", say("page_hierarchies.levels")),
        element("p", say("page_hierarchies.levels_text"), class_="quiet"),
        sliders,
        _table(view, hierarchy, names, finest, coarsest),
        divides,
        data_levels=True,
        class_="block",
    )


def _slider(key: str, label: str, hint: str, value: int, names: Sequence[str]) -> Markup:
    """A slider over levels that says the name of the level that it is at."""
    control = element(
        "input", type="range", name=key, id=f"level-{key}", min="0", max=str(len(names) - 1), step="1",
        value=str(value), aria_valuetext=names[value], data_auto=True, data_level=key, aria_describedby=f"hint-{key}",
    )  # fmt: skip
    return element(
        "div",
        element("label", element("span", label, class_="name"), control, class_="field"),
        element("output", names[value], for_=f"level-{key}", data_of=key),
        element("span", hint, class_="hint", id=f"hint-{key}"),
    )


def _table(view: ProjectView, hierarchy: ColumnHierarchy, names: Sequence[str], finest: int, coarsest: int) -> Markup:
    """Every level with its groups and with examples; levels that are never shown are struck out."""
    say, rows, facts = view.say, hierarchy.rows, hierarchy.level_facts

    def look(level: int) -> str | None:
        return "off" if not finest <= level <= coarsest else None

    def line(head: object, cells: Sequence[object], kind: str | None = None) -> Markup:
        shown = [element("td", cell, class_=look(level), data_at=str(level)) for level, cell in enumerate(cells)]
        return element("tr", element("th", head, scope="row", class_="text"), *shown, class_=kind)

    heads = [
        element("th", text, scope="col", class_=look(level), data_at=str(level)) for level, text in enumerate(names)
    ]
    total = hierarchy.taxonomy.counted.records
    records = int(total.sum())
    body = [
        line(say("page_hierarchies.groups"), [*(say.number(level.used) for level in facts), "1"]),
        line(
            say("page_hierarchies.smallest"),
            [*(say.number(level.smallest[0]) if level.smallest else "0" for level in facts), say.number(records)],
        ),
    ]
    known = hierarchy.column.records_of
    present = [row for row, leaf in enumerate(rows.leaves) if leaf in known]
    chosen = _spread(present, EXAMPLES)
    labels = _coded_labels(hierarchy, chosen) or [
        [rows.leaves[row], *(level[row] for level in rows.levels)] for row in chosen
    ]
    for shown in labels:
        cells = [*(name(hierarchy.shown(label)) for label in shown), "*"]
        body.append(line(say("page_hierarchies.example"), cells, "example"))
    inside = element(
        "table",
        element("caption", say("page_hierarchies.preview")),
        element("thead", element("tr", element("td", ""), *heads)),
        element("tbody", *body),
        class_="levels",
    )
    return scrolling(inside, say("page_hierarchies.preview"))


def _coded_labels(hierarchy: ColumnHierarchy, rows: Sequence[int]) -> list[list[str]]:
    """What is shown of numbers that a top or bottom makes one value, on every level below ``*``; else nothing."""
    settings = hierarchy.settings
    if settings.top is None and settings.bottom is None:
        return []
    counted = hierarchy.column.counted(settings.model_copy(update={"finest": None, "coarsest": None}))
    domain, positions = counted.domain, {value: number for number, value in enumerate(counted.values)}
    codes = counted.codes[[positions[hierarchy.rows.leaves[row]] for row in rows]].astype(np.uint32)
    levels = []
    for level in range(hierarchy.top_level):
        coarser, group = domain.at_level(level)
        levels.append(coarser.release(group[codes], group[codes]).labels.to_pylist())
    return [list(map(str, labels)) for labels in zip(*levels, strict=True)]


def _spread(rows: Sequence[int], most: int) -> list[int]:
    """Some of the rows, spread evenly from the first to the last."""
    if len(rows) <= most:
        return list(rows)
    return [rows[round(number * (len(rows) - 1) / (most - 1))] for number in range(most)]


def range_section(view: ProjectView, column: SelectedColumn, hierarchy: ColumnHierarchy) -> Markup:
    """Rounding, top and bottom of numbers, and what classes of neighbouring values would show."""
    say, settings = view.say, column.settings
    is_numeric = hierarchy.taxonomy.type == "numeric"
    fields: list[object] = []
    if settings.taxonomy is None and is_numeric:
        fields.append(
            _number_field(
                view, "round", settings.round, say("page_hierarchies.round"), say("page_hierarchies.round_hint")
            )
        )
    if is_numeric:
        low, high = _beyond(view, hierarchy, "bottom"), _beyond(view, hierarchy, "top")
        fields += [
            _number_field(view, "bottom", settings.bottom, say("page_hierarchies.bottom"), low),
            _number_field(view, "top", settings.top, say("page_hierarchies.top"), high),
        ]
    change: object = ""
    if fields:
        change = column_form(
            view, column, "numbers", element("div", *fields, class_="fields"),
            button(say("page_hierarchies.set_numbers"), look="small", id="numbers-set"), id="numbers-form",
        )  # fmt: skip
    examples = _examples(column, settings) if settings.taxonomy is None else []
    shown: object = ""
    if examples:
        items = [element("li", element("q", name(label))) for label in examples]
        shown = joined(
            [
                element("p", say("page_hierarchies.ranges_text"), class_="quiet"),
                element("ul", *items, class_="shown-ranges"),
            ]
        )
    return element("section", element("h3", say("page_hierarchies.ranges")), change, shown, class_="block")


def _number_field(view: ProjectView, key: str, value: float | None, label: str, hint: str) -> Markup:
    shown = "" if value is None else f"{value:.12g}".replace(".", view.say.language.decimal)
    return field(label, text_input(key, shown, inputmode="decimal", id=f"number-{key}"), hint=hint)


def _beyond(view: ProjectView, hierarchy: ColumnHierarchy, key: str) -> str:
    """How many records a limit makes one value, or what it would do."""
    limit = getattr(hierarchy.settings, key)
    texts = {"bottom": "page_hierarchies.bottom_hint", "top": "page_hierarchies.top_hint"}
    if limit is None:
        return view.say(texts[key])
    counted = hierarchy.column.counted(ColumnSettings(role="quasi-identifier", type="numeric"))
    domain = counted.domain
    assert isinstance(domain, NumericDomain)
    numbers = domain.numbers()[np.minimum(counted.codes, len(domain.values) - 1)]
    held = numbers <= limit if key == "bottom" else numbers >= limit
    return view.say(
        "page_hierarchies.beyond", count=int(counted.records[held & (counted.codes < len(domain.values))].sum())
    )


def _examples(column: SelectedColumn, settings: ColumnSettings) -> list[str]:
    """What classes of neighbouring values would show: the lower, the middle and the upper part of all values."""
    try:
        domain = column.examined.counted(settings).domain
    except SfumatoError:
        return []  # the limits do not fit the numbers, which the check of the policy says
    if not isinstance(domain, NumericDomain) or len(domain.values) < 2 * RANGES:
        return []
    width = max(1, len(domain.values) // PART)
    low = np.linspace(0, len(domain.values) - 1 - width, RANGES).astype(np.uint32)
    high = low + np.uint32(width)
    return [str(label) for label in domain.release(low, high).labels.to_pylist()]
