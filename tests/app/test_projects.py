"""Projects on disk: history, undo, two tabs, two servers, edits by hand, and the end of the process at any moment."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from page_client import PageClient, alarm

from sfumato.app import worker
from sfumato.app.background_run import BackgroundRun, runs_of, start_run
from sfumato.app.data_folder import DataFolder
from sfumato.app.project import OutdatedPageError, Project, ProjectStore
from sfumato.errors import OutputError, PolicyError
from sfumato.policy import Policy

TABLE = "name,age,zip,illness\n" + "".join(
    f"P{row},{20 + row % 40},{10_000 + row % 7},{'flu' if row % 3 else 'gout'}\n" for row in range(120)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(TABLE, "utf-8")
    return tmp_path


@pytest.fixture
def project(folder: Path) -> Iterator[Project]:
    store = ProjectStore(DataFolder(folder))
    yield store.create("people.csv")
    store.close()


def with_k(k: int) -> object:
    return lambda data: {**data, "privacy": {"k": k}}


def test_a_change_is_a_step_that_can_be_undone_and_made_again(project: Project) -> None:
    project.change(1, "page.steps.role", with_k(5))
    project.change(2, "page.steps.role", with_k(7))
    assert project.policy.k == 7
    project.undo(3)
    assert project.policy.k == 5
    assert Policy.load(project.directory / "policy.toml").k == 5
    project.redo(4)
    assert project.policy.k == 7
    project.undo(5)
    project.change(6, "page.steps.role", with_k(9))  # what was undone is gone
    assert project.neighbours()[1] is None
    project.undo(7)
    assert project.policy.k == 5
    project.undo(8)
    assert project.policy.privacy.k is None
    assert project.neighbours()[0] is None


def test_a_change_from_an_older_page_changes_nothing(project: Project) -> None:
    project.change(1, "page.steps.role", with_k(5))
    with pytest.raises(OutdatedPageError):
        project.change(1, "page.steps.role", with_k(9))
    assert project.policy.k == 5


def test_a_policy_that_is_wrong_is_not_stored(project: Project) -> None:
    with pytest.raises(PolicyError, match="must be a whole number"):
        project.change(1, "page.steps.role", lambda data: {**data, "privacy": {"k": 0}})
    assert project.state.version == 1


@pytest.mark.parametrize("path", ["/etc/hostname", "../../outside.csv"])
def test_a_policy_that_names_a_file_outside_the_folder_is_refused(project: Project, path: str) -> None:
    columns = {"zip": {"role": "quasi-identifier", "taxonomy": path}}
    with pytest.raises(PolicyError, match="outside the folder"):
        project.change(1, "page.steps.role", lambda data: {**data, "columns": columns})


def test_two_servers_do_not_write_to_one_project(folder: Path, project: Project) -> None:
    project.change(1, "page.steps.role", with_k(5))
    second = ProjectStore(DataFolder(folder)).project(project.name)
    assert second.policy.k == 5  # looking is allowed
    with pytest.raises(OutputError, match="open in another Sfumato"):
        second.change(2, "page.steps.role", with_k(9))
    project.close()
    second.change(2, "page.steps.role", with_k(9))
    assert second.policy.k == 9
    second.close()


def test_an_edit_of_the_file_by_hand_is_a_step_and_nonsense_is_told(project: Project) -> None:
    file = project.directory / "policy.toml"
    file.write_text("[privacy]\nk = 12\n", "utf-8")
    project.adopt_edits()
    assert project.policy.k == 12
    assert project.state.steps[-1].what == "page.steps.edited"
    file.write_text("[privacy\n", "utf-8")
    with pytest.raises(PolicyError, match="not valid TOML"):
        project.adopt_edits()
    assert project.policy.k == 12


def test_a_crash_between_the_history_and_the_policy_file_is_repaired(project: Project) -> None:
    project.change(1, "page.steps.role", with_k(5))
    project.change(2, "page.steps.role", with_k(7))
    file = project.directory / "policy.toml"
    file.write_text((project.directory / "history" / "000002.toml").read_text("utf-8"), "utf-8")  # the step before
    project.adopt_edits()
    assert project.policy.k == 7
    assert Policy.load(file).k == 7
    assert len(project.state.steps) == 3


def test_a_project_is_its_owners_alone(project: Project) -> None:
    project.change(1, "page.steps.role", with_k(5))
    for path in (project.directory, *project.directory.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


KILLED = """
import sys
from pathlib import Path
from sfumato.app.data_folder import DataFolder
from sfumato.app.project import ProjectStore
project = ProjectStore(DataFolder(Path(sys.argv[1]))).project("people")
number = 1
while True:
    number += 1
    project.change(project.state.version, "page.steps.role", lambda data: {**data, "privacy": {"k": number}})
    print(number, flush=True)
"""


def test_kill_9_loses_no_policy(folder: Path, project: Project) -> None:
    """Whenever the process ends, the policy is the last that was reported, or the one after it, and it is whole."""
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.03)
        process.send_signal(signal.SIGKILL)
        reported = [int(line) for line in process.stdout.read().split() if line]
        process.wait()
        process.stdout.close()
        again = ProjectStore(DataFolder(folder)).project("people")
        last = reported[-1] if reported else 2
        assert again.policy.k in (last, last + 1)
        again.adopt_edits()
        assert Policy.load(again.directory / "policy.toml").k == again.policy.k
        again.close()


def test_two_tabs_do_not_overwrite_each_other(folder: Path) -> None:
    page = PageClient(folder)
    page.begin("people.csv")
    page.send("read", separator=",")
    first = page.text
    page.send("read", encoding="latin-1")
    page.text = first  # the other tab, which was drawn before
    page.send("read", status=409, encoding="cp1252")
    assert "Another tab" in alarm(page.text)
    assert page.opened.state.notes["reading"]["encoding"] == "latin-1"
    page.close()


@pytest.mark.not_quick
def test_a_run_goes_on_without_its_server_and_is_found_again(folder: Path) -> None:
    """The server is killed while a run goes on; another server finds the run, and then its result."""
    code = (
        "import sys, os, signal; from pathlib import Path\n"
        "from sfumato.app.data_folder import DataFolder\n"
        "from sfumato.app.project import ProjectStore\n"
        "from sfumato.app.background_run import start_run\n"
        "project = ProjectStore(DataFolder(Path(sys.argv[1]))).create('people.csv')\n"
        "start_run(project, 'examine', {'input': {}})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], check=False)
    assert done.returncode == -signal.SIGKILL
    page = PageClient(folder)
    page.project = "people"
    run = runs_of(page.opened, "examine")[0]
    assert run.state == "running"
    assert 'id="run-000001"' in page.look("columns")
    found = page.wait("examine")
    assert found["records"] == 120
    assert "4 columns" in page.look("columns")
    page.close()


@pytest.mark.not_quick
def test_a_killed_run_is_told_and_can_be_started_again(project: Project) -> None:
    run = start_run(project, "examine", {"input": {}})
    os.killpg(_process_of(run), signal.SIGKILL)
    end = time.monotonic() + 20
    while run.state == "running" and time.monotonic() < end:
        time.sleep(0.02)
    assert run.state == "killed"
    again = start_run(project, "examine", {"input": {}})
    while again.state == "running":
        time.sleep(0.05)
    assert again.state == "done"


@pytest.mark.not_quick
def test_a_run_that_is_asked_to_stop_ends_and_leaves_no_release(project: Project) -> None:
    run = start_run(project, "examine", {"input": {}})
    run.stop()
    end = time.monotonic() + 60
    while run.state == "running" and time.monotonic() < end:
        time.sleep(0.02)
    assert run.state in ("stopped", "done")  # it may have been quicker
    assert json.loads((run.directory / "result.json").read_text("utf-8"))["state"] == run.state


def test_progress_in_numbers_of_numpy_is_reported_and_the_wish_to_stop_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "PAUSE", 0.01)
    run = BackgroundRun(tmp_path)
    progress = worker.ReportedProgress(run)
    with progress.phase("improve", np.int64(200)):
        progress.advance(np.int64(50))
        end = time.monotonic() + 20
        while run.progress.get("steps") != 50 and time.monotonic() < end:
            time.sleep(0.01)
        assert (run.progress["steps"], run.progress["total"]) == (50, 200)
        run.stop()
        while not progress.stopped and time.monotonic() < end:
            time.sleep(0.01)
    assert progress.stopped
    progress.end()


def _process_of(run: BackgroundRun) -> int:
    """The number of the process that holds the lock of a run, from what the system says about locks."""
    inode = os.stat(run.directory / "lock").st_ino
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and int(process.name) != os.getpid():
                try:
                    handles = [os.stat(handle).st_ino for handle in (process / "fd").iterdir()]
                except OSError:
                    continue
                if inode in handles:
                    return int(process.name)
        time.sleep(0.02)
    raise AssertionError("no process holds the lock")


@pytest.mark.not_quick
@pytest.mark.compiled
def test_a_search_that_is_stopped_leaves_a_trial_to_look_at_that_is_marked_and_never_a_release(folder: Path) -> None:
    # Large enough for a search of many seconds.
    draw = random.Random(0).randrange
    names = [f"q{number}" for number in range(6)]
    lines = [",".join([f"P{row}", *(str(draw(50)) for _ in names), "abc"[row % 3]]) for row in range(20_000)]
    (folder / "people.csv").write_text("\n".join([",".join(["name", *names, "illness"]), *lines, ""]))
    store = ProjectStore(DataFolder(folder))
    project = store.create("people.csv")
    columns = {"name": {"role": "identifier"}, "illness": {"role": "sensitive"}}
    columns |= {name: {"role": "quasi-identifier"} for name in names}
    method = {"name": "auto", "seconds": 300.0}
    project.change(1, "page.steps.role", lambda _: {"columns": columns, "privacy": {"k": 3}, "method": method})
    run = start_run(project, "trial", {"name": "long"})
    end = time.monotonic() + 100
    while run.progress.get("phase") != "improve" and time.monotonic() < end:
        time.sleep(0.02)
        assert run.state == "running", run.result
    run.stop()
    while run.state == "running" and time.monotonic() < end:
        time.sleep(0.02)
    result = run.result
    assert result is not None, run.progress
    assert (result["state"], result["cut_short"], result["found"]["trial"]) == ("done", True, True)
    assert result["found"]["smallest_class"] >= 3
    assert list((project.directory / "releases").iterdir()) == []
    store.close()
    page = PageClient(folder)
    page.project = project.name
    assert "stopped early" in page.look("try")
    page.close()


@pytest.mark.not_quick
def test_a_run_that_does_not_stop_is_ended_at_once_by_a_second_wish(folder: Path) -> None:
    page = PageClient(folder)
    page.begin("people.csv")
    page.send("examine")
    run = runs_of(page.opened, "examine")[0]
    process = _process_of(run)
    while not (run.directory / "process.json").exists():
        time.sleep(0.02)
    os.kill(process, signal.SIGSTOP)  # it hears no wish any more
    page.look("columns")
    page.send(f"stop/{run.number}")
    assert "End at once" in page.text
    assert run.state == "running"
    page.send(f"stop/{run.number}")
    end = time.monotonic() + 20
    while run.state == "running" and time.monotonic() < end:
        time.sleep(0.02)
    assert run.state == "stopped"
    assert "The run was stopped" in page.look("columns")
    page.close()
