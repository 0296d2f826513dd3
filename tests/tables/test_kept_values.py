"""Kept columns of every type, in every kind of frame and file: they come back as they were, or are refused by name."""

from __future__ import annotations

import datetime
import math
import re
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy
import pandas
import polars
import pyarrow as pa
import pytest
from database_tables import address
from kept_columns import kept_columns, kept_table, release_flags
from polars.testing import assert_frame_equal
from source_kinds import Stream

import sfumato
from sfumato.api import anonymize_to_file
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.errors import InputError, OutputError
from sfumato.policy import InputOptions
from sfumato.progress import Progress
from sfumato.tables.locations import location_of
from sfumato.tables.sources.source import open_source
from sfumato.tables.targets.target import open_target

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

COLUMNS = kept_columns()
UNREAD = "unread"  # a category that no record has


def released(data: Any, table: pa.Table, **asked: Any) -> Any:
    return sfumato.anonymize(data, **release_flags(table), **asked).data


# Frames


def assert_equal_tables(table: pa.Table, original: pa.Table) -> None:
    assert table.drop_columns(["age"]).schema == original.drop_columns(["age"]).schema
    for name in original.column_names[1:]:
        # In text, NaN equals NaN and -0.0 differs from 0.0.
        assert str(table[name].to_pylist()) == str(original[name].to_pylist()), name


@pytest.mark.parametrize("kind", ["table", "batch", "stream", "reader"])
def test_every_type_comes_back_from_pyarrow(kind: str) -> None:
    table = kept_table()
    forms: dict[str, Callable[[], Any]] = {
        "table": lambda: table,
        "batch": lambda: table.combine_chunks().to_batches()[0],
        "stream": lambda: Stream(table),
        "reader": lambda: table.to_reader(max_chunksize=1),
    }
    release = released(forms[kind](), table)
    assert isinstance(release, pa.RecordBatch if kind == "batch" else pa.Table)
    assert_equal_tables(pa.table(release), table)


@pytest.mark.parametrize("lazy", [False, True])
def test_every_type_comes_back_from_polars(lazy: bool) -> None:
    table = kept_table()
    enumeration = polars.Series(["b", None, "a", "b"], dtype=polars.Enum(["b", "a"]))
    frame = polars.DataFrame(table).with_columns(enumeration.alias("enum"), polars.Series("nulls", [None] * 4))
    release = released(frame.lazy() if lazy else frame, frame.to_arrow())
    assert isinstance(release, polars.LazyFrame if lazy else polars.DataFrame)
    kept = frame.columns[1:]
    assert_frame_equal(release.lazy().collect().select(kept), frame.select(kept), check_exact=True)


@pytest.mark.parametrize("stored", [False, True])
def test_every_type_comes_back_from_duckdb(stored: bool) -> None:
    table = kept_table(without=[name for name in COLUMNS if name.startswith("duration")])
    with duckdb.connect() as connection:
        relation = duckdb.from_arrow(table, connection=connection)
        further = (
            "(CASE WHEN age < 40 THEN 'b' ELSE 'a' END)::ENUM('b', 'a') AS enum, uuid() AS id, age::HUGEINT AS huge"
        )
        if stored:
            relation.project(f"*, {further}").create("people")
            relation = connection.table("people")
        original = relation.to_arrow_table()
        release = released(relation, original)
        assert [str(kind) for kind in release.types][1:] == [str(kind) for kind in relation.types][1:]
        assert_equal_tables(release.to_arrow_table(), original)


def pandas_frames() -> dict[str, Callable[[], pandas.DataFrame]]:
    def of_objects() -> pandas.DataFrame:
        lost = ("uint64", "time ns", "ns", "NaN")  # beyond Arrow's guess, Python's datetime, and NaN is null
        table = kept_table(without=[name for name in COLUMNS if any(part in name for part in lost)])
        columns = {name: pandas.Series(table[name].to_pylist(), dtype=object) for name in table.column_names[1:]}
        return pandas.DataFrame({"age": table["age"].to_pylist(), **columns})

    numpy_table = kept_table(without=["time ns"])
    arrow_table = kept_table(without=["category", "ordered category", "NaN"])
    return {
        "NumPy": numpy_table.to_pandas,
        "nullable": lambda: numpy_table.to_pandas().convert_dtypes(),
        "Arrow": lambda: arrow_table.to_pandas(types_mapper=pandas.ArrowDtype),
        "objects": of_objects,
    }


@pytest.mark.parametrize("kind", pandas_frames())
def test_every_type_comes_back_from_pandas(kind: str) -> None:
    frame = pandas_frames()[kind]()
    release = released(frame, pa.table({name: [0] for name in frame.columns}))
    pandas.testing.assert_frame_equal(release.drop(columns="age"), frame.drop(columns="age"), check_exact=True)


def test_whole_numbers_beside_none_are_not_made_floats() -> None:
    frame = pandas.DataFrame({"age": [1, 1, 2, 2]})
    frame["id"] = pandas.Series([9007199254740993, None, 1, 2], dtype=object)
    release = released(frame, pa.table({"age": [0], "id": [0]}))
    assert release["id"].tolist() == [9007199254740993, None, 1, 2]


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "int64[pyarrow]"])
def test_bounds_of_nullable_whole_numbers_are_whole(dtype: str) -> None:
    frame = pandas.DataFrame({"age": pandas.array([1, 2, None, None], dtype=dtype)})
    release = sfumato.anonymize(frame, quasi_identifiers=["age"], k=2, form="bounds", keep_order=True).data
    assert str(release["age_min"].dtype) == ("int64[pyarrow]" if "pyarrow" in dtype else "Int64")
    assert release["age_max"].tolist() == [2, 2, pandas.NA, pandas.NA]


def test_bounds_that_some_classes_lack_are_whole() -> None:
    frame = pandas.DataFrame({"age": [1, 12, 25, 26]})
    flags: dict[str, Any] = {"quasi_identifiers": ["age"], "k": 2, "taxonomy": {"age": {"intervals": [5, 10]}}}
    release = sfumato.anonymize(frame, form="bounds", keep_order=True, **flags).data
    assert release["age"].tolist() == ["*", "*", "[25..29]", "[25..29]"]
    assert release["age_min"].tolist() == [pandas.NA, pandas.NA, 25, 25]


# Categories


def test_ordered_categories_keep_their_order_and_hold_what_is_released() -> None:
    names = ["low", "mid", "high"]
    shown = ["high", "low", "mid", "low"]
    table = pa.table({"age": [1, 1, 2, 2]})
    codes = pa.array([[UNREAD, *names].index(name) for name in shown], pa.int16())
    ordered = pa.DictionaryArray.from_arrays(codes, pa.array([UNREAD, *names], pa.large_string()), ordered=True)
    arrow = table.append_column("risk", ordered)
    frame = pandas.DataFrame({"age": [1, 1, 2, 2]})
    frame["risk"] = pandas.Categorical(shown, categories=[UNREAD, *names], ordered=True)
    enumeration = polars.DataFrame(
        {"age": [1, 1, 2, 2], "risk": polars.Series(shown, dtype=polars.Enum([UNREAD, *names]))}
    )
    of_pandas = released(frame, arrow)["risk"]
    assert (of_pandas.cat.categories.tolist(), of_pandas.cat.ordered, of_pandas.tolist()) == (names, True, shown)
    for reader in (arrow, Stream(arrow)):
        column = released(reader, arrow)["risk"]
        assert column.type == ordered.type
        assert (column.chunk(0).dictionary.to_pylist(), column.to_pylist()) == (names, shown)
    for data in (enumeration, enumeration.lazy()):
        column = released(data, arrow).lazy().collect()["risk"]
        assert (column.dtype, column.to_list()) == (polars.Enum(names), shown)
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TYPE level AS ENUM {(UNREAD, *names)}")
        connection.register("given", arrow.set_column(1, "risk", ordered.cast(pa.string())))
        relation = connection.sql("SELECT age, risk::level AS risk FROM given")
        release = released(relation, arrow)
        assert str(release.types[1]) == "ENUM('low', 'mid', 'high')"
        assert release.to_arrow_table()["risk"].to_pylist() == shown
        assert UNREAD not in release.sql_query()


def test_unordered_categories_ascend_and_hold_what_is_released() -> None:
    frame = pandas.DataFrame({"age": [1, 1, 2, 2]})
    frame["city"] = pandas.Categorical(["b", None, "a", "b"], categories=[UNREAD, "b", "a"])
    release = released(frame, pa.table({"age": [0], "city": [0]}))["city"]
    assert (release.cat.categories.tolist(), release.cat.ordered) == (["a", "b"], False)


# What is refused


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], [2], [], None]),
        pa.array([{"a": 1}] * 4),
        pa.array([[("a", 1)]] * 4, pa.map_(pa.string(), pa.int64())),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_that_are_no_single_values_are_refused_by_name(column: pa.Array) -> None:
    table = pa.table({"age": [1, 1, 2, 2], "odd": column})
    forms = [table, Stream(table), duckdb.from_arrow(table, connection=duckdb.connect())]
    if not pa.types.is_map(column.type):
        forms.append(polars.DataFrame(table))
    for data in forms:
        with pytest.raises(InputError, match="column 'odd'"):
            released(data, table)


@pytest.mark.parametrize(
    "values",
    [
        [1, "a", 2, 3],
        [9007199254740993, 0.5, 1, 2],
        [2**64, 1, 2, 3],
        [Decimal("1.5"), 1, 2, 3],
        [pandas.Timestamp(1), pandas.Timestamp(2), None, None],
        [pandas.Timedelta(1), None, None, None],
        [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), None, None],
        [1 + 2j, None, None, None],
        [{1}, None, None, None],
    ],
    ids=str,
)
def test_objects_that_would_change_are_refused_by_name(values: list[Any]) -> None:
    frame = pandas.DataFrame({"age": [1, 1, 2, 2], "odd": pandas.Series(values, dtype=object)})
    with pytest.raises(InputError, match="column 'odd'"):
        released(frame, pa.table({"age": [0], "odd": [0]}))


# Files and databases

DURATIONS = tuple(name for name in COLUMNS if name.startswith("duration"))
TIMES = tuple(name for name in COLUMNS if name.startswith("time"))
FINE = ("moment ns None", "moment ns UTC", "moment ns Europe/Berlin")
ZONED = tuple(name for name in COLUMNS if name.endswith(("UTC", "Berlin")))
REFUSED = {
    "t.csv": (*DURATIONS, "bytes"),
    "t.tsv": (*DURATIONS, "bytes"),
    "t.parquet": DURATIONS,
    "parts/": DURATIONS,
    "t.arrow": (),
    "t.xlsx": (
        *ZONED,
        *(name for name in COLUMNS if name.startswith("moment")),
        *("duration us", "duration ns", "time us", "time ns", "bytes", "string", "infinite"),
        *("int64", "int64 with null", "uint64", "uint64 with null", "beyond floats"),
    ),
    "t.sqlite#t": (*DURATIONS, *TIMES, *FINE, "uint64", "uint64 with null"),
    "t.duckdb#t": (*DURATIONS, *FINE, "time ns"),
    "postgresql": (*DURATIONS, *FINE, "time ns"),
}
BY_TYPE = {
    "t.csv": "bytes",
    "t.xlsx": "moment s UTC",
    **dict.fromkeys(("t.parquet", "parts/", "t.sqlite#t", "t.duckdb#t", "postgresql"), "duration s"),
}


@pytest.fixture(params=[*(name for name in REFUSED if name != "postgresql"), "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A kind of target, and a place of that kind."""
    if request.param == "postgresql":
        connection = request.getfixturevalue("postgres")
        return "postgresql", f"{address(connection)}#kept"
    return request.param, str(tmp_path / request.param.rstrip("/")) + ("/" if request.param.endswith("/") else "")


def plain(column: pa.Array) -> pa.Array:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


def meanings(column: pa.Array) -> list[Any]:
    """Values in a form in which all kinds of files can be compared: what has a unit of time in nanoseconds, no NaN."""
    kind = column.type
    if pa.types.is_date(kind):
        column, kind = column.cast(pa.timestamp("s")), pa.timestamp("s")
    if pa.types.is_temporal(kind):
        numbers = (column.cast(pa.int32()) if pa.types.is_time32(kind) else column).cast(pa.int64()).to_pylist()
        return [None if number is None else number * NANOSECONDS[kind.unit] for number in numbers]
    values = column.to_pylist()
    return [None if isinstance(value, float) and math.isnan(value) else value for value in values]


def from_text(text: str | None, kind: pa.DataType) -> Any:
    """Read a cell of a CSV file as a value of a type, in the form of ``meanings``."""
    if text is None or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return text
    if pa.types.is_boolean(kind):
        return {"true": True, "false": False}[text]
    if pa.types.is_float32(kind):
        return float(numpy.float32(text))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        parts = re.fullmatch(r"(\d{4}-\d\d-\d\d)? ?(\d\d:\d\d:\d\d)?(?:\.(\d+))?(.*)", text)
        assert parts is not None
        day, time, digits, offset = parts.groups("")
        moment = datetime.datetime.fromisoformat(f"{day or '1970-01-01'}T{time or '00:00:00'}{offset or 'Z'}")
        elapsed = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return (elapsed.days * 86_400 + elapsed.seconds) * 10**9 + int(digits.ljust(9, "0"))
    read = float if pa.types.is_floating(kind) else int if pa.types.is_integer(kind) else Decimal
    return read(text)


def test_every_type_is_read_back_from_a_target(target: tuple[str, str]) -> None:
    kind, name = target
    table = kept_table(without=REFUSED[kind])
    sfumato.anonymize(table, **release_flags(table)).write(name)
    source = open_source(name, InputOptions())
    kept = table.column_names[1:]
    back = pa.Table.from_batches(source.batches(kept))
    for column in kept:
        stored = plain(table[column].combine_chunks())
        found = back[column].combine_chunks()
        read = [from_text(text, stored.type) for text in found.to_pylist()] if source.text else meanings(found)
        if pa.types.is_decimal(stored.type) and pa.types.is_floating(found.type):
            # In a sheet, the number 2.55 is the double that has no shorter form.
            read = [None if value is None else Decimal(repr(value)) for value in read]
        assert read == meanings(stored), column


def test_a_column_that_a_target_cannot_hold_is_refused_by_name(target: tuple[str, str]) -> None:
    kind, name = target
    for column in REFUSED[kind]:
        table = pa.table({"age": ["a"] * 4, column: plain(COLUMNS[column])})
        with (
            pytest.raises(OutputError, match=f"column '{column}'"),
            open_target(location_of(name)) as opened,
        ):
            opened.write(table.schema, table.to_batches)


def test_a_type_that_a_target_cannot_hold_is_refused_before_any_work(
    target: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, name = target
    if kind not in BY_TYPE:
        return

    def read(*_: object) -> None:
        raise AssertionError("the table was read")

    monkeypatch.setattr(MemoryEngine, "read", read)
    column = BY_TYPE[kind]
    table = pa.table({"age": [1, 1, 2, 2], column: COLUMNS[column]})
    with pytest.raises(OutputError, match=f"column '{column}'"):
        anonymize_to_file(table, sfumato.Policy.from_dict(POLICY), name, Progress())


POLICY = {"other": "keep", "columns": {"age": {"role": "quasi-identifier"}}, "privacy": {"k": 2}}


def test_a_time_zone_is_kept_by_parquet_and_arrow(tmp_path: Path) -> None:
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    moments = [datetime.datetime(2024, 7, 1, 12, tzinfo=berlin)] * 4
    table = pa.table({"age": [1, 1, 2, 2], "seen": pa.array(moments, pa.timestamp("us", "Europe/Berlin"))})
    release = sfumato.anonymize(table, **release_flags(table))
    for name in ("t.parquet", "t.arrow"):
        release.write(tmp_path / name)
        source = open_source(tmp_path / name, InputOptions())
        assert source.types["seen"] == pa.timestamp("us", "Europe/Berlin")
    metadata = pa.parquet.read_metadata(tmp_path / "t.parquet").metadata
    assert set(metadata) == {b"ARROW:schema"}
    utc = table.set_column(1, "seen", table["seen"].cast(pa.timestamp("us", "UTC")))
    sfumato.anonymize(utc, **release_flags(utc)).write(tmp_path / "utc.parquet")
    assert pa.parquet.read_metadata(tmp_path / "utc.parquet").metadata is None
