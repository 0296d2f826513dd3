"""Fingerprints: the same for the same rows in any order and by any engine, and what chance may make equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.pipeline.run import draft_release
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.releases.fingerprints import ENOUGH, Fingerprints, fingerprints
from sfumato.releases.keyed_sample import KeyedSample, sampled
from sfumato.tables.coding.domains import CategoricalDomain, NumericDomain
from sfumato.taxonomies.derived_taxonomies import flat

SECRET = bytes(range(32))
ROWS = st.lists(
    st.tuples(st.none() | st.integers(0, 3), st.sampled_from([0.5, 2.0, 1e9]), st.none() | st.sampled_from("xyz")),
    min_size=3,
    max_size=30,
)


@pytest.fixture(autouse=True, scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFUMATO_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        yield


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    types = {"age": pa.int64(), "size": pa.float64(), "town": pa.string()}
    columns = zip(types.items(), zip(*rows, strict=True), strict=True)
    return pa.table({name: pa.array(values, kind) for (name, kind), values in columns})


def of_release(data: object, **flags: Any) -> Fingerprints:
    """The fingerprints of a table as a run takes them."""
    asked = {"quasi_identifiers": ["age", "size", "town"], "k": 1, "method": "hilbert", **flags}
    draft = draft_release(data, merge_flags(None, **asked), Progress())
    draft.engine.close()
    assert draft.fingerprints is not None
    return draft.fingerprints


def are_equal(one: Fingerprints, other: Fingerprints) -> bool:
    return one.columns == other.columns and one.information == other.information and one.sample.same_as(other.sample)


@given(ROWS, st.randoms(use_true_random=False))
def test_any_order_of_the_rows_and_any_engine_give_the_same_fingerprints(
    rows: list[tuple[Any, ...]], chance: Any
) -> None:
    first = of_release(table_of(rows))
    chance.shuffle(rows)
    assert are_equal(of_release(table_of(rows)), first)
    assert are_equal(of_release(table_of(rows), engine="disk"), first)


@given(ROWS, ROWS)
def test_other_rows_give_other_fingerprints(rows: list[tuple[Any, ...]], others: list[tuple[Any, ...]]) -> None:
    one, other = of_release(table_of(rows)), of_release(table_of(others))
    key = repr
    assert are_equal(one, other) == (sorted(rows, key=key) == sorted(others, key=key))


def test_a_file_gives_the_same_fingerprints_as_a_frame(tmp_path: Path) -> None:
    table = table_of([(1, 0.5, "x"), (None, 2.0, "y"), (3, 1e9, None), (1, 0.5, "x")])
    (tmp_path / "in.csv").write_text("town;size;age\nx;0.5;1\n;1e9;3\ny;2.00;\nx;.5;1\n")
    from_file = of_release(tmp_path / "in.csv", input={"separator": ";", "nulls": [""]}, type={"size": "numeric"})
    assert are_equal(from_file, of_release(table))


def test_a_column_has_the_same_digest_whatever_the_policy_makes_of_it() -> None:
    table = table_of([(number % 4, number / 2, "xyz"[number % 3]) for number in range(12)])
    first = of_release(table)
    for flags in (
        {"type": {"age": "categorical", "size": "categorical"}},
        {"taxonomy": {"age": {"intervals": [2, 4]}}, "round": {"size": 5}},
        {"quasi_identifiers": ["town", "size", "age"]},
    ):
        assert are_equal(of_release(table, **flags), first)
    fewer = of_release(table, quasi_identifiers=["town", "age"], other="drop")
    assert fewer.columns.items() < first.columns.items()
    assert not set(fewer.sample.hashes.tolist()) & set(first.sample.hashes.tolist())


# ---- information ----


def marks(**counts: list[int]) -> Fingerprints:
    """The fingerprints of columns whose values occur as often as given."""
    domains = [NumericDomain(name, np.arange(len(column)), False) for name, column in counts.items()]
    return fingerprints(
        SECRET, domains, [np.array(column) for column in counts.values()], lambda _: KeyedSample.empty()
    )


def bits(counts: list[int]) -> float:
    (value,) = marks(column=counts).information.values()
    return value


@pytest.mark.parametrize("counts", [[40, 60], [5, 5, 5], [1] * 8, [12, 3, 1, 1], [30]], ids=str)
def test_information_is_how_seldom_random_tables_have_the_same_counts(counts: list[int]) -> None:
    both = 2 * np.array(counts)
    divided = np.random.default_rng(1).multivariate_hypergeometric(both, sum(counts), 200_000)
    equal = np.count_nonzero((divided == counts).all(axis=1)) / 200_000
    assert 2.0 ** -bits(counts) == pytest.approx(equal, rel=0.1)


def test_a_column_with_a_single_value_has_no_information() -> None:
    assert bits([1000]) == pytest.approx(0)


def test_two_values_are_not_enough_and_a_year_of_birth_is() -> None:
    assert bits([480, 520]) < ENOUGH < bits([10] * 80)


def test_columns_match_only_together_if_each_says_little() -> None:
    table = marks(a=[48, 52], b=[30, 70], c=[10, 90], d=[51, 49])
    names = list(table.columns)
    assert table.matching(table.columns) == (True, True)
    assert table.matching({names[0]: table.columns[names[0]]}) == (False, True)
    half = {name: table.columns[name] if number < 2 else "other" for number, name in enumerate(names)}
    assert table.matching(half) == (False, False)
    assert table.matching({"unknown": "x"}) == (False, True)


def test_one_column_that_says_much_is_enough() -> None:
    table = marks(a=[48, 52], b=[1] * 100)
    first, second = table.columns
    assert table.matching({first: "other", second: table.columns[second]}) == (True, False)


def test_null_and_empty_text_have_different_fingerprints() -> None:
    taxonomy = flat(["", "a"], "c")
    domain = CategoricalDomain("c", taxonomy, True)

    def of(codes: list[int]) -> Fingerprints:
        column = np.array(codes, np.uint8)[:, None]
        return fingerprints(
            SECRET, [domain], [np.bincount(codes, minlength=3)], lambda hashes: sampled(hashes, [(column, None)])
        )

    empty, letter, null = taxonomy.leaves.index(""), taxonomy.leaves.index("a"), 2
    one, other = of([empty, letter]), of([null, letter])
    assert not set(one.columns.values()) & set(other.columns.values())
    assert not one.sample.same_as(other.sample)
