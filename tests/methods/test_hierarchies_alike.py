"""The same hierarchy as intervals, as a calendar and as a file gives releases that lose equally much."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracle
import pyarrow as pa
import pytest
from naming import hiding_methods

import sfumato

COUNT = 2_000
TABLES = {"topdown": 8}  # it begins with random pairs, so the losses of single tables differ by two percent
FIRST_DAY = datetime.date(2019, 1, 1)
AGES = range(20, 80)
DAYS = [FIRST_DAY + datetime.timedelta(days=day) for day in range(2 * 365 + 1)]


def table(seed: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    return pa.table(
        {
            "age": generator.choice(AGES, COUNT),
            "day": pa.array([DAYS[day] for day in generator.integers(0, len(DAYS), COUNT)]),
            "sex": generator.choice(["f", "m"], COUNT),
        }
    )


def age_row(age: int) -> list[str]:
    return [str(age), *(f"[{age // width * width}..{age // width * width + width - 1}]" for width in (5, 10, 20)), "*"]


def day_row(day: datetime.date) -> list[str]:
    month = day.replace(day=1)
    after_month = (month + datetime.timedelta(days=31)).replace(day=1)
    last = after_month - datetime.timedelta(days=1)
    year = f"[{day.year}-01-01..{day.year}-12-31]"
    return [day.isoformat(), f"[{month}..{last}]", year, "*"]


@pytest.fixture(scope="module")
def taxonomies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("hierarchies")
    rows: dict[str, list[list[str]]] = {"age": list(map(age_row, AGES)), "day": list(map(day_row, DAYS))}
    for name, lines in rows.items():
        (folder / f"{name}.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    return {name: folder / f"{name}.csv" for name in rows}


def penalty(released: pa.Table, original: pa.Table) -> float:
    """The mean penalty of a record. Labels are read as ranges, whatever made them."""
    columns: dict[str, oracle.Column] = {
        name: oracle.NumberColumn(original.column(name).to_pylist()) for name in ("age", "day")
    }
    total = Fraction(0)
    for name, column in {**columns, "sex": oracle.CategoryColumn([["f"], ["m"]])}.items():
        for count in released.column(name).value_counts().to_pylist():
            total += column.penalty(count["values"]) * count["counts"]
    return float(total / released.num_rows)


@pytest.mark.parametrize("method", hiding_methods())
@pytest.mark.not_quick
def test_a_hierarchy_loses_the_same_however_it_is_written(method: str, taxonomies: dict[str, Path]) -> None:
    tables = [table(seed) for seed in range(TABLES.get(method, 1))]

    def loss(grouping: Callable[[str], object]) -> float:
        columns = {name: {"role": "quasi-identifier", "taxonomy": grouping(name)} for name in ("age", "day")}
        policy = {
            "columns": {**columns, "sex": {"role": "quasi-identifier"}},
            "privacy": {"k": 10},
            "method": {"name": method},
        }
        return sum(penalty(sfumato.anonymize(data, policy).data, data) for data in tables)

    written = {"age": {"intervals": [5, 10, 20]}, "day": {"calendar": ["month", "year"]}}
    assert loss(lambda name: written[name]) == pytest.approx(loss(lambda name: str(taxonomies[name])), rel=0.01)
