"""Snakes: a step along them is a step on one attribute."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from sfumato.orderings import Hilbert, Snake
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.tables.coding.sorting import sort_rows
from sfumato.taxonomies.derived_taxonomies import flat


def numbers(size: int) -> Domain:
    return NumericDomain("n", np.arange(size), False)


def names(size: int) -> Domain:
    return CategoricalDomain("c", flat([f"{place:04}" for place in range(size)], "c"), False)


def in_line(snake: Snake, domains: list[Domain]) -> list[tuple[int, ...]]:
    """Every cell of the grid, in the order of the keys, after a look that they all differ."""
    cells = np.array(list(product(*(range(domain.size) for domain in domains))), np.uint16)
    line = sort_rows(snake.keys(cells, domains).fields(), len(cells))
    assert len(line.starts) == len(cells) + 1
    return [tuple(map(int, cells[row])) for row in line.rows]


@pytest.mark.parametrize("sizes", [(1,), (5,), (2, 3), (3, 3, 4), (5, 2, 1, 4), (6, 7)])
def test_each_step_of_a_snake_is_one_step_on_one_attribute(sizes: tuple[int, ...]) -> None:
    for domains in ([names(size) for size in sizes], [numbers(size) for size in sizes]):
        line = in_line(Snake(), domains)
        assert len(line) == np.prod(sizes)
        for one, next_one in pairwise(line):
            assert sum(abs(a - b) for a, b in zip(one, next_one, strict=True)) == 1


def test_the_attribute_with_the_fewest_values_changes_least_often() -> None:
    line = in_line(Snake(), [names(7), names(2), names(3)])
    changes = [sum(one[q] != other[q] for one, other in pairwise(line)) for q in range(3)]
    assert changes == [36, 1, 4]


def test_numbers_are_gone_through_along_the_curve_within_each_cell_of_the_categories() -> None:
    snake = Snake(curve=Hilbert(bits=3))
    line = in_line(snake, [numbers(8), names(3), numbers(8)])
    assert [cell[1] for cell in line] == [0] * 64 + [1] * 64 + [2] * 64
    for one, next_one in pairwise(line):  # also from one category to the next: the curve is gone back
        assert sum(abs(a - b) for a, b in zip(one, next_one, strict=True)) == 1


def test_without_categories_it_is_the_curve_and_without_numbers_the_snake() -> None:
    curved = [numbers(8), numbers(8)]
    cells = np.array(list(product(range(8), repeat=2)), np.uint16)
    alone = Hilbert(bits=3).keys(cells, curved)
    assert (Snake(curve=Hilbert(bits=3)).keys(cells, curved).words == alone.words).all()
    assert in_line(Snake(curve=Hilbert()), [names(4), names(3)]) == in_line(Snake(), [names(4), names(3)])


def test_keys_beyond_64_bits_keep_their_order() -> None:
    domains = [names(2) for _ in range(70)]
    generator = np.random.default_rng(3)
    cells = np.unique(generator.integers(0, 2, (200, 70)).astype(np.uint8), axis=0)
    keys = Snake().keys(cells, domains)
    assert (keys.length, keys.words.shape[1]) == (70, 2)
    # All have two values, so they come in the order of the columns: the Gray code, written out bit by bit.
    turned = np.bitwise_xor.accumulate(cells, axis=1).tolist()
    codes = [sum(bit << (69 - place) for place, bit in enumerate(cell)) for cell in turned]
    found = [int(high) << 6 | int(low) for high, low in keys.words]
    assert found == codes
