"""The distinct values of columns are kept for as long as screens need them, and not longer."""

from __future__ import annotations

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
    for screen in ("hierarchies", "requirements"):
        assert "not kept any more" in page.look(screen)
