"""How every command ends when it cannot print, read or write: the exit code and the sentence are true each time."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import pytest
from small_disk import small_disk

from sfumato.cli import demo, main
from sfumato.cli.main import ExitStatus, Stopped
from sfumato.synthetic import generate

ROLES = ["--quasi-identifiers", "age,city", "--sensitive", "diagnosis", "--identifiers", "name"]
SECRETS = ("c1", "n17", "d2")

# Commands that only print, and those that write: the arguments, and the files.
PRINTING: dict[str, list[str]] = {
    "dry run": ["anonymize", "table.csv", *ROLES, "-k", "3", "--dry-run"],
    "audit": ["audit", "release.csv"],
    "measure": ["measure", "table.csv", "release.csv"],
    "aggregate": ["aggregate", "statistics.csv"],
    "bound": ["bound", "table.csv", *ROLES, "-k", "3", "--effort", "fast"],
    "compare": ["compare", "table.csv", *ROLES, "-k", "3", "--methods", "hilbert-fast"],
    "tradeoff": ["tradeoff", "table.csv", *ROLES, "-k", "2,3", "--methods", "hilbert-fast"],
    "risk": ["risk", "table.csv", "--quasi-identifiers", "age,city"],
    "policy": ["policy", "table.csv"],
    "methods": ["methods"],
}
WRITING: dict[str, tuple[list[str], list[str]]] = {
    "anonymize": (["anonymize", "table.csv", "-o", "out/a.csv", *ROLES, "-k", "3"], ["out/a.csv"]),
    "apply": (["apply", "rules.json", "table.csv", "-o", "out/b.parquet"], ["out/b.parquet"]),
    "fit": (
        ["fit", "table.csv", "-o", "out/r.json", "--sql", "out/r.sql", *ROLES, "-k", "3"],
        ["out/r.json", "out/r.sql"],
    ),
    "results": (
        ["compare", "table.csv", *ROLES, "-k", "3", "--methods", "hilbert-fast", "-o", "out/c.html"],
        ["out/c.html"],
    ),
    "plot": (["plot", "release.csv", "--x", "age", "--y", "city", "-o", "out/p.svg"], ["out/p.svg"]),
    "report": (["report", "table.csv", "release.csv", "-o", "out/r.html"], ["out/r.html"]),
    "propose": (["policy", "table.csv", "-o", "out/p.toml"], ["out/p.toml"]),
    "generate": (["generate", "normal", "-n", "50", "-o", "out/g.csv"], ["out/g.csv", "out/g.policy.toml"]),
}
EVERY = {**PRINTING, **{name: arguments for name, (arguments, _) in WRITING.items()}}
WITHOUT_JSON = ("methods",)


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path_factory.mktemp("state") / "sfumato"))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, a release of it, one with statistics, and rules."""
    directory = tmp_path_factory.mktemp("prepared")
    rows = [f"n{number},{20 + number % 10},c{number % 4},d{number % 3}" for number in range(40)]
    (directory / "table.csv").write_text("\n".join(["name,age,city,diagnosis", *rows]) + "\n")
    (directory / "out").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        patch.setenv("SFUMATO_STATE_DIR", str(directory / ".state"))
        for arguments in (
            ["anonymize", "table.csv", "-o", "release.csv", *ROLES, "-k", "3"],
            ["anonymize", "table.csv", "-o", "statistics.csv", *ROLES, "-k", "5", "--form", "statistics"],
            ["fit", "table.csv", "-o", "rules.json", *ROLES, "-k", "3"],
        ):
            assert main(arguments) == 0
    return directory


@pytest.fixture
def directory(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def full() -> TextIO:
    return Path("/dev/full").open("w", encoding="utf-8")


def without_reader() -> TextIO:
    reading, writing = os.pipe()
    os.close(reading)
    return io.TextIOWrapper(io.FileIO(writing, "w"), encoding="utf-8")


def closed() -> None:
    """Python has no standard output if its descriptor was closed."""


@pytest.mark.parametrize("lost", [closed, without_reader])
@pytest.mark.parametrize("name", EVERY)
def test_standard_output_that_nobody_reads_is_no_error(
    name: str,
    lost: Callable[[], TextIO | None],
    directory: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", lost())
    assert main(EVERY[name]) == 0
    assert capsys.readouterr().err == ""
    assert all((directory / file).exists() for file in WRITING.get(name, ([], []))[1])


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")


@needs_full
@pytest.mark.parametrize(
    ("name", "flags"),
    [(name, flags) for name in PRINTING for flags in [(), *([] if name in WITHOUT_JSON else [("--json",)])]],
)
def test_a_command_that_only_prints_fails_on_a_full_disk(
    name: str,
    flags: tuple[str, ...],
    directory: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", full())
    assert main([*PRINTING[name], *flags]) == 4
    assert capsys.readouterr().err == (
        "error: no space left for standard output, so what the command prints is not complete. Print it to another "
        "place.\n"
    )


@needs_full
@pytest.mark.parametrize("flags", [(), ("--json",)])
@pytest.mark.parametrize("name", WRITING)
def test_what_cannot_be_printed_is_no_failure_of_files_that_are_in_place(
    name: str,
    flags: tuple[str, ...],
    directory: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments, files = WRITING[name]
    monkeypatch.setattr(sys, "stdout", full())
    assert main([*arguments, *flags]) == 0
    error = capsys.readouterr().err
    assert error.startswith("warning: no space left for standard output")
    assert error.count("\n") == 1
    for file in files:
        assert (directory / file).exists()
        assert file in error.partition("These are complete: ")[2]


@needs_full
def test_a_verdict_is_not_lost_with_its_text(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", full())
    assert main(["audit", "table.csv", "--quasi-identifiers", "age,city", "-k", "30"]) == 1
    assert capsys.readouterr().err.startswith("error: no space left for standard output")


@needs_full
def test_the_demonstration_goes_on_when_it_cannot_print(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "RECORDS", 500)
    monkeypatch.setattr(sys, "stdout", full())
    assert main(["demo"]) == 0
    assert "demo/release.parquet" in capsys.readouterr().err
    assert (directory / "demo" / "report.html").exists()


@pytest.mark.parametrize("lost", [closed, without_reader, full])
@pytest.mark.parametrize("name", ["anonymize", "audit"])
def test_standard_error_that_nobody_reads_changes_nothing(
    name: str,
    lost: Callable[[], TextIO | None],
    directory: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", lost())
    assert main(EVERY[name]) == 0
    assert "k-anonymity, k = 3" in capsys.readouterr().out
    assert main(["audit", "nowhere.csv"]) == 4
    assert capsys.readouterr().out == ""  # an error is never printed among the results


@pytest.mark.not_quick
@pytest.mark.parametrize("descriptors", [(1,), (2,), (0, 1, 2)])
def test_descriptors_that_the_caller_has_closed_never_become_files_of_the_release(
    descriptors: tuple[int, ...], directory: Path
) -> None:
    def close() -> None:
        for number in descriptors:
            os.close(number)

    command = [sys.executable, "-m", "sfumato", *WRITING["anonymize"][0]]
    result = subprocess.run(command, preexec_fn=close, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert main(["audit", "out/a.csv"]) == 0


def files_in(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", WRITING)
def test_a_full_disk_is_told_by_the_name_of_the_output_and_leaves_nothing(
    name: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, files = WRITING[name]
    before = files_in(directory)
    with small_disk(100):
        assert main(arguments) == 4
    error = capsys.readouterr().err
    assert error.startswith("error: no space left for ")
    assert any(f"{file}; it was not written. Free" in error for file in files)
    assert error.count("\n") == 1
    assert files_in(directory) == before


@pytest.mark.parametrize("kind", ["csv.gz", "arrow", "xlsx", "sqlite#t", "duckdb#t", "directory/"])
def test_a_full_disk_is_told_for_every_kind_of_release(
    kind: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = f"out/a.{kind}"
    with small_disk(100):
        assert main(["anonymize", "table.csv", "-o", output, *ROLES, "-k", "3"]) == 4
    error = capsys.readouterr().err
    assert error.startswith("error: no space left ")
    assert "out/a." in error
    assert list((directory / "out").iterdir()) == []


def test_a_page_without_room_keeps_the_release_back(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Release and page appear together, or nothing does: an earlier release stays as it was."""
    arguments = WRITING["anonymize"][0]
    assert main(arguments) == 0
    before = files_in(directory)
    capsys.readouterr()
    with small_disk(20_000):
        assert main([*arguments, "--report", "out/0.html"]) == 4
    error = capsys.readouterr().err
    assert error.startswith("error: no space left for ")
    assert "out/0.html; it was not written. Free some space" in error
    assert files_in(directory) == before
    assert main(["audit", "out/a.csv"]) == 0


@pytest.mark.parametrize("name", WRITING)
def test_an_output_in_a_missing_directory_is_told_before_any_work(
    name: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "out").rmdir()
    before = files_in(directory)
    assert main(EVERY[name]) == 4
    assert "the directory out of the output does not exist. Create it first." in capsys.readouterr().err
    assert files_in(directory) == before


READING = {name: arguments for name, arguments in EVERY.items() if name not in ("methods", "generate")}


def inputs_of(arguments: list[str]) -> list[str]:
    return [word for word in arguments if word in ("table.csv", "release.csv", "statistics.csv", "rules.json")]


@pytest.mark.parametrize("name", READING)
def test_a_missing_input_is_told_by_its_name(name: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for missing in inputs_of(READING[name]):
        kept = (directory / missing).read_bytes()
        certificate = directory / f"{missing}.sfumato.json"
        certificate_kept = certificate.read_bytes() if certificate.exists() else None
        (directory / missing).unlink()
        certificate.unlink(missing_ok=True)
        assert main(READING[name]) == 4, missing
        error = capsys.readouterr().err
        assert missing in error
        assert "certificate" not in error
        assert "does not exist" in error or "no such file" in error
        (directory / missing).write_bytes(kept)
        if certificate_kept is not None:
            certificate.write_bytes(certificate_kept)
    assert list((directory / "out").iterdir()) == []


WALK = """
import contextlib, io, json, sys
from sfumato.cli import main
found = {}
for name, arguments in json.load(sys.stdin).items():
    error = io.StringIO()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(io.StringIO()):
        code = main(arguments)
    found[name] = (code, error.getvalue())
print(json.dumps(found))
"""


@pytest.mark.not_quick
def test_an_input_that_may_not_be_read_is_told_by_its_name(directory: Path) -> None:
    prefix: list[str] = []
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("root may do everything, and there is no setpriv to give that up")
        prefix = [setpriv, "--bounding-set=-all", "--inh-caps=-all"]
    for file in ("table.csv", "release.csv", "release.csv.sfumato.json", "statistics.csv", "rules.json"):
        (directory / file).chmod(0)
    result = subprocess.run(
        [*prefix, sys.executable, "-c", WALK], input=json.dumps(READING), capture_output=True, text=True, check=True
    )
    for name, (code, error) in json.loads(result.stdout).items():
        assert code == 4, (name, error)
        assert any(file in error for file in inputs_of(READING[name])), (name, error)
        assert "permission" in error or "may not be read" in error, (name, error)
        assert not any(secret in error for secret in SECRETS)
    assert list((directory / "out").iterdir()) == []


@pytest.mark.not_quick
def test_a_certificate_on_disk_does_not_know_the_memory_of_the_moment(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    generate("normal", 300, "normal.csv")
    certificates = []
    for number, free in enumerate((3 * 10**9, 5 * 10**9)):
        monkeypatch.setattr("sfumato.pipeline.engine_choice.free_memory", lambda free=free: free)
        output = directory / f"{number}" / "release.csv"
        output.parent.mkdir()
        arguments = ["--policy", "normal.policy.toml", "--engine", "disk", "--method", "hilbert-fast"]
        assert main(["anonymize", "normal.csv", "-o", str(output), *arguments]) == 0
        certificates.append(output.with_name("release.csv.sfumato.json").read_text())
    assert certificates[0] == certificates[1]
    assert "memory" not in certificates[0]
    capsys.readouterr()


def test_an_error_while_cleaning_up_does_not_hide_that_the_run_was_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    with (status := ExitStatus()):
        try:
            raise Stopped(signal.SIGTERM)
        finally:
            os.close(-1)
    assert status.code == 143
    assert capsys.readouterr().err == "terminated\n"
