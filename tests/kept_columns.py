"""Columns of every type that a table may hold, with the values that are most easily lost."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

ROWS = 4
DAY = 86_400
OLD, NEW = -2_208_988_799, 1_709_210_096  # a second after 1900 began; 2024-02-29


def _integers() -> dict[str, pa.Array]:
    columns = {}
    for sign in ("int", "uint"):
        for bits in (8, 16, 32, 64):
            kind = getattr(pa, f"{sign}{bits}")()
            low, high = (0, 2**bits - 1) if sign == "uint" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            columns[f"{sign}{bits}"] = pa.array([low, high, 1, 0], kind)
            columns[f"{sign}{bits} with null"] = pa.array([low, high, None, 1], kind)
    columns["beyond floats"] = pa.array([2**53 + 1, None, -(2**53) - 1, 1], pa.int64())
    return columns


def _moments() -> dict[str, pa.Array]:
    columns = {}
    for unit, factor in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        fine = 0 if unit == "s" else 7 * factor // 10**3 + (3 if unit in ("us", "ns") else 0)
        numbers = [NEW * factor + fine, None, OLD * factor + fine, 0]
        for zone in (None, "UTC", "Europe/Berlin"):
            columns[f"moment {unit} {zone}"] = pa.array(numbers, pa.timestamp(unit, zone))
        columns[f"duration {unit}"] = pa.array([NEW * factor + fine, None, 0, 1], pa.duration(unit))
        time = (pa.time32 if unit in ("s", "ms") else pa.time64)(unit)
        columns[f"time {unit}"] = pa.array([0, None, (DAY - 1) * factor + fine, 3600 * factor], time)
    return columns


def _categories(names: list[str], *, ordered: bool) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([2, None, 0, 1], pa.int8()), names, ordered=ordered)


def kept_columns() -> dict[str, pa.Array]:
    """The columns by name, each of ROWS rows."""
    tiny, huge, nan, inf = 5e-324, 1.7976931348623157e308, float("nan"), float("inf")
    return {
        "bool": pa.array([True, False, False, True]),
        "bool with null": pa.array([True, None, False, True]),
        **_integers(),
        "float32": pa.array([0.1, -0.0, 1e-45, 16777217.0], pa.float32()),
        "float32 with null": pa.array([0.1, None, 3.4028235e38, -1.5], pa.float32()),
        "float64": pa.array([0.1 + 0.2, -0.0, tiny, huge]),
        "float64 with null": pa.array([1 / 3, None, 1e22, -123456789.123456789]),
        "NaN": pa.array([nan, 1.5, 0.0, -1.0]),
        "infinite": pa.array([inf, 1.5, -inf, -1.0]),
        "decimal": pa.array([Decimal("2.55"), None, Decimal("-0.01"), Decimal("99999999.99")], pa.decimal128(10, 2)),
        "long decimal": pa.array([Decimal("1e-7"), None, Decimal("-7"), Decimal(10) ** 24], pa.decimal128(38, 10)),
        "string": pa.array(['a,"b\n', None, "", "é 漢"]),
        "large string": pa.array(["x", None, "yy", "z"], pa.large_string()),
        "category": _categories(["a", "b", "c"], ordered=False),
        "ordered category": _categories(["low", "mid", "high"], ordered=True),
        "date": pa.array([dt.date(1900, 1, 1), None, dt.date(2024, 2, 29), dt.date(9999, 12, 31)]),
        **_moments(),
        "bytes": pa.array([b"\x00\xff", None, b"", b"x"]),
        "nothing": pa.nulls(ROWS, pa.string()),
        "null": pa.nulls(ROWS),
    }


def kept_table(without: Any = ()) -> pa.Table:
    """A table of all these columns beside a quasi-identifier, whose classes are rows 0 and 1, and rows 2 and 3."""
    columns = {name: column for name, column in kept_columns().items() if name not in without}
    return pa.table({"age": [30, 31, 60, 61], **columns})


def release_flags(table: pa.Table) -> dict[str, Any]:
    """What releases the table with all its columns, row by row."""
    kept = [name for name in table.column_names if name != "age"]
    return {
        "quasi_identifiers": ["age"],
        "other": "keep",
        "k": 2,
        "accept_linkable": kept,
        "keep_order": True,
    }
