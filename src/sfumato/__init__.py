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
        SfumatoWarning,
        anonymize,
        audit,
        bound,
        compare,
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
        TaxonomyError,
        UsageError,
    )
    from sfumato.policy import Policy
    from sfumato.proposal import propose_policy
    from sfumato.release import Release
    from sfumato.risking import risk
    from sfumato.tables.generators import generate

__all__ = [
    "AuditError",
    "DataError",
    "InfeasibleError",
    "InputError",
    "OutputError",
    "Policy",
    "PolicyError",
    "Release",
    "SfumatoError",
    "SfumatoWarning",
    "TaxonomyError",
    "UsageError",
    "__version__",
    "anonymize",
    "audit",
    "bound",
    "compare",
    "generate",
    "measure",
    "plot",
    "propose_policy",
    "report_private",
    "report_release",
    "risk",
    "tradeoff",
]

# Loaded when first used: importing the package must not load any of the large libraries.
_HOME = {
    "Policy": "sfumato.policy",
    "Release": "sfumato.release",
    "SfumatoWarning": "sfumato.api",
    "anonymize": "sfumato.api",
    "audit": "sfumato.api",
    "bound": "sfumato.api",
    "compare": "sfumato.api",
    "generate": "sfumato.tables.generators",
    "measure": "sfumato.api",
    "plot": "sfumato.api",
    "propose_policy": "sfumato.proposal",
    "risk": "sfumato.risking",
    "report_private": "sfumato.api",
    "report_release": "sfumato.api",
    "tradeoff": "sfumato.api",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return getattr(import_module(_HOME.get(name, "sfumato.errors")), name)


def __dir__() -> list[str]:
    return __all__
