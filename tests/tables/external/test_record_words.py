"""Records that are numbers: packed, sorted and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfumato.tables.coding.sorting import Field
from sfumato.tables.external.packed_records import PackedFile
from sfumato.tables.external.record_words import WORDS, WordLayout, sorted_words, words_of
from sfumato.tables.external.scratch import Scratch


def test_words_sort_as_their_fields_do_and_hold_them() -> None:
    draw = np.random.default_rng(1)
    bits = (1, 0, 30, 33)
    columns = [draw.integers(0, 1 << width, 500, dtype=np.uint64) for width in bits]
    layout = WordLayout(bits)
    words = words_of([Field(column, width) for column, width in zip(columns, bits, strict=True)])
    assert layout.fits
    assert not WordLayout((*bits, 1)).fits
    for number, column in enumerate(columns):
        assert layout.values(words, number).tolist() == column.tolist()
    records = list(zip(*(column.tolist() for column in columns), strict=True))
    assert [records[row] for row in np.argsort(words)] == sorted(records)


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("most", [7, 100, 5_000])
def test_words_of_a_file_come_in_order(
    threads: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_THREADS", threads)
    words = np.random.default_rng(most).integers(0, 900, 2_000, dtype=np.uint64) << np.uint64(31)
    with Scratch(tmp_path) as scratch:
        file = PackedFile(scratch.path("words"), WORDS)
        file.append(words)
        parts = list(sorted_words(file, WordLayout((41,)), most, scratch, keep=True))
        assert file.path.exists()
    assert max(map(len, parts)) <= most
    assert np.concatenate(parts).tolist() == sorted(words.tolist())
