"""A browser without a screen: Starlette's client of tests, which fills in forms as they stand on the page."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from sfumato.app.access import Access
from sfumato.app.application import make_application
from sfumato.app.background_run import runs_of
from sfumato.app.data_folder import DataFolder
from sfumato.app.project import Project, ProjectStore

HOST = "127.0.0.1"
PORT = 8111
PATIENCE = 120.0  # seconds for a run


class Clock:
    """Nobody waits for the end of this server."""

    def now(self) -> None: ...


@dataclass
class FoundForm:
    """A form of a page: where it goes, and its fields as they are."""

    action: str
    method: str
    fields: dict[str, list[str]] = field(default_factory=dict)


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[FoundForm] = []
        self._select: str | None = None
        self._area: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "form":
            self.forms.append(FoundForm(found.get("action") or "", found.get("method") or "get"))
        if not self.forms:
            return
        fields = self.forms[-1].fields
        if tag == "input" and found.get("name") and found.get("form") is None:
            kind = found.get("type", "text")
            if kind not in ("checkbox", "radio") or "checked" in found:
                fields.setdefault(str(found["name"]), []).append(found.get("value") or "")
        elif tag == "select":
            self._select = found.get("name")
        elif tag == "option" and self._select is not None and "selected" in found:
            fields[self._select] = [found.get("value") or ""]
        elif tag == "textarea":
            self._area = found.get("name")
            fields[str(self._area)] = [""]

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = None
        elif tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        if self._area is not None and self.forms:
            self.forms[-1].fields[self._area][0] += data


class PageClient:
    """A person at the page of a folder."""

    def __init__(self, folder: Path) -> None:
        self.store = ProjectStore(DataFolder(folder))
        self.access = Access({HOST, "localhost"}, PORT)
        self.application = make_application(self.store, self.access, Clock())
        self.http = TestClient(self.application, base_url=f"http://{HOST}:{PORT}", follow_redirects=True)
        self.http.headers["accept-language"] = "en"
        answer = self.http.get(f"/?token={self.access.token}")
        assert answer.status_code == 200, answer.text
        self.text = answer.text
        self.project = ""

    def look(self, screen: str = "", **query: Any) -> str:
        """Open a screen of the project, or the list of projects."""
        address = f"/p/{self.project}/{screen}" if screen else "/"
        answer = self.http.get(address, params=query)
        assert answer.status_code == 200, (address, answer.status_code, answer.text[:2000])
        self.text = answer.text
        return self.text

    def all_forms(self) -> list[FoundForm]:
        parser = _Forms()
        parser.feed(self.text)
        return parser.forms

    def forms(self, action: str) -> list[FoundForm]:
        return [found for found in self.all_forms() if found.action.partition("?")[0].endswith(f"/{action}")]

    def send(self, action: str, number: int = 0, status: int | None = 200, **changed: Any) -> str:
        """Send a form of the page that is open, with some fields changed. status: None for any answer."""
        found = self.forms(action)
        assert len(found) > number, (action, re.findall(r'action="([^"]*)"', self.text))
        form = found[number]
        fields = {**form.fields, **{name: _listed(value) for name, value in changed.items()}}
        answer = self.http.post(form.action, data={name: values for name, values in fields.items() if values})
        assert status in (None, answer.status_code), (
            action,
            answer.status_code,
            alarm(answer.text) or answer.text[:2000],
        )
        self.text = answer.text
        place = re.match(r"/p/([^/]+)/", answer.url.path)
        if place:
            self.project = place[1]
        return self.text

    def begin(self, table: str) -> None:
        """Make a project for a table of the folder."""
        self.look()
        number = next(index for index, form in enumerate(self.forms("create")) if form.fields.get("table") == [table])
        self.send("create", number)

    def prepare(self, k: int) -> None:
        """Make a trial, read what could go wrong, and prepare its release, where runs are done at once."""
        self.look("try")
        self.send("start", k=k)
        self.look("check")
        self.send("read", line=[str(number) for number in range(40)])
        self.look("publish")
        self.send("prepare", title="Towns", author="Office", format="csv")

    def wait(self, kind: str) -> dict[str, Any]:
        """Wait for the last run of a kind, and return what it found."""
        run = runs_of(self.opened, kind)[0]
        end = time.monotonic() + PATIENCE
        while run.state == "running" and time.monotonic() < end:
            time.sleep(0.05)
        result = run.result
        assert run.state == "done", (run.state, result)
        assert result is not None
        found: dict[str, Any] = result["found"]
        return found

    @property
    def opened(self) -> Project:
        return self.store.project(self.project)

    def close(self) -> None:
        self.store.close()
        self.http.close()


def alarm(text: str) -> str:
    """What the page says went wrong."""
    found = re.search(r'id="alarm"[^>]*>(.*?)</p>', text, re.DOTALL)
    return found[1] if found else ""


def _listed(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]
