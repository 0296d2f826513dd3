"""Global recoding: the least loss of all nodes, whatever is asked for, and every column on one level."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import oracle
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_lattice import CategoryLevels, NumberLevels, Problem

import sfumato
from sfumato.methods import method_named
from sfumato.pipeline.prepare import prepare
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

CITIES = [
    ["Pisa", "west", "Tuscany"],
    ["Lucca", "west", "Tuscany"],
    ["Siena", "south", "Tuscany"],
    ["Roma", "Lazio", "Lazio"],
]
WIDTHS = (2, 6)
SENSITIVE_TREE = [["0", "a", "*"], ["1", "a", "*"], ["2", "b", "*"]]

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "frequency": ("frequency", {"l": 2}),
    "distinct": ("distinct", {"l": 2}),
    "entropy": ("entropy", {"l": 2}),
    "recursive": ("recursive", {"c": Fraction(2), "l": 2}),
    "variance": ("variance", {"v": Fraction(1, 4)}),
    "closeness": ("t-closeness", {"t": Fraction(3, 10)}),
    "closeness, ordered": ("t-closeness", {"t": Fraction(3, 10), "distance": "ordered"}),
    "closeness, hierarchical": ("t-closeness", {"t": Fraction(3, 10), "distance": "hierarchical"}),
    "alpha-k": ("alpha-k", {"alpha": Fraction(2, 3)}),
    "likeness": ("beta-likeness", {"beta": Fraction(1)}),
    "likeness, enhanced": ("beta-likeness", {"beta": Fraction(1), "enhanced": True}),
    "disclosure": ("delta-disclosure", {"delta": Fraction(1)}),
}
WAYS = {
    "plain": oracle.Counting(),
    "persons": oracle.Counting(person="pid"),
    "joint": oracle.Counting(joint=("s", "t")),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("taxonomies")
    (folder / "city.csv").write_text("".join(",".join([*row, "*"]) + "\n" for row in CITIES))
    (folder / "s.csv").write_text("".join(",".join(row) + "\n" for row in SENSITIVE_TREE))
    return folder


@st.composite
def problems(draw: st.DrawFn, kind: str | None = None, way: str = "plain") -> Problem:
    size = draw(st.integers(1, 24))
    cells = {
        "age": st.one_of(st.integers(0, 14), st.integers(0, 3), st.none()),
        "city": st.sampled_from([row[0] for row in CITIES] + ["Pisa", "Lucca"]),
        "s": st.sampled_from(draw(st.sampled_from([(0, 1), (0, 0, 1, 2), (0, 1, 2, None)]))),
        "t": st.sampled_from(["x", "y"]),
        "pid": st.integers(1, draw(st.sampled_from([4, 100]))),
    }
    rows = [{name: draw(cell) for name, cell in cells.items()} for _ in range(size)]
    columns = {"age": NumberLevels([row["age"] for row in rows], WIDTHS), "city": CategoryLevels(CITIES)}
    asked = [] if kind is None else [oracle.Asked(KINDS[kind][0], "s", KINDS[kind][1], SENSITIVE_TREE)]
    most = int(draw(st.sampled_from([0.0, 0.1, 0.5])) * size)
    return Problem(rows, columns, asked, WAYS[way], draw(st.integers(1, 4)), most)


def policy_of(problem: Problem, folder: Path, **more: Any) -> Policy:
    asked = [
        {
            "attribute": each.attribute,
            "kind": each.kind,
            **{name: float(value) if isinstance(value, Fraction) else value for name, value in each.parameters.items()},
        }
        for each in problem.asked
    ]
    size = len(problem.rows)
    return merge_flags(
        Policy.from_dict({"privacy": {"sensitive": asked}}),
        quasi_identifiers=list(problem.columns),
        sensitive=["s", "t"],
        identifiers=["pid"],
        other="keep",
        accept_linkable=["row"],
        taxonomy={
            "age": {"intervals": list(WIDTHS)},
            "city": folder / "city.csv",
            **(
                {"s": folder / "s.csv"}
                if any("hierarchical" in each.parameters.values() for each in problem.asked)
                else {}
            ),
        },
        k=problem.k,
        person=problem.counting.person,
        joint=bool(problem.counting.joint),
        max_suppressed=problem.most / size,
        method=more.pop("method", "global"),
        keep_order=True,
        **more,
    )


def table_of(problem: Problem) -> pa.Table:
    types = {"age": pa.int64(), "s": pa.int64(), "city": pa.string(), "t": pa.string(), "pid": pa.int64()}
    columns = {name: pa.array([row[name] for row in problem.rows], kind) for name, kind in types.items()}
    return pa.table({**columns, "row": range(len(problem.rows))})


def shown_by(release: sfumato.Release, problem: Problem) -> list[tuple[int, tuple[Any, ...]]]:
    return [(row["row"], tuple(row[name] for name in problem.columns)) for row in release.data.to_pylist()]


def check_least_loss(problem: Problem, folder: Path) -> None:
    """The release of a node, as the oracle sees it, with the least loss of all nodes."""
    if problem.failing([(row, ()) for row in range(len(problem.rows))]):
        return  # the table as a whole does not hold, so that records are left out before levels are chosen
    release = sfumato.anonymize(table_of(problem), policy_of(problem, folder))
    summary = release.summary()
    expected = problem.released([summary["levels"][name] for name in problem.columns])
    assert shown_by(release, problem) == expected
    least = problem.least_loss()
    assert least is not None
    assert float(problem.loss(expected)) == pytest.approx(float(least), abs=1e-8)
    assert release.losses.gcp == pytest.approx(float(least), abs=1e-8)
    assert summary["lattice"]["complete"]
    assert summary["lattice"]["least_possible"] == pytest.approx(float(least), abs=1e-6)


@settings(max_examples=examples(1))
@given(problem=problems())
def test_with_k_alone_no_node_loses_less(folder: Path, problem: Problem) -> None:
    check_least_loss(problem, folder)


# ---- cells ----


@pytest.mark.parametrize("kind", [None, "frequency", "closeness"])
def test_cells_are_suppressed_in_the_stated_order_and_no_node_loses_less(folder: Path, kind: str | None) -> None:
    @settings(max_examples=examples(0.3))
    @given(problem=problems(kind), weights=st.sampled_from([(1, 1), (1, 2), (2, 1)]))
    def holds(problem: Problem, weights: tuple[int, int]) -> None:
        if problem.failing([(row, ()) for row in range(len(problem.rows))]):
            return
        weight = dict(zip(problem.columns, map(float, weights), strict=True))
        release = sfumato.anonymize(table_of(problem), policy_of(problem, folder, cells=True, weight=weight))
        node = [release.summary()["levels"][name] for name in problem.columns]
        expected = problem.released_with_cells(node, weights)
        assert shown_by(release, problem) == expected
        found = [problem.released_with_cells(each, weights) for each in problem.nodes()]
        least = min(problem.loss(shown, weights) for shown in found if problem.is_feasible(shown))
        assert float(problem.loss(expected, weights)) == pytest.approx(float(least), abs=1e-8)

    holds()


TOWNS = pa.table({"age": [1, 1, 1, 2, 3, 3, 3, 3], "town": ["a", "a", "a", "a", "b", "b", "b", "c"]})


def test_a_column_that_may_not_show_a_star_keeps_its_cells() -> None:
    table = pa.table({"age": [1, 1, 1, 2, 3, 3, 3, 3], "town": ["a", "a", "a", "a", "b", "b", "c", "d"]})
    columns: dict[str, dict[str, Any]] = {
        "age": {"role": "quasi-identifier", "taxonomy": {"intervals": [10]}, "weight": 0.5},
        "town": {"role": "quasi-identifier"},
    }
    policy = {"columns": columns, "privacy": {"k": 2}, "method": {"name": "global", "cells": True}}
    shown = sfumato.anonymize(table, policy, keep_order=True).data.to_pylist()
    assert [row["age"] for row in shown] == ["1", "1", "1", "*", "3", "3", "*", "*"]
    columns["age"]["coarsest"] = 1
    shown = sfumato.anonymize(table, policy, keep_order=True).data.to_pylist()
    assert {row["age"] for row in shown} == {"[0..9]"}
    assert [row["town"] for row in shown] == ["a", "a", "a", "a", "b", "b", "*", "*"]


def test_cells_go_with_the_method_global_alone() -> None:
    for method in ("auto", "hilbert", "datafly"):
        with pytest.raises(
            sfumato.UsageError, match=f"suppressed by the method global alone, and the policy names {method}"
        ):
            sfumato.anonymize(TOWNS, quasi_identifiers=["age", "town"], k=2, method=method, cells=True)


# ---- what it says ----


def test_levels_and_how_far_the_search_got_are_in_the_summary_and_levels_in_the_certificate(tmp_path: Path) -> None:
    release = sfumato.anonymize(
        TOWNS,
        quasi_identifiers=["age", "town"],
        k=3,
        method="global",
        max_suppressed=0.25,
        taxonomy={"age": {"intervals": [2, 10]}},
    )
    summary = release.summary()
    assert summary["levels"] == {"age": 0, "town": 0}
    assert summary["suppressed"] == 2
    assert summary["lattice"] == {
        "nodes": 8,
        "tested": summary["lattice"]["tested"],
        "complete": True,
        "least_possible": 0.25,
    }
    assert 1 <= summary["lattice"]["tested"] <= 8
    assert "lattice" in summary["private_figures"]
    assert "levels" not in summary["private_figures"]
    release.write(tmp_path / "release.csv")
    assert json.loads((tmp_path / "release.csv.sfumato.json").read_text())["levels"] == {"age": 0, "town": 0}


def test_without_a_solution_the_error_says_what_would_be_enough() -> None:
    table = pa.table({"age": [1, 2, 30, 31, 90]})
    policy = {
        "columns": {"age": {"role": "quasi-identifier", "taxonomy": {"intervals": [10]}, "coarsest": 1}},
        "privacy": {"k": 2},
        "method": {"name": "global"},
    }
    with pytest.raises(sfumato.InfeasibleError, match="max_suppressed_fraction = 0.2000 would be enough"):
        sfumato.anonymize(table, policy)
    prepared = prepare(table, merge_flags(Policy.from_dict(policy), max_suppressed=0.2), Progress())
    with pytest.raises(sfumato.InfeasibleError) as caught:
        list(method_named("global").classes(prepared.records, prepared.job.requirements, Progress()))
    assert str(caught.value) == (
        "no levels of the quasi-identifiers meet the policy with at most 0 of the 5 records left out. The best of them "
        "would leave out 1 (20.00%). Allow that with max_suppressed_fraction = 0.2000, ask for less, or give the "
        "columns more general levels."
    )
    release = sfumato.anonymize(table, policy, max_suppressed=0.2)
    assert sorted(release.data["age"].to_pylist()) == ["[0..9]", "[0..9]", "[30..39]", "[30..39]"]


def test_what_is_not_shown_has_no_bounds_either() -> None:
    table = pa.table({"age": [20, 21, 22, 90], "town": ["a", "a", "a", "b"]})
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "town"], "k": 3, "method": "global", "form": "bounds"}
    release = sfumato.anonymize(table, **asked, max_suppressed=0.25)
    assert release.data.to_pylist() == [{"age": "*", "age_min": None, "age_max": None, "town": "a"}] * 3
    release = sfumato.anonymize(table, **asked, max_suppressed=0.25, cells=True)
    assert release.data["age_max"].null_count == 3


def test_a_group_of_one_value_is_shown_as_the_group(folder: Path) -> None:
    table = pa.table({"age": [21, 22, 25, 25], "city": ["Roma", "Roma", "Pisa", "Lucca"]})
    taxonomy = {"age": {"intervals": [5]}, "city": folder / "city.csv"}
    release = sfumato.anonymize(table, quasi_identifiers=["age", "city"], k=2, method="global", taxonomy=taxonomy)
    assert release.summary()["levels"] == {"age": 1, "city": 1}
    assert [tuple(row.values()) for row in release.data.to_pylist()] == [
        ("[20..24]", "Lazio"),
        ("[20..24]", "Lazio"),
        ("[25..29]", "west"),
        ("[25..29]", "west"),
    ]


# ---- every requirement ----


@pytest.mark.not_quick
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_node_loses_less_whatever_is_asked_for(folder: Path, kind: str, way: str) -> None:
    @settings(max_examples=examples(0.15))
    @given(problem=problems(kind, way))
    def holds(problem: Problem) -> None:
        check_least_loss(problem, folder)

    holds()
