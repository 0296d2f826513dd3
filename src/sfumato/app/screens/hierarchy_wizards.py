"""The wizards of ``sfumato taxonomy``: what fits a column, and a form for every recipe."""

from __future__ import annotations

from typing import Any

from sfumato.app.forms import PostedForm, button, checkbox, field, hidden, select, text_input
from sfumato.app.selected_column import SelectedColumn, column_form
from sfumato.app.view import ProjectView
from sfumato.errors import UsageError
from sfumato.report.html import Markup, element, joined
from sfumato.studies.taxonomy_wizards import TaxonomyWizard
from sfumato.taxonomies.frequent_values import OTHERS
from sfumato.taxonomies.ready import NAMES
from sfumato.taxonomies.widening import UNITS

READY = {
    "countries": "page_hierarchies.ready.countries",
    "months": "page_hierarchies.ready.months",
    "weekdays": "page_hierarchies.ready.weekdays",
    "icd-10": "page_hierarchies.ready.icd10",
}
UNIT_NAMES = {
    "week": "page_hierarchies.level_names.week",
    "month": "page_hierarchies.level_names.month",
    "quarter": "page_hierarchies.level_names.quarter",
    "year": "page_hierarchies.level_names.year",
    "decade": "page_hierarchies.level_names.decade",
}
NEEDED = {"intervals": ("whole", "decimal"), "calendar": ("date",)}  # what values must be for a recipe
FITS = {
    "intervals": "page_hierarchies.fits.intervals",
    "calendar": "page_hierarchies.fits.calendar",
    "prefix": "page_hierarchies.fits.prefix",
    "groups": "page_hierarchies.fits.groups",
    "frequent": "page_hierarchies.fits.frequent",
    "ready": "page_hierarchies.fits.ready",
}


def wizard_section(view: ProjectView, column: SelectedColumn) -> Markup:
    """What fits, and every way to make a hierarchy. It is open where the column has none."""
    say = view.say
    content: list[object] = [
        element("summary", element("h3", say("page_hierarchies.make"))),
        element("p", say("page_hierarchies.make_text"), class_="quiet"),
        _fitting(view, column),
        element("div", *_cards(view, column), class_="cards wizards"),
    ]
    if column.settings.taxonomy is not None:
        label = button(say("page_hierarchies.remove"), look="small", id="remove-taxonomy")
        content.append(column_form(view, column, "remove", label, class_="row"))
    return element("details", *content, id="wizards", open=column.settings.taxonomy is None, class_="block")


def _fitting(view: ProjectView, column: SelectedColumn) -> Markup:
    """One button for each recipe that fits the values."""
    say, buttons = view.say, []
    for number, flag in enumerate(column.fits):
        key, _, value = flag.removeprefix("--").partition(" ")
        words = say(READY[value]) if key == "ready" else value.replace(",", ", ")
        if key == "calendar":
            words = ", ".join(say(UNIT_NAMES[unit]) for unit in value.split(","))
        buttons.append(
            column_form(
                view, column, "make", hidden("wizard", key), hidden(key, value),
                hidden("others", say("page_hierarchies.others_name")) if key == "frequent" else "",
                button(say(FITS[key], steps=words), look="small", id=f"fit-{number}"), class_="inline",
            )
        )  # fmt: skip
    if not buttons:
        return Markup("")
    return joined([element("p", say("page_hierarchies.fitting")), element("div", *buttons, class_="row")])


def _cards(view: ProjectView, column: SelectedColumn) -> list[Markup]:
    say = view.say
    on_top = field(
        say("page_hierarchies.on_top"), text_input("groups", "", placeholder="8, 4, 2"),
        hint=say("page_hierarchies.on_top_hint"),
    )  # fmt: skip
    units = [checkbox("calendar", unit, say(UNIT_NAMES[unit]), checked=False) for unit in UNITS]
    ready = {key: say(READY[key]) for key in NAMES}
    fitting = next((key for key in NAMES if f"--ready {key}" in column.fits), "")
    cards = {
        "intervals": [
            element("h4", say("page_hierarchies.wizards.intervals")),
            field(say("page_hierarchies.widths"), text_input("intervals", "", placeholder="5, 10, 20", required=True),
                  hint=say("page_hierarchies.widths_hint")),
            on_top,
        ],
        "calendar": [
            element("h4", say("page_hierarchies.wizards.calendar")),
            element("fieldset", element("legend", say("page_hierarchies.units")), *units, class_="plain"),
            on_top,
        ],
        "prefix": [
            element("h4", say("page_hierarchies.wizards.prefix")),
            field(say("page_hierarchies.characters"), text_input("prefix", "", placeholder="3, 2", required=True),
                  hint=say("page_hierarchies.characters_hint")),
            on_top,
        ],
        "groups": [
            element("h4", say("page_hierarchies.wizards.groups")),
            field(say("page_hierarchies.counts"), text_input("groups", "", placeholder="8, 4, 2", required=True),
                  hint=say("page_hierarchies.counts_hint")),
        ],
        "frequent": [
            element("h4", say("page_hierarchies.wizards.frequent")),
            field(say("page_hierarchies.frequent"), text_input("frequent", "", placeholder="10", required=True),
                  hint=say("page_hierarchies.frequent_hint")),
            field(say("page_hierarchies.others"), text_input("others", say("page_hierarchies.others_name"))),
        ],
        "ready": [
            element("h4", say("page_hierarchies.wizards.ready")),
            field(say("page_hierarchies.which"), select("ready", ready, fitting)),
        ],
        "flat": [
            element("h4", say("page_hierarchies.wizards.flat")),
            element("p", say("page_hierarchies.flat_text"), class_="quiet"),
        ],
    }  # fmt: skip
    made = [
        column_form(view, column, "make", hidden("wizard", key), *content,
                    button(say("page_hierarchies.do"), look="small", id=f"make-{key}"),
                    class_="card", id=f"wizard-{key}")
        for key, content in cards.items()
        if column.kind in NEEDED.get(key, (column.kind,))
    ]  # fmt: skip
    file = column_form(
        view, column, "file",
        element("h4", say("page_hierarchies.wizards.file")),
        field(say("page_hierarchies.path"), text_input("path", "", required=True, placeholder="towns.csv"),
              hint=say("page_hierarchies.path_hint")),
        button(say("page_hierarchies.do"), look="small", id="make-file"), class_="card", id="wizard-file",
    )  # fmt: skip
    return [*made, file]


def asked_wizard(form: PostedForm) -> TaxonomyWizard:
    """The wizard that a form asks for."""
    kind = form.text("wizard")
    if kind not in (*FITS, "flat"):
        raise UsageError("there is no such wizard. Load the page again.")
    recipe: dict[str, Any] = {}
    if kind == "intervals":
        recipe["intervals"] = [_number(text) for text in _listed(form, "intervals")]
    elif kind == "calendar":
        units = [unit for text in form.texts("calendar") for unit in text.replace(",", " ").split()]
        if not units:
            raise UsageError("no unit is chosen. Choose month or year, for example.")
        recipe["calendar"] = units
    elif kind in ("prefix", "frequent"):
        recipe[kind] = [_whole(text) for text in _listed(form, kind)]
    elif kind == "ready":
        recipe["ready"] = form.text("ready")
    if kind == "frequent" and form.text("others", OTHERS).strip() not in ("", OTHERS):
        recipe["others"] = form.text("others").strip()
    if kind == "groups" or (kind in ("intervals", "calendar", "prefix") and form.text("groups").strip()):
        recipe["groups"] = [_whole(text) for text in _listed(form, "groups")]
    return TaxonomyWizard(**recipe)


def _listed(form: PostedForm, name: str) -> list[str]:
    texts = form.text(name).replace(",", " ").replace(";", " ").split()
    if not texts:
        raise UsageError("a number is missing. Write one or several, with commas between them.")
    return texts


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise UsageError("this field needs numbers, such as 5, 10, 20. Write decimals with a point.") from None
    return int(number) if number.is_integer() else number


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise UsageError("this field needs whole numbers, such as 8, 4, 2.")
    return int(text)
