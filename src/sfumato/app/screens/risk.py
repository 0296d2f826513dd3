"""Risk now: how many records of the original could be singled out, by whom, and by which columns."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from sfumato.app.background_run import last_run, start_run
from sfumato.app.data_folder import PROJECT_SUFFIX
from sfumato.app.exposures import exposure_table, share_with_bar
from sfumato.app.forms import PostedForm, button, field, link_button, text_input
from sfumato.app.run_status import run_panel
from sfumato.app.screens.check import decisions_of
from sfumato.app.view import ProjectView, Screen
from sfumato.errors import UsageError
from sfumato.report.html import Markup, element, joined, table

MOST_SETS = 10


def draw(view: ProjectView) -> Markup:
    say, run = view.say, last_run(view.project, "risk")
    parts: list[object] = []
    if not view.policy.quasi_identifiers:
        return element(
            "p",
            say("page_risk.no_columns"),
            " ",
            element("a", say("page_risk.to_columns"), href=view.address("columns")),
        )
    if run is not None and run.state != "done":
        parts.append(run_panel(view, run))
    if run is None or run.state != "running":
        parts.append(_form(view, run is not None))
    if run is None or run.state != "done":
        return joined(parts)
    found = (run.result or {})["found"]
    if decisions_of(run.request["policy"]) != decisions_of(view.project.policy_text):
        parts.append(element("p", say("page_risk.older"), class_="note"))
    parts += [
        _attackers(view, found),
        _population(view, found),
        _counts(view, found),
        _sets(view, found),
        _command(view, run.request),
    ]
    parts.append(
        element("div", link_button(say("page_risk.go_on"), view.address("try"), look="main"), class_="row go-on")
    )
    return joined(parts)


def _form(view: ProjectView, again: bool) -> Markup:
    say = view.say
    population = view.state.notes.get("population")
    return view.form(
        "measure",
        field(
            say("page_risk.population"),
            text_input("population", "" if population is None else population, inputmode="numeric", id="population"),
            hint=say("page_risk.population_hint"),
        ),
        button(
            say("page_risk.again") if again else say("page_risk.measure"), look="" if again else "main", id="measure"
        ),
        class_="row top-aligned",
    )


def _attackers(view: ProjectView, found: Mapping[str, Any]) -> Markup:
    """The three attackers, each with what it knows and how often a guess is right."""
    say = view.say
    journalist = found["journalist"]
    cards = [
        _attacker(
            view,
            say("page_risk.prosecutor"),
            say("page_risk.prosecutor_text"),
            found["prosecutor"]["highest"],
            say("page_risk.mean", share=say.percent(found["prosecutor"]["mean"])),
        ),
        _attacker(
            view,
            say("page_risk.journalist"),
            say("page_risk.journalist_text"),
            None if journalist is None else journalist["highest"],
            say("page_risk.unknown")
            if journalist is None
            else say("page_risk.mean", share=say.percent(journalist["mean"])),
        ),
        _attacker(
            view,
            say("page_risk.marketer"),
            say("page_risk.marketer_text"),
            found["marketer"],
            say("page_risk.marketer_share"),
        ),
    ]
    return element("div", *cards, class_="cards figures")


def _attacker(view: ProjectView, title: str, text: str, risk: float | None, more: str) -> Markup:
    figure = "\N{EN DASH}" if risk is None else view.say.percent(risk)
    return element(
        "article",
        element("h2", title),
        element("p", figure, class_="figure"),
        element("p", more, class_="quiet"),
        element("p", text),
        class_="card",
    )


def _population(view: ProjectView, found: Mapping[str, Any]) -> Markup:
    parts: list[object] = []
    if found["caveat"]:
        parts.append(
            element(
                "p",
                element("strong", view.say("page_risk.caveat")),
                " ",
                view.message(found["caveat"]),
                class_="note",
            )
        )
    parts += [element("p", view.message(remark), class_="note") for remark in found["remarks"]]
    return joined(parts)


def _counts(view: ProjectView, found: Mapping[str, Any]) -> Markup:
    say, records = view.say, max(1, found["records"])
    lines = [
        (say("page_risk.unique"), found["unique"]),
        (say("page_risk.below", size=5), found["below_5"]),
        (say("page_risk.below", size=10), found["below_10"]),
    ]
    rows = [(text, say.number(count), share_with_bar(view, count / records)) for text, count in lines]
    heads = (say("page_risk.group"), say("page_risk.records"), say("page_risk.share"))
    counted = say("page_risk.counted_persons") if found["counted"] == "persons" else say("page_risk.counted")
    return element(
        "section",
        element("h2", say("page_risk.small")),
        element("p", counted, class_="quiet"),
        table(say("page_risk.small"), heads, rows, text=(0,)),
    )


def _sets(view: ProjectView, found: Mapping[str, Any]) -> Markup:
    say, records = view.say, max(1, found["records"])
    left_out = [element("p", view.message(text), class_="quiet") for text in found["left_out"]]
    return element(
        "section",
        element("h2", say("page_risk.worst")),
        exposure_table(view, say("page_risk.worst"), found["sets"][:MOST_SETS], records),
        *left_out,
    )


def _command(view: ProjectView, request: Mapping[str, Any]) -> Markup:
    words = ["sfumato", "risk", view.state.table, "--policy", f"{view.project.name}{PROJECT_SUFFIX}/policy.toml"]
    population = request["options"].get("population")
    words += [] if population is None else ["--population", str(population)]
    return element("p", view.say("page.same_command"), " ", element("code", shlex.join(words)), class_="quiet")


def measure(view: ProjectView, form: PostedForm) -> None:
    """Measure the risk in the background."""
    population = form.whole("population")
    if population is not None and population < 1:
        raise UsageError("the population has at least one person. Leave the field empty if its size is not known.")
    view.project.note(form.whole("version") or 0, population=population)
    start_run(view.project, "risk", {} if population is None else {"population": population})


SCREEN = Screen(
    key="risk",
    title="page_risk.title",
    task="page_risk.task",
    draw=draw,
    actions={"measure": measure},
    original="never",
)
