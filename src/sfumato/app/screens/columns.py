"""Columns: a card for each, with what it holds, its proposed role and the reason, and the role that it gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.app.background_run import last_run
from sfumato.app.date_cells import without_midnight
from sfumato.app.exposures import exposure_table
from sfumato.app.forms import button, checkbox, hidden, link_button, radio_group
from sfumato.app.reason_texts import reason_text
from sfumato.app.run_status import run_panel
from sfumato.app.screens.column_roles import RELEASED_AS_THEY_ARE, ROLES, UNDECIDED, accept, rest, role
from sfumato.app.screens.derived_columns import derive, derive_form, underive
from sfumato.app.view import ProjectView, Screen
from sfumato.evaluation.linkability.linkable_columns import UNIQUE_SHARE
from sfumato.pictures.small_bars import small_bars
from sfumato.report.html import Markup, capitalised, element, folded, joined, name
from sfumato.report.page import in_page_colours
from sfumato.texts import Texts

SHOWN_LABELS = 3
MOST_CARDS = 120  # on one page


def draw(view: ProjectView) -> Markup:
    say, run, examined = view.say, view.examination, view.examined
    parts: list[object] = []
    if run is not None and run.number != view.state.notes.get("examined"):
        parts.append(run_panel(view, run))
    if examined is None:
        if run is None:
            parts.append(
                element(
                    "p",
                    say("page_columns.not_read"),
                    " ",
                    element("a", say("page_columns.to_open"), href=view.address("open")),
                )
            )
        return joined(parts)
    roles = view.roles
    parts += [_summary(view, examined, roles), _remarks(view, examined), _cards(view, examined, roles)]
    parts += [_sets(view, examined), "" if view.locked else derive_form(view, examined), _go_on(view, roles)]
    return joined(parts)


def _summary(view: ProjectView, examined: Mapping[str, Any], roles: Mapping[str, str]) -> Markup:
    say = view.say
    undecided = [column for column, role in roles.items() if role == UNDECIDED]
    facts = say("page_columns.facts", records=examined["records"], columns=len(roles))
    counts = {role: sum(1 for each in roles.values() if each == role) for role in (UNDECIDED, *ROLES)}
    shown = view.query.get("role", "")
    filters = [_filter(view, "", say("page_columns.all"), len(roles), shown)]
    labels = {UNDECIDED: say("page_columns.roles.decide"), **{role: say(text) for role, text in ROLES.items()}}
    filters += [_filter(view, role, labels[role], count, shown) for role, count in counts.items() if count]
    parts = [element("p", facts, class_="quiet")]
    if undecided:
        rest = view.form("rest", button(say("page_columns.drop_rest"), look="small", id="drop-rest"), class_="inline")
        line = element("strong", say("page_columns.undecided", count=len(undecided)))
        parts.append(element("div", line, " ", "" if view.locked else rest, class_="row note", id="undecided"))
    parts.append(element("nav", element("ul", *filters), class_="filters", aria_label=say("page_columns.filter")))
    return joined(parts)


def _filter(view: ProjectView, role: str, label: str, count: int, shown: str) -> Markup:
    address = view.address("columns") + (f"?role={role}" if role else "")
    current = "true" if role == shown else None
    return element(
        "li",
        element(
            "a",
            f"{label} ",
            element("span", view.say.number(count), class_="count"),
            href=address,
            aria_current=current,
        ),
    )


def _remarks(view: ProjectView, examined: Mapping[str, Any]) -> Markup:
    remarks = [*examined["remarks"], *examined["left_out"]]
    if not remarks:
        return Markup("")
    lines = [element("li", view.message(remark)) for remark in remarks]
    return folded(view.say("page_columns.remarks", count=len(remarks)), element("ul", *lines))


def _cards(view: ProjectView, examined: Mapping[str, Any], roles: Mapping[str, str]) -> Markup:
    say = view.say
    wanted = view.query.get("role", "")
    columns = [column for column in examined["columns"] if not wanted or roles.get(column["name"]) == wanted]
    positions = {column["name"]: position for position, column in enumerate(examined["columns"])}
    first = max(0, int(view.query["from"])) if view.query.get("from", "").isdigit() else 0
    shown = columns[first : first + MOST_CARDS]
    cards = [
        _card(view, column, positions[column["name"]], roles.get(column["name"], UNDECIDED), examined)
        for column in shown
    ]
    pages: list[object] = []
    for start in range(0, len(columns), MOST_CARDS) if len(columns) > MOST_CARDS else ():
        label = say("page_columns.range", first=start + 1, last=min(start + MOST_CARDS, len(columns)))
        address = f"{view.address('columns')}?from={start}" + (f"&role={wanted}" if wanted else "")
        pages.append(element("li", element("a", label, href=address, aria_current="page" if start == first else None)))
    paging = (
        element("nav", element("ul", *pages), class_="filters", aria_label=say("page_columns.pages")) if pages else ""
    )
    return joined([paging, element("div", *cards, class_="cards columns-cards")])


def _card(
    view: ProjectView, column: Mapping[str, Any], position: int, role: str, examined: Mapping[str, Any]
) -> Markup:
    say, title = view.say, f"column-{position}"
    figure = examined["figures"].get(column["name"])
    facts = say("page_columns.column_facts", distinct=column["distinct"], alone=column["alone"])
    if column["missing"]:
        facts += " \N{MIDDLE DOT} " + say("page_columns.column_missing", count=column["missing"])
    proposed = column["role"]
    said = (
        say("page_columns.no_proposal")
        if proposed == UNDECIDED
        else say("page_columns.proposed", role=say(ROLES[proposed]))
    )
    alarm: object = ""
    if proposed == "identifier" and role in RELEASED_AS_THEY_ARE:
        alarm = element("p", say("page_columns.alarm"), class_="alarm", role="alert")
    choices: object = radio_group(
        "role",
        say("page_columns.role_of", column=column["name"]),
        {key: say(text) for key, text in ROLES.items()},
        role,
        auto=True,
        look="roles",
    )
    if view.locked:
        label = element("span", say("page_columns.role_of", column=column["name"]), class_="hint")
        words = say(ROLES[role]) if role in ROLES else say("page_columns.roles.decide")
        choices = element("p", label, " ", element("strong", words))
    else:
        choices = view.form(
            "role",
            hidden("column", position),
            choices,
            element("noscript", button(say("page.apply"), look="small")),
            id=f"role-{position}",
        )
    return element(
        "article",
        element("h2", name(column["name"]), id=title),
        element("p", column["description"], class_="quiet") if column["description"] else "",
        "" if figure is None else _figure(view, column, figure),
        element("p", facts, class_="quiet"),
        element(
            "p",
            element("strong", said, "."),
            " ",
            capitalised(reason_text(column["reason"], say)),
            ".",
            class_="reason",
        ),
        alarm,
        choices,
        _linkable(view, column, position, role, examined["records"]),
        class_=f"card role-{role}",
        aria_labelledby=title,
    )


def _linkable(view: ProjectView, column: Mapping[str, Any], position: int, role: str, records: int) -> Markup:
    """The way to keep a column by which persons may be recognised, which a run refuses otherwise."""
    accepted = column["name"] in view.policy.accept_linkable
    if view.locked or role not in RELEASED_AS_THEY_ARE or not (accepted or _is_linkable(view, column, records)):
        return Markup("")
    label = view.say("page_columns.accept")
    box = checkbox("accept", "yes", label, checked=accepted, data_auto=True, id=f"accept-{position}")
    return view.form("accept", hidden("column", position), box, id=f"linkable-{position}")


def _is_linkable(view: ProjectView, column: Mapping[str, Any], records: int) -> bool:
    """Whether most values are unique, or the last trial was refused because of the column."""
    known = records - column["missing"]
    if column["alone"] and column["alone"] >= UNIQUE_SHARE * known:
        return True
    trial = last_run(view.project, "trial")
    refused = {} if trial is None else trial.result or {}
    return repr(column["name"]) in str(refused.get("message", ""))


def _figure(view: ProjectView, column: Mapping[str, Any], figure: Mapping[str, Any]) -> Markup:
    """Bars, and the most frequent values or the ends of the range in words."""
    say, labels, records = view.say, figure["labels"], figure["records"]
    if not labels:
        return element("p", say("page_columns.empty"), class_="quiet")
    labels = list(map(without_midnight, labels))
    if figure["ordered"] and len(labels) > 1:
        words = say("page_columns.range_of", low=_end(labels[0], 0, say), high=_end(labels[-1], -1, say))
    else:
        words = say("page_columns.values", values=" \N{MIDDLE DOT} ".join(labels[:SHOWN_LABELS]))
    title = say("page_columns.figure", column=column["name"])
    if len(set(records)) == 1 and records[0] == 1:
        return element("p", element("bdi", words), class_="quiet shortened")  # bars of one record say nothing
    picture = small_bars(records, title=title, description=words)
    return element(
        "figure",
        in_page_colours(picture),
        element("figcaption", element("bdi", words), class_="shortened"),
        class_="small",
    )


def _end(label: str, side: int, say: Texts) -> str:
    """The end of a bar that is a range, with the marks of the language; of one that is a value, the value."""
    ends = label.split(" \N{EN DASH} ")
    return say.with_marks(ends[side]) if len(ends) > 1 else label


def _sets(view: ProjectView, examined: Mapping[str, Any]) -> Markup:
    say = view.say
    sets = examined["dangerous"]
    if not sets:
        return element("p", say("page_columns.no_sets"), class_="quiet")
    records = max(1, examined["records"])
    worst_first = sorted(sets, key=lambda found: (-found["unique"], len(found["columns"])))
    return element(
        "section",
        element("h2", say("page_columns.sets")),
        element("p", say("page_columns.sets_text"), class_="quiet"),
        exposure_table(view, say("page_columns.sets"), worst_first, records),
    )


def _go_on(view: ProjectView, roles: Mapping[str, str]) -> Markup:
    if UNDECIDED in roles.values():
        return Markup("")
    return element(
        "div", link_button(view.say("page_columns.go_on"), view.address("hierarchies"), look="main"), class_="row go-on"
    )


SCREEN = Screen(
    key="columns",
    title="page_columns.title",
    task="page_columns.task",
    draw=draw,
    actions={"role": role, "accept": accept, "rest": rest, "derive": derive, "underive": underive},
    original="always",
)
