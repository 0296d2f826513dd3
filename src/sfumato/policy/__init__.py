"""What the user asks for: one object for the TOML file, the command line and Python.

``model`` says what a policy may hold, ``flags`` lays flags and keyword arguments over it, ``lines`` finds a key in the
text of a TOML file, ``problems`` words what is wrong.
"""

from __future__ import annotations

from sfumato.policy.flags import CommonFlags, LevelFlags, PolicyFlags, SearchFlags, UseFlags, merge_flags
from sfumato.policy.input_options import InputOptions
from sfumato.policy.model import (
    ColumnSettings,
    EngineSettings,
    Grouping,
    InputSettings,
    MethodSettings,
    Policy,
    PolicyLike,
    PrivacySettings,
    ReleaseSettings,
    SensitiveRequirement,
)
from sfumato.policy.workload import WorkloadSettings

__all__ = [
    "ColumnSettings",
    "CommonFlags",
    "EngineSettings",
    "Grouping",
    "InputOptions",
    "InputSettings",
    "LevelFlags",
    "MethodSettings",
    "Policy",
    "PolicyFlags",
    "PolicyLike",
    "PrivacySettings",
    "ReleaseSettings",
    "SearchFlags",
    "SensitiveRequirement",
    "UseFlags",
    "WorkloadSettings",
    "merge_flags",
]
