"""The page in a real Chromium: the whole story by clicks and keys, at three widths, in two languages, with axe-core."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from browser import Browser, Opened, chromium

from sfumato.synthetic import generate

AXE = "4.14.0"
WIDTHS = (400, 1000, 1600)
LONG = 120.0


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[Path], str]]:
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

    def click(self, selector: str) -> None:
        self.page.wait(f"document.querySelector({json.dumps(selector)})")
        self.clicks += 1
        self.page.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

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

    def see_that_nothing_left(self) -> None:
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generate("hospital", 600, tmp_path / "export.csv", flaws=True)
    return tmp_path


def test_the_whole_story_from_an_export_with_flaws_to_a_release(
    browser: Browser, serve: Callable[[Path], str], folder: Path
) -> None:
    steward = Steward(browser, serve(folder))
    steward.click(".tables button")
    steward.at("open")
    assert steward.page.evaluate("document.querySelector('#separator').value") == ";"
    assert steward.page.evaluate("document.querySelector('#encoding').value") == "cp1252"
    assert steward.page.evaluate("document.body.classList.contains('original')")
    _look_around(steward)
    steward.click("#sentinel-0")
    steward.click("form[action$='/missing'] button")
    steward.page.wait("!document.querySelector('#sentinel-0')")
    steward.click("form[action$='/examine'] button")
    steward.page.wait("document.querySelector('.columns-cards')", LONG)
    assert "still to decide" in steward.page.evaluate("document.querySelector('#undecided').textContent")
    _look_around(steward)
    steward.role("Name", "other")
    assert "seems to name persons" in steward.page.evaluate("document.querySelector('.card .alarm').textContent")
    steward.click("#step-undo")
    steward.page.wait("!document.querySelector('.card .alarm')")
    steward.role("Hauptdiagnose", "sensitive")
    steward.role("Wiederaufnahme", "other")
    steward.click("#drop-rest")
    steward.page.wait("!document.querySelector('#undecided')")
    for screen in ("hierarchies", "requirements"):
        steward.step(screen)
        _look_around(steward)
    steward.step("risk")
    steward.click("#measure")
    steward.page.wait("document.querySelector('.figures')", LONG)
    _look_around(steward)
    steward.step("try")
    steward.fill("#trial-k", "5")
    steward.click("#start-trial")
    steward.page.wait("document.querySelector('.pair article')", LONG)
    steward.click("#start-curve")
    steward.page.wait("document.querySelector('.plot.wide')", LONG)
    _look_around(steward)
    steward.step("check")
    assert "hold" in steward.page.evaluate("document.querySelector('.verdict-box .word').textContent")
    _look_around(steward)
    lines = steward.page.evaluate("document.querySelectorAll('#risks input[type=checkbox]').length")
    for line in range(lines):
        steward.click(f"#risk-{line}")
        steward.page.wait(f"document.querySelector('#risk-{line}').checked && !document.querySelector('[aria-busy]')")
    steward.page.wait("document.querySelector('a.button.main')")
    steward.step("publish")
    steward.fill("#about-title", "Stays of 2024")
    steward.fill("#about-author", "The data office")
    steward.click("#prepare")
    steward.page.wait("document.querySelector('#publish')", LONG)
    _look_around(steward)
    steward.click("#publish")
    steward.page.wait("document.querySelector('.files')", LONG)
    _look_around(steward)
    steward.see_that_nothing_left()
    releases = folder / "export.sfumato" / "releases"
    names = {path.name for path in releases.iterdir()}
    assert names == {f"stays-of-2024{end}" for end in (
        ".csv", ".csv.sfumato.json", ".csv.codebook.html", ".report.html", ".policy.toml"
    )}  # fmt: skip
    policy = tomllib.loads((releases / "stays-of-2024.policy.toml").read_text("utf-8"))
    assert policy["about"]["title"] == "Stays of 2024"
    assert policy["columns"]["Gewicht"] == {"role": "drop", "nulls": ["-999"]}
    assert (folder / "export.sfumato/private/stays-of-2024.private.html").exists()


def _look_around(steward: Steward) -> None:
    """The screen at every width, with axe-core in light and dark."""
    for width in WIDTHS:
        steward.see_that_nothing_is_wider_than_the_window(width)
    for scheme in ("light", "dark"):
        steward.page.media(scheme=scheme)
        steward.see_that_axe_finds_nothing()
    steward.page.media(scheme="light")
    steward.page.resize(1000)


def test_five_clicks_lead_to_a_first_trial_of_the_invented_table(
    browser: Browser, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    steward = Steward(browser, serve(tmp_path))
    steward.click(".demo button")
    steward.at("open")
    steward.click("form[action$='/examine'] button")
    steward.page.wait("document.querySelector('.columns-cards')", LONG)
    assert steward.page.evaluate("document.querySelector('#undecided') === null")
    steward.step("try")
    steward.click("#start-trial")
    steward.page.wait("document.querySelector('.pair article')", LONG)
    assert steward.clicks <= 5
    steward.see_that_nothing_left()


def test_keys_alone_lead_to_the_columns_and_change_a_role(
    browser: Browser, serve: Callable[[Path], str], folder: Path
) -> None:
    steward = Steward(browser, serve(folder))
    page = steward.page

    def tab_to(selector: str) -> None:
        for _ in range(200):
            page.press("Tab", 9)
            if page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                beside = page.evaluate(
                    "getComputedStyle(document.activeElement.nextElementSibling ?? document.body).outlineStyle"
                )
                assert "solid" in (outline, beside)  # the focus can be seen
                return
        raise AssertionError(f"no key leads to {selector}")

    page.press("Tab", 9)
    assert page.evaluate("document.activeElement.className") == "skip"
    tab_to(".tables button")
    page.press("Enter", 13)
    steward.at("open")
    page.wait("document.activeElement.tagName === 'H1'")
    tab_to("form[action$='/examine'] button")
    page.press("Enter", 13)
    page.wait("document.querySelector('.columns-cards')", LONG)
    tab_to("#role-6 input")
    page.press("ArrowRight", 39)
    page.wait("document.querySelector('#role-6 input:checked')")
    page.wait("document.activeElement.closest('#role-6')")  # the focus stays where it was
    steward.see_that_nothing_left()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_speaks_german_and_keeps_the_theme(
    browser: Browser, serve: Callable[[Path], str], folder: Path, width: int
) -> None:
    steward = Steward(browser, serve(folder), width=width)
    page = steward.page
    page.evaluate("language.value = 'de'; language.dispatchEvent(new Event('change', {bubbles: true}))")
    page.wait("document.documentElement.lang === 'de' && document.querySelector('h1').textContent === 'Projekte'")
    page.evaluate("theme.value = 'dark'; theme.dispatchEvent(new Event('change', {bubbles: true}))")
    page.wait("document.documentElement.dataset.theme === 'dark'")
    steward.click(".tables button")
    steward.at("open")
    page.wait("document.querySelector('h1').textContent === 'Öffnen'")
    assert page.evaluate("document.querySelector('.warning-frame').textContent").startswith("Originaldaten")
    steward.see_that_nothing_is_wider_than_the_window(width)
    steward.see_that_axe_finds_nothing()
    page.media(kind="print")
    assert page.evaluate("getComputedStyle(document.querySelector('.steps')).display") == "none"
    page.media()
    steward.see_that_nothing_left()


def test_a_closed_tab_finds_its_run_again_and_a_second_tab_cannot_overwrite(
    browser: Browser, serve: Callable[[Path], str], folder: Path
) -> None:
    steward = Steward(browser, serve(folder))
    steward.click(".tables button")
    steward.at("open")
    steward.click("form[action$='/examine'] button")
    steward.at("columns")
    address = steward.page.evaluate("location.href")
    steward.page.go(f"{steward.origin}/")  # the tab is elsewhere while the run goes on
    steward.page.go(address)
    steward.page.wait("document.querySelector('.columns-cards')", LONG)
    second = browser.tab()
    second.go(address)
    steward.role("Versicherung", "sensitive")
    second.evaluate("document.querySelector('#role-9 input[value=sensitive]').click()")
    second.wait("document.querySelector('#alarm')")
    assert "Another tab" in second.evaluate("document.querySelector('#alarm').textContent")
    steward.page.go(address)
    assert steward.page.evaluate("document.querySelector('#role-9 input:checked') === null")
