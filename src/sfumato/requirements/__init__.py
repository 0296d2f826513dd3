"""What every class of a release must meet: one kind a file."""

from __future__ import annotations

from sfumato.requirements.k_anonymity import KAnonymity
from sfumato.requirements.requirement import COUNTERS, SIZE, Requirement, Requirements, Verdict

__all__ = ["COUNTERS", "SIZE", "KAnonymity", "Requirement", "Requirements", "Verdict"]
