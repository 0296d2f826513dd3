"""Methods by what they need, for tests that try them all."""

from __future__ import annotations

from sfumato.errors import UsageError
from sfumato.methods import Kinds, Method, methods
from sfumato.methods.coded_workload import ForWorkload


def needs_workload(method: Method) -> bool:
    """Whether it refuses a table of which nobody said what it is for."""
    if not isinstance(method, ForWorkload):
        return False
    try:
        method.check_workload(Kinds())
    except UsageError:
        return True
    return False


def hiding_methods() -> list[str]:
    """Those that hide identity on any table."""
    return sorted(name for name, one in methods().items() if not one.separates and not needs_workload(one))
