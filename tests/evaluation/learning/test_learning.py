"""What evaluation is made of: intervals, folds, discretisation, regions as numbers, models."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import UsageError
from sfumato.evaluation.learning.discretisation import thresholds
from sfumato.evaluation.learning.features import Features, points, regions, same_intervals_everywhere
from sfumato.evaluation.learning.folds import check_folds, folds_of
from sfumato.evaluation.learning.models import models, models_named
from sfumato.evaluation.learning.significance import difference, estimate
from sfumato.tables.coding.domains import CategoricalDomain, NumericDomain
from sfumato.taxonomies.derived_taxonomies import flat


def test_interval_is_that_of_student() -> None:
    found = estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    # 2.776 is the 97.5% point of t with 4 degrees of freedom; the standard error is sqrt(2.5 / 5).
    assert found.value == 3.0
    assert found.high == pytest.approx(3 + 2.7764451 * math.sqrt(0.5), abs=1e-6)
    assert found.low == pytest.approx(3 - 2.7764451 * math.sqrt(0.5), abs=1e-6)


def test_folds_of_one_table_have_wider_intervals_than_independent_trials() -> None:
    values = [0.81, 0.83, 0.80, 0.82, 0.84]
    plain, corrected = estimate(values), estimate(values, 1 / 4)
    assert corrected.value == plain.value
    assert plain.high is not None
    assert corrected.high is not None
    assert corrected.high - corrected.value == pytest.approx((plain.high - plain.value) * math.sqrt(1 + 5 / 4))


def test_one_trial_has_no_interval_and_no_significance() -> None:
    assert estimate([0.5]) == estimate([0.5], 0.1)
    assert (estimate([0.5]).value, estimate([0.5]).low) == (0.5, None)
    assert difference([0.5], [0.4]).p is None


def test_paired_difference_has_the_p_of_the_paired_t_test() -> None:
    found = difference([5.1, 4.9, 6.0, 5.5], [4.8, 4.7, 5.2, 5.4])
    # d = 0.3, 0.2, 0.8, 0.1: mean 0.35, standard error 0.15546, t = 2.2514 with 3 degrees of freedom.
    assert found.value == pytest.approx(0.35)
    assert found.p == pytest.approx(0.10983, abs=1e-4)


def test_equal_trials_differ_by_nothing_and_a_constant_difference_is_certain() -> None:
    assert difference([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).p == 1.0
    assert difference([2.0, 3.0, 4.0], [1.0, 2.0, 3.0]).p == 0.0


@given(count=st.integers(10, 200), folds=st.integers(2, 10), seed=st.integers(0, 5), kinds=st.integers(1, 4))
def test_folds_have_every_class_about_equally_often(count: int, folds: int, seed: int, kinds: int) -> None:
    classes = np.array([random.Random(seed).randrange(kinds) for _ in range(count)])
    fold = folds_of(count, folds, seed, classes=classes)
    sizes = np.bincount(fold, minlength=folds)
    assert sizes.max() - sizes.min() <= 1
    for one in range(kinds):
        within = np.bincount(fold[classes == one], minlength=folds)
        assert within.max() - within.min() <= 1
    assert (fold == folds_of(count, folds, seed, classes=classes)).all()


@given(persons=st.lists(st.integers(0, 30), min_size=1, max_size=100), folds=st.integers(2, 5), seed=st.integers(0, 3))
def test_a_person_is_in_one_fold(persons: list[int], folds: int, seed: int) -> None:
    codes = np.unique(persons, return_inverse=True)[1]
    if codes.max() + 1 < folds:
        with pytest.raises(UsageError, match="persons"):
            folds_of(len(codes), folds, seed, persons=codes)
        return
    fold = folds_of(len(codes), folds, seed, persons=codes)
    for person in range(codes.max() + 1):
        assert len(set(fold[codes == person].tolist())) == 1
    assert set(fold.tolist()) == set(range(folds))


@pytest.mark.parametrize("folds", [1, 0, -3, True])
def test_fewer_than_two_folds_are_refused(folds: int) -> None:
    with pytest.raises(UsageError, match="folds"):
        check_folds(folds)


def test_discretisation_finds_the_threshold_that_tells_classes_apart() -> None:
    numbers = np.arange(100.0)
    assert thresholds(numbers, (numbers >= 37).astype(int), 2).tolist() == [37.0]
    bands = ((numbers >= 30) & (numbers < 60)).astype(int)
    assert thresholds(numbers, bands, 2).tolist() == [30.0, 60.0]


def test_discretisation_of_what_tells_nothing_has_no_threshold() -> None:
    generator = np.random.default_rng(3)
    assert thresholds(generator.random(500), generator.integers(0, 2, 500), 2).tolist() == []
    assert thresholds(np.zeros(10), np.arange(10) % 2, 2).tolist() == []


NUMBERS = NumericDomain("number", np.array([10, 20, 40]), True)
LETTERS = CategoricalDomain("letter", flat(list("abcd"), "letter"), False)


def test_a_region_is_two_numbers_for_each_attribute_and_null_comes_last() -> None:
    low, high = np.array([[0, 1], [3, 0]], np.uint8), np.array([[1, 3], [3, 0]], np.uint8)
    found = regions(low, high, [NUMBERS, LETTERS], alike=False)
    assert found.numbers.tolist() == [[10.0, 20.0, 1.0, 3.0], [41.0, 41.0, 0.0, 0.0]]
    assert not found.nominal.any()


def test_original_values_and_regions_that_lie_alike_are_one_number_each_and_categories_stay_categories() -> None:
    codes = np.array([[0, 2], [2, 1]], np.uint8)
    found = points(codes, [NUMBERS, LETTERS])
    assert found.numbers.tolist() == [[10.0, 2.0], [40.0, 1.0]]
    assert found.nominal.tolist() == [False, True]
    alike = regions(codes, np.array([[1, 3], [3, 1]], np.uint8), [NUMBERS, LETTERS], alike=True)
    assert alike.numbers.tolist() == found.numbers.tolist()


def test_a_grid_lies_alike_and_a_tree_of_two_levels_does_not() -> None:
    low, high = np.array([[0, 0], [0, 2], [3, 0], [3, 2]]), np.array([[2, 1], [2, 3], [5, 1], [5, 3]])
    assert same_intervals_everywhere(low, high)
    assert not same_intervals_everywhere(np.array([[0, 0], [0, 2], [3, 0]]), np.array([[2, 1], [2, 3], [5, 3]]))


def test_projection_drops_all_numbers_of_an_attribute() -> None:
    found = Features(np.arange(8.0).reshape(2, 4), np.zeros(4, np.bool_)).without([0], 2)
    assert found.numbers.tolist() == [[2.0, 3.0], [6.0, 7.0]]


def learnable(seed: int = 0) -> tuple[Features, np.ndarray, np.ndarray]:
    """Two numbers and a category; a class that they decide, and a number that they sum up to."""
    generator = np.random.default_rng(seed)
    numbers = np.stack([generator.random(400), generator.random(400), generator.integers(0, 3, 400)], axis=1)
    classes = np.where(numbers[:, 2] == 1, numbers[:, 0] > 0.3, numbers[:, 0] > 0.7).astype(int)
    return Features(numbers, np.array([False, False, True])), classes, 3 * numbers[:, 0] + (numbers[:, 2] == 2)


@pytest.mark.parametrize("name", ["tree", "bayes", "forest", "svm"])
def test_every_model_of_classes_learns_what_can_be_learnt(name: str) -> None:
    (training, classes, _), (test, truth, _) = learnable(0), learnable(1)
    said = models()[name].learn(training, classes, test, 0)
    assert np.mean(said == truth) > (0.95 if name in ("tree", "forest") else 0.85)
    assert (said == models()[name].learn(training, classes, test, 0)).all()


@pytest.mark.parametrize(("name", "most"), [("linear", 0.01), ("regression-tree", 0.2)])
def test_every_model_of_numbers_learns_what_can_be_learnt(name: str, most: float) -> None:
    (training, _, numbers), (test, _, truth) = learnable(0), learnable(1)
    said = models()[name].learn(training, numbers, test, 0)
    assert np.mean(np.abs(said - truth)) < most


@pytest.mark.parametrize("name", ["tree", "bayes", "forest", "svm"])
def test_where_nothing_can_be_told_the_most_frequent_class_is(name: str) -> None:
    training = Features(np.zeros((50, 2)), np.array([False, True]))
    classes = np.array([0] * 30 + [1] * 20)
    assert (models()[name].learn(training, classes, training.of(np.arange(50) < 5), 0) == 0).all()
    one_class = np.ones(50, int)
    assert (models()[name].learn(training, one_class, training, 0) == 1).all()


def test_a_category_that_training_has_not_seen_is_no_error() -> None:
    training = Features(np.array([[0.0], [1.0]] * 20), np.array([True]))
    test = Features(np.array([[2.0], [1.0]]), np.array([True]))
    for model in models().values():
        target = np.array([0, 1] * 20) if model.kind == "classification" else np.array([0.0, 1.0] * 20)
        assert len(model.learn(training, target, test, 0)) == 2


def test_models_are_those_that_suit_the_target() -> None:
    assert [model.name for model in models_named("all", ["regression"])] == ["linear", "regression-tree"]
    assert [model.name for model in models_named("tree,linear,tree", ["classification"])] == ["tree"]
    with pytest.raises(UsageError, match="none of the models linear suits"):
        models_named("linear", ["classification"])
    with pytest.raises(UsageError, match="Did you mean 'forest'"):
        models_named("forrest", ["classification"])
