"""A disk on which no file can grow beyond a size."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager

WITHOUT_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}
"""The environment of a process with such a disk: Python would leave a part of what it compiles, and later import it."""


@contextmanager
def small_disk(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond so many bytes, and none of what Python compiles be written."""
    before, writes_none = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = writes_none
