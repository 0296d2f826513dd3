"""Columns that ride along: any type sorts, comes out as it came in, and brings nothing hidden with it."""

from __future__ import annotations

import datetime as dt
import math
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.tables.coding.passthrough import PassthroughColumn, dictionary_array
from sfumato.tables.coding.sorting import sort_rows

DAY, EARLIER = dt.date(2020, 2, 29), dt.date(1899, 12, 31)
MOMENT, BEFORE = dt.datetime(2020, 2, 29, 12, 30), dt.datetime(1899, 12, 31, 1)

# Every type with its values in the order that they must come out in, null aside.
IN_ORDER: dict[str, tuple[pa.DataType, list[object]]] = {
    **{str(kind): (kind, [-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1]) for bits, kind in {
        8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.items()},
    **{str(kind): (kind, [0, 1, 2**bits - 1]) for bits, kind in {
        8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}.items()},
    "float16": (pa.float16(), [-math.inf, -2.0, -0.0, 0.0, 1.5, math.inf]),
    "float32": (pa.float32(), [-math.inf, -2.0, -0.0, 0.0, 1.5, math.inf]),
    "float64": (pa.float64(), [-math.inf, -1e300, -0.0, 0.0, 5e-324, 0.1, math.inf]),
    "bool": (pa.bool_(), [False, True]),
    "string": (pa.string(), ["", "Z", "a", "z", "é", "\uffff", "\U0001f600"]),
    "large_string": (pa.large_string(), ["", "a", "é"]),
    "date32": (pa.date32(), [EARLIER, DAY]),
    "date64": (pa.date64(), [EARLIER, DAY]),
    "timestamp[s]": (pa.timestamp("s"), [BEFORE, MOMENT]),
    "timestamp[ns]": (pa.timestamp("ns"), [BEFORE, MOMENT]),
    "zoned": (pa.timestamp("us", "UTC"), [BEFORE.replace(tzinfo=dt.UTC), MOMENT.replace(tzinfo=dt.UTC)]),
    "time32": (pa.time32("s"), [dt.time(1), dt.time(23, 59)]),
    "time64": (pa.time64("us"), [dt.time(0, 0, 0, 1), dt.time(23, 59)]),
    "duration": (pa.duration("us"), [dt.timedelta(days=-3), dt.timedelta(0), dt.timedelta(days=3)]),
    "decimal128": (pa.decimal128(20, 2), [Decimal("-10.50"), Decimal("-9.00"), Decimal("2.00"), Decimal("10.00")]),
    "decimal256": (pa.decimal256(60, 2), [Decimal("-10.50"), Decimal("2.00")]),
    "binary": (pa.binary(), [b"", b"\x00", b"a", b"\xff"]),
    "large_binary": (pa.large_binary(), [b"", b"a", b"\xff"]),
    "fixed_size_binary": (pa.binary(2), [b"\x00\x01", b"ab", b"\xff\x00"]),
    "categories": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "c"]),
}  # fmt: skip


def carried(values: pa.Array | pa.ChunkedArray) -> PassthroughColumn:
    return PassthroughColumn.of("c", values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values]))


def in_order(column: PassthroughColumn, count: int) -> pa.Array:
    return column.take(sort_rows(column.fields(), count).rows)


def plain(array: pa.Array) -> pa.Array:
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def all_bytes(array: pa.Array) -> bytes:
    """Whatever the array holds in memory, shown or not."""
    own = b"".join(buffer.to_pybytes() for buffer in array.buffers() if buffer is not None)
    return own + (all_bytes(array.dictionary) if pa.types.is_dictionary(array.type) else b"")


@pytest.mark.parametrize("kind", IN_ORDER)
def test_every_type_sorts_by_value_with_null_last(kind: str) -> None:
    stored, ordered = IN_ORDER[kind]
    shuffled = [ordered[-1], None, *ordered[:-1], ordered[0], None]
    column = carried(pa.array(shuffled, stored))
    released = in_order(column, len(shuffled))
    expected = pa.array([ordered[0], *ordered, None, None], plain(pa.nulls(0, stored)).type)
    assert repr(plain(released).cast(expected.type).to_pylist()) == repr(expected.to_pylist())
    assert column.distinct[1] >= len(set(ordered)) + 1  # -0.0 may count apart from 0.0


@pytest.mark.parametrize("kind", IN_ORDER)
def test_every_type_comes_out_as_it_came_in(kind: str) -> None:
    stored, ordered = IN_ORDER[kind]
    values = [ordered[-1], None, *ordered]
    released = carried(pa.array(values, stored)).take(None)
    assert repr(released.to_pylist()) == repr(pa.array(values, stored).to_pylist())
    text = pa.types.is_large_string(stored) or pa.types.is_dictionary(stored)
    assert plain(released).type == (pa.string() if text else stored)


def test_an_all_null_column_of_any_type_stays_null() -> None:
    for stored, _ in IN_ORDER.values():
        column = carried(pa.nulls(3, stored))
        assert in_order(column, 3).to_pylist() == [None] * 3
        assert column.distinct[1] == 1


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    ],
    ids=["list", "struct", "map", "interval"],
)
def test_a_type_without_an_order_is_refused_with_what_to_do(values: pa.Array) -> None:
    with pytest.raises(InputError, match=r"column 'c' has the type .* which has no order.* convert it to text"):
        carried(values)


def test_nan_comes_after_all_numbers_and_counts_as_null() -> None:
    column = carried(pa.array([math.nan, 1.0, None, math.inf, math.nan]))
    released = in_order(column, 5).to_pylist()
    assert released[:2] == [1.0, math.inf]
    assert all(math.isnan(value) for value in released[2:4])
    assert released[4] is None
    codes, size = column.distinct
    assert size == 3
    assert codes[[0, 2, 4]].tolist() == [2, 2, 2]


@pytest.mark.parametrize("width", [np.uint16, np.uint32, np.uint64])
def test_spare_bits_of_nan_are_not_released(width: type[np.unsignedinteger]) -> None:
    real: Any = {np.uint16: np.float16, np.uint32: np.float32, np.uint64: np.float64}[width]
    one = np.array([np.nan], real).view(width)[0]
    marked = np.array([one | width(0x15), one | width(1 << (8 * one.itemsize - 1)) | width(3)], width)
    values = np.append(marked.view(real), real(1))
    released = carried(pa.array(values)).take(None)
    assert np.isnan(released.to_numpy(zero_copy_only=False)).tolist() == [True, True, False]
    assert all_bytes(released)[: 2 * one.itemsize] == one.tobytes() * 2


@pytest.mark.parametrize("rows", [None, np.array([2, 1, 0], np.uint32)], ids=["kept order", "new order"])
def test_values_beneath_nulls_are_not_released(rows: np.ndarray | None) -> None:
    hidden = np.array([0x1234567890, 2, 3], np.int64)
    array = pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(bytes([0b110])), pa.py_buffer(hidden.tobytes())])
    assert hidden[:1].tobytes() in all_bytes(array)
    released = carried(array).take(rows)
    assert sorted(released.to_pylist(), key=str) == [2, 3, None]
    assert hidden[:1].tobytes() not in all_bytes(released)


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.float64(), pa.string(), pa.decimal128(20), pa.timestamp("us")], ids=str
)
@pytest.mark.parametrize("keep_order", [True, False])
def test_values_around_a_slice_are_not_released(kind: pa.DataType, keep_order: bool) -> None:
    whole = pa.array([1, 77_777_777, 2, 3], pa.int64()).cast(kind)
    outside = whole.slice(1, 1).buffers()[-1].to_pybytes()
    outside = b"77777777" if kind == pa.string() else outside[len(outside) // 4 : len(outside) // 2].rstrip(b"\0")
    assert outside in all_bytes(whole)
    column = carried(whole.slice(2))
    released = column.take(None) if keep_order else in_order(column, 2)
    assert plain(released).to_pylist() == whole.slice(2).to_pylist()
    assert outside not in all_bytes(released)


def test_categories_that_no_record_has_are_not_released() -> None:
    categories = pa.DictionaryArray.from_arrays(pa.array([2, 0, None], pa.int8()), pa.array(["c", "UNUSED", "a"]))
    released = carried(categories).take(None)
    assert released.dictionary.to_pylist() == ["a", "c"]
    assert released.to_pylist() == ["a", "c", None]
    assert b"UNUSED" not in all_bytes(released)


def test_a_value_that_only_dropped_rows_had_is_not_released() -> None:
    released = carried(pa.array(["a", "GONE", "b"])).take(np.array([2, 0], np.uint32))
    assert released.dictionary.to_pylist() == ["a", "b"]
    assert b"GONE" not in all_bytes(released)


def test_null_among_the_categories_is_null() -> None:
    column = carried(pa.DictionaryArray.from_arrays(pa.array([1, 0, 2], pa.int8()), pa.array(["b", None, "a"])))
    assert in_order(column, 3).to_pylist() == ["a", "b", None]
    assert column.distinct[1] == 3


def test_chunks_with_different_dictionaries_are_one_column() -> None:
    chunks = pa.chunked_array([pa.array(["b", None]).dictionary_encode(), pa.array(["a", "b"]).dictionary_encode()])
    assert in_order(carried(chunks), 4).to_pylist() == ["a", "b", "b", None]


def test_no_library_warning_is_raised() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for stored, ordered in IN_ORDER.values():
            in_order(carried(pa.array([*ordered, None], stored)), len(ordered) + 1)


@given(st.lists(st.none() | st.text(max_size=3), min_size=1), st.randoms(use_true_random=False))
def test_order_does_not_depend_on_the_order_of_the_input(values: list[str | None], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = (in_order(carried(pa.array(order, pa.string())), len(order)) for order in (values, shuffled))
    assert one.to_pylist() == other.to_pylist() == sorted(values, key=lambda text: (text is None, text or ""))
    assert one.dictionary.to_pylist() == sorted({text for text in values if text is not None})


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_a_dictionary_array_has_the_values_that_occur_and_no_others(codes: list[int]) -> None:
    made = dictionary_array(np.array(codes), pa.array(list("abcde")))
    assert made.to_pylist() == [None if code == 5 else "abcde"[code] for code in codes]
    assert made.dictionary.to_pylist() == sorted({"abcde"[code] for code in codes if code < 5})
