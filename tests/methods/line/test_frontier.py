"""Frequency l-diverse classes by the moving frontier, against the figures of the paper followed word for word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.methods.line.frontier import frontier_classes

NULL = -1
Table = tuple[list[int], list[int], int]
"""Positions, sensitive values (or NULL), and l."""


def formed(position: Sequence[int], value: Sequence[int], l: int) -> tuple[list[list[int]], int]:
    """The places of each class in the order of their numbers, and the fall-back steps."""
    values = max([*value, 0]) + 1
    codes = np.array([values if one == NULL else one for one in value], np.uint32)
    class_of, classes, fallbacks = frontier_classes(np.array(position, np.int64), codes, values, l)
    assert class_of.dtype == np.int64
    assert len(class_of) == len(value)
    found: list[list[int]] = [[] for _ in range(classes)]
    for place, number in enumerate(class_of.tolist()):
        found[number].append(place)
    return found, fallbacks


def is_eligible(value: Sequence[int], l: int) -> bool:
    known = [one for one in value if one != NULL]
    return len(known) > 0 and max(Counter(known).values()) * l <= len(known)


def expected(position: Sequence[int], value: Sequence[int], l: int) -> tuple[list[list[int]], int]:
    """Fig. 8 and Fig. 9 with a look at every bucket for every record."""
    buckets: dict[int, list[int]] = {}
    for place, one in enumerate(value):
        if one != NULL:
            buckets.setdefault(one, []).append(place)

    def frontier() -> list[int]:
        return sorted(bucket[0] for bucket in buckets.values() if bucket)

    def eligible_without(group: list[int]) -> bool:
        counts = [len(set(bucket) - set(group)) for bucket in buckets.values()]
        return max(counts) * l <= sum(counts)

    def first_eligible(line: list[int]) -> list[int] | None:
        sizes = range(l, len(line) + 1)
        return next((line[:size] for size in sizes if eligible_without(line[:size])), None)

    classes, fallbacks = [], 0
    while frontier():
        group = first_eligible(frontier())
        if group is None:
            fallbacks += 1
            group = first_eligible(sorted(frontier(), key=lambda place: (-len(buckets[value[place]]), place)))
            assert group is not None, "the fall-back step failed"
        for place in group:
            buckets[value[place]].remove(place)
        line = frontier()
        if line:
            a, b = line[0], line[l - 1]
            nearer = abs(position[a] - position[min(group)]) < abs(position[a] - position[b])
            if nearer and value[a] not in [value[place] for place in group] and eligible_without([a]):
                buckets[value[a]].remove(a)
                group = [*group, a]
        classes.append(group)
    joining = nulls_of(position, value, classes)
    return [sorted(group + nulls) for group, nulls in zip(classes, joining, strict=True)], fallbacks


def nulls_of(position: Sequence[int], value: Sequence[int], classes: list[list[int]]) -> list[list[int]]:
    """The nulls that join each class: that of the nearer neighbour on the line which has a value, else the earlier."""
    number_of = {place: number for number, places in enumerate(classes) for place in places}
    joining: list[list[int]] = [[] for _ in classes]
    for place, one in enumerate(value):
        if one == NULL:
            before = sorted(other for other in number_of if other < place)
            after = sorted(other for other in number_of if other > place)
            neighbours = before[-1:] + after[:1]
            nearest = min(neighbours, key=lambda other: (abs(position[other] - position[place]), other))
            joining[number_of[nearest]].append(place)
    return joining


def check_promise(value: Sequence[int], l: int, classes: list[list[int]]) -> None:
    """Every record in one class, no value above 1/l of those that have one, and classes that stay small."""
    assert sorted(place for places in classes for place in places) == list(range(len(value)))
    for places in classes:
        known = [value[place] for place in places if value[place] != NULL]
        assert len(known) > 0
        assert max(Counter(known).values()) * l <= len(known) <= 2 * l


def random_table(generator: np.random.Generator) -> Table:
    """Mostly eligible, often barely; values in any order or in clusters; ties; some nulls."""
    l = int(generator.integers(1, 6))
    most = int(generator.integers(1, 7))
    full, others = int(generator.integers(0, l + 2)), int(generator.integers(0, 8))
    counts = [most] * full + generator.integers(1, most + 1, others).tolist()
    value = [one for one, count in enumerate(counts) for _ in range(count)]
    form = generator.integers(0, 4)
    if form == 0:
        generator.shuffle(value)
    elif form == 1:  # clusters with strays
        value = [one for _, one in sorted((one + generator.normal(scale=1.5), one) for one in value)]
    elif form == 2:
        value.reverse()
    value = value or [0]
    if generator.integers(0, 3) == 0:
        for place in generator.integers(0, len(value) + 1, generator.integers(1, 4)).tolist():
            value.insert(place, NULL)
    gaps = generator.integers(0, int(generator.choice([1, 2, 4, 100])), len(value))
    return (np.cumsum(gaps) - 20).tolist(), value, l


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Eligible, barely so where no other values join the l that have the highest count."""
    l = draw(st.integers(1, 4))
    most = draw(st.integers(1, 5))
    counts = [most] * l + draw(st.lists(st.integers(1, most), max_size=4))
    value = draw(st.permutations([one for one, count in enumerate(counts) for _ in range(count)]))
    for place in draw(st.lists(st.integers(0, len(value)), max_size=3)):
        value.insert(place, NULL)
    gaps = draw(st.lists(st.integers(0, 9), min_size=len(value), max_size=len(value)))
    return np.cumsum(gaps).tolist(), value, l


@given(tables())
def test_classes_are_those_of_the_figures(table: Table) -> None:
    position, value, l = table
    classes, fallbacks = formed(position, value, l)
    assert (classes, fallbacks) == expected(position, value, l)
    check_promise(value, l, classes)


@pytest.mark.not_quick
@pytest.mark.compiled
def test_thousands_of_random_tables_give_the_classes_of_the_figures() -> None:
    generator = np.random.default_rng(20)
    eligible = with_fallback = barely = 0
    for _ in range(6000):
        position, value, l = random_table(generator)
        if not is_eligible(value, l):
            with pytest.raises(ValueError, match="not eligible"):
                formed(position, value, l)
            continue
        classes, fallbacks = formed(position, value, l)
        assert (classes, fallbacks) == expected(position, value, l)
        check_promise(value, l, classes)
        eligible += 1
        with_fallback += fallbacks > 0
        barely += not is_eligible([*value, Counter(one for one in value if one != NULL).most_common(1)[0][0]], l)
    assert eligible > 4000
    assert with_fallback > 500  # otherwise the fall-back step is hardly tested
    assert barely > 500


@pytest.mark.compiled
@pytest.mark.parametrize("l", [2, 3])
def test_every_short_eligible_table_of_three_values_has_classes(l: int) -> None:
    generator = np.random.default_rng(l)
    eligible = 0
    for length in range(1, 9):
        for value in product(range(3), repeat=length):
            position = np.cumsum(generator.integers(0, 4, length)).tolist()
            if is_eligible(value, l):
                eligible += 1
                classes, fallbacks = formed(position, value, l)
                check_promise(value, l, classes)
                assert (classes, fallbacks) == expected(position, value, l)
            else:
                with pytest.raises(ValueError, match="not eligible"):
                    formed(position, value, l)
    # By multinomials. With l = 3 all three occur equally often: 6 tables of length 3 and 90 of length 6.
    assert eligible == {2: 6546, 3: 96}[l]


def test_next_record_joins_where_it_lies_nearer_to_the_class() -> None:
    # Fig. 9: r_4 is nearer to r_1 than to r_6.
    value = [0, 2, 3, 1, 0, 2, 3]
    assert formed([0, 1, 2, 3, 10, 11, 12], value, 3) == ([[0, 1, 2, 3], [4, 5, 6]], 0)
    assert formed([0, 6, 7, 8, 10, 11, 12], value, 3) == ([[0, 1, 2], [3, 4, 5, 6]], 0)


def test_next_record_at_equal_distance_stays_out() -> None:
    assert formed([0, 1, 2, 4, 6, 8, 9], [0, 2, 3, 1, 0, 2, 3], 3) == ([[0, 1, 2], [3, 4, 5, 6]], 0)


def test_next_record_stays_out_where_its_value_is_in_the_class_or_the_rest_would_not_be_eligible() -> None:
    assert formed([0, 0, 0, 50, 50], [0, 1, 0, 2, 1], 2) == ([[0, 1], [2, 3, 4]], 0)
    assert formed([0, 0, 0, 50], [0, 1, 2, 0], 2) == ([[0, 1], [2, 3]], 0)


def test_values_at_the_end_of_the_line_are_taken_by_the_fall_back_step() -> None:
    value = [0, 0, 1, 1, 2, 2, 2, 2]
    assert formed(range(8), value, 2) == ([[0, 4], [2, 5], [1, 6], [3, 7]], 3)


def test_class_takes_every_value_that_must_not_be_left() -> None:
    # Of 8 records, with l = 3, a class of three would leave two of five with one value.
    assert formed(range(8), [0, 1, 2, 3, 0, 1, 2, 3], 3) == ([[0, 1, 2, 3], [4, 5, 6, 7]], 0)


def test_as_many_values_as_l_give_classes_with_each_of_them() -> None:
    assert formed(range(6), [0, 0, 1, 1, 2, 2], 3) == ([[0, 2, 4], [1, 3, 5]], 0)


def test_as_many_records_as_l_are_one_class() -> None:
    assert formed([5, 5, 9, 9], [3, 0, 2, 1], 4) == ([[0, 1, 2, 3]], 0)


def test_one_value_and_l_of_one_give_single_records() -> None:
    assert formed([1, 1, 4], [0, 0, 0], 1) == ([[0], [1], [2]], 0)


def test_ties_on_the_line_go_to_the_earlier_place() -> None:
    assert formed([7] * 6, [2, 1, 0, 0, 1, 2], 2) == ([[0, 1], [2, 4], [3, 5]], 0)


def test_values_that_do_not_occur_change_nothing() -> None:
    position, value = np.arange(6), np.array([4, 900, 4, 900, 4, 900], np.uint32)
    class_of, classes, fallbacks = frontier_classes(position, value, 1000, 2)
    assert (class_of.tolist(), classes, fallbacks) == ([0, 0, 1, 1, 2, 2], 3, 0)


def test_nulls_join_their_nearest_neighbour_and_protect_nobody() -> None:
    position = [0, 1, 2, 3, 10, 11, 12, 13]
    value = [NULL, 0, 1, NULL, NULL, 0, 1, NULL]
    assert formed(position, value, 2) == ([[0, 1, 2, 3], [4, 5, 6, 7]], 0)
    with pytest.raises(ValueError, match="not eligible"):
        formed([0, 1, 2, 3], [0, 0, 1, NULL], 2)


def test_null_between_two_equally_near_records_joins_the_earlier() -> None:
    assert formed([0, 1, 3, 5, 6], [0, 1, NULL, 0, 1], 2) == ([[0, 1, 2], [3, 4]], 0)
    assert formed([0, 0, 0, 0, 0], [0, 1, NULL, 0, 1], 2) == ([[0, 1, 2], [3, 4]], 0)


@pytest.mark.parametrize(
    ("value", "l"),
    [([], 1), ([], 2), ([NULL, NULL], 1), ([0, 1, 2], 4), ([0, 0, 1], 2), ([0, 0], 2), ([0, 1], 0), ([0, 1], -1)],
)
def test_table_that_is_not_eligible_is_refused(value: list[int], l: int) -> None:
    with pytest.raises(ValueError, match="not eligible"):
        formed(range(len(value)), value, l)


def test_arguments_are_left_alone() -> None:
    position, value = np.array([3, 4, 8, 9]), np.array([1, 0, 2, 1], np.uint32)
    frontier_classes(position, value, 2, 1)
    assert position.tolist() == [3, 4, 8, 9]
    assert value.tolist() == [1, 0, 2, 1]


@pytest.mark.compiled
@pytest.mark.parametrize("l", [2, 5, 10])
@pytest.mark.parametrize("values", [50, 5000])
def test_large_tables_in_clusters_hold(values: int, l: int) -> None:
    generator = np.random.default_rng(values + l)
    count = 60_000
    # One value is as frequent as l allows, and the values lie in clusters along the line.
    others = generator.permutation(np.arange(count - count // l) % (values - 1) + 1)
    strayed = others * (count / values) + generator.normal(scale=count / 20, size=len(others))
    value = np.concatenate([others[np.argsort(strayed)], np.zeros(count // l, np.int64)]).astype(np.uint32)
    position = np.sort(generator.integers(0, 1 << 61, count))
    class_of, classes, fallbacks = frontier_classes(position, value, values, l)
    assert fallbacks > 1000
    sizes = np.bincount(class_of, minlength=classes)
    assert sizes.min() >= l
    assert sizes.max() <= 2 * l
    assert sizes.sum() == count
    assert len(np.unique(class_of * values + value)) == count  # no value twice in a class
