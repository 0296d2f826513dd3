"""How the columns are read from which a proposal derives others, before anything else is known about the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.engines.memory.coded_table import scan
from sfumato.evaluation.linkability.column_facts import collect_values, find_text_settings
from sfumato.policy import InputSettings, Policy
from sfumato.progress import Progress
from sfumato.tables.sources.in_memory_source import CollectedSource
from sfumato.tables.sources.source import Source


def has_texts(source: Source) -> bool:
    """Return whether texts may stand for numbers, dates and missing values: in text files, and in sheets."""
    return source.text or source.kind == "excel"


def input_of_derived(source: Source, reading: Policy, preset: Mapping[str, Any]) -> InputSettings:
    """Return the settings that ``preset`` has, and those that the columns look like which ``reading`` derives from."""
    needed = list(dict.fromkeys(column for rule in reading.derive.values() for column in rule.columns))
    if not has_texts(source) or not needed or not set(needed).issubset(source.names):
        return InputSettings(**preset)
    memory = CollectedSource.of_table(scan(source, needed, Progress()).table, kind=source.kind, where="the table")
    found = find_text_settings([collect_values(memory, name, text=True) for name in needed], preset)
    date_format = {} if found.date_format is None else {"date_format": found.date_format}
    return InputSettings(**{**preset, **date_format, "nulls": list(found.nulls)})
