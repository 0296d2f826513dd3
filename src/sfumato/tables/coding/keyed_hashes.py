"""Keyed hashes of values and of records: who does not have the key can neither compute nor invert them.

The hash of a value depends on the value and the name of its column alone: not on its code, the type of the column, the
taxonomy or the file format. The hash of a record is that of the sum of its values' hashes, so the order of the columns
does not matter either. Both are SipHash-1-3 (Aumasson and Bernstein 2012) of one 64-bit word; texts become words by
BLAKE2b.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.decorator import inner_kernel, kernel
from sfumato.kernels.threads import in_threads
from sfumato.tables.coding.domains import CategoricalDomain, Codes, Domain, NumericDomain
from sfumato.tables.coding.released_labels import number_text, read_number
from sfumato.tables.coding.scaled_integers import in_units, whole_numbers

ALL = np.uint64((1 << 64) - 1)  # no hash is larger
EXACT = 2.0**53  # whole numbers up to here are exact as floats


@dataclass(frozen=True)
class RecordHashes:
    """The hashes of all values of a table, for the hashes of its records.

    values: uint64[sum of the domains' sizes], column by column; 0 for values that do not occur. begins: int64[d], where
    the values of each column begin. key: uint64[2].
    """

    values: NDArray[np.uint64]
    begins: NDArray[np.int64]
    key: NDArray[np.uint64]

    @classmethod
    def of(cls, secret: bytes, domains: Sequence[Domain], used: Sequence[NDArray[np.int64]]) -> RecordHashes:
        """Hash the values that occur. used: how often each code of each domain occurs."""
        numbered = list(zip(domains, map(np.flatnonzero, used), strict=True))
        hashed = in_threads(lambda column: _value_hashes(secret, *column), numbered)
        begins = np.cumsum([0, *(len(values) for values in hashed[:-1])])
        return cls(np.concatenate(hashed), begins, _key(secret, "record"))

    def column(self, number: int) -> NDArray[np.uint64]:
        """Return the hash of each code of a column."""
        return np.split(self.values, self.begins[1:])[number]

    def least(self, codes: Codes, limit: np.uint64) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Return the positions of the records whose hash is at most ``limit``, and these hashes. codes: uint[n, d]."""
        positions, hashes = np.empty(len(codes), np.int64), np.empty(len(codes), np.uint64)
        found = least_hashes(codes, self.values, self.begins, self.key, limit, positions, hashes)
        return positions[:found], hashes[:found]


def tallied_hashes(secret: bytes, hashes: NDArray[np.uint64], counts: NDArray[np.int64]) -> int:
    """Return one number for a set of values, given by their hashes, and how often each occurs."""
    words = hashes + counts.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return int(hashed_words(words, _key(secret, "tally")).sum(dtype=np.uint64))


def _value_hashes(secret: bytes, domain: Domain, used: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the hash of each code of a domain; 0 for codes that are not used."""
    hashes = np.zeros(domain.size, np.uint64)

    def put(kind: str, codes: NDArray[np.int64], words: NDArray[Any]) -> None:
        hashes[codes] = hashed_words(words.view(np.uint64), _key(secret, f"{kind} {domain.name}"))

    if isinstance(domain, NumericDomain):
        null = len(domain.values)
        codes = used[used < null]
        values = domain.values[codes]
        if domain.kind == "date":
            put("text", codes, _text_words(domain.texts(values).to_pylist()))
        elif domain.kind == "moment":
            microseconds, whole = whole_numbers(values, domain.scale)
            put("moment", codes[whole], microseconds[whole])
            put("nanoseconds", codes[~whole], values[~whole])
        elif domain.is_decimal:
            # A decimal has the hash of the same number in a column of floats or whole numbers.
            digits, whole = whole_numbers(values, domain.scale)
            put("whole", codes[whole], digits[whole])
            put("fraction", codes[~whole], in_units(values[~whole], domain.scale))
        else:
            whole = _are_whole(values)
            put("whole", codes[whole], values[whole].astype(np.int64))
            put("fraction", codes[~whole], values[~whole].astype(np.float64))
    else:
        assert isinstance(domain, CategoricalDomain)
        leaves = domain.taxonomy.leaves
        null = len(leaves)
        codes = used[used < null]
        # A column of numbers may be read as categories, and has to be recognised in either form.
        numbers = [_number(leaves[code]) for code in codes.tolist()]
        whole = np.array([isinstance(number, int) for number in numbers], np.bool_)
        text = np.array([number is None for number in numbers], np.bool_)
        put("whole", codes[whole], np.array([number for number in numbers if isinstance(number, int)], np.int64))
        fractions = [number for number in numbers if isinstance(number, float)]
        put("fraction", codes[~whole & ~text], np.array(fractions, np.float64))
        put("text", codes[text], _text_words([leaves[code] for code in codes[text].tolist()]))
    if len(used) and used[-1] == null:
        put("null", used[-1:], np.zeros(1, np.uint64))
    return hashes


def _are_whole(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "i":
        return np.ones(len(values), np.bool_)
    return np.asarray((np.trunc(values) == values) & (np.abs(values) < EXACT))


def _number(text: str) -> int | float | None:
    """Return the number that a text is the shortest form of; None if it is not a number in that form."""
    number = read_number(text)
    assert isinstance(number, int | float)
    if number_text(number) != text or (isinstance(number, int) and not -(1 << 63) <= number < 1 << 63):
        return None
    return number


def _text_words(texts: Sequence[str]) -> NDArray[np.uint64]:
    words = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(words, "<u8").astype(np.uint64)


def _key(secret: bytes, purpose: str) -> NDArray[np.uint64]:
    return np.frombuffer(hmac.digest(secret, purpose.encode(), "sha256")[:16], "<u8").astype(np.uint64)


@kernel
def least_hashes(codes, values, begins, key, limit, positions, hashes):
    """Write the records with hashes up to ``limit`` to positions: int64[n], and hashes: uint64[n]; return how many.

    codes: uint[n, d]. values: uint64[m], the hashes of values. begins: int64[d]. key: uint64[2].
    """
    found = 0
    for record in range(len(codes)):
        total = np.uint64(0)
        for column in range(len(begins)):
            total += values[begins[column] + codes[record, column]]
        hashed = hashed_word(total, key[0], key[1])
        if hashed <= limit:
            positions[found] = record
            hashes[found] = hashed
            found += 1
    return found


@kernel
def hashed_words(words, key):
    """Return the hashes of words: uint64[n]. words: uint64[n]. key: uint64[2]."""
    hashes = np.empty(len(words), np.uint64)
    for word in range(len(words)):
        hashes[word] = hashed_word(words[word], key[0], key[1])
    return hashes


@inner_kernel
def hashed_word(word, first, second):
    """Return the SipHash-1-3 of the eight bytes of a word."""
    v0 = first ^ np.uint64(0x736F6D6570736575)
    v1 = second ^ np.uint64(0x646F72616E646F6D)
    v2 = first ^ np.uint64(0x6C7967656E657261)
    v3 = second ^ np.uint64(0x7465646279746573)
    length = np.uint64(8 << 56)
    v0, v1, v2, v3 = mixed_once(v0, v1, v2, v3 ^ word)
    v0, v1, v2, v3 = mixed_once(v0 ^ word, v1, v2, v3 ^ length)
    v0, v1, v2, v3 = mixed_once(v0 ^ length, v1, v2 ^ np.uint64(0xFF), v3)
    v0, v1, v2, v3 = mixed_once(v0, v1, v2, v3)
    v0, v1, v2, v3 = mixed_once(v0, v1, v2, v3)
    return v0 ^ v1 ^ v2 ^ v3


@inner_kernel
def mixed_once(v0, v1, v2, v3):
    """Return the state after one round of SipHash."""
    v0 += v1
    v1 = rotated(v1, np.uint64(13)) ^ v0
    v0 = rotated(v0, np.uint64(32))
    v2 += v3
    v3 = rotated(v3, np.uint64(16)) ^ v2
    v0 += v3
    v3 = rotated(v3, np.uint64(21)) ^ v0
    v2 += v1
    v1 = rotated(v1, np.uint64(17)) ^ v2
    v2 = rotated(v2, np.uint64(32))
    return v0, v1, v2, v3


@inner_kernel
def rotated(number, bits):
    """Return a 64-bit number with its bits rotated to the left."""
    return (number << bits) | (number >> (np.uint64(64) - bits))
