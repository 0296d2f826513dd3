"""Dates and moments that are written as text."""

from __future__ import annotations

import datetime
import re

from sfumato.tables.coding.released_labels import EPOCH, MICROSECOND

ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def written_moment(text: str, date_format: str | None) -> int | None:
    """Return microseconds since 1970, or None if the text is not a date. Without a format, it must be ISO 8601."""
    text = text.strip()
    try:
        if date_format is not None:
            moment = datetime.datetime.strptime(text, date_format)
        elif ISO_DATE.match(text):
            moment = datetime.datetime.fromisoformat(text)
        else:
            return None
    except ValueError:
        return None
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
    return (moment - EPOCH) // MICROSECOND
