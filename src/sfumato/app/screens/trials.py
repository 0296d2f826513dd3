"""Try: trials in the background, side by side, and what every k would cost. A trial is not a release."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.app.background_run import BackgroundRun, last_run, runs_of, start_run
from sfumato.app.exposures import share_with_bar
from sfumato.app.forms import PostedForm, button, checkbox, field, hidden, link_button, select, text_input
from sfumato.app.run_status import run_panel
from sfumato.app.screens.check import decisions_of
from sfumato.app.screens.requirement_sentences import short_words
from sfumato.app.view import ProjectView, Screen
from sfumato.errors import UsageError
from sfumato.pictures.picture import Picture
from sfumato.policy.run_settings import USUAL_EFFORT
from sfumato.report.html import Markup, element, folded, joined, name, scrolling, table
from sfumato.report.page import in_page_colours

EFFORTS = {
    "fast": "page_try.efforts.fast",
    "normal": "page_try.efforts.normal",
    "balanced": "page_try.efforts.balanced",
    "best": "page_try.efforts.best",
    "exact": "page_try.efforts.exact",
}
GLOBAL = "global"
USUAL_K = 10
LARGEST_INSIDE = 300_000  # bytes of a picture that is part of the page


def draw(view: ProjectView) -> Markup:
    trials = runs_of(view.project, "trial")
    parts: list[object] = [element("p", view.say("page_try.not_a_release"), class_="note")]
    parts.append(_missing(view) or ("" if view.locked else _form(view, trials)))
    parts += [run_panel(view, run) for run in trials[:1] if run.state != "done"]
    done = [run for run in trials if run.state == "done"]
    if done:
        parts.append(_rows(view, done))
        parts.append(_side_by_side(view, done))
    parts.append(_curve(view))
    if done:
        parts.append(
            element(
                "div", link_button(view.say("page_try.go_on"), view.address("check"), look="main"), class_="row go-on"
            )
        )
    return joined(parts)


def _missing(view: ProjectView) -> Markup | None:
    """What keeps a trial from being started."""
    say, policy = view.say, view.policy
    undecided = [column for column, role in view.roles.items() if role == "decide"]
    if not policy.quasi_identifiers or undecided:
        text = say("page_try.undecided", count=len(undecided)) if undecided else say("page_try.no_columns")
        return element(
            "p", text, " ", element("a", say("page_try.to_columns"), href=view.address("columns")), class_="note"
        )
    return None


def _form(view: ProjectView, trials: Sequence[BackgroundRun]) -> Markup:
    say, policy = view.say, view.policy
    if any(run.state == "running" for run in trials):
        return Markup("")
    from sfumato.methods import methods

    names = {method: method for method in methods()}
    efforts = {key: say(text) for key, text in EFFORTS.items()}
    number = len(trials) + 1
    return view.form(
        "start",
        element(
            "div",
            field(
                say("page_try.name"),
                text_input("name", say("page_try.trial", number=number), id="trial-name", maxlength="80"),
            ),
            field(
                say("page_try.k"),
                text_input("k", policy.privacy.k or USUAL_K, inputmode="numeric", id="trial-k", required=True),
                hint=say("page_try.k_hint"),
            ),
            field(
                say("page_try.suppressed"),
                text_input(
                    "suppressed",
                    say.number(policy.release.max_suppressed_fraction * 100, ".4g"),
                    inputmode="decimal",
                    id="suppressed",
                ),
                hint=say("page_try.suppressed_hint"),
            ),
            field(say("page_try.effort"), select("effort", efforts, policy.method.effort or USUAL_EFFORT, id="effort")),
            class_="fields",
        ),
        folded(
            say("page_try.more"),
            element(
                "div",
                field(
                    say("page_try.method"),
                    select("method", names, policy.method.name, id="method"),
                    hint=say("page_try.method_hint"),
                ),
                class_="fields",
            ),
            checkbox("bound", "yes", say("page_try.bound"), checked=False, id="bound"),
        ),
        checkbox("global", "yes", say("page_try.global"), checked=policy.method.name == GLOBAL, id="global"),
        button(say("page_try.start"), look="main", id="start-trial"),
    )


def _rows(view: ProjectView, done: Sequence[BackgroundRun]) -> Markup:
    """The trials as rows, the last one first, of which two can be chosen."""
    say = view.say
    columns = list(dict.fromkeys(column for run in done for column in run.result["found"]["stars"]))  # type: ignore[index]
    further = any(_further(view, run) for run in done)  # columns in which nothing stands would push others out of sight
    bounded = any(_bound(view, run.result["found"]) for run in done)  # type: ignore[index]
    heads = [
        say("page_try.compare"),
        say("page_try.name"),
        "k",
        *([say("page_try.further")] if further else []),
        say("page_try.method"),
        say("page_try.loss"),
        *(joined(["* ", name(column)]) for column in columns),
        say("page_try.left_out"),
        say("page_try.smallest"),
        *([say("page_try.bound_short")] if bounded else []),
        say("page_try.look"),
    ]
    rows = []
    chosen = _chosen(view, done)
    for run in done:
        found, request = (run.result or {})["found"], run.request
        box = element(
            "input",
            type="checkbox",
            name="run",
            value=run.number,
            form="compare",
            checked=run in chosen,
            aria_label=say("page_try.compare_this", name=request["options"].get("name", run.number)),
            id=f"pick-{run.number}",
        )
        marks: list[object] = []
        if _is_current(view, run):
            marks.append(element("span", say("page_try.current"), class_="mark"))
        if (run.result or {}).get("cut_short"):
            marks.append(element("span", say("page_try.cut_short"), class_="mark"))
        stars = [say.percent(found["stars"][column]) if column in found["stars"] else "" for column in columns]
        cells = [
            element("td", box),
            element(
                "th", name(str(request["options"].get("name", run.number))), " ", *marks, scope="row", class_="text"
            ),
            element("td", say.number(_k_of(run))),
            *([element("td", element("bdi", _further(view, run)), class_="words")] if further else []),
            element("td", name(found["chosen"]), class_="words"),
            element("td", element("strong", say.number(found["gcp"], ".1%"))),
            *(element("td", star) for star in stars),
            element("td", say.number(found["suppressed"])),
            element("td", say.number(found["smallest_class"])),
            *([element("td", _bound(view, found))] if bounded else []),
            element("td", _actions(view, run)),
        ]
        rows.append(element("tr", *cells))
    texts = (1, 3, 4) if further else (1, 3)  # of the headings
    cells_of_head = (
        element("th", cell, scope="col", class_="text" if number in texts else None)
        for number, cell in enumerate(heads)
    )
    head = element("tr", *cells_of_head)
    made = element(
        "table",
        element("caption", say("page_try.rows")),
        element("thead", head),
        element("tbody", *rows),
        class_="trials",
    )
    compare = element(
        "form",
        button(say("page_try.side_by_side"), look="small", id="compare-button"),
        id="compare",
        method="get",
        action=view.address("try"),
        class_="inline",
    )
    return element(
        "section",
        element("h2", say("page_try.trials")),
        scrolling(made, say("page_try.rows")),
        compare if len(done) > 1 else "",
    )


def _is_current(view: ProjectView, run: BackgroundRun) -> bool:
    return decisions_of(run.request["policy"]) == decisions_of(view.project.policy_text)


def _k_of(run: BackgroundRun) -> int:
    return int(tomllib.loads(run.request["policy"]).get("privacy", {}).get("k", 1))


def _further(view: ProjectView, run: BackgroundRun) -> str:
    """The requirements beside k: what the policy asks of sensitive columns."""
    lines = tomllib.loads(run.request["policy"]).get("privacy", {}).get("sensitive", [])
    words = []
    for line in lines:
        given = {key: value for key, value in line.items() if key not in ("attribute", "kind")}
        words.append(f"{line['attribute']}: {short_words(view.say, line['kind'], given)}")
    return "; ".join(words)


def _bound(view: ProjectView, found: Mapping[str, Any]) -> str:
    bound = found.get("bound")
    return "" if bound is None else view.say.number(float(bound), ".1%")


def _actions(view: ProjectView, run: BackgroundRun) -> Markup:
    say, options = view.say, run.request["options"]
    page = element(
        "a",
        say("page_try.private"),
        href=f"/p/{view.project.name}/files/runs/{run.number}/private.html",
        target="_blank",
    )
    if view.locked or _is_current(view, run):
        return page
    label = say("page_try.back_to", name=options.get("name", run.number))
    back = view.form(
        "back", hidden("run", run.number), button(say("page_try.back"), look="small", aria_label=label), class_="inline"
    )
    return joined([page, " ", back])


def _chosen(view: ProjectView, done: Sequence[BackgroundRun]) -> list[BackgroundRun]:
    wanted = view.many.get("run", [])
    return [run for run in done if run.number in wanted][:2]


def _side_by_side(view: ProjectView, done: Sequence[BackgroundRun]) -> Markup:
    """Two trials beside each other, or the last one alone: what they lose in each column, and their classes."""
    say = view.say
    shown = _chosen(view, done) or list(done[:1])
    cards = []
    for run in shown:
        found, title = (run.result or {})["found"], str(run.request["options"].get("name", run.number))
        rows = [
            (name(column), share_with_bar(view, loss), say.percent(found["stars"].get(column, 0.0)))
            for column, loss in found["columns"].items()
        ]
        heads = (say("page_try.column"), say("page_try.loss"), "*")
        picture: object = ""
        if found["plot"]:
            text = say("page_try.picture", name=title)
            picture = scrolling(_picture(view, run, "classes", text, look="detailed"), text)
        facts = say("page_try.facts", classes=found["classes"], released=found["released"], records=found["records"])
        cards.append(
            element(
                "article",
                element("h3", name(title)),
                element("p", facts, class_="quiet"),
                table(say("page_try.by_column", name=title), heads, rows),
                picture,
                class_="card",
            )
        )
    return element("div", *cards, class_="pair")


def _picture(view: ProjectView, run: BackgroundRun, drawn: str, text: str, look: str = "") -> Markup:
    """A picture of a run in the colours of the page; one that would make the page slow is an image of its own."""
    file = f"{drawn}-{view.say.language.code}.svg"
    path = run.directory / file
    if path.stat().st_size > LARGEST_INSIDE:
        address = f"/p/{view.project.name}/files/runs/{run.number}/{file}"
        return element("img", src=address, alt=text, class_=f"plot {look}")
    picture = Picture(text, text, path.read_text("utf-8"))
    return element("div", in_page_colours(picture), class_=f"plot {look}")


def _curve(view: ProjectView) -> Markup:
    """What every k would cost, under the policy as it is."""
    say, run = view.say, last_run(view.project, "curve")
    parts: list[object] = [
        element("h2", say("page_try.curve")),
        element("p", say("page_try.curve_text"), class_="quiet"),
    ]
    if run is not None and run.state != "done":
        parts.append(run_panel(view, run))
    if run is not None and run.state == "done":
        if not _is_current(view, run):
            parts.append(element("p", say("page_try.curve_older"), class_="note"))
        found = (run.result or {})["found"]
        rows = [
            (
                say.number(step["k"]),
                say.number(step["gcp"], ".1%"),
                say.number(step["classes"]),
                say.number(step["suppressed"]),
            )
            for step in found["steps"]
            if step["gcp"] is not None
        ]
        heads = ("k", say("page_try.loss"), say("page_try.classes"), say("page_try.left_out"))
        parts += [
            _picture(view, run, "curve", say("page_try.curve"), look="wide"),
            _picture(view, run, "curve-narrow", say("page_try.curve"), look="narrow"),
            folded(say("page_try.curve_table"), table(say("page_try.curve"), heads, rows)),
        ]
    if (run is None or run.state != "running") and _missing(view) is None and view.policy.privacy.k and not view.locked:
        parts.append(view.form("curve", button(say("page_try.curve_start"), look="small", id="start-curve")))
    return element("section", *parts)


# ---- actions ----


def start(view: ProjectView, form: PostedForm) -> None:
    """Put what was chosen into the policy, and start a trial under it."""
    k, percent = form.whole("k"), form.number("suppressed") or 0.0
    if k is None:
        raise UsageError("a trial needs k: the least number of records that share a class. Write a number.")
    method = GLOBAL if form.text("global") else form.text("method") or "auto"
    if not form.text("global") and method == GLOBAL and view.policy.method.name == GLOBAL:
        method = "auto"  # the tick was taken away

    def change(data: dict[str, Any]) -> dict[str, Any]:
        settings = {**data.get("method", {}), "name": method, "effort": form.text("effort") or None}
        release = {**data.get("release", {}), "max_suppressed_fraction": percent / 100}
        return {**data, "privacy": {**data.get("privacy", {}), "k": k}, "method": settings, "release": release}

    view.change(form, "page.steps.trial", change)
    options: dict[str, Any] = {
        "name": form.text("name").strip() or view.say("page_try.trial", number=1),
        "language": view.say.language.code,
    }
    if form.text("bound"):
        options["bound"] = True
    start_run(view.project, "trial", options)


def curve(view: ProjectView, _: PostedForm) -> None:
    """Compute the loss for many k."""
    start_run(view.project, "curve")


def back(view: ProjectView, form: PostedForm) -> None:
    """Make the policy of a trial the current one again."""
    run = next((run for run in runs_of(view.project, "trial") if run.number == form.text("run")), None)
    if run is None:
        raise UsageError("there is no such trial. Load the page again.")
    view.change(form, "page.steps.back", lambda _: tomllib.loads(run.request["policy"]))


SCREEN = Screen(
    key="try",
    title="page_try.title",
    task="page_try.task",
    draw=draw,
    actions={"start": start, "curve": curve, "back": back},
    original="never",
)
