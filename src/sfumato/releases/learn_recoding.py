"""Learn a recoding: run a method that divides the domain, and turn its regions into a recoding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.methods import AUTO, Method, method_named, methods
from sfumato.methods.class_counting import Counting
from sfumato.methods.lattice.lattice_method import LatticeMethod
from sfumato.methods.method import Records, Regional
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.local_recoding import shown_classes
from sfumato.releases.recoding import Recoding
from sfumato.requirements import Requirements
from sfumato.taxonomies.taxonomy import Taxonomy

if TYPE_CHECKING:
    from sfumato.methods.trees.region_tree import Tiling

DEFAULT = "mondrian"


def regional(method: Method) -> Regional:
    """The method as one whose regions tile the domain. ``auto``, whose classes are no regions, becomes DEFAULT."""
    if method.name == AUTO:
        method = method_named(DEFAULT)
    if not has_regions(method):
        known = ", ".join(name for name, each in methods().items() if learns_rules(each))
        raise UsageError(
            f"{method.name} has no regions that tile the domain, so it cannot recode further records. Choose one of "
            f"{known}."
        )
    assert isinstance(method, Regional)
    return method


def learns_rules(method: Method) -> bool:
    """Whether a method gives rules for further tables: by regions that tile the domain, or by levels of columns."""
    return has_regions(method) or isinstance(method, LatticeMethod)


def has_regions(method: Method) -> bool:
    """Whether the classes of a method are regions that tile the domain: each value is in exactly one."""
    return isinstance(method, Regional) and method.tiles


def grown_recoding(
    method: Regional,
    records: Records,
    requirements: Requirements,
    policy: Policy,
    taxonomies: Mapping[str, Taxonomy],
    names: Sequence[str],
    progress: Progress,
) -> Recoding:
    """Learn a recoding in which every region that has records meets the requirements.

    names: the columns of the table that are released.

    If a region, together with those that show the same labels, does not meet the requirements, the division that made
    it is undone: the method does not know every requirement, and some requirements may fail when classes are merged.
    """
    counting, numbered = Counting(records, requirements), policy.numbered

    def failing(recoding: Recoding, tree: Tiling) -> NDArray[np.int64]:
        batch = recoding.regions.classes(recoding.regions.regions_of(records.codes, records.domains))
        shown = shown_classes(recoding.domains, batch.low, batch.high, numbered=numbered)
        class_of_record = np.empty(len(records.codes), np.int64)
        class_of_record[batch.rows] = np.repeat(shown, np.diff(batch.starts))
        by_row = np.repeat(class_of_record, np.diff(records.starts))
        holds = requirements.holds(counting.classes(records.rows, by_row, int(shown.max()) + 1))
        return tree.leaves_of(records.codes[~holds[class_of_record]])

    tree, _ = method.tree(records, requirements, progress)

    def recoding_by(tree: Tiling) -> Recoding:
        return Recoding.of(tree, records.domains, policy=policy, method=method.name, taxonomies=taxonomies, names=names)

    return sound_recoding(tree, recoding_by, failing)


def sound_recoding(
    tree: Tiling,
    recoding_by: Callable[[Tiling], Recoding],
    failing: Callable[[Recoding, Tiling], NDArray[np.int64]],
) -> Recoding:
    """Undo the divisions that lead to failing leaves until none is left, and return the recoding of the final tree.

    failing: returns the leaves whose records are in a class that does not meet the requirements.
    """
    while True:
        recoding = recoding_by(tree)
        undone = tree.parent[failing(recoding, tree)]
        if not len(undone):
            return recoding
        if (undone < 0).any():
            raise AssertionError("the whole table does not meet the requirements, although it did before")
        tree = tree.undivided(undone)
