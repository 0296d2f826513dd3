"""Sorting by packed keys is plain sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.tables.coding.sorting import CHUNK, Field, bits_for, collapse, gathered, repeated, sort_rows

DTYPES = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


@st.composite
def field_lists(draw: st.DrawFn) -> tuple[list[Field], list[tuple[int, ...]]]:
    count = draw(st.integers(1, 40))
    fields, columns = [], []
    for bits in draw(st.lists(st.integers(0, 64), min_size=1, max_size=6)):
        top = (1 << bits) - 1
        few = draw(st.lists(st.integers(0, top), min_size=1, max_size=3))
        values = draw(st.lists(st.one_of(st.sampled_from(few), st.integers(0, top)), min_size=count, max_size=count))
        width = min(width for width in DTYPES if width >= bits)
        fields.append(Field(np.array(values, DTYPES[width]), bits))
        columns.append(values)
    return fields, list(zip(*columns, strict=True))


@given(field_lists())
def test_rows_are_in_the_order_of_sorted(case: tuple[list[Field], list[tuple[int, ...]]]) -> None:
    fields, keys = case
    expected = sorted(range(len(keys)), key=lambda row: (keys[row], row))
    found = sort_rows(fields, len(keys))
    assert found.rows.tolist() == expected
    starts = [place for place, row in enumerate(expected) if place == 0 or keys[row] != keys[expected[place - 1]]]
    assert found.starts.tolist() == [*starts, len(keys)]


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 70_000])
def test_ties_are_broken_by_row_number(count: int) -> None:
    fields = [Field(np.zeros(count, np.uint8), 8), Field(np.full(count, 2**63, np.uint64), 64)]
    found = sort_rows(fields, count)
    assert found.rows.tolist() == list(range(count))
    assert found.starts.tolist() == [0, count]


def test_many_rows_with_long_keys_are_sorted() -> None:
    generator = np.random.default_rng(4)
    count = 200_000
    columns = [generator.integers(0, high, count, dtype=np.uint64) for high in (3, 2**40, 2**63)]
    fields = [Field(columns[0].astype(np.uint8), 2), Field(columns[1], 40), Field(columns[2], 64)]
    assert sort_rows(fields, count).rows.tolist() == np.lexsort((columns[2], columns[1], columns[0])).tolist()


def test_inputs_are_not_modified() -> None:
    values = np.array([3, 1, 2], np.uint64)
    sort_rows([Field(values, 64), Field(values, 64)], 3)
    assert values.tolist() == [3, 1, 2]


def test_no_rows_give_no_runs() -> None:
    found = sort_rows([Field(np.empty(0, np.uint8), 8)], 0)
    assert (found.rows.tolist(), found.starts.tolist()) == ([], [0])


def test_bits_hold_every_number_below_the_count() -> None:
    assert [bits_for(count) for count in (0, 1, 2, 3, 4, 5, 256, 257, 2**32)] == [0, 0, 1, 2, 2, 3, 8, 9, 32]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=120), st.data())
def test_ties_order_rows_of_equal_codes(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    ties = data.draw(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    codes = np.array(rows, np.uint8)
    distinct, line = collapse(codes, [3, 4], np.array(ties, np.uint64))
    assert line.rows.tolist() == sorted(range(len(rows)), key=lambda row: (rows[row], ties[row], row))
    assert distinct.tolist() == sorted(map(list, set(rows)))


@pytest.mark.parametrize("runs", [1, 3, 70_000])
def test_ties_order_long_and_many_runs(runs: int) -> None:
    generator = np.random.default_rng(runs)
    count = 200_000
    codes = generator.integers(0, runs, (count, 1)).astype(np.uint32)
    ties = generator.integers(0, 2**63, count).astype(np.uint64)
    _, line = collapse(codes, [runs], ties)
    assert line.rows.tolist() == np.lexsort([ties, codes[:, 0]]).tolist()


def test_shuffled_rows_of_equal_codes_depend_on_their_ties_alone() -> None:
    generator = np.random.default_rng(3)
    codes, ties = generator.integers(0, 4, (500, 1)).astype(np.uint8), generator.permutation(500).astype(np.uint64)
    distinct, line = collapse(codes, [4], ties, shuffled=True)
    order = generator.permutation(500)
    again, other = collapse(codes[order], [4], ties[order], shuffled=True)
    assert (again.tolist(), other.starts.tolist()) == (distinct.tolist(), line.starts.tolist())
    assert order[other.rows].tolist() == line.rows.tolist()
    for begin, end in zip(line.starts[:-1], line.starts[1:], strict=True):
        of_run = ties[line.rows[begin:end]]
        assert len(set(codes[line.rows[begin:end], 0].tolist())) == 1
        assert abs(np.corrcoef(of_run, np.arange(end - begin))[0, 1]) < 0.3  # the ties themselves leave no trace


@pytest.mark.parametrize("threads", ["1", "2", "3"])
@pytest.mark.parametrize("bits", [(5, 3), (40, 20), (64, 64)])
def test_many_rows_are_sorted_alike_by_any_number_of_threads(
    bits: tuple[int, int], threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_THREADS", threads)
    count, random = 2 * CHUNK + 7, np.random.default_rng(0)
    values = [random.integers(0, (1 << one) - 1, count, np.uint64, endpoint=True) for one in bits]
    values[0][count // 2 :] = values[0][: count - count // 2]  # ties, which the second field decides
    found = sort_rows([Field(column, one) for column, one in zip(values, bits, strict=True)], count)
    expected = np.lexsort((np.arange(count), values[1], values[0]))
    assert (found.rows == expected).all()
    ordered = np.stack([column[expected] for column in values])
    begins = np.flatnonzero(np.append(True, (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)))
    assert (found.starts == [*begins, count]).all()


@pytest.mark.parametrize("threads", ["1", "3"])
def test_values_are_repeated_and_gathered_as_numpy_does_it(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_THREADS", threads)
    random = np.random.default_rng(0)
    sizes = random.integers(1, 9, 50_000)
    sizes[7] = 3 * CHUNK  # a run that is longer than what a thread takes at once
    codes = random.integers(0, 250, (len(sizes), 3), np.uint8)
    starts = np.append(0, np.cumsum(sizes))
    assert (repeated(codes, starts) == np.repeat(codes, sizes, axis=0)).all()
    rows = random.permutation(int(starts[-1])).astype(np.uint32) % np.uint32(len(sizes))
    assert (gathered(codes, rows) == codes[rows]).all()
    assert repeated(codes[:0], np.zeros(1, np.int64)).shape == (0, 3)
