"""A release is a function of the set of rows: the same rows in any order give the same bytes, in every engine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naming import hiding_methods, needs_workload
from strategies import Case, Diverse, cases, diverse_cases

import sfumato
from sfumato.engines.disk import diverse_cut_by_range
from sfumato.methods import methods
from sfumato.pipeline.run import draft_release
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.tables.external.memory_budget import MemoryBudget

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

FOR_WORKLOAD = sorted(name for name, method in methods().items() if needs_workload(method))
by_method = pytest.mark.parametrize("method", hiding_methods())
SAMPLED = {"method": "mondrian", "sampled": True}
few = settings(max_examples=max(settings().max_examples // 3, 2))  # an example is two releases by one method
orders = st.integers(0, 2**32).map(random.Random)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("order")


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
@few
@given(case=cases(), order=orders)
def test_order_of_the_input_does_not_matter_with_k(method: str, folder: Path, case: Case, order: Any) -> None:
    asked = case.settings(folder)
    release, again = (
        sfumato.anonymize(table, method=method, **asked) for table in (case.table, shuffled(case.table, order))
    )
    assert again.data.equals(release.data)


@by_method
@few
@given(diverse=diverse_cases(), order=orders)
def test_order_of_the_input_does_not_matter_with_diversity(
    method: str, folder: Path, diverse: Diverse, order: Any
) -> None:
    asked = diverse.case.settings(folder)
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


@pytest.mark.parametrize("method", FOR_WORKLOAD)
def test_split_rules_of_a_workload_do_not_depend_on_the_order(method: str) -> None:
    asked = {**ASKED, "sensitive": [], "method": method}
    if method == "mondrian:selection":
        asked["select"] = ["age > 33 and sex = 'f'"]
    else:
        asked["target"] = "cost" if method == "mondrian:regression" else "diagnosis"
    assert_order_does_not_matter(patients(), **asked)


@pytest.mark.parametrize(
    "further", [{"form": "statistics"}, {"form": "median"}, {"form": "bounds"}, {"boxes": "regions"}]
)
def test_forms_of_a_release_do_not_depend_on_the_order(further: dict[str, Any]) -> None:
    assert_order_does_not_matter(patients(), method="mondrian", **ASKED, **further)


def test_anatomy_with_a_seed_does_not_depend_on_the_order() -> None:
    asked = {"quasi_identifiers": ["age", "zip", "sex"], "sensitive": "diagnosis", "other": "drop", "l": 3}
    assert_order_does_not_matter(patients(), method="anatomy", seed=4, **asked)


def test_rules_do_not_depend_on_the_order_of_the_table_that_they_are_learnt_on() -> None:
    asked = {**ASKED, "method": "mondrian"}
    rules = {sfumato.fit(shuffled(patients(), random.Random(seed)), **asked).to_json() for seed in range(4)}
    assert len(rules) == 1


@pytest.mark.not_quick
@pytest.mark.parametrize("asked", [{"method": "hilbert"}, {"method": "mondrian"}, SAMPLED, {}, {"l": 2}])
@pytest.mark.parametrize("records", [16, 90, 10_000])
def test_order_of_the_input_does_not_matter_on_disk(
    asked: dict[str, Any], records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryBudget, "of", staticmethod(lambda _: MemoryBudget(records * 3 * 160)))
    monkeypatch.setattr(diverse_cut_by_range, "MOST", 10**6)
    assert_order_does_not_matter(patients(), engine="disk", **{**ASKED, **asked})


def with_a_class_of_stars() -> pa.Table:
    """Six equal records, and six others that can only share a class of nothing but stars."""
    return pa.table(
        {
            "city": ["c"] * 3 + ["a"] * 6 + ["b"] * 3,
            "sex": ["z"] * 3 + ["x"] * 6 + ["y"] * 3,
            "note": ["n1", "n2", "n3"] * 4,
        }
    )


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_rows_of_nothing_but_stars_come_last(engine: Any) -> None:
    asked: dict[str, Any] = {"quasi_identifiers": ["city", "sex"], "other": "keep", "k": 6, "engine": engine}
    asked |= {"accept_linkable": ["note"], "method": "hilbert"}
    rows = sfumato.anonymize(with_a_class_of_stars(), **asked).data.to_pylist()
    assert [(row["city"], row["sex"]) for row in rows] == [("a", "x")] * 6 + [("*", "*")] * 6
    assert rows == oracle.canonical_order(rows, ["city", "sex"], ["note"])
    kept = sfumato.anonymize(with_a_class_of_stars(), keep_order=True, **asked).data
    assert kept["city"].to_pylist() == ["*"] * 3 + ["a"] * 6 + ["*"] * 3


@pytest.mark.parametrize("method", ["auto", "hilbert", "gain-tree"])
def test_releases_of_shuffled_tables_cannot_be_intersected(method: str) -> None:
    """Somebody has four releases of one table, each made of the rows in another order, and knows whose row is whose."""
    table = patients(160)
    releases = [
        sfumato.anonymize(shuffled(table, random.Random(seed)), method=method, l=2, **ASKED).data.to_pylist()
        for seed in range(4)
    ]
    key = ["age", "zip", "sex"]
    columns = {
        "age": oracle.NumberColumn(table["age"].to_pylist()),
        **{name: oracle.CategoryColumn(oracle.flat_rows(table[name].to_pylist())) for name in ("zip", "sex")},
    }

    diagnoses: list[dict[tuple[Any, ...], set[Any]]] = [{} for _ in releases]  # of every class
    for found, rows in zip(diagnoses, releases, strict=True):
        for row in rows:
            found.setdefault(tuple(row[name] for name in key), set()).add(row["diagnosis"])

    def possible(person: tuple[Any, ...], classes: dict[tuple[Any, ...], set[Any]]) -> set[Any]:
        """The diagnoses of all classes that cover a person."""
        covering = (
            found
            for labels, found in classes.items()
            if all(columns[name].covers(*pair) for name, *pair in zip(key, labels, person, strict=True))
        )
        return set().union(*covering)

    for person in {tuple(row[name] for name in key) for row in table.to_pylist()}:
        alone = possible(person, diagnoses[0])
        assert set.intersection(*(possible(person, classes) for classes in diagnoses)) == alone
        assert len(alone) > 1


@pytest.mark.parametrize("stopped", ["by the clock", "by the user"])
def test_a_search_that_is_stopped_says_that_the_next_release_may_differ(stopped: str) -> None:
    progress = Progress()
    progress.stopped = stopped == "by the user"
    limit = {"effort": "balanced"} if progress.stopped else {"seconds": 0.01}
    draft = draft_release(patients(150), merge_flags(None, **ASKED, **limit), progress)
    assert any("may be released in other classes the next time" in text for text in draft.job.warnings)
