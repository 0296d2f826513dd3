"""Files of a release: what is written is what is read again, and what a format cannot hold is refused."""

from __future__ import annotations

import datetime as dt
import gzip
import math
import subprocess
import sys
import zipfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import sfumato
from sfumato.errors import InputError, OutputError, UsageError
from sfumato.policy import InputOptions, WrittenText
from sfumato.tables.sources import text_stream
from sfumato.tables.sources.source import open_source
from sfumato.tables.targets import excel_writer
from sfumato.tables.targets.file_writers import check_format, write_table
from sfumato.tables.targets.staging import Stage

SUFFIXES = [".parquet", ".pq", ".arrow", ".ipc", ".feather", ".csv", ".tsv", ".txt", ".csv.gz", ".csv.zst", ".xlsx"]
CSV_SUFFIXES = [".csv", ".tsv", ".txt", ".csv.gz", ".tsv.zst"]
AWKWARD = ["a,b", "a;b", 'say "so"', "two\nlines", "two\r\nlines", "\t", " spaced ", "=1+1", "+39 06", "-x", "@cmd",
           "http://example.org", "é\U0001f600", "\ufeffmark", "NULL", "NA", "''", '"', "007", "1.50"]  # fmt: skip


def read(path: Path, **options: str) -> pa.Table:
    source = open_source(path, InputOptions(**options))  # type: ignore[arg-type]
    table = pa.Table.from_batches(source.batches(source.names))
    return pa.table({name: _plain(table.column(name)) for name in table.column_names})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def text_table(**columns: list[str | None]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.string()).dictionary_encode() for name, values in columns.items()})


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_text_comes_back_with_the_same_characters(tmp_path: Path, suffix: str) -> None:
    table = text_table(text=[*AWKWARD, None], other=["x"] * (len(AWKWARD) + 1))
    write_table(table, tmp_path / f"t{suffix}")
    back = read(tmp_path / f"t{suffix}")
    assert back["text"].to_pylist() == [*AWKWARD, None]


@pytest.mark.parametrize("suffix", CSV_SUFFIXES)
@pytest.mark.parametrize("columns", [1, 2])
def test_csv_tells_null_from_empty_text(tmp_path: Path, suffix: str, columns: int) -> None:
    cells = [None, "", "a", None, ""]
    write_table(text_table(**{f"c{place}": cells for place in range(columns)}), tmp_path / f"t{suffix}")
    assert read(tmp_path / f"t{suffix}")["c0"].to_pylist() == cells


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cells=st.lists(
        st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6), min_size=1
    ),
    separator=st.sampled_from([",", ";", "\t", "|", " ", ".", "1", "a"]),
    suffix=st.sampled_from(CSV_SUFFIXES),
)
def test_any_text_survives_csv_with_any_separator(
    tmp_path: Path, cells: list[str | None], separator: str, suffix: str
) -> None:
    path = tmp_path / f"t{suffix}"
    table = text_table(**{f'na"me{separator}': cells}).append_column("number", pa.array([1.5] * len(cells)))
    write_table(table, path, text=WrittenText(separator))
    back = read(path, separator=separator)
    assert back.column_names == [f'na"me{separator}', "number"]
    assert back[0].to_pylist() == cells
    assert set(back[1].to_pylist()) == {"1.5"}


def test_csv_is_utf_8_without_a_mark_and_quotes_text_only_where_some_needs_it(tmp_path: Path) -> None:
    table = text_table(città=["è", None]).append_column("n", pa.array([1, None]))
    write_table(table, tmp_path / "t.csv", text=WrittenText(";"))
    assert (tmp_path / "t.csv").read_bytes() == "città;n\nè;1\n;\n".encode()
    for needing in ("a;b", 'a"b', "a\nb", "a\rb", ""):
        table = text_table(t=["x", needing, None])
        write_table(table, tmp_path / "q.csv", text=WrittenText(";"))
        assert (tmp_path / "q.csv").read_bytes().startswith(b't\n"x"\n')
        assert read(tmp_path / "q.csv", separator=";")["t"].to_pylist() == ["x", needing, None]


def test_text_that_looks_like_a_formula_is_not_changed_in_csv(tmp_path: Path) -> None:
    write_table(text_table(t=["=1+1", "+2", "-3", "@x"]), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "t\n=1+1\n+2\n-3\n@x\n"


def test_tsv_is_separated_by_tabs_unless_another_separator_is_asked_for(tmp_path: Path) -> None:
    table = text_table(a=["x"], b=["y"])
    write_table(table, tmp_path / "t.tsv")
    assert (tmp_path / "t.tsv").read_text() == "a\tb\nx\ty\n"
    write_table(table, tmp_path / "s.tsv", text=WrittenText(";"))
    assert read(tmp_path / "s.tsv", separator=";").to_pylist() == [{"a": "x", "b": "y"}]


def test_gzip_holds_no_file_name_and_no_time(tmp_path: Path) -> None:
    write_table(text_table(a=["x"]), tmp_path / "secretname.csv.gz")
    content = (tmp_path / "secretname.csv.gz").read_bytes()
    assert gzip.decompress(content) == b"a\nx\n"
    assert content[3] == 0  # no optional fields
    assert content[4:8] == b"\0\0\0\0"
    assert b"secretname" not in content


NUMBERS = pa.table(
    {
        "int": pa.array([1, None, -(2**53)]),
        "float": pa.array([0.1, None, 1e300]),
        "bool": pa.array([True, None, False]),
        "day": pa.array([dt.date(2020, 2, 29), None, dt.date(1900, 1, 1)]),
        "moment": pa.array([dt.datetime(2020, 2, 29, 12, 30, 15), None, dt.datetime(1999, 12, 31)]),
        "decimal": pa.array([Decimal("1.50"), None, Decimal("-0.07")], pa.decimal128(9, 2)).dictionary_encode(),
        "text": pa.array(["a", "b", "c"]).dictionary_encode(),
    }
)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_typed_columns_keep_their_types(tmp_path: Path, suffix: str) -> None:
    table = NUMBERS.append_column("bytes", pa.array([b"\xff", None, b""]).dictionary_encode())
    table = table.append_column("half", pa.array([1.5, None, -2], pa.float16()))
    write_table(table, tmp_path / f"t{suffix}")
    back = read(tmp_path / f"t{suffix}")
    for name in table.column_names:
        assert back[name].type == _plain(table[name]).type
        assert back[name].to_pylist() == table[name].to_pylist()


def test_typed_columns_are_plain_text_in_csv(tmp_path: Path) -> None:
    write_table(NUMBERS, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[1:] == [
        "1,0.1,true,2020-02-29,2020-02-29 12:30:15.000000,1.50,a",
        ",,,,,,b",
        "-9007199254740992,1e+300,false,1900-01-01,1999-12-31 00:00:00.000000,-0.07,c",
    ]


def test_excel_cells_have_the_kind_of_their_values(tmp_path: Path) -> None:
    table = NUMBERS.append_column("time", pa.array([dt.time(1, 2, 3), None, dt.time(0)], pa.time64("ns")))
    table = table.append_column("span", pa.array([dt.timedelta(hours=30), None, dt.timedelta(0)], pa.duration("ns")))
    write_table(table, tmp_path / "t.xlsx")
    rows = _cells(tmp_path / "t.xlsx")
    assert rows[0] == tuple(table.column_names)
    moment = dt.datetime(2020, 2, 29, 12, 30, 15)
    assert rows[1] == (
        1, 0.1, True, dt.datetime(2020, 2, 29), moment, 1.5, "a", dt.time(1, 2, 3), dt.timedelta(hours=30)
    )  # fmt: skip
    assert rows[2] == (None,) * 6 + ("b", None, None)


def test_excel_takes_no_text_for_a_formula_a_link_or_a_number(tmp_path: Path) -> None:
    texts: list[str | None] = [
        "=1+1",
        "{=A1}",
        "http://example.org",
        "mailto:a@b.org",
        "internal:Sheet1!A1",
        "12",
        "1e5",
    ]
    write_table(text_table(t=texts), tmp_path / "t.xlsx")
    assert [row[0] for row in _cells(tmp_path / "t.xlsx")[1:]] == texts
    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml")
    assert b"<f>" not in sheet
    assert b"hyperlink" not in sheet


def _cells(path: Path) -> list[tuple[object, ...]]:
    import openpyxl  # type: ignore[import-untyped]

    return list(openpyxl.load_workbook(path).active.iter_rows(values_only=True))


@pytest.mark.parametrize(
    "column, reason",
    [
        (pa.array([b"x", b"y"]), "bytes"),
        (pa.array([2**53 + 1, 0]), "would round"),
        (pa.array([2**64 - 1, 0], pa.uint64()), "would round"),
        (pa.array([Decimal("0.12345678901234567890"), None]), "would round"),
        (pa.array([math.inf, 0]), "infinite"),
        (pa.array([dt.date(1899, 12, 31), None]), "before 1900"),
        (pa.array([dt.datetime(1900, 1, 1, 12), None]), "before 2 January 1900"),
        (pa.array([dt.datetime(2020, 1, 1, 0, 0, 0, 1), None]), "finer than a millisecond"),
        (pa.array([dt.datetime(2020, 1, 1), None], pa.timestamp("us", "UTC")), "time zone"),
        (pa.array(["x" * 32_768, "y"]), "32,767 characters"),
        (pa.array(["", None]), "nulls and empty text"),
    ],
)
def test_excel_refuses_what_a_sheet_would_change(tmp_path: Path, column: pa.Array, reason: str) -> None:
    with pytest.raises(OutputError, match=rf"column 'odd' .*{reason}.* Write Parquet"):
        write_table(pa.table({"a": ["x", "y"], "odd": column}), tmp_path / "t.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_excel_refuses_records_that_it_would_lose(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="2 released records have no value in any column"):
        write_table(pa.table({"a": ["x", None, None], "f": [1.0, None, math.nan]}), tmp_path / "t.xlsx")


def test_excel_refuses_more_rows_or_columns_than_a_sheet_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutputError, match="at most 1,048,575 records, the release has 1,048,576"):
        write_table(pa.table({"a": pa.nulls(1_048_576, pa.int8()).fill_null(1)}), tmp_path / "t.xlsx")
    monkeypatch.setattr(excel_writer, "COLUMNS", 1)
    with pytest.raises(OutputError, match="at most 1 columns, the release has 2"):
        write_table(pa.table({"a": [1], "b": [1]}), tmp_path / "t.xlsx")


def test_excel_leaves_no_temporary_file_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import xlsxwriter.workbook

    def full(_: object) -> None:
        assert any(
            path.name.endswith(".scratch") and path.stat().st_mode & 0o777 == 0o700 for path in tmp_path.iterdir()
        )
        raise OSError(28, "no space")

    monkeypatch.setattr(xlsxwriter.workbook.Workbook, "close", full)
    with Stage() as stage, pytest.raises(OutputError, match=r"no space left for .*/t\.xlsx"):
        write_table(text_table(a=["x"]), stage.path(tmp_path / "t.xlsx"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_durations_are_refused_where_their_unit_would_be_lost(tmp_path: Path, suffix: str) -> None:
    table = pa.table({"stay": pa.array([dt.timedelta(days=1)])})
    with pytest.raises(OutputError, match=r"column 'stay' holds durations.* Write Arrow IPC"):
        write_table(table, tmp_path / f"t{suffix}")
    write_table(table, tmp_path / "t.arrow")
    assert read(tmp_path / "t.arrow")["stay"].to_pylist() == [dt.timedelta(days=1)]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(1)], ids=str)
def test_csv_refuses_bytes(tmp_path: Path, kind: pa.DataType) -> None:
    for column in (pa.array([b"\xff"], kind), pa.array([b"\xff"], kind).dictionary_encode()):
        with pytest.raises(OutputError, match="column 'b' holds bytes, which CSV cannot"):
            write_table(pa.table({"b": column}), tmp_path / "t.csv")


def test_csv_refuses_a_nul_character_without_showing_the_cell(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="column 'b' holds a NUL character") as caught:
        write_table(text_table(b=["secret\0cell"]), tmp_path / "t.csv")
    assert "secret" not in str(caught.value)


def test_what_a_library_cannot_write_is_told_without_its_message(tmp_path: Path) -> None:
    table = pa.table({"i": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    with pytest.raises(OutputError, match=r"cannot write .*t\.csv: the format cannot hold this table") as caught:
        write_table(table, tmp_path / "t.csv")
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("name", ["t", "t.json", "t.gz", "t.parquet.gz", "t.xlsx.zst", ".csv", "t.xls"])
def test_a_suffix_that_names_no_format_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"no suffix that names a format. Use \.parquet"):
        check_format(Path(name))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_table_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    table = text_table(a=["x", "y"]).append_column("n", pa.array([1, 2]))
    for name in ("one", "two"):
        write_table(table, tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


@pytest.mark.not_quick
def test_excel_bytes_do_not_depend_on_the_day(tmp_path: Path) -> None:
    code = (
        "import sys, time, pyarrow as pa, pathlib; real = time.time; time.time = lambda: real() + 1e8\n"
        "from sfumato.tables.targets.file_writers import write_table\n"
        "write_table(pa.table({'a': ['x']}), pathlib.Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "later.xlsx")], check=True)
    write_table(pa.table({"a": ["x"]}), tmp_path / "now.xlsx")
    assert (tmp_path / "later.xlsx").read_bytes() == (tmp_path / "now.xlsx").read_bytes()


def test_parquet_holds_no_metadata_and_no_statistics_of_text(tmp_path: Path) -> None:
    table = text_table(a=["x", "y"]).append_column("n", pa.array([1, 2]))
    table = table.replace_schema_metadata({"pandas": "index", "secret": "value"})
    write_table(table, tmp_path / "t.parquet")
    with parquet.ParquetFile(tmp_path / "t.parquet") as file:
        assert file.metadata.metadata is None
        assert file.schema_arrow.metadata is None
        group = file.metadata.row_group(0)
        assert [group.column(place).is_stats_set for place in range(2)] == [False, True]


def test_a_release_that_is_compressed_very_far_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted rows of large classes are nearly all equal, so the limit for files of others does not hold for ours."""
    monkeypatch.setattr(text_stream, "HARMLESS", 1 << 10)
    table = pa.table({"age": [30] * 200_000, "sex": ["f"] * 200_000})
    release = sfumato.anonymize(table, quasi_identifiers=["age", "sex"], k=5)
    path = release.write(tmp_path / "out.csv.gz")
    assert Path(path).stat().st_size * 200 < 200_000 * len("30,f\n")
    with pytest.raises(InputError, match="--max-expansion"):
        sfumato.audit(path)
    assert sfumato.audit(path, input={"max_expansion": 2_000}).holds


def test_a_sheet_has_a_bold_header_that_stays_in_view_and_columns_as_wide_as_their_text(tmp_path: Path) -> None:
    import openpyxl

    table = pa.table({"t": ["ab", "x" * 30], "a long name": ["1", "2"], "essay": ["y" * 500, ""], "n": [1.25, 2.0]})
    write_table(table, tmp_path / "t.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").active
    assert [cell.font.bold for cell in sheet[1]] == [True] * 4
    assert not any(cell.font.bold for cell in sheet[2])
    assert sheet.freeze_panes == "A2"
    assert sheet.auto_filter.ref == "A1:D3"
    widths = [round(sheet.column_dimensions[letter].width) for letter in "ABCD"]
    assert widths == [33, 16, 61, 9]  # the file has a pixel's padding more than was asked for
    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
        assert b'<ignoredError sqref="A1:D3" numberStoredAsText="1"/>' in archive.read("xl/worksheets/sheet1.xml")
