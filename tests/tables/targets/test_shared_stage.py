"""Several releases that share a stage appear together: a kill at any moment leaves all old ones or all new ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from kills import AT_MOST, DONE, run_to

from sfumato.policy import WrittenText
from sfumato.tables.locations import FileLocation
from sfumato.tables.targets.file_target import FileTarget
from sfumato.tables.targets.staging import Stage
from sfumato.tables.targets.target import recover_location

NAMES = ("patients.csv", "lab.csv")


def publish(folder: Path, text: str) -> None:
    with Stage() as stage:
        for name in NAMES:
            target = FileTarget(FileLocation(folder / name), WrittenText(), disarm=False, labels=(), stage=stage)
            table = pa.table({"age": [f"{text} {name}"]})
            target.write(table.schema, table.to_batches)
            target.stage_certificate(f"certificate {text}")
        stage.publish()


def state(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.not_quick
def test_a_kill_before_any_operation_leaves_all_old_releases_or_all_new_ones(tmp_path: Path) -> None:
    publish(tmp_path, "new")
    new = state(tmp_path)
    publish(tmp_path, "old")
    old = state(tmp_path)
    assert len(old) == 2 * len(NAMES)
    assert all(old[name] != new[name] for name in old)
    seen = []
    for last in range(1, AT_MOST, 2):  # every second one: test_kills.py tries all, of releases with pages
        for name, text in old.items():
            (tmp_path / name).write_text(text)
        ended = run_to(lambda: publish(tmp_path, "new"), tmp_path, last)
        recover_location(FileLocation(tmp_path / NAMES[-1]))  # the next command is one on the last table
        now = {name: text for name, text in state(tmp_path).items() if not name.startswith(".")}
        assert now in (old, new), last
        for name in NAMES[:-1]:
            recover_location(FileLocation(tmp_path / name))
        assert state(tmp_path) == now, last  # nothing is left of what was staged
        seen.append(now == new)
        if ended == DONE:
            break
    assert seen == sorted(seen)  # once the new ones are there, they stay
    assert (seen[0], seen[-1], ended) == (False, True, DONE)


def test_an_error_before_publication_leaves_nothing(tmp_path: Path) -> None:
    with Stage() as stage:
        target = FileTarget(FileLocation(tmp_path / NAMES[0]), WrittenText(), disarm=False, labels=(), stage=stage)
        table = pa.table({"age": ["1"]})
        target.write(table.schema, table.to_batches)
        assert len(state(tmp_path)) == 1
    assert state(tmp_path) == {}
