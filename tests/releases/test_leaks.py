"""Nothing rides along: a release holds its rows and nothing else, whatever the kind of output.

Every original value that a release must not show carries a token of its own. Tokens are searched for in all bytes of a
release: compressed and not, shown or hidden in buffers, dictionaries and metadata.
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import math
import pickle
import random
import struct
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from pyarrow import parquet

import sfumato
from sfumato.errors import InputError
from sfumato.policy import Policy

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

RECORDS = 90
SUFFIXES = [".parquet", ".arrow", ".csv", ".tsv", ".csv.gz", ".csv.zst", ".xlsx"]
FRAMES = ["pyarrow", "record batch", "pandas", "polars", "polars-lazy", "duckdb"]
POLICY = Policy.from_dict(
    {
        "other": "drop",
        "columns": {
            "name": {"role": "identifier"},
            "number": {"role": "quasi-identifier"},
            "city": {"role": "quasi-identifier"},
            "born": {"role": "quasi-identifier"},
            "ward": {"role": "other"},
            "points": {"role": "other"},
            "disease": {"role": "sensitive"},
        },
        "privacy": {"k": 20},
    }
)


def people() -> pa.Table:
    """Numbers are so large that their bytes do not occur by chance."""
    chance = random.Random(7)
    rows = range(RECORDS)
    points = pa.array([row % 4 for row in rows], pa.int64())
    masked = pa.array([row % 9 == 0 for row in rows])
    hidden = pa.array([0x5EC7E75EC7E7 + row for row in rows], pa.int64())
    wards = pa.DictionaryArray.from_arrays(
        pa.array([row % 3 for row in rows], pa.int8()), pa.array(["south", "north", "west", "UNUSEDTOKEN"])
    )
    table = pa.table(
        {
            "name": [f"NAMETOKEN{row:03}" for row in rows],
            "number": pa.array(chance.sample(range(10**12, 10**13), RECORDS)),
            "city": [f"CITYTOKEN{row:03}" for row in rows],
            "born": pa.array([dt.date(1950, 1, 1) + dt.timedelta(days=97 * row) for row in rows]),
            "DROPTOKEN": [f"DROPTOKEN{row:03}" for row in rows],
            "ward": wards,
            "points": _with_hidden(points, masked, hidden),
            "disease": [("flu", "gout", None)[row % 3] for row in rows],
        }
    )
    return table.replace_schema_metadata({"METATOKEN": "METATOKEN"})


def _with_hidden(shown: pa.Array, masked: pa.Array, hidden: pa.Array) -> pa.Array:
    """Null where masked, with other values beneath the nulls."""
    beneath = np.where(masked.to_numpy(zero_copy_only=False), hidden.to_numpy(), shown.to_numpy())
    valid = np.packbits(~masked.to_numpy(zero_copy_only=False), bitorder="little")
    buffers = [pa.py_buffer(valid.tobytes()), pa.py_buffer(beneath.tobytes())]
    return pa.Array.from_buffers(pa.int64(), len(shown), buffers)


def as_frame(kind: str) -> Any:
    table = people()
    if kind == "record batch":
        return table.combine_chunks().to_batches()[0]
    if kind == "pandas":
        frame = table.to_pandas()
        frame["points"] = frame["points"].astype("Int64")
        frame.attrs["ATTRTOKEN"] = "ATTRTOKEN"
        return frame.set_index(pandas.Index([f"INDEXTOKEN{row}" for row in range(RECORDS)], name="INDEXTOKEN"))
    if kind == "polars":
        return polars.DataFrame(table)
    if kind == "polars-lazy":
        return polars.DataFrame(table).lazy()
    if kind == "duckdb":
        return duckdb.connect().from_arrow(table)
    return table


def released_texts(table: pa.Table) -> str:
    return "\n".join(str(value) for column in table.columns for value in column.to_pylist())


def forbidden(released: pa.Table) -> list[bytes]:
    """What must not be found: all tokens, and all values that no released label shows, as text and in binary."""
    original, shown = people(), released_texts(released)
    assert set(released["city"].to_pylist()) == {"*"}  # all cities are blurred away, so that all are looked for
    tokens = [f"{word}TOKEN" for word in ("NAME", "CITY", "DROP", "UNUSED", "META", "ATTR", "INDEX")]
    found = [token.encode() for token in tokens] + [struct.pack("<q", 0x5EC7E75EC7E7 + row) for row in range(RECORDS)]
    numbers = [number for number in original["number"].to_pylist() if str(number) not in shown]
    days = [day for day in original["born"].to_pylist() if day.isoformat() not in shown]
    assert len(numbers) > RECORDS // 2
    assert len(days) > RECORDS // 2
    for number in numbers:
        found += [str(number).encode(), struct.pack("<q", number), struct.pack("<d", number)]
    return found + [day.isoformat().encode() for day in days]


def assert_clean(content: bytes, released: pa.Table) -> None:
    assert content
    leaked = [token for token in forbidden(released) if token in content]
    assert leaked == []


def array_bytes(array: pa.Array) -> bytes:
    """All that an array holds in memory, shown or not."""
    own = b"".join(buffer.to_pybytes() for buffer in array.buffers() if buffer is not None)
    return own + (array_bytes(array.dictionary) if pa.types.is_dictionary(array.type) else b"")


def table_bytes(table: pa.Table) -> bytes:
    schema: bytes = table.schema.serialize().to_pybytes()
    return schema + b"".join(array_bytes(chunk) for column in table.columns for chunk in column.chunks)


def file_bytes(path: Path) -> bytes:
    """The bytes of a file, and those inside it."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content += gzip.decompress(content)
    elif path.suffix == ".zst":
        with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as stream:
            content += stream.read()
    elif path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as archive:
            content += b"".join(entry.filename.encode() + archive.read(entry) for entry in archive.infolist())
    elif path.suffix == ".parquet":
        text = ["city", "number", "born", "ward", "disease"]
        content += table_bytes(parquet.read_table(path, read_dictionary=text, partitioning=None))
    elif path.suffix == ".arrow":
        with pa.ipc.open_file(str(path)) as reader:
            content += table_bytes(reader.read_all())
    return content


def frame_bytes(frame: Any) -> tuple[bytes, pa.Table]:
    """All bytes of a frame that somebody who gets it could see, and its rows."""
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        return table_bytes(frame) + pickle.dumps(frame), frame
    if isinstance(frame, pandas.DataFrame):
        return pickle.dumps(frame) + repr(frame.attrs).encode(), pa.Table.from_pandas(frame, preserve_index=False)
    if isinstance(frame, polars.LazyFrame):
        content, table = frame_bytes(frame.collect())
        return content + frame.serialize(), table
    if isinstance(frame, polars.DataFrame):
        parts = [part for column in frame for part in column.to_arrow().buffers() if part is not None]
        return pickle.dumps(frame) + b"".join(map(bytes, parts)) + table_bytes(frame.to_arrow()), frame.to_arrow()
    assert isinstance(frame, duckdb.DuckDBPyRelation)
    table = frame.to_arrow_table()
    return table_bytes(table) + frame.sql_query().encode() + frame.explain().encode(), table


@pytest.fixture
def uncompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writers of compressed formats without their compression: pages and buffers can be read in the file."""
    writer, new_file = parquet.ParquetWriter, pa.ipc.new_file
    monkeypatch.setattr(
        parquet, "ParquetWriter", lambda *given, **named: writer(*given, **{**named, "compression": "none"})
    )
    monkeypatch.setattr(pa.ipc, "new_file", lambda sink, schema, **_: new_file(sink, schema))


def test_the_search_finds_what_is_there(tmp_path: Path) -> None:
    released = sfumato.anonymize(people(), POLICY).data
    parquet.write_table(people(), tmp_path / "t.parquet", compression="none")
    found = [token for token in forbidden(released) if token in file_bytes(tmp_path / "t.parquet")]
    assert {b"NAMETOKEN", b"CITYTOKEN", b"DROPTOKEN", b"METATOKEN"} <= set(found)
    assert len(found) > RECORDS // 2
    content, _ = frame_bytes(people())
    assert b"UNUSEDTOKEN" in content
    assert struct.pack("<q", 0x5EC7E75EC7E7) in content
    assert b"INDEXTOKEN" in frame_bytes(as_frame("pandas"))[0]
    assert b"ATTRTOKEN" in frame_bytes(as_frame("pandas"))[0]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("keep_order", [False, True])
def test_a_file_holds_no_value_that_was_not_released(tmp_path: Path, kind: str, suffix: str, keep_order: bool) -> None:
    release = sfumato.anonymize(as_frame(kind), POLICY, keep_order=keep_order)
    path = release.write(tmp_path / f"t{suffix}")
    _, released = frame_bytes(release.data)
    assert_clean(file_bytes(path), released)


@pytest.mark.usefixtures("uncompressed")
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("form", ["labels", "bounds"])
@pytest.mark.parametrize("keep_order", [False, True])
def test_pages_and_buffers_of_a_file_hold_no_value_that_was_not_released(
    tmp_path: Path, suffix: str, form: str, keep_order: bool
) -> None:
    release = sfumato.anonymize(people(), POLICY, form=form, keep_order=keep_order)
    path = release.write(tmp_path / f"t{suffix}")
    content = path.read_bytes()
    assert b"south" in content  # it is uncompressed indeed
    assert_clean(content, release.data)


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("keep_order", [False, True])
def test_a_frame_holds_no_value_that_was_not_released(kind: str, keep_order: bool) -> None:
    release = sfumato.anonymize(as_frame(kind), POLICY, keep_order=keep_order)
    content, released = frame_bytes(release.data)
    assert released.num_rows == RECORDS
    assert_clean(content, released)


@pytest.mark.parametrize("keep_order", [False, True])
def test_a_part_of_a_table_brings_nothing_of_the_rest(keep_order: bool) -> None:
    whole = pa.concat_tables(
        [people(), people().set_column(6, "points", pa.array([0x7E57_0000_7E57] * RECORDS, pa.int64()))]
    ).combine_chunks()
    part = whole.slice(0, RECORDS)
    assert struct.pack("<q", 0x7E57_0000_7E57) in table_bytes(part)
    released = sfumato.anonymize(part, POLICY, keep_order=keep_order).data
    assert struct.pack("<q", 0x7E57_0000_7E57) not in table_bytes(released)


def test_a_pandas_release_has_a_fresh_index_and_no_attributes() -> None:
    original = as_frame("pandas")
    released = sfumato.anonymize(original, POLICY).data
    assert released.index.equals(pandas.RangeIndex(RECORDS))
    assert released.index.name is None
    assert released.columns.name is None
    assert released.attrs == {}
    assert original.attrs == {"ATTRTOKEN": "ATTRTOKEN"}
    assert original.index[0] == "INDEXTOKEN0"


@pytest.mark.parametrize("kind", ["pyarrow", "pandas", "polars"])
def test_categories_are_the_released_values_in_ascending_order(kind: str) -> None:
    released = sfumato.anonymize(as_frame(kind), POLICY).data
    if kind == "pandas":
        stored = released["ward"].dtype
        categories = list(stored.categories) if isinstance(stored, pandas.CategoricalDtype) else None
    else:
        column = (released if kind == "pyarrow" else released.to_arrow()).column("ward").chunk(0)
        categories = column.dictionary.to_pylist() if pa.types.is_dictionary(column.type) else None
    assert categories is None or sorted(categories) == ["north", "south", "west"]
    assert categories is None or kind == "polars" or categories == sorted(categories)


def test_an_arrow_release_has_no_metadata() -> None:
    released = sfumato.anonymize(people(), POLICY).data
    assert released.schema.metadata is None
    assert all(field.metadata is None for field in released.schema)
    assert released.column_names == ["number", "city", "born", "ward", "points", "disease"]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_file_has_no_metadata(tmp_path: Path, suffix: str) -> None:
    path = sfumato.anonymize(as_frame("pandas"), POLICY).write(tmp_path / f"t{suffix}")
    if suffix == ".parquet":
        with parquet.ParquetFile(path) as file:
            assert file.metadata.metadata is None
            schema = file.schema_arrow
    else:
        with pa.ipc.open_file(str(path)) as reader:
            schema = reader.schema
    assert schema.metadata is None
    assert all(not field.metadata or set(field.metadata) == {b"PARQUET:field_id"} for field in schema)


def test_files_as_input_leave_no_trace_either(tmp_path: Path) -> None:
    table = people()
    table = table.set_column(5, "ward", table["ward"].cast(pa.string()))
    parquet.write_table(table, tmp_path / "SOURCETOKEN.parquet")
    with pa.ipc.new_file(str(tmp_path / "SOURCETOKEN.arrow"), people().schema) as writer:
        writer.write_table(people())
    pa.csv.write_csv(table, tmp_path / "SOURCETOKEN.csv")
    for source in sorted(tmp_path.glob("SOURCETOKEN.*")):
        release = sfumato.anonymize(source, POLICY)
        for suffix in SUFFIXES:
            path = release.write(tmp_path / f"{source.suffix[1:]}{suffix}")
            certificate = Path(f"{path}.sfumato.json").read_bytes()
            assert_clean(file_bytes(path), release.data)
            assert b"SOURCETOKEN" not in file_bytes(path) + certificate
            for token in (b"NAMETOKEN", b"CITYTOKEN", b"METATOKEN", b"UNUSEDTOKEN", str(tmp_path).encode()):
                assert token not in certificate


# The order of the rows.

OTHERS: dict[str, Callable[[int], object]] = {
    "int8": lambda row: (row * 37) % 256 - 128,
    "uint64": lambda row: 2**64 - 1 - row % 4,
    "float64": lambda row: (0.0, -0.0, float("nan"), None, float("-inf"), 0.1)[row % 6],
    "bool": lambda row: (True, False, None)[row % 3],
    "string": lambda row: ("è", "", "\U0001f600", None, "Z")[row % 5],
    "date32[day]": lambda row: dt.date(1969, 12, 29) + dt.timedelta(days=row % 7),
    "timestamp[us]": lambda row: dt.datetime(1969, 12, 31) + dt.timedelta(hours=9 * (row % 5)),
    "time32[s]": lambda row: dt.time(row % 24),
    "duration[us]": lambda row: dt.timedelta(hours=row % 5 - 2),
    "decimal": lambda row: Decimal(row % 7 - 3) / 4,
    "binary": lambda row: bytes([255 - row % 5]),
    "null": lambda _: None,
}
KINDS = {"decimal": pa.decimal128(9, 2), "null": pa.null(), "duration[us]": pa.duration("us"),
         "timestamp[us]": pa.timestamp("us"), "date32[day]": pa.date32(), "time32[s]": pa.time32("s"),
         "string": pa.string(), "binary": pa.binary(), "int8": pa.int8(), "uint64": pa.uint64(),
         "float64": pa.float64(), "bool": pa.bool_()}  # fmt: skip


def with_other_columns(order: list[int]) -> pa.Table:
    """Distinct records, so that the classes do not depend on the order of the rows."""
    columns = {name: pa.array([make(row) for row in order], KINDS[name]) for name, make in OTHERS.items()}
    return pa.table({"age": pa.array([row // 2 for row in order]), "sex": ["fm"[row % 2] for row in order], **columns})


def anonymized(order: list[int], **flags: object) -> sfumato.Release:
    return sfumato.anonymize(
        with_other_columns(order),
        quasi_identifiers=["age", "sex"],
        other="keep",
        k=10,
        accept_linkable=list(OTHERS),
        **flags,  # type: ignore[arg-type]
    )


ORDERS = [list(range(60)), list(reversed(range(60))), random.Random(1).sample(range(60), 60)]


def test_other_columns_of_all_types_ride_along_untouched() -> None:
    table = with_other_columns(ORDERS[2])
    released = anonymized(ORDERS[2], keep_order=True).data
    for name in OTHERS:
        assert repr(released[name].to_pylist()) == repr(table[name].to_pylist())
        assert released[name].type == table[name].type


@pytest.mark.parametrize("name", OTHERS)
def test_rows_are_sorted_by_what_is_released(name: str) -> None:
    def place(value: Any) -> tuple[Any, ...]:
        if value is None:
            return (2, 0)
        if isinstance(value, float):
            return (1, 0) if math.isnan(value) else (0, value, repr(value) != "-0.0")
        return (0, value.encode() if isinstance(value, str) else value)

    order = ORDERS[2]
    table = with_other_columns(order).select(["age", "sex", name])
    released = sfumato.anonymize(
        table, quasi_identifiers=["age", "sex"], other="keep", k=10, accept_linkable=[name]
    ).data
    rows = list(zip(*(column.to_pylist() for column in released.columns), strict=True))
    assert repr(rows) == repr(sorted(rows, key=lambda row: tuple(map(place, row))))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv", ".csv.gz", ".csv.zst", ".xlsx"])
def test_the_order_of_the_input_does_not_change_a_byte(tmp_path: Path, suffix: str) -> None:
    dropped = {".arrow": [], ".parquet": ["duration[us]"], ".xlsx": ["binary", "uint64", "float64", "string"]}.get(
        suffix, ["duration[us]", "binary"]
    )
    contents = set()
    for number, order in enumerate(ORDERS):
        release = sfumato.anonymize(
            with_other_columns(order).drop_columns(dropped),
            quasi_identifiers=["age", "sex"],
            other="keep",
            k=10,
            accept_linkable=[name for name in OTHERS if name not in dropped],
        )
        contents.add(release.write(tmp_path / f"{number}{suffix}").read_bytes())
    assert len(contents) == 1


def test_rows_that_are_released_alike_tell_no_order_apart(tmp_path: Path) -> None:
    """Two people who swap places in the input do so without a trace, though one value of theirs was blurred."""
    for number, ages in enumerate([[1, 2, 3, 4], [4, 3, 2, 1], [2, 1, 4, 3]]):
        table = pa.table({"age": ages, "points": [age % 2 for age in ages]})
        release = sfumato.anonymize(table, quasi_identifiers=["age"], other="keep", k=4, accept_linkable=["points"])
        release.write(tmp_path / f"{number}.csv")
    assert {path.read_text() for path in tmp_path.glob("*.csv")} == {"age,points\n*,0\n*,0\n*,1\n*,1\n"}


@pytest.mark.parametrize("value", [[1], {"a": 1}], ids=["list", "struct"])
def test_a_nested_column_is_refused_and_can_be_dropped(value: object) -> None:
    table = pa.table({"age": [1, 2], "visits": [value, value]})
    with pytest.raises(InputError, match=r"column 'visits' .*has the type .*[Dd]rop the column"):
        sfumato.anonymize(table, quasi_identifiers=["age"], other="keep", k=2)
    assert sfumato.anonymize(table, quasi_identifiers=["age"], other="drop", k=2).data.column_names == ["age"]


def test_null_and_empty_text_stay_apart_from_csv_to_csv(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('age;note\n1;""\n2;\n3;"a;b"\n4;=1+1\n')
    release = sfumato.anonymize(
        tmp_path / "in.csv",
        quasi_identifiers=["age"],
        other="keep",
        k=2,
        accept_linkable=["note"],
        input={"separator": ";"},
        keep_order=True,
    )
    path = release.write(tmp_path / "out.csv")
    assert path.read_text().splitlines() == [
        "age;note",
        '"[1..2]";""',
        '"[1..2]";',
        '"[3..4]";"a;b"',
        '"[3..4]";"=1+1"',
    ]
    assert list(csv.reader(io.StringIO(path.read_text()), delimiter=";"))[3] == ["[3..4]", "a;b"]
