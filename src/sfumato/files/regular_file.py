"""Open and read files that may be no files: a named pipe would keep a reader waiting, and ``/dev/zero`` never ends."""

from __future__ import annotations

import errno
import io
import os
import re
import stat

# On Windows there is nothing to wait for, but text would be translated.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
# A pipe that the shell handed to the process, as in --policy <(make-policy). Somebody writes to it.
_HANDED_OVER = re.compile(r"/dev/(stdin|fd/\d+)|/proc/(self|\d+)/fd/\d+")
LARGEST_PIPE = 1 << 26  # bytes


class NotRegularError(OSError):
    """A path that leads to a pipe, a socket or a device."""

    def __init__(self, reason: str = "it is a pipe or a device, not a regular file") -> None:
        super().__init__(errno.EINVAL, reason)


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a regular file to read it. Raise OSError for anything else, without waiting."""
    # The file owns its descriptor from the start. Closed twice, it would raise an error that hides an interruption.
    file = open(path, "rb", opener=lambda name, _: os.open(name, _FLAGS))  # noqa: SIM115
    try:
        _check(os.fstat(file.fileno()).st_mode)
    except BaseException:
        file.close()
        raise
    return file


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Read a regular file, or a pipe that the shell handed to this process. Raise OSError for anything else."""
    if _HANDED_OVER.fullmatch(os.fspath(path)) and stat.S_ISFIFO(os.stat(path).st_mode):
        with open(path, "rb") as pipe:
            content = pipe.read(LARGEST_PIPE + 1)
        if len(content) > LARGEST_PIPE:
            raise NotRegularError(f"it is a pipe with more than {LARGEST_PIPE >> 20} MiB")
        return content
    with open_regular(path) as file:
        return file.read()


def _check(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise NotRegularError
