"""The screen that checks a trial."""

from __future__ import annotations

import re
from typing import Any

import pytest
from page_client import PageClient


@pytest.mark.compiled
def test_a_level_has_a_verdict_and_no_value_that_it_reaches(examined_page: PageClient, runs_here: None) -> None:
    """The value of a level counts the records that break it. Beside 'reached', 0 would seem to be a level."""
    page = examined_page
    project = page.opened

    born = {"role": "quasi-identifier", "taxonomy": {"calendar": ["year"]}, "finest": "year"}

    def with_level(data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "columns": {**data["columns"], "born": born}}

    project.change(project.state.version, "page.steps.role", with_level)
    page.look("try")
    page.send("start", k=4)
    rows = re.findall(r"<tr><th[^>]*>(.*?)</th><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td>", page.look("check"))
    reached = {requirement: value for requirement, verdict, value in rows if "verdict-word" in verdict}
    [smallest] = [value for requirement, value in reached.items() if "k = 4" in requirement]
    assert int(smallest) >= 4
    assert [value for requirement, value in reached.items() if "finer than the year" in requirement] == [""]


@pytest.mark.compiled
def test_all_trials_are_drawn_on_the_same_columns(examined_page: PageClient, runs_here: None) -> None:
    page = examined_page
    for settings in ({"k": 4}, {"k": 30, "global": "yes"}):
        page.look("try")
        page.send("start", **settings)
    drawn = [
        re.findall(r"<title>(.*?)</title>", path.read_text("utf-8"))[0]
        for path in sorted(page.opened.directory.glob("runs/*/classes-en.svg"))
    ]
    assert drawn == ["Classes by born and age"] * 2
