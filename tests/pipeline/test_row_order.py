"""A release is a function of the set of rows: the same rows in any order give the same bytes, in every engine."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naming import hiding_methods, needs_workload
from strategies import Case, Diverse, cases, diverse_cases

import sfumato
from sfumato.methods import methods
from sfumato.policy import Policy

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

FOR_WORKLOAD = sorted(name for name, method in methods().items() if needs_workload(method))
by_method = pytest.mark.parametrize("method", hiding_methods())
orders = st.integers(0, 2**32).map(random.Random)


def shuffled(table: pa.Table, order: random.Random) -> pa.Table:
    rows = list(range(table.num_rows))
    order.shuffle(rows)
    return table.take(rows)


def patients(count: int = 400) -> pa.Table:
    """Many records with equal quasi-identifiers and different kept, sensitive and personal values."""
    chosen = np.random.default_rng(11)
    return pa.table(
        {
            "age": chosen.integers(30, 38, count),
            "zip": pa.array([f"10{number:03}" for number in chosen.integers(0, 6, count) * 7]),
            "sex": pa.array(np.where(chosen.random(count) < 0.5, "f", "m").tolist()),
            "diagnosis": pa.array([f"d{number}" for number in chosen.integers(0, 9, count)]),
            "cost": chosen.normal(size=count).round(2),
            "person": [f"p{number}" for number in chosen.integers(0, count // 2, count)],
        }
    )


ASKED: dict[str, Any] = {
    "quasi_identifiers": ["age", "zip", "sex"],
    "sensitive": "diagnosis",
    "identifiers": ["person"],
    "other": "keep",
    "accept_linkable": ["cost"],
    "k": 5,
}


def assert_order_does_not_matter(table: pa.Table, **asked: Any) -> None:
    first = sfumato.anonymize(table, **asked)
    for seed in range(4):
        again = sfumato.anonymize(shuffled(table, random.Random(seed)), **asked)
        assert again.data.equals(first.data)
        assert first.sensitive is None or again.sensitive.equals(first.sensitive)


@by_method
@given(case=cases(), order=orders)
def test_order_of_the_input_does_not_matter_with_k(method: str, tmp_path_factory: Any, case: Case, order: Any) -> None:
    asked = case.settings(tmp_path_factory.mktemp("order"))
    release, again = (
        sfumato.anonymize(table, method=method, **asked) for table in (case.table, shuffled(case.table, order))
    )
    assert again.data.equals(release.data)


@by_method
@given(diverse=diverse_cases(), order=orders)
def test_order_of_the_input_does_not_matter_with_diversity(
    method: str, tmp_path_factory: Any, diverse: Diverse, order: Any
) -> None:
    asked = diverse.case.settings(tmp_path_factory.mktemp("order"))
    table = diverse.case.table
    release, again = (
        sfumato.anonymize(rows, policy=Policy.from_dict(diverse.policy), method=method, **asked)
        for rows in (table, shuffled(table, order))
    )
    assert again.data.equals(release.data)


@by_method
@pytest.mark.parametrize("l", [None, 2])
def test_records_with_equal_quasi_identifiers_stay_with_their_classes(method: str, l: int | None) -> None:
    assert_order_does_not_matter(patients(), method=method, l=l, **ASKED)


@pytest.mark.parametrize("effort", ["fast", "balanced"])
@pytest.mark.parametrize("further", [{}, {"l": 3}, {"max_suppressed": 0.05}, {"l": 2, "person": "person"}])
def test_search_suppression_and_persons_do_not_depend_on_the_order(effort: str, further: dict[str, Any]) -> None:
    assert_order_does_not_matter(patients(150), effort=effort, **ASKED, **further)
