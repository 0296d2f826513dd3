"""The Hilbert curve: every cell once, neighbours beside each other, keys of any length."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.orderings.hilbert import LANES, Hilbert, curve_positions
from sfumato.orderings.ordering import Keys
from sfumato.tables.coding.domains import NumericDomain


def positions(cells: Any, bits: int) -> list[int]:
    """The kernel's keys as Python integers, for cells given as codes."""
    codes = np.ascontiguousarray(np.asarray(cells, np.uint16))
    count, dimensions = codes.shape
    grid = np.tile(np.arange(1 << bits, dtype=np.int64), dimensions)
    starts = np.arange(dimensions, dtype=np.int64) << bits
    length = dimensions * bits
    words = np.zeros((count, -(-length // 64)), np.uint64)
    room, values = np.empty((dimensions + 1, LANES), np.int32), np.empty(LANES, np.uint64)
    curve_positions(codes, grid, starts, bits, room, values, words)
    return as_integers(Keys(words, length))


def as_integers(keys: Keys) -> list[int]:
    found = []
    for row in keys.words.tolist():
        key = 0
        for place, word in enumerate(row):
            width = 64 if place < len(row) - 1 else keys.length - 64 * (len(row) - 1)
            assert word < 1 << width
            key = key << width | word
        found.append(key)
    return found


@pytest.mark.parametrize(
    ("dimensions", "bits"), [(1, 1), (1, 6), (2, 1), (2, 2), (2, 5), (3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (5, 2)]
)
def test_curve_visits_every_cell_once_and_steps_to_a_neighbour(dimensions: int, bits: int) -> None:
    cells = list(product(range(1 << bits), repeat=dimensions))
    found = positions(cells, bits)
    assert sorted(found) == list(range(len(cells)))
    line = [cell for _, cell in sorted(zip(found, cells, strict=True))]
    assert all(sum(abs(a - b) for a, b in zip(here, there, strict=True)) == 1 for here, there in pairwise(line))


def test_curve_on_one_dimension_is_the_line_itself() -> None:
    assert positions([[cell] for cell in range(64)], 6) == list(range(64))


def test_curve_of_four_cells_is_a_cup() -> None:
    assert line_of(1) == [(0, 0), (0, 1), (1, 1), (1, 0)]


def test_curve_of_sixteen_cells_is_the_known_picture() -> None:
    assert line_of(2) == [
        *[(0, 0), (1, 0), (1, 1), (0, 1)],
        *[(0, 2), (0, 3), (1, 3), (1, 2)],
        *[(2, 2), (2, 3), (3, 3), (3, 2)],
        *[(3, 1), (2, 1), (2, 0), (3, 0)],
    ]


def line_of(bits: int) -> list[tuple[int, ...]]:
    cells = list(product(range(1 << bits), repeat=2))
    return [cell for _, cell in sorted(zip(positions(cells, bits), cells, strict=True))]


@given(data=st.data(), dimensions=st.integers(1, 30), bits=st.integers(1, 12))
def test_keys_of_any_length_agree_with_big_integers(data: st.DataObject, dimensions: int, bits: int) -> None:
    cell = st.lists(st.integers(0, 2**bits - 1), min_size=dimensions, max_size=dimensions)
    cells = data.draw(st.lists(cell, min_size=1, max_size=4))
    assert positions(cells, bits) == [oracle.hilbert_position(one, bits) for one in cells]


@pytest.mark.parametrize("dimensions", [5, 6, 16, 30])
def test_sorted_fields_follow_keys_beyond_one_word(dimensions: int) -> None:
    generator = np.random.default_rng(dimensions)
    domains = [NumericDomain(f"q{q}", np.arange(4096), False) for q in range(dimensions)]
    codes = generator.integers(0, 4096, (200, dimensions)).astype(np.uint16)
    keys = Hilbert().keys(codes, domains)
    assert keys.length == 12 * dimensions
    expected = [oracle.hilbert_position(row, 12) for row in codes.tolist()]
    assert as_integers(keys) == expected
    assert keys.leading(40).tolist() == [key >> (12 * dimensions - 40) for key in expected]
    assert sum(field.bits for field in keys.fields()) == keys.length


def test_keys_do_not_depend_on_the_batch_a_record_comes_in(monkeypatch: pytest.MonkeyPatch) -> None:
    domains = [NumericDomain(f"q{q}", np.arange(100), False) for q in range(3)]
    codes = np.random.default_rng(1).integers(0, 100, (500, 3)).astype(np.uint8)
    whole = Hilbert().keys(codes, domains).words
    monkeypatch.setattr("sfumato.orderings.hilbert.BATCH", 7)
    assert np.array_equal(Hilbert().keys(codes, domains).words, whole)


def test_short_keys_are_taken_whole() -> None:
    keys = Keys(np.array([[5], [9]], np.uint64), 4)
    assert keys.leading(40).tolist() == [5, 9]
    assert keys.leading(2).tolist() == [1, 2]


@pytest.mark.parametrize("bits", [0, 32])
def test_bits_out_of_range_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 31"):
        Hilbert(bits=bits)
