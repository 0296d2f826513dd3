"""Open: how the table is read. Its first rows, the marks and tokens, the header, and what reads as missing."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from sfumato.app.background_run import start_run
from sfumato.app.forms import PostedForm, button, checkbox, field, hidden, select, text_input
from sfumato.app.message_texts import part_of_sentence
from sfumato.app.preview import HEADER_AMONG, MOST_CELLS, Preview, preview
from sfumato.app.run_status import run_panel
from sfumato.app.screens.projects import size_text
from sfumato.app.view import ProjectView, Screen
from sfumato.errors import SfumatoError
from sfumato.policy import InputSettings
from sfumato.report.html import Markup, element, joined, name, scrolling

SEPARATORS = {
    ",": "page_open.marks.comma",
    ";": "page_open.marks.semicolon",
    "\t": "page_open.marks.tab",
    "|": "page_open.marks.bar",
}
ENCODINGS = ("utf-8", "cp1252", "latin-1", "utf-16", "iso8859-15", "cp1250", "cp437", "mac-roman")
THOUSANDS = {
    "": "page_open.marks.none",
    ".": "page_open.marks.point",
    ",": "page_open.marks.comma",
    "'": "page_open.marks.apostrophe",
    " ": "page_open.marks.space",
}
DECIMALS = {".": "page_open.marks.point", ",": "page_open.marks.comma"}


def draw(view: ProjectView) -> Markup:
    say, run = view.say, view.examination
    parts: list[object] = []
    if run is not None and run.state != "done":
        parts.append(run_panel(view, run))
    try:
        path = view.project.table
        seen = _seen(view)
        size = path.stat().st_size
    except SfumatoError as error:
        return joined([*parts, element("p", view.message(str(error)), class_="alarm", role="alert")])
    facts = say("page_open.facts", size=size_text(view, size), columns=len(seen.names))
    parts += [
        element("p", facts, class_="quiet"),
        element("p", say("page_open.fault", reason=part_of_sentence(seen.fault, say)), class_="alarm", role="alert")
        if seen.fault
        else "",
        _settings_form(view, seen),
        _rows(view, seen),
        _legend(view, seen),
        _sentinels(view, seen),
        _go_on(view, seen),
    ]
    return joined(parts)


def chosen_settings(view: ProjectView) -> dict[str, Any]:
    """The settings that the user chose, or that the policy came with; the others are guessed."""
    chosen: dict[str, Any] = dict(view.state.notes.get("reading", {}))
    if "examined" not in view.state.notes:
        given = view.policy.input.model_dump(mode="json", exclude_defaults=True)
        return {**given, **chosen}
    return chosen


def _column_nulls(view: ProjectView) -> dict[str, list[str]]:
    return {name: list(column.nulls) for name, column in view.policy.columns.items() if column.nulls}


def _seen(view: ProjectView) -> Preview:
    """The preview under the settings as they are, as long as the file is the same."""
    path = view.project.table
    status = path.stat()
    state = (status.st_ino, status.st_size, status.st_mtime_ns)
    return _cached(path, json.dumps(chosen_settings(view)), json.dumps(_column_nulls(view)), state)


@lru_cache(maxsize=8)
def _cached(path: Path, chosen: str, column_nulls: str, _: tuple[int, int, int]) -> Preview:
    return preview(path, json.loads(chosen), json.loads(column_nulls))


def _settings_form(view: ProjectView, seen: Preview) -> Markup:
    say, settings = view.say, seen.settings
    fields: list[object] = []
    if seen.kind == "text":
        encodings = {code: code for code in dict.fromkeys((settings.encoding, *ENCODINGS))}
        separators = {key: say(text) for key, text in SEPARATORS.items()}
        separators.setdefault(settings.separator, settings.separator)
        fields += [
            field(
                say("page_open.separator"),
                select("separator", separators, settings.separator, auto=True, id="separator"),
            ),
            field(
                say("page_open.encoding"), select("encoding", encodings, settings.encoding, auto=True, id="encoding")
            ),
        ]
    if seen.kind == "excel" and len(seen.sheets) > 1:
        sheets = {sheet: sheet for sheet in seen.sheets}
        fields.append(
            field(
                say("page_open.sheet"), select("sheet", sheets, settings.sheet or seen.sheets[0], auto=True, id="sheet")
            )
        )
    if seen.kind in ("text", "excel"):
        decimals = {key: say(text) for key, text in DECIMALS.items()}
        thousands = {key: say(text) for key, text in THOUSANDS.items()}
        fields += [
            field(say("page_open.decimal"), select("decimal", decimals, settings.decimal, auto=True, id="decimal")),
            field(
                say("page_open.thousands"),
                select("thousands", thousands, settings.thousands or "", auto=True, id="thousands"),
            ),
            field(
                say("page_open.dates"),
                text_input(
                    "date_format", settings.date_format or "", id="date_format", placeholder="%d.%m.%Y", data_auto=True
                ),
            ),
            field(
                say("page_open.nulls"),
                text_input("nulls", " ".join(token for token in settings.nulls if token), id="nulls", data_auto=True),
                hint=say("page_open.nulls_hint"),
            ),
        ]
    if not fields or view.locked:
        return Markup("")
    return view.form(
        "read",
        element("fieldset", element("legend", say("page_open.how")), *fields, class_="fields"),
        element("noscript", button(say("page.apply"))),
        id="reading",
    )


def _rows(view: ProjectView, seen: Preview) -> Markup:
    """The first lines as they stand in the file, with the header to be chosen, and the records as they are read."""
    say = view.say
    above = seen.lines[: seen.header - 1]
    shown = seen.names[:MOST_CELLS]
    rows: list[Markup] = []
    if seen.kind != "typed":
        for number, line in enumerate(above, start=1):
            cells = [_cell(cell) for cell in line[:MOST_CELLS]]
            rows.append(element("tr", _chooser(view, number), *cells, class_="above"))
    top = [element("th", name(column), scope="col") for column in shown]
    corner = _chooser(view, seen.header, chosen=True) if seen.kind != "typed" else element("td", class_="number")
    head = element("tr", corner, *top)
    for index, record in enumerate(seen.records):
        number = seen.header + 1 + index
        first = (
            _chooser(view, number)
            if seen.kind != "typed" and number <= HEADER_AMONG
            else element("td", view.say.number(number), class_="number")
        )
        rows_cells = [
            _cell(cell, unread=(index, column) in seen.unread, missing=(index, column) in seen.missing, say=say)
            for column, cell in enumerate(record[:MOST_CELLS])
        ]
        rows.append(element("tr", first, *rows_cells))
    before, after = (
        rows[: len(above)] if seen.kind != "typed" else [],
        rows[len(above) if seen.kind != "typed" else 0 :],
    )
    table = element(
        "table",
        element("caption", say("page_open.first_rows", count=len(seen.records))),
        element("thead", *before, head),
        element("tbody", *after),
        class_="cells",
    )
    hidden_columns = len(seen.names) - len(shown)
    more = (
        element("p", say("page_open.more_columns", count=hidden_columns), class_="note") if hidden_columns > 0 else ""
    )
    return joined([scrolling(table, say("page_open.first_rows", count=len(seen.records))), more])


def _chooser(view: ProjectView, number: int, *, chosen: bool = False) -> Markup:
    """The number of a line, which makes it the header when it is clicked."""
    if chosen or view.locked:
        return element("td", view.say.number(number), class_="number")
    label = view.say("page_open.make_header", line=number)
    return element(
        "td",
        view.form(
            "header",
            hidden("line", number),
            element("button", view.say.number(number), type="submit", class_="line", aria_label=label, title=label),
        ),
        class_="number",
    )


def _cell(text: str | None, *, unread: bool = False, missing: bool = False, say: Any = None) -> Markup:
    shown: object = "" if text is None else name(text)
    if unread:
        return element("td", shown, element("span", say("page_open.unread"), class_="unseen"), class_="unread")
    if missing:
        return element("td", shown, element("span", say("page_open.missing"), class_="unseen"), class_="missing")
    return element("td", shown)


def _legend(view: ProjectView, seen: Preview) -> Markup:
    say = view.say
    entries = []
    if seen.missing:
        entries.append(element("li", element("span", "\N{EN DASH}", class_="missing"), say("page_open.missing_legend")))
    if seen.unread:
        entries.append(element("li", element("span", "\N{EN DASH}", class_="unread"), say("page_open.unread_legend")))
    return element("ul", *entries, class_="legend") if entries else Markup("")


def _sentinels(view: ProjectView, seen: Preview) -> Markup:
    """Values that may mean "missing", each with the way to say so."""
    say = view.say
    if not seen.sentinels or view.locked:
        return Markup("")
    boxes = [
        checkbox(
            "sentinel",
            str(index),
            say("page_open.sentinel", column=sentinel.column, value=sentinel.text, count=sentinel.records),
            checked=False,
            id=f"sentinel-{index}",
        )
        for index, sentinel in enumerate(seen.sentinels)
    ]
    return element(
        "section",
        element("h2", say("page_open.suspects")),
        element("p", say("page_open.suspects_text"), class_="quiet"),
        view.form("missing", *boxes, button(say("page_open.suspects_do"), look="small")),
    )


def _go_on(view: ProjectView, seen: Preview) -> Markup:
    say, run = view.say, view.examination
    if view.locked or seen.fault:
        return Markup("")
    if run is not None and run.state == "running":
        return Markup("")
    known = view.state.notes.get("examined") is not None
    again = say("page_open.again") if known else say("page_open.go_on")
    link = element("a", say("page_open.to_columns"), href=view.address("columns"), class_="button") if known else ""
    main = view.form("examine", button(again, look="" if known else "main"), class_="inline")
    return element("div", main, link, class_="row go-on")


# ---- actions ----


def read(view: ProjectView, form: PostedForm) -> None:
    """Choose how the file is read."""
    chosen = chosen_settings(view)
    for key in ("separator", "encoding", "decimal", "date_format", "sheet"):
        if key in form:
            chosen[key] = form.text(key) or None
    if "thousands" in form:
        chosen["thousands"] = form.text("thousands") or None
    if "nulls" in form:
        chosen["nulls"] = ["", *dict.fromkeys(form.text("nulls").split())]
    kept = {key: value for key, value in chosen.items() if value is not None}
    InputSettings(**kept)  # says what is wrong with them
    view.project.note(form.whole("version") or 0, reading=kept)


def header(view: ProjectView, form: PostedForm) -> None:
    """Choose the line with the names of the columns."""
    chosen = {**chosen_settings(view), "header_row": form.whole("line")}
    view.project.note(form.whole("version") or 0, reading=chosen)


def missing(view: ProjectView, form: PostedForm) -> None:
    """Let values of columns mean that nothing is known. The policy says so for each column."""
    suspects = _seen(view).sentinels
    ticked = {int(text) for text in form.texts("sentinel") if text.isdigit()}
    pairs = [(suspect.column, suspect.text) for index, suspect in enumerate(suspects) if index in ticked]

    def change(data: dict[str, Any]) -> dict[str, Any]:
        columns = dict(data.get("columns", {}))
        for column, token in pairs:
            known = columns.get(column, {"role": "decide"})
            columns[column] = {**known, "nulls": [*dict.fromkeys([*known.get("nulls", []), token])]}
        return {**data, "columns": columns}

    if pairs:
        view.change(form, "page.steps.missing", change)


def examine(view: ProjectView, _: PostedForm) -> str:
    """Read the whole table in the background, and propose what its columns are."""
    policy = view.policy
    options = {
        "input": chosen_settings(view),
        "derive": policy.to_dict().get("derive", {}),
        "column_nulls": _column_nulls(view),
    }
    start_run(view.project, "examine", options)
    return view.address("columns")


SCREEN = Screen(
    key="open",
    title="page_open.title",
    task="page_open.task",
    draw=draw,
    actions={"read": read, "header": header, "missing": missing, "examine": examine},
    original="always",
)
