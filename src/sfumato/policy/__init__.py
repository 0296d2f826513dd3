"""What the user asks for: one object for the TOML file, the command line and Python.

``model`` says what a policy may hold, ``flags`` lays flags and keyword arguments over it, ``lines`` finds a key in the
text of a TOML file, ``problems`` words what is wrong.
"""

from __future__ import annotations

from sfumato.policy.flags import merge_flags
from sfumato.policy.model import Column, Diversity, Engine, Grouping, Input, Method, Policy, Privacy, Release
from sfumato.policy.workload import Workload

__all__ = [
    "Column",
    "Diversity",
    "Engine",
    "Grouping",
    "Input",
    "Method",
    "Policy",
    "Privacy",
    "Release",
    "Workload",
    "merge_flags",
]
