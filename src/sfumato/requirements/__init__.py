"""What every class of a release must meet: one kind of requirement a file.

Another package adds a kind with a subclass of ``sfumato.requirements.Requirement`` and an entry point to it in the
group ``sfumato.requirements``.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from sfumato.requirements.alpha_k import AlphaAnonymity
from sfumato.requirements.beta_likeness import BetaLikeness
from sfumato.requirements.delta_disclosure import DeltaDisclosure
from sfumato.requirements.distinct_diversity import DistinctDiversity
from sfumato.requirements.entropy_diversity import EntropyDiversity
from sfumato.requirements.frequency_diversity import FrequencyDiversity
from sfumato.requirements.joint_attributes import Joint
from sfumato.requirements.k_anonymity import KAnonymity
from sfumato.requirements.recursive_diversity import RecursiveDiversity
from sfumato.requirements.requirement import (
    ClassCounts,
    Hierarchy,
    Histogram,
    Refinement,
    Requirement,
    Requirements,
    Verdict,
    all_hold,
)
from sfumato.requirements.t_closeness import TCloseness
from sfumato.requirements.variance_diversity import VarianceDiversity
from sfumato.requirements.without_persons import WithoutPersons

__all__ = [
    "AlphaAnonymity",
    "BetaLikeness",
    "ClassCounts",
    "DeltaDisclosure",
    "DistinctDiversity",
    "EntropyDiversity",
    "FrequencyDiversity",
    "Hierarchy",
    "Histogram",
    "Joint",
    "KAnonymity",
    "RecursiveDiversity",
    "Refinement",
    "Requirement",
    "Requirements",
    "TCloseness",
    "VarianceDiversity",
    "Verdict",
    "WithoutPersons",
    "all_hold",
    "kinds",
]


@cache
def kinds() -> dict[str, type[Requirement]]:
    """Return every kind of requirement on a sensitive attribute by name: our own, then those of other packages.

    Another package cannot replace one of our own.
    """
    own: tuple[type[Requirement], ...] = (
        FrequencyDiversity,
        DistinctDiversity,
        EntropyDiversity,
        RecursiveDiversity,
        VarianceDiversity,
        TCloseness,
        AlphaAnonymity,
        BetaLikeness,
        DeltaDisclosure,
    )
    found = {kind.kind: kind for kind in own}
    for entry in entry_points(group="sfumato.requirements"):
        found.setdefault(entry.name, entry.load())
    return found
