"""The scikit-learn shell: parameters, clones, pipelines and searches, on training and on further data."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from recoding_tables import people
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

import sfumato
from sfumato.errors import UsageError

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
KEYS = ["age", "weight", "sex"]


def patients(count: int = 600, seed: int = 1) -> pd.DataFrame:
    """Whether somebody is ill is a matter of age and weight, mostly."""
    frame = people(count, seed).select([*KEYS, "zip"]).to_pandas()
    frame["ill"] = np.where((frame.age > 50) & (frame.weight > 68), "yes", "no")
    frame["cost"] = frame.age * 10.0 + np.arange(count) % 7
    return frame


def test_what_is_learnt_on_training_data_recodes_others_as_the_recoding_does() -> None:
    train, test = patients(seed=1), patients(seed=2)
    shell = sfumato.Mondrian(split="information-gain", target="ill", quasi_identifiers=KEYS, k=25).fit(train)
    asked: dict[str, Any] = {"quasi_identifiers": KEYS, "target": "ill", "other": "drop", "k": 25}
    recoding = sfumato.fit(train, **asked, method="mondrian:information-gain")
    found = shell.transform(test)
    assert isinstance(found, pd.DataFrame)
    assert found.to_dict("records") == recoding.transform(test).to_pylist()
    assert list(found.columns) == [*KEYS, "ill"]
    assert shell.recoding_.labels() == recoding.labels()


def test_y_is_what_is_predicted_and_is_in_nothing_that_comes_out() -> None:
    train = patients()
    inside = sfumato.Mondrian(split="information-gain", target="ill", k=25, output="bounds").fit(train[[*KEYS, "ill"]])
    beside = sfumato.Mondrian(split="information-gain", k=25, output="bounds").fit(train[KEYS], train["ill"])
    assert beside.recoding_.labels() == inside.recoding_.labels()
    assert beside.recoding_.names == tuple(KEYS)
    assert "ill" not in beside.recoding_.to_json()
    assert beside.transform(train[KEYS]).tolist() == inside.transform(train).tolist()
    assert beside.transform(train).shape == (600, 6)


def test_a_number_that_is_nearly_unique_may_be_predicted_since_it_is_not_released() -> None:
    train = patients()
    shell = sfumato.Mondrian(split="regression", k=25, output="bounds").fit(train[KEYS], train["cost"])
    model = LinearRegression().fit(shell.transform(train), train["cost"])
    assert model.score(shell.transform(patients(seed=3)), patients(seed=3)["cost"]) > 0.8
    assert shell.recoding_.policy.accept_linkable == ()


def test_a_pipeline_learns_from_regions_and_every_fold_learns_its_own() -> None:
    frame = patients(900)
    pipeline = make_pipeline(
        sfumato.Mondrian(split="information-gain", k=25, output="bounds"), DecisionTreeClassifier(random_state=0)
    )
    scores = cross_val_score(pipeline, frame[KEYS], frame["ill"], cv=3)
    assert scores.mean() > 0.85
    check_is_fitted(pipeline.fit(frame[KEYS], frame["ill"]))
    assert pipeline[:-1].get_feature_names_out().tolist() == [
        "age_min", "age_max", "weight_min", "weight_max", "sex_min", "sex_max",
    ]  # fmt: skip


def test_a_search_over_k_and_the_split_sets_parameters() -> None:
    frame = patients(500)
    pipeline = make_pipeline(sfumato.Mondrian(k=5, output="bounds"), RandomForestClassifier(10, random_state=0))
    grid = {"mondrian__k": [10, 100], "mondrian__split": ["median", "information-gain"]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(frame[KEYS], frame["ill"])
    assert set(search.best_params_) == set(grid)
    sizes = np.unique(search.best_estimator_[0].recoding_.regions_of(frame), return_counts=True)[1]
    assert sizes.min() >= search.best_params_["mondrian__k"]


def test_a_column_transformer_recodes_some_columns_and_passes_the_others_on() -> None:
    frame = patients()
    columns = make_column_transformer((sfumato.Mondrian(k=10, output="bounds"), ["age", "weight"]), remainder="drop")
    assert columns.fit_transform(frame, frame["ill"]).shape == (600, 4)


def test_clones_have_the_parameters_and_not_what_was_learnt() -> None:
    shell = sfumato.Mondrian(k=25, quasi_identifiers=KEYS, taxonomy={"sex": "flat"}).fit(patients())
    copy = clone(shell)
    assert copy.get_params() == shell.get_params()
    assert not hasattr(copy, "recoding_")
    assert clone(shell.set_output(transform="pandas"))._sklearn_output_config == {"transform": "pandas"}
    assert repr(copy) == "Mondrian(quasi_identifiers=['age', 'weight', 'sex'], k=25, taxonomy={'sex': 'flat'})"


def test_parameters_can_be_set_and_unknown_ones_are_refused() -> None:
    shell = sfumato.Mondrian(k=2).set_params(k=9, split="median")
    assert shell.get_params()["k"] == 9
    with pytest.raises(UsageError, match="unknown parameter 'kk'"):
        shell.set_params(kk=3)


def test_what_was_learnt_can_be_pickled() -> None:
    shell = sfumato.Mondrian(k=25, quasi_identifiers=KEYS, output="bounds").fit(patients())
    again = pickle.loads(pickle.dumps(shell))
    assert again.transform(patients(seed=2)).tolist() == shell.transform(patients(seed=2)).tolist()


def test_a_matrix_is_a_table_whose_columns_are_numbered() -> None:
    matrix = patients()[["age", "weight"]].to_numpy()
    shell = sfumato.Mondrian(k=25, output="bounds").fit(matrix)
    assert shell.get_feature_names_out().tolist() == ["x0_min", "x0_max", "x1_min", "x1_max"]
    assert shell.n_features_in_ == 2
    assert (shell.transform(matrix)[:, 0] <= matrix[:, 0]).all()
    words = sfumato.Mondrian(k=25).fit_transform(matrix)
    assert words.shape == (600, 2)
    assert words[0, 0].startswith("[")
    with pytest.raises(UsageError, match="1 dimensions"):
        shell.fit(matrix[:, 0])


def test_what_comes_out_says_that_nobody_audited_it() -> None:
    shell = sfumato.Mondrian(k=25, quasi_identifiers=KEYS).fit(patients())
    assert shell.transform(patients()).attrs == {"sfumato": "unaudited"}
    assert shell.transform(pa.Table.from_pandas(patients())).schema.metadata == {b"sfumato": b"unaudited"}


@pytest.mark.parametrize("output", ["labels", "bounds"])
def test_frames_of_the_library_that_is_asked_for_come_out(output: str) -> None:
    shell = sfumato.Mondrian(k=25, quasi_identifiers=KEYS, output=output).fit(patients())
    for library in ("pandas", "polars"):
        frame = shell.set_output(transform=library).transform(patients())  # type: ignore[arg-type]
        assert type(frame).__module__.startswith(library)
        assert list(frame.columns) == shell.get_feature_names_out().tolist()
    with pytest.raises(UsageError, match="unknown output 'arrow'"):
        shell.set_output(transform="arrow")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "parameters, says",
    [
        ({"split": "gini", "k": 2}, "unknown split 'gini'"),
        ({"output": "numbers", "k": 2}, "unknown output 'numbers'"),
        ({}, "k is absent"),
        ({"split": "regression", "k": 2}, "regression"),
        ({"target": "age", "quasi_identifiers": ["age"], "k": 2}, "age"),
    ],
)
def test_wrong_parameters_are_told_when_fitting(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        sfumato.Mondrian(**parameters).fit(patients()[KEYS])


def test_nothing_is_transformed_before_something_is_learnt() -> None:
    with pytest.raises(UsageError, match="learnt nothing yet"):
        sfumato.Mondrian(k=3).transform(patients())


def test_a_target_of_another_length_is_refused() -> None:
    with pytest.raises(UsageError, match="y is not a column beside X"):
        sfumato.Mondrian(k=3, split="information-gain").fit(patients()[KEYS], ["yes", "no"])


@pytest.mark.not_quick
def test_it_works_without_scikit_learn() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import pyarrow as pa, sfumato\n"
        "shell = sfumato.Mondrian(k=2, output='bounds').fit(pa.table({'age': [1, 2, 3, 4]}))\n"
        "print(shell.transform(pa.table({'age': [2]})).tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[[1.0, 2.0]]\n"
