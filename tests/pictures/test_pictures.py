"""Pictures: one theme, curves, the classes of a release, and the command that draws them."""

from __future__ import annotations

import datetime
import json
import math
import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from conftest import FrameKind
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.cli import main
from sfumato.errors import InputError, OutputError, TaxonomyError, UsageError
from sfumato.pictures.axes import DAY, GAP, STRIP, THINNEST, Axis, axis_of
from sfumato.pictures.bars import Bar, MarkedLine, bars, histogram
from sfumato.pictures.classes import amount_bounds, chosen_axes, draw_classes, mean_depth, merge_rectangles
from sfumato.pictures.curves import curves, log_ticks, spread_apart
from sfumato.pictures.heat_map import difference_map, heat_map
from sfumato.pictures.picture import Picture, side_by_side
from sfumato.pictures.svg_marks import LETTER, fit_text
from sfumato.pictures.theme import DARK, LIGHT, Theme, theme_named
from sfumato.pictures.trees import Branch, tree
from sfumato.policy import ColumnSettings, Grouping
from sfumato.taxonomies.taxonomy import Taxonomy, grow

SVG = "{http://www.w3.org/2000/svg}"
LENGTH = 100.0


def parsed(picture: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(picture.svg)


def texts(picture: Picture) -> list[str]:
    return ["".join(element.itertext()) for element in parsed(picture).iter(f"{SVG}text")]


def filled(picture: Picture, theme: Theme = LIGHT) -> list[ElementTree.Element]:
    """The rectangles of classes, the lowest first."""
    return [
        path
        for path in parsed(picture).iter(f"{SVG}path")
        if path.get("fill") in theme.amounts and path.get("fill-opacity") is not None and path.get("transform") is None
    ]


def box(path: ElementTree.Element) -> tuple[float, float, float, float]:
    """Left, top, width and height of a path as Vega writes rectangles: M x,y h width v height h -width Z."""
    found = (path.get("d") or "").removeprefix("M").removesuffix("Z").replace("h", ",").replace("v", ",").split(",")
    left, top, width, height = (float(number) for number in found[:4])
    return left, top, width, height


def continents() -> Taxonomy:
    leaves = ["Austria", "Italy", "Peru", "Chile", "Brazil"]
    groups = [["Europe", "Europe", "America", "America", "America"]]
    return grow(leaves, groups, groups)[0]


def drawn(sizes: list[int], x: list[object], y: list[object], theme: Theme = LIGHT) -> Picture:
    """Classes with these sizes and released values."""
    shown = np.arange(len(sizes))
    return draw_classes(np.array(sizes), axis_of("x", x, 600), shown, axis_of("y", y, 460), shown, theme)


# The theme


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


# Machado, Oliveira and Fernandes 2009, the strongest of each kind, on linear colours.
SEEN_BY = {
    "all cones": np.eye(3),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no blue": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def oklab(colour: str, seen: np.ndarray) -> np.ndarray:
    channels = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    cones = np.array([[0.41222, 0.53633, 0.05145], [0.21190, 0.68070, 0.10740], [0.08830, 0.28172, 0.62998]])
    mixed = np.array([[0.21045, 0.79362, -0.00407], [1.97800, -2.42859, 0.45059], [0.02590, 0.78277, -0.80868]])
    return mixed @ np.cbrt(cones @ np.clip(seen @ linear, 0, 1))


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_text_and_series_stand_out_against_the_background(theme: Theme) -> None:
    assert min(contrast(colour, theme.background) for colour in (theme.ink, theme.soft)) >= 4.5
    assert min(contrast(colour, theme.background) for colour in theme.series) >= 3
    verdicts = (theme.good, theme.bad, theme.unsure)
    assert min(contrast(colour, ground) for colour in verdicts for ground in (theme.background, theme.band)) >= 4.5
    assert contrast(theme.soft, theme.band) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
@pytest.mark.parametrize("eye", SEEN_BY)
def test_series_differ_for_every_kind_of_colour_vision(theme: Theme, eye: str) -> None:
    places = [oklab(colour, SEEN_BY[eye]) for colour in theme.series]
    assert len(places) == 8
    assert min(float(np.linalg.norm(one - other)) for one, other in combinations(places, 2)) > 0.085


def test_amounts_grow_darker_on_light_and_lighter_on_dark() -> None:
    light, dark = ([luminance(colour) for colour in theme.amounts] for theme in (LIGHT, DARK))
    assert light == sorted(light, reverse=True)
    assert dark == sorted(dark)
    assert contrast(LIGHT.amounts[-1], LIGHT.background) > 7
    assert contrast(DARK.amounts[-1], DARK.background) > 7


def test_an_unknown_theme_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"unknown theme 'drak'. Did you mean 'dark'"):
        theme_named("drak")


# Where released values stand


def test_whole_numbers_reach_halfway_to_their_neighbours() -> None:
    axis = axis_of("age", ["[20..29]", "31"], LENGTH)
    assert axis.spans.tolist() == [[19.5, 29.5], [30.5, 31.5]]
    assert (axis.kind, axis.whole, axis.low, axis.high, axis.end) == ("numeric", True, 19.5, 31.5, 31.5)


def test_other_numbers_stand_where_they_are() -> None:
    axis = axis_of("height", ["[1.5..2]", "-1.25", 2.0], LENGTH)
    assert axis.spans.tolist() == [[1.5, 2.0], [-1.25, -1.25], [2.0, 2.0]]


def test_a_date_takes_its_day() -> None:
    axis = axis_of("born", ["[1970-01-02..1970-01-03]", datetime.date(1970, 1, 5)], LENGTH)
    assert axis.kind == "date"
    assert axis.spans.tolist() == [[DAY, 3 * DAY], [4 * DAY, 5 * DAY]]


def test_a_moment_is_a_point_in_time() -> None:
    axis = axis_of("seen", ["[1970-01-01T00:00:01..1970-01-01T00:00:02.500000]"], LENGTH)
    assert axis.spans.tolist() == [[1000.0, 2500.0]]


def test_what_is_too_thin_is_drawn_as_thick_as_can_be_seen_around_its_middle() -> None:
    axis = axis_of("income", ["0", "1000", "[100..900]"], LENGTH)
    least = THINNEST * (axis.end - axis.low) / LENGTH
    widths = np.diff(axis.drawn(), axis=1)[:, 0]
    assert widths.tolist() == pytest.approx([least, least, 801])
    assert axis.drawn()[0].mean() == pytest.approx(0)


def test_the_whole_domain_and_null_have_a_strip_each_behind_the_values() -> None:
    axis = axis_of("age", ["[0..9]", None, "*", float("nan"), "NA"], LENGTH, nulls=["NA"])
    unit = 10 / (LENGTH - 2 * (STRIP + GAP))
    whole = [9.5 + GAP * unit, 9.5 + (GAP + STRIP) * unit]
    null = [9.5 + (2 * GAP + STRIP) * unit, 9.5 + 2 * (GAP + STRIP) * unit]
    assert axis.spans == pytest.approx(np.array([[-0.5, 9.5], null, whole, null, null]))
    assert [strip.name for strip in axis.strips] == ["*", ""]
    assert [[strip.low, strip.high] for strip in axis.strips] == [pytest.approx(whole), pytest.approx(null)]
    assert axis.end == pytest.approx(null[1])
    assert axis_of("age", ["[0..9]"], LENGTH).strips == ()


def test_an_axis_of_the_whole_domain_alone_has_no_strip() -> None:
    axis = axis_of("city", ["*"], LENGTH)
    assert axis.strips == ()
    assert axis.spans.tolist() == [[axis.low, axis.high]]


def test_groups_take_the_room_of_their_leaves_in_the_order_of_the_taxonomy() -> None:
    released = ["Europe", "Chile", "*", "America", "Peru", "Brazil", "Austria", "Italy"]
    axis = axis_of("country", released, LENGTH, taxonomy=continents())
    (strip,) = axis.strips
    assert 5 < strip.low < strip.high
    spans = [[0, 2], [3, 4], [strip.low, strip.high], [2, 5], [2, 3], [4, 5], [0, 1], [1, 2]]
    assert axis.spans.tolist() == spans
    assert axis.labels is not None
    assert axis.labels.texts == ["Austria", "Italy", "Peru", "Chile", "Brazil"]
    assert axis.labels.borders == [1, 2, 3, 4]


def test_a_value_that_is_hidden_in_a_group_is_not_named_beside_the_axis() -> None:
    axis = axis_of("country", ["Europe", "Chile", "Peru", "Brazil", "*"], LENGTH, taxonomy=continents())
    assert axis.labels is not None
    assert axis.labels.texts == ["Europe", "Peru", "Chile", "Brazil"]
    hidden = axis_of("country", ["Europe", "Chile", "*"], LENGTH, taxonomy=continents())
    assert hidden.labels is not None
    assert hidden.labels.texts == ["Europe", "America"]


def test_names_are_of_groups_where_there_is_no_room_for_leaves() -> None:
    axis = axis_of("country", ["Europe"], 50, taxonomy=continents())
    assert axis.labels is not None
    assert (axis.labels.texts, axis.labels.middles) == (["Europe", "America"], [1.0, 3.5])


def test_categories_without_a_taxonomy_stand_in_the_order_of_their_names() -> None:
    axis = axis_of("city", ["Wien", "Graz", "Linz"], LENGTH)
    assert axis.spans.tolist() == [[2, 3], [0, 1], [1, 2]]


def test_many_names_leave_each_other_room() -> None:
    axis = axis_of("city", [f"c{number:03}" for number in range(500)], LENGTH)
    assert axis.labels is not None
    assert 2 <= len(axis.labels.middles) <= 8
    assert min(after - before for before, after in pairwise(axis.labels.middles)) * LENGTH / 500 >= 14


def test_prefixes_take_the_room_of_the_released_values_under_them() -> None:
    column = ColumnSettings(role="quasi-identifier", taxonomy=Grouping(prefix=(1, 2)))
    axis = axis_of("zip", ["1***", "10**", "1020", "8***", "1010", "12**"], LENGTH, column=column)
    assert axis.labels is not None
    assert axis.labels.texts == ["1010", "1020", "12**", "8***"]
    assert axis.spans.tolist() == [[0, 3], [0, 2], [1, 2], [3, 4], [0, 1], [2, 3]]


def test_codes_with_leading_zeros_and_columns_said_to_be_categorical_are_no_numbers() -> None:
    categorical = ColumnSettings(role="quasi-identifier", type="categorical")
    assert axis_of("zip", ["0123", "4567"], LENGTH).kind == "categorical"
    assert axis_of("ward", ["1", "2"], LENGTH, column=categorical).kind == "categorical"
    assert axis_of("ward", ["1", "2"], LENGTH).kind == "numeric"


def test_an_axis_of_nothing_but_the_whole_domain_has_one_place() -> None:
    axis = axis_of("age", ["*", "*"], LENGTH, column=ColumnSettings(role="quasi-identifier", type="numeric"))
    assert axis.spans.tolist() == [[0, 1], [0, 1]]
    assert axis.labels is not None
    assert axis.labels.texts == ["*"]


@pytest.mark.parametrize(
    "values, options, says",
    [
        (
            ["zzsecretzz", "1"],
            {"column": ColumnSettings(role="quasi-identifier", type="numeric")},
            "1 values that are no numer",
        ),
        (["zzsecretzz"], {"column": ColumnSettings(role="quasi-identifier", type="date")}, "1 values that are no date"),
        (["zzsecretzz", "Europe"], {"taxonomy": continents()}, "1 values that its taxonomy does not have"),
        (["1e308", "-1e308"], {}, "is too wide to draw"),
    ],
)
def test_values_that_have_no_place_are_counted_and_not_told(
    values: list[object], options: dict[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says) as caught:
        axis_of("column", values, LENGTH, **options)  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)
    assert "'column'" in str(caught.value)


@given(st.lists(st.tuples(st.integers(-(2**40), 2**40), st.integers(0, 2**40)), min_size=1, max_size=20), st.booleans())
def test_ranges_keep_their_order_and_stay_on_the_axis(ranges: list[tuple[int, int]], null: bool) -> None:
    values: list[object] = [f"[{low}..{low + more}]" for low, more in ranges]
    axis = axis_of("n", [*values, "*", *([None] if null else [])], LENGTH)
    for (low, more), (left, right) in zip(ranges, axis.spans.tolist(), strict=False):
        assert (left, right) == (low - 0.5, low + more + 0.5)
        assert axis.low <= left < right <= axis.high
    assert len(axis.strips) == 1 + null
    assert axis.spans[len(ranges) :].tolist() == [[strip.low, strip.high] for strip in axis.strips]
    assert axis.high < axis.strips[0].low < axis.strips[-1].high == axis.end


# Rectangles and their colours


def test_equal_rectangles_are_one_with_the_sum_of_their_records_and_large_ones_come_first() -> None:
    x = np.array([[0.0, 1.0], [0.0, 5.0], [0.0, 1.0]])
    y = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 1.0]])
    found = merge_rectangles(np.array([3, 4, 10]), x, y)
    assert found.corners.tolist() == [[0, 5, 0, 2], [0, 1, 0, 1]]
    assert found.records.tolist() == [4, 13]


@given(st.integers(1, 10**7), st.integers(0, 10**7), st.integers(2, 8))
def test_steps_of_colour_ascend_from_the_smallest_amount(low: int, more: int, most: int) -> None:
    bounds = amount_bounds(low, low + more, most)
    assert bounds[0] == low
    assert len(bounds) <= most
    assert all(before < after for before, after in pairwise(bounds))
    assert bounds[-1] <= low + more


@pytest.mark.parametrize(
    "low, high, bounds",
    [(5, 5, [5]), (5, 12, [5, 6, 8, 10, 12]), (60, 88, [60, 65, 70, 75, 80, 85]), (10, 377, [10, 20, 50, 100, 200])],
)
def test_steps_of_colour_begin_at_round_numbers(low: int, high: int, bounds: list[int]) -> None:
    assert amount_bounds(low, high, 6) == bounds


def test_the_usual_depth_counts_what_lies_over_each_other() -> None:
    side_by_side = np.array([[0.0, 1.0, 0.0, 1.0], [1.0, 2.0, 0.0, 1.0]])
    assert mean_depth(side_by_side) == 1
    assert mean_depth(np.repeat(side_by_side, 7, axis=0)) == 7
    half = np.array([[0.0, 2.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]])
    assert mean_depth(half) == 1.5


@pytest.mark.parametrize(
    "x, y, axes", [(None, None, ("age", "zip")), ("sex", None, ("sex", "zip")), (None, "zip", ("age", "zip"))]
)
def test_axes_that_nobody_named_are_those_with_the_most_values(
    x: str | None, y: str | None, axes: tuple[str, str]
) -> None:
    assert chosen_axes({"age": 20, "sex": 2, "zip": 30}, x, y) == axes


# The picture of classes


def test_classes_are_drawn_at_their_places_with_the_colour_of_their_size() -> None:
    picture = drawn([10, 90], ["[0..9]", "[10..29]"], ["[0..9]", "[0..19]"])
    large, small = filled(picture)
    assert box(large) == (200, 0, 400, 460)
    assert box(small) == (0, 230, 200, 230)
    assert (small.get("fill"), large.get("fill")) == (LIGHT.amounts[0], LIGHT.amounts[-1])
    assert picture.facts == {"x": "x", "y": "y", "records": 100, "classes": 2, "rectangles": 2}


def test_a_class_of_one_cell_stays_visible_among_thousands_of_values() -> None:
    *_, point = filled(drawn([10, 10], ["[0..100000]", "500"], ["[0..100000]", "700"]))
    assert box(point)[2:] == pytest.approx((THINNEST, THINNEST), abs=0.02)


@pytest.mark.parametrize("count", [30, 3000])
def test_every_class_is_drawn(count: int) -> None:
    low = np.random.default_rng(count).integers(0, 400, (count, 2))
    values = [[f"[{one}..{one + number}]" for number, one in enumerate(column)] for column in low.T.tolist()]
    picture = drawn([5] * count, [*values[0]], [*values[1]])
    assert len(filled(picture)) == count
    assert f"{count:,} classes of 5 records, {5 * count:,} in all" in texts(picture)


def test_the_subtitle_says_how_many_rectangles_stand_for_the_classes() -> None:
    picture = drawn([3, 4, 5], ["1", "1", "2"], ["a", "a", "a"])
    assert "3 classes of 3 to 5 records, 12 in all, on 2 rectangles" in texts(picture)


def test_null_is_named_on_both_axes() -> None:
    picture = drawn([3, 4, 5], [None, "1", "2"], ["a", None, "*"])
    assert texts(picture).count("null") == 2


def test_a_picture_is_one_image_with_a_title_and_a_description() -> None:
    root = parsed(drawn([10], ["1"], ["2"]))
    assert root.get("role") == "img"
    first, second = list(root)[:2]
    assert (first.tag, first.text) == (f"{SVG}title", "Classes by x and y")
    assert second.tag == f"{SVG}desc"
    assert "1 class of 10 records, 10 in all" in (second.text or "")


def test_pictures_on_one_page_share_no_names_and_need_nothing_from_elsewhere() -> None:
    root = parsed(drawn([10, 20], ["1", None], ["2", "*"]))
    assert not [element for element in root.iter() if element.get("id") is not None]
    assert not [element for element in root.iter() if any(name.endswith("href") for name in element.keys())]  # noqa: SIM118


def test_the_same_classes_give_the_same_bytes() -> None:
    first, second = (drawn([10, 20], ["1", "2"], ["a", "b"]) for _ in range(2))
    assert first.svg == second.svg


def test_dark_pictures_have_a_dark_ground() -> None:
    ground = parsed(drawn([10], ["1"], ["2"], DARK)).find(f"{SVG}rect")
    assert ground is not None
    assert ground.get("fill") == DARK.background


def test_names_with_any_character_are_drawn_as_they_are() -> None:
    names: list[object] = ['a"b\\', "<c>&'", "\N{GRINNING FACE}", "d\x02"]
    picture = drawn([5] * 4, names, ["1"] * 4)
    assert {'a"b\\', "<c>&'", "\N{GRINNING FACE}", "d\N{REPLACEMENT CHARACTER}"} <= set(texts(picture))


# Curves

ROWS: list[dict[str, object]] = [
    {"method": "hilbert", "k": 5, "gcp": 0.05},
    {"method": "hilbert", "k": 10, "gcp": 0.08},
    {"method": "mondrian", "k": 5, "gcp": 0.07},
    {"method": "mondrian", "k": 10, "gcp": 0.11},
]


def line_paths(picture: Picture) -> list[str]:
    return [
        path.get("d") or ""
        for path in parsed(picture).iter(f"{SVG}path")
        if path.get("stroke") in LIGHT.series and path.get("stroke-width") == "2"
    ]


def test_every_series_is_a_line_that_is_named_and_described() -> None:
    picture = curves(ROWS, title="Loss", subtitle="a table", y_title="GCP", y_format=".0%")
    assert len(line_paths(picture)) == 2
    assert {"hilbert", "mondrian", "GCP", "k", "5", "10", "10%", "Loss", "a table"} <= set(texts(picture))
    assert picture.description == "GCP against k, one line for each of: hilbert, mondrian."


def test_a_run_that_failed_leaves_the_others() -> None:
    rows = [*ROWS, {"method": "nng", "k": 5, "gcp": None}, {"method": "tds", "k": 5}, {"method": "x", "gcp": math.nan}]
    assert curves(rows, title="Loss").facts["series"] == ["hilbert", "mondrian"]


def test_rows_may_come_in_any_order() -> None:
    assert line_paths(curves(ROWS, title="Loss")) == line_paths(
        curves([ROWS[1], ROWS[3], ROWS[0], ROWS[2]], title="Loss")
    )


def test_a_logarithmic_axis_puts_equal_ratios_at_equal_distances() -> None:
    rows = [{"method": "m", "k": k, "gcp": 1.0} for k in (1, 10, 100)]
    (path,) = line_paths(curves(rows, title="Loss", x_scale="log"))
    first, second, third = (float(point.split(",")[0]) for point in path.removeprefix("M").split("L"))
    assert second - first == pytest.approx(third - second, abs=0.02)


def test_more_series_than_colours_differ_in_their_dashes() -> None:
    rows = [{"method": f"m{number}", "k": k, "gcp": number + k} for number in range(20) for k in (1, 2)]
    picture = curves(rows, title="Loss")
    styles = [
        (path.get("stroke"), path.get("stroke-dasharray"))
        for path in parsed(picture).iter(f"{SVG}path")
        if path.get("stroke") in LIGHT.series and path.get("stroke-width") == "2"
    ]
    assert len(styles) == len(set(styles)) == 20


@pytest.mark.parametrize("rows", [[], [{"method": "m", "k": 5, "gcp": None}]])
def test_nothing_to_draw_is_refused(rows: list[dict[str, object]]) -> None:
    with pytest.raises(UsageError, match="no row has numbers for both 'k' and 'gcp'"):
        curves(rows, title="Loss")


def test_a_single_point_has_a_place() -> None:
    assert texts(curves([{"method": "m", "k": 5, "gcp": 0.0}], title="Loss")).count("m") == 1


def test_a_logarithmic_axis_refuses_zero() -> None:
    with pytest.raises(UsageError, match="logarithmic axis cannot show 'gcp' of 0 or less"):
        curves([{"method": "m", "k": 5, "gcp": 0}], title="Loss", y_scale="log")


@given(st.lists(st.floats(0, 500), min_size=1, max_size=25).map(sorted))
def test_names_beside_lines_never_overlap(wanted: list[float]) -> None:
    places = spread_apart(wanted, 16, 500)
    assert all(after - before >= 16 - 1e-6 for before, after in pairwise(places))
    assert places[0] >= -1e-6
    assert places[-1] <= 500 + 1e-6
    if all(after - before >= 16 for before, after in pairwise(wanted)):
        assert places == pytest.approx(wanted)


def test_names_that_are_pushed_together_stand_around_where_they_belong() -> None:
    assert spread_apart([100, 100, 100, 400], 10, 500) == [90, 100, 110, 400]


@pytest.mark.parametrize(
    "low, high, ticks", [(0.9, 60, [1, 2, 5, 10, 20, 50]), (0.001, 2, [0.001, 0.01, 0.1, 1]), (3, 4, [])]
)
def test_logarithmic_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert log_ticks(low, high) == pytest.approx(ticks)


def test_pictures_beside_each_other_are_as_wide_as_both() -> None:
    one, other = curves(ROWS, title="Loss"), curves(ROWS, title="Time")
    both = parsed(side_by_side([one, other], title="Both", description="Loss and time."))
    widths = [float(parsed(picture).get("width") or 0) for picture in (one, other)]
    assert float(both.get("width") or 0) == sum(widths)
    assert [float(inner.get("x") or 0) for inner in both.findall(f"{SVG}svg")] == [0, widths[0]]


# Files


@pytest.mark.parametrize("name, begin", [("p.svg", b"<svg "), ("p.PNG", b"\x89PNG"), ("p.pdf", b"%PDF")])
def test_the_suffix_says_what_is_written(name: str, begin: bytes, tmp_path: Path) -> None:
    path = curves(ROWS, title="Loss").write(tmp_path / name)
    assert path.read_bytes().startswith(begin)
    assert [left.name for left in tmp_path.iterdir()] == [name]


def test_notebooks_show_the_svg_and_the_repr_is_short() -> None:
    picture = curves(ROWS, title="Loss")
    assert picture._repr_svg_() == picture.svg
    assert repr(picture) == "<Picture: Loss>"


def test_a_picture_goes_only_where_a_picture_can_go(tmp_path: Path) -> None:
    picture = curves(ROWS, title="Loss")
    with pytest.raises(UsageError, match=r"Use one of \.svg, \.png, \.pdf"):
        picture.write(tmp_path / "p.gif")
    with pytest.raises(OutputError, match="does not exist"):
        picture.write(tmp_path / "nowhere" / "p.svg")
    (tmp_path / "d.svg").mkdir()
    with pytest.raises(UsageError, match="is a directory"):
        picture.write(tmp_path / "d.svg")


def test_without_the_drawing_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UsageError, match="pip install vl-convert-python"):
        curves(ROWS, title="Loss")


# Releases

PEOPLE = pa.table(
    {
        "age": [20 + number % 37 for number in range(120)],
        "city": [f"zzcity{number % 7}zz" for number in range(120)],
        "sex": ["mf"[number % 2] for number in range(120)],
        "diagnosis": [f"d{number % 3}" for number in range(120)],
    }
)
ROLES = {"quasi_identifiers": ["age", "city", "sex"], "sensitive": "diagnosis", "k": 10}


@pytest.fixture
def release() -> sfumato.Release:
    with pytest.warns(sfumato.SfumatoWarning):
        return sfumato.anonymize(PEOPLE, **ROLES)  # type: ignore[arg-type]


def test_a_release_its_file_and_its_frame_give_the_same_picture(release: sfumato.Release, tmp_path: Path) -> None:
    file = release.write(tmp_path / "release.csv")
    picture = release.plot("age", "sex")
    assert sfumato.plot(release, "age", "sex").svg == picture.svg
    assert sfumato.plot(file, "age", "sex").svg == picture.svg
    assert sfumato.plot(str(file), "age", "sex").svg == picture.svg
    assert sfumato.plot(release.data, "age", "sex", release.policy).svg == picture.svg
    assert picture.facts["classes"] == release.audit.classes
    assert picture.facts["records"] == 120


def test_every_kind_of_frame_can_be_drawn(frame_kind: FrameKind) -> None:
    frame = frame_kind.make(pa.table({"age": ["[20..29]", "[30..39]"], "sex": ["m", None]}))
    assert sfumato.plot(frame, "age", "sex").facts["rectangles"] == 2


def test_a_picture_shows_no_value_that_the_release_does_not(release: sfumato.Release) -> None:
    released = set(release.data["city"].to_pylist())
    hidden = set(PEOPLE["city"].to_pylist()) - released
    assert hidden
    assert not [name for name in hidden if name in release.plot("city", "age").svg]


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
def test_releases_with_numbers_beside_the_labels_are_drawn_alike() -> None:
    table = PEOPLE.select(["age", "sex"])
    plain, bounds, mean, median = (
        sfumato.anonymize(table, quasi_identifiers=["age", "sex"], k=10, form={"age": form}).plot().svg
        for form in ("labels", "bounds", "mean", "median")
    )
    assert bounds == mean == median == plain


def test_without_a_certificate_the_axes_are_the_quasi_identifiers(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.csv"
    file.write_text("age,sex\n[20..29],m\n[20..29],m\n*,\n")
    assert sfumato.plot(file, "age", "sex").facts["classes"] == 2
    with pytest.raises(UsageError, match="both x and y"):
        sfumato.plot(file, "age")
    with pytest.raises(InputError, match="does not exist"):
        sfumato.plot(tmp_path / "nothing.csv")


@pytest.mark.parametrize(
    "x, y, says",
    [
        ("agee", None, "the picture names the column 'agee', which the table does not have. Did you mean 'age'"),
        ("age", "diagnosis", "'diagnosis' is not a quasi-identifier.*Choose two of 'age', 'city', 'sex'"),
        ("age", "age", "both axes are the column 'age'"),
    ],
)
def test_columns_that_cannot_be_axes_are_refused(x: str, y: str | None, says: str, release: sfumato.Release) -> None:
    with pytest.raises(UsageError, match=says):
        release.plot(x, y)


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
def test_a_release_with_one_quasi_identifier_has_no_such_picture() -> None:
    alone = sfumato.anonymize(PEOPLE.select(["age"]), quasi_identifiers=["age"], k=10)
    with pytest.raises(UsageError, match="the picture needs two quasi-identifiers"):
        alone.plot()


def test_a_release_by_anatomy_has_no_rectangles(tmp_path: Path) -> None:
    with pytest.warns(sfumato.SfumatoWarning):
        separated = sfumato.anonymize(
            PEOPLE, quasi_identifiers=["age", "city", "sex"], sensitive="diagnosis", l=2, method="anatomy"
        )
    with pytest.raises(UsageError, match="its groups are not rectangles"):
        separated.plot()
    file = separated.write(tmp_path / "release.csv")
    with pytest.raises(UsageError, match="its groups are not rectangles"):
        sfumato.plot(file)


def test_a_release_takes_no_other_policy(release: sfumato.Release) -> None:
    with pytest.raises(UsageError, match="knows its policy"):
        sfumato.plot(release, policy=release.policy)


@pytest.fixture
def countries(tmp_path: Path) -> Path:
    """A release whose certificate names a taxonomy that lies elsewhere."""
    (tmp_path / "taxonomies").mkdir()
    rows = "Austria,Europe,*\nItaly,Europe,*\nPeru,America,*\nChile,America,*\n"
    (tmp_path / "taxonomies" / "country.csv").write_text(rows)
    table = pa.table(
        {"age": [number % 9 for number in range(60)], "country": ["Peru", "Italy", "Chile"] * 10 + ["Austria"] * 30}
    )
    policy = sfumato.Policy.from_dict(
        {
            "columns": {
                "age": {"role": "quasi-identifier"},
                "country": {"role": "quasi-identifier", "taxonomy": "taxonomies/country.csv"},
            },
            "privacy": {"k": 3},
        },
        tmp_path,
    )
    policy.save(tmp_path / "policy.toml")
    return sfumato.anonymize(table, policy).write(tmp_path / "release.parquet")


def test_a_taxonomy_puts_categories_in_its_order(countries: Path) -> None:
    policy = sfumato.Policy.load(countries.with_name("policy.toml"))
    picture = sfumato.plot(countries, "country", "age", policy)
    names = [text for text in texts(picture) if text in ("Austria", "Italy", "Peru", "Chile")]
    assert names == ["Austria", "Italy", "Peru", "Chile"]
    assert picture.remarks == ()


def test_a_picture_finds_the_taxonomy_of_its_release(countries: Path) -> None:
    policy = sfumato.Policy.load(countries.with_name("policy.toml"))
    assert sfumato.plot(countries, "country", "age").svg == sfumato.plot(countries, "country", "age", policy).svg


def test_a_picture_without_its_taxonomy_says_so(countries: Path) -> None:
    (countries.parent / "taxonomies" / "country.csv").unlink()
    picture = sfumato.plot(countries, "country", "age")
    assert picture.remarks == ("country in the order of its names: its taxonomy is not available",)
    assert picture.remarks[0] in "".join(texts(picture))


def test_a_taxonomy_that_the_policy_names_must_be_there(countries: Path) -> None:
    policy = sfumato.Policy.load(countries.with_name("policy.toml"))
    (countries.parent / "taxonomies" / "country.csv").unlink()
    with pytest.raises(TaxonomyError, match="there is no such file"):
        sfumato.plot(countries, "country", "age", policy)


# The command


def test_the_command_draws_beside_the_release(countries: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (countries.parent / "taxonomies" / "country.csv").unlink()
    assert main(["plot", str(countries)]) == 0
    target = countries.with_name("release.parquet.classes.svg")
    assert target.read_text() == sfumato.plot(countries).svg
    told = capsys.readouterr().out
    assert "Classes by age and country" in told
    assert "--policy" in told
    assert str(target) in told.replace("\n", "")


def test_the_command_prints_one_json_object(countries: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = countries.with_name("p.svg")
    policy = countries.with_name("policy.toml")
    arguments = ["--x", "country", "--y", "age", "-o", target, "--policy", policy, "--theme", "dark", "--title", "T"]
    assert main(["plot", str(countries), *map(str, arguments), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["x"], told["y"], told["records"], told["file"]) == ("country", "age", 60, str(target))
    assert told["classes"] == sfumato.audit(countries).classes
    root = ElementTree.fromstring(target.read_text())
    assert root.findtext(f"{SVG}title") == "T"
    assert DARK.background in target.read_text()


@pytest.mark.parametrize(
    "arguments, code",
    [
        (["--x", "nobody"], 2),
        (["-o", "p.gif"], 2),
        (["--theme", "blue"], 2),
        (["-o", "nowhere/p.svg"], 4),
        (["--policy", "nothing.toml"], 4),
    ],
)
def test_the_command_ends_with_the_code_of_what_went_wrong(
    arguments: list[str], code: int, countries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(countries.parent)
    before = sorted(countries.parent.rglob("*"))
    assert main(["plot", str(countries), *arguments]) == code
    assert sorted(countries.parent.rglob("*")) == before


def test_a_missing_release_cannot_be_read(tmp_path: Path) -> None:
    assert main(["plot", str(tmp_path / "nothing.csv")]) == 4


@pytest.mark.not_quick
def test_the_drawing_package_is_loaded_only_to_draw() -> None:
    code = (
        "import sys, pyarrow, sfumato, sfumato.cli\n"
        "sfumato.anonymize(pyarrow.table({'a': [1, 2], 'b': [1, 2]}), quasi_identifiers=['a', 'b'], k=2)\n"
        "print('vl_convert' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_axes_hold_no_text_of_theirs_in_their_repr() -> None:
    """Released values may be shown, but a repr ends in logs."""
    axis = axis_of("city", ["zzsecretzz"], LENGTH)
    assert isinstance(axis, Axis)
    assert "zzsecretzz" not in repr(axis)


# Bars, histograms, maps and trees


def boxes(picture: Picture, colour: str) -> list[tuple[float, float, float, float]]:
    return [box(path) for path in parsed(picture).iter(f"{SVG}path") if path.get("fill") == colour]


def test_bars_are_as_long_as_their_records_and_many_values_together_have_none() -> None:
    rows = [
        Bar("a", 40.0),
        Bar("b", 10.0),
        Bar("*", 20.0, special=True),
        Bar("7 others", 90.0, special=True, several=True),
    ]
    picture = bars(rows, title="city")
    lengths = [one[2] for one in boxes(picture, LIGHT.series[0])]
    assert lengths[0] / lengths[1] == pytest.approx(4, rel=1e-3)
    assert [one[2] for one in boxes(picture, LIGHT.line)] == pytest.approx([lengths[0] / 2], rel=1e-3)
    assert texts(picture) == ["city", "a", "40", "b", "10", "*", "20", "7 others", "90"]
    assert "a: 40; b: 10" in picture.description


def test_a_bar_to_compare_with_lies_under_the_other() -> None:
    picture = bars([Bar("a", 30.0, before=60.0)], title="city")
    (after,), (before,) = boxes(picture, LIGHT.series[0]), boxes(picture, LIGHT.series[1])
    assert before[2] / after[2] == pytest.approx(2, rel=1e-3)
    assert before[1] > after[1]


def test_a_long_name_loses_its_middle() -> None:
    assert fit_text("Married with spouse absent", 100) == "Married\N{HORIZONTAL ELLIPSIS}absent"
    assert fit_text("short", 100) == "short"
    for letters in range(4, 40):  # where the room was made for the text and for a gap beside it
        assert fit_text("m" * letters, letters * LETTER + 7 - 7) == "m" * letters


def test_a_histogram_has_a_bar_between_each_two_edges_and_a_line_with_its_name() -> None:
    picture = histogram(
        [0, 1, 3],
        [4, 8],
        title="t",
        x_title="x",
        y_title="y",
        description="d",
        firm=[1, 8],
        line=MarkedLine(2.0, "k = 2"),
        domain=(0, 4),
    )
    strong, faint = boxes(picture, LIGHT.series[0]), boxes(picture, LIGHT.amounts[0])
    assert strong[1][2] / strong[0][2] == pytest.approx(2, rel=1e-2)
    assert strong[1][3] / strong[0][3] == pytest.approx(8, rel=1e-2)
    assert faint[0][3] / strong[0][3] == pytest.approx(3, rel=1e-2)
    assert "k = 2" in texts(picture)


def test_a_map_has_a_field_for_each_pair_the_stronger_the_more_records() -> None:
    picture = heat_map("x", ["a", "b"], "y", ["c", "d"], np.array([[0.0, 1.0], [100.0, 10_000.0]]))
    assert len(boxes(picture, LIGHT.band)) == 2  # one field, and its key in the legend
    assert boxes(picture, LIGHT.amounts[-1])[0][:2] > boxes(picture, LIGHT.amounts[0])[0][:2]
    assert "10,000, have b and d" in picture.description


def test_a_map_of_differences_tells_more_from_less() -> None:
    picture = difference_map("x", ["a", "b", "c"], "y", ["d"], np.array([[-5.0, 0.0, 5.0]]))
    fields = [boxes(picture, LIGHT.differences[place])[0][0] for place in (0, 3, 6)]
    assert fields == sorted(fields)


def test_a_tree_shows_released_nodes_in_bold_with_their_records() -> None:
    picture = tree([Branch("*", 0, 5), Branch("Europe", 1, 0), Branch("Austria", 2, 20)], title="country")
    assert texts(picture) == ["country", "*", "5", "Europe", "Austria", "20"]
    bold = {text.text for text in parsed(picture).iter(f"{SVG}text") if text.get("font-weight") == "600"}
    assert bold == {"country", "*", "Austria"}
    lengths = [one[2] for one in boxes(picture, LIGHT.series[0])]
    assert lengths[1] / lengths[0] == pytest.approx(4, rel=1e-2)
