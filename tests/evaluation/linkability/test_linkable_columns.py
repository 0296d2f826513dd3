"""Kept columns that would undo a release are found and refused."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.errors import PolicyError
from sfumato.evaluation.linkability import linkable_columns as linkability
from sfumato.evaluation.linkability.identifiers import IdentifierRules
from sfumato.evaluation.linkability.linkable_columns import linkable_columns
from sfumato.policy import Policy
from sfumato.tables.coding.domains import NumericDomain
from sfumato.tables.coding.passthrough import PassthroughColumn

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


def found(values: Any, *quasi_identifiers: Sequence[int]) -> dict[str, str]:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    codes = np.array(quasi_identifiers or [[0, 1] * (len(array) // 2) + [0] * (len(array) % 2)], np.uint32).T
    domains = [NumericDomain(f"q{place}", np.unique(column), False) for place, column in enumerate(codes.T)]
    column = PassthroughColumn.of("c", pa.chunked_array([array]))
    return linkable_columns([column], codes, domains, rules_for(array.type))


def rules_for(kind: pa.DataType) -> IdentifierRules:
    return IdentifierRules.of(SimpleNamespace(names=["c"], types={"c": kind}), Policy())


@pytest.mark.parametrize(
    "values",
    [
        [f"id{row}" for row in range(20)],
        list(range(20)),
        [row / 7 for row in range(20)],
        [dt.datetime(2020, 1, 1) + dt.timedelta(minutes=row) for row in range(20)],
        [bytes([row]) for row in range(20)],
        pa.array(np.arange(20, dtype=np.float16) / np.float16(7)),
    ],
    ids=["text", "numbers", "floats", "moments", "bytes", "half floats"],
)
def test_a_unique_column_of_any_type_is_linkable(values: Any) -> None:
    assert found(values) == {"c": "100% of the records that have a value are alone with it"}


def test_half_of_the_records_alone_is_the_limit() -> None:
    alone = [f"id{row}" for row in range(10)]
    assert found([*alone, *["x"] * 10]) == {"c": "50% of the records that have a value are alone with it"}
    assert found([*alone[:9], *["x"] * 11]) == {}


@pytest.mark.parametrize("missing", [None, math.nan])
def test_records_without_a_value_do_not_hide_that_the_others_are_unique(missing: float | None) -> None:
    assert found(pa.array([float(row) for row in range(10)] + [missing] * 90, pa.float64())) == {
        "c": "100% of the records that have a value are alone with it"
    }


def test_a_column_without_any_value_is_not_linkable() -> None:
    assert found(pa.nulls(10, pa.string())) == {}
    assert found(pa.nulls(10, pa.float64())) == {}
    assert found(pa.array([math.nan] * 10)) == {}


def test_a_column_that_determines_a_quasi_identifier_is_linkable() -> None:
    towns = [row % 4 for row in range(100)]
    postcodes = [f"{town}{row % 2}" for row, town in enumerate(towns)]
    assert found(postcodes, [0, 1] * 50, towns) == {"c": "it nearly determines the quasi-identifier 'q0'"}
    other = [(row // 4) % 2 for row in range(100)]
    assert found(postcodes, other, towns) == {"c": "it nearly determines the quasi-identifier 'q1'"}


def test_nulls_can_determine_a_quasi_identifier_too() -> None:
    sexes = [0, 1] * 20
    assert found(["pregnant" if sex else None for sex in sexes], sexes) == {
        "c": "it nearly determines the quasi-identifier 'q0'"
    }


def test_nine_tenths_of_the_errors_removed_is_the_limit() -> None:
    codes = [0] * 100 + [1] * 100
    assert found(["a"] * 100 + ["b"] * 90 + ["a"] * 10, codes) != {}
    assert found(["a"] * 100 + ["b"] * 89 + ["a"] * 11, codes) == {}


def test_a_quasi_identifier_with_one_value_is_determined_by_nothing() -> None:
    assert found(["a", "b"] * 10, [0] * 20) == {}


def test_an_independent_column_is_not_linkable() -> None:
    assert found([(row // 2) % 2 for row in range(40)], [row % 2 for row in range(40)]) == {}


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=40))
def test_tables_of_pairs_and_sorting_agree_with_counting_by_hand(rows: list[tuple[int, int]]) -> None:
    values, codes = (np.array(column, np.uint32) for column in zip(*rows, strict=True))
    best: dict[int, dict[int, int]] = {}
    for value, code in rows:
        best.setdefault(value, {}).setdefault(code, 0)
        best[value][code] += 1
    right = sum(max(counts.values()) for counts in best.values())
    without = max(np.bincount(codes).tolist())
    expected = without < len(rows) and (right - without) >= 0.9 * (len(rows) - without) - 1e-9
    for dense in (1 << 24, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(linkability, "DENSE", dense)
            assert linkability.determines(values, 7, (codes, 4)) == expected


@pytest.mark.parametrize("records", [1, 2, 3])
def test_small_tables_are_judged_alike(records: int) -> None:
    assert found([f"id{row}" for row in range(records)]) != {}
    assert found(["x"] * records) == (
        {"c": "100% of the records that have a value are alone with it"} if records == 1 else {}
    )


TABLE = pa.table(
    {
        "age": [20 + row for row in range(12)],
        "born": [2000 - row for row in range(12)],
        "card": [f"SECRET{row}" for row in range(12)],
        "points": [row // 4 for row in range(12)],
    }
)


def test_a_linkable_column_is_refused_with_all_reasons_and_no_cell() -> None:
    with pytest.raises(PolicyError, match=r"'born': 100% .*'card': 100% .* list them in accept_linkable") as caught:
        sfumato.anonymize(TABLE, quasi_identifiers=["age"], other="keep", k=3)
    assert "SECRET" not in str(caught.value)
    assert "points" not in str(caught.value)


def test_a_linkable_column_is_released_when_it_is_accepted_or_sensitive() -> None:
    release = sfumato.anonymize(
        TABLE, quasi_identifiers=["age"], sensitive="born", accept_linkable="card", other="keep", k=3
    )
    assert sorted(release.data["card"].to_pylist()) == sorted(TABLE["card"].to_pylist())
    assert sorted(release.data["born"].to_pylist()) == sorted(TABLE["born"].to_pylist())


def test_accepting_one_column_accepts_no_other() -> None:
    with pytest.raises(PolicyError, match="'born'") as caught:
        sfumato.anonymize(TABLE, quasi_identifiers=["age"], accept_linkable="card", other="keep", k=3)
    assert "card" not in str(caught.value)


def test_a_dropped_column_is_not_judged() -> None:
    release = sfumato.anonymize(TABLE, quasi_identifiers=["age"], other="drop", k=3)
    assert release.data.column_names == ["age"]


@pytest.mark.not_quick
def test_a_million_distinct_floats_that_tell_nothing_are_not_linkable() -> None:
    chance = np.random.default_rng(1)
    sizes = [79, 2, 17, 6, 9, 10, 83]
    codes = np.column_stack([chance.integers(0, size, 1_000_000) for size in sizes]).astype(np.uint8)
    domains = [NumericDomain(f"q{place}", np.arange(size), False) for place, size in enumerate(sizes)]
    floats = PassthroughColumn.of("c", pa.chunked_array([pa.array(np.round(chance.normal(0, 1e4, 1_000_000), 1))]))
    assert linkable_columns([floats], codes, domains, rules_for(pa.float64())) == {}
