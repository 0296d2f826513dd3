"""Frames of other libraries: what comes in is read as it is and left alone, what goes out is of the same kind."""

from __future__ import annotations

import datetime
import gc
import traceback
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import numpy
import pandas
import polars
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato
from sfumato.errors import InputError, UsageError
from sfumato.policy import InputOptions
from sfumato.tables.sources import frames
from sfumato.tables.sources.frames import to_frame
from sfumato.tables.sources.source import Source, open_source

SECRET = "Zaphod"
DAY = datetime.date(2020, 2, 29)

RELEASED = pa.table(
    {
        "age": pa.array(["[20..29]", "*", "[20..29]"]).dictionary_encode(),
        "count": pa.array([1, None, 3], pa.int32()),
        "note": pa.array(["x", None, ""]),
        "day": [DAY, None, DAY],
    }
).replace_schema_metadata({"pandas": SECRET, "origin": SECRET})


def opened(data: object) -> Source:
    return open_source(data, InputOptions())


def values(source: Source, *columns: str) -> dict[str, list[object]]:
    table = pa.Table.from_batches(source.batches(columns or source.names))
    result: dict[str, list[object]] = table.to_pydict()
    return result


def refusal(action: Callable[[], object]) -> str:
    """What an input error says; neither it nor its traceback has a secret cell."""
    with pytest.raises(InputError) as caught:
        action()
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


# What is a table


@pytest.mark.parametrize(
    "data",
    [
        None,
        3,
        b"table.csv",
        [1, 2],
        {"a": [1]},
        object(),
        numpy.zeros((2, 2)),
        pandas.Series([1], name="a"),
        pandas.DataFrame,
        polars.Series("a", [1]),
        pa.array([1]),
        pa.chunked_array([[1]]),
    ],
    ids=lambda data: type(data).__name__,
)
def test_what_is_not_a_table_is_refused_with_a_list_of_what_is(data: object) -> None:
    with pytest.raises(UsageError, match=r"pandas DataFrame.*Polars.*PyArrow.*DuckDB") as caught:
        opened(data)
    assert f"{type(data).__module__}.{type(data).__qualname__}" in str(caught.value)


def test_a_duckdb_connection_is_not_a_table() -> None:
    with pytest.raises(UsageError, match="DuckDBPyConnection is not a table"):
        opened(duckdb.connect())


def test_an_object_that_only_looks_like_a_frame_is_refused() -> None:
    frame = type("DataFrame", (), {})()
    with pytest.raises(UsageError, match="DataFrame is not a table"):
        opened(frame)


def test_frames_of_a_derived_class_are_frames() -> None:
    class Patients(pandas.DataFrame):  # type: ignore[misc]
        pass

    assert values(opened(Patients({"a": ["x"]}))) == {"a": ["x"]}


def test_a_stream_that_can_be_read_once_is_read_again_from_memory() -> None:
    source = opened(pa.RecordBatchReader.from_batches(RELEASED.schema, RELEASED.to_batches()))
    assert source.kind == "pyarrow"
    assert values(source, "note") == values(source, "note") == {"note": ["x", None, ""]}


# pandas


def test_the_pandas_index_is_no_column() -> None:
    frame = pandas.DataFrame({"a": [1, 2]}, index=pandas.Index([SECRET, "y"], name="id"))
    source = opened(frame)
    assert source.names == ("a",)
    assert values(source) == {"a": [1, 2]}


def test_pandas_columns_in_levels_are_refused() -> None:
    columns = pandas.MultiIndex.from_tuples([("a", "b"), ("a", "c")])
    assert "in 2 levels" in refusal(lambda: opened(pandas.DataFrame([[1, 2]], columns=columns)))


@pytest.mark.parametrize("columns", [["a", 1], [0, 1], [None, "a"]])
def test_pandas_columns_must_be_named_by_text(columns: list[object]) -> None:
    frame = pandas.DataFrame([[1, 2]])
    frame.columns = columns
    assert "named by a value of type" in refusal(lambda: opened(frame))


def test_pandas_columns_must_have_names_of_their_own() -> None:
    assert "columns 1 and 2" in refusal(lambda: opened(pandas.DataFrame([[1, 2]], columns=["a", "a"])))
    assert "column 2" in refusal(lambda: opened(pandas.DataFrame([[1, 2]], columns=["a", ""])))
    assert "no columns" in refusal(lambda: opened(pandas.DataFrame(index=[1, 2])))


@pytest.mark.parametrize(
    "cells",
    [
        [1, SECRET],
        [SECRET, 1.5],
        [SECRET, b"bytes"],
        [True, 2],
        [DAY, datetime.datetime(2020, 2, 29, 3)],
        [SECRET, DAY],
        [Decimal(1), SECRET],
        [object(), None],
        [10**30, None],
    ],
)
def test_pandas_objects_of_different_types_are_refused(cells: list[object]) -> None:
    frame = pandas.DataFrame({"good": [1, 2], "bad": pandas.Series(cells, dtype=object)})
    assert "column 'bad'" in refusal(lambda: opened(frame))


def test_pandas_categories_of_different_types_are_refused() -> None:
    frame = pandas.DataFrame({"bad": pandas.Categorical([1, SECRET])})
    assert "column 'bad'" in refusal(lambda: opened(frame))


@pytest.mark.parametrize("dtype", ["complex128", "Sparse[int64, 0]"])
def test_pandas_types_without_a_counterpart_are_refused(dtype: str) -> None:
    assert f"type {dtype}" in refusal(lambda: opened(pandas.DataFrame({"a": pandas.array([1, 2]).astype(dtype)})))


def test_pandas_objects_of_one_type_are_read() -> None:
    frame = pandas.DataFrame(
        {
            "text": pandas.Series(["x", None, numpy.nan], dtype=object),
            "number": pandas.Series([1, 2.5, None], dtype=object),
            "flag": pandas.Series([True, None, False], dtype=object),
            "day": pandas.Series([DAY, None, DAY], dtype=object),
            "money": pandas.Series([Decimal("1.50"), None, None], dtype=object),
        }
    )
    assert values(opened(frame)) == {
        "text": ["x", None, None],
        "number": [1.0, 2.5, None],
        "flag": [True, None, False],
        "day": [DAY, None, DAY],
        "money": [Decimal("1.50"), None, None],
    }


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "Float64", pandas.ArrowDtype(pa.float64()), object])
def test_nan_in_pandas_is_null(dtype: object) -> None:
    missing = pa.array([1.5, float("nan")]) if isinstance(dtype, pandas.ArrowDtype) else [1.5, float("nan")]
    frame = pandas.DataFrame({"a": pandas.Series(pandas.array(missing, dtype=dtype))})
    assert values(opened(frame)) == {"a": [1.5, None]}


def test_pandas_categories_hold_what_occurs() -> None:
    column = pandas.Categorical(["x", None, "y"], categories=[SECRET, "y", "x"], ordered=True)
    source = opened(pandas.DataFrame({"a": column, "b": pandas.Categorical([7, 8, 7])}))
    assert source.types == {"a": pa.string(), "b": pa.int64()}
    assert values(source) == {"a": ["x", None, "y"], "b": [7, 8, 7]}
    assert [sorted(batch.column("a").dictionary.to_pylist()) for batch in source.batches(["a"])] == [["x", "y"]]


def test_the_pandas_frame_is_not_modified() -> None:
    frame = pandas.DataFrame(
        {"a": pandas.Categorical(["x", "y"], categories=["x", "y", "z"]), "b": [1.0, None]}, index=[5, 3]
    )
    frame.attrs["origin"] = "here"
    before = frame.copy(deep=True)
    released = to_frame(RELEASED, "pandas", frame)
    values(opened(frame))
    pandas.testing.assert_frame_equal(frame, before, check_flags=True)
    assert frame.attrs == {"origin": "here"}
    assert isinstance(released, pandas.DataFrame)
    assert released.attrs == {}


def test_a_release_for_pandas_has_a_new_index_and_strings_of_the_usual_type() -> None:
    original = pandas.DataFrame({"age": pandas.Categorical(["23"]), "note": ["x"]}, index=[SECRET])
    original.attrs["origin"] = SECRET
    released = to_frame(RELEASED, "pandas", original)
    usual = pandas.DataFrame({"a": ["x"]})["a"].dtype
    assert isinstance(released, pandas.DataFrame)
    assert released.index.equals(pandas.RangeIndex(3))
    assert released.index.name is None
    assert released.attrs == {}
    assert released["age"].dtype == released["note"].dtype == usual
    assert released["age"].tolist() == ["[20..29]", "*", "[20..29]"]
    assert released["note"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize(
    "column",
    [
        pandas.array([1, None, 3], dtype="Int64"),
        pandas.array([1, None, 3], dtype="UInt8"),
        pandas.array([True, None, False], dtype="boolean"),
        pandas.array([1.5, None, 2.5], dtype="Float32"),
        pandas.array(["x", None, "y"], dtype="string"),
        pandas.array(["x", None, "y"], dtype="str"),
        pandas.array([1, None, 3], dtype=pandas.ArrowDtype(pa.int16())),
        pandas.array(["x", None, "y"], dtype=pandas.ArrowDtype(pa.string())),
        pandas.array([DAY, None, DAY], dtype=pandas.ArrowDtype(pa.date32())),
        pandas.to_datetime(["2020-02-29", None, "2020-03-01"]),
        pandas.to_datetime(["2020-02-29", None, "2020-03-01"], utc=True),
        numpy.array([1, 2, 3], dtype=numpy.int16),
        numpy.array([1.5, numpy.nan, 2.5]),
        numpy.array([True, False, True]),
        numpy.array([DAY, None, DAY], dtype=object),
    ],
    ids=lambda column: f"{type(column).__name__} {column.dtype}",
)
def test_a_pandas_column_comes_back_as_it_was(column: object) -> None:
    frame = pandas.DataFrame({"a": column})
    table = pa.Table.from_batches(opened(frame).batches(["a"]))
    released = to_frame(table, "pandas", frame, ["a"])
    assert isinstance(released, pandas.DataFrame)
    pandas.testing.assert_frame_equal(released, frame)


def test_a_pandas_number_that_became_text_is_text() -> None:
    frame = pandas.DataFrame({"age": pandas.array([23, 25, 31], dtype="Int64")})
    released = to_frame(RELEASED.select(["age"]), "pandas", frame)
    assert isinstance(released, pandas.DataFrame)
    assert released["age"].tolist() == ["[20..29]", "*", "[20..29]"]


# Polars


def test_polars_categories_and_enumerations_hold_what_occurs() -> None:
    shared = polars.Series([SECRET, "y", "x"], dtype=polars.Categorical)
    frame = polars.DataFrame({"a": shared, "b": polars.Series(["p"] * 3, dtype=polars.Enum([SECRET, "p"]))}).slice(1)
    for data in (frame, frame.lazy()):
        source = opened(data)
        assert source.types == {"a": pa.string(), "b": pa.string()}
        assert values(source) == {"a": ["y", "x"], "b": ["p", "p"]}
        for batch in source.batches(["a", "b"]):
            assert sorted(batch.column("a").dictionary.to_pylist()) == ["x", "y"]
            assert batch.column("b").dictionary.to_pylist() == ["p"]


@pytest.mark.parametrize("dtype", [polars.Object, polars.Int128])
def test_polars_types_without_a_counterpart_are_refused(dtype: polars.DataType) -> None:
    frame = polars.DataFrame({"good": [1], "bad": polars.Series([1], dtype=dtype)})
    assert "column 'bad'" in refusal(lambda: opened(frame))


def test_polars_names_that_look_like_patterns_are_names() -> None:
    frame = polars.DataFrame({"a": [1], "ab": [2], "^a.*$": [3], "*": [4]})
    for data in (frame, frame.lazy()):
        assert values(opened(data), "^a.*$") == {"^a.*$": [3]}
        assert values(opened(data), "*", "a") == {"*": [4], "a": [1]}


def test_nan_in_polars_is_left_for_others_to_judge() -> None:
    column = values(opened(polars.DataFrame({"a": [1.5, float("nan")]})))["a"]
    assert str(column) == "[1.5, nan]"


def test_a_lazy_frame_runs_only_for_the_columns_asked_for() -> None:
    ran: list[list[str]] = []

    def watch(frame: polars.DataFrame) -> polars.DataFrame:
        ran.append(frame.columns)
        return frame

    frame = polars.LazyFrame({"a": ["x", "y"], "b": [1, 2], "c": [3, 4]})
    lazy = frame.map_batches(watch, schema={"a": polars.String, "b": polars.Int64, "c": polars.Int64})
    source = opened(lazy)
    assert source.names == ("a", "b", "c")
    ran.clear()
    for _ in range(2):
        assert values(source, "a") == {"a": ["x", "y"]}
    assert len(ran) == 1


def test_a_lazy_frame_is_not_collected_when_it_is_opened() -> None:
    def fail(frame: polars.DataFrame) -> polars.DataFrame:
        if frame.height:
            raise AssertionError("collected")
        return frame

    assert opened(polars.LazyFrame({"a": [1]}).map_batches(fail, schema={"a": polars.Int64})).names == ("a",)


class Turning:
    """Gives its rows in another order each time it is run, as a query without an order may."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, frame: polars.DataFrame) -> polars.DataFrame:
        self.runs += 1
        return frame.reverse() if self.runs % 2 else frame


def test_a_lazy_frame_whose_rows_change_is_refused() -> None:
    schema = {"a": polars.String, "b": polars.Int64}
    lazy = polars.LazyFrame({"a": [SECRET, "y"], "b": [1, 2]}).map_batches(
        Turning(), schema=schema, projection_pushdown=False
    )
    source = opened(lazy)
    values(source, "a")
    assert "other rows, or another order" in refusal(lambda: values(source, "b"))


def test_later_columns_of_a_lazy_frame_belong_to_the_same_rows() -> None:
    frame = polars.DataFrame(
        {
            "a": polars.Series(["x", None, "y"], dtype=polars.Categorical),
            "b": [1.5, float("nan"), None],
            "c": [1, 2, 3],
        }
    )
    source = opened(frame.lazy())
    assert values(source, "a")["a"] == ["x", None, "y"]
    assert values(source, "c", "b")["c"] == [1, 2, 3]
    assert values(source, "c", "a") == {"c": [1, 2, 3], "a": ["x", None, "y"]}


def test_a_lazy_frame_that_fails_shows_no_cell() -> None:
    lazy = polars.LazyFrame({"a": [SECRET, "1"]}).with_columns(polars.col("a").cast(polars.Int64))
    source = opened(lazy)
    assert "could not be read (InvalidOperationError)" in refusal(lambda: values(source))
    assert "could not be read" in refusal(lambda: opened(polars.scan_parquet("/nowhere/table.parquet")))


@pytest.mark.parametrize("lazy", [False, True])
def test_a_release_for_polars_is_of_the_same_class(lazy: bool) -> None:
    original = polars.DataFrame({"age": ["23"]})
    released = to_frame(RELEASED, "polars-lazy" if lazy else "polars", original.lazy() if lazy else original)
    assert isinstance(released, polars.LazyFrame if lazy else polars.DataFrame)
    frame = released.lazy().collect()
    assert dict(frame.schema) == {
        "age": polars.String,
        "count": polars.Int32,
        "note": polars.String,
        "day": polars.Date,
    }
    assert frame.to_dict(as_series=False) == RELEASED.to_pydict()


# DuckDB


def test_a_duckdb_relation_is_read_whatever_its_names() -> None:
    connection = duckdb.connect()
    relation = connection.sql("""SELECT 'x' AS "a ""b"" c", 1 AS "select", 'p'::ENUM('p', 'q') AS "e.f" """)
    assert values(opened(relation)) == {'a "b" c': ["x"], "select": [1], "e.f": ["p"]}


@pytest.mark.parametrize("query", ["SELECT 1 AS a, 2 AS a", "SELECT 1 AS a, 2 AS A"])
def test_duckdb_names_that_sql_cannot_tell_apart_are_refused(query: str) -> None:
    assert "columns 1 and 2" in refusal(lambda: opened(duckdb.connect().sql(query)))


def test_a_duckdb_relation_whose_rows_change_is_refused() -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS SELECT '{SECRET}' AS a, 1 AS b")
    source = opened(connection.table("t"))
    values(source, "a")
    connection.execute("UPDATE t SET a = 'y'")
    assert "other rows" in refusal(lambda: values(source, "b"))


def test_a_duckdb_relation_that_fails_shows_no_cell() -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS SELECT '{SECRET}' AS a")
    source = opened(connection.sql("SELECT a::INTEGER AS a FROM t"))
    assert "could not be read (ConversionException)" in refusal(lambda: values(source))
    relation = connection.table("t")
    connection.close()
    assert "could not be read" in refusal(lambda: opened(relation))


def test_a_release_for_duckdb_lives_on_the_connection_of_the_original() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE notes AS SELECT 'x' AS note, 9 AS extra")
    original = connection.sql(f"SELECT '{SECRET}' AS age")
    released = to_frame(RELEASED, "duckdb", original)
    assert isinstance(released, duckdb.DuckDBPyRelation)
    assert released.to_arrow_table().to_pydict() == RELEASED.to_pydict()
    assert [str(kind) for kind in released.types] == ["VARCHAR", "INTEGER", "VARCHAR", "DATE"]
    assert released.join(connection.table("notes"), "note").project("extra").fetchall() == [(9,)]
    assert SECRET not in released.sql_query()


def test_a_release_for_an_unknown_duckdb_relation_lives_on_the_default_connection() -> None:
    released = to_frame(RELEASED, "duckdb", object())
    assert isinstance(released, duckdb.DuckDBPyRelation)
    assert len(released.fetchall()) == 3


# PyArrow


def test_a_release_for_pyarrow_carries_no_metadata_and_no_categories() -> None:
    field = pa.field("note", pa.string(), metadata={"origin": SECRET})
    table = RELEASED.set_column(2, field, RELEASED["note"])
    for kind in ("pyarrow", "csv", "parquet", "ipc", "excel"):
        released = to_frame(table, kind, "table.csv" if kind != "pyarrow" else table)
        assert isinstance(released, pa.Table)
        assert released.schema == pa.schema(
            {"age": pa.string(), "count": pa.int32(), "note": pa.string(), "day": pa.date32()}
        )
        assert released.schema.metadata is None
        assert all(field.metadata is None for field in released.schema)
        assert released.to_pydict() == RELEASED.to_pydict()


def test_a_release_for_a_record_batch_is_a_record_batch() -> None:
    original = RELEASED.to_batches()[0]
    chunked = pa.concat_tables([RELEASED.slice(0, 1), RELEASED.slice(1)])
    for table in (chunked, chunked.slice(0, 0)):
        released = to_frame(table, "pyarrow", original)
        assert isinstance(released, pa.RecordBatch)
        assert released.schema.metadata is None
        assert released.to_pydict() == table.to_pydict()


# Streams


def reader(table: pa.Table) -> pa.RecordBatchReader:
    """A reader that gives its rows once."""
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=100))


def test_a_reader_that_gives_its_rows_once_can_be_opened_again() -> None:
    table = pa.table({"a": list(range(2000)), "b": ["x", None] * 1000})
    stream = reader(table)
    for _ in range(2):
        source = opened(stream)
        assert (source.rows, values(source)) == (2000, table.to_pydict())


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
def test_a_reader_serves_what_reads_its_table_several_times() -> None:
    table = pa.table({"age": [number % 40 for number in range(2000)], "ill": ["a", "b"] * 1000})
    flags: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": "ill", "k": 5}
    expected = sfumato.anonymize(table, **flags).data
    assert sfumato.anonymize(reader(table), bound=True, **flags).data.equals(expected)
    rules = sfumato.fit(reader(table), **flags)
    assert sfumato.apply(rules, reader(table)).data.equals(sfumato.apply(rules, table).data)


def test_the_rows_of_a_reader_are_kept_only_as_long_as_the_reader() -> None:
    stream = reader(pa.table({"a": [1, 2]}))
    opened(stream)
    number = id(stream)
    assert number in frames._streams_read
    del stream
    gc.collect()
    assert number not in frames._streams_read


def test_a_stream_whose_rows_change_is_read_anew() -> None:
    class Growing:
        rows = 1

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.table({"a": list(range(self.rows))}).__arrow_c_stream__(requested_schema)

    frame = Growing()
    assert values(opened(frame)) == {"a": [0]}
    frame.rows = 2
    assert values(opened(frame)) == {"a": [0, 1]}


def test_an_empty_stream_has_no_records() -> None:
    assert "has no records" in refusal(lambda: values(opened(reader(pa.table({"a": pa.array([], pa.int64())})))))


# Every kind

KINDS: dict[str, Callable[[pa.Table], object]] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": polars.DataFrame,
    "polars-lazy": lambda table: polars.LazyFrame(polars.DataFrame(table)),
    "pyarrow": lambda table: table,
    "duckdb": duckdb.from_arrow,
}


@pytest.mark.parametrize("kind", KINDS)
@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5),
            st.integers(-(2**62), 2**62),
            st.none() | st.dates(datetime.date(1700, 1, 1), datetime.date(2200, 1, 1)),
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=examples(2 / 3), deadline=None)
def test_what_comes_in_goes_out_the_same(kind: str, rows: list[tuple[object, ...]]) -> None:
    schema = pa.schema({"text": pa.string(), "number": pa.int64(), "day": pa.date32()})
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema)
    original = KINDS[kind](table)
    source = opened(original)
    assert source.kind == kind
    released = to_frame(pa.Table.from_batches(source.batches(source.names)), kind, original)
    assert type(released) is type(original)
    assert values(opened(released)) == table.to_pydict()


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_the_original_is_not_modified(kind: str) -> None:
    table = pa.table({"a": pa.array(["x", "y", "x"]).dictionary_encode(), "b": [1.5, None, float("inf")]})
    original, copy = KINDS[kind](table), KINDS[kind](table)
    values(opened(original))
    to_frame(RELEASED, kind, original)
    assert original.equals(copy)  # type: ignore[attr-defined]
