"""What the first rows of a table look like on the page."""

from __future__ import annotations

import datetime
from pathlib import Path

from source_kinds import write_xlsx

from sfumato.app.preview import preview


def test_dates_of_a_workbook_are_shown_without_a_time_and_moments_with_theirs(tmp_path: Path) -> None:
    rows = [
        ["day", "moment", "text"],
        [datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 13, 5), "at 00:00:00"],
    ]
    seen = preview(write_xlsx(tmp_path / "t.xlsx", {"one": rows}), {})
    assert seen.records == (("2024-02-29", "2024-02-29 13:05:00", "at 00:00:00"),)
    assert not seen.unread
