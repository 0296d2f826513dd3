"""Publish: what the release is called, who answers for it, its format, and the run that writes it and locks all."""

from __future__ import annotations

import datetime
import re
import shlex
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.app.background_run import BackgroundRun, last_run, start_run
from sfumato.app.data_folder import PROJECT_SUFFIX
from sfumato.app.forms import PostedForm, button, field, link_button, select, text_input
from sfumato.app.publication import PublishedFiles
from sfumato.app.run_status import run_panel
from sfumato.app.screens.check import checked_trial, unread_lines, warning_list
from sfumato.app.view import ProjectView, Screen
from sfumato.errors import WITHOUT_UMLAUTS, UsageError
from sfumato.report.html import Markup, element, joined, name
from sfumato.texts import LANGUAGES

FORMATS = {
    "spreadsheet": ("page_publish.formats.spreadsheet", ".csv"),
    "csv": ("page_publish.formats.csv", ".csv"),
    "excel": ("page_publish.formats.excel", ".xlsx"),
    "parquet": ("page_publish.formats.parquet", ".parquet"),
}
# What a spreadsheet needs to open CSV by a double click, and not to run what looks like a formula.
SPREADSHEET = {"encoding": "utf-8-sig", "formulas": "disarm"}
# What is not the released table, in the order in which it is listed behind it.
KINDS = (
    (".sfumato.json", "page_publish.files.certificate"),
    (".report.html", "page_publish.files.report"),
    (".codebook.html", "page_publish.files.codebook"),
    (".policy.toml", "page_publish.files.policy"),
)


def draw(view: ProjectView) -> Markup:
    published = view.state.notes.get("published")
    if published is not None:
        return _published(view, published)
    say, trial = view.say, checked_trial(view)
    running = last_run(view.project, "publish")
    if running is not None and running.state == "running":
        return run_panel(view, running)
    parts: list[object] = []
    if running is not None and running.state != "done":
        parts.append(run_panel(view, running))
    if trial is None:
        return joined([*parts, _back_to_check(view, say("page_publish.no_trial"))])
    if unread := unread_lines(view, trial):
        return joined([*parts, _back_to_check(view, say("page_publish.unread", count=len(unread)))])
    if (trial.result or {}).get("cut_short"):
        parts.append(element("p", say("page_publish.cut_short"), class_="note"))
    looked = last_run(view.project, "precheck")
    if looked is not None and looked.request["policy"] != view.project.policy_text:
        looked = None
    parts.append(_form(view, again=looked is not None))
    if looked is not None:
        parts.append(_ready(view, looked))
    return joined(parts)


def _back_to_check(view: ProjectView, text: str) -> Markup:
    link = link_button(view.say("page_publish.to_check"), view.address("check"), look="main")
    return joined([element("p", text, class_="note"), element("div", link, class_="row go-on")])


def _form(view: ProjectView, *, again: bool) -> Markup:
    say, about, policy = view.say, view.policy.about, view.policy
    formats = {key: say(text) for key, (text, _) in FORMATS.items()}
    chosen = str(view.state.notes.get("format") or ("spreadsheet" if policy.release.encoding == "utf-8-sig" else "csv"))
    languages = {code: language.name for code, language in LANGUAGES.items()}
    language = about.language if about.title else view.say.language.code
    today = datetime.datetime.now().astimezone().date()
    return view.form(
        "prepare",
        element(
            "div",
            field(
                say("page_publish.name"),
                text_input("title", about.title or "", id="about-title", required=True, maxlength="200"),
            ),
            field(
                say("page_publish.author"),
                text_input("author", about.author or "", id="about-author", required=True, maxlength="200"),
            ),
            field(
                say("page_publish.date"),
                text_input("date", (about.date or today).isoformat(), id="about-date", type="date"),
            ),
            field(say("page_publish.language"), select("language", languages, language, id="about-language")),
            field(say("page_publish.format"), select("format", formats, chosen, id="format")),
            class_="fields",
        ),
        field(
            say("page_publish.purpose"),
            element("textarea", about.purpose or "", name="purpose", id="about-purpose", rows="3", maxlength="2000"),
            hint=say("page_publish.purpose_hint"),
            look="long",
        ),
        element("p", say("page_publish.public"), class_="quiet"),
        button(
            say("page_publish.prepare_again") if again else say("page_publish.prepare"),
            look="" if again else "main",
            id="prepare",
        ),
    )


def _ready(view: ProjectView, looked: BackgroundRun) -> Markup:
    """What was found before the release, and the last button."""
    say = view.say
    if looked.state != "done":
        return run_panel(view, looked)
    found = (looked.result or {})["found"]
    if found["message"]:
        return element("p", view.message(found["message"]), class_="alarm", role="alert")
    warnings = [element("li", view.message(text)) for text in found["warnings"]]
    noticed: object = element("p", say("page_publish.no_warnings"), class_="quiet")
    if warnings:
        noticed = element(
            "div",
            element("p", element("strong", say("page_publish.warnings"))),
            element("ul", *warnings, class_="plain"),
            class_="note",
        )
    return element(
        "section",
        element("h2", say("page_publish.ready")),
        noticed,
        element("p", say("page_publish.anew")),
        element("p", say("page.same_command"), " ", element("code", publish_command(view)), class_="quiet"),
        view.form("publish", button(say("page_publish.do"), look="main danger", id="publish")),
    )


def file_name(view: ProjectView) -> str:
    """The name of the released file: the title in plain letters."""
    title = view.policy.about.title or view.state.title
    plain = unicodedata.normalize("NFKD", title.translate(WITHOUT_UMLAUTS)).encode("ascii", "ignore").decode().lower()
    stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60] or "release"
    return stem + FORMATS.get(str(view.state.notes.get("format")), FORMATS["csv"])[1]


def publish_command(view: ProjectView) -> str:
    """The command that makes the same files."""
    files = PublishedFiles(Path(f"{view.project.name}{PROJECT_SUFFIX}"), file_name(view))
    words = ["sfumato", "anonymize", view.state.table, "-o", str(files.release)]
    words += ["--policy", str(files.directory / "policy.toml"), "--report", str(files.report)]
    words += ["--report-private", str(files.private), "--shareable-policy", str(files.policy)]
    return shlex.join(words)


def _published(view: ProjectView, published: Mapping[str, Any]) -> Markup:
    say = view.say
    address = f"/p/{view.project.name}/files/releases"
    rows = []
    for file in sorted(published["files"], key=_place_in_list):
        kind = next((text for ending, text in KINDS if file.endswith(ending)), "page_publish.files.table")
        shown: object = ""
        if file.endswith((".html", ".toml", ".json")):
            shown = element("a", say("page_publish.look"), href=f"{address}/{file}", target="_blank")
        saved = element("a", say("page_publish.save"), href=f"{address}/{file}?download", download=True)
        links = element("span", shown, " ", saved, class_="links")
        rows.append(element("li", element("span", say(kind), class_="file"), name(file), links, class_="row"))
    private = element(
        "a",
        say("page_publish.look"),
        href=f"/p/{view.project.name}/files/private/{published['private']}",
        target="_blank",
    )
    place = f"{view.project.name}{PROJECT_SUFFIX}/releases"
    return joined(
        [
            element("div", element("p", say("page_publish.done"), class_="word"), class_="verdict-box holds"),
            element("p", say("page_publish.place"), " ", element("code", place)),
            element("ul", *rows, class_="tables files"),
            warning_list(view, published["warnings"]),
            element(
                "section",
                element("h2", say("page_publish.private")),
                element("p", say("page_publish.private_text"), " ", private, class_="note"),
            ),
        ]
    )


def _place_in_list(file: str) -> int:
    return next((place for place, (ending, _) in enumerate(KINDS, start=1) if file.endswith(ending)), 0)


# ---- actions ----


def prepare(view: ProjectView, form: PostedForm) -> None:
    """Put what the release is called into the policy, and look for what speaks against it."""
    chosen = form.text("format")
    if chosen not in FORMATS:
        raise UsageError("this format does not exist. Choose one of the list.")
    about = {key: form.text(key).strip() for key in ("title", "author", "purpose", "date", "language")}
    about = {key: text for key, text in about.items() if text}

    def change(data: dict[str, Any]) -> dict[str, Any]:
        release = {key: value for key, value in data.get("release", {}).items() if key not in SPREADSHEET}
        release |= {"codebook": True, **(SPREADSHEET if chosen == "spreadsheet" else {})}
        return {**data, "about": about, "release": release}

    if checked_trial(view) is None:
        raise UsageError("there is no trial under this policy. Make one, and check it.")
    view.change(form, "page.steps.about", change)
    view.project.note(None, format=chosen)
    start_run(view.project, "precheck")


def publish(view: ProjectView, form: PostedForm) -> None:
    """Run the policy anew, and write everything."""
    looked = last_run(view.project, "precheck")
    ready = looked is not None and looked.state == "done" and looked.request["policy"] == view.project.policy_text
    trial = checked_trial(view)
    if not ready or trial is None or unread_lines(view, trial):
        raise UsageError("the release is not checked under this policy yet. Go through the steps before.")
    view.project.check_version(form.whole("version") or 0)
    start_run(view.project, "publish", {"file": file_name(view)})


SCREEN = Screen(
    key="publish",
    title="page_publish.title",
    task="page_publish.task",
    draw=draw,
    actions={"prepare": prepare, "publish": publish},
    original="never",
)
