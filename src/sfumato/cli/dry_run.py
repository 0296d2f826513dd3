"""What a dry run tells: how the table was understood, before any class is formed."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato._version import __version__
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.pipeline.prepare import PreparedTable, method_of
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.tables.coding.domains import CategoricalDomain


def plan_of(prepared: PreparedTable, policy: Policy, progress: Progress) -> dict[str, Any]:
    """What ``sfumato anonymize --dry-run --json`` prints."""
    method = method_of(prepared, policy)
    measured = {**_quasi_identifiers(prepared, policy), **_carried(prepared)}
    nothing = {"type": None, "inferred": False, "distinct": None, "nulls": None, "levels": None}
    columns = []
    for name in prepared.source.names:
        role = policy.columns[name].role if name in policy.columns else "other"
        columns.append({"name": name, "role": role, "released": name in measured, **measured.get(name, nothing)})
    return {
        "dry_run": True,
        "records": prepared.encoded.records,
        "columns": columns,
        "k": policy.k,
        "requirements": [asked.model_dump() for asked in policy.privacy.sensitive],
        "feasible": True,  # what is not is an error
        "method": policy.method.name,
        "chosen": method.name,
        "engine": MemoryEngine.name,
        "seed": policy.release.seed if method.separates else policy.release.seed or 0,
        "version": __version__,
        "seconds": {name: round(value, 4) for name, value in progress.seconds.items()},
        "warnings": prepared.warnings,
    }


def _quasi_identifiers(prepared: PreparedTable, policy: Policy) -> dict[str, dict[str, Any]]:
    found = {}
    for place, domain in enumerate(prepared.encoded.domains):
        counts = np.bincount(prepared.encoded.codes[:, place], minlength=domain.size)
        nulls = int(counts[domain.size - 1]) if domain.has_null else 0
        found[domain.name] = {
            "type": "date and time" if domain.kind == "moment" else domain.kind,
            "inferred": policy.columns[domain.name].implied_type is None,
            "distinct": int(np.count_nonzero(counts)) - (nulls > 0),
            "nulls": nulls,
            "levels": domain.taxonomy.levels if isinstance(domain, CategoricalDomain) else None,
        }
    return found


def _carried(prepared: PreparedTable) -> dict[str, dict[str, Any]]:
    found = {}
    for column in prepared.encoded.carried:
        codes, size = column.distinct
        counts = np.bincount(codes, minlength=size)
        kind = prepared.source.types[column.name]
        found[column.name] = {
            "type": "text" if str(kind) == "string" else str(kind),
            "inferred": False,
            "distinct": int(np.count_nonzero(counts[:-1])),
            "nulls": int(counts[-1]),
            "levels": None,
        }
    return found
