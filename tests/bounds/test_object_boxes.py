"""The smallest box of k records around each record, the largest of these, against a search of all sets of k."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import oracle
import pytest
from coded import records_of

from sfumato.bounds.object_boxes import object_box_bound
from sfumato.methods.clustering.nearest_neighbour_groups import perimeter_bound
from sfumato.methods.method import Records
from sfumato.tables.coding.domains import NumericDomain

Point = tuple[int, ...]


def table_of(points: list[Point]) -> Records:
    columns = [sorted({point[q] for point in points}) for q in range(len(points[0]))]
    codes = [[columns[q].index(point[q]) for q in range(len(columns))] for point in points]
    domains = [NumericDomain(f"q{q}", np.array(values), False) for q, values in enumerate(columns)]
    return records_of(np.array(codes, np.uint8), domains)


def perimeter(members: list[Point], points: list[Point]) -> float:
    """Twice the sum of the sides of the box around some points, each as a share of the extent of all."""
    sides = []
    for q in range(len(points[0])):
        values, everything = [point[q] for point in members], [point[q] for point in points]
        extent = max(everything) - min(everything)
        sides.append((max(values) - min(values)) / extent if extent else 0)
    return 2 * sum(sides)


def largest_of_smallest(points: list[Point], k: int) -> float:
    places = range(len(points))
    return max(
        min(
            perimeter([points[one] for one in (place, *others)], points)
            for others in combinations([other for other in places if other != place], k - 1)
        )
        for place in places
    )


@pytest.mark.parametrize("attributes", [1, 2, 3])
def test_the_bound_is_the_largest_of_the_smallest_boxes(attributes: int) -> None:
    generator = np.random.default_rng(attributes)
    above_reach = 0
    for _ in range(12):
        count = int(generator.integers(3, 11))
        points = [tuple(row) for row in generator.integers(0, 12, (count, attributes)).tolist()]
        k = int(generator.integers(1, min(count, 5) + 1))
        found, expected = object_box_bound(table_of(points), k), largest_of_smallest(points, k)
        assert found == pytest.approx(expected, abs=1e-8)
        assert found <= expected
        reach = perimeter_bound(table_of(points), k)
        assert found >= reach - 1e-8
        above_reach += found > reach + 1e-3
    assert above_reach > 0 or attributes == 1


def test_no_partition_has_a_smaller_largest_box() -> None:
    generator = np.random.default_rng(7)
    for _ in range(6):
        points = [tuple(row) for row in generator.integers(0, 9, (8, 2)).tolist()]
        least = min(
            max(perimeter([points[place] for place in block], points) for block in blocks)
            for blocks in oracle.set_partitions(range(8), 3)
        )
        assert object_box_bound(table_of(points), 3) <= least


def test_records_that_lie_alone_decide() -> None:
    # The smallest box of two records is 0; that of the lone one at 10 reaches to 4, its nearest.
    assert object_box_bound(table_of([(0,), (0,), (4,), (10,)]), 2) == pytest.approx(2 * 6 / 10)


def test_k_beyond_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="between 1 and the number of records"):
        object_box_bound(table_of([(0,), (1,)]), 3)
