"""Query accuracy of Anatomy's two tables against plain enumeration, and by hand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Case, cases

import sfumato
from sfumato.engines.memory.coded_table import encode, profile, scan
from sfumato.evaluation.queries import QueryAccuracy, QueryWorkload, grouped_records, measure_queries
from sfumato.evaluation.queries.anatomy_estimates import Anatomized
from sfumato.evaluation.queries.answers import RangeQuery
from sfumato.pipeline.prepare import load_taxonomies
from sfumato.policy import InputOptions, merge_flags
from sfumato.progress import Progress
from sfumato.tables.sources.source import open_source

SECRET = "zzsecretzz"
ASKED: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": "ill", "other": "drop", "k": 1}


def answered(
    original: object,
    first: object,
    second: object,
    workload: QueryWorkload,
    asked: Mapping[str, Any],
    nulls: Sequence[str] = (),
) -> QueryAccuracy:
    """The accuracy of the two tables for the one sensitive column that is asked for."""
    policy, options, progress = merge_flags(None, **asked), InputOptions(), Progress()
    (sensitive,) = policy.sensitive
    scanned = scan(open_source(original, options), [*policy.quasi_identifiers, sensitive], progress)
    encoders = profile(scanned, policy, load_taxonomies(policy), progress)
    (found,) = measure_queries(
        workload,
        encode(scanned.only(policy.quasi_identifiers), encoders, progress).codes,
        [encoder.domain for encoder in encoders],
        {sensitive: scanned.table.column(sensitive)},
        open_source(second, options),
        grouped_records(open_source(first, options), policy.quasi_identifiers),
        nulls=nulls,
    )
    return found


# ---- the definition, slow and obvious ----


def divergence(
    original: Sequence[oracle.Row],
    first: Sequence[oracle.Row],
    second: Sequence[oracle.Row],
    columns: Mapping[str, oracle.Column],
    bins: Mapping[str, Sequence[Any]],
) -> float:
    """P ln(P / Q) summed over all cells of one group-by, with exact shares."""

    def cells(row: oracle.Row) -> tuple[Any, ...]:
        plain = {name: oracle.plain(row[name]) for name in columns}
        return tuple(
            sum(edge <= value for edge in bins[name]) if name in bins and value is not None else value
            for name, value in plain.items()
        )

    sizes = Counter(row["group"] for row in first)
    shares: Counter[Any] = Counter()
    for row in first:
        for entry in second:
            if entry["group"] == row["group"]:
                shares[cells(row), entry["secret"]] += Fraction(entry["count"], sizes[row["group"]])
    suppressed = len(original) - len(first)
    domains = {name: oracle.domain_of(column, [row[name] for row in original]) for name, column in columns.items()}
    secrets = {row["secret"] for row in original}
    everything = math.prod(len(domain) for domain in domains.values()) * len(secrets)
    for values in product(*domains.values()) if suppressed else ():
        for secret in secrets:
            shares[cells(dict(zip(columns, values, strict=True))), secret] += Fraction(suppressed, everything)
    counts = Counter((cells(row), row["secret"]) for row in original)
    assert sum(shares.values()) == len(original)
    if any(not shares[key] for key in counts):
        return math.inf
    return math.fsum(count / len(original) * math.log(count / shares[key]) for key, count in counts.items())


def second_table(rows: Sequence[oracle.Row], column: str, kind: pa.DataType) -> pa.Table:
    counts = Counter((row["group"], row[column]) for row in rows)
    return pa.table(
        {
            "group": pa.array([group for group, _ in counts], pa.int64()),
            column: pa.array([value for _, value in counts], kind),
            "count": pa.array(list(counts.values()), pa.int64()),
        }
    )


Released = tuple[Case, pa.Table, pa.Table, int, dict[str, list[Any]]]


@st.composite
def released_cases(draw: st.DrawFn) -> Released:
    """A table, its records in any groups, some of them left out; a level of the datacube, and bins for some numbers."""
    case = draw(cases(rows=12, columns=3, others=False))
    size = case.table.num_rows
    secrets = draw(st.lists(st.sampled_from(["flu", "cold", "", None]), min_size=size, max_size=size))
    table = case.table.append_column("secret", pa.array(secrets, pa.string()))
    groups = draw(st.lists(st.sampled_from([0, 1, 1, 2, 3]), min_size=size, max_size=size))
    groups[draw(st.integers(0, size - 1))] = 1
    with_groups = table.append_column("group", pa.array(groups, pa.int64()))
    kept = with_groups.filter(pa.array([group > 0 for group in groups]))  # group 0 is left out
    bins = {}
    for name, one in case.quasi.items():
        known = {value for value in one.values if oracle.plain(value) is not None}
        if isinstance(one.column, oracle.NumberColumn) and known and draw(st.booleans()):
            bins[name] = sorted(draw(st.sets(st.sampled_from(sorted(known)), min_size=1)))
    second = second_table(kept.to_pylist(), "secret", pa.string())
    case = Case(table, case.quasi, (), case.k, case.weights)
    return case, kept.drop_columns(["secret"]), second, draw(st.integers(1, len(case.quasi))), bins


@given(released=released_cases())
def test_divergence_is_that_of_plain_enumeration(tmp_path_factory: pytest.TempPathFactory, released: Released) -> None:
    case, first, second, level, bins = released
    asked = {**case.settings(tmp_path_factory.getbasetemp()), "sensitive": "secret"}
    found = answered(case.table, first, second, QueryWorkload(level=level, bins=bins), asked)
    rows = case.table.to_pylist(), first.to_pylist(), second.to_pylist()
    assert {one.columns: one.kl for one in found.group_bys} == {
        names: pytest.approx(divergence(*rows, {name: case.columns[name] for name in names}, bins), abs=1e-9)
        for names in combinations(case.quasi, level)
    }
    assert found.kl == pytest.approx(sum(one.kl for one in found.group_bys) / len(found.group_bys))


@given(released=released_cases())
def test_groups_of_one_record_answer_every_query(tmp_path_factory: pytest.TempPathFactory, released: Released) -> None:
    case, *_, level, bins = released
    asked = {**case.settings(tmp_path_factory.getbasetemp()), "sensitive": "secret"}
    first = case.table.append_column("group", pa.array(range(1, case.table.num_rows + 1)))
    second = second_table(first.to_pylist(), "secret", pa.string())
    found = answered(case.table, first, second, QueryWorkload(level=level, ranges=9, bins=bins), asked)
    assert {one.kl for one in found.group_bys} == {0.0}
    assert found.ranges is not None
    assert (found.ranges.mean, found.ranges.median) == (0.0, 0.0)


@given(data=st.data())
def test_range_count_is_that_of_plain_enumeration(data: st.DataObject) -> None:
    sizes, values = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)), data.draw(st.integers(1, 4))
    groups = data.draw(
        st.lists(st.dictionaries(st.integers(0, values - 1), st.integers(1, 3), min_size=1), min_size=1, max_size=3)
    )
    records, owners = [], []
    for group, counts in enumerate(groups):
        for _ in range(sum(counts.values())):
            records.append([data.draw(st.integers(0, size - 1)) for size in sizes])
            owners.append(group)
    columns = sorted(data.draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1)))
    asked = [data.draw(st.lists(st.booleans(), min_size=sizes[q], max_size=sizes[q])) for q in columns]
    wanted = data.draw(st.lists(st.booleans(), min_size=values, max_size=values))
    total = Fraction(0)
    for codes, group in zip(records, owners, strict=True):
        if all(flags[codes[q]] for q, flags in zip(columns, asked, strict=True)):
            counts = groups[group]
            total += Fraction(sum(counts[value] for value in counts if wanted[value]), sum(counts.values()))
    part = Anatomized(
        np.array(records, np.int64),
        np.array(owners, np.int64),
        np.ones(len(records)),
        np.cumsum([0, *map(len, groups)]),
        np.array([value for counts in groups for value in sorted(counts)], np.int64),
        np.array([counts[value] / sum(counts.values()) for counts in groups for value in sorted(counts)]),
    )
    query = RangeQuery(tuple(columns), tuple(np.array(flags) for flags in asked), np.array(wanted))
    assert part.count(query) == pytest.approx(float(total), abs=1e-12)


# ---- by hand ----


PEOPLE = pa.table({"age": [20, 20, 30, 40], "ill": ["flu", "cold", "flu", None]})
FIRST = pa.table({"age": [20, 20, 30, 40], "group": [1, 2, 2, 1]})
SECOND = pa.table(
    {"group": [1, 1, 2, 2], "ill": pa.array(["flu", None, "cold", "flu"], pa.string()), "count": [1, 1, 1, 1]}
)


def test_divergence_by_hand() -> None:
    found = answered(PEOPLE, FIRST, SECOND, QueryWorkload(level=1), ASKED)
    # At 20 one flu is expected (half a record of each group), and half a cold; at 30 half a flu, at 40 half a null.
    assert found.kl == pytest.approx(1 / 4 * (math.log(1 / 1) + math.log(1 / 0.5) * 3))
    assert (found.sensitive, found.level, found.ranges) == ("ill", 1, None)


def test_two_files_say_the_same_as_two_frames(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,ill\n20,flu\n20,cold\n30,flu\n40,NA\n")
    (tmp_path / "first.csv").write_text("age,group\n20,1\n20,2\n30,2\n40,1\n")
    (tmp_path / "second.csv").write_text("group,ill,count\n1,flu,1\n1,,1\n2,cold,1\n2,flu,1\n")
    people, first, second = (str(tmp_path / f"{name}.csv") for name in ("people", "first", "second"))
    workload = QueryWorkload(level=1, ranges=20, selectivity=0.3)
    found = answered(people, first, second, workload, ASKED, nulls=["", "NA"])
    assert found == answered(PEOPLE, FIRST, SECOND, workload, ASKED)


def test_records_left_out_are_spread_over_everything() -> None:
    second = pa.table({"group": [1], "ill": ["flu"], "count": [1]})
    found = answered(
        pa.table({"age": [20, 30], "ill": ["flu", "cold"]}),
        pa.table({"age": [20], "group": [1]}),
        second,
        QueryWorkload(level=1),
        ASKED,
    )
    # A quarter of a record on each of 20 and 30, flu and cold.
    assert found.kl == pytest.approx(1 / 2 * math.log(1 / 1.25) + 1 / 2 * math.log(1 / 0.25))


def test_sensitive_numbers_fall_into_bins() -> None:
    pay = pa.table({"age": [20, 30, 40, 50], "ill": [1.5, 2.5, 7.0, 8.0]})
    first = pa.table({"age": [20, 30, 40, 50], "group": [1, 1, 1, 1]})
    second = pa.table({"group": [1, 1, 1, 1], "ill": [8.0, 1.5, 7.0, 2.5], "count": [1, 1, 1, 1]})
    found = answered(pay, first, second, QueryWorkload(level=1, bins={"ill": [5]}), ASKED)
    assert found.kl == pytest.approx(math.log(1 / 0.5))


def test_errors_of_range_queries_by_hand() -> None:
    # Half of a group of two has each value, but all of the young have one and all of the old the other.
    original = pa.table({"age": [20] * 50 + [30] * 50, "ill": ["flu"] * 50 + ["cold"] * 50})
    first = pa.table({"age": [20] * 50 + [30] * 50, "group": [*range(1, 51)] * 2})
    second = pa.table({"group": [*range(1, 51)] * 2, "ill": ["flu"] * 50 + ["cold"] * 50, "count": [1] * 100})
    ranges = answered(original, first, second, QueryWorkload(ranges=400, selectivity=0.25), ASKED).ranges
    assert ranges is not None
    # A query asks for one age and one value: 25 are estimated where there are 50 or none (the floor is 1).
    there = ranges.reached * 2
    assert 0.4 < there < 0.6
    assert ranges.mean == pytest.approx(there * 0.5 + (1 - there) * 25)


def test_a_cell_that_the_original_does_not_have_takes_its_share_away() -> None:
    original = pa.table({"age": [20, 30, 40], "sex": ["f", "m", "m"], "ill": ["flu", "flu", "flu"]})
    first = pa.table({"age": [20, 30, 30], "sex": ["f", "m", "f"], "group": [1, 1, 1]})
    second = pa.table({"group": [1], "ill": ["flu"], "count": [3]})
    asked = {**ASKED, "quasi_identifiers": ["age", "sex"]}
    found = answered(original, first, second, QueryWorkload(level=2), asked)
    assert found.kl == math.inf  # nothing at (40, m)
    found = answered(original, first, second, QueryWorkload(level=1), asked)
    assert [one.kl for one in found.group_bys] == [
        math.inf,
        pytest.approx(1 / 3 * math.log(1 / 2) + 2 / 3 * math.log(2)),
    ]


def test_large_groups_and_many_values_agree_with_their_sums() -> None:
    random = np.random.default_rng(8)
    table = pa.table({name: random.integers(0, 6, 3000) for name in ("p", "q", "ill")})
    first = table.drop_columns(["ill"]).append_column("group", pa.array(random.integers(1, 4, 3000)))
    rows = table.append_column("group", first.column("group")).to_pylist()
    second = second_table(rows, "ill", pa.int64())
    asked = {**ASKED, "quasi_identifiers": ["p", "q"]}
    found = answered(table, first, second, QueryWorkload(level=2), asked)
    group_of_cell = Counter((row["p"], row["q"], row["group"]) for row in rows)
    shares = Counter((row["group"], row["ill"]) for row in rows)
    sizes = Counter(row["group"] for row in rows)
    counts = Counter((row["p"], row["q"], row["ill"]) for row in rows)
    expected = math.fsum(
        count
        / 3000
        * math.log(count / sum(group_of_cell[p, q, group] * shares[group, ill] / sizes[group] for group in sizes))
        for (p, q, ill), count in counts.items()
    )
    assert found.kl == pytest.approx(expected)
    assert expected > 0.01


# ---- tables that do not fit ----


def with_column(table: pa.Table, name: str, values: Sequence[Any]) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


@pytest.mark.parametrize(
    "first, second, says",
    [
        (FIRST.drop_columns(["group"]), SECOND, "first table of the release has no column 'group'"),
        (FIRST.drop_columns(["age"]), SECOND, "first table of the release has no column 'age'"),
        (FIRST, SECOND.drop_columns(["count"]), "second table of the release has no column 'count'"),
        (FIRST, SECOND.drop_columns(["ill"]), "second table of the release has no column 'ill'"),
        (FIRST, with_column(SECOND, "count", [1, 1, 1, 2]), "differ in 1 groups"),
        (FIRST, with_column(SECOND, "group", [1, 1, 2, 3]), "differ in 2 groups"),
        (FIRST, SECOND.slice(0, 2), "differ in 1 groups"),
        (FIRST, with_column(SECOND, "count", [1, 1, 1, 0]), "'count' of the release's second table has 1 values"),
        (FIRST, with_column(SECOND, "count", [1, 1, 0.5, 1.5]), "2 values that are not positive whole numbers"),
        (
            FIRST,
            with_column(SECOND, "count", ["1", "1", SECRET, "1"]),
            "1 values that are not positive whole numbers",
        ),
        (FIRST, with_column(SECOND, "count", [1, 1, None, 1]), "1 values that are not positive whole numbers"),
        (FIRST, with_column(SECOND, "ill", ["flu", None, "cold", SECRET]), "'ill' of the release has 1 records"),
        (
            with_column(FIRST, "age", ["20", "20", "[30..40]", "40"]),
            SECOND,
            "of the release shows 1 generalized values",
        ),
        (
            with_column(FIRST, "age", [20, 20, 30, 41]),
            SECOND,
            "'age' of the release shows 1 values that cover no value",
        ),
        (pa.concat_tables([FIRST, FIRST]), SECOND, "more records than the original"),
    ],
)
def test_tables_that_do_not_belong_together_are_refused(first: pa.Table, second: pa.Table, says: str) -> None:
    with pytest.raises(sfumato.InputError, match=says) as error:
        answered(PEOPLE, first, second, QueryWorkload(level=1), ASKED)
    assert SECRET not in str(error.value)


def test_columns_named_like_those_of_anatomy_are_refused() -> None:
    grouped = PEOPLE.rename_columns(["group", "ill"])
    says = "the column 'group' has the same name as a column that Anatomy adds"
    with pytest.raises(sfumato.UsageError, match=says):
        answered(grouped, FIRST, SECOND, QueryWorkload(level=1), {**ASKED, "quasi_identifiers": ["group"]})
    counted = PEOPLE.rename_columns(["age", "count"])
    says = "the column 'count' has the same name as a column that Anatomy adds"
    with pytest.raises(sfumato.UsageError, match=says):
        answered(counted, FIRST, SECOND, QueryWorkload(level=1), {**ASKED, "sensitive": "count"})
