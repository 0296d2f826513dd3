"""Cuts by information dependency, against the paper's text in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import sfumato
from sfumato.losses.exact_costs import exact_costs
from sfumato.methods import ClassBatch, Method, Records, method_named
from sfumato.methods.trees import close_k as close_k_module
from sfumato.methods.trees.close_k import DISTINCT, END, SQUARES, START, InformationDependency, _whole
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.tables.coding.domains import Domain, NumericDomain
from sfumato.tables.coding.sorting import Field, bits_for, sort_rows

MEDIAN, CLOSE_K = InformationDependency(point="median"), InformationDependency(point="close-k")
VALUES = InformationDependency(point="values")
MONDRIAN = MondrianMethod(splits="strict")
BOTH = pytest.mark.parametrize("method", [MEDIAN, VALUES, CLOSE_K], ids=lambda method: method.name)
Point = tuple[int, ...]


# ---- the paper's text, naively ----


def dependencies(points: Sequence[Point]) -> list[Decimal]:
    """Eq. 4 to 6, without the common factor 1 / k, to 60 digits."""
    terms = []
    for q in range(len(points[0])):
        ppa = list(Counter(point[q] for point in points).values())
        mean = Fraction(len(points), len(ppa))
        squares = sum(((count - mean) * (count - mean) for count in ppa), Fraction(0))
        variance = squares / max(len(ppa) - 1, 1)
        terms.append((decimal(mean), decimal(variance).sqrt()))
    w1 = max(max(pair) for pair in terms)
    return [w1 * mean + deviation / w1 for mean, deviation in terms]


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def median_point(values: Sequence[int]) -> int:
    """Eq. 7: the largest value of the lower part; below the largest of all where that is in the middle."""
    ascending = sorted(values)
    middle = ascending[(len(ascending) + 1) // 2 - 1]
    if middle == ascending[-1]:
        return max((value for value in ascending if value < middle), default=middle)
    return middle


def middle_value(values: Sequence[int]) -> int:
    """Eq. 7 over the different values: d_1 to d_n are ascending, and n is their number."""
    different = sorted(set(values))
    return different[(len(different) + 1) // 2 - 1]


def close_k_point(values: Sequence[int], k: int) -> int:
    """Eq. 8: the largest value of the lower part."""
    different = sorted(set(values))

    def up_to(value: int) -> int:
        return sum(one <= value for one in values)

    def allowable(value: int) -> bool:
        return k <= up_to(value) <= len(values) - k

    if len(values) <= 3 * k - 1:
        return max(filter(allowable, different), key=lambda one: min(up_to(one), len(values) - up_to(one)), default=-1)
    pre = min(value for value in different if up_to(value) >= k)
    fin = max(value for value in different if sum(one >= value for one in values) >= k)
    if up_to(pre) <= sum(one >= fin for one in values):
        return pre
    return max((value for value in different if value < fin), default=-1)


def naive(points: Sequence[Point], k: int, rule: str) -> list[list[Point]]:
    """The pseudo-code of section III.C; classes from the lower part to the upper."""
    if len(points) >= 2 * k:
        dependency = dependencies(points)
        for q in sorted(range(len(dependency)), key=lambda one: (round(dependency[one], 30), one)):
            values = [point[q] for point in points]
            points_of = {"median": median_point, "values": middle_value}
            cut = points_of[rule](values) if rule in points_of else close_k_point(values, k)
            lower = [point for point in points if point[q] <= cut]
            upper = [point for point in points if point[q] > cut]
            if min(len(lower), len(upper)) >= k:
                return naive(lower, k, rule) + naive(upper, k, rule)
    return [sorted(points)]


def expected(points: Sequence[Point], k: int, rule: str) -> list[list[Point]]:
    with localcontext() as context:
        context.prec = 60
        return naive(points, k, rule)


# ---- the method ----


def records_of(codes: NDArray[Any]) -> Records:
    domains: list[Domain] = [
        NumericDomain(f"q{q}", np.arange(int(codes[:, q].max()) + 1), False) for q in range(codes.shape[1])
    ]
    fields = [Field(codes[:, q], bits_for(domain.size)) for q, domain in enumerate(domains)]
    line = sort_rows(fields, len(codes))
    distinct = np.ascontiguousarray(codes[line.rows[line.starts[:-1]]])
    return Records(distinct, line.starts, line.rows, domains, exact_costs(domains, [1.0] * len(domains), len(codes)))


def partition(method: Method, codes: NDArray[Any], k: int, progress: Progress | None = None) -> ClassBatch:
    requirements = merge_flags(None, quasi_identifiers=["q"], k=k).requirements()
    return ClassBatch.joined(list(method.classes(records_of(codes), requirements, progress or Progress())))


def classes_of(method: InformationDependency, points: Sequence[Point], k: int) -> list[list[Point]]:
    codes = np.array(points, np.uint16)
    batch = partition(method, codes, k)
    found = []
    for place in range(len(batch.low)):
        members = codes[batch.rows[batch.starts[place] : batch.starts[place + 1]]]
        assert members.min(axis=0).tolist() == batch.low[place].tolist()
        assert members.max(axis=0).tolist() == batch.high[place].tolist()
        found.append(sorted(tuple(member) for member in members.tolist()))
    return found


def lattice(seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 20, (100, 2)).astype(np.uint8)


@BOTH
@given(
    points=st.integers(1, 4).flatmap(
        lambda d: st.lists(st.tuples(*[st.sampled_from([0, 1, 2, 3, 5, 9, 40])] * d), min_size=1, max_size=40)
    ),
    k=st.integers(1, 6),
)
def test_classes_are_those_of_the_paper_in_the_order_of_the_cuts(
    method: InformationDependency, points: list[Point], k: int
) -> None:
    k = min(k, len(points))
    assert classes_of(method, points, k) == expected(points, k, method.point)


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_classes_are_those_of_the_paper_on_larger_tables(method: InformationDependency, seed: int) -> None:
    generator = np.random.default_rng(seed)
    normal = np.rint(generator.normal(40, 6, (160, 3))).astype(int)
    skewed = np.minimum(generator.geometric(0.4, (160, 4)), 12)
    distinct = np.stack([generator.permutation(160) for _ in range(2)], axis=1)
    repeated = generator.integers(0, 3, (160, 2))
    for table in (normal, skewed, distinct, repeated, lattice(seed)):
        points = [tuple(row) for row in table.tolist()]
        for k in (2, 7, 30, 81):
            if k <= len(points):
                assert classes_of(method, points, k) == expected(points, k, method.point)


def test_attributes_of_equal_dependency_are_cut_in_their_order() -> None:
    points = [(value, 3 - value) for value in range(4)]
    for method in (MEDIAN, CLOSE_K):
        assert classes_of(method, points, 2) == [points[:2], points[2:]]
        flipped = [(y, x) for x, y in points]
        assert classes_of(method, flipped, 2) == [sorted(flipped)[:2], sorted(flipped)[2:]]


# ---- worked examples ----


def test_mapping_of_six_points_has_four_values_of_two_one_one_and_two_records() -> None:
    ages = np.array([25, 25, 26, 27, 28, 28])
    records = records_of(np.stack([ages, np.arange(6)], axis=1).astype(np.uint8))
    sets = _whole(records, np.diff(records.starts))
    of_age = sets.mapped[0, 0]
    assert of_age[DISTINCT] == 4
    assert sets.ppa[of_age[START] : of_age[END]].tolist() == [2, 1, 1, 2]
    assert of_age[SQUARES] == 10


def test_median_stops_after_one_cut_where_close_k_goes_on() -> None:
    points = [(0, 5), (1, 3), (2, 4), (3, 1), (4, 2), (5, 0)]
    assert classes_of(MEDIAN, points, 2) == [points[:3], points[3:]]
    assert classes_of(CLOSE_K, points, 2) == [points[:2], points[2:4], points[4:]]


def test_attribute_of_more_values_is_cut_first() -> None:
    points = [(q % 2, q) for q in range(8)]
    assert classes_of(MEDIAN, points, 4) == [sorted(points[:4]), sorted(points[4:])]


def test_of_as_many_values_the_attribute_of_more_even_counts_is_cut_first() -> None:
    # The first attribute has its three values four times, twice and twice, the second three times, three times and two.
    points = [(0, 0), (0, 1), (0, 2), (0, 1), (1, 0), (1, 2), (2, 1), (2, 0)]
    for method in (MEDIAN, CLOSE_K):
        for table in (points, [(y, x) for x, y in points]):
            even = 1 if table is points else 0
            lower, upper = classes_of(method, table, 2)[0], classes_of(method, table, 2)[-1]
            assert max(point[even] for point in lower) < min(point[even] for point in upper)
            assert not max(point[1 - even] for point in lower) < min(point[1 - even] for point in upper)


def test_median_is_cut_after_the_value_of_the_middle_record() -> None:
    assert classes_of(MEDIAN, [(0,), (1,), (1,), (1,), (2,), (2,)], 2) == [[(0,), (1,), (1,), (1,)], [(2,), (2,)]]


def test_median_that_is_the_largest_value_is_cut_before_it() -> None:
    assert classes_of(MEDIAN, [(0,), (0,), (1,), (1,), (1,)], 2) == [[(0,), (0,)], [(1,), (1,), (1,)]]


def test_median_that_leaves_fewer_than_k_ends_the_cutting_of_an_attribute() -> None:
    points = [(0,), (0,), (1,), (1,), (1,), (1,), (2,)]
    assert classes_of(MEDIAN, points, 2) == [points]
    assert classes_of(CLOSE_K, points, 2) == [points[:2], points[2:]]


def test_close_k_takes_the_smaller_end() -> None:
    points = [(0,), (0,), (0,), (0,), (1,), (1,), (2,), (3,), (4,), (4,)]
    # Four from below or two from above: those above; then 2 and 3; then six of 4 and 2.
    assert classes_of(CLOSE_K, points, 2) == [points[:4], points[4:6], points[6:8], points[8:]]


def test_close_k_cuts_before_the_upper_end_so_that_no_part_is_too_small() -> None:
    # Cut after the value 2, as the formula for d_fin is printed, nothing would be left above.
    points = [(0,), (0,), (0,), (0,), (0,), (1,), (2,), (2,), (2,)]
    assert classes_of(CLOSE_K, points, 3) == [points[:6], points[6:]]


def test_close_k_makes_the_last_two_parts_as_equal_as_can_be() -> None:
    points = [(value,) for value in range(8)]
    assert [len(one) for one in classes_of(CLOSE_K, points, 3)] == [4, 4]
    points = [(0,), (1,), (2,), (3,), (4,), (4,), (4,), (5,)]
    assert [len(one) for one in classes_of(CLOSE_K, points, 3)] == [4, 4]


@pytest.mark.compiled
def test_on_lattices_close_k_makes_most_classes_and_mondrian_more_than_the_median_of_the_mapping() -> None:
    """Wang 2011 reports 30, 27 and 25. There Mondrian comes last, as it does here with one side of the median alone."""
    sizes = {
        method.name: [np.diff(partition(method, lattice(seed), 3).starts) for seed in range(200)]
        for method in (MONDRIAN, MEDIAN, VALUES, CLOSE_K)
    }
    classes = {name: float(np.mean([len(one) for one in found])) for name, found in sizes.items()}
    discernibility = {name: float(np.mean([(one**2).sum() for one in found])) for name, found in sizes.items()}
    least_to_most = ["mapping-median:values", "mapping-median", "mondrian", "close-k"]
    assert [classes[name] for name in least_to_most] == pytest.approx([24.63, 26.065, 26.28, 26.71])
    assert [discernibility[name] for name in least_to_most] == pytest.approx([437.49, 408.79, 401.43, 392.85])


# ---- properties ----


@given(
    points=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 2)), min_size=1, max_size=60),
    k=st.integers(1, 8),
)
def test_no_class_of_close_k_can_be_cut_further(points: list[Point], k: int) -> None:
    k = min(k, len(points))
    for one in classes_of(CLOSE_K, points, k):
        for q in range(3):
            values = sorted(point[q] for point in one)
            assert not any(values[cut - 1] < values[cut] for cut in range(k, len(values) - k + 1))


@BOTH
def test_order_of_the_records_changes_nothing(method: InformationDependency) -> None:
    generator = np.random.default_rng(5)
    codes = generator.integers(0, 9, (400, 3)).astype(np.uint8)
    points = [tuple(row) for row in codes.tolist()]
    shuffled = [points[place] for place in generator.permutation(len(points))]
    assert classes_of(method, shuffled, 4) == classes_of(method, points, 4)


@BOTH
def test_width_of_the_codes_changes_nothing(method: InformationDependency) -> None:
    narrow = lattice(7)
    first, second = partition(method, narrow, 3), partition(method, narrow.astype(np.uint32), 3)
    assert first.rows.tolist() == second.rows.tolist()
    assert first.starts.tolist() == second.starts.tolist()


@BOTH
def test_codes_that_no_record_has_change_nothing(method: InformationDependency) -> None:
    # A domain that is much wider than there are records is sorted in several passes.
    codes = np.random.default_rng(3).integers(0, 60, (500, 2)).astype(np.uint16)
    wide = codes * np.uint16(900)
    first, second = partition(method, codes, 5), partition(method, wide, 5)
    assert first.rows.tolist() == second.rows.tolist()
    assert first.starts.tolist() == second.starts.tolist()


@BOTH
def test_stopping_to_tell_progress_changes_nothing(
    method: InformationDependency, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Told(Progress):
        steps: list[int]

        def advance(self, steps: int) -> None:
            self.steps.append(steps)

    told = Told()
    told.steps = []
    whole = partition(method, lattice(2), 3)
    monkeypatch.setattr(close_k_module, "STEP_RECORDS", 1)
    monkeypatch.setattr(close_k_module, "BATCH_CLASSES", 4)
    in_steps = partition(method, lattice(2), 3, told)
    assert in_steps.rows.tolist() == whole.rows.tolist()
    assert in_steps.starts.tolist() == whole.starts.tolist()
    assert in_steps.low.tolist() == whole.low.tolist()
    assert in_steps.high.tolist() == whole.high.tolist()
    assert sorted(told.steps) == sorted(np.diff(whole.starts).tolist())


# ---- degenerate tables ----


@BOTH
def test_one_record_is_one_class(method: InformationDependency) -> None:
    assert classes_of(method, [(0, 3)], 1) == [[(0, 3)]]


@BOTH
def test_fewer_than_two_k_records_are_one_class(method: InformationDependency) -> None:
    points = [(value, value) for value in range(9)]
    assert classes_of(method, points, 5) == [points]


@BOTH
def test_k_of_one_keeps_all_distinct_records_apart(method: InformationDependency) -> None:
    points = [(0, 1), (1, 0), (1, 1), (1, 1), (5, 1)]
    assert sorted(classes_of(method, points, 1)) == [[(0, 1)], [(1, 0)], [(1, 1), (1, 1)], [(5, 1)]]


@BOTH
def test_constant_attributes_are_never_cut(method: InformationDependency) -> None:
    points = [(7, value, 7) for value in range(4)]
    assert classes_of(method, points, 2) == [points[:2], points[2:]]


@BOTH
def test_thirty_attributes_work(method: InformationDependency) -> None:
    points = [tuple(row) for row in np.random.default_rng(1).integers(0, 3, (60, 30)).tolist()]
    assert classes_of(method, points, 7) == expected(points, 7, method.point)


@pytest.mark.parametrize("method", [MEDIAN, CLOSE_K], ids=lambda method: method.name)
def test_null_is_the_last_of_the_mapped_values(method: InformationDependency) -> None:
    table = pa.table({"age": pa.array([3, None, 1, 2, None, None], pa.int64())})
    release = sfumato.anonymize(table, quasi_identifiers=["age"], k=3, method=method.name)
    assert Counter(release.data["age"].to_pylist()) == {"*": 3, None: 3}


@pytest.mark.compiled
@BOTH
def test_a_million_equal_records_are_one_class(method: InformationDependency) -> None:
    batch = partition(method, np.zeros((1_000_000, 3), np.uint8), 10)
    assert batch.starts.tolist() == [0, 1_000_000]


@pytest.mark.compiled
@BOTH
def test_one_heavy_record_among_many_is_a_class_of_its_own(method: InformationDependency) -> None:
    codes = np.concatenate([np.full((5000, 2), 50), np.random.default_rng(4).integers(0, 100, (200, 2))])
    sizes = np.diff(partition(method, codes.astype(np.uint8), 5).starts)
    assert len(sizes) > 20
    assert sizes.sum() == 5200
    assert sizes.min() >= 5


@pytest.mark.compiled
@BOTH
def test_a_hundred_thousand_distinct_records_are_peeled_to_the_last(method: InformationDependency) -> None:
    generator = np.random.default_rng(9)
    codes = np.stack([generator.permutation(100_000) for _ in range(6)], axis=1).astype(np.uint32)
    sizes = np.diff(partition(method, codes, 5).starts)
    assert sizes.min() == (5 if method is CLOSE_K else 6)
    assert sizes.max() == (5 if method is CLOSE_K else 7)


# ---- by name ----


@BOTH
def test_method_is_found_by_name_and_sees_to_k_alone(method: InformationDependency) -> None:
    assert method_named(method.name) == method
    diverse = merge_flags(None, quasi_identifiers=["q"], sensitive="s", l=2, k=4)
    assert not method.meets(diverse.requirements())
    assert method.meets(merge_flags(None, quasi_identifiers=["q"], k=4).requirements())
