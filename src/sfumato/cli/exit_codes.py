"""The exit codes of commands that judge a release. Those of errors are in ``sfumato.errors``."""

from __future__ import annotations

HOLDS, FAILS, NOT_CHECKED = 0, 1, 5


def exit_code_of(holds: bool | None, *, accept_unchecked: bool) -> int:
    """The exit code for a verdict on a release; None: nothing fails, but something could not be checked."""
    if holds is None:
        return HOLDS if accept_unchecked else NOT_CHECKED
    return HOLDS if holds else FAILS
