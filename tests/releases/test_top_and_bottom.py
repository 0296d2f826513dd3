"""``top`` and ``bottom``: numbers from there on are one value, which says so."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from naming import hiding_methods

import sfumato
from sfumato.errors import InputError, PolicyError
from sfumato.policy import Policy

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")  # rows keep their order, tables come again
END = re.compile(r"(-?\d+(?:\.\d+)?)([+-]?)")
BOTTOM, TOP = 18, 90


def read_end(text: str) -> tuple[Fraction, str]:
    """The number of an end of a range, and its sign."""
    found = END.fullmatch(text)
    assert found is not None
    return Fraction(found[1]), found[2]


def holds(label: str, value: float, bottom: float, top: float) -> bool:
    """Whether a label, read by plain rules, is true of a value and shows no number beyond the two ends."""
    if label == "*":
        return True
    low, _, high = label.strip("[]").partition("..")
    (first, first_sign), (last, last_sign) = read_end(low), read_end(high or low)
    assert bottom <= first <= last <= top
    # Exactly the two ends carry signs.
    assert (first_sign == "-") == (first == bottom)
    assert (last_sign == "+") == (last == top)
    return (first <= value or first_sign == "-") and (value <= last or last_sign == "+")


def released(ages: list[int], *, order: bool = True, **flags: Any) -> sfumato.Release:
    table = pa.table({"age": ages, "town": [age % 2 for age in ages]})
    flags = {"top": {"age": TOP}, "bottom": {"age": BOTTOM}, "keep_order": order, **flags}
    return sfumato.anonymize(table, quasi_identifiers=["age", "town"], **flags)


WIDENED = [{}, {"round": {"age": 10}}, {"taxonomy": {"age": {"intervals": [5, 20]}}}]


@pytest.mark.parametrize("method", hiding_methods())
@settings(max_examples=examples(0.25))
@given(
    ages=st.lists(st.integers(0, 120), min_size=2, max_size=30),
    k=st.integers(1, 3),
    widened=st.sampled_from(WIDENED),
)
def test_nothing_beyond_the_ends_is_shown_by_any_method(
    method: str, ages: list[int], k: int, widened: dict[str, Any]
) -> None:
    release = released(ages, k=min(k, len(ages)), method=method, **widened)
    assert all(map(lambda label, age: holds(label, age, BOTTOM, TOP), release.data["age"].to_pylist(), ages))


@pytest.mark.parametrize("widened", WIDENED)
def test_the_disk_engine_gives_the_same_release(widened: dict[str, Any], tmp_path: Path) -> None:
    ages = np.random.default_rng(1).integers(0, 120, 300).tolist()
    for engine in ("memory", "disk"):
        release = released(ages, order=False, k=5, method="hilbert", engine=engine, form="bounds", **widened)
        release.write(tmp_path / f"{engine}.csv")
    assert (tmp_path / "memory.csv").read_bytes() == (tmp_path / "disk.csv").read_bytes()


def test_labels_bounds_and_loss_are_those_of_the_clipped_numbers() -> None:
    ages = [1, 17, 18, 40, 41, 42, 95, 90, 120]
    flags: dict[str, Any] = {"quasi_identifiers": ["age"], "k": 3}
    release = sfumato.anonymize(
        pa.table({"age": ages}), top={"age": TOP}, bottom={"age": BOTTOM}, form="bounds", keep_order=True, **flags
    )
    table = release.data.to_pydict()
    assert table["age"][:3] == ["18-"] * 3
    assert table["age"][3:6] == ["[40..42]"] * 3
    assert table["age"][6:] == ["90+"] * 3
    assert table["age_min"] == [18] * 3 + [40] * 3 + [90] * 3
    assert table["age_max"] == [18] * 3 + [42] * 3 + [90] * 3
    clipped = sfumato.anonymize(pa.table({"age": [min(max(age, BOTTOM), TOP) for age in ages]}), **flags)
    assert release.losses.gcp == clipped.losses.gcp


def test_a_range_up_to_the_top_says_that_it_is_open() -> None:
    release = released([85, 86, 99], k=3)
    assert set(release.data["age"].to_pylist()) == {"*"}
    release = released([20, 20, 20, 85, 86, 99], k=3)
    assert set(release.data["age"].to_pylist()) == {"20", "[85..90+]"}


def test_decimals_and_floats_have_ends_too() -> None:
    for column in (pa.array([1.25, 1.5, 2.5, 9.0, 9.5, 11.0]), pa.array(["1.25", "1.5", "2.5", "9", "9.5", "11"])):
        values = column if pa.types.is_floating(column.type) else column.cast(pa.decimal128(5, 2))
        release = sfumato.anonymize(pa.table({"dose": values}), quasi_identifiers=["dose"], k=3, top={"dose": 9.5})
        assert set(release.data["dose"].to_pylist()) == {"[1.25..2.5]", "[9..9.5+]"}


def test_what_the_release_says_is_measured_audited_and_drawn(tmp_path: Path) -> None:
    ages = np.random.default_rng(2).integers(0, 120, 200).tolist()
    table = pa.table({"age": ages, "town": [age % 2 for age in ages]})
    flags: dict[str, Any] = {
        "quasi_identifiers": ["age", "town"],
        "top": {"age": TOP},
        "bottom": {"age": BOTTOM},
        "k": 5,
    }
    release = sfumato.anonymize(table, **flags)
    release.write(tmp_path / "release.csv")
    assert sfumato.audit(tmp_path / "release.csv").holds
    assert sfumato.measure(table, tmp_path / "release.csv", **flags).gcp == pytest.approx(release.losses.gcp)
    release.report(tmp_path / "report.html")
    release.plot("age", "town")


def test_rules_take_records_beyond_the_ends(tmp_path: Path) -> None:
    ages = np.random.default_rng(3).integers(20, 120, 300).tolist()
    table = pa.table({"age": ages, "town": [age % 2 for age in ages]})
    rules = sfumato.fit(
        table, quasi_identifiers=["age", "town"], top={"age": TOP}, bottom={"age": 30}, k=20, method="mondrian"
    )
    rules.write(tmp_path / "rules.json")
    again = sfumato.Recoding.load(tmp_path / "rules.json")
    further = pa.table({"age": [1, 30, 90, 200] * 20, "town": [0, 1] * 40})
    shown = again.transform(further)["age"].to_pylist()
    assert all(
        label == "*" or holds(label, age, 30, TOP) for label, age in zip(shown, [1, 30, 90, 200] * 20, strict=True)
    )
    connection = duckdb.connect()
    connection.register("further", further)
    rows = connection.sql(again.to_sql("duckdb", "further")).to_arrow_table()
    assert rows["age"].to_pylist() == shown


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"top": 18, "bottom": 18}, "top of column 'age' is 18, which is not above bottom"),
        ({"top": "90"}, "must be a finite number"),
        ({"top": float("nan")}, "must be a finite number"),
        ({"top": 90, "type": "date"}, "is only for numbers, but the column is date"),
        ({"bottom": 90, "taxonomy": "flat"}, "is only for numbers, but the column is categorical"),
    ],
)
def test_ends_that_make_no_sense_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        Policy.from_dict({"columns": {"age": {"role": "quasi-identifier", **settings}}})


def test_ends_that_do_not_fit_the_column_are_refused() -> None:
    with pytest.raises(PolicyError, match=r"column 'age': top is 89\.5, but the column holds whole numbers"):
        released([1, 2, 3], k=1, top={"age": 89.5})
    with pytest.raises(InputError, match="'age'"):
        sfumato.anonymize(pa.table({"age": ["x", "y"]}), quasi_identifiers=["age"], k=1, top={"age": 90})
