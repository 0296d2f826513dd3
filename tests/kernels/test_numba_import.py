"""How numba is loaded depends on whether the process is the command's."""

from __future__ import annotations

import subprocess
import sys

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
