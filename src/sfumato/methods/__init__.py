"""Which records share a class: one published algorithm a file, and the names that users call them by.

``auto`` is the default of every command. A further method is one file and an entry point in the group
``sfumato.methods`` whose object is a ``Method``.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from sfumato.errors import UsageError
from sfumato.methods.anatomy import Anatomy
from sfumato.methods.auto import Auto
from sfumato.methods.clustering.nearest_neighbour_groups import NearestNeighbourGroups
from sfumato.methods.clustering.topdown import TopDown
from sfumato.methods.coded_workload import CodedWorkload, ForWorkload, Kinds
from sfumato.methods.lattice.cell_peeling import CellPeeling
from sfumato.methods.lattice.single_dimensional import SingleDimensional
from sfumato.methods.lattice.top_down_specialization import TopDownSpecialization
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.methods.method import ClassBatch, Effort, Method, Records
from sfumato.methods.trees.close_k import InformationDependency
from sfumato.methods.trees.eligible_tree import EligibleTree
from sfumato.methods.trees.gain_tree import GainTree
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.orderings import orderings
from sfumato.requirements import Requirements

AUTO = Auto.name
ALSO_NAMED = {"mondrian:median": "mondrian"}

__all__ = [
    "AUTO",
    "ClassBatch",
    "CodedWorkload",
    "Effort",
    "Kinds",
    "Method",
    "Records",
    "check_method",
    "chosen_name",
    "method_named",
    "methods",
]


@cache
def methods() -> dict[str, Method]:
    """Every method there is, by name: ours first, then those of installed packages."""
    own: list[Method] = [Auto()]
    for ordering in orderings().values():
        own += [OptimalOneDimensional(ordering=ordering, cost=cost) for cost in ("box", "extent")]
    own += [InformationDependency(point="median"), InformationDependency(point="close-k")]
    own += [MondrianMethod(), MondrianMethod(splits="relaxed")]
    own += [
        MondrianMethod(rule="information-gain"),
        MondrianMethod(rule="regression"),
        MondrianMethod(rule="selection"),
    ]
    own += [GainTree(), EligibleTree(), CellPeeling(), TopDown()]
    own += [SingleDimensional(), TopDownSpecialization(), NearestNeighbourGroups()]
    own.append(Anatomy())
    found = {method.name: method for method in own}
    for entry in entry_points(group="sfumato.methods"):
        found.setdefault(entry.name, entry.load())
    return found


def method_named(name: str) -> Method:
    """The method that a user asked for."""
    known = methods()
    name = ALSO_NAMED.get(name, name)
    if name not in known:
        raise UsageError.unknown_choice("method", name, list(known))
    return known[name]


def chosen_name(name: str, workload: CodedWorkload | None) -> str:
    """The name of the method that is used: ``auto`` is the rule that the workload asks for, where there is one."""
    if name != AUTO or workload is None:
        return name
    if workload.selections is not None:
        return "mondrian:selection"
    return "mondrian:information-gain" if workload.classification else "mondrian:regression"


def check_method(method: Method, requirements: Requirements, kinds: Kinds) -> None:
    """Raise UsageError where a method cannot meet the requirements, or lacks the workload it needs."""
    method.check(requirements)
    if isinstance(method, ForWorkload):
        method.check_workload(kinds)
