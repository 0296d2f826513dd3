"""Sfumato anonymizes microdata: tables with one record per person.

release = sfumato.anonymize(frame, quasi_identifiers=["age", "zip", "sex"], other="keep", k=10)
release.data, release.losses, release.audit
release.write("release.parquet")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sfumato._version import __version__

if TYPE_CHECKING:
    from sfumato.api import (
        aggregate,
        anonymize,
        anonymize_linked,
        apply,
        audit,
        bound,
        codebook,
        compare,
        evaluate,
        fit,
        measure,
        plot,
        report_private,
        report_release,
        tradeoff,
    )
    from sfumato.errors import (
        AuditError,
        DataError,
        InfeasibleError,
        InputError,
        OutputError,
        PolicyError,
        SfumatoError,
        SfumatoWarning,
        TaxonomyError,
        UnmetError,
        UsageError,
    )
    from sfumato.estimators import Mondrian
    from sfumato.files.key_file import make_key
    from sfumato.pipeline.release import Release
    from sfumato.policy import Policy
    from sfumato.proposal import arx_project, propose_policy
    from sfumato.releases.recoding import Recoding
    from sfumato.releases.run_record import mark_run, runs
    from sfumato.studies.column_taxonomy import taxonomy
    from sfumato.studies.risk import risk
    from sfumato.synthetic import generate

__all__ = [
    "AuditError",
    "DataError",
    "InfeasibleError",
    "InputError",
    "Mondrian",
    "OutputError",
    "Policy",
    "PolicyError",
    "Recoding",
    "Release",
    "SfumatoError",
    "SfumatoWarning",
    "TaxonomyError",
    "UnmetError",
    "UsageError",
    "__version__",
    "aggregate",
    "anonymize",
    "anonymize_linked",
    "apply",
    "arx_project",
    "audit",
    "bound",
    "codebook",
    "compare",
    "evaluate",
    "fit",
    "generate",
    "make_key",
    "mark_run",
    "measure",
    "plot",
    "propose_policy",
    "report_private",
    "report_release",
    "risk",
    "runs",
    "taxonomy",
    "tradeoff",
]

# Loaded when first used: importing the package must not load any of the large libraries.
_HOME = {
    "Mondrian": "sfumato.estimators",
    "Policy": "sfumato.policy",
    "Recoding": "sfumato.releases.recoding",
    "Release": "sfumato.pipeline.release",
    "SfumatoWarning": "sfumato.errors",
    "aggregate": "sfumato.api",
    "anonymize": "sfumato.api",
    "anonymize_linked": "sfumato.api",
    "apply": "sfumato.api",
    "arx_project": "sfumato.proposal.arx_project",
    "audit": "sfumato.api",
    "bound": "sfumato.api",
    "codebook": "sfumato.api",
    "compare": "sfumato.api",
    "evaluate": "sfumato.api",
    "fit": "sfumato.api",
    "generate": "sfumato.synthetic",
    "measure": "sfumato.api",
    "plot": "sfumato.api",
    "propose_policy": "sfumato.proposal",
    "risk": "sfumato.studies.risk",
    "report_private": "sfumato.api",
    "report_release": "sfumato.api",
    "make_key": "sfumato.files.key_file",
    "mark_run": "sfumato.releases.run_record",
    "runs": "sfumato.releases.run_record",
    "taxonomy": "sfumato.studies.column_taxonomy",
    "tradeoff": "sfumato.api",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return getattr(import_module(_HOME.get(name, "sfumato.errors")), name)


def __dir__() -> list[str]:
    return __all__
