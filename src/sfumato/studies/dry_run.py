"""``sfumato anonymize --dry-run``: how the table is read, before any class is formed."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato._version import __version__
from sfumato.engines.memory.classes import method_for
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.engines.target_output import check_target_location
from sfumato.errors import InfeasibleError
from sfumato.pipeline.engine_choice import tables_of
from sfumato.pipeline.feasibility import feasibility_of
from sfumato.pipeline.feasible_changes import feasible_changes
from sfumato.pipeline.prepare import prepare_as_far_as_feasible
from sfumato.pipeline.recognition import class_recipe, recognised
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.run_record import recorded_runs
from sfumato.tables.coding.domains import CategoricalDomain, NumericDomain
from sfumato.tables.coding.value_order import is_missing


def examine(
    data: str, output: str | None, policy: Policy, progress: Progress, *, force: bool, trial: bool
) -> tuple[dict[str, Any], InfeasibleError | None]:
    """Read a table, and return what the command prints, and the error of the run if the policy cannot be met.

    The output is refused as the run would refuse it. Unless it is of a ``trial``, warnings name earlier releases.
    """
    if output is not None:
        policy.check_complete()
        check_target_location(data, output, tables=tables_of(policy), force=force, trial=trial)
    table, infeasible = prepare_as_far_as_feasible(data, policy, progress)
    if infeasible is None and not trial and _has_record():
        engine = MemoryEngine()
        recognised(engine, table.job, table, class_recipe(engine, table.job))
    return plan_of(table, feasible=infeasible is None), infeasible


def _has_record() -> bool:
    """Return whether releases may have been recorded. Without a record there are none, and a dry run begins none."""
    try:
        return bool(recorded_runs())
    except OSError:
        return True  # that it cannot be read is told where it is read


def plan_of(table: TableInMemory, *, feasible: bool) -> dict[str, Any]:
    """Return what ``sfumato anonymize --dry-run --json`` prints. feasible: whether the table can meet the policy."""
    policy, method = table.job.policy, method_for(table)
    facts = {**_quasi_identifiers(table), **_passthrough_columns(table)}
    not_read = {
        "type": None,
        "inferred": False,
        "distinct": None,
        "nulls": None,
        "levels": None,
        "shown": None,
        "form": None,
    }
    columns = []
    for name in table.job.source.names:
        role = policy.columns[name].role if name in policy.columns else "other"
        columns.append({"name": name, "role": role, "released": name in facts, **facts.get(name, not_read)})
    return {
        "dry_run": True,
        "records": table.count,
        "columns": columns,
        "k": policy.k,
        "requirements": [requirement.model_dump() for requirement in policy.privacy.sensitive],
        "feasible": feasible,
        "feasibility": [line.as_dict() for line in feasibility_of(table)],
        "suggestions": [] if feasible else [change.as_dict() for change in feasible_changes(table)],
        "method": policy.method.name,
        "chosen": method.name,
        "engine": MemoryEngine.name,
        "seed": policy.release.seed if method.separates else policy.release.seed or 0,
        "version": __version__,
        "seconds": {name: round(value, 4) for name, value in table.job.progress.seconds.items()},
        "warnings": table.job.warnings,
    }


def _quasi_identifiers(table: TableInMemory) -> dict[str, dict[str, Any]]:
    facts = {}
    for column, domain in enumerate(table.encoded.domains):
        counts = np.bincount(table.encoded.codes[:, column], minlength=domain.size)
        nulls = int(counts[domain.size - 1]) if domain.has_null else 0
        facts[domain.name] = {
            "type": "date and time" if domain.kind == "moment" else domain.kind,
            "inferred": table.job.policy.columns[domain.name].implied_type is None,
            "distinct": int(np.count_nonzero(counts)) - (nulls > 0),
            "nulls": nulls,
            "levels": domain.taxonomy.levels if isinstance(domain, CategoricalDomain) else None,
            "shown": _shown_levels(table, column),
            "form": "labels" if isinstance(domain, CategoricalDomain) else table.job.policy.form_of(domain.name),
        }
    return facts


def _shown_levels(table: TableInMemory, column: int) -> list[dict[str, Any]]:
    """List the levels that a class may show of a quasi-identifier, from fine to coarse.

    groups: how many groups of a level the records of the table are in, null aside.
    """
    domain, codes = table.encoded.domains[column], table.encoded.codes[:, column]
    settings, top = table.job.policy.columns[domain.name], domain.top_level
    last = top if domain.coarsest is None else domain.coarsest
    if method_for(table).separates:
        last = domain.finest  # it releases quasi-identifiers as they are
    values = np.unique(codes[codes < domain.size - domain.has_null])
    levels: list[dict[str, Any]] = []
    for number in range(domain.finest, last + 1):
        name, groups = "*", 1
        if number < top:
            name = settings.level_words(number).removeprefix("the ")
            groups = len(np.unique(domain.at_level(number)[1][values]))
        levels.append({"level": number, "name": name, "groups": groups})
    if isinstance(domain, NumericDomain) and domain.tree is None and last > domain.finest:
        grid = "" if settings.round is None else f" between multiples of {settings.round:g}"
        levels[0]["name"] += f" and ranges{grid}"
    return levels


def _passthrough_columns(table: TableInMemory) -> dict[str, dict[str, Any]]:
    facts, policy = {}, table.job.policy
    for column in table.encoded.carried:
        codes, values = column.numbered
        counts = np.bincount(codes, minlength=len(values) + 1)
        # Texts of the input that mean "missing" count where the policy asks for a value; other columns keep them.
        tokens = policy.input.nulls if column.name in policy.sensitive else ()
        missing = np.array([*(is_missing(value, tokens) for value in values), True])
        kind = table.job.source.types[column.name]
        facts[column.name] = {
            "type": "text" if str(kind) == "string" else str(kind),
            "inferred": False,
            "distinct": int(np.count_nonzero(counts[~missing])),
            "nulls": int(counts[missing].sum()),
            "levels": None,
            "shown": None,
            "form": None,
        }
    return facts
