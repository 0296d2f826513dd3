"""Derived columns: values against plain Python, in every kind of table, and what is refused."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_kinds import in_csv, in_excel, in_parquet

from sfumato.errors import InputError, PolicyError
from sfumato.policy import merge_flags
from sfumato.tables.sources.input_table import open_input

DATES = st.dates(dt.date(1890, 1, 1), dt.date(2110, 12, 31))
SECRET = "Zq7-secret"


def column(data: object, rule: dict[str, Any], **flags: Any) -> list[Any]:
    """The derived column ``new`` of a table."""
    source = open_input(data, merge_flags(None, derive={"new": rule}, **flags))
    return [value for batch in source.batches(["new"]) for value in batch.column(0).to_pylist()]


def birthdays(born: dt.date, today: dt.date) -> int:
    """How often somebody has had a birthday, counted year by year."""
    age = 0
    while True:
        try:
            birthday = born.replace(year=born.year + age + 1)
        except ValueError:  # February 29, which comes a day later where there is none
            birthday = dt.date(born.year + age + 1, 3, 1)
        if birthday > today:
            return age
        age += 1


def full_months(start: dt.date, end: dt.date) -> int:
    months, day = 0, (start.year, start.month)
    while True:
        day = (day[0] + day[1] // 12, day[1] % 12 + 1)
        if (*day, start.day) > (end.year, end.month, end.day):
            return months
        months += 1


@given(st.lists(st.tuples(DATES, DATES).map(sorted), min_size=1, max_size=5))
def test_times_are_counted_as_people_count_ages(pairs: list[list[dt.date]]) -> None:
    table = pa.table({"a": [low for low, _ in pairs], "b": [high for _, high in pairs]})
    for unit, expected in (
        ("years", [birthdays(*pair) for pair in pairs]),
        ("months", [full_months(*pair) for pair in pairs]),
        ("days", [(high - low).days for low, high in pairs]),
    ):
        assert column(table, {"from": "a", "to": "b", "unit": unit}) == expected


@given(st.lists(DATES, min_size=1, max_size=5))
def test_parts_are_those_of_the_date(days: list[dt.date]) -> None:
    table = pa.table({"a": days})
    quarter = [(day.month - 1) // 3 + 1 for day in days]
    assert column(table, {"from": "a", "part": "year"}) == [day.year for day in days]
    assert column(table, {"from": "a", "part": "month"}) == [day.month for day in days]
    assert column(table, {"from": "a", "part": "quarter"}) == quarter
    assert column(table, {"from": "a", "part": "weekday"}) == [day.isoweekday() for day in days]
    assert column(table, {"from": "a", "part": "year-month"}) == [day.strftime("%Y-%m") for day in days]
    assert column(table, {"from": "a", "part": "year-quarter"}) == [
        f"{day.year}-Q{number}" for day, number in zip(days, quarter, strict=True)
    ]


def test_a_day_is_that_of_the_time_zone_of_a_moment() -> None:
    moments = pa.array([1_704_063_600, None], pa.timestamp("s", "Europe/Berlin"))  # 2023-12-31 23:00 in UTC
    assert column(pa.table({"a": moments}), {"from": "a", "part": "year"}) == [2024, None]
    assert column(pa.table({"a": moments.cast(pa.timestamp("ns"))}), {"from": "a", "part": "year"}) == [2023, None]


BORN = [dt.date(1980, 2, 29), None, dt.date(1999, 12, 31)]
SEEN = [dt.date(2021, 2, 28), dt.date(2021, 3, 1), None]
CODES = ["A01", "B02", None]
TABLE = pa.table({"born": pa.array(BORN, pa.date32()), "seen": pa.array(SEEN, pa.date32()), "code": CODES})
AGE = {"from": "born", "to": "seen", "unit": "years"}


@pytest.mark.parametrize("kind", ["csv", "parquet", "excel", "pandas"])
def test_every_kind_of_table_has_the_same_columns(kind: str, tmp_path: Path) -> None:
    makers = {"csv": in_csv, "parquet": in_parquet, "excel": in_excel}
    data: Any = makers[kind](TABLE, tmp_path) if kind in makers else TABLE.to_pandas()
    age, month = [40, None, None], [2, 3, None]
    shown = [None if value is None else str(value) for value in age] if kind == "csv" else age
    assert column(data, AGE) == shown
    shown = [None if value is None else str(value) for value in month] if kind == "csv" else month
    assert column(data, {"from": "seen", "part": "month"}) == shown
    assert column(data, {"from": "code", "first": 1}) == ["A", "B", None]
    assert column(data, {"from": "seen", "part": "year-month"}) == ["2021-02", "2021-03", None]


def test_text_is_read_as_the_input_settings_say(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a;b\n01.02.2000;31.01.2001\nNA;01.01.2001\n 1.2.2000;1.2.2001\n")
    settings = {"separator": ";", "date_format": "%d.%m.%Y", "nulls": ["NA"]}
    assert column(file, {"from": "a", "to": "b", "unit": "years"}, input=settings) == ["0", None, "1"]


def test_numbers_have_the_text_of_a_file(tmp_path: Path) -> None:
    table = pa.table({"a": [12345, 12399, None], "b": pa.array([7.0, 7.5, float("nan")])})
    assert column(table, {"from": "a", "first": 3}) == ["123", "123", None]
    assert column(table, {"from": "b", "first": 9}) == ["7", "7.5", None]


def test_groups_are_those_of_a_level(tmp_path: Path) -> None:
    groups = tmp_path / "icd.csv"
    groups.write_text("A01,A,infections,*\nA02,A,infections,*\nB02,B,infections,*\nC03,C,growths,*\n12,N,numbers,*\n")
    rule = {"from": "code", "groups": str(groups)}
    assert column(TABLE, rule) == ["A", "B", None]
    assert column(TABLE, {**rule, "level": 2}) == ["infections", "infections", None]
    assert column(pa.table({"code": [12, None]}), rule) == ["N", None]


def test_groups_may_be_those_of_a_ready_made_taxonomy() -> None:
    table = pa.table({"code": ["A00.1", None, "I21"], "land": ["Germany", "Japan", None]})
    assert column(table, {"from": "code", "ready": "icd-10", "level": "chapter"}) == [
        "I infectious and parasitic diseases", None, "IX circulatory system"
    ]  # fmt: skip
    assert column(table, {"from": "land", "ready": "countries", "level": 2}) == ["Europe", "Asia", None]
    assert refused(pa.table({"code": ["A00", SECRET]}), {"from": "code", "ready": "icd-10"}) == (
        "the derived column 'new': in 1 record, the value of 'code' is not in the ready-made taxonomy 'icd-10'; the "
        "first is in record 2. Correct the data, list the value in [input] nulls if it means 'missing', or use groups "
        "of a file."
    )


def test_a_dictionary_holds_what_its_batch_shows_and_no_more() -> None:
    source = open_input(TABLE, merge_flags(None, derive={"new": {"from": "code", "first": 1}}))
    assert source.names == ("born", "seen", "code", "new")
    assert source.types["new"] == pa.string()
    batch = next(iter(source.batches(["new", "code"])))
    assert batch.schema.names == ["new", "code"]
    assert batch.column(0).dictionary.to_pylist() == ["A", "B"]


# ---- what is refused ----


def refused(data: object, rule: dict[str, Any], **flags: Any) -> str:
    with pytest.raises((InputError, PolicyError)) as caught:
        column(data, rule, **flags)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def test_an_end_before_its_beginning_is_counted_over_the_whole_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.tables.sources.source_batches.BATCH_ROWS", 2)
    early, late = dt.date(2000, 1, 1), dt.date(2000, 1, 2)
    table = pa.table({"a": [early, None, early, late, late], "b": [late, early, late, early, early]})
    assert refused(table, {"from": "a", "to": "b", "unit": "years"}) == (
        "the derived column 'new': in 2 records, 'b' lies before 'a'; the first is in record 4. Exchange from and to, "
        "or correct the data."
    )


def test_a_text_that_is_no_date_is_counted_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(f"a\n2000-01-01\n{SECRET}\n{SECRET}\n2000-13-01\n")
    assert refused(file, {"from": "a", "part": "year"}) == (
        "the derived column 'new': in 3 records, the value of 'a' is not a date of the form year-month-day; the first "
        "is in line 3. Correct the data, list the value in [input] nulls if it means 'missing', or set "
        "--date-format, or date_format in [input], which `sfumato policy` finds."
    )


def test_a_code_outside_the_taxonomy_is_counted_and_not_shown(tmp_path: Path) -> None:
    groups = tmp_path / "icd.csv"
    groups.write_text("A01,A,*\n")
    table = pa.table({"code": ["A01", SECRET, None]})
    assert refused(table, {"from": "code", "groups": str(groups)}) == (
        "the derived column 'new': in 1 record, the value of 'code' is not in the taxonomy 'icd.csv'; the first is in "
        "record 2. Add it to the taxonomy, or list it in [input] nulls if it means 'missing'."
    )
    assert refused(table, {"from": "code", "groups": str(groups), "level": 2}) == (
        "level of the derived column 'new' is 2, but the taxonomy has only the levels 1 to 1 below '*'. Choose another "
        "level, or add groups to the taxonomy."
    )


def test_columns_that_are_there_or_missing_or_no_dates_are_refused() -> None:
    table = pa.table({"a": [1], "new": ["x"]})
    assert refused(table, {"from": "a", "first": 1}) == (
        "the derived column 'new' is a column of the table already. Choose another name."
    )
    table = pa.table({"a": [1], "b": [dt.date(2000, 1, 1)]})
    assert refused(table, {"from": "c", "first": 1}) == (
        "the derived column 'new' names the column 'c', which the table does not have. Available: 'a', 'b'."
    )
    assert refused(table, {"from": "b", "to": "a", "unit": "days"}) == (
        "the derived column 'new' needs dates, but the column 'a' has the type int64. Name a column of dates, or "
        "convert it to dates."
    )
