"""Somebody at the page in a real Chromium, with a mouse or with keys alone, and what they see to on every screen."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from browser import Browser, Opened, chromium
from english_words import english_words

AXE = "4.14.0"
WIDTHS = (400, 1000, 1600)
LONG = 120.0
MOST_TABS = 250
CODES = {"Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}

# Whether the focus can be seen: it has an outline, of its own or of the label that stands for it, and is not covered.
SEEN = """(() => {
  const at = document.activeElement, label = at.closest("label");
  const outlined = [at, at.nextElementSibling, label?.querySelector(".button")].some(
    (each) => each && getComputedStyle(each).outlineStyle !== "none");
  const box = (label?.querySelector(".button") ?? at).getBoundingClientRect();
  const points = [[.5, .5], [.1, .1], [.9, .1], [.1, .9], [.9, .9]].map(
    ([x, y]) => document.elementFromPoint(box.left + x * box.width, box.top + y * box.height));
  return outlined && points.some((each) => each && (at.contains(each) || (label ?? at).contains(each)));
})()"""
# Whether the step that one is at can be seen, where there are steps: on a narrow window they scroll.
STEP_IN_WINDOW = """(() => {
  const box = document.querySelector(".steps a[aria-current]")?.getBoundingClientRect();
  return !box || (box.left >= 0 && box.right <= innerWidth);
})()"""
# Every text that can be seen or heard, but what comes from a table, a policy or a command.
TEXTS = """(() => {
  const data = "bdi, code, pre, q, script, noscript, select[name=method], #language";
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const at = walker.currentNode.parentElement;
    if (!at.closest(data) && at.checkVisibility()) found.push(walker.currentNode.data);
  }
  for (const name of ["aria-label", "title", "placeholder", "alt", "data-done", "data-gone", "aria-valuetext"]) {
    for (const each of document.querySelectorAll(`[${name}]:not(svg *)`)) found.push(each.getAttribute(name));
  }
  return found.map((text) => text.trim()).filter((text) => text);
})()"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    """Start the page of a folder as a user does, and return the address that it prints."""
    started: list[subprocess.Popen[str]] = []

    def start(folder: Path) -> str:
        command = [sys.executable, "-m", "sfumato", "app", str(folder), "--no-browser"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    yield start
    for process in started:
        process.terminate()
        printed, _ = process.communicate(timeout=20)
        assert printed == ""  # the address and nothing else is on standard output


@cache
def axe() -> str:
    """The source of axe-core, a development tool that npm brings. It stays outside the repository."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm here, so accessibility is not tested with axe-core; on Debian: apt-get install npm")
    place = Path(sys.prefix) / "axe"
    file = place / "node_modules" / "axe-core" / "axe.min.js"
    if not file.exists():
        command = [
            npm,
            "install",
            "--prefix",
            str(place),
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            f"axe-core@{AXE}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot install axe-core {AXE} here, so accessibility is not tested with it")
    return file.read_text("utf-8")


class Steward:
    """Somebody at the page, who sees to it that nothing leaves and nothing goes wrong."""

    def __init__(self, browser: Browser, address: str, *, width: int = 1000, scheme: str = "light") -> None:
        self.page: Opened = browser.tab(width=width, scheme=scheme)
        browser.call("Network.clearBrowserCookies", {}, session=self.page.session)  # of another test
        self.origin = address.partition("/?")[0]
        self.page.go(address)
        self.clicks = 0
        self.english: dict[str, list[str]] = {}

    def click(self, selector: str) -> None:
        self.page.wait(f"document.querySelector({json.dumps(selector)})")
        self.clicks += 1
        self.page.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.press(key, CODES[key])

    def tab_to(self, selector: str) -> None:
        """Go to an element as people without a mouse do. The focus is never lost, and can be seen when it arrives."""
        for _ in range(MOST_TABS):
            if self.page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                assert self.page.evaluate(SEEN), f"the focus cannot be seen on {selector}"
                return
            self.press("Tab")
        raise AssertionError(f"no key leads to {selector}")

    def do(self, selector: str, key: str = "Enter") -> None:
        """Go to a button, a link or a tick by keys, and use it."""
        self.page.wait(f"document.querySelector({json.dumps(selector)})")
        self.tab_to(selector)
        self.press(key)

    def write(self, selector: str, text: str) -> None:
        """Replace what is in a field, by keys."""
        self.tab_to(selector)
        self.page.evaluate("document.activeElement.select?.()")
        self.page.type(text)

    def fill(self, selector: str, text: str) -> None:
        self.page.evaluate(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(text)}")

    def at(self, screen: str) -> None:
        self.page.wait(f"location.pathname.endsWith('/{screen}')")

    def step(self, screen: str) -> None:
        self.click(f".steps a[href$='/{screen}']")
        self.at(screen)
        self.page.wait("document.readyState === 'complete' && document.querySelector('main h1')")

    def role(self, column: str, role: str) -> None:
        titled = f"card.querySelector('h2').textContent === {json.dumps(column)}"
        card = f"[...document.querySelectorAll('article')].find((card) => {titled})"
        self.page.evaluate(f"{card}.querySelector('input[value={role}]').click()")
        self.page.wait(f"{card}?.classList.contains('role-{role}')")

    def see_that_the_focus_is_kept(self) -> None:
        """After a part of the page was exchanged, the next key goes on from where one was, or from the heading."""
        self.page.wait("document.activeElement !== document.body && !document.querySelector('[aria-busy]')")

    def speak(self, language: str) -> None:
        cookie = {"name": "sfumato-language", "value": language, "url": self.origin}
        self.page.browser.call("Network.setCookie", cookie, session=self.page.session)
        self.page.go(self.page.evaluate("location.href"))
        assert self.page.evaluate("document.documentElement.lang") == language

    def look_for_english(self) -> None:
        """Note what is English on a German screen."""
        texts: list[str] = self.page.evaluate(TEXTS)
        assert len(texts) > 15
        self.english |= {text: sorted(found) for text in texts if (found := english_words(text))}

    def look_around(self) -> None:
        """The screen at every width in both languages, with axe-core in light and dark."""
        for language, scheme in (("en", "light"), ("de", "dark")):
            self.speak(language)
            self.page.media(scheme=scheme)
            for width in WIDTHS:
                self.see_that_nothing_is_wider_than_the_window(width)
                self.page.wait(STEP_IN_WINDOW, 10)
            self.page.resize(1000)
            self.see_that_axe_finds_nothing()
        self.look_for_english()
        self.page.media(scheme="light")
        self.speak("en")

    def see_that_nothing_left(self) -> None:
        """Nothing left the machine, nothing was written to the console, and nothing was left in English."""
        assert self.english == {}
        assert self.page.messages == []
        foreign = [url for url in self.page.requests if not url.startswith((f"{self.origin}/", "data:image/svg+xml"))]
        assert foreign == []

    def see_that_axe_finds_nothing(self) -> None:
        self.page.evaluate(axe())
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        found = self.page.awaited(f"axe.run(document, {{runOnly: {json.dumps(tags)}}}).then((done) => done.violations)")
        shown = [
            (each["id"], [(node["html"][:200], node["failureSummary"]) for node in each["nodes"][:3]]) for each in found
        ]
        assert shown == []

    def see_that_nothing_is_wider_than_the_window(self, width: int) -> None:
        self.page.resize(width)
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width
