"""The figures of LeFevre use the records and the truth that belong together, and are judged by paired trials."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.tables import Options
from reproduce.data_files import DATA
from reproduce.figure import Figure, Judgement, Result, Row, Size
from reproduce.judging import number
from reproduce.lefevre import pruning, rothko_io, sampling_quality
from reproduce.lefevre.lessons import (
    INFORMATION_GAIN,
    agrawal,
    census,
    recoded_features,
    scores,
    spread,
    two_halves,
)
from reproduce.lefevre.paired import judge_folds, judge_pairs, swapped, trials_of
from reproduce.lefevre.rothko_runs import by_counts, by_sample, coded, drawn, policy_for, timed
from sfumato.evaluation.learning.significance import difference
from sfumato.policy import merge_flags

TRAINING, TEST = 400, 200


def test_the_halves_are_those_of_the_table(tmp_path: Path) -> None:
    lesson = agrawal(["C2"], TRAINING + TEST, 0, tmp_path)
    halves = two_halves(lesson.under(merge_flags(lesson.policy, target="C2")), ["tree"], training=TRAINING)
    assert halves.fold.sum() == TEST
    ages = np.asarray(lesson.data.column("age"))
    place = [domain.name for domain in halves.table.encoded.domains].index("age")
    codes = halves.table.encoded.codes[:, place]
    ranks = np.unique(ages, return_inverse=True)[1]
    assert sorted(codes[halves.fold == 0]) == sorted(ranks[:TRAINING])
    assert sorted(codes[halves.fold == 1]) == sorted(ranks[TRAINING:])


@pytest.mark.not_quick
def test_a_function_of_the_features_is_learnt(tmp_path: Path) -> None:
    lesson = agrawal(["C2"], 2_000, 1, tmp_path)
    policy = merge_flags(lesson.policy, target="C2")
    halves = two_halves(lesson.under(policy), ["tree"])
    assert scores(halves, halves.original)["tree"] > 0.9
    recoded = recoded_features(halves, merge_flags(policy, method=INFORMATION_GAIN, k=25))
    assert scores(halves, recoded)["tree"] > 0.9


@pytest.mark.not_quick
def test_the_census_has_the_class_and_the_number_of_the_same_records(tmp_path: Path) -> None:
    size = Size("tenth", Options(tmp_path, DATA))
    classes, numbers = census(size, 300), census(size, 300, "salary")
    assert classes.data.num_rows == 300
    assert classes.data.drop_columns("salary-class").equals(numbers.data.drop_columns("salary"))
    below = np.array(classes.data["salary-class"].to_pylist()) == "below 30K"
    assert np.array_equal(numbers.data["salary"].to_numpy() < 30_000, below)
    assert 0.4 < below.mean() < 0.7


def test_trials_of_two_series_are_paired_by_case() -> None:
    rows: list[Row] = [
        {"method": "ours", "k": 5, "model": "tree", "trials": [1.0, 2.0]},
        {"method": "other", "k": 5, "model": "tree", "trials": [0.5, 1.0]},
        {"method": "ours", "k": 1_000, "model": "tree", "trials": [3.0, 4.0]},
        {"method": "original", "k": None, "model": "tree", "trials": [9.0, 9.0]},
    ]
    pairs = trials_of(rows, "method", "ours", "other", ("model", "k"))
    assert pairs == {"tree, k = 5": ([1.0, 2.0], [0.5, 1.0])}
    assert swapped(pairs) == {"tree, k = 5": ([0.5, 1.0], [1.0, 2.0])}


def test_a_claim_about_trials_holds_if_every_interval_lies_above_zero() -> None:
    above, below, open_ = (
        ([2.0, 2.1, 2.2], [1.0, 1.0, 1.1]),
        ([1.0, 1.0, 1.1], [2.0, 2.1, 2.2]),
        ([1.0, 2.0], [2.0, 1.0]),
    )
    assert judge_pairs({"a": above, "b": above}, "gain").verdict == "holds"
    assert judge_pairs({"a": below, "b": below}, "gain").verdict == "fails"
    mixed = judge_pairs({"a": above, "b": below, "c": open_}, "gain")
    assert mixed.verdict == "depends"
    assert "in 1 of 3 cases; the opposite in 1: b (-1.07" in mixed.found
    assert "not decided in 1: c (0" in mixed.found
    one = judge_pairs({"only": above}, "gain")
    assert one.found.startswith("gain, 95% interval: only (1.07, ")
    with pytest.raises(ValueError, match="at least one case"):
        judge_pairs({}, "gain")
    with pytest.raises(ValueError, match="at least two trials"):
        judge_pairs({"a": ([1.0], [2.0])}, "gain")


def test_folds_have_wider_intervals_than_independent_trials() -> None:
    first, second = [1.0, 1.2, 1.1, 1.3], [0.9, 0.95, 0.9, 1.0]
    corrected = difference(first, second, 1 / 3)
    assert corrected.low is not None
    assert (
        f"({number(corrected.value)}, {number(corrected.low)} to "
        in judge_folds({"case": (first, second)}, "gain").found
    )
    assert spread(first)["low"] > spread(first, 1 / 3)["low"]


def test_waiting_is_time_in_which_the_program_does_not_run() -> None:
    _, slept = timed(lambda: time.sleep(0.2))  # type: ignore[arg-type,return-value]
    assert slept.wait > 0.15
    assert slept.cpu < 0.1
    assert slept.total == pytest.approx(slept.cpu + slept.wait)


@pytest.mark.not_quick
def test_rothko_runs_give_whole_classes_and_count_blocks() -> None:
    data = drawn(3_000, 1)
    with coded(data, policy_for(data, k=20)) as packed:
        for run in (by_counts(packed, 500, 1), by_sample(packed, 500)):
            sizes = run.classes.sizes.read()
            assert sizes.sum() == 3_000
            assert sizes.min() >= 20
            assert run.writes == run.counters.written // 512
            assert run.reads >= packed.blocks


def _cell(n: int, tests: int, naive: int, *, tests_open: int = 0, naive_open: int = 0) -> dict[str, float]:
    return {
        "value": 10,
        "n": n,
        "tests, pruned": tests,
        "tests, not minimal": tests_open,
        "naive, pruned": naive,
        "naive, not minimal": naive_open,
    }


def _judge(figure: Figure, text: str, result: Result) -> Judgement:
    (claim,) = (claim for claim in figure.claims if claim.text.startswith(text))
    return claim.judge(result)


def test_pruning_is_compared_in_cells_that_are_minimal_both_ways() -> None:
    cells = [_cell(100, 5, 1, tests_open=1), _cell(250, 7, 9), _cell(500, 0, 4), _cell(1_000, 0, 0)]
    result = Result("all records", {"k": cells})
    judgement = _judge(pruning.FIGURE_24, "Hypothesis tests", result)
    assert judgement == Judgement("holds", "7 nodes with tests and 13 without, in 3 cells, minimal both ways")
    assert _judge(pruning.FIGURE_24, "Pruning and nonminimality", result).verdict == "holds"
    worse = Result("all records", {"k": [*cells[:3], _cell(1_000, 200, 0)]})
    assert _judge(pruning.FIGURE_24, "Hypothesis tests", worse).verdict == "depends"
    assert _judge(pruning.FIGURE_24, "Tests do not lead", worse).verdict == "depends"
    assert _judge(pruning.FIGURE_24, "Pruning and nonminimality", worse).verdict == "fails"


def test_the_io_of_rothko_is_compared_with_the_analysis_in_passes() -> None:
    def row(cache: int, method: str, read: float, written: float) -> dict[str, object]:
        blocks = {"reads": round(100 * read), "writes": round(100 * written)}
        return {"cache": cache, "method": method, **blocks, "times read": read, "times written": written}

    rows = [row(1, "Rothko-T", 9, 4), row(2, "Rothko-T", 7, 2), row(1, "expected", 8, 4), row(2, "expected", 7, 2)]
    result = Result("all records", {"F_CACHE": rows})
    text = "The analysis of 5.3 predicts the I/O of Rothko-T"
    assert _judge(rothko_io.FIGURE_18, text, result).verdict == "holds"
    assert _judge(rothko_io.FIGURE_18, "A larger F_CACHE", result) == Judgement("holds", "1,300 to 900 blocks")
    far = Result("all records", {"F_CACHE": [row(1, "Rothko-T", 11, 4), *rows[1:]]})
    assert _judge(rothko_io.FIGURE_18, text, far).verdict == "depends"


def test_the_sample_matters_less_than_k_if_no_change_by_n_reaches_a_change_by_k() -> None:
    def row(k: int, n: int, value: float) -> dict[str, object]:
        return {"table": "C2", "k": k, "n": n, "value": value, "trials": [value, value + 0.01]}

    rows = [
        row(10, 100, 0.2),
        row(10, 200, 0.11),
        row(10, 400, 0.1),
        row(50, 100, 0.5),
        row(50, 200, 0.41),
        row(50, 400, 0.4),
    ]
    less = _judge(sampling_quality.FIGURE_22, "The size of the sample", Result("", {"quality": rows}))
    assert less == Judgement("holds", "C2: at most 0.100 by n, at least 0.300 by k")
    near = _judge(sampling_quality.FIGURE_22, "For large samples", Result("", {"quality": rows}))
    assert near.verdict == "depends"
    assert near.found.startswith("2.50% to 10.00% more than without a sample. Not at C2, k = 10")
