"""The attacks of the benchmarks find what can be found by hand, and nothing where there is nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmarks are not part of the installed package

from benchmarks.attacks import SECTION
from benchmarks.box_end_attack import NumericEnds, place_persons
from benchmarks.correlation_attack import PublishedGroups, guess_values, number_features, right_without_release
from benchmarks.minimality_attack import Rows, Values, eligible_originals, try_out
from benchmarks.recording import recorded, rows_by_table
from sfumato.report import remaining_risks


def pairs_of(truth: NDArray[np.int64]) -> PublishedGroups:
    """Groups of two neighbouring records with two different values."""
    group = np.arange(len(truth)) // 2
    return PublishedGroups.of(group, group, truth, np.ones(len(truth), np.int64))


@pytest.mark.parametrize(("dependent", "least", "most"), [(True, 0.95, 1.0), (False, 0.4, 0.6)])
def test_correlations_across_groups_tell_who_has_which_value(dependent: bool, least: float, most: float) -> None:
    random = np.random.default_rng(1)
    truth = np.concatenate([random.permutation(3)[:2] for _ in range(500)])
    features = np.where(random.random((3, 1000)) < 0.8, truth if dependent else 0, random.integers(0, 3, (3, 1000))).T
    published = pairs_of(truth)
    assert set(published.largest_share.tolist()) == {0.5}
    assert least <= (guess_values(features, published).value == truth).mean() <= most


def test_groups_with_a_single_value_are_certain() -> None:
    group = np.array([0, 0, 1, 1])
    published = PublishedGroups.of(group, np.array([1, 0, 1]), np.array([1, 0, 0]), np.array([1, 2, 1]))
    guesses = guess_values(np.array([[0], [1], [0], [1]]), published)
    assert guesses.value[:2].tolist() == [0, 0]
    assert guesses.likelihood[:2].tolist() == [1.0, 1.0]
    assert published.largest_share.tolist() == [1.0, 1.0, 0.5, 0.5]


def test_without_the_release_one_half_is_guessed_from_the_other() -> None:
    truth = np.tile([0, 1, 2, 2], 100)
    assert right_without_release(truth[:, None], truth, seed=0).all()
    assert right_without_release(np.zeros((400, 1), np.int64), truth, seed=0).mean() == 0.5


def test_numbers_are_put_into_tenths_and_categories_are_numbered() -> None:
    features = number_features([[str(age) for age in range(100)], ["b", "a"] * 50], [True, False])
    assert np.bincount(features[:, 0]).tolist() == [10] * 10
    assert features[:4, 1].tolist() == [1, 0, 1, 0]


def test_originals_that_lead_to_another_release_are_excluded() -> None:
    """A method that merges the two classes of a table exactly if the first person has an a."""

    def release(values: Values) -> Rows:
        first, second = ("*", "*") if values[0] == "a" else ("old", "young")
        return tuple(sorted([(first, value) for value in values[:2]] + [(second, value) for value in values[2:]]))

    originals = eligible_originals(4, "ab", 2)
    found = try_out(originals, release)
    assert len(originals) == found.originals == 6
    assert (found.with_certain, found.persons) == (6, 24)
    # aabb, abab and abba look alike, so the first value is certain; in baab and baba the first two; in bbaa all.
    assert found.certain == 3 * 1 + 2 * 2 + 1 * 4
    assert found.right == 3 + 3 * 2 + 2 * 2 + 2 * 1 + 4


def test_a_method_that_does_not_look_at_values_makes_none_certain() -> None:
    originals = eligible_originals(6, "abc", 2)
    found = try_out(originals, lambda values: tuple(("*", value) for value in sorted(values)))
    assert len(originals) == 510
    assert (found.certain, found.right) == (0, found.right_by_class)


def test_the_only_person_at_the_end_of_a_box_is_placed() -> None:
    ages = np.array([20.0, 25.0, 25.0, 30.0, 30.0, 40.0])
    register = np.searchsorted(np.unique(ages), ages)[:, None]
    low, high = np.array([[0], [2]]), np.array([[2], [3]])  # [20..30] and [30..40]
    ends = NumericEnds(np.array([20.0, 30.0]), np.array([30.0, 40.0]), ages, 0)
    assert place_persons(register, low, high, [ends]).tolist() == [[0, 0], [1, 5]]


def test_with_rounded_ends_anybody_within_a_step_could_be_meant() -> None:
    ages = np.array([21.0, 23.0, 28.0, 34.0])
    register = np.arange(4)[:, None]
    low, high = np.array([[0]]), np.array([[3]])
    shown = np.array([20.0]), np.array([35.0])
    assert place_persons(register, low, high, [NumericEnds(*shown, ages, 5)]).tolist() == [[0, 3]]
    assert place_persons(register, low, high, [NumericEnds(*shown, ages, 10)]).tolist() == []


def test_a_range_that_shows_nothing_places_nobody() -> None:
    ends = NumericEnds(np.array([np.nan]), np.array([np.nan]), np.array([20.0, 30.0]), 0)
    assert len(place_persons(np.array([[0], [1]]), np.array([[0]]), np.array([[1]]), [ends])) == 0


def test_the_report_quotes_what_was_recorded() -> None:
    recording = recorded("attacks")
    assert recording is not None
    phrases = SECTION.phrases(rows_by_table(recording))
    quoted = {
        "without the release": remaining_risks.GUESSED_WITHOUT_RELEASE,
        "anatomy, l = 3": remaining_risks.GUESSED_BY_ANATOMY,
        "classes, l = 3": remaining_risks.GUESSED_IN_CLASSES,
        "certain": remaining_risks.CERTAIN,
        "placed": remaining_risks.PLACED,
        "placed, round": remaining_risks.PLACED_WITH_ROUND,
        "loss, round": remaining_risks.LOSS_WITH_ROUND,
    }
    assert quoted == {name: phrases[name] for name in quoted}
