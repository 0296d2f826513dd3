"""Methods decide which records share a class: one published algorithm per file, and the names that users know them by.

``auto`` is the default of every command. To add a method, write one file and an entry point in the group
``sfumato.methods`` whose object is a ``Method``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal

from sfumato.errors import UsageError
from sfumato.methods.coded_workload import CodedWorkload, ForWorkload, Kinds
from sfumato.methods.method import ClassBatch, Effort, ForNumbers, Method, Records
from sfumato.orderings import Ordering, orderings
from sfumato.requirements import Requirements

AUTO, SSE_SEARCH = "auto", "sse-search"
ALSO_NAMED = {"mondrian:median": "mondrian"}

# Where each built-in method is, and how it is made there. Each ordering has methods as well, after ``auto``. A module
# is loaded when one of its methods is asked for: a run declares no kernels that it does not need.
_HOME: dict[str, tuple[str, str, dict[str, Any]]] = {
    AUTO: ("auto", "Auto", {}),
    "mapping-median": ("trees.close_k", "InformationDependency", {"point": "median"}),
    "mapping-median:values": ("trees.close_k", "InformationDependency", {"point": "values"}),
    "close-k": ("trees.close_k", "InformationDependency", {"point": "close-k"}),
    "mondrian": ("trees.mondrian", "MondrianMethod", {}),
    "mondrian-relaxed": ("trees.mondrian", "MondrianMethod", {"splits": "relaxed"}),
    "mondrian:published": ("trees.mondrian", "MondrianMethod", {"rule": "published"}),
    "mondrian:ordered": ("trees.mondrian", "MondrianMethod", {"rule": "ordered"}),
    "mondrian:information-gain": ("trees.mondrian", "MondrianMethod", {"rule": "information-gain"}),
    "mondrian:regression": ("trees.mondrian", "MondrianMethod", {"rule": "regression"}),
    "mondrian:selection": ("trees.mondrian", "MondrianMethod", {"rule": "selection"}),
    "gain-tree": ("trees.gain_tree", "GainTree", {}),
    "eligible-tree": ("trees.eligible_tree", "EligibleTree", {}),
    "cell-peeling": ("lattice.cell_peeling", "CellPeeling", {}),
    "topdown": ("clustering.topdown", "TopDown", {}),
    "topdown:lower-ncp": ("clustering.topdown", "TopDown", {"reading": "lower-ncp"}),
    "single-dimensional": ("lattice.single_dimensional", "SingleDimensional", {}),
    "tds": ("lattice.top_down_specialization", "TopDownSpecialization", {}),
    "nng": ("clustering.nearest_neighbour_groups", "NearestNeighbourGroups", {}),
    "k-member": ("clustering.k_member", "KMember", {}),
    "mdav": ("clustering.mdav", "Mdav", {}),
    SSE_SEARCH: ("search.squared_error_search", "SquaredErrorSearch", {}),
    "global": ("lattice.global_recoding", "GlobalRecoding", {}),
    "datafly": ("lattice.datafly", "Datafly", {}),
    "samarati": ("lattice.samarati", "Samarati", {}),
    "incognito": ("lattice.incognito", "Incognito", {}),
    "anatomy": ("anatomy", "Anatomy", {}),
}
_LINES: dict[str, Literal["box", "extent"]] = {
    "": "box",
    "-fast": "extent",
}  # by the end of the name: what the line of an ordering is cut by

__all__ = [
    "AUTO",
    "SSE_SEARCH",
    "ClassBatch",
    "CodedWorkload",
    "Effort",
    "ForNumbers",
    "Kinds",
    "Method",
    "Records",
    "check_loss",
    "check_method",
    "chosen_name",
    "method_named",
    "methods",
]


def methods() -> dict[str, Method]:
    """Return every method by name: the built-in ones first, then those of installed packages."""
    return {name: made() for name, made in _makers().items()}


def method_named(name: str) -> Method:
    """Return the method of this name; raise UsageError where there is none."""
    name = ALSO_NAMED.get(name, name)
    if name not in _makers():
        raise UsageError.unknown_choice("method", name, list(_makers()))
    return _makers()[name]()


@cache
def _makers() -> dict[str, Callable[[], Method]]:
    """Return by name what makes each method, once."""
    makers: dict[str, Callable[[], Method]] = {AUTO: partial(_built_in, AUTO)}
    for ordering in orderings().values():
        for end, cost in _LINES.items():
            makers[f"{ordering.name}{end}"] = partial(_line, ordering, cost)
    makers |= {name: partial(_built_in, name) for name in _HOME}
    for entry in entry_points(group="sfumato.methods"):
        makers.setdefault(entry.name, entry.load)
    return {name: cache(make) for name, make in makers.items()}


def _built_in(name: str) -> Method:
    module, kind, settings = _HOME[name]
    method: Method = getattr(import_module(f"sfumato.methods.{module}"), kind)(**settings)
    return method


def _line(ordering: Ordering, cost: Literal["box", "extent"]) -> Method:
    from sfumato.methods.line.optimal_cut import OptimalOneDimensional

    return OptimalOneDimensional(ordering=ordering, cost=cost)


def chosen_name(name: str, workload: CodedWorkload | None, loss: str = "ncp") -> str:
    """Return the name of the method to use.

    With sums of squares as the loss, ``auto`` is the search for them; with a workload, the split rule that suits it.
    """
    if name == AUTO and loss == "sse":
        return SSE_SEARCH
    if name != AUTO or workload is None:
        return name
    if workload.selections is not None:
        return "mondrian:selection"
    return "mondrian:information-gain" if workload.classification else "mondrian:regression"


def check_loss(method: Method, loss: str) -> None:
    """Raise UsageError where a method does not lower the loss that the policy asks for."""
    if loss == "sse" and method.name != AUTO and not isinstance(method, ForNumbers):
        able = ", ".join(name for name, known in methods().items() if isinstance(known, ForNumbers))
        raise UsageError(
            f'the method {method.name} does not lower sums of squares, and the policy asks for loss = "sse". Choose '
            f"one of {AUTO}, {able}, or leave the loss out."
        )


def check_method(method: Method, requirements: Requirements, kinds: Kinds) -> None:
    """Raise UsageError where a method cannot meet the requirements, or lacks the workload that it needs."""
    method.check(requirements)
    if isinstance(method, ForWorkload):
        method.check_workload(kinds)
