"""Load numba in a process that runs the command, without what takes as long as the work on a small table.

Before numba compiles or loads its first kernel, it imports SciPy's linear algebra where that is installed, so that
kernels can multiply matrices. No setting of numba prevents that, and ours multiply none. A module that is None in
``sys.modules`` cannot be imported: numba then goes on as where SciPy is not installed.

What numba and all other imports have made by then lives as long as the process. It is taken out of every later search
for cycles of garbage, the one at the end of the process included.

Both hold for the whole process, so they are done only in one that runs the command, never in a program that uses the
package.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module

LINEAR_ALGEBRA = "scipy.linalg"

_runs_command = False


def this_process_runs_the_command() -> None:
    """Load numba for the command from now on, if it is not loaded yet."""
    global _runs_command  # noqa: PLW0603 - a process is the command's or it is not
    _runs_command = True


def runs_the_command() -> bool:
    """Return whether the process runs the command, so that what holds for all of it is ours to decide."""
    return _runs_command


def load_numba_functions() -> None:
    """Load what numba offers to kernels, if the process runs the command. What else imports SciPy later gets it."""
    if not _runs_command:
        return
    if LINEAR_ALGEBRA not in sys.modules:
        sys.modules[LINEAR_ALGEBRA] = None  # type: ignore[assignment]
        try:
            import_module("numba.np.arraymath")
        finally:
            del sys.modules[LINEAR_ALGEBRA]
    gc.freeze()
