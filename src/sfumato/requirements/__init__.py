"""What every class of a release must meet: one kind a file."""

from __future__ import annotations

from sfumato.requirements.alpha_k import AlphaAnonymity
from sfumato.requirements.closeness import Closeness
from sfumato.requirements.disclosure import Disclosure
from sfumato.requirements.distinct import DistinctDiversity
from sfumato.requirements.entropy import EntropyDiversity
from sfumato.requirements.frequency import FrequencyDiversity
from sfumato.requirements.k_anonymity import KAnonymity
from sfumato.requirements.likeness import Likeness
from sfumato.requirements.measured import MeasuredRequirement, MeasuredTest, all_hold
from sfumato.requirements.recursive import RecursiveDiversity
from sfumato.requirements.requirement import (
    KNOWN,
    PER_ATTRIBUTE,
    SIZE,
    ClassCounts,
    Histogram,
    Requirement,
    Requirements,
    Verdict,
    count_values,
    counter_of,
)
from sfumato.requirements.variance import VarianceDiversity

__all__ = [
    "KNOWN",
    "PER_ATTRIBUTE",
    "SIZE",
    "AlphaAnonymity",
    "ClassCounts",
    "Closeness",
    "Disclosure",
    "DistinctDiversity",
    "EntropyDiversity",
    "FrequencyDiversity",
    "Histogram",
    "KAnonymity",
    "Likeness",
    "MeasuredRequirement",
    "MeasuredTest",
    "RecursiveDiversity",
    "Requirement",
    "Requirements",
    "VarianceDiversity",
    "Verdict",
    "all_hold",
    "count_values",
    "counter_of",
]
