"""Directories that Spark has written are published whole, wherever a run is killed. No session is needed for that."""

from __future__ import annotations

import json
import shutil
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from kills import AT_MOST, DONE, run_to

from sfumato.engines.spark.file_systems import LocalFiles
from sfumato.engines.spark.publication import (
    CERTIFICATE,
    MANIFEST,
    publish_locally,
    publish_remotely,
    recover_remotely,
)
from sfumato.errors import InputError
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.targets import file_publication
from sfumato.tables.targets.journal import JOURNAL
from sfumato.tables.targets.staging import recover
from sfumato.tables.targets.target import CertifiedTable

State = dict[str, tuple[int, bytes]]


def state_of(folder: Path) -> State:
    return {
        str(path.relative_to(folder)): (stat.S_IMODE(path.stat().st_mode), b"" if path.is_dir() else path.read_bytes())
        for path in sorted(folder.rglob("*"))
    }


def parts(text: str, number: int) -> dict[str, str]:
    return {f"part-{part:05}.parquet": f"{text} {part}" for part in range(number)}


def stage(directory: Path, files: dict[str, str]) -> list[CertifiedTable]:
    """Write files as jobs do: with the usual permissions, in a private directory."""
    directory.mkdir()
    for name, text in files.items():
        (directory / name).write_text(text)
    return [{"name": name, "bytes": len(text), "sha256": "0" * 64} for name, text in files.items()]


def publish_here(folder: Path, text: str, number: int) -> None:
    with Scratch(folder) as scratch:
        staged = scratch.directory / "release"
        stage(staged, parts(text, number))
        publish_locally(staged, folder / "out", f"certificate {text}", ())


def publish_there(folder: Path, text: str, number: int) -> None:
    with Scratch(folder) as scratch:
        staged = scratch.directory / "release"
        entries = stage(staged, parts(text, number))
        publish_remotely(Store(), str(staged), str(folder / "out"), entries, f"certificate {text}")


class Store(LocalFiles):
    """A store that renames a directory file by file: it copies all, and then removes all."""

    def rename(self, path: str, target: str) -> None:
        if not Path(path).is_dir():
            super().rename(path, target)
            return
        assert not Path(target).exists()
        Path(target).mkdir()
        names = sorted(self.names(path))
        for name in names:
            shutil.copyfile(f"{path}/{name}", f"{target}/{name}")
        for name in names:
            self.remove(f"{path}/{name}")
        self.remove(path)


def recover_here(folder: Path) -> None:
    recover(folder / "out")
    with Scratch(folder):
        pass


def recover_there(folder: Path) -> None:
    recover_remotely(Store(), str(folder / "out"))
    with Scratch(folder):
        pass
    for path in folder.glob(".*"):  # nobody knows whether a run far away is alive, so what it staged stays
        assert path.name.endswith(("-stage-out", "-draft"))
        shutil.rmtree(path) if path.is_dir() else path.unlink()


WAYS: dict[str, tuple[Callable[[Path, str, int], None], Callable[[Path], None]]] = {
    "here": (publish_here, recover_here),
    "here without exchange": (publish_here, recover_here),
    "there": (publish_there, recover_there),
}


@pytest.mark.parametrize("existing", [False, True], ids=["new", "replaced"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.not_quick
def test_a_kill_before_any_operation_leaves_the_old_or_the_new_release_whole(
    way: str, existing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish, recovered = WAYS[way]
    if way == "here without exchange":
        monkeypatch.setattr(file_publication, "exchange_atomically", lambda *_: False)
    folder = tmp_path / "place"
    folder.mkdir()
    if existing:
        publish(folder, "old", 3)
    beginning = tmp_path / "beginning"
    shutil.copytree(folder, beginning)
    before = state_of(folder)
    publish(folder, "new", 2)
    after = state_of(folder)
    assert CERTIFICATE in {Path(name).name for name in after}
    assert not [name for name in after if name.startswith(".")]
    published_by = []
    for last in range(1, AT_MOST):
        shutil.rmtree(folder)
        shutil.copytree(beginning, folder)
        ended = run_to(lambda: publish(folder, "new", 2), folder, last, private=way != "there")
        recovered(folder)
        now = state_of(folder)
        assert now in (before, after), last
        published_by.append(now == after)
        if ended == DONE:
            break
        assert ended == -signal.SIGKILL
    assert published_by == sorted(published_by)
    assert not published_by[0]
    assert published_by.count(True) > 1


@pytest.mark.parametrize("text", ["", "{}", '{"token": "../../x", "files": ["_certificate.sfumato.json"]}', "[]"])
def test_a_damaged_journal_is_refused_and_nothing_is_changed(tmp_path: Path, text: str) -> None:
    publish_there(tmp_path, "old", 2)
    (tmp_path / f".out{JOURNAL}").write_text(text)
    before = state_of(tmp_path)
    with pytest.raises(InputError, match=r"is damaged.*Nothing was changed"):
        recover_remotely(Store(), str(tmp_path / "out"))
    assert state_of(tmp_path) == before


def test_the_manifest_and_the_certificate_are_in_the_directory(tmp_path: Path) -> None:
    publish_there(tmp_path, "new", 2)
    assert [file["name"] for file in json.loads((tmp_path / "out" / MANIFEST).read_text())["files"]] == [
        "part-00000.parquet",
        "part-00001.parquet",
    ]
    assert (tmp_path / "out" / CERTIFICATE).read_text() == "certificate new"
