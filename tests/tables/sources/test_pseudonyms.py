"""Pseudonyms: the values against HMAC in plain Python, in every kind of table, and what is refused."""

from __future__ import annotations

import datetime as dt
import hashlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_kinds import in_csv, in_excel, in_parquet

from sfumato.errors import InputError, PolicyError
from sfumato.policy import merge_flags
from sfumato.tables.sources.input_table import open_input, open_studied
from sfumato.tables.sources.pseudonyms import pseudonyms_of

KEY = bytes(range(32))
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def expected(text: str, key: bytes = KEY) -> str:
    """The definition of HMAC (RFC 2104) and of base32 (RFC 4648), written out."""
    padded = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded) + text.encode()).digest()
    digest = hashlib.sha256(bytes(byte ^ 0x5C for byte in padded) + inner).digest()
    number = int.from_bytes(digest[:16], "big") << 2  # 128 bits in 26 groups of 5
    return "".join(LETTERS[number >> 5 * place & 31] for place in range(25, -1, -1))


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "hospital.key"
    file.write_text(KEY.hex() + "\n")
    file.chmod(0o600)
    return file


def shown(data: object, key: Path | None, **flags: Any) -> list[str | None]:
    """The column ``id`` of a table, with pseudonyms."""
    source = open_input(data, merge_flags(None, pseudonyms="id", pseudonym_key=key, **flags))
    return [value for batch in source.batches(["id"]) for value in batch.column(0).to_pylist()]


@given(st.lists(st.text().map(lambda text: text.encode("utf-8", "replace").decode())))
def test_a_pseudonym_is_a_keyed_hash_of_the_text(texts: list[str]) -> None:
    assert pseudonyms_of(texts, KEY) == list(map(expected, texts))
    assert all(len(pseudonym) == 26 for pseudonym in pseudonyms_of(texts, KEY))
    assert not set(pseudonyms_of(texts, KEY[::-1])) & set(map(expected, texts))


NUMBERS = pa.table({"id": pa.array([17, None, 4711, 17]), "more": ["a", "b", "c", "d"]})
SAME = [expected("17"), None, expected("4711"), expected("17")]


def test_every_type_and_kind_of_table_gives_the_same_pseudonyms(key_file: Path, tmp_path: Path) -> None:
    assert shown(NUMBERS, key_file) == SAME
    for kind in (pa.string(), pa.float64(), pa.int16(), pa.decimal128(20, 0)):
        assert shown(pa.table({"id": NUMBERS["id"].cast(kind)}), key_file) == SAME
    assert shown(NUMBERS.to_pandas(), key_file) == SAME  # null makes floats of them
    for make in (in_csv, in_parquet, in_excel):
        folder = tmp_path / make.__name__
        folder.mkdir()
        assert shown(make(NUMBERS, folder), key_file) == SAME
    days = pa.table({"id": [dt.date(2020, 2, 29)]})
    assert shown(days, key_file) == [expected("2020-02-29")]


def test_texts_for_null_have_no_pseudonym(key_file: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,x\n007,1\nNA,2\n,3\n7,4\n")
    asked: dict[str, Any] = {"input": {"nulls": ["NA", ""]}}
    assert shown(tmp_path / "t.csv", key_file, **asked) == [expected("007"), None, None, expected("7")]


def test_other_columns_and_the_order_of_the_table_stay(key_file: Path) -> None:
    source = open_input(NUMBERS, merge_flags(None, pseudonyms="id", pseudonym_key=key_file))
    assert (source.names, source.types["id"], source.rows) == (("id", "more"), pa.string(), 4)
    batch = next(iter(source.batches(["more", "id"])))
    assert batch.column(0).to_pylist() == ["a", "b", "c", "d"]
    assert sorted(batch.column(1).dictionary.to_pylist()) == sorted({expected("17"), expected("4711")})


def test_a_derived_column_is_made_from_the_value_and_may_have_a_pseudonym(key_file: Path) -> None:
    rule = {"house": {"from": "id", "first": 1}}
    policy = merge_flags(None, derive=rule, pseudonyms=["id", "house"], pseudonym_key=key_file)
    batch = next(iter(open_input(NUMBERS, policy).batches(["id", "house"])))
    assert batch.column(0).to_pylist() == SAME
    assert batch.column(1).to_pylist() == [expected("1"), None, expected("4"), expected("1")]


def test_no_repr_shows_the_key(key_file: Path) -> None:
    source = open_input(NUMBERS, merge_flags(None, pseudonyms="id", pseudonym_key=key_file))
    assert KEY.hex() not in repr(source)
    assert repr(KEY)[2:20] not in repr(source)


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pa.array([b"x"]), "type binary, whose text depends on the kind of file"),
        (pa.array([True]), "type bool, whose text depends on the kind of file"),
        (pa.array([Decimal("1.50")]), "whose text depends on the kind of file"),
        (pa.array([0], pa.timestamp("us")), "whose text depends on the kind of file"),
        (pa.array([2.0**53]), "has numbers too large to be exact as floats"),
    ],
)
def test_values_without_one_text_are_refused(column: pa.Array, says: str, key_file: Path) -> None:
    with pytest.raises(InputError, match=says) as caught:
        shown(pa.table({"id": column}), key_file)
    assert "9007199254740992" not in str(caught.value)


def test_without_a_key_nothing_is_released_but_a_table_can_be_studied() -> None:
    with pytest.raises(PolicyError, match=r"no key is named\. Make one with 'sfumato key FILE', and name it"):
        shown(NUMBERS, None)
    studied = open_studied(NUMBERS, merge_flags(None, pseudonyms="id"))
    assert next(iter(studied.batches(["id"]))).column(0).to_pylist() == [17, None, 4711, 17]
