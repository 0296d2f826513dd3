"""Query accuracy against plain enumeration of cells, by hand, and through the command line."""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Case, cases

import sfumato
from sfumato.cli import main
from sfumato.evaluation.queries import QueryWorkload, RangeAccuracy, datacube, spread_boxes
from sfumato.evaluation.queries.answers import RangeQuery
from sfumato.evaluation.queries.box_estimates import ReleasedBoxes
from sfumato.evaluation.queries.range_queries import random_query
from sfumato.tables.coding.domains import CategoricalDomain, NumericDomain
from sfumato.taxonomies.derived_taxonomies import flat
from sfumato.taxonomies.taxonomy_file import read_taxonomy

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

SECRET = "zzsecretzz"
Queried = tuple[Case, int, dict[str, list[Any]]]
ASKED: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": "ill", "other": "drop", "k": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("queries")


# ---- the definition, slow and obvious ----


def divergence(
    original: Sequence[oracle.Row],
    released: Sequence[oracle.Row],
    columns: Mapping[str, oracle.Column],
    sensitive: str,
    bins: Mapping[str, Sequence[Any]],
) -> float:
    """P ln(P / Q) summed over all cells of one group-by, with exact shares."""

    def cell(name: str, value: Any) -> Any:
        value = oracle.plain(value)
        return sum(edge <= value for edge in bins[name]) if name in bins and value is not None else value

    domains = {name: oracle.domain_of(column, [row[name] for row in original]) for name, column in columns.items()}
    secrets = sorted({oracle.plain(row[sensitive]) for row in original}, key=str)
    shares: Counter[Any] = Counter()
    for row in released:
        under = [
            [value for value in domains[name] if column.covers(row[name], value)] for name, column in columns.items()
        ]
        for values in product(*under):
            cells = tuple(cell(name, value) for name, value in zip(columns, values, strict=True))
            shares[cells, oracle.plain(row[sensitive])] += Fraction(1, math.prod(map(len, under)))
    suppressed = len(original) - len(released)
    everything = math.prod(len(domain) for domain in domains.values()) * len(secrets)
    for values in product(*domains.values()) if suppressed else ():
        cells = tuple(cell(name, value) for name, value in zip(columns, values, strict=True))
        for secret in secrets:
            shares[cells, secret] += Fraction(suppressed, everything)
    counts = Counter(
        (tuple(cell(name, row[name]) for name in columns), oracle.plain(row[sensitive])) for row in original
    )
    assert sum(shares.values()) == sum(counts.values()) == len(original)
    if any(not shares[key] for key in counts):
        return math.inf
    return math.fsum(count / len(original) * math.log(count / shares[key]) for key, count in counts.items())


def expected(
    case: Case,
    released: Sequence[oracle.Row],
    level: int,
    bins: Mapping[str, Sequence[Any]],
    sensitive: str = "secret",
) -> dict[tuple[str, ...], Any]:
    rows = case.table.to_pylist()
    return {
        names: pytest.approx(
            divergence(rows, released, {name: case.columns[name] for name in names}, sensitive, bins), abs=1e-9
        )
        for names in combinations(case.columns, level)
    }


def found_in(measured: Any) -> dict[tuple[str, ...], float]:
    (found,) = measured.queries
    assert found.kl == pytest.approx(sum(one.kl for one in found.group_bys) / len(found.group_bys))
    return {one.columns: one.kl for one in found.group_bys}


@st.composite
def queried_cases(draw: st.DrawFn) -> Queried:
    """A small table with a sensitive column, a level of its datacube, and bins for some numbers."""
    case = draw(cases(rows=10, columns=3, others=False))
    size = case.table.num_rows
    secrets = draw(st.lists(st.sampled_from(["flu", "cold", "", None]), min_size=size, max_size=size))
    table = case.table.append_column("secret", pa.array(secrets, pa.string()))
    bins = {}
    for name, one in case.quasi.items():
        known = {value for value in one.values if oracle.plain(value) is not None}
        if isinstance(one.column, oracle.NumberColumn) and known and draw(st.booleans()):
            bins[name] = sorted(draw(st.sets(st.sampled_from(sorted(known)), min_size=1)))
    return Case(table, case.quasi, (), case.k, case.weights), draw(st.integers(1, len(case.quasi))), bins


@pytest.fixture(params=["sums", "look"])
def _way(request: pytest.FixtureRequest) -> Iterator[None]:
    """The two ways to the same estimates; which is taken depends on sizes alone."""
    with taking(request.param):
        yield


@contextmanager
def taking(way: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spread_boxes, "_sums_pay", lambda *sizes: way == "sums")
        yield


def found_both_ways(*tables: Any, **asked: Any) -> dict[tuple[str, ...], float]:
    found = []
    for way in ("sums", "look"):
        with taking(way):
            found.append(found_in(sfumato.measure(*tables, **asked)))
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    return found[0]


def settings_of(case: Case, folder: Path) -> dict[str, Any]:
    return {**case.settings(folder), "sensitive": "secret"}


@pytest.mark.not_quick
@given(asked=queried_cases())
def test_divergence_of_a_release_is_that_of_plain_enumeration(folder: Path, asked: Queried) -> None:
    case, level, bins = asked
    arguments = settings_of(case, folder)
    released = sfumato.anonymize(case.table, **arguments).data
    found = found_both_ways(case.table, released, queries=level, bins=bins, **arguments)
    assert found == expected(case, released.to_pylist(), level, bins)


@given(asked=queried_cases(), data=st.data())
def test_divergence_of_any_labels_is_that_of_plain_enumeration(
    folder: Path, asked: Queried, data: st.DataObject
) -> None:
    """Labels as no method would give them: each record its own, not always around it, and some records left out."""
    case, level, bins = asked
    arguments = settings_of(case, folder)
    several = [sfumato.anonymize(case.table, **{**arguments, "k": k}).data for k in {1, case.k}]
    labels = {
        name: list(dict.fromkeys([*(label for one in several for label in one.column(name).to_pylist()), oracle.WHOLE]))
        for name in case.quasi
    }
    rows = case.table.to_pylist()
    kept = [row for row in rows if data.draw(st.booleans())] or rows[:1]
    for row in kept:
        for name, column in case.columns.items():
            covering = [label for label in labels[name] if column.covers(label, row[name])]
            row[name] = data.draw(st.sampled_from(labels[name] if data.draw(st.integers(0, 9)) == 0 else covering))
    released = pa.table({name: pa.array([row[name] for row in kept], pa.string()) for name in (*case.quasi, "secret")})
    found = found_both_ways(case.table, released, queries=level, bins=bins, **arguments)
    assert found == expected(case, kept, level, bins)


@pytest.mark.not_quick
@settings(max_examples=examples(0.5))
@given(asked=queried_cases())
def test_original_answers_every_query_about_itself(folder: Path, asked: Queried) -> None:
    case, level, _ = asked
    arguments = settings_of(case, folder)
    assert set(found_both_ways(case.table, case.table, queries=level, **arguments).values()) == {0.0}
    ranges = sfumato.measure(case.table, case.table, range_queries=9, **arguments).queries[0].ranges
    assert ranges is not None
    assert (ranges.mean, ranges.median) == (0.0, 0.0)


# ---- by hand ----


def people(ages: Sequence[Any], ill: Sequence[Any]) -> pa.Table:
    return pa.table({"age": ages, "ill": ill})


@pytest.mark.usefixtures("_way")
def test_divergence_by_hand() -> None:
    original = people([20, 30, 30, 40], ["a", "b", "b", "a"])
    released = people(["[20..30]", "[20..30]", "[20..30]", "40"], ["a", "b", "b", "a"])
    (found,) = sfumato.measure(original, released, queries=1, **ASKED).queries
    # Of "a" at 20 the release knows half a record, of "b" at 30 one of two, and 40 exactly.
    assert found.kl == pytest.approx(1 / 4 * math.log(1 / 0.5) + 2 / 4 * math.log(2 / 1))
    assert (found.sensitive, found.level, found.ranges) == ("ill", 1, None)
    assert repr(found) == f"<QueryAccuracy of 'ill': kl {found.kl:.4g} over 1 group-bys of level 1>"


@pytest.mark.usefixtures("_way")
def test_divergence_grows_as_the_release_coarsens() -> None:
    original = people([10, 20, 30, 40] * 2, ["a", "b", "c", "d"] * 2)
    coarser = [
        ["10", "20", "30", "40"],
        ["[10..20]", "[10..20]", "[30..40]", "[30..40]"],
        ["[10..30]", "[10..30]", "[10..30]", "[30..40]"],
        ["*", "*", "*", "*"],
    ]
    found = [
        sfumato.measure(original, people(ages * 2, original.column("ill")), queries=1, **ASKED).queries[0].kl
        for ages in coarser
    ]
    assert found == pytest.approx([0, math.log(2), 0.75 * math.log(3) + 0.25 * math.log(2), math.log(4)])


@pytest.mark.usefixtures("_way")
def test_whole_domain_is_spread_over_null_too() -> None:
    original = people([20, 30, None], ["a", "a", "a"])
    (found,) = sfumato.measure(original, people(["*", "*", None], ["a", "a", "a"]), queries=1, **ASKED).queries
    # 20 and 30 are estimated at 2/3 each, null at 2/3 and its own record.
    assert found.kl == pytest.approx(1 / 3 * (2 * math.log(1 / (2 / 3)) + math.log(1 / (5 / 3))))


@pytest.mark.usefixtures("_way")
def test_suppressed_records_are_spread_over_the_domain_and_the_sensitive_values() -> None:
    original = people([20, 20, 30, 30], ["a", "a", "b", "b"])
    (found,) = sfumato.measure(original, people(["20", "20"], ["a", "a"]), queries=1, **ASKED).queries
    # Two left out, over 20 and 30 and over "a" and "b": half a record on each.
    assert found.kl == pytest.approx(1 / 2 * math.log(2 / 2.5) + 1 / 2 * math.log(2 / 0.5))


@pytest.mark.usefixtures("_way")
def test_a_range_fills_parts_of_the_bins_at_its_ends() -> None:
    original = people([1, 2, 3, 4, 5, 6], ["a"] * 6)
    released = people(["1", "[2..6]", "[2..6]", "[2..6]", "[2..6]", "[2..6]"], ["a"] * 6)
    (exact,) = sfumato.measure(original, released, queries=1, bins={"age": [3, 5]}, **ASKED).queries
    assert exact.kl == pytest.approx(0, abs=1e-15)
    released = people(["[1..4]"] * 6, ["a"] * 6)
    (found,) = sfumato.measure(original, released, queries=1, bins={"age": [4]}, **ASKED).queries
    assert found.kl == pytest.approx(1 / 2 * math.log(3 / 4.5) + 1 / 2 * math.log(3 / 1.5))


@pytest.mark.usefixtures("_way")
def test_what_a_release_rules_out_diverges_without_end() -> None:
    original = people([20, 30], ["a", "b"])
    (found,) = sfumato.measure(original, people(["20", "20"], ["a", "b"]), queries=1, **ASKED).queries
    assert found.kl == math.inf
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False)) == {
        "sensitive": "ill",
        "level": 1,
        "kl": None,
        "group_bys": [{"columns": ["age"], "kl": None}],
    }


def test_both_ways_agree_on_a_table_of_many_boxes() -> None:
    random = np.random.default_rng(3)
    table = pa.table({name: random.integers(0, 12, 600) for name in ("p", "q", "r", "s")})
    asked: dict[str, Any] = {"quasi_identifiers": ["p", "q", "r"], "sensitive": "s", "k": 4}
    released = sfumato.anonymize(table, **asked).data
    found = found_both_ways(table, released, queries=2, bins={"q": [3, 4, 9]}, **asked)
    assert min(found.values()) > 0.01


def test_wide_cubes_are_summed_one_after_another_to_the_same_end(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    table = pa.table({name: random.integers(0, 5, 900) for name in ("p", "q", "s")})
    asked: dict[str, Any] = {"quasi_identifiers": ["p", "q"], "sensitive": "s", "k": 20}
    released = sfumato.anonymize(table, **asked).data
    before = sfumato.measure(table, released, queries=1, **asked).queries
    for module in (datacube, spread_boxes):
        monkeypatch.setattr(module, "LARGEST_CUBE", 5)
    monkeypatch.setattr(datacube, "thread_count", lambda: 2)
    assert sfumato.measure(table, released, queries=1, **asked).queries == before


# ---- what is counted ----


TWO = pa.table({"age": [20, 20, 30, 30], "ill": ["a", "b", "b", "b"], "pay": [1.5, 2.5, 2.5, None]})
TWO_RELEASED = pa.table({"age": ["*"] * 4, "ill": ["a", "b", "b", "b"], "pay": [1.5, 2.5, 2.5, None]})


def test_every_sensitive_column_is_counted_apart() -> None:
    asked = {**ASKED, "sensitive": ["ill", "pay"]}
    ill, pay = sfumato.measure(TWO, TWO_RELEASED, queries=1, **asked).queries
    assert (ill.sensitive, pay.sensitive) == ("ill", "pay")
    assert ill.kl == pytest.approx(1 / 4 * math.log(1 / 0.5) + 1 / 4 * math.log(1 / 1.5) + 2 / 4 * math.log(2 / 1.5))
    assert pay.kl == pytest.approx(2 / 4 * math.log(1 / 0.5))  # 2.5 occurs once at each age


def test_target_is_counted_instead_of_the_sensitive_columns() -> None:
    (found,) = sfumato.measure(TWO, TWO_RELEASED, queries=1, target="pay", **ASKED).queries
    assert found.sensitive == "pay"


def test_sensitive_numbers_fall_into_bins() -> None:
    asked = {**ASKED, "sensitive": "pay"}
    (found,) = sfumato.measure(TWO, TWO_RELEASED, queries=1, bins={"pay": [2]}, **asked).queries
    assert found.kl == pytest.approx(2 / 4 * math.log(1 / 0.5))
    (found,) = sfumato.measure(TWO, TWO_RELEASED, queries=1, bins={"pay": [0, 9]}, **asked).queries
    assert found.kl == pytest.approx(2 / 4 * math.log(2 / 1.5) + 2 / 4 * math.log(1 / 1.5) / 2 + 1 / 4 * math.log(2))


def test_dates_fall_into_bins() -> None:
    days = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 31), datetime.date(2020, 2, 1)]
    original, released = people(days, ["a"] * 3), people(["[2020-01-01..2020-01-31]"] * 2 + ["2020-02-01"], ["a"] * 3)
    for edge in ("2020-02-01", datetime.date(2020, 2, 1), datetime.datetime(2020, 1, 31, 12)):
        (found,) = sfumato.measure(original, released, queries=1, bins={"age": [edge]}, **ASKED).queries
        assert found.kl == 0


def test_nothing_is_asked_unless_wanted() -> None:
    assert sfumato.measure(TWO, TWO_RELEASED, **ASKED).queries == ()


@pytest.mark.parametrize(
    "change, says",
    [
        ({"queries": 0}, "no level 0 in the datacube of 1 quasi-identifiers"),
        ({"queries": 2}, "from 1 to 1"),
        ({"range_queries": 0}, "at least 1"),
        ({"range_queries": 5, "selectivity": 0.0}, "above 0"),
        ({"range_queries": 5, "selectivity": 1.5}, "at most 1"),
        ({"range_queries": 5, "range_attributes": 2}, "from 1 to 1"),
        ({"range_queries": 5, "seed": -1}, "at least 0"),
        ({"bins": {"age": [25]}}, "Give a level"),
        ({"queries": 1, "bins": {"pay": [2]}}, "'pay', which the queries do not use"),
        ({"queries": 1, "bins": {"age": [25, 25]}}, "do not ascend"),
        ({"queries": 1, "bins": {"age": ["young"]}}, "each edge as a number"),
        ({"queries": 1, "bins": {"age": [math.inf]}}, "each edge as a number"),
        ({"queries": 1, "bins": {"age": []}}, "each edge as a number"),
        ({"queries": 1, "bins": {"ill": [2]}}, "does not hold numbers alone"),
        ({"queries": 1, "target": "age"}, "it is a quasi-identifier"),
        ({"queries": 1, "target": "illness"}, "the target names the column 'illness'"),
        ({"queries": 1, "sensitive": ()}, "name one as the target"),
    ],
)
def test_queries_that_cannot_be_asked_are_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(sfumato.UsageError, match=says):
        sfumato.measure(TWO, TWO_RELEASED, **{**ASKED, **change})


def test_categories_have_no_bins() -> None:
    asked = {**ASKED, "quasi_identifiers": ["ill"], "sensitive": "pay"}
    with pytest.raises(sfumato.UsageError, match="'ill', which holds categories"):
        sfumato.measure(TWO, TWO_RELEASED, queries=1, bins={"ill": [2]}, **asked)


@pytest.mark.parametrize("column", ["age", "ill"])
def test_many_numbers_need_bins_that_the_user_names(column: str) -> None:
    table = people(np.arange(1001) % 9, np.arange(1001) % 9)
    table = table.set_column(table.column_names.index(column), column, pa.array(np.arange(1001)))
    with pytest.raises(sfumato.UsageError) as error:
        sfumato.measure(table, table, queries=1, **ASKED)
    assert f"the column '{column}' has 1,001 distinct numbers" in str(error.value)
    assert f"bins={{'{column}': [10, 20, 30]}}" in str(error.value)
    assert f"--bins {column}=10,20,30" in str(error.value)
    (found,) = sfumato.measure(table, table, queries=1, bins={column: [500]}, **ASKED).queries
    assert found.kl == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    "released, says",
    [
        (people(["*", "*"], ["a", SECRET]), "column 'ill' of the release has 1 records with a value"),
        (people(["20", "[21..29]"], ["a", "b"]), "column 'age' of the release shows 1 values that cover no value"),
        (people(["20", None], ["a", "b"]), "column 'age' of the release shows 1 values that cover no value"),
    ],
)
def test_releases_of_another_table_are_refused(released: pa.Table, says: str) -> None:
    with pytest.raises(sfumato.InputError, match=says) as error:
        sfumato.measure(people([20, 30], ["a", "b"]), released, queries=1, **ASKED)
    assert SECRET not in str(error.value)


# ---- range queries ----


@given(data=st.data())
def test_range_count_is_that_of_plain_enumeration(data: st.DataObject) -> None:
    sizes, values = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)), data.draw(st.integers(1, 3))
    runs = [data.draw(st.lists(_run(size), min_size=1, max_size=4)) for size in sizes]
    boxes = data.draw(st.integers(0, 6))
    shown = [[data.draw(st.integers(0, len(run) - 1)) for run in runs] for _ in range(boxes)]
    secrets = [data.draw(st.integers(0, values - 1)) for _ in range(boxes)]
    weights = [float(data.draw(st.integers(1, 5))) for _ in range(boxes)]
    columns = sorted(data.draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1)))
    asked = [data.draw(st.lists(st.booleans(), min_size=sizes[q], max_size=sizes[q])) for q in columns]
    wanted = data.draw(st.lists(st.booleans(), min_size=values, max_size=values))
    total = Fraction(0)
    for labels, secret, weight in zip(shown, secrets, weights, strict=True):
        codes = list(product(*(range(*run[label]) for run, label in zip(runs, labels, strict=True))))
        inside = [
            code
            for code in codes
            if wanted[secret] and all(flags[code[q]] for q, flags in zip(columns, asked, strict=True))
        ]
        total += Fraction(weight) * len(inside) / len(codes)
    part = ReleasedBoxes(
        np.array(shown, np.int64).reshape(boxes, len(sizes)),
        [np.array(run, np.int64) for run in runs],
        np.array(secrets, np.int64),
        np.array(weights),
    )
    query = RangeQuery(tuple(columns), tuple(np.array(flags) for flags in asked), np.array(wanted))
    assert part.count(query) == pytest.approx(float(total), abs=1e-12)


@st.composite
def _run(draw: st.DrawFn, size: int) -> tuple[int, int]:
    low = draw(st.integers(0, size - 1))
    return low, draw(st.integers(low + 1, size))


def test_queries_ask_for_runs_of_numbers_and_any_categories() -> None:
    numbers = NumericDomain("n", np.arange(20), True)
    names = CategoricalDomain("c", flat([f"v{place:02}" for place in range(20)], "c"), True)
    workload = QueryWorkload(ranges=300, selectivity=0.125)
    drawn = [random_query(workload, [numbers, names], 10, number) for number in range(300)]
    for query in drawn:
        assert query.columns == (0, 1)
        first = int(np.argmax(query.codes[0]))
        assert query.codes[0].tolist() == [first <= code < first + 10 for code in range(21)]
        assert [int(asked.sum()) for asked in (*query.codes, query.values)] == [10, 10, 5]
        assert not query.codes[1][20]  # null
    times = np.sum([query.codes[1][:20] for query in drawn], axis=0)
    # Each leaf is in half of the queries, the first and the last too; three hundred draws stray by 45 hardly ever.
    assert 105 < times.min() <= times.max() < 195
    assert any(np.diff(np.flatnonzero(query.codes[1])).max() > 1 for query in drawn)


def test_a_query_is_the_same_whatever_else_is_asked() -> None:
    domains = [NumericDomain(name, np.arange(9), False) for name in "pqr"]
    few, many = (QueryWorkload(ranges=count, range_attributes=2, seed=5) for count in (2, 50))
    one, same, other = (
        random_query(workload, domains, 4, number) for workload, number in ((few, 1), (many, 1), (many, 2))
    )

    def asked(query: RangeQuery) -> Any:
        return query.columns, [codes.tolist() for codes in query.codes], query.values.tolist()

    assert asked(one) == asked(same) != asked(other)
    assert len(one.columns) == 2


def test_range_queries_reach_the_selectivity_where_nothing_depends() -> None:
    grid = pa.table(dict(zip("pqs", np.indices((10, 10, 10)).reshape(3, -1), strict=True)))
    asked: dict[str, Any] = {"quasi_identifiers": ["p", "q"], "sensitive": "s", "k": 1}
    (found,) = sfumato.measure(grid, grid, range_queries=50, selectivity=0.125, **asked).queries
    assert found.ranges == RangeAccuracy(50, 0.125, 2, 0, 1.0, 0.125, 0.0, 0.0)
    (found,) = sfumato.measure(grid, grid, range_queries=50, selectivity=0.25, range_attributes=1, **asked).queries
    assert found.ranges is not None
    assert (found.ranges.attributes, found.ranges.reached) == (1, 0.25)
    assert found.kl is None


def test_errors_of_range_queries_by_hand(tmp_path: Path) -> None:
    (tmp_path / "town.csv").write_text("Pisa,*\nLucca,*\n")
    original = pa.table({"town": ["Pisa"] * 100, "ill": ["a"] * 100})
    released = pa.table({"town": ["*"] * 100, "ill": ["a"] * 100})
    asked: dict[str, Any] = {
        "quasi_identifiers": ["town"],
        "taxonomy": {"town": str(tmp_path / "town.csv")},
        "sensitive": "ill",
        "k": 2,
    }
    (found,) = sfumato.measure(original, released, range_queries=400, selectivity=0.1, **asked).queries
    ranges = found.ranges
    assert ranges is not None
    # A query asks for one town: 50 are estimated, where there are 100 in Pisa and none (the floor is 1) in Lucca.
    pisa = ranges.reached * 400
    assert 150 < pisa < 250
    assert ranges.mean == pytest.approx((pisa * 0.5 + (400 - pisa) * 50) / 400)
    assert ranges.median in (0.5, 25.25, 50.0)


def test_same_seed_asks_the_same_range_queries() -> None:
    random = np.random.default_rng(1)
    table = pa.table({name: random.integers(0, 9, 200) for name in ("p", "q", "s")})
    asked: dict[str, Any] = {"quasi_identifiers": ["p", "q"], "sensitive": "s", "k": 5, "range_queries": 30}
    released = sfumato.anonymize(table, quasi_identifiers=["p", "q"], sensitive="s", k=5).data
    first, again, other = (sfumato.measure(table, released, seed=seed, **asked).queries[0] for seed in (7, 7, 8))
    assert first == again
    assert first.ranges != other.ranges
    assert first.ranges is not None
    assert first.ranges.mean > 0


# ---- what labels leave open ----


def test_spans_of_labels() -> None:
    ages = NumericDomain("age", np.array([20, 25, 30, 40]), True)
    labels = ["25", "25.0", "[25]", "[21..39]", "[0..99]", "*", None, "[26..29]", "[30..20]", "old", "[20..]", ""]
    spans = [[1, 2], [1, 2], [1, 2], [1, 3], [0, 4], [0, 5], [4, 5], [2, 2], [0, 0], [0, 0], [0, 0], [0, 0]]
    assert ages.spans(labels).tolist() == spans
    assert NumericDomain("age", np.array([20]), False).spans([None, "*"]).tolist() == [[1, 1], [0, 1]]
    wide = NumericDomain("n", np.array([-(2**63), 2**53, 2**53 + 1, 2**63 - 1]), False)
    assert wide.spans([f"[{2**53 + 1}..{2**63 - 1}]", f"{-(2**63)}", "9" * 5000]).tolist() == [[2, 4], [0, 1], [4, 4]]
    days = NumericDomain("day", np.array([0, 1, 31]), False, "date")
    moments = ["[1970-01-01..1970-01-31]", "1970-01-02", "1970-01-02T12:00:00", "0001-01-01T00:00:00+05:00"]
    assert days.spans(moments).tolist() == [[0, 2], [1, 2], [0, 0], [0, 0]]


def test_spans_of_groups(tmp_path: Path) -> None:
    (tmp_path / "town.csv").write_text("Pisa,Toscana,*\nLucca,Toscana,*\nRoma,Lazio,*\nRieti,Lazio,*\n")
    towns = CategoricalDomain("town", read_taxonomy(tmp_path / "town.csv", "town"), True)
    labels = ["Pisa", "Toscana", "Lazio", "*", None, "Umbria"]
    assert towns.spans(labels).tolist() == [[0, 1], [0, 2], [2, 4], [0, 5], [4, 5], [0, 0]]


# ---- the command line ----


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"{20 + number % 10},c{number % 4},d{number % 3},{number}" for number in range(40)]
    (tmp_path / "table.csv").write_text("\n".join(["age,city,diagnosis,pay", *rows]) + "\n")
    roles = ["--quasi-identifiers", "age,city", "--sensitive", "diagnosis", "--other", "drop"]
    assert main(["anonymize", "table.csv", "-o", "out.csv", *roles, "-k", "4"]) == 0
    return tmp_path


def test_command_line_tells_what_python_tells(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--queries", "1", "--bins", "age=22,25.5", "--range-queries", "9", "--selectivity", "0.2", "--seed", "3"]
    capsys.readouterr()
    assert main(["measure", "table.csv", "out.csv", *flags, "--range-attributes", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (found,) = sfumato.measure(
        *("table.csv", "out.csv"),
        queries=1,
        bins={"age": [22, 25.5]},
        range_queries=9,
        range_attributes=1,
        selectivity=0.2,
        seed=3,
    ).queries
    assert told["queries"] == [found.as_dict()]
    assert [one["columns"] for one in told["queries"][0]["group_bys"]] == [["age"], ["city"]]
    assert told["queries"][0]["ranges"]["count"] == 9
    assert main(["measure", "table.csv", "out.csv", *flags]) == 0
    text = capsys.readouterr().out
    assert f"datacube level 1: KL divergence {found.kl:.4f}, the mean of 2 group-bys" in text
    assert "9 range queries on 2 quasi-identifiers, selectivity 0.2, seed 3: mean relative error" in text


def test_command_line_shows_the_worst_group_bys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(5)
    names = [f"q{number}" for number in range(6)]
    lines = [",".join([*names, "s"]), *(",".join(map(str, row)) for row in random.integers(0, 3, (60, 7)))]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(lines) + "\n")
    flags = ["--quasi-identifiers", ",".join(names), "-k", "1", "--target", "s", "--queries", "2"]
    assert main(["measure", str(table), str(table), *flags]) == 0
    assert "these are the worst 10; --json has all" in capsys.readouterr().out


@pytest.mark.parametrize(
    "flags, says",
    [
        (["--queries", "3"], "no level 3"),
        (["--queries", "1", "--bins", "age"], "--bins COL=A,B"),
        (["--queries", "1", "--bins", "age=22,,25"], "each edge as a number"),
        (["--range-queries", "0"], "at least 1"),
    ],
)
def test_command_line_refuses_what_cannot_be_asked(
    place: Path, flags: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", "table.csv", "out.csv", *flags]) == 2
    assert says in capsys.readouterr().err


def test_measure_without_queries_has_no_such_key(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["measure", "table.csv", "out.csv", "--json"]) == 0
    assert "queries" not in json.loads(capsys.readouterr().out)
