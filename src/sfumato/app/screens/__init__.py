"""One module for each step of the work, in their order. A screen is drawn from a view; its actions change the policy.

To add one: write a module with a ``SCREEN``, put it into ``SCREENS``, and its texts into ``texts/*/page_NAME.toml``.
"""

from __future__ import annotations

from sfumato.app.screens import check, columns, hierarchies, opening, publish, requirements, risk, trials
from sfumato.app.view import Screen

SCREENS: tuple[Screen, ...] = (
    opening.SCREEN,
    columns.SCREEN,
    hierarchies.SCREEN,
    requirements.SCREEN,
    risk.SCREEN,
    trials.SCREEN,
    check.SCREEN,
    publish.SCREEN,
)
