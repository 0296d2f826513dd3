"""Global recoding: the least loss of all nodes, whatever is asked for, and every column on one level."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lattice_problems import KINDS, WAYS, policy_of, problems, shown_by, table_of, write_taxonomies
from oracle_lattice import Problem

import sfumato
from sfumato.cli import main
from sfumato.methods import method_named
from sfumato.methods.lattice import least_cost_node
from sfumato.pipeline.prepare import prepare
from sfumato.pipeline.run import draft_release, kept
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_taxonomies(tmp_path_factory.mktemp("taxonomies"))


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
    assert summary["cost"] == pytest.approx(float(least), abs=1e-8)
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
        "without_levels": [],
    }
    plain = sfumato.anonymize(TOWNS, quasi_identifiers=["age", "town"], k=8, method="global").summary()
    assert plain["lattice"]["without_levels"] == ["age"]  # it could show nothing but its values
    assert 1 <= summary["lattice"]["tested"] <= 8
    assert "lattice" in summary["private_figures"]
    assert "levels" not in summary["private_figures"]
    release.write(tmp_path / "release.csv")
    assert json.loads((tmp_path / "release.csv.sfumato.json").read_text())["levels"] == {"age": 0, "town": 0}


@pytest.mark.not_quick
def test_a_wide_lattice_is_searched_to_the_end() -> None:
    generator = np.random.default_rng(30)
    table = pa.table({f"q{column}": generator.integers(0, 5, 60) for column in range(16)})
    release = sfumato.anonymize(table, quasi_identifiers=table.column_names, k=7, method="global")
    lattice = release.summary()["lattice"]
    assert (lattice["nodes"], lattice["complete"]) == (2**16, True)
    assert lattice["tested"] < 2**12


def test_a_search_that_ends_early_says_so_and_what_is_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(least_cost_node.WORK, "normal", 0)
    generator = np.random.default_rng(3)
    table = pa.table({name: generator.integers(0, 40, 300) for name in "abc"})
    pq.write_table(table, tmp_path / "table.parquet")
    taxonomies = [f"{name}={tmp_path / 'levels.csv'}" for name in "abc"]
    levels = [",".join([str(n), f"<{n // 5}>", f"({n // 20})", "*"]) for n in range(40)]
    (tmp_path / "levels.csv").write_text("\n".join(levels) + "\n")
    arguments = [
        "anonymize",
        tmp_path / "table.parquet",
        "-o",
        tmp_path / "release.parquet",
        "-k",
        "5",
        "--method",
        "global",
    ]
    arguments += ["--quasi-identifiers", "a,b,c", "--max-suppressed", "0.3"]
    for taxonomy in taxonomies:
        arguments += ["--taxonomy", taxonomy]
    assert main([*map(str, arguments), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert not summary["lattice"]["complete"]
    assert 0 <= summary["lattice"]["least_possible"] < summary["cost"]
    monkeypatch.setitem(least_cost_node.WORK, "normal", 1 << 26)
    assert main([*map(str, arguments), "--json"]) == 0
    complete = json.loads(capsys.readouterr().out)
    assert complete["lattice"]["complete"]
    assert summary["lattice"]["least_possible"] <= complete["cost"] <= summary["cost"]
    assert main(list(map(str, arguments))) == 0
    told = " ".join("".join(capsys.readouterr()).split())
    assert "none of the 64 combinations of levels loses less" in told


def test_a_search_that_is_stopped_gives_the_best_so_far_and_the_release_says_that_it_may_differ() -> None:
    class Stopped(Progress):
        def began(self, name: str, total: int | None) -> None:
            self.stopped = self.stopped or name == "improve"

    table = pa.table({name: np.random.default_rng(3).integers(0, 40, 300) for name in "ab"})
    taxonomy = {name: {"intervals": [5, 20]} for name in "ab"}
    policy = merge_flags(
        None, quasi_identifiers=["a", "b"], k=5, method="global", taxonomy=taxonomy, max_suppressed=0.3
    )
    release = kept(draft_release(table, policy, Stopped()))
    assert release.audit.smallest_class >= 5
    assert not release.summary()["lattice"]["complete"]
    assert any("an interruption ends the search" in warning for warning in release.summary()["warnings"])


def test_without_a_solution_the_error_says_what_would_be_enough() -> None:
    table = pa.table({"age": [1, 2, 30, 31, 90]})
    policy = {
        "columns": {"age": {"role": "quasi-identifier", "taxonomy": {"intervals": [10]}, "coarsest": 1}},
        "privacy": {"k": 2},
        "method": {"name": "global"},
    }
    with pytest.raises(sfumato.InfeasibleError, match=r"max_suppressed_fraction = 0\.2000 would be enough"):
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
