"""How numba is loaded depends on whether the process is the command's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

COMMAND = "from sfumato.cli import main; main(['--version'])"
PROGRAM = "import sfumato"


@pytest.mark.parametrize(("start", "is_left_out"), [(COMMAND, True), (PROGRAM, False)], ids=["command", "program"])
def test_only_a_command_leaves_its_imports_out_of_garbage_collection(start: str, is_left_out: bool) -> None:
    code = (
        "import gc; usual = gc.get_threshold()\n"
        f"{start}\n"
        "import sfumato.kernels.decorator\n"
        "print(gc.get_freeze_count(), gc.get_threshold() == usual)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    left_out, is_usual = done.stdout.splitlines()[-1].split()
    assert (int(left_out) > 50_000) == is_left_out
    assert (int(left_out) == 0) != is_left_out
    assert is_usual == "True"


@pytest.mark.not_quick
@pytest.mark.parametrize("command", [["policy"], ["risk", "--quasi-identifiers", "age"]], ids=["policy", "risk"])
def test_a_command_that_reads_duckdb_ends_in_silence(command: list[str], tmp_path: Path) -> None:
    """DuckDB complains of objects that are there at the end. It is loaded after what is left out of collection."""
    with duckdb.connect(tmp_path / "people.duckdb") as connection:
        connection.execute("create table people as select range % 7 as age from range(50)")
    name, *flags = command
    words = [sys.executable, "-m", "sfumato", name, f"{tmp_path / 'people.duckdb'}#people", *flags]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stderr == ""
