"""Whole or not at all: a release appears finished, with its certificate, or nothing changes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato
from sfumato.engines.memory import audit as memory_audit
from sfumato.engines.target_output import TargetOutput
from sfumato.errors import OutputError, UsageError
from sfumato.pipeline import run
from sfumato.tables.targets import staging
from sfumato.tables.targets.staging import MARK, Stage, check_target

NOBODY = 65534


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def umask_027() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def publish(target: Path, content: bytes) -> None:
    with Stage() as stage:
        stage.path(target).write_bytes(content)
        stage.publish()


def small_release() -> sfumato.Release:
    table = pa.table({"age": [1, 2, 3, 4], "sex": ["f", "m", "f", "m"]})
    return sfumato.anonymize(table, quasi_identifiers=["age", "sex"], k=2)


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's rights, which know no permissions."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def test_a_staged_file_is_its_owners_alone_and_has_the_suffixes_of_its_target(tmp_path: Path) -> None:
    with Stage() as stage:
        staged = stage.path(tmp_path / "out.csv.gz")
        assert mode(staged) == 0o600
        assert staged.parent == tmp_path
        assert staged.suffixes[-2:] == [".csv", ".gz"]
        assert not (tmp_path / "out.csv.gz").exists()
    assert names(tmp_path) == []


@pytest.mark.usefixtures("umask_027")
def test_a_new_file_gets_the_permissions_of_the_umask(tmp_path: Path) -> None:
    publish(tmp_path / "out", b"new")
    assert (tmp_path / "out").read_bytes() == b"new"
    assert mode(tmp_path / "out") == 0o640
    assert names(tmp_path) == ["out"]


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"old")
    (tmp_path / "out").chmod(0o604)
    publish(tmp_path / "out", b"new")
    assert (tmp_path / "out").read_bytes() == b"new"
    assert mode(tmp_path / "out") == 0o604
    assert names(tmp_path) == ["out"]


def test_whoever_has_the_old_file_open_reads_it_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"old")
    with (tmp_path / "out").open("rb") as reader:
        publish(tmp_path / "out", b"new")
        assert reader.read() == b"old"


@pytest.mark.usefixtures("umask_027")
def test_a_link_at_the_target_is_replaced_and_what_it_led_to_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "real").chmod(0o666)
    (tmp_path / "out").symlink_to("real")
    publish(tmp_path / "out", b"new")
    assert not (tmp_path / "out").is_symlink()
    assert (tmp_path / "out").read_bytes() == b"new"
    assert mode(tmp_path / "out") == 0o640
    assert (tmp_path / "real").read_bytes() == b"old"


def test_a_link_that_leads_nowhere_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("nowhere")
    publish(tmp_path / "out", b"new")
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"new"


def test_a_link_to_the_input_is_refused_as_output(tmp_path: Path) -> None:
    from sfumato.api import anonymize_to_file
    from sfumato.policy import merge_flags
    from sfumato.progress import Progress

    (tmp_path / "in.csv").write_text("age\n1\n2\n")
    (tmp_path / "out.csv").symlink_to("in.csv")
    with pytest.raises(UsageError, match="the output is the input"):
        anonymize_to_file(
            tmp_path / "in.csv", merge_flags(quasi_identifiers=["age"], k=1), tmp_path / "out.csv", Progress()
        )
    assert (tmp_path / "in.csv").read_text() == "age\n1\n2\n"


def test_a_release_comes_with_its_certificate_and_nothing_else(tmp_path: Path) -> None:
    small_release().write(tmp_path / "out.csv")
    assert names(tmp_path) == ["out.csv", "out.csv.sfumato.json"]


def test_the_journal_comes_first_and_the_certificate_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed: list[str] = []
    replace = Path.replace

    def noted(self: Path, to: Path) -> Path:
        renamed.append(to.name)
        return replace(self, to)

    monkeypatch.setattr(Path, "replace", noted)
    small_release().write(tmp_path / "out.csv")
    assert renamed == [".out.csv.sfumato-journal", "out.csv", "out.csv.sfumato.json"]


STEPS = {
    "write": (TargetOutput, "write"),
    "audit": (memory_audit, "find_classes"),
    "measure": (memory_audit, "measure_release"),
    "certificate": (run, "certificate"),
    "sync": (os, "fsync"),
    "permissions": (os, "fchmod"),
    "rename": (Path, "replace"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt(), MemoryError()], ids=repr)
@pytest.mark.parametrize("existing", [False, True])
def test_an_error_at_any_step_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, failure: BaseException, existing: bool
) -> None:
    release = small_release()
    if existing:
        (tmp_path / "out.csv").write_text("old")
        (tmp_path / "out.csv.sfumato.json").write_text("old certificate")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*_: object, **__: object) -> None:
        raise failure

    home, name = STEPS[step]
    monkeypatch.setattr(home, name, fail)
    with pytest.raises((OutputError, type(failure))):
        release.write(tmp_path / "out.csv", force=True)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("existing", [False, True])
def test_a_release_whose_certificate_cannot_be_renamed_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: bool
) -> None:
    release = small_release()
    if existing:
        (tmp_path / "out.csv").write_text("old")
        (tmp_path / "out.csv.sfumato.json").write_text("old certificate")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    replace = Path.replace

    def only_data(self: Path, to: Path) -> Path:
        if str(to).endswith(".json"):
            raise OSError(errno.EACCES, "no")
        return replace(self, to)

    monkeypatch.setattr(Path, "replace", only_data)
    with pytest.raises(OutputError, match=r"no permission to write .*/out\.csv\.sfumato\.json\. Choose another output"):
        release.write(tmp_path / "out.csv", force=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_certificate_that_is_a_directory_is_refused_before_anything_is_renamed(tmp_path: Path) -> None:
    (tmp_path / "out.csv.sfumato.json").mkdir()
    with pytest.raises(UsageError, match="is a directory"):
        small_release().write(tmp_path / "out.csv")
    assert names(tmp_path) == ["out.csv.sfumato.json"]


KILLED = """
import os, signal, sys
from pathlib import Path
from sfumato.tables.targets.staging import Stage, scratch_directory
with Stage() as stage:
    staged = stage.path(Path(sys.argv[1]))
    staged.write_text("half")
    with scratch_directory(staged) as scratch:
        (scratch / "part").write_text("half")
        print("ready", flush=True)
        if sys.argv[2] == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.stdin.read()
"""


@pytest.mark.parametrize("name", ["out.csv", "o[u]t*.csv"])
def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path, name: str) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / name), "die"], check=False, stdout=subprocess.PIPE
    )
    assert killed.returncode == -signal.SIGKILL
    assert len([left for left in names(tmp_path) if MARK in left]) == 2
    (tmp_path / f".0{MARK}else.csv").write_text("of another target")
    publish(tmp_path / name, b"new")
    assert names(tmp_path) == sorted([f".0{MARK}else.csv", name])


def test_what_a_living_run_has_staged_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "out.csv"), "live"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        staged = {name for name in names(tmp_path) if MARK in name}
        publish(tmp_path / "out.csv", b"new")
        assert set(names(tmp_path)) == {*staged, "out.csv"}
        other.communicate(b"")
    assert names(tmp_path) == ["out.csv"]


def test_a_file_taken_for_abandoned_before_it_was_locked_is_staged_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    taken: list[Path] = []

    def late(file: int, how: int) -> None:
        if not taken:
            taken.extend(tmp_path.iterdir())
            taken[0].unlink()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with Stage() as stage:
        staged = stage.path(tmp_path / "out")
        assert taken == [staged]
        assert mode(staged) == 0o600
        publish(tmp_path / "out", b"of another run")
        assert staged.exists()


@pytest.mark.not_quick
def test_two_runs_to_one_target_both_finish(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from sfumato.tables.targets.staging import Stage\nfor n in range(200):\n"
        + (
            "    with Stage() as stage:\n        stage.path(Path(sys.argv[1])).write_text(sys.argv[2] * 1000)\n"
            "        stage.publish()\n"
        )
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "out"), letter]) for letter in "ab"]
    assert [run.wait(60) for run in runs] == [0, 0]
    assert (tmp_path / "out").read_text() in ("a" * 1000, "b" * 1000)
    assert names(tmp_path) == ["out"]


def test_a_directory_is_no_target(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is a directory. Name a file in it"):
        check_target(tmp_path)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"the directory .*/none of the output does not exist. Create it first"):
        check_target(tmp_path / "none" / "out.csv")


def test_a_name_that_is_no_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        check_target(tmp_path / ("x" * 300) / "out.csv")
    for name in ("o\0ut.csv", os.fsdecode(b"caf\xe9.csv")):
        with pytest.raises(UsageError, match="NUL character or is not UTF-8"):
            check_target(tmp_path / name)
    with pytest.raises(OutputError, match="cannot write"), Stage() as stage:
        stage.path(tmp_path / ("x" * 250))


@pytest.mark.parametrize("permissions", [0o000, 0o444, 0o555, 0o777], ids=oct)
def test_a_directory_without_permission_is_refused(permissions: int) -> None:
    # Not in pytest's directories, which only root may enter.
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        closed = Path(place) / "closed"
        (closed / "inner").mkdir(parents=True)
        (closed / "inner").chmod(0o555)
        closed.chmod(permissions)
        if permissions == 0o777:
            with as_nobody():
                publish(closed / "out.csv", b"new")
            assert names(closed) == ["inner", "out.csv"]
            return
        for target in (closed / "out.csv", closed / "inner" / "out.csv"):
            with as_nobody(), pytest.raises(OutputError, match=r"no permission to write .*Choose another output"):
                check_target(target)
            with as_nobody(), pytest.raises(OutputError, match=r"no permission to write"), Stage() as stage:
                stage.path(target)
        closed.chmod(0o755)
        assert names(closed) == ["inner"]


def test_an_error_names_the_target_and_not_the_staged_file(tmp_path: Path) -> None:
    with Stage() as stage:
        staged = stage.path(tmp_path / "out.csv")
        message = str(staging.cannot_write(staged, OSError(errno.EIO, "x")))
    assert message == f"cannot write {tmp_path / 'out.csv'}: {os.strerror(errno.EIO)}. Choose another output."


def test_a_run_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "out.csv"), "live"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        time.sleep(0.05)
        other.send_signal(signal.SIGINT)
        other.wait(20)
    assert names(tmp_path) == []
