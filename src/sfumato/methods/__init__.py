"""Methods decide which records share a class: one published algorithm per file, and the names that users know them by.

``auto`` is the default of every command. To add a method, write one file and an entry point in the group
``sfumato.methods`` whose object is a ``Method``.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from sfumato.errors import UsageError
from sfumato.methods.anatomy import Anatomy
from sfumato.methods.auto import Auto
from sfumato.methods.clustering.k_member import KMember
from sfumato.methods.clustering.nearest_neighbour_groups import NearestNeighbourGroups
from sfumato.methods.clustering.topdown import TopDown
from sfumato.methods.coded_workload import CodedWorkload, ForWorkload, Kinds
from sfumato.methods.lattice.cell_peeling import CellPeeling
from sfumato.methods.lattice.datafly import Datafly
from sfumato.methods.lattice.global_recoding import GlobalRecoding
from sfumato.methods.lattice.incognito import Incognito
from sfumato.methods.lattice.samarati import Samarati
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
    """Return every method by name: the built-in ones first, then those of installed packages."""
    built_in: list[Method] = [Auto()]
    for ordering in orderings().values():
        built_in += [OptimalOneDimensional(ordering=ordering, cost=cost) for cost in ("box", "extent")]
    built_in += [InformationDependency(point=point) for point in ("median", "values", "close-k")]
    built_in += [MondrianMethod(), MondrianMethod(splits="relaxed")]
    built_in += [MondrianMethod(rule="published"), MondrianMethod(rule="ordered")]
    built_in += [
        MondrianMethod(rule="information-gain"),
        MondrianMethod(rule="regression"),
        MondrianMethod(rule="selection"),
    ]
    built_in += [GainTree(), EligibleTree(), CellPeeling(), TopDown(), TopDown(reading="lower-ncp")]
    built_in += [SingleDimensional(), TopDownSpecialization(), NearestNeighbourGroups(), KMember()]
    built_in += [GlobalRecoding(), Datafly(), Samarati(), Incognito()]
    built_in.append(Anatomy())
    by_name = {method.name: method for method in built_in}
    for entry in entry_points(group="sfumato.methods"):
        by_name.setdefault(entry.name, entry.load())
    return by_name


def method_named(name: str) -> Method:
    """Return the method of this name; raise UsageError where there is none."""
    known = methods()
    name = ALSO_NAMED.get(name, name)
    if name not in known:
        raise UsageError.unknown_choice("method", name, list(known))
    return known[name]


def chosen_name(name: str, workload: CodedWorkload | None) -> str:
    """Return the name of the method to use: with a workload, ``auto`` is the split rule that suits it."""
    if name != AUTO or workload is None:
        return name
    if workload.selections is not None:
        return "mondrian:selection"
    return "mondrian:information-gain" if workload.classification else "mondrian:regression"


def check_method(method: Method, requirements: Requirements, kinds: Kinds) -> None:
    """Raise UsageError where a method cannot meet the requirements, or lacks the workload that it needs."""
    method.check(requirements)
    if isinstance(method, ForWorkload):
        method.check_workload(kinds)
