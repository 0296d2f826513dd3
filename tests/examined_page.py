"""A project whose table has been examined, once for all tests that begin with one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

EXAMINED_ROLES = {
    "age": "quasi-identifier",
    "town": "quasi-identifier",
    "zip": "quasi-identifier",
    "born": "quasi-identifier",
    "country": "quasi-identifier",
    "ill": "sensitive",
    "person": "identifier",
}
TOWNS = ("Bonn", "Jena", "Kiel", "Köln", "Trier")
COUNTRIES = ("Germany", "France", "Poland", "Atlantis")
ILLNESSES = ("flu", "flu", "flu", "cold", "gout", "none")


class RunHere:
    """Stands for the process of a run: the run is done here, before anybody waits for it."""

    def __init__(self, command: list[str], **_: Any) -> None:
        from sfumato.app.worker import do_run

        do_run(Path(command[-1]))

    def poll(self) -> int:
        return 0


@pytest.fixture
def runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs need no process of their own, which saves the time of its start."""
    from sfumato.app import background_run

    monkeypatch.setattr(background_run.subprocess, "Popen", RunHere)


@pytest.fixture(scope="session")
def examined_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from page_client import PageClient

    folder = tmp_path_factory.mktemp("examined")
    lines = ["age,town,zip,born,country,ill,person"]
    for row in range(120):
        born = f"{1940 + row % 60}-{1 + row % 12:02}-{1 + row % 28:02}"
        zip_code = f"{10100 + row % 40}"
        place = f"{TOWNS[row % 5 if row > 3 else 0]},{zip_code},{born},{COUNTRIES[min(row % 7, 3)]}"
        lines.append(f"{20 + row % 70},{place},{ILLNESSES[row % 6]},P{row // 2}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n", "utf-8")
    page = PageClient(folder)
    page.begin("people.csv")
    page.send("examine")
    page.wait("examine")
    page.look("columns")
    project = page.opened
    columns = {name: {"role": role} for name, role in EXAMINED_ROLES.items()}
    project.change(project.state.version, "page.steps.role", lambda data: {**data, "columns": columns})
    page.close()
    return folder


@pytest.fixture
def examined_page(examined_once: Path, tmp_path: Path) -> Iterator[object]:
    from page_client import PageClient

    folder = tmp_path / "folder"
    shutil.copytree(examined_once, folder)
    page = PageClient(folder)
    page.project = "people"
    yield page
    page.close()
