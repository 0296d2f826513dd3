"""Keep SciPy out of the command, which needs none of it.

Before numba compiles or loads its first kernel, it imports SciPy's linear algebra where that is installed, so that
kernels can multiply matrices. No setting of numba prevents that. Ours multiply none, and the import takes as long as
the work on a small table. A module that is None in ``sys.modules`` cannot be imported: numba then goes on as where
SciPy is not installed. That holds for the whole process, so it is done only in one that runs the command, never in a
program that uses the package.
"""

from __future__ import annotations

import sys
from importlib import import_module

LINEAR_ALGEBRA = "scipy.linalg"

_unwanted = False


def leave_out_of_this_process() -> None:
    """Load numba without SciPy's linear algebra, if numba is not loaded yet."""
    global _unwanted  # noqa: PLW0603 - a process is the command's or it is not
    _unwanted = True


def load_numba_functions() -> None:
    """Load what numba offers to kernels. What else imports SciPy later gets it."""
    if not _unwanted or LINEAR_ALGEBRA in sys.modules:
        return
    sys.modules[LINEAR_ALGEBRA] = None  # type: ignore[assignment]
    try:
        import_module("numba.np.arraymath")
    finally:
        del sys.modules[LINEAR_ALGEBRA]
