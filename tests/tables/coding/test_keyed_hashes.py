"""Keyed hashes: of values, whatever their form, and of records."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from sfumato.tables.coding.domains import CategoricalDomain, NumericDomain
from sfumato.tables.coding.keyed_hashes import ALL, RecordHashes, hashed_words, tallied_hashes
from sfumato.taxonomies.derived_taxonomies import flat

SECRET = bytes(range(32))


def numeric(values: list[float], name: str = "age", **options: Any) -> NumericDomain:
    return NumericDomain(name, np.unique(np.array(values)), options.pop("has_null", False), **options)


def categories(texts: list[str], name: str = "age", *, has_null: bool = False) -> CategoricalDomain:
    return CategoricalDomain(name, flat(texts, name), has_null)


def hashes_of(*domains: Any, secret: bytes = SECRET) -> RecordHashes:
    return RecordHashes.of(secret, domains, [np.ones(domain.size, np.int64) for domain in domains])


def by_text(domain: Any, secret: bytes = SECRET) -> dict[str | None, int]:
    numbers = isinstance(domain, NumericDomain)
    texts = domain.texts(domain.values).to_pylist() if numbers else list(domain.taxonomy.leaves)
    hashed = hashes_of(domain, secret=secret).column(0).tolist()
    return dict(zip([*texts, None] if domain.has_null else texts, hashed, strict=True))


@pytest.mark.skipif(sys.hash_info.algorithm != "siphash13", reason="this Python hashes otherwise")
def test_words_are_hashed_as_python_hashes_their_bytes() -> None:
    words = [0, 1, 255, 1 << 63, (1 << 64) - 1, 12345678901234567]
    script = f"print([hash(word.to_bytes(8, 'little')) for word in {words}])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": "0"},  # the key is 0 then
        capture_output=True,
        text=True,
        check=True,
    )
    expected = hashed_words(np.array(words, np.uint64), np.zeros(2, np.uint64)).view(np.int64)
    assert str(expected.tolist()) == done.stdout.strip()


def test_numbers_and_categories_of_the_same_texts_have_the_same_hashes() -> None:
    numbers = [9, 10, 2.5, -0.0, 1e300, 1e-7, 123456789.125, -3]
    domain = numeric(numbers, has_null=True)
    texts = domain.texts(domain.values).to_pylist()
    assert by_text(domain) == by_text(categories(texts, has_null=True))
    assert len(set(by_text(domain).values())) == 9


def test_whole_numbers_of_any_type_have_the_same_hashes() -> None:
    assert by_text(numeric([1, 2, 1 << 52])) == by_text(numeric([1.0, 2.0, float(1 << 52)]))
    large = [(1 << 62) + 1, (1 << 63) - 1]
    assert by_text(numeric(large)) == by_text(categories([str(number) for number in large]))


def test_days_are_recognised_as_categories() -> None:
    assert by_text(numeric([0, 10957], kind="date")) == by_text(categories(["1970-01-01", "2000-01-01"]))


def test_a_day_a_moment_and_a_number_differ() -> None:
    hashed = [hashes_of(numeric([5], kind=kind)).column(0)[0] for kind in ("numeric", "date", "moment")]
    assert len(set(hashed)) == 3


@pytest.mark.parametrize(
    "text", ["1.0", "01", "+1", " 1", "1e0", "", "1_0", "\u0661", "nan", "x", "18446744073709551616"]
)
def test_a_text_that_is_not_the_shortest_form_of_a_number_is_a_text(text: str) -> None:
    hashed = by_text(categories([text, "1", "10"], has_null=True))
    assert len(set(hashed.values())) == 4
    assert hashed["1"] == by_text(numeric([1]))["1"]


def test_hashes_differ_by_secret_and_by_column() -> None:
    same = by_text(numeric([1, 2, 3]))
    assert not set(same.values()) & set(by_text(numeric([1, 2, 3]), bytes(32)).values())
    assert not set(same.values()) & set(by_text(numeric([1, 2, 3], "years")).values())


def test_values_that_do_not_occur_do_not_matter() -> None:
    domain = categories(["a", "b", "c"])
    used = RecordHashes.of(SECRET, [domain], [np.array([2, 0, 1])]).column(0)
    assert used.tolist() == [by_text(domain)["a"], 0, by_text(domain)["c"]]


def test_the_hash_of_a_record_does_not_depend_on_the_order_of_columns() -> None:
    ages, towns = numeric([1, 2, 3]), categories(["x", "y"], "town")
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 1]], np.uint8)
    _, one = hashes_of(ages, towns).least(codes, ALL)
    _, other = hashes_of(towns, ages).least(np.ascontiguousarray(codes[:, ::-1]), ALL)
    assert one.tolist() == other.tolist()
    assert len(set(one.tolist())) == 6


def test_the_least_hashes_are_those_up_to_the_limit() -> None:
    hashes, codes = hashes_of(numeric(list(range(1000)))), np.arange(1000, dtype=np.uint16)[:, None]
    _, every = hashes.least(codes, ALL)
    limit = np.sort(every)[99]
    positions, least = hashes.least(codes, limit)
    assert len(positions) == 100
    assert np.array_equal(every[positions], least)
    assert least.max() == limit


def test_a_tally_depends_on_values_and_counts_but_not_on_their_order() -> None:
    hashes, counts = np.array([5, 7, 9], np.uint64), np.array([1, 2, 3])
    tally = tallied_hashes(SECRET, hashes, counts)
    assert tally == tallied_hashes(SECRET, hashes[::-1], counts[::-1])
    assert tally != tallied_hashes(SECRET, hashes, counts[::-1])
    assert tally != tallied_hashes(SECRET, hashes + np.uint64(1), counts)
    assert tally != tallied_hashes(bytes(32), hashes, counts)
