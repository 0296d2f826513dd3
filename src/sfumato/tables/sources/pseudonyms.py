"""Pseudonyms: the values of a column replaced by keyed hashes, wherever the table is read.

A pseudonym is the first 128 bits of the HMAC-SHA-256 of a value's text, in base32. It depends on the key and the text
alone, not on the column, the type or the kind of file, so the same key gives a person the same pseudonym in another
table. Nobody can compute it or invert it without the key, not even by trying all values.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.errors import InputError, PolicyError
from sfumato.files.key_file import read_key
from sfumato.policy import Policy
from sfumato.tables.coding.column_texts import column_texts, text_column
from sfumato.tables.coding.keyed_hashes import EXACT
from sfumato.tables.sources.source import Source

PSEUDONYM_BYTES, LETTERS = 16, 26
PADDED_BYTES, PADDED_LETTERS = 20, 32


class PseudonymSource:
    """A table in which some columns hold pseudonyms. It has no repr of its own, so that none shows the key."""

    def __init__(self, source: Source, columns: Sequence[str], key: bytes, null_tokens: Sequence[str]) -> None:
        self._source, self._columns, self._key = source, frozenset(columns), key
        self._null_tokens = frozenset(null_tokens)
        self.names, self.kind, self.text = source.names, source.kind, source.text
        self.line_of = getattr(source, "line_of", None)
        self.types: dict[str, pa.DataType] = {**source.types, **dict.fromkeys(columns, pa.string())}

    @property
    def rows(self) -> int | None:
        return self._source.rows

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return map(self._replaced, self._source.batches(columns))

    def _replaced(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = batch.schema.names
        arrays = [
            self._pseudonyms(name, column) if name in self._columns else column
            for name, column in zip(names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _pseudonyms(self, name: str, column: pa.Array) -> pa.Array:
        if types.is_floating(column.type) and pc.max(pc.abs(pc.fill_null(column, 0))).as_py() >= EXACT:
            raise InputError(
                f"column {name!r} has numbers too large to be exact as floats, so two persons might get one pseudonym. "
                "Convert it to whole numbers or text."
            )
        codes, texts, missing = column_texts(column, self._null_tokens)
        return text_column(codes, pseudonyms_of(texts, self._key) or [""], missing)


def pseudonyms_of(texts: Sequence[str], key: bytes) -> list[str]:
    """Return the pseudonym of each text: 26 letters and digits."""
    digests = (hmac.digest(key, text.encode(), "sha256")[:PSEUDONYM_BYTES] for text in texts)
    # All at once, since a call takes longer than its work: 20 bytes are 32 letters, of which 26 hold the digest.
    letters = base64.b32encode(b"".join(digest.ljust(PADDED_BYTES, b"\0") for digest in digests)).decode()
    return [letters[start : start + LETTERS] for start in range(0, len(letters), PADDED_LETTERS)]


def with_pseudonyms(source: Source, policy: Policy) -> Source:
    """Return a table with pseudonyms in the columns that have that role."""
    columns = [name for name in policy.pseudonyms if name in source.names]
    if not columns:
        return source
    _check_types(source, columns)
    path = policy.pseudonym_key_path
    if path is None:
        raise PolicyError(
            policy.origin.say(
                f"the column {columns[0]!r} is to have pseudonyms, and no key is named. Make one with 'sfumato key "
                'FILE\', and name it: pseudonym_key = "FILE" under [privacy], or --pseudonym-key FILE.',
                ("columns", columns[0], "role"),
            )
        )
    return PseudonymSource(source, columns, read_key(path), _null_tokens(source, policy))


def under_key(source: Source, column: str, policy: Policy, key: bytes) -> Source:
    """Return a table with pseudonyms in one column, whatever its role. Equal texts have equal pseudonyms."""
    _check_types(source, [column])
    return PseudonymSource(source, [column], key, _null_tokens(source, policy))


def _check_types(source: Source, columns: Sequence[str]) -> None:
    for name in columns:
        kind = source.types[name]
        whole = types.is_integer(kind) or types.is_floating(kind) or (types.is_decimal(kind) and kind.scale == 0)
        if not whole and not types.is_string(kind) and not types.is_date(kind):
            raise InputError(
                f"column {name!r} has the type {kind}, whose text depends on the kind of file, so its pseudonyms would "
                "too. Convert it to text or whole numbers."
            )


def _null_tokens(source: Source, policy: Policy) -> Sequence[str]:
    return policy.input.nulls if source.text or source.kind == "excel" else ()
