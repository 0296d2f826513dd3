"""Requirements on the page: sentences become the policy, and what is suggested can be done with one click."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any

import pytest
from page_client import PageClient, alarm

from sfumato.app import background_run
from sfumato.app.background_run import runs_of
from sfumato.cli import main
from sfumato.requirements import kinds
from sfumato.texts import texts_in

ILL = 5  # the position of the sensitive column
PERSON = 6


def privacy(page: PageClient) -> dict[str, Any]:
    found: dict[str, Any] = page.opened.policy.to_dict().get("privacy", {})
    return found


def plain(text: str) -> str:
    return re.sub(r"<[^>]*>", "", text)


def test_k_and_persons_are_set_together(examined_page: PageClient) -> None:
    page = examined_page
    text = page.look("requirements")
    assert "k is not set yet." in text
    text = page.send("k", k=7, person=PERSON)
    assert privacy(page) == {"k": 7, "person": "person"}
    assert "Every person looks like at least 6 others" in text
    # 60 persons have 120 records. A person may be in two classes, so there can be more than 60 / 7 of them.
    assert "With k = 7 this table has at most 17 classes." in plain(text)
    page.send("k", k=4, person="")
    assert privacy(page) == {"k": 4}
    assert "whole number" in alarm(page.send("k", status=422, k="many"))
    assert "at least 1" in alarm(page.send("k", status=422, k=0))


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_every_kind_is_a_sentence_with_an_example_and_can_be_changed_and_removed(
    examined_page: PageClient, kind: str
) -> None:
    page = examined_page
    page.look("requirements")
    text = page.send("add", column=ILL, kind=kind)
    assert privacy(page)["sensitive"] == [{"attribute": "ill", "kind": kind, **kinds()[kind].example}]
    assert 'class="example-line"' in text
    given = {key: value for key, value in kinds()[kind].example.items() if not isinstance(value, bool)}
    doubled = {key: min(value * 2, 1) if key in ("t", "alpha") else value * 2 for key, value in given.items()}  # type: ignore[operator, type-var]
    page.send("demand", do="set", **{key: str(value).replace(".", ",") for key, value in doubled.items()})
    assert privacy(page)["sensitive"] == [{"attribute": "ill", "kind": kind, **doubled}]
    german = texts_in("de")
    assert german is not None
    page.http.cookies.set("sfumato-language", "de")
    assert 'class="example-line"' in page.look("requirements")
    page.send("demand", do="remove")
    assert not privacy(page).get("sensitive")


def test_examples_are_those_of_the_table(examined_page: PageClient) -> None:
    page = examined_page
    page.look("requirements")
    text = page.send("add", column=ILL, kind="frequency")
    assert "In this table flu has 50% of the records; that allows an l of up to about 2." in plain(text)
    text = page.send("add", column=ILL, kind="t-closeness")
    assert "flu has 50% in this table, so between 30% and 70% in every class." in plain(text)
    text = page.send("add", column=ILL, kind="entropy")
    mixed = math.exp(-(0.5 * math.log(0.5) + 3 * math.log(1 / 6) / 6))
    assert f"as mixed as {mixed:.3g} equally frequent values" in plain(text)
    page.send("demand", 1, do="set", t="0,3", distance="ordered")
    assert privacy(page)["sensitive"][1] == {"attribute": "ill", "kind": "t-closeness", "t": 0.3, "distance": "ordered"}


@pytest.mark.not_quick
@pytest.mark.usefixtures("runs_here")
def test_what_cannot_be_met_is_told_and_a_suggestion_makes_it_so(
    examined_page: PageClient, capsys: pytest.CaptureFixture[str]
) -> None:
    page = examined_page
    page.look("requirements")
    page.send("k", k=5, person="")
    page.send("add", column=ILL, kind="frequency")  # l = 3, and half of all have the flu
    assert len(page.forms("check")) == 1
    page.send("check")
    found = page.wait("dry-run")
    text = page.look("requirements")
    assert "No. This table cannot meet all of it." in text
    assert "cannot be met" in text
    # The command says the same.
    capsys.readouterr()
    command = ["anonymize", str(page.opened.table), "--policy", str(page.opened.directory / "policy.toml"), "--dry-run"]
    assert main(command) == 3
    told = " ".join(capsys.readouterr().out.split())
    for suggestion in found["suggestions"]:
        assert suggestion["words"] in told
    assert "l = 2 instead of 3 for ill" in plain(text)
    number = next(n for n, each in enumerate(found["suggestions"]) if each["words"].startswith("l = 2"))
    page.send("apply", number)
    assert privacy(page)["sensitive"] == [{"attribute": "ill", "kind": "frequency", "l": 2}]
    page.send("check")
    assert page.wait("dry-run")["feasible"]
    text = page.look("requirements")
    assert "Yes. This table can meet all of it." in text
    page.send("step/undo")  # what was found for a policy of the history is found again
    assert "No. This table cannot meet all of it." in page.look("requirements")


def test_the_limit_of_records_left_out_is_a_share(examined_page: PageClient) -> None:
    page = examined_page
    page.look("requirements")
    text = page.send("suppression", percent="2,5")
    assert page.opened.policy.release.max_suppressed_fraction == 0.025
    assert "At most 2.5% of the records may be left out, here 3." in text
    assert alarm(page.send("suppression", status=422, percent="100"))


def test_a_policy_that_is_not_complete_is_not_checked(examined_page: PageClient) -> None:
    page = examined_page
    text = page.look("requirements")
    assert "This can be checked once the policy is complete:" in text
    assert page.forms("check") == []


def test_a_check_of_an_older_policy_is_stopped_and_the_page_asks_again_when_it_has_ended(
    examined_page: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, alive = examined_page, {"000002"}
    monkeypatch.setattr(background_run.subprocess, "Popen", lambda *_, **__: SimpleNamespace(poll=lambda: 0))
    monkeypatch.setattr(background_run.BackgroundRun, "_is_alive", lambda run: run.number in alive)
    page.look("requirements")
    page.send("k", k=3)
    page.send("check")
    page.send("k", k=4)
    assert "data-now" in page.text
    page.send("check")
    older = runs_of(page.opened, "dry-run")
    assert [(run.number, run.is_stopping) for run in older] == [("000002", True)]
    assert "data-now" not in page.text  # it would ask again and again until the older check has ended
    alive.clear()
    assert "data-now" in page.look("requirements")
    page.send("check")
    assert [run.number for run in runs_of(page.opened, "dry-run")] == ["000003", "000002"]
