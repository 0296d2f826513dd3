"""The distinct values of columns are kept for as long as screens need them, and not longer."""

from __future__ import annotations

import re

import pytest
from page_client import PageClient

from sfumato.app.examined_values import PATTERN


def kept(page: PageClient) -> dict[str, int]:
    """The number of files with values, by run."""
    runs = sorted((page.opened.directory / "runs").iterdir())
    return {run.name: count for run in runs if (count := len(list(run.glob(PATTERN))))}


def test_the_values_of_the_last_examination_are_kept(examined_page: PageClient, runs_here: None) -> None:
    page = examined_page
    page.look("hierarchies", column=1)
    assert kept(page) == {"000001": 7}
    page.look("open")
    page.send("read", nulls="?")
    page.send("examine")
    page.look("columns")
    assert kept(page) == {"000002": 7}
    assert "Bonn" in page.look("hierarchies", column=1)


def test_they_are_removed_when_the_table_has_changed_until_it_is_read_again(
    examined_page: PageClient, runs_here: None
) -> None:
    page = examined_page
    table = page.opened.table
    table.write_text(table.read_text("utf-8") + "50,Bonn,10100,1950-01-01,Germany,flu,P9\n", "utf-8")
    for screen in ("columns", "hierarchies", "requirements"):
        assert "The table has changed since it was read" in page.look(screen)
    assert kept(page) == {}
    assert "not kept any more" in page.text
    page.look("open")
    page.send("examine")
    assert "has changed" not in page.look("hierarchies", column=1)
    assert "Bonn" in page.text
    assert kept(page) == {"000002": 7}


@pytest.mark.compiled
def test_they_are_removed_when_the_release_is_published(examined_page: PageClient, runs_here: None) -> None:
    page = examined_page
    page.prepare(k=4)
    assert kept(page) == {"000001": 7}
    page.send("publish")
    page.look("publish")
    assert page.opened.locked
    assert kept(page) == {}


GROUPS = "Bonn,west,*\nKöln,west,*\nTrier,west,*\nJena,east,*\nKiel,east,*\n"


@pytest.mark.compiled
def test_what_was_published_can_be_read_and_not_changed(examined_page: PageClient, runs_here: None) -> None:
    page = examined_page
    (page.store.folder.root / "towns.csv").write_text(GROUPS, "utf-8")
    page.look("hierarchies", column=1)
    page.send("file", path="towns.csv")
    page.send("levels", finest=1)
    page.look("hierarchies", column=0)
    page.send("numbers", round=5, bottom="", top=80)
    page.look("hierarchies", column=3)
    wizards = [form.fields["wizard"] for form in page.forms("make")]
    page.send("make", wizards.index(["calendar"]), calendar=["year", "decade"])
    assert 'class="original"' in page.look("hierarchies")
    assert 'class="original"' in page.look("requirements")
    page.send("add", kind="distinct")
    page.prepare(k=4)
    page.send("publish")
    listed = words(page.look("publish"))
    assert re.search(r"Release .*Certificate .*Report .*Codebook .*Policy ", listed)
    towns = words(page.look("hierarchies", column=1))
    assert "Hierarchy: own groups." in towns
    assert "the value never shown level 1 may be shown nothing (*) may be shown" in towns
    assert re.search(r"west Bonn Köln Trier east Jena Kiel", towns)
    assert "0 records" not in towns
    ages = words(page.look("hierarchies", column=0))
    assert "multiples of 5. Values from 80 up are one value." in ages
    born = words(page.look("hierarchies", column=3))
    assert "day may be shown year may be shown decade may be shown" in born
    assert "No hierarchy." in words(page.look("hierarchies", column=2))
    asked = words(page.look("requirements"))
    assert "looks like at least 3 others" in asked
    assert "ill Several different values (distinct l-diversity)" in asked
    for screen in ("hierarchies", "requirements"):
        assert 'class="original"' not in page.look(screen)
        changing = [form.action for form in page.all_forms() if form.method == "post"]
        assert changing == ["/settings"]


def words(html: str) -> str:
    """What the page says, without its marks."""
    inside = html.partition("<main")[2].partition("</main>")[0]
    return " ".join(re.sub(r"<[^>]*>", " ", inside).split())
