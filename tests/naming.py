"""Methods by what they need, for tests that try them all."""

from __future__ import annotations

from sfumato.errors import UsageError
from sfumato.methods import ForNumbers, Kinds, Method, methods
from sfumato.methods.coded_workload import ForWorkload
from sfumato.methods.lattice.lattice_method import LatticeMethod
from sfumato.requirements import DistinctDiversity, KAnonymity, Requirements


def needs_workload(method: Method) -> bool:
    """Whether it refuses a table of which nobody said what it is for."""
    if not isinstance(method, ForWorkload):
        return False
    try:
        method.check_workload(Kinds())
    except UsageError:
        return True
    return False


def takes_k_alone(method: Method) -> bool:
    """Whether it refuses every requirement but k-anonymity."""
    try:
        method.check(Requirements((KAnonymity(2), DistinctDiversity("s", 2))))
    except UsageError:
        return not method.separates
    return False


def hiding_methods() -> list[str]:
    """Those that hide identity on any table, whatever is asked for."""
    return [name for name in methods_for_k() if not takes_k_alone(methods()[name])]


def methods_for_k() -> list[str]:
    """Those that hide identity on any table; some refuse other requirements than k-anonymity."""
    hiding = [name for name, one in methods().items() if not one.separates and not needs_workload(one)]
    return sorted(set(hiding) - set(methods_for_numbers()))


def methods_for_numbers() -> list[str]:
    """Those that refuse a table with a column that has no mean."""
    return sorted(name for name, one in methods().items() if isinstance(one, ForNumbers))


def methods_on_levels() -> list[str]:
    """Those that release every column on one level, so that a class may show more than its records need."""
    return sorted(name for name, one in methods().items() if isinstance(one, LatticeMethod))
