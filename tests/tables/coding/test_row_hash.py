"""The hash that orders rows of equal codes: a function of their values, whatever the kind of file or engine."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.engines.disk.passthrough_columns import PassthroughProfiler
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.coding.row_hash import (
    hashed_columns,
    hashes_of_array,
    hashes_of_column,
    row_hashes,
    value_hashes,
)

GOLDEN = ["eff226139610a13e", "c883feef277b388c", "aa48fc8c49a870fe"]
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**62), 2**62),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): st.text(max_size=4),
    pa.bool_(): st.booleans(),
    pa.binary(): st.binary(max_size=3),
    pa.date32(): st.dates(datetime.date(1900, 1, 1)),
    pa.timestamp("us"): st.datetimes(datetime.datetime(1900, 1, 1)),
    pa.decimal128(9, 2): st.decimals(-1000, 1000, places=2, allow_nan=False),
    pa.duration("s"): st.integers(0, 10**6).map(lambda seconds: datetime.timedelta(seconds=seconds)),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[tuple[Any, ...]], pa.Table]:
    """Rows of every type with nulls, some of them twice."""
    rows = draw(st.lists(st.tuples(*(st.none() | values for values in VALUES.values())), min_size=1, max_size=10))
    rows += rows[:2]
    columns = [pa.array(list(values), kind) for kind, values in zip(VALUES, zip(*rows, strict=True), strict=True)]
    return rows, pa.table(columns, [f"c{number}" for number in range(len(columns))])


def hashes_of(table: pa.Table) -> list[int]:
    columns = [hashes_of_array(column.combine_chunks()) for column in table.columns]
    hashes: list[int] = row_hashes(columns, table.num_rows).tolist()
    return hashes


@pytest.mark.compiled
@given(case=tables(), data=st.data())
def test_equal_rows_have_equal_hashes_and_others_do_not(case: Any, data: Any) -> None:
    rows, table = case
    hashes = hashes_of(table)
    written = [repr(row) for row in rows]  # so that -0.0 is not 0.0
    for row, text in enumerate(written):
        assert [other == text for other in written] == [other == hashes[row] for other in hashes]
    order = data.draw(st.permutations(range(len(rows))))
    assert hashes_of(table.take(order)) == [hashes[row] for row in order]


@pytest.mark.compiled
@given(case=tables())
def test_every_engine_has_the_same_hashes(case: Any) -> None:
    _, table = case
    count = table.num_rows
    expected = hashes_of(table)
    in_dictionaries = [column.combine_chunks().dictionary_encode() for column in table.columns]
    in_memory = [hashes_of_column(PassthroughColumn.of(name, table.column(name))) for name in table.column_names]
    packed, fields = [], {}
    for name in table.column_names:
        profiler = PassthroughProfiler(name, name, table.column(name).type, counted=False)
        profiler.add(table.column(name).combine_chunks())
        packed.append(profiler.finish())
        fields[name] = packed[-1].encode(table.column(name).combine_chunks())
    records = np.empty(count, [(column.key, column.stored) for column in packed])
    for name, codes in fields.items():
        records[name] = codes
    for columns in (
        [hashes_of_array(column) for column in in_dictionaries],
        in_memory,
        [column.hashes(records) for column in packed],
    ):
        assert row_hashes(columns, count).tolist() == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [(12, "12"), (-3, "-3"), (0.25, "0.25"), (datetime.date(2024, 2, 29), "2024-02-29"), (Decimal("1.10"), "1.10")],
)
def test_a_value_has_the_hash_of_its_text(value: Any, text: str) -> None:
    assert value_hashes(pa.array([value])).tolist() == value_hashes(pa.array([text])).tolist()


def test_null_is_neither_empty_nor_another_text() -> None:
    assert len(set(value_hashes(pa.array([None, "", "null", "\0"])).tolist())) == 4


@pytest.mark.compiled
def test_hashes_are_those_of_every_machine() -> None:
    # Written down once: if these change, releases of one table by two versions can be intersected.
    table = pa.table({"ill": ["flu", None, "cough"], "cost": [12.5, 3.0, None]})
    assert [f"{number:016x}" for number in hashes_of(table)] == GOLDEN


def test_columns_are_hashed_sensitive_first_whatever_their_order() -> None:
    names = ["zeta", "ill", "alpha", "cost"]
    for order in (names, names[::-1]):
        assert hashed_columns(order, ["ill", "cost"]) == ["cost", "ill", "alpha", "zeta"]
