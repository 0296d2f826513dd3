"""Whatever somebody does on the page, the policy that it leaves gives the same bytes on the command line."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from examined_page import RunHere
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from page_client import PageClient

from sfumato.app import background_run
from sfumato.app.background_run import last_run
from sfumato.app.screens.publish import publish_command
from sfumato.app.view import ProjectView
from sfumato.cli import main
from sfumato.synthetic import generate
from sfumato.texts import texts_in

ROLES = ("identifier", "drop", "pseudonym", "quasi-identifier", "sensitive", "other")
COLUMNS = 15


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a project whose table has been examined."""
    folder = tmp_path_factory.mktemp("examined")
    generate("hospital", 150, folder / "export.csv", flaws=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(background_run.subprocess, "Popen", RunHere)
        page = PageClient(folder)
        page.begin("export.csv")
        page.send("missing", sentinel=["0"])
        page.send("examine")
        page.close()
        yield folder


def _role(page: PageClient, draw: Callable[[Any], Any]) -> None:
    page.look("columns")
    page.send("role", draw(st.integers(0, COLUMNS - 1)), role=draw(st.sampled_from(ROLES)))


def _rest(page: PageClient, _: Callable[[Any], Any]) -> None:
    page.look("columns")
    if page.forms("rest"):
        page.send("rest")


def _trial(page: PageClient, draw: Callable[[Any], Any]) -> None:
    page.look("try")
    if page.forms("start"):
        asked = {"k": draw(st.integers(1, 30)), "suppressed": draw(st.sampled_from(["0", "2,5", "10"]))}
        page.send("start", effort=draw(st.sampled_from(["fast", "normal", "balanced"])), **asked)


def _global(page: PageClient, draw: Callable[[Any], Any]) -> None:
    page.look("try")
    if page.forms("start"):
        ticked = {"global": "yes"} if draw(st.booleans()) else {"global": [], "method": "mondrian"}
        page.send("start", **ticked)


def _step(page: PageClient, draw: Callable[[Any], Any]) -> None:
    page.look("columns")
    way = draw(st.sampled_from(["undo", "redo"]))
    if page.forms(way):
        page.send(way)


def _nulls(page: PageClient, draw: Callable[[Any], Any]) -> None:
    page.look("open")
    page.send("read", nulls=draw(st.sampled_from(["? NA", "?", "NA", ""])))
    page.send("examine")


def _accept(page: PageClient, _: Callable[[Any], Any]) -> None:
    page.look("columns")
    for number in range(len(page.forms("accept"))):
        page.look("columns")
        page.send("accept", number, accept="yes")


def _hierarchy(page: PageClient, draw: Callable[[Any], Any]) -> None:
    """Give a column the hierarchy that fits it, and then make a group of its first two lines, if it has lines."""
    found = re.findall(r'hierarchies\?column=(\d+)"', page.look("hierarchies"))
    if not found:
        return
    page.look("hierarchies", column=draw(st.sampled_from(found)))
    fits = [
        number for number, form in enumerate(page.forms("make")) if form.fields.get(form.fields["wizard"][0], [""])[0]
    ]
    if fits:
        page.send("make", draw(st.sampled_from(fits)))
    nodes = re.findall(r'name="node" value="(\d+)"', page.text)
    if page.forms("groups") and len(nodes) > 1 and draw(st.booleans()):
        page.send("groups", node=nodes[:2], name=f"group {len(page.opened.state.steps)}", do="group")


def _require(page: PageClient, draw: Callable[[Any], Any]) -> None:
    page.look("requirements")
    if page.forms("k"):
        page.send("k", k=draw(st.integers(2, 15)))
    page.look("requirements")
    if page.forms("add"):
        page.send("add", kind=draw(st.sampled_from(["frequency", "distinct", "entropy", "t-closeness"])))


def _levels(page: PageClient, draw: Callable[[Any], Any]) -> None:
    page.look("hierarchies")
    if page.forms("levels"):
        page.send("levels", status=None, finest=draw(st.integers(0, 2)), coarsest=draw(st.integers(1, 4)))


ACTIONS = (_require, _levels, _role, _role, _role, _rest, _trial, _global, _step, _nulls, _accept, _hierarchy, _require)


def _published(page: PageClient, chosen: str) -> bool:
    """Go on as far as the page lets us, at last to a release."""
    _rest(page, lambda _: None)
    page.look("try")
    if page.forms("start"):
        page.send("start")
    page.look("check")
    if not page.forms("read"):
        return False
    page.send("read", line=[str(number) for number in range(40)])
    page.look("publish")
    page.send("prepare", title="Fälle für alle", author="Stelle", purpose="Forschung", format=chosen)
    if not page.forms("publish"):
        return False
    page.send("publish")
    page.look("publish")
    return "published" in page.opened.state.notes


@pytest.mark.compiled
@pytest.mark.not_quick
@settings(max_examples=max(3, settings().max_examples // 5), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_command_makes_the_same_files(examined: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "folder"
        shutil.copytree(examined, folder)
        page = PageClient(folder)
        page.project = "export"
        for action in data.draw(st.lists(st.sampled_from(ACTIONS), max_size=6)):
            action(page, data.draw)
        chosen = data.draw(st.sampled_from(["spreadsheet", "csv", "excel", "parquet"]))
        released = _published(page, chosen)
        project = page.opened
        failed = last_run(project, "trial")
        view = ProjectView(page.store, texts_in("en"), "auto", "", "", project=project, screen="publish")
        words = shlex.split(publish_command(view))
        page.close()
        replayed = Path(place) / "replayed"
        shutil.copytree(folder, replayed)
        for path in (
            *(replayed / "export.sfumato/releases").iterdir(),
            *(replayed / "export.sfumato/private").glob("*.html"),
        ):
            path.unlink()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(replayed)
            code = main(words[1:])
        if not released:
            assert failed is None or failed.state == "failed"
            assert code != 0
            return
        assert code == 0
        names = {path.name for path in (folder / "export.sfumato/releases").iterdir()}
        assert len(names) == 5  # the table, its certificate, codebook, report and policy
        for path in (folder / "export.sfumato/releases").iterdir():
            other = replayed / "export.sfumato/releases" / path.name
            assert other.read_bytes() == path.read_bytes(), path.name
        published = next((folder / "export.sfumato/releases").glob("*.policy.toml"))
        certificate = next((folder / "export.sfumato/releases").glob("*.sfumato.json"))
        assert tomllib.loads(published.read_text("utf-8")) == json.loads(certificate.read_text("utf-8"))["policy"]
