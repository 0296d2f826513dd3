"""How the benchmarks count what peers lose, and how they print."""

from __future__ import annotations

import sys

import pandas
import pytest

from benchmarks import process_usage
from benchmarks.markdown import table
from benchmarks.peer import _expanded
from benchmarks.peer_loss import (
    ancestor_penalty,
    band_penalty,
    global_certainty_penalty,
    node_penalty,
    range_penalty,
    set_penalty,
)
from benchmarks.peers import OURS, _ratios

COUNTRIES = [
    ["France", "Europe", "*"],
    ["Spain", "Europe", "*"],
    ["Japan", "Asia", "*"],
    ["Other", "Other", "*"],
]
AGES = [[str(age), f"[{age // 5 * 5}-{age // 5 * 5 + 4}]", "*"] for age in range(15, 30)]


@pytest.mark.parametrize(
    ("label", "expected"), [("France", 0.0), ("Europe", 0.5), ("Asia", 0.0), ("Other", 0.0), ("*", 1.0)]
)
def test_a_group_costs_its_share_of_the_leaves(label: str, expected: float) -> None:
    assert node_penalty(COUNTRIES)(label) == expected


@pytest.mark.parametrize(("label", "expected"), [("France", 0.0), ("Japan,France", 0.5), ("France,Japan,Spain", 0.75)])
def test_a_set_costs_its_size_and_not_its_common_ancestor(label: str, expected: float) -> None:
    assert set_penalty(4)(label) == expected


@pytest.mark.parametrize(
    ("label", "expected"), [("20", 0.0), ("20-25", 0.5), ("17-27", 1.0), ("0-99", 1.0), ("20.0-22.5", 0.25)]
)
def test_a_range_costs_its_extent_within_the_data(label: str, expected: float) -> None:
    assert range_penalty(17, 27)(label) == expected


@pytest.mark.parametrize(("label", "expected"), [("Japan", 0.0), ("Spain,France", 0.5), ("France,Japan", 1.0)])
def test_a_set_counted_by_the_taxonomy_costs_the_smallest_group_that_holds_it(label: str, expected: float) -> None:
    assert ancestor_penalty(COUNTRIES)(label) == expected


def test_a_range_may_begin_below_zero() -> None:
    assert range_penalty(-10, 10)("-5--3") == 0.1
    assert range_penalty(-10, 10)("-5") == 0.0


@pytest.mark.parametrize(("label", "expected"), [("18", 0.0), ("[20-24]", 0.4), ("[15-19]", 0.2), ("*", 1.0)])
def test_a_band_costs_nothing_outside_of_the_data(label: str, expected: float) -> None:
    assert band_penalty(AGES, 17, 27)(label) == expected


def test_a_label_that_no_peer_should_release_is_refused_without_being_shown() -> None:
    for penalty in (node_penalty(COUNTRIES), range_penalty(0, 9), band_penalty(AGES, 17, 27)):
        with pytest.raises(ValueError, match="a peer released something") as refusal:
            penalty("secret")
        assert "secret" not in str(refusal.value)


def test_records_of_peers_are_told_one_by_one_whether_their_labels_are_in_lists_or_not() -> None:
    for age in ([["20-25"], ["17"]], ["20-25", "17"]):
        rows = _expanded(pandas.DataFrame({"age": age, "ill": ["flu", "cold"], "count": [2, 1]}), ["age"])
        assert rows["age"].tolist() == ["20-25", "20-25", "17"]


def test_seconds_are_set_beside_the_default_method_and_mondrian() -> None:
    ours = [{"by": f"sfumato {method}", "seconds": seconds} for method, seconds in zip(OURS, (2, 1, 4, 8), strict=True)]
    assert _ratios({"by": "a peer", "seconds": 40.0}, ours) == {"times auto": 20.0, "times mondrian": 10.0}
    assert _ratios({"by": "a peer", "seconds": None}, ours) == {"times auto": None, "times mondrian": None}


def test_a_record_that_was_left_out_costs_one_on_every_attribute() -> None:
    columns = {"age": ["20-25", "20-25", "17"], "country": ["France,Spain", "France,Spain", "Japan"]}
    penalties = {"age": range_penalty(17, 27), "country": set_penalty(4)}
    assert global_certainty_penalty(columns, penalties, records=4) == (2 * 0.5 + 1 + 2 * 0.5 + 1) / 8


def test_a_table_puts_numbers_on_the_right_and_leaves_gaps_empty() -> None:
    rows = [{"method": "one", "k": 5, "GCP": 0.05021}, {"method": "a|b", "k": 1000, "GCP": None}]
    assert table(rows).splitlines() == [
        "| method |     k |    GCP |",
        "| ------ | ----: | -----: |",
        "| one    |     5 | 0.0502 |",
        "| a\\|b   | 1,000 |        |",
    ]


def test_the_peak_of_a_child_is_its_own_and_not_that_of_its_parent() -> None:
    ballast = bytearray(400_000_000)
    ballast[::4096] = b"x" * len(ballast[::4096])
    usage = process_usage.run_child([sys.executable, "-c", "work = b'x' * 60_000_000"], {})
    assert len(ballast) == 400_000_000
    assert usage.exit == 0
    assert 60_000_000 < usage.peak_bytes < 200_000_000


def test_a_child_that_fails_is_an_error() -> None:
    with pytest.raises(SystemExit, match="exit code 3"):
        process_usage.run_child([sys.executable, "-c", "raise SystemExit(3)"], {})
