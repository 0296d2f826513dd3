"""How much does each method lose?"""

from __future__ import annotations

import time
import warnings
from typing import Any

import sfumato
from benchmarks.markdown import show
from benchmarks.tables import Options, SmallTable
from sfumato.evaluation.comparison_points import accepting
from sfumato.methods import Kinds, methods
from sfumato.requirements import KAnonymity, Requirements

MANY_K = (5, 10, 25, 50)
EFFORTS = ("balanced", "best")  # of auto, beside the default

# GCP on Adult, 8 quasi-identifiers, nothing suppressed, tight boxes: what a method is held to, up to a factor.
REFERENCES = {
    "hilbert": (0.0502, 0.0852, 0.1489, 0.2146),
    "hilbert-fast": (0.0588, 0.0995, 0.1748, 0.2542),
}
ALLOWED_RATIO = {"hilbert": 1.03, "hilbert-fast": 1.05}


def run(options: Options) -> list[dict[str, Any]]:
    table = options.small_table()
    results = [_measure(table, method, k) for method in methods_without_workload() for k in MANY_K]
    results += [_measure(table, "auto", k, effort) for effort in EFFORTS for k in MANY_K]
    show(f"Loss on {table.name}", results, [f"{len(table.quasi_identifiers)} quasi-identifiers, nothing suppressed."])
    return results


def methods_without_workload() -> list[str]:
    """Return the methods that form classes of any table."""
    requirements = Requirements((KAnonymity(MANY_K[0]),))
    return [name for name in accepting(requirements, Kinds()) if not methods()[name].separates]


def _measure(table: SmallTable, method: str, k: int, effort: str = "fast") -> dict[str, Any]:
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sfumato.SfumatoWarning)
        release = sfumato.anonymize(table.path, table.policy, k=k, method=method, effort=effort)
    result: dict[str, Any] = {
        "method": method if effort == "fast" else f"{method}, {effort}",
        "k": k,
        "GCP": float(release.losses.gcp),
        "smallest class": release.audit.smallest_class,
        "classes": release.audit.classes,
        "CPU s": time.process_time() - started,
    }
    if table.is_adult:
        reference = REFERENCES[method][MANY_K.index(k)] if method in REFERENCES else None
        result["reference GCP"] = reference
        result["ratio"] = None if reference is None else result["GCP"] / reference
        result["at most"] = ALLOWED_RATIO.get(method)
    return result
