"""Try a library written in C on a file in another process: a damaged file may end the process that reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LARGEST_EXIT_CODE = 255  # on Windows, a process that crashed ends with a larger number
_survived: set[tuple[str, ...]] = set()


def crashes(code: str, path: Path, *arguments: str) -> bool:
    """Return whether Python code about a file, given as its first argument, ends its process by a crash.

    An exception is no crash. A file that is still the same is not tried twice.
    """
    status = os.stat(path)
    key = (code, str(path), *arguments, f"{status.st_ino} {status.st_size} {status.st_mtime_ns}")
    if key in _survived:
        return False
    # -P: a module in the working directory is not loaded in place of the library.
    done = subprocess.run(  # noqa: S603  (our own code, and no shell)
        [sys.executable, "-P", "-c", code, str(path), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if 0 <= done.returncode <= LARGEST_EXIT_CODE:
        _survived.add(key)
        return False
    return True
