"""Hierarchies and requirements in a real Chromium: by keys alone, with axe-core, in both languages, at all widths."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser import Browser
from page_client import PageClient
from steward import Steward


def policy_of(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "people.sfumato" / "policy.toml").read_text("utf-8"))


def started(examined_page: PageClient, serve: Callable[[Path], str], browser: Browser) -> tuple[Steward, Path]:
    folder = examined_page.opened.folder.root
    examined_page.close()
    return Steward(browser, serve(folder)), folder


def test_a_group_and_its_level_are_made_by_keys_alone(
    examined_page: PageClient,
    serve: Callable[[Path], str],
    browser: Browser,
) -> None:
    steward, folder = started(examined_page, serve, browser)
    page = steward.page
    page.go(f"{steward.origin}/p/people/hierarchies?column=1")
    for town in ("Bonn", "Köln"):
        steward.do(f"[aria-label='Choose {town}']", " ")
    assert page.evaluate("document.querySelectorAll('.tree :checked').length") == 2
    steward.write("#group-name", "Rhine")
    steward.do("#do-group")
    page.wait("[...document.querySelectorAll('.tree .group')].some((each) => each.textContent === 'Rhine')")
    steward.see_that_the_focus_is_kept()
    steward.do("#level-finest", "ArrowRight")
    page.wait("document.querySelector('#step-undo').textContent.includes('levels')")
    town = policy_of(folder)["columns"]["town"]
    assert town["finest"] == 1
    assert (folder / "people.sfumato" / town["taxonomy"]).read_text("utf-8").startswith("Bonn,Rhine,*\nKöln,Rhine,*\n")
    assert page.evaluate("document.activeElement.id") == "level-finest"
    assert page.evaluate("document.querySelector('th[data-at=\"0\"]').className") == "off"
    steward.see_that_axe_finds_nothing()
    steward.see_that_nothing_left()


def test_a_line_is_dragged_onto_a_group(
    examined_page: PageClient,
    serve: Callable[[Path], str],
    browser: Browser,
) -> None:
    examined_page.look("hierarchies", column=1)
    examined_page.send("groups", node=["1", "4"], name="Rhine", do="group")
    steward, folder = started(examined_page, serve, browser)
    steward.page.go(f"{steward.origin}/p/people/hierarchies?column=1")
    steward.page.evaluate(
        """(() => {
          const row = (name) => [...document.querySelectorAll('.tree li')].find(
            (each) => each.querySelector('.label bdi').textContent === name);
          const data = new DataTransfer();
          const say = (kind, at) => at.dispatchEvent(
            new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
          say('dragstart', row('Jena')); say('dragover', row('Rhine').firstChild); say('drop', row('Rhine').firstChild);
        })()"""
    )
    steward.page.wait("document.querySelectorAll('.tree ul li').length === 3")
    file = folder / "people.sfumato" / policy_of(folder)["columns"]["town"]["taxonomy"]
    assert "Jena,Rhine,*\n" in file.read_text("utf-8")
    steward.see_that_nothing_left()


def test_requirements_are_checked_as_soon_as_they_are_set_by_keys_alone(
    examined_page: PageClient,
    serve: Callable[[Path], str],
    browser: Browser,
) -> None:
    steward, folder = started(examined_page, serve, browser)
    page = steward.page
    page.go(f"{steward.origin}/p/people/requirements")
    steward.write("#k", "300")
    steward.press("Enter")
    page.wait("document.querySelector('.run progress')", 60)
    steward.write("#percent", "2.5")
    page.wait("document.querySelector('.verdict.bad')", 60)
    assert page.evaluate("[document.activeElement.id, document.activeElement.value]") == ["percent", "2.5"]
    steward.speak("de")
    steward.look_for_english()
    steward.speak("en")
    steward.do("#apply-0")
    page.wait("document.querySelector('.verdict.good')", 60)
    assert policy_of(folder)["privacy"]["k"] == 120
    steward.see_that_the_focus_is_kept()
    for screen in ("requirements", "hierarchies?column=0", "hierarchies?column=3"):
        page.go(f"{steward.origin}/p/people/{screen}")
        steward.look_around()
    steward.see_that_nothing_left()
