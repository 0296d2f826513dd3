"""Where the machine code of kernels is kept.

Numba caches a kernel by the time stamp of its own file and keeps an old callee when another file changes: a stricter
requirement in a helper would then not be enforced. Sfumato therefore keeps its machine code in the user's cache
directory under a hash of *all* sources of the package, so that any edit, of a callee or of a constant, makes a new one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching
from platformdirs import user_cache_path


@cache
def cache_directory() -> Path | None:
    """Where machine code is kept; none where nothing can be written (kernels are then compiled in every process)."""
    root = os.environ.get("SFUMATO_CACHE_DIR")
    directory = (Path(root) if root else user_cache_path("sfumato")) / "kernels" / _sources_digest()
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return directory if os.access(directory, os.W_OK) else None


@cache
def _sources_digest() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


class _KernelLocator(caching._CacheLocator):
    def __init__(self, function: Callable[..., Any], source: str) -> None:
        self._function = function
        self._source = Path(source)

    def get_cache_path(self) -> str:
        return str(cache_directory())

    def get_source_stamp(self) -> str:
        # The directory's name already stands for our own kernels; this covers kernels of third parties.
        return hashlib.sha256(self._source.read_bytes()).hexdigest()

    def get_disambiguator(self) -> str:
        return hashlib.sha256(str(self._source).encode()).hexdigest()[:10]

    @classmethod
    def from_function(cls, function: Callable[..., Any], source: str) -> _KernelLocator:
        return cls(function, source)


class _KernelCacheFiles(caching.CompileResultCacheImpl):
    _locator_classes = [_KernelLocator]  # noqa: RUF012 - the name and kind that numba looks for


class KernelCache(caching.FunctionCache):
    _impl_class = _KernelCacheFiles
