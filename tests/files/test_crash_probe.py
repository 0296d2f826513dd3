"""A library that crashes on a file is found out in another process."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.files.crash_probe import crashes


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "file"
    path.write_text("x")
    return path


def test_a_crash_is_told_from_an_exception(file: Path) -> None:
    assert crashes("import os; os.abort()", file)
    assert not crashes("raise ValueError", file)


def test_code_gets_the_path_and_its_arguments(file: Path) -> None:
    code = "import os, sys; sys.argv[1:] == [os.path.abspath('file'), 'a', 'b'] and os.abort()"
    assert crashes(code, file, "a", "b")
    assert not crashes(code, file, "a", "c")


def test_a_file_that_is_the_same_is_not_tried_twice_and_a_changed_one_is(file: Path) -> None:
    code = "import sys; open(sys.argv[2], 'a').write('.')"
    for _ in range(2):
        assert not crashes(code, file, "tries")
    assert Path("tries").read_text() == "."
    file.write_text("xy")
    assert not crashes(code, file, "tries")
    assert Path("tries").read_text() == ".."


def test_a_module_in_the_working_directory_is_not_loaded(file: Path) -> None:
    Path("json.py").write_text("import os; os.abort()")
    assert not crashes("import json", file)
