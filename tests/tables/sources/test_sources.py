"""Reading: every kind of table gives the same batches; files that are not tables are refused without showing a cell."""

from __future__ import annotations

import datetime
import gzip
import os
import subprocess
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pandas
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from source_kinds import (
    KINDS,
    as_csv,
    in_csv,
    in_ipc_file,
    in_parquet,
    write_xlsx,
)

import sfumato.errors
from sfumato.errors import InputError, UsageError
from sfumato.policy import InputOptions
from sfumato.tables.sources import csv_blocks, parquet_source, text_stream
from sfumato.tables.sources.source import Source, open_source

TEXT = pa.dictionary(pa.int32(), pa.string())
DEFAULTS = InputOptions()
SECRET = "Zaphod"

CITIES = ["Roma", None, "Firenze", "Roma", 'Città, "alta"\ndi Bergamo']
AGES = [31, 22, None, 31, 67]
PLAIN = pa.table(
    {"city": pa.array(CITIES), "age": pa.array(AGES, pa.int64()), "sex": pa.array(["f", "m", "f", "m", "f"])}
)


@pytest.fixture(
    params=[pytest.param(kind, marks=pytest.mark.postgres) if kind == "postgresql" else kind for kind in KINDS]
)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[pa.Table], object]:
    """Turns an Arrow table into the same table of another kind."""
    place = request.getfixturevalue("postgres") if kind == "postgresql" else tmp_path
    return lambda table: KINDS[kind][1](table, place)


def read(source: Source, columns: list[str] | None = None) -> dict[str, list[object]]:
    """All values of the columns; batches are checked for what every source promises."""
    asked = list(source.names) if columns is None else columns
    values: dict[str, list[object]] = {name: [] for name in asked}
    for batch in source.batches(asked):
        batch.validate(full=True)
        assert batch.num_rows > 0
        assert batch.schema.names == asked
        for name, column in zip(asked, batch.columns, strict=True):
            if pa.types.is_string(source.types[name]):
                assert column.type == TEXT
                assert sorted(column.dictionary.to_pylist()) == sorted(column.unique().drop_null().to_pylist())
            else:
                assert column.type == source.types[name]
            values[name] += column.to_pylist()
    return values


def refusal(action: Callable[[], object]) -> str:
    """What an input error says; neither it nor its traceback has a secret cell."""
    with pytest.raises(InputError) as caught:
        action()
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


def refused_file(path: Path, content: bytes | str, options: InputOptions = DEFAULTS) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return refusal(lambda: read(open_source(path, options)))


# Every kind


def test_every_kind_gives_the_same_values(kind: str, make: Callable[[pa.Table], object]) -> None:
    source = open_source(make(PLAIN), DEFAULTS)
    ages = [None if age is None else str(age) for age in AGES] if source.text else AGES
    assert source.names == ("city", "age", "sex")
    assert source.kind == KINDS[kind][0]
    assert source.text == (source.kind == "csv")
    assert source.rows in (None, 5)
    assert read(source) == {"city": CITIES, "age": ages, "sex": ["f", "m", "f", "m", "f"]}


def test_text_columns_are_reported_as_strings(make: Callable[[pa.Table], object]) -> None:
    types = open_source(make(PLAIN), DEFAULTS).types
    assert list(types) == ["city", "age", "sex"]
    assert types["city"] == types["sex"] == pa.string()
    assert types["age"] in (pa.string(), pa.int64(), pa.float64())


def test_columns_come_in_the_order_asked_for(make: Callable[[pa.Table], object]) -> None:
    source = open_source(make(PLAIN), DEFAULTS)
    assert list(read(source, ["sex", "city"]).items()) == [("sex", ["f", "m", "f", "m", "f"]), ("city", CITIES)]


def test_reading_starts_anew_each_time(make: Callable[[pa.Table], object]) -> None:
    source = open_source(make(PLAIN), DEFAULTS)
    next(iter(source.batches(["city"])))
    assert read(source, ["city"]) == read(source, ["city"]) == {"city": CITIES}
    assert read(source, ["sex", "city"])["city"] == CITIES


def test_a_column_that_is_not_there_is_named(make: Callable[[pa.Table], object]) -> None:
    source = open_source(make(PLAIN), DEFAULTS)
    with pytest.raises(UsageError, match=r"'cty'.*Did you mean 'city'"):
        source.batches(["cty"])


def test_asking_for_no_column_is_a_mistake_of_the_caller(make: Callable[[pa.Table], object]) -> None:
    with pytest.raises(ValueError, match="at least one column"):
        open_source(make(PLAIN), DEFAULTS).batches([])


def test_a_table_without_records_is_refused(make: Callable[[pa.Table], object]) -> None:
    whole = make(PLAIN)
    empty = whole.slice(0, 0) if isinstance(whole, pa.RecordBatch) else make(PLAIN.slice(0, 0))
    assert "no records" in refusal(lambda: read(open_source(empty, DEFAULTS)))


def test_a_column_of_nothing_but_nulls_is_text(make: Callable[[pa.Table], object]) -> None:
    table = pa.table({"a": ["x", "y"], "nothing": pa.nulls(2)})
    source = open_source(make(table), DEFAULTS)
    if not source.kind.startswith("duckdb"):  # whose columns without a type are numbers
        assert source.types["nothing"] == pa.string()
    assert read(source, ["nothing"]) == {"nothing": [None, None]}


def test_the_empty_string_is_not_null(kind: str, make: Callable[[pa.Table], object]) -> None:
    values = ["", None, "x"]
    table = pa.table({"a": values, "b": ["1", "2", "3"]})
    expected = [None, None, "x"] if kind == "excel" else values  # where there is no empty string
    assert read(open_source(make(table), DEFAULTS), ["a"]) == {"a": expected}


@pytest.mark.not_quick
def test_more_rows_than_a_batch_holds_come_in_order(
    kind: str, make: Callable[[pa.Table], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "excel":  # a sheet of many rows takes long to write
        monkeypatch.setattr("sfumato.tables.sources.source_batches.BATCH_ROWS", 1_000)
    numbers = pa.array(range(3_000 if kind == "excel" else 300_000)).cast(pa.string())
    source = open_source(make(pa.table({"a": numbers, "b": numbers})), DEFAULTS)
    batches = list(source.batches(["b"]))
    assert len(batches) > 1
    assert pa.chunked_array([batch.column("b") for batch in batches]).cast(pa.string()).combine_chunks() == numbers


@given(
    rows=st.lists(
        st.lists(st.none() | st.text(st.sampled_from('ab,;"\n\r\té漢 \u2028'), max_size=4), min_size=2, max_size=2),
        min_size=1,
        max_size=6,
    ),
    separator=st.sampled_from(",;\t|"),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "gb18030"]),
    final_line_end=st.booleans(),
)
@settings(max_examples=examples(3.5), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_cells_come_through_csv_unchanged(
    tmp_path: Path,
    rows: list[list[str | None]],
    separator: str,
    line_end: str,
    encoding: str,
    final_line_end: bool,
) -> None:
    table = pa.table({"first": [row[0] for row in rows], "last": [row[1] for row in rows]}, schema=TWO_TEXTS)
    text = as_csv(table, separator, line_end)
    path = tmp_path / "table.csv"
    path.write_bytes((text if final_line_end else text.removesuffix(line_end)).encode(encoding))
    source = open_source(path, InputOptions(separator=separator, encoding=encoding))
    assert read(source) == table.to_pydict()


TWO_TEXTS = pa.schema({"first": pa.string(), "last": pa.string()})


def naive_records(text: str) -> list[list[str | None]] | None:
    """A CSV text read character by character; None when its last quote is never closed."""
    records: list[list[str | None]] = []
    cells: list[str | None] = []
    position = 0
    text += "" if text.endswith(("\n", "\r")) else "\n"
    while position < len(text):
        cell, quoted = "", text[position] == '"'
        if quoted:
            position += 1
            while text[position : position + 2] == '""' or text[position : position + 1] not in ('"', ""):
                step = 2 if text[position] == '"' else 1
                cell, position = cell + text[position], position + step
            if position >= len(text):
                return None
            position += 1
        while text[position] not in ",\r\n":
            cell, position = cell + text[position], position + 1
        cells.append(cell if cell or quoted else None)
        if text[position] != ",":
            position += text[position : position + 2] == "\r\n"
            records.append(cells)
            cells = []
        elif text[position + 1] in "\r\n":
            # A separator at the end of a line has an empty cell behind it.
            cells.append(None)
            position += 1
            position += text[position : position + 2] == "\r\n"
            records.append(cells)
            cells = []
        position += 1
    return records


@given(
    header=st.sampled_from(["a", "a,b", "a,b,c"]),
    body=st.text(st.sampled_from('x,"\n\r'), max_size=12),
    block_bytes=st.integers(13, 20),
)
@settings(max_examples=examples(10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_csv_file_is_read_whole_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, body: str, block_bytes: int
) -> None:
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", block_bytes)  # which any record fits into, but not the whole file
    path = tmp_path / "table.csv"
    path.write_bytes(f"{header}\n{body}".encode())
    width = header.count(",") + 1
    records = naive_records(body) if body else []
    if records is not None and width > 1:
        records = [record for record in records if record != [None]]
    if not records or any(len(record) != width for record in records):
        refusal(lambda: read(open_source(path, DEFAULTS)))
    else:
        columns = read(open_source(path, DEFAULTS)).values()
        assert [list(record) for record in zip(*columns, strict=True)] == records


# CSV


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "mac-roman"])
def test_csv_is_read_in_its_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes("prénom,âge\nZoë,31\n".encode(encoding))
    assert read(open_source(path, InputOptions(encoding=encoding))) == {"prénom": ["Zoë"], "âge": ["31"]}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes("\ufeffa,b\n1,2\n".encode(encoding))
    assert open_source(path, InputOptions(encoding=encoding)).names == ("a", "b")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "shift_jis", "gb18030"])
def test_characters_on_the_border_of_two_blocks_stay_whole(tmp_path: Path, encoding: str) -> None:
    cells = ["漢字" * (length % 7) + "a" * (length % 3) or "b" for length in range(150_000)]
    path = tmp_path / "table.csv"
    path.write_bytes(("x,y\n" + "".join(f"{cell},1\n" for cell in cells)).encode(encoding))
    assert path.stat().st_size > 2 << 20
    assert read(open_source(path, InputOptions(encoding=encoding)), ["x"])["x"] == cells


@pytest.mark.parametrize("separator", [";", "\t", "|", " "])
def test_csv_is_split_at_its_separator(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"a{separator}b\n1,5{separator}x\n")
    assert read(open_source(path, InputOptions(separator=separator))) == {"a": ["1,5"], "b": ["x"]}


def test_a_tsv_file_with_semicolons_is_read_with_semicolons(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    path.write_text("a;b\n1;2\n")
    assert read(open_source(path, InputOptions(separator=";"))) == {"a": ["1"], "b": ["2"]}


def test_csv_cells_keep_their_characters(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n007,NA\n 1.50 ,?\n1e3,null\ntrue,2020-01-01\n")
    assert read(open_source(path, InputOptions(nulls=("", "NA", "?")))) == {
        "a": ["007", " 1.50 ", "1e3", "true"],
        "b": ["NA", "?", "null", "2020-01-01"],
    }


def test_empty_lines_are_no_records_unless_there_is_one_column(tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("a,b\n\n1,2\n\n\n3,4\n\n")
    (tmp_path / "one.csv").write_text('a\n1\n\n""\n2\n')
    assert read(open_source(tmp_path / "two.csv", DEFAULTS)) == {"a": ["1", "3"], "b": ["2", "4"]}
    assert read(open_source(tmp_path / "one.csv", DEFAULTS)) == {"a": ["1", None, "", "2"]}


def test_a_header_may_have_quotes_and_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text('"age,\nin ""years""",b\n1,2\n')
    assert read(open_source(path, DEFAULTS)) == {'age,\nin "years"': ["1"], "b": ["2"]}


def test_compressed_parts_that_follow_each_other_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"3,4\n"))
    assert read(open_source(path, DEFAULTS))["a"] == ["1", "3"]


@pytest.mark.not_quick
@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_file_that_expands_too_far_is_refused_unless_told(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_stream, "HARMLESS", 1 << 20)
    path = tmp_path / f"table.csv{suffix}"
    with pa.output_stream(str(path)) as sink:
        sink.write(f"a,b\n{SECRET},2\n".encode() + b"1,2\n" * 500_000)
    said = refusal(lambda: read(open_source(path, DEFAULTS)))
    assert said.startswith(f"the file {str(path)!r} holds far more text than compressed tables do: more than 1 MiB.")
    assert "--max-expansion, or max_expansion in [input]" in said
    assert len(read(open_source(path, InputOptions(max_expansion=20_000)))["a"]) == 500_001
    assert len(read(open_source(path, InputOptions(max_expansion=None)))["a"]) == 500_001
    monkeypatch.setattr(text_stream, "HARMLESS", 1 << 24)
    assert len(read(open_source(path, DEFAULTS))["a"]) == 500_001  # so little text does no harm


def test_a_record_may_be_longer_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 16)
    monkeypatch.setattr(csv_blocks, "RECORD_BYTES", 100)
    path = tmp_path / "table.csv"
    path.write_text(f'a,b\n1,"{"x" * 40}\n"\n3,4\n')
    assert read(open_source(path, DEFAULTS)) == {"a": ["1", "3"], "b": ["x" * 40 + "\n", "4"]}
    assert "cannot be read as CSV" in refused_file(path, f"a,b\n1,{'x' * 200}\n3,4\n")


def test_wide_rows_of_parquet_are_read_in_small_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group is not read whole, and text with many values not as one dictionary for all its batches."""
    monkeypatch.setattr(parquet_source, "BATCH_BYTES", 10_000)
    monkeypatch.setattr(parquet_source, "DICTIONARY_BYTES", 100)
    notes = [f"{number:0100}" for number in range(1_000)]
    parquet.write_table(pa.table({"sex": ["m", "f"] * 500, "note": notes}), tmp_path / "in.parquet")
    source = open_source(tmp_path / "in.parquet", DEFAULTS)
    batches = list(source.batches(["note", "sex"]))
    assert max(batch.num_rows for batch in batches) < 110
    assert max(len(batch.column("note").dictionary) for batch in batches) < 110
    assert [text for batch in batches for text in batch.column("note").to_pylist()] == notes
    assert [batch.num_rows for batch in source.batches(["sex"])] == [1_000]


@pytest.mark.parametrize(
    "content, line, fields",
    [
        (f"a,b,c\n1,2,3\n{SECRET},2\n", "line 3 ", 2),
        (f"a,b,c\n1,2,3\n{SECRET},2,3,4\n", "line 3 ", 4),
        (f'a,b,c\n1,"2\n\n{SECRET}\n",3\n\n4,5\n', "line 7 ", 2),
        (f'a,b,c\r\n1,"{SECRET}\r\n",3\r\n4,5,6,7,8\r\n', "line 4 ", 5),
        (f'a,b,c\r1,"{SECRET}\r",3\r4,5\r', "line 4 ", 2),
        (f'a,b,c\n1,2,"{SECRET}\n3"",4\n5,6"\n7,8\n', "line 5 ", 2),
        (f'a,b,c\n1,"{SECRET}\n3"\n', "lines 2 to 3 ", 2),
        (f'"a\n",b,c\n1,2,3\n{SECRET}\n', "line 4 ", 1),
        (f'a,b,c\n1,x"y,3\n"p"q,"",""\n{SECRET},"""",\n4,5\n', "line 5 ", 2),
    ],
)
def test_a_record_of_another_width_is_told_by_its_line(tmp_path: Path, content: str, line: str, fields: int) -> None:
    message = refused_file(tmp_path / "table.csv", content)
    assert f"the record at {line}of" in message
    assert f"has {fields} fields, but the header has 3" in message


@pytest.mark.not_quick
def test_the_line_is_right_far_into_a_compressed_file_in_another_encoding(tmp_path: Path) -> None:
    content = "a,b\n" + f'é,"{"x" * 70}\n2"\n' * 120_000 + f"{SECRET}\n"
    message = refused_file(
        tmp_path / "table.csv.gz", gzip.compress(content.encode("cp1252"), 1), InputOptions(encoding="cp1252")
    )
    assert "line 240002 " in message


@pytest.mark.parametrize(
    "content, line",
    [
        (f'a,b\n1,2\n3,"{SECRET}\n', 3),
        (f'a,b\n1,2\n3,"{SECRET}', 3),
        (f'a,b\n1,"2"\n3,"{SECRET}""\n4,5\n', 3),
        (f'a,b\n"{SECRET},2\n3,4\n', 2),
        (f'a,"b{SECRET}\n1,2\n', 1),
        (f'a\n1\n"{SECRET}\n', 3),
        (f'a,b\n"x""",y"z\n1,"\n{SECRET}\r\n', 3),
    ],
)
def test_a_quote_that_is_never_closed_is_told_by_its_line(tmp_path: Path, content: str, line: int) -> None:
    message = refused_file(tmp_path / "table.csv", content)
    assert f"line {line} of" in message
    assert "opens a quote that is never closed" in message


def test_a_quote_that_is_never_closed_is_found_when_its_column_is_not_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f'a,b\n1,2\n3,"{SECRET}')
    assert "never closed" in refusal(lambda: read(open_source(path, DEFAULTS), ["a"]))


@pytest.mark.not_quick
def test_a_quote_that_is_never_closed_is_found_in_a_large_file(tmp_path: Path) -> None:
    message = refused_file(
        tmp_path / "table.csv", f'a,b\n1,"{SECRET}\n' + "1,22222222222222222222222222222222222222\n" * 500_000
    )
    assert "line 2 of" in message
    assert "never closed" in message


def test_a_record_that_is_too_long_is_refused(tmp_path: Path) -> None:
    message = refused_file(tmp_path / "table.csv", f'a,b\n1,"{SECRET * 4_000_000}"\n')
    assert "A record longer than 8 MiB" in message


@pytest.mark.parametrize(
    "content, said",
    [
        ("", "is empty"),
        ("\n", "line 1 of"),
        ("\na,b\n1,2\n", "line 1 of"),
        ("a,b", "has a header and no records"),
        ("a,b\n", "has a header and no records"),
        ("a,b\n\n\n", "has a header and no records"),
        ("a\n", "has a header and no records"),
        (f"31,{SECRET},b,{SECRET}\n1,2,3,4\n", "columns 2 and 4 of"),
        (f"{SECRET},,b\n1,2,3\n", "column 2 of"),
        (f"{SECRET}, \n1,2\n", "column 2 of"),
        (f"{SECRET},\n1,2\n", "column 2 of"),
        (f'{SECRET},""\n1,2\n', "column 2 of"),
        ("a" * 200_000 + ",b\n1,2\n", "too long"),
    ],
)
def test_a_csv_file_without_a_sound_header_or_records_is_refused(tmp_path: Path, content: str, said: str) -> None:
    assert said in refused_file(tmp_path / "table.csv", content)


def test_a_compressed_file_of_nothing_is_empty(tmp_path: Path) -> None:
    assert "is empty" in refused_file(tmp_path / "table.csv.gz", gzip.compress(b""))


def test_bytes_in_another_encoding_are_told_by_place(tmp_path: Path) -> None:
    content = f"name,age\n{SECRET},1\n".encode() + "Zoë,2\n".encode("cp1252")
    message = refused_file(tmp_path / "table.csv", content)
    assert "not text in the encoding utf-8: byte 20, near line 3" in message
    assert "'cp1252'" in message


def test_bytes_in_another_encoding_are_found_in_columns_that_nobody_asks_for(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes("name,age\nZoë,2\n".encode("cp1252"))
    assert "near line 2" in refusal(lambda: read(open_source(path, DEFAULTS), ["age"]))


def test_bytes_in_another_encoding_are_told_by_place_far_into_the_file(tmp_path: Path) -> None:
    line = "Zoë,12\r\n".encode()
    message = refused_file(tmp_path / "table.csv", b"a,b\r\n" + line * 500_000 + b"Zo\xeb,1\r\n")
    assert f"byte {5 + len(line) * 500_000 + 2:,}, near line 500002" in message


@pytest.mark.parametrize(
    "content, encoding, said",
    [
        ("a,b\n1,é".encode()[:-1], "utf-8", "byte 6"),
        (f"a,b\n1,{SECRET}\n".encode("utf-16"), "utf-8", "add --encoding utf-16, or encoding = 'utf-16' to [input]"),
        (f"a,b\n1,{SECRET}\n".encode("utf-16-le"), "utf-8", "NUL character at line 1"),
        (f"a,b\n1,{SECRET}\n".encode("utf-16"), "cp1252", "add --encoding utf-16, or encoding = 'utf-16' to [input]"),
        (f"a,b\n1,{SECRET}\n".encode("utf-16") + b"x", "utf-16", "not text in the encoding utf-16"),
        (f"a,b\n1,{SECRET}é\n".encode(), "ascii", "near line 2"),
        (f"a,b\n{SECRET},2\n3,\0\n".encode(), "utf-8", "NUL character at line 3"),
        (f"a,b\n{SECRET},+2AA-\n".encode(), "utf-7", "not text in the encoding utf-7"),
    ],
)
def test_what_is_not_text_in_its_encoding_is_refused(tmp_path: Path, content: bytes, encoding: str, said: str) -> None:
    assert said in refused_file(tmp_path / "table.csv", content, InputOptions(encoding=encoding))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_compressed_file_that_is_cut_off_is_refused(tmp_path: Path, suffix: str) -> None:
    text = "a,b\n" + "".join(f"{SECRET}{number},{number * 7919}\n" for number in range(5000))
    codec = {".gz": "gzip", ".zst": "zstd"}[suffix]
    whole = pa.compress(text.encode(), codec=codec, asbytes=True)
    assert "damaged" in refused_file(tmp_path / f"table.csv{suffix}", whole[:-20])
    assert "damaged" in refused_file(tmp_path / f"table.csv{suffix}", text)


def test_a_csv_file_that_disappears_is_an_input_error(tmp_path: Path) -> None:
    source = open_source(in_csv(PLAIN, tmp_path), DEFAULTS)
    (tmp_path / "table.csv").unlink()
    assert "can no longer be opened" in refusal(lambda: read(source))


@pytest.mark.parametrize("separator", ["", ",,", '"', "\n", "\r", "§", "\0"])
def test_a_separator_must_be_one_plain_character(separator: str) -> None:
    with pytest.raises(UsageError, match="separator"):
        InputOptions(separator=separator)


@pytest.mark.parametrize("encoding", ["utf-99", "hex", "", "a\0b"])
def test_an_encoding_must_be_one_of_text(encoding: str) -> None:
    with pytest.raises(UsageError, match="unknown encoding"):
        InputOptions(encoding=encoding)


def test_reading_may_stop_halfway(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + "1,22222222222222222222222222222222222222\n" * 600_000)
    for _ in range(3):
        batches = open_source(path, DEFAULTS).batches(["a"])
        assert next(batches).num_rows > 0
        batches.close()  # type: ignore[attr-defined]


# Files that cannot be read


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for name in ("none.csv", "none.parquet", "none.arrow", "none.xlsx", "none"):
        assert "does not exist" in refusal(partial(open_source, tmp_path / name, DEFAULTS))


def test_a_directory_is_refused(tmp_path: Path) -> None:
    for name in ("folder.csv", "folder.parquet", "folder"):
        (tmp_path / name).mkdir()
        assert "is a directory" in refusal(partial(open_source, tmp_path / name, DEFAULTS))


def test_a_path_that_no_system_takes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file.csv").write_text("a\n1\n")
    assert "cannot be opened" in refusal(lambda: open_source("a\0b.csv", DEFAULTS))
    assert "cannot be opened" in refusal(lambda: open_source(tmp_path / "file.csv" / "x.csv", DEFAULTS))
    assert "cannot be opened" in refusal(lambda: open_source("x" * 5000 + ".csv", DEFAULTS))


@pytest.fixture
def forbidden_file() -> Iterator[Path]:
    """A file that only its owner may read, where others may look for it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "table.csv"
        path.write_text(f"a,b\n1,{SECRET}\n")
        path.chmod(0o600 if os.geteuid() == 0 else 0)
        yield path


def test_a_file_without_permission_is_refused(forbidden_file: Path) -> None:
    # Root may read anything, so the test is run as somebody else then.
    code = (
        "import os, sys; from sfumato.errors import InputError; from sfumato.tables.sources.source import *\n"
        "import sfumato.tables.targets.target  # somebody else may not be able to import it\n"
        "if os.geteuid() == 0: os.seteuid(65534)\n"
        "try: open_source(sys.argv[1], InputOptions())\n"
        "except InputError as error: print(error)"
    )
    root = str(Path(sfumato.errors.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code, str(forbidden_file)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert "may not be read by this user" in done.stdout
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.parametrize("name", ["table", "table.json", "table.gz", "table.parquet.gz", "table.xlsx.zst", ".csv"])
def test_a_name_that_does_not_tell_the_kind_is_refused(tmp_path: Path, name: str) -> None:
    message = refused_file(tmp_path / name, f"a,b\n1,{SECRET}\n")
    assert "does not tell what kind" in message
    assert ".parquet" in message


@pytest.mark.parametrize("name", ["t.parquet", "t.pq", "t.arrow", "t.ipc", "t.feather", "t.xlsx", "t.xls", "t.ods"])
@pytest.mark.parametrize(
    "content", [f"a,b\n1,{SECRET}\n" * 50, f"PAR1 {SECRET} PAR1", f"ARROW1 {SECRET} ARROW1", f"PK\3\4 {SECRET}", "FEA1"]
)
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path, name: str, content: str) -> None:
    assert "cannot be read as" in refused_file(tmp_path / name, content)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow", "t.xlsx"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    assert "is empty" in refused_file(tmp_path / name, "")


@pytest.mark.parametrize("kind", ["parquet", "ipc file", "ipc stream", "excel"])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, kind: str) -> None:
    table = pa.table({"a": [f"{SECRET}{number}" for number in range(2000)]})
    path = KINDS[kind][1](table, tmp_path)
    assert isinstance(path, Path)
    whole = path.read_bytes()
    for size in (len(whole) // 4, len(whole) // 2, len(whole) - 10):
        if kind == "ipc stream" and size == len(whole) - 10:
            continue  # what is missing there is only the mark of the end
        assert "cannot be read as" in refused_file(path, whole[:size])


def test_damaged_pages_of_a_parquet_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    parquet.write_table(pa.table({"a": [f"{SECRET}{number}" for number in range(5000)]}), path)
    content = bytearray(path.read_bytes())
    content[200:2000] = bytes(1800)
    assert "damaged" in refused_file(path, bytes(content))


def test_codes_outside_the_dictionary_of_an_arrow_file_are_refused(tmp_path: Path) -> None:
    wrong = pa.DictionaryArray.from_arrays(pa.array([0, 900_000_000]), pa.array([SECRET]), safe=False)
    path = in_ipc_file(pa.table({"a": wrong}), tmp_path)
    assert "damaged" in refusal(lambda: read(open_source(path, DEFAULTS)))


# Parquet and Arrow


@pytest.mark.parametrize("kind", ["parquet", "ipc file", "ipc stream", "pyarrow", "polars", "polars lazy", "duckdb"])
def test_nested_columns_are_refused_only_when_asked_for(tmp_path: Path, kind: str) -> None:
    table = pa.table({"a": ["x"], "list": [[1, 2]], "struct": [{"p": 1}]})
    source = open_source(KINDS[kind][1](table, tmp_path), DEFAULTS)
    assert read(source, ["a"]) == {"a": ["x"]}
    for name in ("list", "struct"):
        assert f"column {name!r}" in refusal(partial(source.batches, ["a", name]))


@pytest.mark.parametrize("kind", ["parquet", "ipc file", "ipc stream", "pyarrow", "record batch", "arrow stream"])
@pytest.mark.parametrize(
    "stored",
    [
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.uint16(), pa.large_string()),
        pa.dictionary(pa.int64(), pa.string()),
    ],
)
def test_every_form_of_text_arrives_alike(tmp_path: Path, kind: str, stored: pa.DataType) -> None:
    values = ["x", None, "y", "x"]
    encoded = pa.array(values)
    if pa.types.is_dictionary(stored):
        codes = pa.array([0, None, 1, 0], stored.index_type)
        encoded = pa.DictionaryArray.from_arrays(codes, pa.array(["x", "y"], stored.value_type))
    else:
        encoded = encoded.cast(stored)
    source = open_source(KINDS[kind][1](pa.table({"a": encoded}), tmp_path), DEFAULTS)
    assert source.types == {"a": pa.string()}
    assert read(source) == {"a": values}


@pytest.mark.parametrize("kind", ["ipc file", "ipc stream", "pyarrow", "record batch"])
def test_dictionaries_are_cleaned_of_unused_equal_and_missing_values(tmp_path: Path, kind: str) -> None:
    codes = pa.array([4, 0, None, 2, 1], pa.int32())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["x", "y", None, SECRET, "x"]))
    source = open_source(KINDS[kind][1](pa.table({"a": column}), tmp_path), DEFAULTS)
    batches = list(source.batches(["a"]))
    assert [value for batch in batches for value in batch.column("a").to_pylist()] == ["x", "x", None, None, "y"]
    for batch in batches:
        dictionary = batch.column("a").dictionary.to_pylist()
        assert set(dictionary) <= {"x", "y"}
        assert len(set(dictionary)) == len(dictionary)


@pytest.mark.parametrize("kind", ["parquet", "ipc file", "pyarrow", "polars", "duckdb"])
def test_columns_that_are_not_text_keep_their_type(tmp_path: Path, kind: str) -> None:
    table = pa.table(
        {
            "small": pa.array([1, None], pa.int8()),
            "float": pa.array([1.5, float("inf")], pa.float32()),
            "flag": [True, None],
            "day": [datetime.date(2020, 2, 29), None],
            "time": pa.array([datetime.datetime(2020, 2, 29, 12), None], pa.timestamp("us")),
            "money": pa.array([None, None], pa.decimal128(10, 2)),
            "codes": pa.array([7, None], pa.int64()),
        }
    )
    source = open_source(KINDS[kind][1](table, tmp_path), DEFAULTS)
    assert source.types == dict(zip(table.schema.names, table.schema.types, strict=True))
    assert read(source) == table.to_pydict()


def test_categories_that_are_not_text_arrive_as_their_values() -> None:
    table = pa.table({"a": pa.array([7, None, 7]).dictionary_encode()})
    source = open_source(table, DEFAULTS)
    assert source.types == {"a": pa.int64()}
    assert read(source) == {"a": [7, None, 7]}


@pytest.mark.parametrize("kind", ["parquet", "ipc file", "pyarrow"])
def test_extension_types_are_read_by_what_they_store_where_that_has_a_meaning(tmp_path: Path, kind: str) -> None:
    opaque = pandas.Series(pandas.period_range("2020", periods=1, freq="M"))
    table = pa.table(
        {
            "id": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"], pa.binary(16))),
            "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"])),
            "period": pa.array(opaque),
        }
    )
    source = open_source(KINDS[kind][1](table, tmp_path), DEFAULTS)
    assert read(source, ["id", "json"]) == {"id": [b"0123456789abcdef"], "json": ["{}"]}
    assert "column 'period'" in refusal(lambda: source.batches(["period"]))


@pytest.mark.parametrize("kind", ["parquet", "ipc file", "pyarrow"])
def test_column_names_come_once_and_are_not_empty(tmp_path: Path, kind: str) -> None:
    make = KINDS[kind][1]
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=[SECRET, SECRET])
    assert "columns 1 and 2 of" in refusal(lambda: open_source(make(twice, tmp_path), DEFAULTS))
    assert "column 1 of" in refusal(lambda: open_source(make(pa.table({"": [1]}), tmp_path), DEFAULTS))
    assert "has no columns" in refusal(lambda: open_source(make(pa.table({}), tmp_path), DEFAULTS))


def test_parquet_names_with_dots_are_names(tmp_path: Path) -> None:
    table = pa.table({"a": ["1"], "a.b": ["2"], "b": [3]})
    source = open_source(in_parquet(table, tmp_path), DEFAULTS)
    assert read(source, ["a.b"]) == {"a.b": ["2"]}
    assert read(source, ["b", "a"]) == {"b": [3], "a": ["1"]}


def test_parquet_text_with_too_many_values_for_a_dictionary_page_is_read(tmp_path: Path) -> None:
    values = [f"{number:020}" for number in range(150_000)] + ["x", None] * 1000
    path = tmp_path / "table.pq"
    parquet.write_table(pa.table({"a": values}), path, row_group_size=100_000)
    source = open_source(path, DEFAULTS)
    assert source.rows == 152_000
    assert read(source) == {"a": values}


# Excel


def test_excel_cells_have_the_types_they_are_stored_in(tmp_path: Path) -> None:
    day = datetime.datetime(1990, 1, 2)
    rows: list[list[object]] = [["n", "s", "day", "flag", "nothing"], [1.5, "x", day, True], [2, None, day, False]]
    source = open_source(write_xlsx(tmp_path / "t.xlsx", {"one": rows}), DEFAULTS)
    assert source.rows == 2
    assert source.types["n"] == pa.float64()
    assert pa.types.is_timestamp(source.types["day"])
    assert source.types["flag"] == pa.bool_()
    assert read(source) == {
        "n": [1.5, 2.0],
        "s": ["x", None],
        "day": [day, day],
        "flag": [True, False],
        "nothing": [None, None],
    }


def test_excel_reads_the_sheet_that_is_named(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "t.xlsx", {"one": [["a"], ["x"]], "two": [["b"], ["y"]]})
    assert read(open_source(path, DEFAULTS)) == {"a": ["x"]}
    assert read(open_source(path, InputOptions(sheet="two"))) == {"b": ["y"]}
    assert "no sheet 'three'. Its sheets are 'one', 'two'" in refusal(
        lambda: open_source(path, InputOptions(sheet="three"))
    )


def test_excel_cells_of_another_type_far_below_are_not_lost(tmp_path: Path) -> None:
    values: list[object] = [*range(1500), "x"]
    source = open_source(write_xlsx(tmp_path / "t.xlsx", {"one": [["a"], *([value] for value in values)]}), DEFAULTS)
    assert read(source) == {"a": [str(value) for value in values]}


def test_excel_rows_without_a_cell_are_no_records(tmp_path: Path) -> None:
    rows: list[list[object]] = [["a", "b"], ["x", "y"], [None, None], ["z", None]]
    source = open_source(write_xlsx(tmp_path / "t.xlsx", {"one": rows}), DEFAULTS)
    assert source.rows == 2
    assert read(source) == {"a": ["x", "z"], "b": ["y", None]}


@pytest.mark.parametrize(
    "rows, said",
    [
        ([["31", SECRET, SECRET], [1, 2, 3]], "columns 2 and 3 of"),
        ([["a", None, SECRET], [1, 2, 3]], "column 2 of"),
        ([["a", "b"], [1, 2, SECRET]], "column 3 of"),
        ([["a", "b"]], "no records"),
        ([], "no columns"),
    ],
)
def test_an_excel_sheet_without_a_sound_header_or_records_is_refused(
    tmp_path: Path, rows: list[list[object]], said: str
) -> None:
    path = write_xlsx(tmp_path / "t.xlsx", {"one": rows})
    assert said in refusal(lambda: read(open_source(path, DEFAULTS)))


def test_excel_names_that_are_numbers_are_taken_as_text(tmp_path: Path) -> None:
    source = open_source(write_xlsx(tmp_path / "t.xlsx", {"one": [["a", 2020], ["x", 1]]}), DEFAULTS)
    assert source.names == ("a", "2020")


def test_excel_says_nothing_on_standard_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    read(open_source(write_xlsx(tmp_path / "t.xlsx", {"one": [["a", "b"], ["x", None]]}), DEFAULTS))
    assert capfd.readouterr() == ("", "")


MANIFEST = '<?xml version="1.0"?><manifest xmlns="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'


def test_open_document_sheets_are_read(tmp_path: Path) -> None:
    def row(*cells: str) -> str:
        return f"<table:table-row>{''.join(cells)}</table:table-row>"

    def text(value: str) -> str:
        return f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'

    number = '<table:table-cell office:value-type="float" office:value="4"><text:p>4</text:p></table:table-cell>'
    names = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    content = (
        f'<?xml version="1.0"?><office:document-content{names}><office:body><office:spreadsheet>'
        f'<table:table table:name="one">{row(text("a"), text("b"))}{row(text("x"), number)}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    with zipfile.ZipFile(tmp_path / "t.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", MANIFEST)
        archive.writestr("content.xml", content)
    assert read(open_source(tmp_path / "t.ods", DEFAULTS)) == {"a": ["x"], "b": [4.0]}


def test_excel_without_its_package_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_xlsx(tmp_path / "t.xlsx", {"one": [["a"], ["x"]]})
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    assert "pip install 'sfumato[excel]'" in refusal(lambda: open_source(path, DEFAULTS))


# Loading


@pytest.mark.not_quick
def test_files_are_read_without_loading_libraries_of_frames(tmp_path: Path) -> None:
    paths = [str(KINDS[kind][1](PLAIN, tmp_path)) for kind in ("csv.gz", "parquet", "ipc file")]
    code = (
        "import sys; from sfumato.tables.sources.source import *\n"
        "for path in sys.argv[1:]:\n"
        "    source = open_source(path, InputOptions()); list(source.batches(source.names))\n"
        "print(sorted({'pandas', 'polars', 'duckdb', 'fastexcel'} & set(sys.modules)))"
    )
    root = str(Path(sfumato.errors.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code, *paths],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert done.stdout.strip() == "[]"
