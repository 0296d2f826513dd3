"""The models that releases are judged by (LeFevre 2008, section 4.1), as scikit-learn has them.

| name | what it is |
|---|---|
| tree | a decision tree by information gain, pruned: a further leaf must save log2(n) bits |
| bayes | naive Bayes; numbers in intervals that tell the classes apart (``discretisation``) |
| forest | a random forest of 40 trees |
| svm | a support vector machine with a linear kernel |
| linear | linear regression by least squares, with a ridge that only breaks ties |
| regression-tree | a regression tree, pruned: a further leaf must explain more than noise would |

Differs from the paper, which uses Weka: its J48 prunes by an estimate of the error, and its M5 has linear models in the
leaves. Categories are told one by one to models that weigh features, up to 256 of a column; trees take them in the
order of their leaves.
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

Kind = Literal["classification", "regression"]
Target = NDArray[Any]
Learn = Callable[[Features, Target, Features, int], Target]
MOST_CATEGORIES = 256
TREES = 40
ALL = "all"


@dataclass(frozen=True)
class Model:
    """``learn(training, target, test, seed)`` is what the model, trained on the first two, says of the test records."""

    name: str
    kind: Kind
    learn: Learn


def models() -> dict[str, Model]:
    """Every model, by name."""
    own = (
        Model("tree", "classification", _tree),
        Model("bayes", "classification", _bayes),
        Model("forest", "classification", _forest),
        Model("svm", "classification", _machine),
        Model("linear", "regression", _linear),
        Model("regression-tree", "regression", _regression_tree),
    )
    return {model.name: model for model in own}


def check_models(names: str | Sequence[str]) -> list[str]:
    """The names of models, each of which there is; refused where one is not."""
    wanted = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    for name in wanted:
        if name not in models() and wanted != [ALL]:
            raise UsageError.unknown_choice("model", name, [*models(), ALL])
    return wanted


def models_named(names: str | Sequence[str], kinds: Sequence[Kind]) -> list[Model]:
    """The models that are asked for, each once; with ``all``, those that suit targets of these kinds."""
    known, wanted = models(), check_models(names)
    suiting = [name for name, model in known.items() if model.kind in kinds]
    if wanted == [ALL]:
        return [known[name] for name in suiting]
    chosen = [known[name] for name in dict.fromkeys(wanted) if name in suiting]
    if not chosen:
        raise UsageError(
            f"none of the models {', '.join(wanted)} suits the target, which is for {' and '.join(kinds)}. Choose from "
            f"{', '.join(suiting)}."
        )
    return chosen


def load_learners() -> None:
    """Load what models are made of, before threads would do so at once; refuse where it is not installed."""
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
    return _told(model.fit(training.numbers, target).predict(test.numbers))


def _forest(training: Features, target: Target, test: Features, seed: int) -> Target:
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(n_estimators=TREES, random_state=seed)
    return _told(model.fit(training.numbers, target).predict(test.numbers))


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
        if len(edges):  # one interval tells nothing
            columns.append((np.searchsorted(edges, before, "right"), np.searchsorted(edges, after, "right")))
    if not columns:
        return np.full(len(test.numbers), classes[np.argmax(np.bincount(coded))])
    first, second = (np.stack([pair[side] for pair in columns], axis=1) for side in range(2))
    model = CategoricalNB(min_categories=np.maximum(first.max(axis=0), second.max(axis=0)) + 1)
    return _told(classes[model.fit(first, coded).predict(second)])


def _machine(training: Features, target: Target, test: Features, seed: int) -> Target:
    from sklearn.svm import LinearSVC

    if len(np.unique(target)) < 2:
        return np.full(len(test.numbers), target[0])
    before, after = _weighed(training, test)
    return _told(LinearSVC(dual=False, random_state=seed).fit(before, target).predict(after))


def _linear(training: Features, target: Target, test: Features, seed: int) -> Target:
    from sklearn.linear_model import Ridge

    before, after = _weighed(training, test)
    return _told(Ridge(alpha=1e-3, solver="cholesky").fit(before, target).predict(after))


def _regression_tree(training: Features, target: Target, test: Features, seed: int) -> Target:
    from sklearn.tree import DecisionTreeRegressor

    grown = DecisionTreeRegressor(min_samples_leaf=5, random_state=seed).fit(training.numbers, target)
    count = len(target)
    noise = float(np.mean((target - grown.predict(training.numbers)) ** 2))
    # Twice the logarithm, as the threshold was chosen among many.
    pruned = DecisionTreeRegressor(
        min_samples_leaf=5, random_state=seed, ccp_alpha=2 * noise * float(np.log(max(count, 2))) / count
    )
    return _told(pruned.fit(training.numbers, target).predict(test.numbers))


def _weighed(training: Features, test: Features) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Numbers on one scale, by the training records, and a column for each category that they have."""
    first, second = [], []
    for column, nominal in enumerate(training.nominal):
        before, after = training.numbers[:, column], test.numbers[:, column]
        categories = np.unique(before) if nominal else before[:0]
        if 0 < len(categories) <= MOST_CATEGORIES:
            first.append((before[:, None] == categories).astype(np.float64))
            second.append((after[:, None] == categories).astype(np.float64))
            continue
        middle, spread = before.mean(), before.std()
        if spread > 0:
            first.append(((before - middle) / spread)[:, None])
            second.append(((after - middle) / spread)[:, None])
    if not first:  # nothing varies
        return np.zeros((len(training.numbers), 1)), np.zeros((len(test.numbers), 1))
    return np.concatenate(first, axis=1), np.concatenate(second, axis=1)


def _told(values: Any) -> Target:
    return np.asarray(values)
