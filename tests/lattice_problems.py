"""Small tables on a lattice of levels, as the oracle and as a policy see them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import oracle
import pyarrow as pa
from hypothesis import strategies as st
from oracle_lattice import CategoryLevels, NumberLevels, Problem

import sfumato
from sfumato.policy import Policy, merge_flags

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


def write_taxonomies(folder: Path) -> Path:
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
    cost = draw(st.sampled_from([Fraction(1), Fraction(1, 4), Fraction(0)])) if most else Fraction(1)
    return Problem(rows, columns, asked, WAYS[way], draw(st.integers(1, 4)), most, cost)


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
        suppression_cost=float(problem.cost),
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
