"""Datafly, Samarati's search and Incognito: each finds what its paper says, by the oracle's own steps."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given, settings
from lattice_problems import policy_of, problems, shown_by, table_of, write_taxonomies
from oracle_lattice import Problem

import sfumato

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_taxonomies(tmp_path_factory.mktemp("taxonomies"))


def released_by(method: str, problem: Problem, folder: Path) -> tuple[sfumato.Release, tuple[int, ...]]:
    release = sfumato.anonymize(table_of(problem), policy_of(problem, folder, method=method))
    node = tuple(release.summary()["levels"][name] for name in problem.columns)
    assert shown_by(release, problem) == problem.released(node)
    return release, node


def is_infeasible(problem: Problem) -> bool:
    return len(problem.rows) < problem.k


@settings(max_examples=examples(0.5))
@given(problem=problems())
def test_datafly_raises_the_column_with_the_most_distinct_values(folder: Path, problem: Problem) -> None:
    if is_infeasible(problem):
        return
    columns, node = list(problem.columns.values()), [0, 0]
    while not problem.is_feasible(problem.released(node)):
        distinct = [
            len({column.label(row[name], level) for row in problem.rows})
            for (name, column), level in zip(problem.columns.items(), node, strict=True)
        ]
        raisable = [q for q in range(2) if node[q] < columns[q].levels - 1]
        node[max(raisable, key=lambda q: (distinct[q], -q))] += 1
    assert released_by("datafly", problem, folder)[1] == tuple(node)


@settings(max_examples=examples(0.5))
@given(problem=problems())
def test_samarati_finds_the_lowest_height_and_the_least_loss_there(folder: Path, problem: Problem) -> None:
    if is_infeasible(problem):
        return
    solutions = problem.solutions()
    lowest = min(sum(node) for node, _ in solutions)
    least = min(problem.loss(shown) for node, shown in solutions if sum(node) == lowest)
    release, node = released_by("samarati", problem, folder)
    assert sum(node) == lowest
    assert release.summary()["cost"] == pytest.approx(float(least), abs=1e-8)


@settings(max_examples=examples(0.5))
@given(problem=problems())
def test_incognito_finds_the_least_loss_of_all_solutions(folder: Path, problem: Problem) -> None:
    if is_infeasible(problem):
        return
    release, _ = released_by("incognito", problem, folder)
    least = problem.least_loss()
    assert least is not None
    assert release.summary()["cost"] == pytest.approx(float(least), abs=1e-8)
    assert release.summary()["lattice"]["complete"]


@pytest.mark.parametrize("method", ["datafly", "samarati", "incognito"])
def test_requirements_beside_k_are_refused_with_a_way_out(method: str) -> None:
    table = pa.table({"age": [1, 2], "illness": ["flu", "cold"]})
    with pytest.raises(sfumato.UsageError) as caught:
        sfumato.anonymize(table, quasi_identifiers=["age"], sensitive="illness", k=2, l=2, method=method)
    assert str(caught.value) == (
        f"{method} is published for k-anonymity alone, and the policy also asks for frequency. Choose global, which "
        "takes every requirement."
    )
