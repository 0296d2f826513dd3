"""Counts by key: the sums of a dictionary, whatever the keys."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sfumato.tables.key_counts import weights_of_keys


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [7],
        [0, 0, 0],
        list(range(1000)),
        np.random.default_rng(1).integers(0, 50, 3000).tolist(),
        np.random.default_rng(2).integers(0, 2**62, 3000).tolist(),
        [number << 40 for number in range(500)] * 2,  # equal in all low digits
        [2**62, 0, 2**62, 2**62 - 1],
    ],
    ids=["none", "one", "equal", "consecutive", "few", "large", "high digits", "ends"],
)
def test_every_key_has_the_sum_of_its_weights_and_one_of_its_rows(keys: list[int]) -> None:
    weights = np.random.default_rng(3).integers(1, 9, len(keys))
    expected: Counter[int] = Counter()
    for key, weight in zip(keys, weights.tolist(), strict=True):
        expected[key] += weight
    sums, rows = weights_of_keys(np.array(keys, np.int64), weights)
    assert {keys[row]: total for row, total in zip(rows.tolist(), sums.tolist(), strict=True)} == expected
    assert len(sums) == len(expected)
