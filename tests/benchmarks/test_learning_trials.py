"""Trials of learning use the records and the truth that belong together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.learning_trials import INFORMATION_GAIN, ORIGINAL, agrawal, methods, trial, two_halves
from benchmarks.tables import Options
from benchmarks.targets import _several
from sfumato.policy import merge_flags

TRAINING, TEST = 400, 200


def test_the_halves_are_those_of_the_table(tmp_path: Path) -> None:
    table, policy = agrawal(["C2"], TRAINING + TEST, 0, tmp_path)
    lesson = two_halves(table, merge_flags(policy, target="C2"), "tree", training=TRAINING)
    assert lesson.fold.sum() == TEST
    ages = np.asarray(table.column("age"))
    place = lesson.table.encoded.domains.index(next(d for d in lesson.table.encoded.domains if d.name == "age"))
    codes = lesson.table.encoded.codes[:, place]
    ranks = np.unique(ages, return_inverse=True)[1]
    assert sorted(codes[lesson.fold == 0]) == sorted(ranks[:TRAINING])
    assert sorted(codes[lesson.fold == 1]) == sorted(ranks[TRAINING:])


@pytest.mark.not_quick
def test_a_function_of_the_features_is_learnt(tmp_path: Path) -> None:
    table, policy = agrawal(["C2"], 2_000, 1, tmp_path)
    policy = merge_flags(policy, target="C2")
    scores = trial(two_halves(table, policy, "tree"), methods(policy, INFORMATION_GAIN))
    assert scores[ORIGINAL, "tree"] > 0.9
    assert scores[INFORMATION_GAIN, "tree"] > 0.9


@pytest.mark.not_quick
def test_regions_are_better_for_what_they_are_made_for(tmp_path: Path) -> None:
    rows, _ = _several(Options(tmp_path, None, None, (), trial=True))
    first, last = rows[0], rows[-1]
    assert first["A"] > 0.9
    assert last["G"] > first["G"]
