"""Released decimals and moments are exact: every range holds the values that it was made of, in every engine."""

from __future__ import annotations

import datetime
import json
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.errors import InputError, PolicyError, UsageError
from sfumato.evaluation.queries.bins import cell_bounds
from sfumato.policy import ColumnSettings, InputOptions
from sfumato.policy.workload import Selection
from sfumato.tables.coding.arrow_arrays import to_python
from sfumato.tables.coding.profile import profile_column
from sfumato.tables.coding.selections import SelectionBoxes
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.sources.source import open_source

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

MONEY = pa.decimal128(10, 2)
PRICES = pa.array([Decimal("2.55"), Decimal("2.56"), Decimal("2.80"), Decimal("2.81")], MONEY)


def decimals(values: list[Any], kind: pa.DataType = MONEY) -> pa.Array:
    return pa.array([None if value is None else Decimal(value) for value in values], kind)


def released(column: pa.Array, k: int = 2, **asked: Any) -> pa.Table:
    """One column as it is released, in the order of its rows."""
    by_column = {key: {"q": asked.pop(key)} for key in ("taxonomy", "round", "type") if key in asked}
    flags: dict[str, Any] = {"quasi_identifiers": ["q"], "k": k, "keep_order": True, **by_column, **asked}
    table: pa.Table = sfumato.anonymize(pa.table({"q": column}), **flags).data
    return table


def ends(label: str) -> tuple[str, str]:
    low, _, high = label.strip("[]").partition("..")
    return low, high or low


def assert_covered(labels: list[str | None], originals: list[Any], read: Any) -> None:
    for label, original in zip(labels, originals, strict=True):
        if label is None:
            assert original is None
        elif label != "*":
            low, high = map(read, ends(label))
            assert low <= original <= high


def test_every_two_digit_decimal_is_shown_as_it_is() -> None:
    values = [Decimal(number).scaleb(-2) for number in range(10_000)]
    labels = released(pa.array(values, pa.decimal128(6, 2)), k=1)["q"].to_pylist()
    assert list(map(Decimal, labels)) == values
    assert labels[255] == "2.55"


@given(
    values=st.lists(st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-999, 999), min_size=2, max_size=12),
    scale=st.integers(0, 20),
    k=st.integers(1, 4),
)
def test_ranges_of_decimals_hold_their_values(values: list[int], scale: int, k: int) -> None:
    numbers = [Decimal(value).scaleb(-scale) for value in values]
    table = released(pa.array(numbers, pa.decimal128(38, scale)), k=min(k, len(values)), form="bounds")
    assert_covered(table["q"].to_pylist(), numbers, Decimal)
    assert table.schema.field("q_min").type == table.schema.field("q_max").type == pa.decimal128(38, scale)
    for low, number, high in zip(table["q_min"].to_pylist(), numbers, table["q_max"].to_pylist(), strict=True):
        assert low <= number <= high


@given(
    values=st.lists(st.integers(-99_999, 99_999), min_size=2, max_size=12),
    step=st.sampled_from([0.01, 0.05, 0.125, 0.3, 5, 10, 1000]),
)
def test_rounded_decimals_are_multiples_that_hold_their_values(values: list[int], step: float) -> None:
    numbers = [Decimal(value).scaleb(-2) for value in values]
    table = released(pa.array(numbers, MONEY), round=step, form="bounds")
    assert_covered(table["q"].to_pylist(), numbers, Decimal)
    for bound in table["q_min"].to_pylist() + table["q_max"].to_pylist():
        assert Fraction(bound) % Fraction(str(step)) == 0


def test_decimals_have_their_shortest_form() -> None:
    column = decimals(["2.50", "2.50", "3", "3.10", "-0.05", "-0.07"])
    assert released(column)["q"].to_pylist() == ["2.5"] * 2 + ["[3..3.1]"] * 2 + ["[-0.07..-0.05]"] * 2


def test_intervals_of_decimals_show_both_ends() -> None:
    column = decimals(["0.10", "0.20", "0.30", "0.49", "2", "2"])
    shown = released(column, taxonomy={"intervals": [0.25, 0.5]})["q"].to_pylist()
    assert shown == ["[0..0.25]"] * 2 + ["[0.25..0.5]"] * 2 + ["2"] * 2
    whole = released(decimals(["20", "29", "31", "31"], pa.decimal128(5, 0)), taxonomy={"intervals": [10]})
    assert whole["q"].to_pylist() == ["[20..29]"] * 2 + ["31"] * 2


def test_null_beside_decimals_has_no_bounds() -> None:
    table = released(decimals([None, None, "1.1", "1.2", "9", "9"]), form="bounds")
    assert table["q"].to_pylist()[:3] == [None, None, "[1.1..1.2]"]
    assert table["q_min"].to_pylist() == [None, None] + [Decimal("1.10")] * 2 + [Decimal("9.00")] * 2


def test_decimals_of_any_width_are_read() -> None:
    for kind in (pa.decimal128(38, 18), pa.decimal256(60, 30), pa.decimal128(5, -2)):
        column = pa.array([Decimal(100), Decimal(300), Decimal(500), Decimal(500)], kind)
        assert released(column)["q"].to_pylist() == ["[100..300]"] * 2 + ["500"] * 2


def test_decimals_beyond_64_bits_are_refused() -> None:
    for column in (
        decimals([10**19, 1], pa.decimal128(38, 0)),
        decimals(["123456789.0000000001", "99999999999.5"], pa.decimal128(38, 10)),
        decimals([10**50, 1], pa.decimal256(60, 0)),
    ):
        with pytest.raises(InputError, match="column 'q' holds numbers or dates that 64 bits cannot hold exactly"):
            released(column)
    with pytest.raises(PolicyError, match="too large beside the decimal places"):
        released(decimals(["0.0000000001", "0.0000000002"], pa.decimal128(38, 10)), round=1e15)


def test_a_later_batch_may_have_more_decimal_places() -> None:
    chunks = [decimals(["1", "2"]), decimals(["1.5", "1.25"])]
    assert released(pa.chunked_array(chunks), k=1)["q"].to_pylist() == ["1", "2", "1.5", "1.25"]
    tiny = [decimals([text], pa.decimal128(38, 30)) for text in ("0", "0.000000000000000000001")]
    assert released(pa.chunked_array(tiny), k=1)["q"].to_pylist() == ["0", "0.000000000000000000001"]


@pytest.mark.not_quick
@pytest.mark.parametrize("asked", [{"round": {"price": 0.25}}, {"form": "bounds"}], ids=str)
def test_memory_and_disk_release_the_same_decimals_and_nanoseconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    monkeypatch.setattr(MemoryBudget, "of", staticmethod(lambda _: MemoryBudget(1)))
    draw = np.random.default_rng(3)
    table = pa.table(
        {
            "price": decimals([f"{cents / 100:.2f}" for cents in draw.integers(-3000, 3000, 300)]),
            "when": pa.array(draw.integers(-(10**18), 10**18, 300), pa.timestamp("ns", "Europe/Berlin")),
            "ill": draw.choice(["a", "b", "c"], 300).tolist(),
        }
    )
    flags: dict[str, Any] = {"quasi_identifiers": ["price", "when"], "sensitive": "ill", "k": 4, "method": "hilbert"}
    written = set()
    for number, rows in enumerate((table, table.take(draw.permutation(300)))):
        for engine in ("memory", "disk"):
            path = tmp_path / f"{engine}{number}.parquet"
            sfumato.anonymize(rows, engine=engine, **flags, **asked).write(path)
            written.add(path.read_bytes())
    assert len(written) == 1


def test_the_audit_and_the_losses_read_decimals_exactly() -> None:
    numbers = [Decimal(number).scaleb(-2) for number in (255, 256, 280, 281)]
    original = pa.table({"q": decimals(numbers)})
    release = sfumato.anonymize(original, quasi_identifiers=["q"], k=2)
    assert release.losses.gcp == pytest.approx(1 / 26)
    measured = sfumato.measure(original, release.data, quasi_identifiers=["q"], k=2)
    assert measured.gcp == release.losses.gcp
    assert sfumato.audit(release.data, quasi_identifiers=["q"], k=2).holds


# Nanoseconds


@given(
    values=st.lists(st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-2000, 2000), min_size=2, max_size=10),
    zone=st.sampled_from([None, "UTC", "Asia/Kolkata"]),
)
def test_ranges_of_nanoseconds_hold_their_values(values: list[int], zone: str | None) -> None:
    column = pa.array(values, pa.timestamp("ns", zone))
    table = released(column, form="bounds")
    assert_covered(table["q"].to_pylist(), values, nanoseconds)
    if "q_min" in table.column_names and pa.types.is_timestamp(table["q_min"].type):
        factor = {"ns": 1, "us": 1000}[table["q_min"].type.unit]
        assert table["q_min"].type.tz == zone
        lows, highs = (table[name].cast(pa.int64()).to_pylist() for name in ("q_min", "q_max"))
        for low, value, high in zip(lows, values, highs, strict=True):
            assert low * factor <= value <= high * factor


def nanoseconds(text: str) -> int:
    """Read a moment with the digits that Python's datetime does not have."""
    if len(text) == len("2000-01-01"):
        text += "T00:00:00"
    parts = re.fullmatch(r"(.{19})(?:\.(\d+))?(.*)", text)
    assert parts is not None
    seconds, digits, offset = parts.groups("")
    moment = datetime.datetime.fromisoformat(seconds + (offset or "+00:00"))
    elapsed = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return (elapsed.days * 86_400 + elapsed.seconds) * 10**9 + int(digits.ljust(9, "0"))


def test_nanoseconds_before_1970_are_not_cut() -> None:
    shown = released(pa.array([-1, -1, -1_500, -2_000_000_001], pa.timestamp("ns")))["q"].to_pylist()
    assert (
        shown
        == ["1969-12-31T23:59:59.999999999"] * 2 + ["[1969-12-31T23:59:57.999999999..1969-12-31T23:59:59.9999985]"] * 2
    )


def test_moments_in_nanoseconds_without_nanoseconds_are_shown_as_ever() -> None:
    fine, coarse = (
        pa.array([5 * factor, 5 * factor], pa.timestamp(unit)) for unit, factor in (("ns", 1000), ("us", 1))
    )
    assert released(fine, form="bounds") == released(coarse, form="bounds")


NANOSECOND_TYPES = [pa.timestamp("ns"), pa.timestamp("ns", "Asia/Kolkata"), pa.duration("ns"), pa.time64("ns")]


@pytest.mark.parametrize("kind", NANOSECOND_TYPES, ids=str)
@given(values=st.lists(st.integers(0, 86_399_999_999_999) | st.integers(0, 2000) | st.none(), min_size=1, max_size=9))
def test_values_in_nanoseconds_are_equal_in_python_exactly_if_they_are(values: list[int | None], kind: Any) -> None:
    objects = to_python(pa.array(values, kind))
    for value, found in zip(values, objects, strict=True):
        for other, found_other in zip(values, objects, strict=True):
            assert (found == found_other) == (value == other)
            if pa.types.is_timestamp(kind) and value is not None and other is not None:
                assert (found < found_other) == (value < other)


@pytest.mark.parametrize("kind", NANOSECOND_TYPES, ids=str)
def test_sensitive_values_a_nanosecond_apart_are_different(kind: pa.DataType) -> None:
    table = pa.table({"age": [1, 1, 2, 2], "at": pa.array([1, 2, 1, 2], kind)})
    release = sfumato.anonymize(table, quasi_identifiers=["age"], sensitive="at", k=2, l=2)
    assert release.audit.holds
    assert sorted(release.data["age"].to_pylist()) == ["1", "1", "2", "2"]


# Time zones


def test_a_time_zone_is_kept_and_shown() -> None:
    summer = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.UTC)
    winter = datetime.datetime(2024, 1, 1, 12, 30, 0, 500_000, tzinfo=datetime.UTC)
    column = pa.array([summer, summer, winter, winter], pa.timestamp("us", "Europe/Berlin"))
    table = released(column, form="bounds")
    assert table["q"].to_pylist() == ["2024-07-01T14:00:00+02:00"] * 2 + ["2024-01-01T13:30:00.500000+01:00"] * 2
    assert table["q_min"].type == pa.timestamp("us", "Europe/Berlin")
    assert table["q_min"].to_pylist() == [summer] * 2 + [winter] * 2
    original = pa.table({"q": column})
    assert sfumato.measure(original, table, quasi_identifiers=["q"], k=2).gcp == 0.0


def test_the_days_of_a_calendar_are_those_of_the_time_zone() -> None:
    midnight = datetime.datetime(1990, 5, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    days = [midnight, midnight + datetime.timedelta(days=3), midnight + datetime.timedelta(days=400)] * 2
    shown = released(pa.array(days, pa.timestamp("s", "Europe/Berlin")), taxonomy={"calendar": ["month", "year"]})
    assert shown["q"].to_pylist()[:3] == ["1990-05-01", "1990-05-04", "1991-06-05"]


def test_moments_with_a_zone_at_the_ends_of_the_calendar_are_refused() -> None:
    first = -62_135_596_800  # 0001-01-01 in UTC, which west of Greenwich is the year before
    with pytest.raises(InputError, match="outside the years 1 to 9999"):
        released(pa.array([first, 0], pa.timestamp("s", "America/New_York")))


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(InputError, match="column 'q' has a time zone that this machine does not know"):
        released(pa.array([1, 2], pa.timestamp("us", "Nowhere/City")))


# Floats and whole numbers


def test_the_release_does_not_depend_on_which_zero_came_first() -> None:
    for values in ([-0.0, 0.0, 1.5, 1.5], [0.0, -0.0, 1.5, 1.5]):
        table = released(pa.array(values), form="bounds")
        assert [str(value) for value in table["q_min"].to_pylist()] == ["0.0", "0.0", "1.5", "1.5"]


@pytest.mark.parametrize(
    ("column", "read"),
    [
        (pa.array([0.1, 0.3, 3.4028235e38, 1e-45], pa.float32()), float),
        (pa.array([5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.5]), float),
        (pa.array([-(2**63), -(2**63) + 1, 2**63 - 1, 2**63 - 2], pa.int64()), int),
        (pa.array([0, 1, 2**63 - 1, 2**63 - 2], pa.uint64()), int),
    ],
    ids=lambda column: str(getattr(column, "type", "")),
)
def test_extremes_are_within_their_ranges(column: pa.Array, read: Any) -> None:
    assert_covered(released(column)["q"].to_pylist(), column.to_pylist(), read)


def test_whole_numbers_beyond_64_bits_with_a_sign_are_refused() -> None:
    with pytest.raises(InputError, match="column 'q' holds numbers or dates that 64 bits cannot hold exactly"):
        released(pa.array([2**63, 1], pa.uint64()))


# Rules


def fitted(column: pa.Array, **asked: Any) -> sfumato.Recoding:
    by_column = {key: {"q": asked.pop(key)} for key in ("round",) if key in asked}
    return sfumato.fit(pa.table({"q": column}), quasi_identifiers=["q"], k=2, **by_column, **asked)


def test_rules_of_decimals_are_exact_and_read_back(tmp_path: Path) -> None:
    column = decimals(["2.55", "2.56", "2.80", "2.81"])
    recoding = fitted(column, form="bounds")
    again = sfumato.Recoding.load(recoding.write(tmp_path / "rules.json"))
    assert again.to_json() == recoding.to_json()
    assert json.loads(recoding.to_json())["columns"][0]["bounds"] == ["2.55", "2.56", "2.81"]
    for other in (
        column,
        pa.array([2.55, 2.56, 2.80, 2.81]),
        decimals(["2.550", "2.56", "2.8", "2.81"], pa.decimal128(9, 3)),
    ):
        shown = again.transform(pa.table({"q": other}))
        assert shown["q"].to_pylist() == ["[2.55..2.56]"] * 2 + ["[2.56..2.81]"] * 2
        assert shown["q_max"].to_pylist() == [Decimal("2.56")] * 2 + [Decimal("2.81")] * 2


def test_a_decimal_finer_than_the_rules_is_in_the_region_that_holds_it() -> None:
    recoding = fitted(decimals(["2.5", "2.6", "2.8", "2.9"]))
    finer = decimals(["2.599", "2.601", "2.499", "2.901", "2.6"], pa.decimal128(9, 3))
    assert recoding.regions_of(pa.table({"q": finer})).tolist() == [0, 1, -1, -1, 0]
    floats = fitted(pa.array([2.5, 2.6, 2.8, 2.9]))
    assert floats.regions_of(pa.table({"q": finer})).tolist() == [0, 1, -1, -1, 0]
    beyond = decimals(["2.60000000000000000001", "2.5"], pa.decimal128(38, 20))
    with pytest.raises(InputError, match="64 bits"):
        floats.regions_of(pa.table({"q": beyond}))
    tiny = decimals(["2.55", "0.0000000000000000000001"], pa.decimal128(38, 22))
    with pytest.raises(InputError, match="64 bits"):
        recoding.regions_of(pa.table({"q": tiny}))
    small = decimals(["0", "0.0000000000000000000001"], pa.decimal128(38, 22))
    around_zero = fitted(decimals(["-1", "0", "1", "2"], pa.decimal128(5, 1)))
    assert around_zero.regions_of(pa.table({"q": small})).tolist() == [0, 1]
    whole = fitted(pa.array([2, 3, 8, 9]))
    assert whole.regions_of(pa.table({"q": decimals(["3.00", "3.01", "8"])})).tolist() == [0, -1, 1]


@given(
    learnt=st.lists(st.integers(-400, 400), min_size=4, max_size=12, unique=True),
    scale=st.integers(0, 4),
    as_floats=st.booleans(),
    applied=st.lists(st.tuples(st.integers(-40_000, 40_000), st.integers(0, 5)), min_size=1, max_size=12),
)
def test_a_region_of_rules_holds_the_decimals_that_it_is_given(
    learnt: list[int], scale: int, as_floats: bool, applied: list[tuple[int, int]]
) -> None:
    numbers = [Decimal(number).scaleb(-scale) for number in learnt]
    kind = pa.float64() if as_floats else pa.decimal128(9, scale)
    recoding = fitted(pa.array(list(map(float, numbers)) if as_floats else numbers, kind))
    others = [Decimal(number).scaleb(-places) for number, places in applied]
    column = pa.array(others, pa.decimal128(12, 5))
    regions = recoding.regions_of(pa.table({"q": column})).tolist()
    assert_covered([recoding.labels()[region][0] if region >= 0 else "*" for region in regions], others, Decimal)
    whole_only = scale == 0 and not as_floats
    for region, other in zip(regions, others, strict=True):
        inside = min(numbers) <= other <= max(numbers) and (other == other // 1 or not whole_only)
        assert (region >= 0) == inside


def test_rules_of_nanoseconds_and_zones_read_back(tmp_path: Path) -> None:
    column = pa.array([-7, -5, 10**9 + 1, 10**9 + 3], pa.timestamp("ns", "Asia/Kolkata"))
    recoding = fitted(column)
    again = sfumato.Recoding.load(recoding.write(tmp_path / "rules.json"))
    table = pa.table({"q": column})
    assert again.transform(table).equals(recoding.transform(table))
    assert_covered(again.transform(table)["q"].to_pylist(), column.cast(pa.int64()).to_pylist(), nanoseconds)
    with pytest.raises(UsageError, match="nanoseconds"):
        again.to_sql("duckdb", "t")


@pytest.mark.parametrize("form", ["labels", "bounds"])
@pytest.mark.parametrize("kind", [MONEY, pa.timestamp("us", "Europe/Berlin")], ids=str)
def test_the_query_of_rules_gives_what_the_rules_give(form: str, kind: pa.DataType) -> None:
    column = decimals(["2.55", "2.56", "2.80", "2.81"]) if pa.types.is_decimal(kind) else pa.array([0, 1, 7, 9], kind)
    recoding, table = fitted(column, form=form), pa.table({"q": column})
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Europe/Berlin'")
        connection.register("given", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
        rows = connection.sql(recoding.to_sql("duckdb", "t")).to_arrow_table().to_pylist()
    assert sorted(rows, key=str) == sorted(recoding.transform(table).to_pylist(), key=str)


def test_damaged_rules_of_decimals_are_refused() -> None:
    text = fitted(decimals(["2.55", "2.56", "2.80", "2.81"])).to_json()
    for damage in (
        ('"scale": 2', '"scale": 99'),
        ('"2.55"', '"2.555"'),
        ('"2.55"', "2.55"),
        ('"bits": 128', '"bits": 9'),
    ):
        with pytest.raises(InputError, match="damaged"):
            sfumato.Recoding.from_json(text.replace(*damage))


# Statistics, selections


def test_means_of_decimals_and_of_nanoseconds_are_exact() -> None:
    prices = decimals(["0.10", "0.20", "0.30", "0.40", "0.50", "9", "9", "9", "9", "9"])
    assert means(prices, 0.01) == [0.3] * 5 + [9.0] * 5
    moments = pa.array([10**9, 2 * 10**9, 3 * 10**9, 4 * 10**9, 5 * 10**9 + 5, *[10**15] * 5], pa.timestamp("ns"))
    assert means(moments, 1)[0] == datetime.datetime(1970, 1, 1, 0, 0, 3)


def means(column: pa.Array, grid: float) -> list[Any]:
    policy = sfumato.Policy.from_dict(
        {
            "columns": {"q": {"role": "quasi-identifier", "statistic_round": grid}},
            "privacy": {"k": 5},
            "release": {"form": "statistics", "keep_order": True},
        }
    )
    found: list[Any] = sfumato.anonymize(pa.table({"q": column}), policy=policy).data["q_mean"].to_pylist()
    return found


def test_selections_and_bins_compare_decimals_exactly() -> None:
    domain = profile_column(
        open_source(pa.table({"q": PRICES}), InputOptions()),
        "q",
        pa.chunked_array([PRICES]),
        ColumnSettings(role="quasi-identifier"),
        InputOptions(),
        None,
    ).domain
    boxes = SelectionBoxes.of([Selection(where=where) for where in ("q >= 2.56", "q = 2.55", "q < 2.8")], [domain])
    assert list(zip(boxes.low[:, 0].tolist(), boxes.high[:, 0].tolist(), strict=True)) == [(1, 3), (0, 0), (0, 1)]
    assert cell_bounds(domain, ["2.56", 2.8]).tolist() == [0, 1, 2, 4]
