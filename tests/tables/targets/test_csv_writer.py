"""CSV in the encoding, with the separator and with the decimal mark that are asked for, the same on every machine."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.errors import OutputError
from sfumato.policy import WrittenText
from sfumato.tables.locations import location_of
from sfumato.tables.targets.target import open_target

# Encodings and characters that all of them have.
ENCODINGS = ["utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16", "utf-16-be", "utf-32", "cp037"]
LETTERS = "aä;,.\n\"'=+-1 \t|ß"


def released(folder: Path, table: pa.Table, text: WrittenText, *, labels: tuple[str, ...] = (), disarm: bool = False,
             name: str = "release.csv") -> tuple[bytes, dict[str, list[str | None]]]:  # fmt: skip
    """The bytes of a release that is put in place, and what its own reader gave back before."""
    location = location_of(folder / name)
    with open_target(location, text, labels=labels, disarm=disarm) as target:
        source = target.write(table.schema, table.to_batches)
        back = pa.Table.from_batches(source.batches(source.names)).to_pydict()
        target.publish("{}")
    return (folder / name).read_bytes(), back


def coded(texts: list[str | None]) -> pa.Array:
    return pa.array(texts, pa.string()).dictionary_encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.none() | st.text(LETTERS, max_size=5), min_size=1, max_size=5),
    separator=st.sampled_from([",", ";", "\t", "|", "a", "."]),
    encoding=st.sampled_from(ENCODINGS),
    suffix=st.sampled_from([".csv", ".csv.gz", ".txt.zst"]),
    disarm=st.booleans(),
)
def test_any_text_comes_back_from_any_encoding(
    tmp_path: Path, texts: list[str | None], separator: str, encoding: str, suffix: str, disarm: bool
) -> None:
    table = pa.table({"Größe": coded(texts), "n": pa.array([1.5] * len(texts))})
    _, back = released(tmp_path, table, WrittenText(separator, encoding), disarm=disarm, name=f"r{suffix}")
    assert back == {"Größe": texts, "n": ["1.5"] * len(texts)}


@pytest.mark.parametrize(
    ("encoding", "begins"),
    [
        ("utf-8", b"Gr\xc3\xb6\xc3\x9fe;n\n"),
        ("utf-8-sig", b"\xef\xbb\xbfGr\xc3\xb6\xc3\x9fe;n\n"),
        ("UTF_8_SIG", b"\xef\xbb\xbfGr\xc3\xb6\xc3\x9fe;n\n"),
        ("cp1252", b"Gr\xf6\xdfe;n\n"),
        ("utf-16", b"\xff\xfeG\x00r\x00\xf6\x00"),  # in this order of bytes on every machine
        ("utf-32", b"\xff\xfe\x00\x00G\x00\x00\x00"),
    ],
)
def test_an_encoding_has_its_mark_and_its_order_of_bytes(tmp_path: Path, encoding: str, begins: bytes) -> None:
    table = pa.table({"Größe": coded(["x"]), "n": [1]})
    written, _ = released(tmp_path, table, WrittenText(";", encoding))
    assert written.startswith(begins)


def test_numbers_have_the_decimal_mark_in_labels_and_in_columns_of_their_own(tmp_path: Path) -> None:
    table = pa.table(
        {
            "size": coded(["[1.5..2.25]", "90.5+", "*", None]),
            "code": coded(["1.5", "E11.9", "a,b", "1,5"]),
            "cost": [0.5, -1e-7, float("nan"), float("-inf")],
            "exact": [Decimal("2.50"), None, Decimal("-3.00"), Decimal("0.10")],
            "whole": [1000, 2, 3, 4],
        }
    )
    written, back = released(tmp_path, table, WrittenText(";", decimal=","), labels=("size",))
    assert written.decode().splitlines() == [
        "size;code;cost;exact;whole",
        "[1,5..2,25];1.5;0,5;2,50;1000",
        "90,5+;E11.9;-1e-7;;2",
        "*;a,b;;-3,00;3",
        ";1,5;-inf;0,10;4",
    ]
    assert back["size"] == ["[1.5..2.25]", "90.5+", "*", None]
    assert back["code"] == ["1.5", "E11.9", "a,b", "1,5"]
    assert back["cost"] == ["0.5", "-1e-7", None, "-inf"]
    assert back["exact"] == ["2.50", None, "-3.00", "0.10"]


def test_negative_numbers_with_commas_are_no_formulas(tmp_path: Path) -> None:
    table = pa.table({"size": coded(["-1.5", "-2.5-", "=1"]), "cost": [-0.5, float("-inf"), 1.0]})
    with open_target(
        location_of(tmp_path / "r.csv"), WrittenText(";", decimal=","), disarm=True, labels=["size"]
    ) as target:
        source = target.write(table.schema, table.to_batches)
        (batch,) = source.batches(source.names)
        target.publish("{}")
        assert target.warnings == [
            "cells that a spreadsheet would take for formulas were written with an apostrophe first: 2 in 'size'"
        ]
    assert (tmp_path / "r.csv").read_text() == "size;cost\n-1,5;-0,5\n'-2,5-;-inf\n'=1;1\n"
    assert batch.to_pydict() == {"size": ["-1.5", "-2.5-", "=1"], "cost": ["-0.5", "-inf", "1"]}


@pytest.mark.parametrize(
    ("column", "encoding"),
    [("Łódź", "cp1252"), ("日本", "latin-1"), ("é", "ascii"), ("5\N{YEN SIGN}", "shift_jis")],
)
def test_a_character_that_the_encoding_cannot_hold_is_told_by_its_column(
    tmp_path: Path, column: str, encoding: str
) -> None:
    table = pa.table({"town": coded(["plain"]), "place": coded([f"secret {column}"])})
    with pytest.raises(OutputError) as error:
        released(tmp_path, table, WrittenText(encoding=encoding))
    assert f"column 'place' holds characters that the encoding {encoding} cannot hold" in str(error.value)
    assert "--release-encoding" in str(error.value)
    assert "secret" not in str(error.value)
    with pytest.raises(OutputError, match=r"the name of the column .* has a character that the encoding"):
        released(tmp_path, table.rename_columns(["town", column]), WrittenText(encoding=encoding))
    assert list(tmp_path.iterdir()) == []


def test_two_characters_that_share_their_bytes_are_never_made_one(tmp_path: Path) -> None:
    assert "\N{YEN SIGN}".encode("shift_jis") == b"\\"
    with pytest.raises(OutputError, match="column 'price'"):
        released(tmp_path, pa.table({"price": coded(["\\", "\N{YEN SIGN}"])}), WrittenText(encoding="shift_jis"))


def test_a_large_file_is_encoded_whole(tmp_path: Path) -> None:
    names = [f"Straße {number}" for number in range(3000)] * 60
    table = pa.table({"street": coded([*names]), "n": list(range(len(names)))})
    written, _ = released(tmp_path, table, WrittenText(";", "cp1252"))
    lines = written.decode("cp1252").splitlines()
    assert lines[1:] == [f"{name};{number}" for number, name in enumerate(names)]


def test_the_certificate_says_how_a_text_file_was_written(tmp_path: Path) -> None:
    table = pa.table({"size": coded(["1.5"]), "cost": [2.5], "whole": [1]})
    for name, text, expected in (
        ("r.csv", WrittenText(), {"separator": ",", "encoding": "utf-8", "decimal": "."}),
        (
            "s.csv.gz",
            WrittenText(";", "cp1252", ","),
            {"separator": ";", "encoding": "cp1252", "decimal": ",", "numbers": ["size", "cost"]},
        ),
        ("t.parquet", WrittenText(";", "cp1252", ","), None),
    ):
        with open_target(location_of(tmp_path / name), text, labels=["size"]) as target:
            target.write(table.schema, table.to_batches)
            (entry,) = target.certified()
        assert entry.get("text") == expected
