"""Requirements: what every class must meet, whether this table can meet it, and the cheapest changes where not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.app.examined_values import has_values
from sfumato.app.exposures import columns_together
from sfumato.app.forms import PostedForm, button, checkbox, field, hidden, link_button, select, text_input
from sfumato.app.screens.requirement_feasibility import ACTIONS as FEASIBILITY_ACTIONS
from sfumato.app.screens.requirement_feasibility import feasibility_section, feasibility_status
from sfumato.app.screens.requirement_sentences import DISTANCES, example, sentence, title_of
from sfumato.app.selected_column import SelectedColumn, selectable_columns, values_gone
from sfumato.app.view import ProjectView, Screen
from sfumato.errors import UsageError
from sfumato.parameters import Parameter, flag
from sfumato.policy.privacy_settings import SensitiveRequirement
from sfumato.report.html import Markup, element, joined, name

USUAL_K = 5


def draw(view: ProjectView) -> Markup:
    say = view.say
    if view.examined is None:
        return element("p", say("page_columns.not_read"), " ",
                       element("a", say("page_columns.to_open"), href=view.address("open")))  # fmt: skip
    if not has_values(view.project) and not view.locked:
        return values_gone(view)
    asked = [_alone(view), _sensitive(view), _left_out(view)]
    if view.locked:
        way = element("a", say("page_requirements.to_check"), href=view.address("check"))
        return joined([*asked, element("p", say("page_requirements.checked"), " ", way, class_="note")])
    return joined([feasibility_status(view), *asked, feasibility_section(view), _go_on(view)])


# ---- k and persons ----


def _alone(view: ProjectView) -> Markup:
    """k, and whose records are counted."""
    say, privacy = view.say, view.policy.privacy
    persons = [*view.policy.identifiers, *view.policy.pseudonyms]
    positions = {column["name"]: str(number) for number, column in enumerate((view.examined or {})["columns"])}
    options = {"": say("page_requirements.each_record"),
               **{positions[column]: column for column in persons if column in positions}}  # fmt: skip
    counted = "page_requirements.k_records" if privacy.person is None else "page_requirements.k_persons"
    shown = privacy.k or USUAL_K
    controls: object = ""
    if not view.locked:
        controls = view.form(
            "k",
            element(
                "div",
                field("k", text_input("k", shown, inputmode="numeric", id="k", required=True, size="5"),
                      hint=say("page_requirements.k_hint")),
                field(say("page_requirements.person"),
                      select("person", options, positions.get(privacy.person or "", ""), id="person"),
                      hint=say("page_requirements.person_hint")),
                class_="fields",
            ),
            button(say("page_requirements.set"), look="small", id="set-k"),
            id="k-form",
        )  # fmt: skip
    return element(
        "section",
        element("h2", say("page_requirements.alone")),
        element("p", say(counted, k=shown, others=shown - 1), class_="sentence"),
        _alone_example(view, shown),
        element("p", say("page_requirements.no_k"), class_="note") if privacy.k is None else "",
        controls,
        class_="requirement",
    )


def _alone_example(view: ProjectView, k: int) -> Markup:
    """How many are alone in the original, by the columns of the policy, and how many classes there can be."""
    say, examined = view.say, view.examined or {}
    quasi, records = set(view.policy.quasi_identifiers), int(examined["records"])
    sets = [found for found in examined["dangerous"] if set(found["columns"]) <= quasi]
    person = view.policy.privacy.person
    counted = next((int(column["distinct"]) for column in examined["columns"] if column["name"] == person), records)
    parts: list[object] = []
    if sets:
        worst = max(sets, key=lambda found: found["unique"])
        columns = columns_together(worst["columns"])
        parts += say.parts("page_requirements.alone_now", count=int(worst["unique"]), records=records, columns=columns)
        parts.append(" ")
    if counted >= k:
        # A person with several records may be in as many classes, so persons do not limit their number; records do.
        parts += say.parts("page_requirements.classes", most=records // max(k, 1), k=k)
    return element("p", *parts, class_="example-line") if parts else Markup("")


# ---- sensitive columns ----


def _sensitive(view: ProjectView) -> Markup:
    """Every sensitive column with what is asked of it."""
    say = view.say
    columns = {column.name: column for column in selectable_columns(view) if column.settings.role == "sensitive"}
    heading = element("h2", say("page_requirements.sensitive"))
    if not columns:
        way = element("a", say("page_hierarchies.to_columns"), href=view.address("columns"))
        return element("section", heading, element("p", say("page_requirements.no_sensitive"), " ", way))
    demands = view.policy.privacy.sensitive
    parts = [
        _sensitive_column(view, column, [(n, demand) for n, demand in enumerate(demands) if demand.attribute == key])
        for key, column in columns.items()
    ]
    return element("section", heading, *parts, _together(view, columns))


def _sensitive_column(
    view: ProjectView, column: SelectedColumn, demands: Sequence[tuple[int, SensitiveRequirement]]
) -> Markup:
    say, title = view.say, f"sensitive-{column.position}"
    cards = [_demand(view, column, number, demand) for number, demand in demands]
    if not cards and view.locked:
        cards = [element("p", say("page_requirements.nothing_asked"), class_="note")]
    elif not cards:
        values = column.examined.values
        share = column.examined.records[0] / max(int(column.examined.records.sum()), 1) if len(values) else 0.0
        first = name(values[0].as_py() if len(values) else None)
        warned = say.parts(
            "page_requirements.unprotected", column=name(column.name), value=first, share=say.percent(float(share))
        )
        cards = [element("p", *warned, class_="note")]
    return element(
        "article",
        element("h3", name(column.name), id=title),
        *cards,
        "" if view.locked else _new_demand(view, column),
        aria_labelledby=title,
        class_="card sensitive",
    )


def _demand(view: ProjectView, column: SelectedColumn, number: int, demand: SensitiveRequirement) -> Markup:
    """One requirement: its sentence, an example from this table, and its numbers to change."""
    from sfumato.requirements import kinds

    say, given = view.say, demand.parameters()
    fields = [
        _parameter(view, f"{number}-{key}", key, parameter, given.get(key))
        for key, parameter in kinds()[demand.kind].parameters.items()
    ]
    change: object = ""
    if not view.locked:
        change = view.form(
            "demand",
            hidden("number", number),
            element("div", *fields, class_="fields"),
            element(
                "div",
                button(say("page_requirements.set"), look="small", name="do", value="set", id=f"set-{number}"),
                button(say("page_requirements.remove"), look="small", name="do", value="remove", id=f"remove-{number}"),
                class_="row",
            ),
            id=f"demand-{number}",
        )
    return element(
        "div",
        element("h4", title_of(say, demand.kind)),
        element("p", sentence(say, demand.kind, demand.attribute, given), class_="sentence"),
        example(say, demand.kind, column.examined, given),
        change,
        class_="requirement",
    )


def _parameter(view: ProjectView, key: str, label: str, parameter: Parameter, value: Any) -> Markup:
    say = view.say
    if label == "distance":
        choices = {word: say(text) for word, text in DISTANCES.items()}
        control = select(label, choices, value or "equal", id=f"parameter-{key}")
        return field(say("page_requirements.distance"), control)
    if parameter.check is flag:
        return checkbox(label, "yes", say("page_requirements.enhanced"), checked=bool(value), id=f"parameter-{key}")
    shown = "" if value is None else f"{value:.12g}".replace(".", say.language.decimal)
    return field(label, text_input(label, shown, inputmode="decimal", id=f"parameter-{key}"))


def _new_demand(view: ProjectView, column: SelectedColumn) -> Markup:
    from sfumato.requirements import kinds

    say = view.say
    options = {kind: title_of(say, kind) for kind in kinds()}
    return view.form(
        "add",
        hidden("column", column.position),
        element(
            "div",
            field(
                say("page_requirements.add_kind"), select("kind", options, "frequency", id=f"kind-{column.position}")
            ),
            button(say("page_requirements.add"), look="small", id=f"add-{column.position}"),
            class_="row",
        ),
        id=f"add-form-{column.position}",
    )


def _together(view: ProjectView, columns: Mapping[str, SelectedColumn]) -> Markup:
    """What holds for all sensitive columns."""
    say, privacy = view.say, view.policy.privacy
    if view.locked or not privacy.sensitive:
        return Markup("")
    joint = checkbox("joint", "yes", say("page_requirements.joint"), checked=privacy.joint, data_auto=True, id="joint")
    nulls = checkbox("null", "yes", say("page_requirements.null"), checked=privacy.null_sensitive == "value",
                     data_auto=True, id="null-value")  # fmt: skip
    return view.form(
        "together", joint if len(columns) > 1 or privacy.joint else "", nulls,
        element("noscript", button(say("page.apply"), look="small")), id="together-form",
    )  # fmt: skip


def _left_out(view: ProjectView) -> Markup:
    """How many records may be left out."""
    say, records = view.say, int((view.examined or {})["records"])
    share = view.policy.release.max_suppressed_fraction
    text = say("page_requirements.left_out_text", share=say.percent(share), count=view.policy.most_suppressed(records))
    controls: object = ""
    if not view.locked:
        shown = f"{share * 100:.12g}".replace(".", say.language.decimal)
        controls = view.form(
            "suppression",
            element(
                "div",
                field(say("page_requirements.left_out_label"),
                      text_input("percent", shown, inputmode="decimal", id="percent"),
                      hint=say("page_requirements.left_out_hint")),
                class_="fields",
            ),
            button(say("page_requirements.set"), look="small", id="set-percent"),
            id="suppression-form",
        )  # fmt: skip
    return element(
        "section", element("h2", say("page_requirements.left_out")), element("p", text, class_="sentence"), controls,
        class_="requirement",
    )  # fmt: skip


def _go_on(view: ProjectView) -> Markup:
    return element("div", link_button(view.say("page_requirements.go_on"), view.address("risk"), look="main"),
                   class_="row go-on")  # fmt: skip


# ---- actions ----


def k(view: ProjectView, form: PostedForm) -> None:
    """Set k, and whose records are counted."""
    wanted, position = form.whole("k"), form.text("person")
    columns = (view.examined or {"columns": []})["columns"]
    person = columns[int(position)]["name"] if position.isdecimal() and int(position) < len(columns) else None

    def change(data: dict[str, Any]) -> dict[str, Any]:
        given = {"k": wanted, "person": person}
        privacy = {key: value for key, value in data.get("privacy", {}).items() if key not in given}
        return {**data, "privacy": {**{key: value for key, value in given.items() if value is not None}, **privacy}}

    view.change(form, "page_requirements.steps.k", change)


def add(view: ProjectView, form: PostedForm) -> None:
    """Ask something of a sensitive column, with usual numbers."""
    from sfumato.requirements import kinds

    kind, position = form.text("kind"), form.text("column")
    column = next((each for each in selectable_columns(view) if str(each.position) == position), None)
    if kind not in kinds() or column is None:
        raise UsageError("this column or requirement does not exist. Load the page again.")
    demand = {"attribute": column.name, "kind": kind, **kinds()[kind].example}
    view.change(form, "page_requirements.steps.added", lambda data: _with_demands(data, [*_demands(data), demand]))


def demand(view: ProjectView, form: PostedForm) -> None:
    """Change the numbers of a requirement, or remove it."""
    from sfumato.requirements import kinds

    number, existing = form.whole("number") or 0, view.policy.privacy.sensitive
    if not 0 <= number < len(existing):
        raise UsageError("this requirement does not exist. Load the page again.")
    if form.text("do") == "remove":
        view.change(form, "page_requirements.steps.removed", lambda data: _with_demands(data, [
            line for index, line in enumerate(_demands(data)) if index != number]))  # fmt: skip
        return
    parameters = kinds()[existing[number].kind].parameters
    given = {key: _value(form, key, parameter) for key, parameter in parameters.items()}

    def change(data: dict[str, Any]) -> dict[str, Any]:
        lines = _demands(data)
        kept = {key: lines[number][key] for key in ("attribute", "kind")}
        lines[number] = {**kept, **{key: value for key, value in given.items() if value is not None}}
        return _with_demands(data, lines)

    view.change(form, "page_requirements.steps.numbers", change)


def _value(form: PostedForm, key: str, parameter: Parameter) -> Any:
    """The value of a parameter as a form has it; None if it is left out."""
    if parameter.check is flag:
        return True if key in form else None
    if key in ("distance",):
        return None if form.text(key) == "equal" else form.text(key)
    number = form.number(key)
    return int(number) if number is not None and number.is_integer() else number


def _demands(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(data.get("privacy", {}).get("sensitive", []))


def _with_demands(data: dict[str, Any], demands: list[dict[str, Any]]) -> dict[str, Any]:
    privacy = {**data.get("privacy", {}), "sensitive": demands}
    if not demands:
        privacy.pop("joint", None)
    return {**data, "privacy": privacy}


def together(view: ProjectView, form: PostedForm) -> None:
    """Set what holds for all sensitive columns."""
    settings = {"joint": "joint" in form, "null_sensitive": "value" if "null" in form else "missing"}
    view.change(
        form,
        "page_requirements.steps.together",
        lambda data: {**data, "privacy": {**data.get("privacy", {}), **settings}},
    )


def suppression(view: ProjectView, form: PostedForm) -> None:
    """Set how many records may be left out."""
    share = round((form.number("percent") or 0.0) / 100, 12)
    view.change(
        form,
        "page_requirements.steps.left_out",
        lambda data: {**data, "release": {**data.get("release", {}), "max_suppressed_fraction": share}},
    )


SCREEN = Screen(
    key="requirements",
    title="page_requirements.title",
    task="page_requirements.task",
    draw=draw,
    actions={
        "k": k,
        "add": add,
        "demand": demand,
        "together": together,
        "suppression": suppression,
        **FEASIBILITY_ACTIONS,
    },
    original="until published",
)
