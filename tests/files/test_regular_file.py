from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from sfumato.files.regular_file import NotRegularError, open_regular, read_file


class Interruption(BaseException):
    """Stands for the exception that a signal raises between two lines."""


def interrupted_at(line: int, path: Path) -> bool:
    """Open the file, and interrupt at the given line event of whatever runs; return whether there was one."""
    seen = 0

    def trace(_: FrameType, event: str, returned: Any) -> Any:
        nonlocal seen
        del returned  # the traceback would keep the file open, which a signal does not
        if event in ("line", "return"):
            seen += 1
            if seen == line:
                raise Interruption
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        file = open_regular(path)
    except Interruption:
        return True
    finally:
        sys.settrace(before)
    file.close()
    return False


def test_an_interruption_at_any_line_is_neither_lost_nor_turned_into_another_error(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"x" * 32)
    line = 1
    while interrupted_at(line, path):
        line += 1
    assert line > 5  # it was interrupted inside


def test_a_regular_file_is_read_and_nothing_else_is_opened(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"some text")
    assert read_file(tmp_path / "text") == b"some text"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotRegularError):
        open_regular(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    with pytest.raises(FileNotFoundError) as missing:
        open_regular(tmp_path / "nothing")
    assert missing.value.errno == errno.ENOENT
