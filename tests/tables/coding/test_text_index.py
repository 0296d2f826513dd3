"""The index of distinct texts finds what a dictionary of Python would find."""

from __future__ import annotations

import pyarrow as pa
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.tables.coding.text_index import TextIndex

TEXTS = st.lists(st.text(st.sampled_from("aäb€\0"), max_size=3) | st.text(max_size=20), max_size=12)


@given(batches=st.lists(TEXTS, max_size=5), skipped=st.integers(0, 2), asked=TEXTS)
@settings(max_examples=examples(10), deadline=None)
def test_texts_are_found_where_they_first_appeared(batches: list[list[str]], skipped: int, asked: list[str]) -> None:
    index, expected = TextIndex("note", pa.string()), dict[str, int]()
    for batch in batches:
        index.add(pa.array(batch, pa.string()).slice(skipped))
        for text in batch[skipped:]:
            expected.setdefault(text, len(expected))
    assert index.values.to_pylist() == list(expected)
    assert index.positions(pa.array(asked, pa.string())).tolist() == [expected.get(one, len(expected)) for one in asked]
    ordered = pa.array(sorted(expected), pa.string())
    again = TextIndex.of("note", ordered)
    assert again.positions(ordered).tolist() == list(range(len(expected)))


def test_an_index_grows_with_its_texts() -> None:
    index = TextIndex("note", pa.string())
    texts = pa.array([f"text {number}" for number in range(30_000)])
    for first in range(0, 30_000, 7_000):
        index.add(texts.slice(first, 7_000))
        index.add(texts.slice(first, 100))
    assert index.count == 30_000
    assert index.positions(texts).tolist() == list(range(30_000))
    assert index.letters == sum(map(len, texts.to_pylist()))
    assert index.nbytes < 30_000 * 60
