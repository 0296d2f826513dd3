"""The directory of machine code. It is used only if nobody else can write to it, since its files are run as code.

A file holds a pickle with machine code: whoever can put one there makes this user run it. So the directory belongs to
this user, nobody else can write to it, and nobody else can put another directory in its place: every directory above
it belongs to this user or to root, and if others can write to one, it is sticky, as ``/tmp`` is.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import warnings
from functools import cache
from pathlib import Path

import numba
from platformdirs import user_cache_path

from sfumato.errors import KernelCacheWarning

PRIVATE = 0o700
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@cache
def cache_directory() -> Path | None:
    """Return the directory of machine code, or None if there is none: kernels then compile in every process.

    Its name is a hash of how kernels are compiled: Python, numba and this package. Each file knows its kernel and CPU.
    """
    root = os.environ.get("SFUMATO_CACHE_DIR")
    directory = (Path(root) if root else user_cache_path("sfumato")) / "kernels" / _compiler_digest()
    # A link is followed once: nobody can exchange it later.
    directory = Path(os.path.realpath(directory))
    try:
        if _is_private(directory):
            for part in (*reversed(directory.parents), directory):
                if not part.is_dir():
                    part.mkdir(PRIVATE, exist_ok=True)
            if _is_private(directory):  # somebody else may have made it meanwhile
                return directory if os.access(directory, os.W_OK) else None
    except OSError:
        return None
    return None


def is_own(status: os.stat_result) -> bool:
    """Whether a file or directory belongs to this user and nobody else can write to it."""
    if sys.platform == "win32":  # permissions lie elsewhere, and a user's directory is the user's
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & OTHERS_WRITE


def _is_private(directory: Path) -> bool:
    """Whether nobody else can write to the directory or replace it, as far as it exists. If not, warn."""
    if sys.platform == "win32":
        return True
    for part in (directory, *directory.parents):
        try:
            status = part.stat()
        except FileNotFoundError:
            continue
        if status.st_uid != os.geteuid() and (part == directory or status.st_uid != 0):
            reason = "belongs to another user"
        elif status.st_mode & OTHERS_WRITE and (part == directory or not status.st_mode & stat.S_ISVTX):
            reason = "can be written to by other users"
        else:
            continue
        warnings.warn(
            f"compiled kernels are not kept, so every run compiles them: {part} {reason}, and what is kept is run as "
            "code. Name a directory of your own with SFUMATO_CACHE_DIR, or correct the owner or the permissions of "
            "this one.",
            KernelCacheWarning,
            stacklevel=2,
        )
        return False
    return True


def _compiler_digest() -> str:
    digest = hashlib.sha256(f"{sys.version_info[:2]} {numba.__version__}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
