"""What all screens have around them: the steps, the policy and its command, language and theme, the warning frame."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from html import escape

from sfumato._version import __version__
from sfumato.app.background_run import runs_of
from sfumato.app.data_folder import PROJECT_SUFFIX
from sfumato.app.examined_values import table_has_changed
from sfumato.app.forms import button, hidden, select
from sfumato.app.screens import SCREENS
from sfumato.app.screens.projects import projects_body
from sfumato.app.view import ProjectView, Screen, View
from sfumato.report.html import Markup, element, folded, joined, name, preformatted
from sfumato.texts import LANGUAGES


def projects_page(view: View) -> str:
    """The list of projects, with which everything begins."""
    return _document(view, view.say("page.projects"), [_top(view), _main(view, projects_body(view))])


def project_page(view: ProjectView, screen: Screen) -> str:
    """A screen of a project in its frame."""
    say, is_original = view.say, screen.shows_original(view)
    heading = element("h1", say(screen.title), tabindex="-1")
    task = element("p", say(screen.task), class_="task")
    notice: object = element("p", say("page.published"), class_="note") if view.locked else ""
    if not view.locked and table_has_changed(view.project):
        way = element("a", say("page_open.again"), href=view.address("open"))
        notice = element("p", say("page.table_changed"), " ", way, class_="note")
    body = joined([heading, task, notice, screen.draw(view)])
    parts = [
        element("section", say("page.original"), class_="warning-frame", aria_label=say("page.warning"))
        if is_original
        else "",
        _top(view),
        element("div", _steps(view, screen), _main(view, body), _policy(view), class_="columns"),
    ]
    title = f"{say(screen.title)} \N{MIDDLE DOT} {view.state.title}"
    return _document(view, title, parts, look="original" if is_original else "")


def error_page(view: View, status: int, text: str) -> str:
    body = [
        element("h1", view.say("page.error", status=str(status))),
        element("p", text, class_="alarm", role="alert"),
        element("p", element("a", view.say("page.to_projects"), href="/")),
    ]
    return _document(view, view.say("page.error", status=str(status)), [_top(view), _main(view, joined(body))])


def command_of(view: ProjectView) -> str:
    """The command that makes the same release from the same policy, in the folder of the page."""
    folder = f"{view.project.name}{PROJECT_SUFFIX}"
    words = ["sfumato", "anonymize", view.state.table, "-o", "release.csv", "--policy", f"{folder}/policy.toml"]
    return shlex.join(words)


def _document(view: View, title: str, parts: Sequence[object], look: str = "") -> str:
    head = joined(
        [
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="sfumato-sign", content=view.sign),
            element("title", f"{title} \N{MIDDLE DOT} Sfumato"),
            element("link", rel="stylesheet", href="/static/style.css"),
            element("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
            element("script", src="/static/script.js", defer=True),
        ]
    )
    skip = element("a", view.say("page.skip"), href="#main", class_="skip")
    live = element("p", id="live", class_="unseen", role="status", aria_live="polite", data_gone=view.say("page.gone"))
    foot = element("footer", f"Sfumato {__version__} \N{MIDDLE DOT} ", view.say("page.foot"))
    body = element("body", skip, *parts, live, foot, class_=look or None)
    language = escape(view.say.language.code)
    return (
        f'<!doctype html>\n<html lang="{language}" data-theme="{view.theme}">\n<head>{head}</head>\n{body}\n</html>\n'
    )


def _top(view: View) -> Markup:
    home = element("a", "Sfumato", href="/", class_="brand")
    title: object = ""
    if isinstance(view, ProjectView):
        title = element(
            "p",
            element("strong", name(view.state.title)),
            " ",
            element("span", name(view.state.table), class_="quiet"),
            class_="title",
        )
    languages = {code: language.name for code, language in LANGUAGES.items()}
    themes = {key: view.say(text) for key, text in THEME_NAMES.items()}
    settings = view.post(
        "/settings",
        hidden("back", view.path),
        select(
            "language",
            languages,
            view.say.language.code,
            auto=True,
            id="language",
            aria_label=view.say("page.language"),
        ),
        select("theme", themes, view.theme, auto=True, id="theme", aria_label=view.say("page.theme")),
        element("noscript", button(view.say("page.apply"), look="small")),
        class_="settings",
    )
    return element("header", home, title, settings, class_="top")


THEME_NAMES = {"auto": "page.themes.auto", "light": "page.themes.light", "dark": "page.themes.dark"}


def _main(view: View, body: object) -> Markup:
    alarm = element("p", view.alarm, class_="alarm", role="alert", id="alarm", tabindex="-1") if view.alarm else ""
    events = f"/p/{view.project.name}/events?screen={view.screen}" if isinstance(view, ProjectView) else None
    return element("main", alarm, body, id="main", data_events=events)


def _steps(view: ProjectView, current: Screen) -> Markup:
    running = any(run.state == "running" for run in runs_of(view.project)[:10])
    steps = []
    for number, screen in enumerate(SCREENS, start=1):
        steps.append(
            element(
                "li",
                element(
                    "a",
                    element("span", str(number), class_="number", aria_hidden="true"),
                    element("span", view.say(screen.title)),
                    href=view.address(screen.key),
                    aria_current="step" if screen.key == current.key else None,
                ),
            )
        )
    busy = element("p", view.say("page.running"), class_="busy") if running else ""
    return element("nav", element("ol", *steps), busy, class_="steps", aria_label=view.say("page.steps_label"))


def _policy(view: ProjectView) -> Markup:
    """The policy as TOML, the equal command, and the way back and forth in its history."""
    say, command = view.say, command_of(view)
    undone, redone = view.project.neighbours()
    moves: list[object] = []
    for way, step, text in (("undo", undone, "page.undo"), ("redo", redone, "page.redo")):
        if step is not None and not view.locked:
            label = say(text, what=say(step.what))  # the keys of steps stand where the steps are made
            moves.append(
                view.post(
                    f"{view.address(view.screen)}/step/{way}",
                    hidden("version", view.state.version),
                    button(label, look="small", id=f"step-{way}"),
                    class_="inline",
                )
            )
    history = [
        element(
            "li",
            element("strong" if step.number == view.state.current else "span", say(step.what)),
            " ",
            element("span", view.time(step.time), class_="quiet"),
        )
        for step in reversed(view.state.steps)
    ]
    content = [
        element("p", say("page.policy_text"), class_="quiet"),
        element("div", *moves, class_="row") if moves else "",
        element(
            "div",
            element("code", command, id="command", tabindex="0"),
            _copy(view, "#command", "page.copy_command"),
            class_="copied",
        ),
        preformatted(text, say("page.policy"))
        if (text := view.project.policy_text)
        else element("p", say("page.policy_empty"), class_="quiet"),
        element("p", element("a", say("page.download_policy"), href=f"/p/{view.project.name}/policy.toml")),
        folded(say("page.history", count=len(view.state.steps)), element("ol", *history, class_="history")),
    ]
    return element(
        "aside",
        element("details", element("summary", say("page.policy")), *content, id="policy", open=True),
        aria_label=say("page.policy"),
    )


def _copy(view: ProjectView, target: str, text: str) -> Markup:
    return element(
        "button",
        view.say(text),
        type="button",
        class_="button small",
        data_copy=target,
        data_done=view.say("page.copied"),
    )
