"""Publishing from the page: everything appears in one moment, and the project is locked once its release stands."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from kills import AT_MOST, DONE, run_to
from page_client import PageClient, alarm

from sfumato.app import background_run, worker
from sfumato.app.background_run import last_run
from sfumato.app.worker import do_run
from sfumato.pipeline.release import Release

RELEASED = {f"towns{end}" for end in (
    ".csv", ".csv.sfumato.json", ".csv.codebook.html", ".report.html", ".policy.toml"
)}  # fmt: skip


class Waiting:
    """Stands for the process of a run that has not done anything yet."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def poll(self) -> int:
        return 0


@pytest.fixture
def ready(examined_page: PageClient, runs_here: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a project whose publication has been asked for and has not begun."""
    page = examined_page
    page.prepare(k=4)
    monkeypatch.setattr(background_run.subprocess, "Popen", Waiting)
    page.send("publish")
    page.close()
    return page.opened.folder.root


def released(folder: Path) -> set[str]:
    return {path.name for path in (folder / "people.sfumato/releases").iterdir()}


@pytest.mark.not_quick
@pytest.mark.compiled
def test_a_kill_before_any_operation_leaves_a_release_and_a_locked_project_or_neither(
    ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "PAUSE", 60.0)  # no reports between the operations that are counted
    for page in ("report", "codebook", "_private_report"):  # what is on the pages is of no matter here
        monkeypatch.setattr(Release, page, lambda _: _Page())
    seen = []
    for last in range(1, AT_MOST):
        folder = tmp_path / "killed"
        shutil.copytree(ready, folder)
        directory = folder / "people.sfumato"
        ended = run_to(lambda: do_run(_run_of(folder)), directory, last, private=False)  # noqa: B023  (it is run at once)
        page = PageClient(folder)
        page.project = "people"
        page.look("publish")
        locked = page.opened.locked
        assert released(folder) == (RELEASED if locked else set()), last
        assert len(list((directory / "private").glob("*.html"))) == locked
        if locked:
            published = tomllib.loads((directory / "releases/towns.policy.toml").read_text("utf-8"))
            certificate = json.loads((directory / "releases/towns.csv.sfumato.json").read_text("utf-8"))
            assert published == certificate["policy"]
            assert set(page.opened.state.notes["published"]["files"]) == RELEASED
        else:
            assert page.forms("publish"), "it can be published again"
        page.close()
        shutil.rmtree(folder)
        seen.append(locked)
        if ended == DONE:
            break
    assert seen == sorted(seen)  # once there is a release, no later kill takes it back
    assert seen.count(False) > 10
    assert seen.count(True) > 10
    assert ended == DONE


class _Page:
    def page(self) -> str:
        return "a page"


def _run_of(folder: Path) -> Path:
    """The folder of the run, whose request names the folder that it was copied to."""
    directory = next(
        path.parent
        for path in (folder / "people.sfumato/runs").glob("*/request.json")
        if json.loads(path.read_text("utf-8"))["kind"] == "publish"
    )
    request: dict[str, Any] = json.loads((directory / "request.json").read_text("utf-8"))
    (directory / "request.json").write_text(json.dumps({**request, "folder": str(folder)}), "utf-8")
    return directory


@pytest.mark.compiled
def test_an_old_tab_changes_nothing_once_the_release_of_a_killed_run_stands(ready: Path) -> None:
    page = PageClient(ready)
    page.project = "people"
    page.look("requirements")  # as it was before the run wrote the release
    run = last_run(page.opened, "publish")
    assert run is not None
    do_run(run.directory)
    (run.directory / "result.json").unlink()  # as if it had been killed before it could say so
    page.send("k", status=423, k=2)
    assert "has been published" in alarm(page.text)
    assert page.opened.policy.k == 4
    page.close()


@pytest.mark.compiled
def test_nothing_is_changed_while_the_release_is_written(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PageClient(ready)
    page.project = "people"
    page.look("requirements")
    policy = (ready / "people.sfumato/policy.toml").read_text("utf-8")
    monkeypatch.setattr(background_run.BackgroundRun, "_is_alive", lambda run: run.kind == "publish")
    page.send("k", status=423, k=2)
    assert "is being written" in alarm(page.text)
    (ready / "people.sfumato/policy.toml").write_text(policy.replace("k = 4", "k = 3"), "utf-8")  # by hand
    page.look("requirements")
    assert page.opened.policy.k == 4
    page.close()
