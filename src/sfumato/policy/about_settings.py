"""The section ``[about]``: what a release is called, who makes it, what for and when, and the language of its pages.

It decides nothing about the rows. The certificate and the pages of the release show it to all who may have the release.
"""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from sfumato.policy.error_text import wrong
from sfumato.policy.section import PolicySection

LanguageCode = Literal["en", "de"]
LONGEST = 2000  # characters of a text


def _optional_text(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST:
        raise wrong(f"must be text of at most {LONGEST:,} characters", show=False)
    return value.strip()


def _optional_day(value: Any) -> datetime.date | None:
    if value is None or (isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)):
        return value
    try:
        return datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise wrong("must be a day, such as 2026-03-31") from None


class AboutSettings(PolicySection):
    """What readers are told about a release, beside its figures."""

    title: Annotated[str | None, BeforeValidator(_optional_text)] = None
    author: Annotated[str | None, BeforeValidator(_optional_text)] = None
    """Who answers for the release: a person or an office."""
    purpose: Annotated[str | None, BeforeValidator(_optional_text)] = None
    date: Annotated[datetime.date | None, BeforeValidator(_optional_day)] = None
    """The day of the release. It is never taken from a clock: the same policy gives the same bytes."""
    language: LanguageCode = "en"
    """The language of the pages."""
