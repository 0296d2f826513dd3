"""Check: whether every requirement holds, what could still go wrong, and how the trial looks from near."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sfumato.app.background_run import BackgroundRun, runs_of
from sfumato.app.forms import PostedForm, button, checkbox, link_button
from sfumato.app.view import ProjectView, Screen
from sfumato.releases.run_record import WRITTEN_KEYS
from sfumato.report.audit_texts import audit_text
from sfumato.report.html import Markup, element, joined, name, scrolling, table
from sfumato.report.release_facts import ExactEnds
from sfumato.report.remaining_risks import RemainingRisk, risks
from sfumato.report.requirement_rows import reached_text

VERDICTS = {
    True: ("page_check.holds", "holds"),
    False: ("page_check.fails", "fails"),
    None: ("page_check.unchecked", "unchecked"),
}


def checked_trial(view: ProjectView) -> BackgroundRun | None:
    """The last trial under the policy as it is now."""
    current = decisions_of(view.project.policy_text)
    return next(
        (
            run
            for run in runs_of(view.project, "trial")
            if run.state == "done" and decisions_of(run.request["policy"]) == current
        ),
        None,
    )


@lru_cache(maxsize=64)
def decisions_of(text: str) -> dict[str, Any]:
    """What a policy decides about the classes: not what the release is called, nor how its file is written."""
    data = tomllib.loads(text)
    data.pop("about", None)
    data["release"] = {key: value for key, value in data.get("release", {}).items() if key not in WRITTEN_KEYS}
    return data


def unread_lines(view: ProjectView, run: BackgroundRun) -> list[int]:
    """The lines of what could still go wrong that nobody has ticked for this trial."""
    noted = view.state.notes.get("read", {})
    ticked = set(noted.get("lines", ())) if noted.get("run") == run.number else set()
    return [index for index in range(len(_risks(view, run))) if index not in ticked]


def draw(view: ProjectView) -> Markup:
    say, run = view.say, checked_trial(view)
    if run is None:
        link = link_button(say("page_check.to_try"), view.address("try"), look="main")
        return joined(
            [element("p", say("page_check.no_trial"), class_="note"), element("div", link, class_="row go-on")]
        )
    found = (run.result or {})["found"]
    parts = [_verdict(view, run, found), _requirements(view, found), warning_list(view, found["warnings"])]
    parts += [_remaining(view, run), _smallest(view, found), _sample(view, found)]
    if not unread_lines(view, run):
        parts.append(
            element(
                "div", link_button(say("page_check.go_on"), view.address("publish"), look="main"), class_="row go-on"
            )
        )
    return joined(parts)


def _verdict(view: ProjectView, run: BackgroundRun, found: Mapping[str, Any]) -> Markup:
    """The verdict, to be seen from across the room."""
    say, lines = view.say, found["audit"]
    failed = [line for line in lines if line["holds"] is False]
    unchecked = [line for line in lines if line["holds"] is None]
    if failed:
        text, look = say("page_check.verdict_fails", count=len(failed)), "fails"
    elif unchecked:
        text, look = say("page_check.verdict_unchecked", count=len(unchecked)), "unchecked"
    else:
        text, look = say("page_check.verdict_holds", count=len(lines)), "holds"
    about = say(
        "page_check.about",
        name=str(run.request["options"].get("name", run.number)),
        classes=found["classes"],
        smallest=found["smallest_class"],
    )
    return element(
        "div", element("p", text, class_="word"), element("p", about, class_="quiet"), class_=f"verdict-box {look}"
    )


def _requirements(view: ProjectView, found: Mapping[str, Any]) -> Markup:
    say = view.say
    rows = []
    reasoned = any(line.get("reason") for line in found["audit"])
    for line in found["audit"]:
        text, look = VERDICTS[line["holds"]]
        verdict = element("span", say(text), class_=f"verdict-word {look}")
        reason = audit_text(line["reason"], say) if line.get("reason") else ""
        rows.append(
            (audit_text(line["requirement"], say), verdict, reached_text(line, say), *([reason] if reasoned else []))
        )
    heads = (
        say("page_check.requirement"),
        say("page_check.verdict"),
        say("page_check.reached"),
        *([say("page_check.reason")] if reasoned else []),
    )
    return element(
        "section",
        element("h2", say("page_check.requirements")),
        table(say("page_check.requirements"), heads, rows, text=(0, 1, 3)),
    )


def warning_list(view: ProjectView, warnings: Sequence[str]) -> Markup:
    """What a run warned of, if it did."""
    if not warnings:
        return Markup("")
    lines = [element("li", view.message(text)) for text in warnings]
    return element("section", element("h2", view.say("page_check.warnings")), element("ul", *lines, class_="plain"))


def _risks(view: ProjectView, run: BackgroundRun) -> Sequence[RemainingRisk]:
    """What could still go wrong, as the report of the release says it."""
    found = (run.result or {})["found"]
    return risks(
        view.policy,
        found["kept"],
        ExactEnds(found["exact_ends"]["columns"], found["exact_ends"]["share"]),
        view.say,
        suppressed=found["suppressed"],
        separated=found["separated"],
        persons_counted=found["persons_counted"],
    )


def _remaining(view: ProjectView, run: BackgroundRun) -> Markup:
    say, unread = view.say, unread_lines(view, run)
    lines = [
        checkbox(
            "line",
            str(index),
            joined([element("strong", risk.heading), ". ", risk.text]),
            checked=index not in unread,
            id=f"risk-{index}",
            data_auto=True,
            disabled=view.locked,
        )
        for index, risk in enumerate(_risks(view, run))
    ]
    state = say("page_check.left", count=len(unread)) if unread else say("page_check.all_read")
    return element(
        "section",
        element("h2", say("page_check.risks")),
        element("p", say("page_check.risks_text"), class_="quiet"),
        view.form("read", *lines, element("noscript", button(say("page.apply"))), id="risks"),
        element("p", element("strong", state), id="unread"),
    )


def _smallest(view: ProjectView, found: Mapping[str, Any]) -> Markup:
    say, classes = view.say, found["smallest_classes"]
    rows = [
        (say.number(size), *(name(cell) for cell in row))
        for size, row in zip(classes["sizes"], classes["rows"], strict=True)
    ]
    heads = (say("page_check.size"), *(name(column) for column in classes["columns"]))
    columns = range(1, len(heads))
    return element(
        "section",
        element("h2", say("page_check.smallest")),
        element("p", say("page_check.smallest_text"), class_="quiet"),
        table(say("page_check.smallest"), heads, rows, text=tuple(columns)),
    )


def _sample(view: ProjectView, found: Mapping[str, Any]) -> Markup:
    say, sample = view.say, found["sample"]
    head = element("tr", *(element("th", name(column), scope="col") for column in sample["columns"]))
    rows = [
        element("tr", *(element("td", "" if cell is None else name(cell)) for cell in row)) for row in sample["rows"]
    ]
    made = element(
        "table",
        element("caption", say("page_check.sample")),
        element("thead", head),
        element("tbody", *rows),
        class_="cells",
    )
    return element("section", element("h2", say("page_check.sample")), scrolling(made, say("page_check.sample")))


def read(view: ProjectView, form: PostedForm) -> None:
    """Note which lines were read, for this trial."""
    run = checked_trial(view)
    if run is not None:
        lines = sorted({int(text) for text in form.texts("line") if text.isdigit()})
        view.project.note(form.whole("version") or 0, read={"run": run.number, "lines": lines})


SCREEN = Screen(
    key="check",
    title="page_check.title",
    task="page_check.task",
    draw=draw,
    actions={"read": read},
    original="never",
)
