"""What the user asks for: one object for the TOML file, the command line and Python.

``model`` is the whole policy; the ``*_settings`` modules and ``workload`` are its sections. ``flags`` lays flags and
keyword arguments over a policy, ``toml_lines`` finds a key in a TOML text, and ``error_text`` words errors.
"""

from __future__ import annotations

from sfumato.policy.about_settings import AboutSettings, LanguageCode
from sfumato.policy.column_settings import ColumnSettings, Grouping
from sfumato.policy.flags import CommonFlags, LevelFlags, PolicyFlags, SearchFlags, UseFlags, merge_flags
from sfumato.policy.input_settings import InputOptions, InputSettings
from sfumato.policy.model import Policy, PolicyLike
from sfumato.policy.privacy_settings import PrivacySettings, SensitiveRequirement
from sfumato.policy.release_settings import FormulaHandling, ReleaseSettings
from sfumato.policy.run_settings import USUAL_EFFORT, EffortName, EngineSettings, MethodSettings
from sfumato.policy.workload import WorkloadSettings
from sfumato.policy.written_text import DecimalMark, WritingFlags, WrittenText

__all__ = [
    "USUAL_EFFORT",
    "AboutSettings",
    "ColumnSettings",
    "CommonFlags",
    "DecimalMark",
    "EffortName",
    "EngineSettings",
    "FormulaHandling",
    "Grouping",
    "InputOptions",
    "InputSettings",
    "LanguageCode",
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
    "WritingFlags",
    "WrittenText",
    "merge_flags",
]
