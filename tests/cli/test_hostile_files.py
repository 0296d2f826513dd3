"""Files that are no files: a pipe, a device or a directory ends a command at once, with one clear line."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sfumato.cli import main
from sfumato.tables.external.scratch import LOCK, MARK, Scratch
from sfumato.tables.targets.staging import MARK as STAGE_MARK

POLICY = """
[columns.age]
role = "quasi-identifier"
[columns.town]
role = "quasi-identifier"
taxonomy = "towns.csv"
[privacy]
k = 2
"""
LONGEST = 60  # seconds; only a command that hangs takes so long


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, with a table and its policy. A command that hangs is interrupted, and its test fails."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "table.csv").write_text("age,town\n" + "31,Roma\n32,Pisa\n" * 4)
    (tmp_path / "towns.csv").write_text("Roma,Lazio,*\nPisa,Tuscany,*\n")
    (tmp_path / "policy.toml").write_text(POLICY)

    def hung(*_: object) -> None:
        raise RuntimeError("the command hangs")  # no OSError, which commands handle

    before = signal.signal(signal.SIGALRM, hung)
    signal.alarm(LONGEST)
    yield tmp_path
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def directory(path: Path) -> None:
    path.mkdir()


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)  # relative, since the path of a socket is short


ODD = [pipe, endless, directory, unix_socket]
WANTED = ["anonymize", "table.csv", "-o", "out.csv", "--policy", "policy.toml"]
COMMANDS = {
    "policy.toml": WANTED,
    "towns.csv": WANTED,
    "rules.json": ["apply", "rules.json", "table.csv", "-o", "out.csv"],
    "out.csv.sfumato.json": ["audit", "out.csv"],
    **{
        name: ["risk", name, "--quasi-identifiers", "age"]
        for name in ("in.csv", "in.csv.gz", "in.parquet", "in.arrow", "in.xlsx", "in.sqlite", "in.duckdb", "in.db")
    },
}


@pytest.mark.parametrize("make", ODD)
@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_no_file_is_refused_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, make: Callable[[Path], None]
) -> None:
    if name.endswith(".sfumato.json"):
        (folder / "out.csv").write_text("age,town\n31,Roma\n31,Roma\n")
    (folder / name).unlink(missing_ok=True)
    make(folder / name)
    before = {path.name for path in folder.iterdir()}
    assert main(COMMANDS[name]) in (2, 4)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert name in line or (name.endswith(".db") and "in.db" in line)
    assert {path.name for path in folder.iterdir()} - {"state"} == before - {"state"}


@pytest.mark.parametrize("make", [pipe, endless])
def test_a_pipe_among_the_files_of_a_table_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], None]
) -> None:
    (folder / "parts").mkdir()
    make(folder / "parts" / "part.parquet")
    assert main(["risk", "parts", "--quasi-identifiers", "age"]) == 4
    assert "part.parquet' is a pipe or a device" in capsys.readouterr().err


@pytest.mark.compiled
@pytest.mark.parametrize("make", ODD)
def test_what_lies_where_a_killed_run_left_its_file_keeps_nobody_waiting(
    folder: Path, make: Callable[[Path], None]
) -> None:
    make(folder / f".0123abcd{STAGE_MARK}out.csv")
    assert main(WANTED) == 0
    assert (folder / "out.csv").read_text().startswith("age,town\n")


@pytest.mark.parametrize("make", ODD)
def test_what_lies_where_a_killed_run_left_its_lock_keeps_nobody_waiting(
    folder: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    abandoned = folder / f"{MARK}0123abcd"
    abandoned.mkdir()
    with monkeypatch.context() as patch:
        patch.chdir(abandoned)
        make(abandoned / LOCK)
    with Scratch(folder) as scratch:
        assert scratch.directory.is_dir()
    assert abandoned.is_dir()  # it may be anybody's


@pytest.mark.compiled
@pytest.mark.parametrize("make", ODD)
@pytest.mark.parametrize("name", ["runs.jsonl", "secret"])
def test_a_run_record_that_is_no_file_is_said(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    make: Callable[[Path], None],
) -> None:
    (folder / "state").mkdir(0o700)
    with monkeypatch.context() as patch:
        patch.chdir(folder / "state")
        make(folder / "state" / name)
    assert main([*WANTED, "--json"]) == 0
    (warning,) = [text for text in json.loads(capsys.readouterr().out)["warnings"] if "run record" in text]
    assert warning.startswith("no run record can be kept")


@pytest.mark.compiled
@pytest.mark.not_quick
def test_a_policy_and_rules_may_come_through_a_pipe_of_the_shell(folder: Path) -> None:
    policy = POLICY.replace("towns.csv", str(folder / "towns.csv"))
    (folder / "policy.toml").write_text(policy)
    sfumato = f"{sys.executable} -m sfumato"
    script = (
        f"{sfumato} fit table.csv -o rules.json --policy <(cat policy.toml) && "
        f"cat rules.json | {sfumato} apply /dev/stdin table.csv -o out.csv"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "out.csv").exists()


def test_a_pipe_of_the_shell_has_an_end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sfumato.files.regular_file.LARGEST_PIPE", 1 << 10)
    reading, writing = os.pipe()
    os.write(writing, b"#" * 2048)
    try:
        assert main(["anonymize", "table.csv", "-o", "out.csv", "--policy", f"/dev/fd/{reading}"]) == 4
    finally:
        os.close(reading)
        os.close(writing)
    assert "a pipe with more than 0 mib" in capsys.readouterr().err


# ---- Taxonomies from elsewhere ----


@pytest.mark.compiled
@pytest.mark.parametrize("how", ["relative", "absolute", "link"])
def test_a_taxonomy_from_outside_the_folder_of_the_policy_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    (folder / "policies").mkdir()
    path = {"relative": "../towns.csv", "absolute": str(folder / "towns.csv"), "link": "link.csv"}[how]
    if how == "link":
        (folder / "policies" / "link.csv").symlink_to(folder / "towns.csv")
    (folder / "policies" / "policy.toml").write_text(POLICY.replace("towns.csv", path))
    assert main(["anonymize", "table.csv", "-o", "out.csv", "--policy", "policies/policy.toml"]) == 0
    assert "the policy takes taxonomies from outside its own folder" in " ".join(capsys.readouterr().out.split())


@pytest.mark.compiled
def test_a_taxonomy_in_the_folder_of_the_policy_or_named_by_a_flag_is_not_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(WANTED) == 0
    (folder / "policies").mkdir()
    (folder / "policies" / "policy.toml").write_text(POLICY)
    arguments = ["anonymize", "table.csv", "-o", "two.csv", "--policy", "policies/policy.toml"]
    assert main([*arguments, "--taxonomy", "town=towns.csv"]) == 0
    assert "outside" not in capsys.readouterr().out
