"""How a background run goes on, as a fragment that is exchanged while it runs."""

from __future__ import annotations

import time

from sfumato.app.background_run import BackgroundRun
from sfumato.app.forms import button, hidden
from sfumato.app.view import ProjectView
from sfumato.report.html import Markup, element, joined

PHASES = {
    "read": "page.phases.read",
    "profile": "page.phases.profile",
    "encode": "page.phases.encode",
    "check": "page.phases.check",
    "order": "page.phases.order",
    "partition": "page.phases.partition",
    "improve": "page.phases.improve",
    "search": "page.phases.search",
    "neighbours": "page.phases.neighbours",
    "boxes": "page.phases.boxes",
    "prices": "page.phases.prices",
    "recode": "page.phases.recode",
    "arrange": "page.phases.arrange",
    "write": "page.phases.write",
    "audit": "page.phases.audit",
    "certify": "page.phases.certify",
    "measure": "page.phases.measure",
    "draw": "page.phases.draw",
    "risk": "page.phases.risk",
    "propose": "page.phases.propose",
    "report": "page.phases.report",
}
MINUTE = 60


def run_panel(view: ProjectView, run: BackgroundRun) -> Markup:
    """A place on a screen in which the state of a run is shown and kept up to date."""
    return element("div", run_status(view, run), id=f"run-{run.number}", class_="run", data_run=run.number)


def run_status(view: ProjectView, run: BackgroundRun) -> Markup:
    """The state of a run: its phase, how far it is, how long it takes, and the way to stop it."""
    state = run.state
    if state == "running":
        return _running(view, run)
    result = run.result or {}
    if state == "failed":
        return element(
            "p",
            element("strong", view.say("page.run.failed")),
            " ",
            view.message(str(result.get("message", ""))),
            class_="alarm",
            role="alert",
        )
    if state == "stopped":
        return element("p", view.say("page.run.stopped"), class_="quiet")
    if state == "killed":
        return element("p", view.say("page.run.killed"), class_="alarm", role="alert")
    seconds = max(0.0, float(result.get("ended", 0)) - float(run.request.get("clock", 0)))
    return element("p", view.say("page.run.done", time=_duration(view, seconds)), class_="quiet")


def _running(view: ProjectView, run: BackgroundRun) -> Markup:
    progress, say = run.progress, view.say
    phase = progress.get("phase")
    words = say("page.phases.start") if phase is None else say(PHASES.get(phase, "page.phases.work"))
    if progress.get("compiling"):
        words = say("page.phases.compile")
    if run.is_stopping:
        words = say("page.phases.stopping")
    several = progress.get("several")
    if several is not None:
        words = f"{words} ({several['number']} / {several['total']})"
    passed = _duration(view, time.time() - float(run.request.get("clock", time.time())))
    left = progress.get("left")
    times = say("page.run.passed", time=passed)
    if left is not None:
        times = say("page.run.passed_left", time=passed, left=_duration(view, float(left)))
    bar = element("progress", max=None, value=None, aria_label=words)
    steps, total = progress.get("steps"), progress.get("total")
    if several is not None and not total:
        steps, total = several["number"] - 1, several["total"]
    if steps and total:
        bar = element("progress", max=str(total), value=str(min(steps, total)), aria_label=words)
    stop = view.post(
        f"{view.address(view.screen)}/stop/{run.number}",
        hidden("end", "yes") if run.is_stopping else "",
        button(say("page.run.end" if run.is_stopping else "page.run.stop"), look="small"),
        class_="inline",
        id=f"stop-{run.number}",
    )
    line = element("p", element("strong", words), " ", element("span", times, class_="quiet"))
    return joined([line, element("div", bar, stop, class_="row")])


def _duration(view: ProjectView, seconds: float) -> str:
    if seconds < MINUTE:
        return view.say("page.seconds", count=max(1, round(seconds)))
    return view.say("page.minutes", count=round(seconds / MINUTE))
