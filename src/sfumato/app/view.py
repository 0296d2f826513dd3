"""What a screen knows when it is drawn, and what a screen is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from sfumato.app.background_run import BackgroundRun, last_run
from sfumato.app.forms import PostedForm, hidden
from sfumato.app.message_texts import message_text
from sfumato.app.project import Change, Project, ProjectState, ProjectStore
from sfumato.policy import Policy
from sfumato.report.html import Markup, element
from sfumato.texts import Texts


@dataclass
class View:
    """One look at the page: in a language, with the sign that changes need, and what has to be said on top."""

    store: ProjectStore
    say: Texts
    theme: str
    sign: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    many: Mapping[str, list[str]] = field(default_factory=dict)
    """Every value of a field of the address."""
    alarm: str = ""
    """What went wrong with the last change."""

    def message(self, text: str) -> Markup:
        """An error, a warning or a remark in the language of the page."""
        return message_text(text, self.say)

    def time(self, text: str) -> str:
        """A moment of this machine, as people write it. text: in the form of ISO 8601."""
        moment = datetime.fromisoformat(text).astimezone()
        return f"{self.say.date(moment.date())}, {moment:%H:%M}"

    def post(self, address: str, *content: object, **attributes: str | bool | None) -> Markup:
        """A form that changes something."""
        return element(
            "form", hidden("sign", self.sign), *content, method="post", action=address, data_swap=True, **attributes
        )


@dataclass
class ProjectView(View):
    """One look at a screen of a project."""

    project: Project = field(kw_only=True)
    screen: str = field(kw_only=True)

    @cached_property
    def state(self) -> ProjectState:
        return self.project.state

    @cached_property
    def policy(self) -> Policy:
        return self.project.policy

    @cached_property
    def locked(self) -> bool:
        return "published" in self.state.notes

    def address(self, screen: str) -> str:
        return f"/p/{self.project.name}/{screen}"

    def form(self, action: str, *content: object, **attributes: str | bool | None) -> Markup:
        """A form of this screen. It holds the version of the project that it was drawn from."""
        return self.post(
            f"{self.address(self.screen)}/{action}", hidden("version", self.state.version), *content, **attributes
        )

    def change(self, form: PostedForm, what: str, change: Change) -> None:
        """Change the policy, unless the form was drawn from an older one. what: the key of a text."""
        self.project.change(form.whole("version") or 0, what, change)

    @cached_property
    def examination(self) -> BackgroundRun | None:
        """The last examination of the table, whatever its state."""
        return last_run(self.project, "examine")

    @cached_property
    def examined(self) -> dict[str, Any] | None:
        """What the adopted examination found: columns with figures, sets of columns, remarks."""
        number = self.state.notes.get("examined")
        if number is None:
            return None
        result = BackgroundRun(self.project.directory / "runs" / number).result
        return None if result is None else result.get("found")

    @cached_property
    def roles(self) -> dict[str, str]:
        """The role of every column of the table; one that the policy does not name, as after undo, is to decide."""
        found = {column["name"]: "decide" for column in (self.examined or {"columns": ()})["columns"]}
        return found | {column: settings.role for column, settings in self.policy.columns.items()}


Draw = Callable[[ProjectView], Markup]
Action = Callable[[ProjectView, PostedForm], str | None]
"""Changes something. Returns the address to go on to, or None for the same screen."""


@dataclass(frozen=True)
class Screen:
    """One step of the work. key: its part of the address. title, task: keys of texts.

    original: whether it shows raw values. Those that an examination counted are there until a release is published.
    """

    key: str
    title: str
    task: str
    draw: Draw
    actions: Mapping[str, Action]
    original: Literal["never", "until published", "always"]

    def shows_original(self, view: ProjectView) -> bool:
        return self.original == "always" or (self.original == "until published" and not view.locked)
