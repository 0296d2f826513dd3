"""The page in a real Chromium: the whole story by keys alone, at three widths, in two languages, with axe-core."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import Browser
from steward import LONG, Steward

from sfumato.synthetic import generate


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    generate("hospital", 600, tmp_path / "export.csv", flaws=True)
    return tmp_path


def test_the_whole_story_from_an_export_with_flaws_to_a_release_by_keys_alone(
    browser: Browser, serve: Callable[[Path], str], folder: Path
) -> None:
    steward = Steward(browser, serve(folder))
    page = steward.page
    _settings_by_keys(steward)
    steward.look_around()
    steward.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    asked = len(page.requests)
    steward.press("Enter")  # past the frame
    steward.tab_to(".tables button")
    page.awaited("new Promise((go_on) => setTimeout(go_on, 300))")
    assert page.evaluate("document.activeElement.matches('.tables button')")  # nothing takes the focus away later
    assert page.requests[asked:] == []
    steward.do(".tables button")
    steward.at("open")
    page.wait("document.activeElement.tagName === 'H1'")
    assert page.evaluate("document.querySelector('#separator').value") == ";"
    assert page.evaluate("document.querySelector('#encoding').value") == "cp1252"
    assert page.evaluate("document.body.classList.contains('original')")
    steward.look_around()
    steward.do("#sentinel-0", " ")
    steward.do("form[action$='/missing'] button")
    page.wait("!document.querySelector('#sentinel-0')")
    steward.see_that_the_focus_is_kept()
    steward.do("form[action$='/examine'] button")
    page.wait("document.querySelector('.columns-cards')", LONG)
    steward.see_that_the_focus_is_kept()
    assert "still to decide" in page.evaluate("document.querySelector('#undecided').textContent")
    steward.look_around()
    _roles_by_keys(steward)
    _step(steward, "hierarchies")
    steward.look_around()
    _step(steward, "requirements")
    steward.write("#k", "5")
    steward.press("Enter")
    page.wait("document.querySelector('.verdict')", LONG)
    steward.see_that_the_focus_is_kept()
    steward.look_around()
    _step(steward, "risk")
    steward.do("#measure")
    page.wait("document.querySelector('.figures')", LONG)
    steward.see_that_the_focus_is_kept()
    steward.look_around()
    _step(steward, "try")
    assert page.evaluate("document.querySelector('#trial-k').value") == "5"
    steward.write("#trial-name", "K5")
    steward.do("#start-trial")
    page.wait("document.querySelector('.pair article')", LONG)
    steward.see_that_the_focus_is_kept()
    steward.do("#start-curve")
    page.wait("document.querySelector('.plot.wide')", LONG)
    steward.look_around()
    _step(steward, "check")
    assert "hold" in page.evaluate("document.querySelector('.verdict-box .word').textContent")
    steward.look_around()
    for line in range(page.evaluate("document.querySelectorAll('#risks input[type=checkbox]').length")):
        steward.do(f"#risk-{line}", " ")  # quicker than the page answers
    page.wait(
        "!document.querySelector('#risks [type=checkbox]:not(:checked)') && !document.querySelector('[aria-busy]')"
    )
    assert page.evaluate("document.activeElement.id") == f"risk-{line}"
    steward.do("a.button.main")
    steward.at("publish")
    steward.write("#about-title", "Stays of 2024")
    steward.write("#about-author", "The data office")
    steward.do("#prepare")
    page.wait("document.querySelector('#publish')", LONG)
    steward.see_that_the_focus_is_kept()
    steward.look_around()
    steward.do("#publish")
    page.wait("document.querySelector('.files')", LONG)
    steward.see_that_the_focus_is_kept()
    steward.look_around()
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


def _settings_by_keys(steward: Steward) -> None:
    """Language and colours are chosen by keys, stay chosen, and are not printed."""
    page = steward.page
    steward.do("#language", "ArrowDown")
    page.wait("document.documentElement.lang === 'de' && document.querySelector('h1').textContent === 'Projekte'")
    steward.see_that_the_focus_is_kept()
    assert page.evaluate("document.activeElement.id") == "language"
    steward.do("#theme", "ArrowDown")
    page.wait("document.documentElement.dataset.theme === 'light'")
    steward.do("#theme", "ArrowDown")
    page.wait("document.documentElement.dataset.theme === 'dark'")
    page.go(f"{steward.origin}/")
    assert page.evaluate("[document.documentElement.lang, document.documentElement.dataset.theme]") == ["de", "dark"]
    page.media(kind="print")
    assert page.evaluate("getComputedStyle(document.querySelector('.settings')).display") == "none"
    page.media()
    steward.do("#theme", "ArrowUp")
    page.wait("document.documentElement.dataset.theme === 'light'")
    steward.do("#theme", "ArrowUp")
    page.wait("document.documentElement.dataset.theme === 'auto'")
    steward.do("#language", "ArrowUp")
    page.wait("document.documentElement.lang === 'en'")


def _roles_by_keys(steward: Steward) -> None:
    page = steward.page
    _role(steward, "Name", "other")
    assert "seems to name persons" in page.evaluate("document.querySelector('.card .alarm').textContent")
    steward.do("#step-undo")
    page.wait("!document.querySelector('.card .alarm')")
    steward.see_that_the_focus_is_kept()
    _role(steward, "Hauptdiagnose", "sensitive")
    _role(steward, "Wiederaufnahme", "other")
    steward.do("#drop-rest")
    page.wait("!document.querySelector('#undecided')")
    steward.see_that_the_focus_is_kept()


def _role(steward: Steward, column: str, role: str) -> None:
    """Choose the role of a column by arrows. They pass by other roles, which are not chosen."""
    page = steward.page
    titled = f"card.querySelector('h2').textContent === {json.dumps(column)}"
    card = f"[...document.querySelectorAll('article')].find((card) => {titled})"
    form = page.evaluate(f"{card}.querySelector('form').id")
    sent = sum(url.endswith("/columns/role") for url in page.requests)
    steward.tab_to(f"#{form} input")
    while page.evaluate("document.activeElement.value") != role:
        steward.press("ArrowRight")
    page.wait(f"{card}.classList.contains('role-{role}') && !document.querySelector('[aria-busy]')")
    assert page.evaluate("document.activeElement.value") == role
    assert sum(url.endswith("/columns/role") for url in page.requests) == sent + 1


def _step(steward: Steward, screen: str) -> None:
    """Go to a step by its link. From anywhere, keys lead around the page."""
    steward.do(f".steps a[href$='/{screen}']")
    steward.at(screen)
    steward.page.wait("document.readyState === 'complete' && document.querySelector('main h1')")


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


def test_the_page_says_that_its_server_is_gone_while_it_follows_a_run(browser: Browser, folder: Path) -> None:
    command = [sys.executable, "-m", "sfumato", "app", str(folder), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        steward = Steward(browser, server.stdout.readline().strip())
        steward.click(".tables button")
        steward.at("open")
        steward.click("form[action$='/examine'] button")
        steward.page.wait("document.querySelector('progress') && document.querySelector('#main').dataset.events")
    finally:
        server.kill()
        server.communicate()
    steward.page.wait("document.querySelector('#gone')")
    assert "nothing is lost" in steward.page.evaluate("document.querySelector('#gone').textContent")
