"""The refusal of kept columns that would undo a release."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.errors import PolicyError


def refuse_linkable(reasons: Mapping[str, str]) -> None:
    """Raise PolicyError if there are linkable columns. reasons: why, by column."""
    if reasons:
        listed = "; ".join(f"{name!r}: {reason}" for name, reason in reasons.items())
        raise PolicyError(
            f"kept columns would undo the release: {listed}. Drop them (role drop or role identifier), make them "
            "quasi-identifiers, or list them in accept_linkable if nobody could recognize a person by them."
        )
