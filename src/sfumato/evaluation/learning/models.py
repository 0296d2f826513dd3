"""The scikit-learn models by which releases are judged (LeFevre 2008, section 4.1).

| name | model |
|---|---|
| tree | a decision tree by information gain, pruned: a further leaf must save log2(n) bits |
| bayes | naive Bayes; numbers in intervals that separate the classes (``discretisation``) |
| forest | a random forest of 40 trees |
| svm | a support vector machine with a linear kernel |
| linear | linear regression by least squares, with a ridge that only breaks ties |
| regression-tree | a regression tree, pruned: a further leaf must explain more than noise would |

Differs from the paper, which uses Weka: its J48 prunes by an estimate of the error, and its M5 has linear models in the
leaves. Models that weigh features get an indicator for each category, up to 256 categories in a column; trees take
categories in the order of their leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.evaluation.learning.discretisation import thresholds
from sfumato.evaluation.learning.features import Features
from sfumato.evaluation.parameter_values import ALL

Kind = Literal["classification", "regression"]
Target = NDArray[Any]
Learn = Callable[[Features, Target, Features, int], Target]
MOST_CATEGORIES = 256
TREES = 40


@dataclass(frozen=True)
class Model:
    """``learn(training, target, test, seed)`` trains the model and returns its predictions for the test records."""

    name: str
    kind: Kind
    learn: Learn


def models() -> dict[str, Model]:
    """Every model, by name."""
    own = (
        Model("tree", "classification", _tree),
        Model("bayes", "classification", _bayes),
        Model("forest", "classification", _forest),
        Model("svm", "classification", _support_vector_machine),
        Model("linear", "regression", _linear),
        Model("regression-tree", "regression", _regression_tree),
    )
    return {model.name: model for model in own}


def check_models(names: str | Sequence[str]) -> list[str]:
    """The requested names as a list. Refuses a name that no model has."""
    wanted = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    for name in wanted:
        if name not in models() and wanted != [ALL]:
            raise UsageError.unknown_choice("model", name, [*models(), ALL])
    return wanted


def models_named(names: str | Sequence[str], kinds: Sequence[Kind]) -> list[Model]:
    """The requested models, each once; with ``all``, every model that suits targets of these kinds."""
    known, wanted = models(), check_models(names)
    suitable = [name for name, model in known.items() if model.kind in kinds]
    if wanted == [ALL]:
        return [known[name] for name in suitable]
    chosen = [known[name] for name in dict.fromkeys(wanted) if name in suitable]
    if not chosen:
        raise UsageError(
            f"none of the models {', '.join(wanted)} suits the target, which needs {' and '.join(kinds)}. Choose from "
            f"{', '.join(suitable)}."
        )
    return chosen


def load_learners() -> None:
    """Import scikit-learn before several threads would at once. Refuses if it is not installed."""
    try:
        for name in ("ensemble", "linear_model", "naive_bayes", "svm", "tree"):
            import_module(f"sklearn.{name}")
    except ImportError:
        raise UsageError(
            "learning from releases needs scikit-learn. Install it with: pip install 'sfumato[learning]'"
        ) from None


def _tree(training: Features, target: Target, test: Features, seed: int) -> Target:
    from sklearn.tree import DecisionTreeClassifier

    count = len(target)
    model = DecisionTreeClassifier(
        criterion="entropy", min_samples_leaf=2, ccp_alpha=float(np.log2(max(count, 2)) / count), random_state=seed
    )
    return np.asarray(model.fit(training.numbers, target).predict(test.numbers))


def _forest(training: Features, target: Target, test: Features, seed: int) -> Target:
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(n_estimators=TREES, random_state=seed)
    return np.asarray(model.fit(training.numbers, target).predict(test.numbers))


def _bayes(training: Features, target: Target, test: Features, seed: int) -> Target:
    from sklearn.naive_bayes import CategoricalNB

    classes, coded = np.unique(target, return_inverse=True)
    columns: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for column, nominal in enumerate(training.nominal):
        before, after = training.numbers[:, column], test.numbers[:, column]
        if nominal:
            columns.append((before.astype(np.int64), after.astype(np.int64)))
            continue
        edges = thresholds(before, coded, len(classes))
        if len(edges):  # a single interval says nothing about the class
            columns.append((np.searchsorted(edges, before, "right"), np.searchsorted(edges, after, "right")))
    if not columns:
        return np.full(len(test.numbers), classes[np.argmax(np.bincount(coded))])
    first, second = (np.stack([pair[side] for pair in columns], axis=1) for side in range(2))
    model = CategoricalNB(min_categories=np.maximum(first.max(axis=0), second.max(axis=0)) + 1)
    return np.asarray(classes[model.fit(first, coded).predict(second)])


def _support_vector_machine(training: Features, target: Target, test: Features, seed: int) -> Target:
    from sklearn.svm import LinearSVC

    if len(np.unique(target)) < 2:
        return np.full(len(test.numbers), target[0])
    before, after = _scaled(training, test)
    return np.asarray(LinearSVC(dual=False, random_state=seed).fit(before, target).predict(after))


def _linear(training: Features, target: Target, test: Features, seed: int) -> Target:
    from sklearn.linear_model import Ridge

    before, after = _scaled(training, test)
    return np.asarray(Ridge(alpha=1e-3, solver="cholesky").fit(before, target).predict(after))


def _regression_tree(training: Features, target: Target, test: Features, seed: int) -> Target:
    from sklearn.tree import DecisionTreeRegressor

    grown = DecisionTreeRegressor(min_samples_leaf=5, random_state=seed).fit(training.numbers, target)
    count = len(target)
    noise = float(np.mean((target - grown.predict(training.numbers)) ** 2))
    # Twice the logarithm, because the threshold was chosen among many.
    pruned = DecisionTreeRegressor(
        min_samples_leaf=5, random_state=seed, ccp_alpha=2 * noise * float(np.log(max(count, 2))) / count
    )
    return np.asarray(pruned.fit(training.numbers, target).predict(test.numbers))


def _scaled(training: Features, test: Features) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Standardize numbers by the training records, and make an indicator column for each of their categories."""
    first, second = [], []
    for column, nominal in enumerate(training.nominal):
        before, after = training.numbers[:, column], test.numbers[:, column]
        categories = np.unique(before) if nominal else before[:0]
        if 0 < len(categories) <= MOST_CATEGORIES:
            first.append((before[:, None] == categories).astype(np.float64))
            second.append((after[:, None] == categories).astype(np.float64))
            continue
        mean, deviation = before.mean(), before.std()
        if deviation > 0:
            first.append(((before - mean) / deviation)[:, None])
            second.append(((after - mean) / deviation)[:, None])
    if not first:  # nothing varies
        return np.zeros((len(training.numbers), 1)), np.zeros((len(test.numbers), 1))
    return np.concatenate(first, axis=1), np.concatenate(second, axis=1)
