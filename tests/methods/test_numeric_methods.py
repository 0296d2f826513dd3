"""The contract of methods for numbers, by name: what holds of every release by sums of squares."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from naming import methods_for_numbers

import sfumato
from sfumato.errors import UsageError

METHODS = methods_for_numbers()
by_method = pytest.mark.parametrize("method", METHODS)
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


def table_of(count: int, columns: int, seed: int = 0) -> pa.Table:
    generator = np.random.default_rng(seed)
    numbers = {f"n{q}": np.round(generator.lognormal(3, 1, count), 1) for q in range(columns)}
    return pa.table({**numbers, "ill": generator.choice(["a", "b", "c"], count)})


def quasi_of(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if name != "ill"]


def released(table: pa.Table, **asked: Any) -> Any:
    return sfumato.anonymize(table, quasi_identifiers=quasi_of(table), sensitive="ill", **asked)


def groups_of(release: Any, quasi: list[str]) -> list[list[int]]:
    """The rows of each class, of a release in the order of its table."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row, values in enumerate(release.data.to_pylist()):
        groups.setdefault(tuple(values[name] for name in quasi), []).append(row)
    return list(groups.values())


def loss_of(table: pa.Table, groups: list[list[int]]) -> float:
    rows = table.select(quasi_of(table)).to_pydict()
    return oracle.information_loss(list(zip(*rows.values(), strict=True)), groups)


@by_method
@pytest.mark.parametrize(
    ("count", "columns", "k"), [(60, 3, 4), (25, 30, 3), (40, 1, 5), (9, 2, 9), (1, 1, 1), (12, 2, 1)]
)
def test_release_is_k_anonymous_and_covers_every_value(method: str, count: int, columns: int, k: int) -> None:
    table = table_of(count, columns)
    release = released(table, method=method, k=k, keep_order=True)
    quasi = quasi_of(table)
    assert oracle.smallest_class(release.data.to_pylist(), quasi) >= k
    for before, after in zip(table.to_pylist(), release.data.to_pylist(), strict=True):
        assert after["ill"] == before["ill"]
        for name in quasi:
            if after[name] != oracle.WHOLE:
                low, high = oracle.bounds(after[name])
                assert low <= oracle.bounds(str(before[name]))[0] <= high


@by_method
def test_rows_in_another_order_are_released_alike(method: str) -> None:
    table = table_of(80, 3)
    table = pa.concat_tables([table, table.slice(0, 20)])
    order = np.random.default_rng(1).permutation(len(table))
    assert released(table, method=method, k=3).data == released(table.take(order), method=method, k=3).data


@by_method
def test_il_is_that_of_the_classes(method: str, tmp_path: Path) -> None:
    table = table_of(70, 4)
    release = released(table, method=method, k=3, keep_order=True)
    expected = loss_of(table, groups_of(release, quasi_of(table)))
    assert release.losses.il == pytest.approx(expected)
    release.write(tmp_path / "release.csv")
    pc.write_csv(table, tmp_path / "table.csv")
    measured = sfumato.measure(tmp_path / "table.csv", tmp_path / "release.csv")
    assert measured.il == pytest.approx(expected)
    assert "il" in release.private_figures()


@by_method
def test_classes_are_merged_until_they_are_diverse(method: str) -> None:
    table = table_of(90, 3)
    release = released(table, method=method, k=3, require="distinct(ill, l=3)")
    assert oracle.fewest_values(release.data.to_pylist(), quasi_of(table), "ill") >= 3


@by_method
def test_dates_have_means_and_constant_columns_do_not_count(method: str) -> None:
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(day) ** 2) for day in range(24)]
    table = pa.table({"day": days, "same": [5] * 24})
    release = sfumato.anonymize(table, quasi_identifiers=["day", "same"], method=method, k=3, keep_order=True)
    groups = groups_of(release, ["day", "same"])
    rows = [(float(day.toordinal()), 5.0) for day in days]
    assert release.losses.il == pytest.approx(oracle.information_loss(rows, groups))


@by_method
def test_weights_count_in_il(method: str) -> None:
    table = table_of(50, 2)
    release = released(table, method=method, k=3, keep_order=True, weight={"n0": 3.0})
    groups = groups_of(release, ["n0", "n1"])
    single = [oracle.information_loss([(value,) for value in table[name].to_pylist()], groups) for name in ("n0", "n1")]
    assert release.losses.il == pytest.approx((3 * single[0] + single[1]) / 4)


@by_method
def test_columns_without_a_mean_are_refused_and_named(method: str) -> None:
    table = table_of(20, 2).append_column("city", pa.array(["Roma", "Pisa"] * 10))
    with pytest.raises(UsageError, match="column 'city' holds categories"):
        sfumato.anonymize(table, quasi_identifiers=["n0", "city"], other="drop", method=method, k=2)
    missing = pa.table({"n0": pa.array([1, 2, None, 4, 5, 6])})
    with pytest.raises(UsageError, match="column 'n0' has missing values"):
        sfumato.anonymize(missing, quasi_identifiers=["n0"], method=method, k=2)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"method": "hilbert"}, "hilbert does not lower sums of squares"),
        ({"max_suppressed": 0.1}, "max_suppressed does not go with"),
        ({"boxes": "regions"}, "regions.* does not go with"),
        ({"select": "age > 3"}, "a workload does not go with"),
        ({"taxonomy": {"age": {"intervals": [5, 10]}}}, "column 'age' holds categories or has a taxonomy"),
        ({"type": {"age": "categorical"}}, "column 'age' holds categories or has a taxonomy"),
        ({"engine": "disk"}, "the disk engine does not support loss"),
        ({"engine": "spark"}, "the spark engine does not support loss"),
    ],
)
def test_what_does_not_go_with_sums_of_squares_is_refused_before_the_table_is_read(
    asked: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        sfumato.anonymize(tmp_path / "nowhere.csv", quasi_identifiers=["age"], k=2, loss="sse", **asked)


def test_auto_searches_for_the_least_sum_of_squares() -> None:
    table = table_of(60, 3)
    release = released(table, loss="sse", k=3)
    assert release.summary()["chosen"] == "sse-search"
    assert release.data == released(table, method="sse-search", k=3).data
    assert release.losses.il < released(table, method="mdav", k=3).losses.il
    rows = sfumato.compare(
        table, methods="all", k=3, quasi_identifiers=quasi_of(table), sensitive="ill", loss="sse"
    ).results
    assert [row.method for row in rows] == ["auto", "mdav", "sse-search"]
    assert all(row.il is not None for row in rows)


def test_means_are_released_from_classes_of_five_on() -> None:
    table = table_of(60, 2)
    data = released(table, loss="sse", k=3, form="mean").data
    assert oracle.smallest_class(data.to_pylist(), ["n0", "n1", "n0_mean", "n1_mean"]) >= 5


def test_the_bound_is_below_a_release_and_says_how_far_it_is() -> None:
    table = table_of(60, 3)
    release = released(table, loss="sse", k=3)
    bound = sfumato.bound(table, release=release)
    assert bound.release_il == pytest.approx(release.losses.il)
    assert 1 <= bound.release_ratio < 1.3
    with pytest.raises(UsageError, match="the bound beside a release is that of the certainty penalty"):
        released(table, loss="sse", k=3, bound=True)


def test_il_is_measured_where_the_two_tables_decide_the_classes_and_nowhere_else() -> None:
    asked: dict[str, Any] = {"quasi_identifiers": ["n"], "k": 3}
    release = pa.table({"n": ["*"] * 3 + ["[1..9]"] * 3})
    decided = pa.table({"n": [0, 10, 0, 1, 9, 5]})  # 0 and 10 are in the wide class alone
    expected = oracle.information_loss([(0,), (10,), (0,), (1,), (9,), (5,)], [[0, 1, 2], [3, 4, 5]])
    assert sfumato.measure(decided, release, **asked).il == pytest.approx(expected)
    undecided = pa.table({"n": [0, 10, 4, 1, 9, 5]})  # 4 and 5 may be in either
    assert "il" not in sfumato.measure(undecided, release, **asked).values
