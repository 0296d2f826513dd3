"""Upright bars, tables of figures, and rings around points."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from sfumato.errors import UsageError
from sfumato.pictures.bars import RankedBar, histogram, ranked_bars
from sfumato.pictures.curves import curves
from sfumato.pictures.grouped_bars import Stack, grouped_bars, stacked_bars
from sfumato.pictures.interval_chart import EstimateGroup, NamedEstimate
from sfumato.pictures.number_table import TableCell, number_table
from sfumato.pictures.picture import Picture
from sfumato.pictures.theme import LIGHT
from sfumato.texts import texts_in

SVG = "{http://www.w3.org/2000/svg}"
GROUPS = [
    EstimateGroup(
        "C2", [NamedEstimate("ours", 0.9, 0.8, 1.0, "0.90"), NamedEstimate("other", 0.7, None, None, "0.70")]
    ),
    EstimateGroup("C4", [NamedEstimate("ours", 0.6, 0.5, 0.7, "0.60")]),
]


def elements(picture: Picture, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(picture.svg).iter(f"{SVG}{tag}"))


def texts(picture: Picture) -> set[str]:
    return {element.text or "" for element in elements(picture, "text")}


def heights(picture: Picture, colour: str) -> list[float]:
    """The heights of the bars of one colour, from left to right."""
    shapes = [path.get("d") or "" for path in elements(picture, "path") if path.get("fill") == colour]
    found = (re.search(r"v([\d.]+)h-", shape) for shape in shapes)
    return [float(match[1]) for match in found if match]


def test_bars_are_as_high_as_their_values_above_the_beginning_of_the_axis() -> None:
    picture = grouped_bars(GROUPS, title="Tree", x_title="function", y_title="accuracy", y_from=0.4)
    first, second = heights(picture, LIGHT.series[0])[:2]
    (other, *_) = heights(picture, LIGHT.series[1])
    assert second / first == pytest.approx((0.6 - 0.4) / (0.9 - 0.4), abs=0.01)
    assert other / first == pytest.approx((0.7 - 0.4) / (0.9 - 0.4), abs=0.01)
    assert {"C2", "C4", "ours", "other", "function", "accuracy", "Tree"} <= texts(picture)
    assert picture.description == "accuracy by function. C2: ours 0.90, other 0.70; C4: ours 0.60."


def test_an_interval_is_a_line_and_only_where_there_is_one() -> None:
    picture = grouped_bars(GROUPS, title="Tree", x_title="function", y_title="accuracy")
    rules = [line for line in elements(picture, "line") if line.get("stroke") == LIGHT.ink]
    assert len(rules) == 2


def test_a_bar_that_would_end_below_the_axis_is_refused() -> None:
    with pytest.raises(UsageError, match=r"below 0\.65, where the axis begins"):
        grouped_bars(GROUPS, title="Tree", x_title="function", y_title="accuracy", y_from=0.65)


def test_the_parts_of_a_stack_stand_on_each_other_in_their_order() -> None:
    stacks = [Stack("1,000", {"user": 2.0, "system": 1.0}), Stack("2,000", {"user": 4.0, "system": 0.5})]
    picture = stacked_bars(stacks, title="Time", x_title="records", y_title="seconds", top=10)
    user, system = heights(picture, LIGHT.series[0])[:2], heights(picture, LIGHT.series[1])[:2]
    assert user[1] / user[0] == pytest.approx(2.0, abs=0.02)
    assert system[0] / user[0] == pytest.approx(0.5, abs=0.02)
    alone = stacked_bars(stacks, title="Time", x_title="records", y_title="seconds")
    assert heights(alone, LIGHT.series[0])[0] > 2 * user[0], "without a common end the axis ends at the highest bar"


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to draw"):
        grouped_bars([EstimateGroup("C2", [])], title="Tree", x_title="function", y_title="accuracy")
    with pytest.raises(UsageError, match="nothing to draw"):
        stacked_bars([], title="Time", x_title="records", y_title="seconds")


def test_a_table_has_its_cells_and_a_ground_for_those_that_are_marked() -> None:
    rows = [
        ("100", [TableCell("68 (1384)"), TableCell("x (x)", True)]),
        ("250", [TableCell("0 (0)"), TableCell("2 (32)")]),
    ]
    picture = number_table("n", ["k = 10", "k = 100"], rows, title="Pruned", key="not minimal")
    assert {"n", "k = 10", "100", "68 (1384)", "x (x)", "2 (32)", "not minimal"} <= texts(picture)
    grounds = [path for path in elements(picture, "path") if path.get("fill") == LIGHT.amounts[0]]
    assert len(grounds) == 2, "the marked cell, and the key that explains it"
    assert picture.description.startswith("n 100: k = 10 68 (1384), k = 100 x (x); n 250")


def test_a_table_with_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(UsageError, match="a cell for every column"):
        number_table("n", ["k = 10", "k = 100"], [("100", [TableCell("1")])], title="Pruned")


def test_circled_points_have_a_ring_around_their_symbol() -> None:
    rows = [{"method": "m", "k": k, "gcp": k / 10} for k in (1, 2, 3)]
    plain, ringed = curves(rows, title="Loss"), curves(rows, title="Loss", circled=[(2, 0.2)])

    def rings(picture: Picture) -> int:
        return sum(
            path.get("stroke") == LIGHT.ink and path.get("stroke-width") == "1.8" for path in elements(picture, "path")
        )

    assert (rings(plain), rings(ringed)) == (0, 1)


def test_ranked_bars_stand_from_the_least_to_the_most_and_equal_ones_keep_their_order() -> None:
    rows = [RankedBar("c", 3.0, "3"), RankedBar("b", 1.0, "1"), RankedBar("a", 1.0, "1", marked=True)]
    picture = ranked_bars(rows, title="Loss")
    assert picture.description == "Loss. b 1; a 1; c 3."
    first, second, third = (picture.svg.index(f">{name}</text>") for name in ("b", "a", "c"))
    assert first < second < third
    with pytest.raises(UsageError, match="there is nothing to draw"):
        ranked_bars([], title="Loss")


@pytest.mark.parametrize("language", ["en", "de"])
def test_labels_of_dates_say_the_month_of_the_language_and_stand_apart(language: str) -> None:
    day = 86_400_000.0
    edges = [(19_723 + 30.5 * month) * day for month in range(25)]  # two years from 2024 on
    picture = histogram(
        edges,
        [float(month) for month in range(24)],
        title="t",
        x_title="x",
        y_title="y",
        description="d",
        along="date",
        say=texts_in(language),
    )
    labels = re.findall(r'translate\(([0-9.]+),[0-9.]+\)"[^>]*>([A-Z][a-zäö]+ 20[0-9]{2})</text>', picture.svg)
    places = [float(place) for place, _ in labels]
    assert 3 <= len(labels) <= 9
    assert all(after - before > 8 * 6.4 for before, after in pairwise(places))
    assert {text.split()[0] for _, text in labels} <= {*MONTHS[language]}


MONTHS = {
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "de": ["Jan", "Feb", "Mrz", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"],
}
