"""Whether a table can meet its policy, as soon as the policy changes, and the cheapest changes where it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.app.background_run import BackgroundRun, runs_of, start_run
from sfumato.app.forms import PostedForm, button, hidden
from sfumato.app.run_status import run_panel
from sfumato.app.screens.hierarchy_levels import NAMED_LEVELS
from sfumato.app.screens.requirement_sentences import parameter_words, shown_number, title_of
from sfumato.app.view import ProjectView
from sfumato.errors import PolicyError, UsageError
from sfumato.pipeline.feasible_changes import SettingChange, changed
from sfumato.report.html import Markup, element, joined, name

CHECK = "dry-run"
MARKS = {
    True: ("page_requirements.feasible", "good"),
    False: ("page_requirements.infeasible", "bad"),
    None: ("page_requirements.depends", "open"),
}


def _checks(view: ProjectView) -> tuple[BackgroundRun | None, BackgroundRun | None]:
    """The last check of the policy as it is, and a check that is still running."""
    runs = runs_of(view.project, CHECK)
    current = next((run for run in runs if run.request.get("step") == view.state.current), None)
    return current, next((run for run in runs if run.state == "running"), None)


def feasibility_section(view: ProjectView) -> Markup:
    """Whether this table can meet the policy; it is checked as soon as the policy changes."""
    say = view.say
    current, running = _checks(view)
    parts: list[object] = [element("h2", say("page_requirements.check"))]
    try:
        view.policy.check_complete()
    except PolicyError as error:
        parts.append(element("p", say("page_requirements.incomplete"), " ", view.message(str(error)), class_="note"))
        return element("section", *parts, id="feasible")
    if current is None:
        parts.append(element("p", say("page_requirements.checking"), class_="quiet"))
        # What went wrong once is not tried again and again, and an older check has to end first.
        parts.append(_check_form(view, now=not view.alarm and not (running is not None and running.is_stopping)))
    shown = running if current is None else current
    if shown is not None and (shown.state != "done"):
        parts.append(run_panel(view, shown))
        if shown is current and shown.state != "running":
            parts.append(_check_form(view, now=False))
    if current is not None and current.state == "done":
        parts.append(_verdicts(view, current, (current.result or {})["found"]))
    return element("section", *parts, id="feasible", aria_live="polite")


def feasibility_status(view: ProjectView) -> Markup:
    """One line on top of the screen that says whether the policy can be met, and leads to the reasons."""
    say, (current, running) = view.say, _checks(view)
    text = say("page_requirements.check")
    if current is not None and current.state == "done":
        met = (current.result or {})["found"]["feasible"]
        text = say("page_requirements.all_feasible") if met else say("page_requirements.not_feasible")
    elif running is not None:
        text = say("page_requirements.checking")
    return element("p", element("a", text, href="#feasible"), class_="note", id="feasible-status")


def _check_form(view: ProjectView, *, now: bool) -> Markup:
    """now: the script sends it without being asked to."""
    label = button(view.say("page_requirements.check_now"), look="small", id="check-now")
    return view.form("check", label, data_now=now, id="check-form")


def _verdicts(view: ProjectView, run: BackgroundRun, found: Mapping[str, Any]) -> Markup:
    say, feasible = view.say, bool(found["feasible"])
    verdict = say("page_requirements.all_feasible") if feasible else say("page_requirements.not_feasible")
    lines = [_line(view, number, line) for number, line in enumerate(found["feasibility"])]
    parts: list[object] = [
        element("p", element("strong", verdict), class_=f"verdict {'good' if feasible else 'bad'}"),
        element("ul", *lines, class_="feasibility"),
    ]
    if not feasible:
        parts.append(_suggestions(view, run, found["suggestions"]))
    return joined(parts)


def _line(view: ProjectView, number: int, line: Mapping[str, Any]) -> Markup:
    """One requirement: whether it can be met, and what the table reaches."""
    say = view.say
    text, look = MARKS[line["feasible"]]
    words: object = say("page_requirements.k_short", k=view.policy.k)
    demands = view.policy.privacy.sensitive
    if 0 < number <= len(demands):
        demand = demands[number - 1]
        words = joined([title_of(say, demand.kind), ", ", name(demand.attribute), ": ",
                        ", ".join(parameter_words(say, demand.parameters()))])  # fmt: skip
    reached = "" if line["value"] is None else shown_number(say, line["value"])
    where = (
        say("page_requirements.reaches", value=reached)
        if line["parts"] == 1
        else say("page_requirements.parts_reach", value=reached, parts=line["parts"])
    )
    why = element("p", view.message(line["reason"]), class_="quiet") if line.get("reason") else ""
    mark = element("span", say(text), class_=f"mark {look}")
    return element("li", mark, " ", words, " ", element("span", where, class_="quiet") if reached else "", why)


def _suggestions(view: ProjectView, run: BackgroundRun, suggestions: Sequence[Mapping[str, Any]]) -> Markup:
    """The cheapest changes, each to be made with one key."""
    say = view.say
    if not suggestions:
        return element("p", say("page_requirements.no_suggestion"))
    items = []
    for number, suggestion in enumerate(suggestions):
        words: list[object] = []
        for setting in suggestion["settings"]:
            words += [*([f" {say('page_requirements.and')} "] if words else []), _setting(view, setting)]
        cost = say("page_requirements.cost", share=say.percent(suggestion["cost"]))
        apply = view.form(
            "apply", hidden("run", run.number), hidden("suggestion", number),
            button(say("page_requirements.apply"), look="small", id=f"apply-{number}"), class_="inline",
        )  # fmt: skip
        line = element("span", *words, " ", element("span", cost, class_="quiet"))
        items.append(element("li", element("div", line, apply)))
    return joined(
        [
            element("h3", say("page_requirements.suggestions")),
            element("p", say("page_requirements.suggestions_text"), class_="quiet"),
            element("ol", *items, class_="suggestions"),
        ]
    )


def _setting(view: ProjectView, setting: Mapping[str, Any]) -> Markup:
    """A change of a setting in words."""
    say, path = view.say, setting["path"]
    before, after = setting["before"], setting["after"]
    if path[0] == "release":
        return joined([say("page_requirements.changes.left_out", share=say.percent(after))])
    if path[0] == "columns":
        if after is None:
            return joined(say.parts("page_requirements.changes.any_level", column=name(path[1])))
        known = isinstance(after, str) and after in NAMED_LEVELS
        level = say(NAMED_LEVELS[after]) if known else say("page_hierarchies.level_names.level", number=after)
        return joined(say.parts("page_requirements.changes.coarser", column=name(path[1]), level=level))
    numbers = {"before": shown_number(say, before), "after": shown_number(say, after)} if len(path) != 3 else {}
    if path[1] == "k":
        return joined([say("page_requirements.changes.number", name="k", **numbers)])
    demand = view.policy.privacy.sensitive[path[2]]
    if len(path) == 3:
        return joined(say.parts("page_requirements.changes.without", kind=title_of(say, demand.kind),
                                column=name(demand.attribute)))  # fmt: skip
    return joined(
        say.parts("page_requirements.changes.of_column", name=path[3], column=name(demand.attribute), **numbers)
    )


# ---- actions ----


def check(view: ProjectView, _: PostedForm) -> None:
    """Check the policy as it is. A check of an older one is stopped, and the page asks again when it has ended."""
    current, running = _checks(view)
    if current is not None and current.state in ("running", "done"):
        return
    if running is None:
        start_run(view.project, CHECK)
    else:
        running.stop()


def apply(view: ProjectView, form: PostedForm) -> None:
    """Make a change that was suggested for the policy as it is."""
    current, _ = _checks(view)
    number = form.whole("suggestion") or 0
    found = (
        (current.result or {}).get("found", {}) if current is not None and current.number == form.text("run") else {}
    )
    if not 0 <= number < len(found.get("suggestions", [])):
        raise UsageError("this suggestion was made for another policy. Check again.")
    settings = [
        SettingChange(tuple(setting["path"]), setting["before"], setting["after"])
        for setting in found["suggestions"][number]["settings"]
    ]
    view.change(form, "page_requirements.steps.suggestion", lambda data: changed(data, settings))


ACTIONS = {"check": check, "apply": apply}
