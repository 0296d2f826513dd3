"""What can be run in the background. Each kind takes the context of its run and returns what it found, as JSON values.

Every kind is what a command does: ``policy``, ``anonymize --dry-run``, ``anonymize --trial``, ``risk``, ``tradeoff``
and ``anonymize``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow.parquet

from sfumato.app.worker import RunContext

RunKind = Callable[[RunContext], Any]


def examine(context: RunContext) -> dict[str, Any]:
    """Propose a policy, and keep what each column holds beside the result."""
    from sfumato.proposal import propose_policy

    asked = context.options
    proposal = propose_policy(
        context.table,
        input=asked.get("input"),
        derive=asked.get("derive"),
        column_nulls=asked.get("column_nulls"),
        progress=context.progress,
    )
    for index, figure in enumerate(proposal.figures):
        pyarrow.parquet.write_table(figure.values, context.directory / f"values-{index}.parquet")
    found = proposal.as_dict()
    return {
        **found,
        "figures": {figure.name: {**figure.as_dict(), "index": index} for index, figure in enumerate(proposal.figures)},
        "settings": {column.name: column.settings for column in proposal.columns},
        "dangerous": [
            exposure.as_dict() for decided in (True, False) for exposure in proposal.dangerous(decided=decided)
        ],
    }


def dry_run(context: RunContext) -> dict[str, Any]:
    """Say how the table is read and which requirements can be met."""
    from sfumato.studies.dry_run import examine as examined

    summary, infeasible = examined(str(context.table), None, context.policy, context.progress, force=False, trial=True)
    return {**summary, "message": None if infeasible is None else str(infeasible)}


def as_json(value: Any) -> Any:
    """Return a value that JSON can hold: there is no infinity in it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return value


RUN_KINDS: Mapping[str, RunKind] = {
    "examine": examine,
    "dry-run": dry_run,
}
