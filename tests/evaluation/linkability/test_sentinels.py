"""Suspected sentinels: of a fixed list, far from the other values, reported and never acted upon."""

from __future__ import annotations

import datetime
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.evaluation.linkability.column_facts import ColumnValues, TextSettings
from sfumato.evaluation.linkability.sentinels import DATES, NUMBERS, suspected_sentinels
from sfumato.proposal import propose_policy

FAR = "is farther from all other values than these are from each other"
NEGATIVE = "is negative, and no other value is"


def column(values: Sequence[Any], counts: Sequence[int] | None = None) -> ColumnValues:
    kind = pa.array(values).type
    counted = np.array(counts or [1] * len(values), np.int64)
    return ColumnValues("x", kind, pa.types.is_string(kind), list(values), counted, int(counted.sum()))


def found(values: Sequence[Any], counts: Sequence[int] | None = None, **settings: Any) -> list[tuple[str, int, str]]:
    suspected = suspected_sentinels(column(values, counts), TextSettings(**settings))
    return [(sentinel.text, sentinel.records, sentinel.reason) for sentinel in suspected]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["-999", "45", "120", "80"], [("-999", 1, FAR)]),
        (["-999", "-99", "45", "120"], [("-999", 1, FAR), ("-99", 1, FAR)]),
        ([-1, 0, 20, 45], [("-1", 1, NEGATIVE)]),
        (["99", "1", "2", "3"], [("99", 1, FAR)]),
        (["99", "1", "90", "100"], []),  # among the other values
        (["99", "18", "90"], []),  # near them
        (["-1", "-7", "20"], []),
        (["998", "1", "2", "3"], []),  # not in the list
        (["999", "1"], []),  # a single other value has no range
        (["0999", "0001", "0002"], []),  # codes
        (["-999", "1", "2", "a"], []),  # text
    ],
)
def test_a_number_of_the_list_is_suspected_far_outside_the_others(
    values: list[Any], expected: list[tuple[str, int, str]]
) -> None:
    assert found(values) == expected


def test_a_date_of_the_list_is_suspected_far_outside_or_if_it_is_the_most_frequent() -> None:
    births = [datetime.date(1930, 1, 1), datetime.date(1985, 5, 5), datetime.date(2010, 1, 1)]
    assert found([*births, datetime.date(9999, 12, 31)]) == [("9999-12-31", 1, FAR)]
    first = datetime.date(1900, 1, 1)
    assert found([first, *births]) == []
    assert found([first, *births], [5, 4, 1, 1]) == [("1900-01-01", 5, "is the first date and the most frequent one")]


def test_text_is_read_as_the_settings_say() -> None:
    dates = ["01.02.1980", "31.12.9999", "05.05.1990"]
    assert found(dates, date_format="%d.%m.%Y") == [("31.12.9999", 1, FAR)]
    assert found(dates) == []
    assert found(["-999", "1.234,5", "2.000", "NA"], decimal=",", thousands=".", nulls=("NA",)) == [("-999", 1, FAR)]


def test_a_moment_is_shown_only_if_its_time_says_nothing() -> None:
    ordinary = [datetime.datetime(2020, 1, 1, 7, 30), datetime.datetime(2020, 3, 1, 8, 15)]
    assert found([*ordinary, datetime.datetime(1970, 1, 1)]) == [("1970-01-01 00:00:00", 1, FAR)]
    assert found([*ordinary, datetime.datetime(9999, 12, 31, 23, 59, 59)]) == [("9999-12-31 23:59:59", 1, FAR)]
    assert found([*ordinary, datetime.datetime(1970, 1, 1, 7, 13, 22)]) == []


@given(st.lists(st.integers(-(10**9), 10**9), unique=True, max_size=8))
def test_nothing_but_the_list_is_ever_shown(values: list[int]) -> None:
    assert {int(text) for text, _, _ in found(values)} <= NUMBERS
    assert datetime.date(9999, 12, 31) in DATES


def test_the_flag_and_the_line_that_a_sentence_gives_make_the_value_null() -> None:
    sentinel = suspected_sentinels(
        ColumnValues("Größe (cm)", pa.string(), True, ["-999", "1", "2"], np.array([3, 1, 1]), 5), TextSettings()
    )[0]
    before, _, advice = sentinel.sentence.partition("add ")
    assert before == f"column 'Größe (cm)': 3 records have -999, which {FAR}. If it means that the value is missing, "
    flag, _, line = advice.partition(", or ")
    assert shlex.split(flag) == ["--column-null", "Größe (cm)=-999"]
    setting, _, rest = line.partition(" to ")
    header = rest.partition(";")[0]
    assert tomllib.loads(f"{header}\n{setting}") == {"columns": {"Größe (cm)": {"nulls": ["-999"]}}}


def write(path: Path) -> Path:
    rows = [f"{-999 if row % 10 == 0 else 40 + row % 30},{'n. a.' if row == 17 else 20 + row % 9}" for row in range(60)]
    path.write_text("weight,age\n" + "\n".join(rows) + "\n")
    return path


def test_policy_and_risk_report_sentinels_and_numbers_that_are_text(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv")
    suspected = f"column 'weight': 6 records have -999, which {FAR}. If it means that the value is missing, add "
    text = "column 'age' is read as text: 9 of its distinct values are numbers, and 1 is not"
    proposal = propose_policy(path)
    assert [remark for remark in proposal.remarks if remark.startswith(suspected)]
    assert [remark for remark in proposal.remarks if remark.startswith(f"{text}; the first that is not is in line 19.")]
    assert suspected in " ".join(line.removeprefix("# ") for line in proposal.to_toml().splitlines())
    risk = sfumato.risk(path, quasi_identifiers=["weight", "age"])
    assert [remark for remark in risk.remarks if remark.startswith(suspected)]
    assert [remark for remark in risk.remarks if remark.startswith(f"{text}. If")]


def test_a_suspected_sentinel_stays_a_value_until_the_policy_names_it(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv")
    flags: dict[str, Any] = {"k": 30, "quasi_identifiers": ["weight"], "other": "drop", "form": "bounds"}
    assert min(sfumato.anonymize(path, **flags).data["weight_min"].to_pylist()) == -999
    named = sfumato.anonymize(path, **{**flags, "k": 6}, column_nulls={"weight": ["-999"]})
    assert min(low for low in named.data["weight_min"].to_pylist() if low is not None) >= 40
