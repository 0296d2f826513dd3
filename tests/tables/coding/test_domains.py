"""What a class shows: ranges, dates, groups, the whole domain, null."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.tables.coding.domains import CategoricalDomain, NumericDomain
from sfumato.tables.coding.released_labels import number_text
from sfumato.taxonomies.derived_taxonomies import flat
from sfumato.taxonomies.taxonomy_file import read_taxonomy

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

DAY = datetime.date(2020, 1, 1)


def released(values: Any, k: int = 2, **settings: Any) -> list[str | None]:
    """What one column shows, in the order of its rows."""
    table = pa.table({"q": values})
    asked: dict[str, Any] = {
        name: {"q": value} for name, value in settings.items() if name in ("taxonomy", "round", "type")
    }
    release = sfumato.anonymize(table, quasi_identifiers=["q"], k=k, keep_order=True, **asked)
    labels: list[str | None] = release.data["q"].to_pylist()
    return labels


def test_numbers_are_ranges_or_single_values() -> None:
    assert released([1, 2, 7, 7, -3, -9]) == ["[1..2]", "[1..2]", "7", "7", "[-9..-3]", "[-9..-3]"]


def test_all_of_a_domain_is_a_star() -> None:
    assert released([1, 2, 3], k=3) == ["*"] * 3
    assert released(["a", "b"], k=2) == ["*"] * 2
    assert released([DAY, DAY + datetime.timedelta(1)], k=2) == ["*"] * 2


def test_constant_column_shows_its_value() -> None:
    assert released([4, 4, 4], k=3) == ["4"] * 3
    assert released(["a", "a"], k=2) == ["a"] * 2


def test_floats_have_their_shortest_form() -> None:
    assert released([0.1, 0.30000000000000004, 5.0, 1e22]) == ["[0.1..0.30000000000000004]"] * 2 + ["[5..1e+22]"] * 2
    assert released([-0.0, 0.0, 1.5, 1.5]) == ["0", "0", "1.5", "1.5"]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_text_of_a_number_reads_back_as_the_same_number(value: float) -> None:
    assert float(number_text(value)) == value
    assert number_text(3) == number_text(3.0) == "3"


def test_dates_and_moments_are_written_in_iso_form() -> None:
    days = [datetime.date(2020, 2, 28), datetime.date(2020, 3, 1), datetime.date(1969, 12, 31), datetime.date(1, 1, 1)]
    assert released(days) == ["[2020-02-28..2020-03-01]"] * 2 + ["[0001-01-01..1969-12-31]"] * 2
    noon = datetime.datetime(2020, 1, 1, 12)
    moments = [noon, noon, datetime.datetime(2020, 1, 2), datetime.datetime(2020, 1, 2, 0, 0, 0, 5)]
    assert released(moments) == ["2020-01-01T12:00:00"] * 2 + ["[2020-01-02T00:00:00..2020-01-02T00:00:00.000005]"] * 2


def test_moments_with_a_zone_are_shown_in_its_local_time() -> None:
    column = pa.array([0, 60_000_000], pa.timestamp("us", "Europe/Rome"))
    assert released(pa.chunked_array([column]), k=1) == ["1970-01-01T01:00:00+01:00", "1970-01-01T01:01:00+01:00"]


def test_null_alone_is_null_and_with_anything_a_star() -> None:
    assert released([None, None, 3, 4, 9, 9]) == [None, None, "[3..4]", "[3..4]", "9", "9"]
    assert released([None, 9, 3, 3]) == ["*", "*", "3", "3"]
    assert released(pa.array([None, None, None], pa.int64())) == [None] * 3
    assert released(pa.nulls(3), k=3) == [None] * 3
    assert released(pa.array([None, None], pa.int64()), type="categorical") == [None] * 2


def test_rounding_widens_outward() -> None:
    assert released([23, 31, 60, 60, 99, 81], round=5)[:4] == ["[20..35]", "[20..35]", "60", "60"]
    assert released([-7, -2, 60, 61], round=5) == ["[-10..0]", "[-10..0]", "[60..65]", "[60..65]"]
    assert released([0.11, 0.28, 5.0, 9.0], round=0.1)[:2] == ["[0.1..0.3]"] * 2


def test_intervals_hold_the_class_or_become_a_star() -> None:
    asked: dict[str, Any] = {"taxonomy": {"intervals": [5, 10]}}
    assert released([21, 23, 28, 31, 99, 99], **asked) == ["[20..24]"] * 2 + ["*"] * 2 + ["99"] * 2
    assert released([21, 28, 70, 99], **asked) == ["[20..29]"] * 2 + ["*"] * 2


def test_calendar_periods_hold_the_class() -> None:
    days = [datetime.date(2020, 2, 3), datetime.date(2020, 2, 20), datetime.date(2021, 1, 1), datetime.date(2021, 9, 9)]
    found = released(days, taxonomy={"calendar": ["month", "year"]})
    assert found == ["2020-02"] * 2 + ["2021"] * 2


def test_prefixes_are_filled_with_stars() -> None:
    assert released(["50121", "50129", "00118", "00119"], taxonomy={"prefix": [2, 4]}) == ["5012*"] * 2 + ["0011*"] * 2


def test_taxonomy_counts_leaves_that_no_record_has(tmp_path: Path) -> None:
    path = tmp_path / "places.csv"
    path.write_text("Roma,Lazio,Italia,*\nPisa,Toscana,Italia,*\nLucca,Toscana,Italia,*\nParis,Paris,France,*\n")
    table = pa.table({"q": ["Pisa", "Lucca", "Roma", "Pisa"]})
    release = sfumato.anonymize(table, quasi_identifiers=["q"], k=2, taxonomy={"q": str(path)}, method="hilbert")
    column = oracle.CategoryColumn([line.split(",")[:-1] for line in path.read_text().splitlines()])
    labels = release.data["q"].to_pylist()
    assert labels == ["Italia", "Italia", "Toscana", "Toscana"]
    assert release.losses.gcp == pytest.approx(float(sum(map(column.penalty, labels)) / 4)) == pytest.approx(5 / 8)


def test_bounds_are_typed_and_null_where_there_is_no_range() -> None:
    table = pa.table({"age": [1, 2, 7, None], "day": [DAY, DAY, DAY, None], "city": ["a", "a", "b", "b"]})
    release = sfumato.anonymize(table, quasi_identifiers=["age", "day", "city"], k=2, form="bounds").data
    assert release.column_names == ["age", "age_min", "age_max", "day", "day_min", "day_max", "city"]
    assert release.schema.field("age_min").type == pa.int64()
    assert release.schema.field("day_max").type == pa.date32()
    assert release.to_pylist() == [
        {"age": "*", "age_min": None, "age_max": None, "day": "*", "day_min": None, "day_max": None, "city": "b"},
        {"age": "*", "age_min": None, "age_max": None, "day": "*", "day_min": None, "day_max": None, "city": "b"},
        {"age": "[1..2]", "age_min": 1, "age_max": 2, "day": "2020-01-01", "day_min": DAY, "day_max": DAY, "city": "a"},
        {"age": "[1..2]", "age_min": 1, "age_max": 2, "day": "2020-01-01", "day_min": DAY, "day_max": DAY, "city": "a"},
    ]


def test_bounds_of_the_whole_domain_are_its_ends() -> None:
    table = pa.table({"age": [1, 2, 7]})
    release = sfumato.anonymize(table, quasi_identifiers=["age"], k=3, form="bounds").data
    assert release.to_pylist() == [{"age": "*", "age_min": 1, "age_max": 7}] * 3


@pytest.mark.parametrize(
    "values",
    [[-(2**63), -5, 5, 2**63 - 1], [10**18, 10**18 + 1, 10**18 + 2, 10**18 + 7], [-1.5e308, -1.0, 1.0, 1.5e308]],
)
def test_extreme_numbers_keep_their_order_and_distance(values: list[Any]) -> None:
    domain = NumericDomain("q", np.array(values), False)
    extent = Fraction(values[-1]) - Fraction(values[0])
    expected = [float((Fraction(value) - Fraction(values[0])) / extent) for value in values]
    with np.errstate(all="raise"):
        assert domain.coordinates().tolist() == pytest.approx(expected)
        label = f"[{number_text(values[0])}..{number_text(values[1])}]"
        assert domain.penalties([label]).tolist() == pytest.approx([expected[1]])
    assert released(values)[:2] == [label] * 2


@pytest.mark.parametrize("label", ["[9..2]", "[1..x]", "abc", "[1..2", "", "[..]", "nan", "2020-01-01"])
def test_label_that_no_number_has_is_no_penalty(label: str) -> None:
    assert math.isnan(NumericDomain("q", np.array([1, 9]), False).penalties([label])[0])


def test_penalties_of_labels_that_were_made_elsewhere() -> None:
    days = NumericDomain("day", np.array([0, 10]), False, "date")
    labels = ["[1970-01-01..1970-01-06]", "1970-01-03", "1970-01-03 00:00:00", "1970-01-03T00:00:00+00:00", None, "*"]
    assert days.penalties(labels).tolist() == [0.5, 0, 0, 0, 0, 1]
    assert math.isnan(days.penalties(["1970-01-03T05:00:00"])[0])
    moments = NumericDomain("at", np.array([0, 7_200_000_000]), False, "moment")
    assert moments.penalties(["[1970-01-01T00:00:00+00:00..1970-01-01T02:00:00+01:00]"]).tolist() == [0.5]
    cities = CategoricalDomain("city", flat(["a", "b"], "city"), True)
    assert cities.penalties(["a", "*", None]).tolist() == [0, 1, 0]
    assert math.isnan(cities.penalties(["c"])[0])


def test_range_wider_than_the_table_costs_no_more_than_everything() -> None:
    assert NumericDomain("q", np.array([1, 9]), False).penalties(["[0..100]"]).tolist() == [1.0]
    assert NumericDomain("q", np.array([4]), False).penalties(["[0..5]", "4"]).tolist() == [1.0, 0.0]


def test_group_named_like_a_leaf_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "places.csv"
    path.write_text("Roma,Roma,*\nOstia,Roma,*\nPisa,Toscana,*\nLucca,Toscana,*\n")
    domain = CategoricalDomain("city", read_taxonomy(path, "city"), False)
    assert domain.penalties(["Roma", "Roma (group)", "Toscana"]).tolist() == [0, 0.5, 0.5]
    assert released(["Roma", "Ostia", "Pisa", "Pisa"], taxonomy=str(path)) == ["Roma (group)"] * 2 + ["Pisa"] * 2
