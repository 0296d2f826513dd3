"""Recodings: regions that tile the domain, what further records show, and that a release by regions is the same."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import oracle
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recoding_tables import ASKED, people
from strategies import Case, Diverse, cases, diverse_cases

import sfumato
from sfumato.errors import InfeasibleError, InputError, UsageError
from sfumato.policy import Policy
from sfumato.tables.coding.domains import CategoricalDomain, NumericDomain

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


# ---- the domain and its tiles ----


def points_of(column: pa.Array) -> list[Any]:
    """Values that a column has, and further ones of its domain that it may not have."""
    cells = [oracle.plain(value) for value in column.to_pylist()]
    values = sorted({value for value in cells if value is not None})
    null: list[Any] = [None] if None in cells else []
    between: list[Any] = []
    for low, high in pairwise(values):
        if pa.types.is_integer(column.type):
            between += [low + 1, (low + high) // 2, high - 1]
        elif pa.types.is_floating(column.type):
            between.append(low / 2 + high / 2)
        elif pa.types.is_temporal(column.type):
            between.append(low + (high - low) / 2)
    return [*sorted(set(values + between)), *null]


@given(cases(rows=20, columns=3), st.randoms(use_true_random=False))
def test_regions_tile_the_domain_also_between_the_values_of_the_table(
    tmp_path_factory: pytest.TempPathFactory, case: Case, chance: Any
) -> None:
    if any(abs(value or 0) >= 2**52 for one in case.quasi.values() for value in one.values if isinstance(value, int)):
        return  # the numbers of ``bounds`` are floats
    recoding = sfumato.fit(case.table, **case.settings(tmp_path_factory.mktemp("case")))
    columns = {name: points_of(case.table[name].combine_chunks()) for name in case.quasi}
    points = list(product(*columns.values()))
    points = chance.sample(points, min(len(points), 60))
    probe = pa.Table.from_pylist(
        [dict(zip(case.quasi, point, strict=True)) for point in points],
        pa.schema([(name, one.type) for name, one in case.quasi.items()]),
    )
    regions = recoding.regions_of(probe)
    assert (regions >= 0).all()
    boxes = dict(zip(regions.tolist(), recoding.bounds(probe).tolist(), strict=True))
    steps = [not pa.types.is_floating(one.type) and not pa.types.is_timestamp(one.type) for one in case.quasi.values()]
    for region, point in zip(regions.tolist(), as_numbers(probe, recoding), strict=True):
        around = [one for one, box in boxes.items() if holds(box, point)]
        assert region in around
        for other in around:  # what a bound is shared with begins there, and the region ends
            shared = [
                q
                for q, number in enumerate(point)
                if not steps[q] and boxes[other][2 * q] == number == boxes[region][2 * q + 1]
            ]
            assert other == region or shared


def holds(box: list[float], point: tuple[float, ...]) -> bool:
    return all(box[2 * q] <= number <= box[2 * q + 1] for q, number in enumerate(point))


def as_numbers(table: pa.Table, recoding: sfumato.Recoding) -> list[tuple[float, ...]]:
    """Every value as the number that ``bounds`` would show for it alone."""
    columns = []
    for domain in recoding.domains:
        values = [oracle.plain(value) for value in table[domain.name].to_pylist()]
        if isinstance(domain, CategoricalDomain):
            leaves = list(domain.taxonomy.leaves)
            numbers = [len(leaves) if value is None else leaves.index(value) for value in values]
        else:
            assert isinstance(domain, NumericDomain)
            largest = float(domain.values[-1]) if len(domain.values) else -1.0
            beyond = max(largest + 1, math.nextafter(largest, math.inf))
            numbers = [beyond if value is None else number_of(value, domain.kind) for value in values]
        columns.append(numbers)
    return list(zip(*columns, strict=True))


def number_of(value: Any, kind: str) -> float:
    if isinstance(value, datetime.datetime):
        passed = (value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
        return float(passed if kind == "moment" else passed // 86_400_000_000)
    return float((value - datetime.date(1970, 1, 1)).days if isinstance(value, datetime.date) else value)


# ---- the same as a release ----


@given(cases())
def test_transform_of_the_table_it_was_learnt_on_is_the_release_by_regions(
    tmp_path_factory: pytest.TempPathFactory, case: Case
) -> None:
    settings = case.settings(tmp_path_factory.mktemp("case"))
    release = sfumato.anonymize(case.table, **settings, method="mondrian", boxes="regions", keep_order=True)
    recoded = sfumato.fit(case.table, **settings).transform(case.table)
    assert recoded.schema.metadata == {b"sfumato": b"unaudited"}
    assert recoded.replace_schema_metadata(None).equals(release.data)


@given(diverse_cases())
def test_every_region_with_records_meets_requirements_on_sensitive_columns(
    tmp_path_factory: pytest.TempPathFactory, diverse: Diverse
) -> None:
    case, folder = diverse.case, tmp_path_factory.mktemp("case")
    settings = {**case.settings(folder), "accept_linkable": []}
    policy = Policy.from_dict(diverse.policy)
    release = sfumato.anonymize(case.table, policy, **settings, boxes="regions")  # audited
    recoding = sfumato.fit(case.table, policy, **settings)
    labels = Counter(tuple(row[name] for name in case.quasi) for row in recoding.transform(case.table).to_pylist())
    assert Counter(tuple(row[name] for name in case.quasi) for row in release.data.to_pylist()) == labels
    assert min(labels.values()) >= case.k


@pytest.mark.parametrize("form", ["labels", "bounds"])
@pytest.mark.parametrize("widened", [{"round": {"age": 10}}, {"taxonomy": {"age": {"intervals": [20]}}}, {}])
def test_forms_and_widening_are_the_same_in_transform_and_release(form: str, widened: dict[str, Any]) -> None:
    asked = {**ASKED, **widened, "form": form}
    release = sfumato.anonymize(people(), **asked, boxes="regions", method="mondrian", keep_order=True)
    recoded = sfumato.fit(people(), **asked).transform(people())
    assert recoded.replace_schema_metadata(None).equals(release.data)
    assert release.audit.smallest_class >= 5


def test_a_policy_that_counts_persons_and_their_values_is_met_by_undoing_divisions() -> None:
    table = people(120).append_column("person", pa.array([row // 3 for row in range(120)]))
    asked = {
        **ASKED,
        "identifiers": ["name", "person"],
        "person": "person",
        "k": 3,
        "require": "distinct(diagnosis, l=3)",
    }
    release = sfumato.anonymize(table, **asked, boxes="regions", method="mondrian")
    assert release.audit.holds
    assert 1 < release.audit.classes < 40
    assert len(sfumato.fit(table, **asked)) >= release.audit.classes


# ---- further records ----


def test_whole_numbers_and_dates_begin_after_the_region_before_and_other_numbers_share_the_bound() -> None:
    table = pa.table(
        {
            "age": [10, 12, 20, 25],
            "day": [datetime.date(2020, 1, day) for day in (1, 5, 20, 31)],
            "size": [0.5, 1.5, 2.25, 3.0],
        }
    )
    shown = {}
    for name in table.column_names:
        recoding = sfumato.fit(table.select([name]), quasi_identifiers=[name], k=2)
        shown[name] = [label for (label,) in recoding.labels()]
    assert shown == {
        "age": ["[10..12]", "[13..25]"],
        "day": ["[2020-01-01..2020-01-05]", "[2020-01-06..2020-01-31]"],
        "size": ["[0.5..1.5]", "[1.5..3]"],
    }


def test_values_outside_the_domain_are_in_no_region_and_show_nothing() -> None:
    recoding = sfumato.fit(people(), **ASKED)
    row = people().slice(0, 1).drop_columns(["name"]).to_pylist()[0]
    changes: list[dict[str, Any]] = [{}, {"age": 16}, {"age": 16.5}, {"age": 90}, {"zip": "10116"}, {"weight": None}]
    rows = [row | change for change in [*changes, {"age": 40}]]
    table = pa.Table.from_pylist([one | {"age": float(one["age"])} for one in rows])
    regions = recoding.regions_of(table)
    assert [region >= 0 for region in regions.tolist()] == [True, False, False, False, False, False, True]
    shown = recoding.transform(table).to_pylist()
    assert shown[1] == {**dict.fromkeys(ASKED["quasi_identifiers"], "*"), "diagnosis": row["diagnosis"]}
    whole = recoding.bounds(table)[1].tolist()
    assert whole[:4] == [17, 89, min(people()["weight"].to_pylist()), max(people()["weight"].to_pylist())]
    assert whole[6:] == [0, 4, 0, 1]


def test_a_number_that_is_not_whole_is_outside_a_domain_of_whole_numbers() -> None:
    recoding = sfumato.fit(pa.table({"age": [1, 2, 3, 4]}), quasi_identifiers=["age"], k=2)
    assert recoding.regions_of(pa.table({"age": [2.0, 2.5, 3.0]})).tolist() == [0, -1, 1]


def test_whole_numbers_that_floats_cannot_hold_are_outside_a_domain_of_floats() -> None:
    recoding = sfumato.fit(pa.table({"x": [0.0, 1.0, 2.0**60]}), quasi_identifiers=["x"], k=3)
    assert recoding.regions_of(pa.table({"x": [2**60, 2**60 - 1, 1]})).tolist() == [0, -1, 0]


def test_null_is_in_the_domain_where_the_table_had_it_and_else_outside() -> None:
    some = pa.table({"age": [1, 2, None, None], "sex": ["F", "F", "M", None]})
    new = pa.table({"age": pa.array([None, 1], pa.int64()), "sex": ["M", None]})
    assert (sfumato.fit(some, quasi_identifiers=["age", "sex"], k=2).regions_of(new) >= 0).all()
    none = pa.table({"age": [1, 2, 3, 4], "sex": ["F", "F", "M", "M"]})
    assert sfumato.fit(none, quasi_identifiers=["age", "sex"], k=2).regions_of(new).tolist() == [-1, -1]


def test_text_of_a_file_is_read_as_the_types_that_were_learnt(tmp_path: Path) -> None:
    recoding = sfumato.fit(people(), **ASKED)
    some = people().slice(0, 30)
    file = tmp_path / "new.csv"
    rows = [",".join(map(str, row.values())) for row in some.to_pylist()]
    file.write_text("\n".join([",".join(some.column_names), *rows]) + "\n")
    assert recoding.regions_of(file).tolist() == recoding.regions_of(some).tolist()
    assert (
        recoding.transform(file)
        .drop_columns(["diagnosis"])
        .equals(recoding.transform(some).drop_columns(["diagnosis"]))
    )


def test_a_column_of_another_type_is_refused_without_telling_its_values() -> None:
    recoding = sfumato.fit(people(), **ASKED)
    wrong = people().set_column(1, "age", pa.array(["secret"] * 400))
    with pytest.raises(InputError, match="column 'age'") as caught:
        recoding.transform(wrong)
    assert "secret" not in str(caught.value)


def test_a_table_without_a_quasi_identifier_is_refused() -> None:
    recoding = sfumato.fit(people(), **ASKED)
    with pytest.raises(UsageError, match="the recoding names the column 'zip'"):
        recoding.regions_of(people().drop_columns(["zip"]))


def test_identifiers_and_unnamed_columns_are_not_in_what_transform_gives() -> None:
    recoding = sfumato.fit(people(), **ASKED)
    more = people().append_column("phone", pa.array([str(row) for row in range(400)]))
    assert recoding.transform(more).column_names == [*ASKED["quasi_identifiers"], "diagnosis"]
    assert recoding.transform(people().drop_columns(["name", "diagnosis"])).column_names == ASKED["quasi_identifiers"]


# ---- what cannot be learnt ----


@pytest.mark.parametrize("method", ["hilbert", "mondrian-relaxed", "topdown", "anatomy"])
def test_methods_without_regions_are_refused_before_the_table_is_read(method: str) -> None:
    with pytest.raises(UsageError, match=rf"{method} has no regions .* Choose one of mondrian"):
        sfumato.fit("nowhere.csv", **ASKED, method=method)
    with pytest.raises(UsageError, match=f"{method} has no regions"):
        sfumato.anonymize("nowhere.csv", **ASKED, method=method, boxes="regions")


def test_a_table_that_cannot_meet_the_policy_teaches_nothing() -> None:
    with pytest.raises(InfeasibleError):
        sfumato.fit(people(), **{**ASKED, "k": 401})


def test_a_recoding_tells_no_value_when_it_is_printed() -> None:
    recoding = sfumato.fit(people(), **ASKED)
    assert repr(recoding) == f"<Recoding by mondrian: {len(recoding):,} regions over age, weight, born, zip, sex>"


def test_the_default_boxes_are_the_smallest() -> None:
    smallest = sfumato.anonymize(people(), **ASKED, method="mondrian")
    regions = sfumato.anonymize(people(), **ASKED, method="mondrian", boxes="regions")
    assert smallest.losses.gcp < regions.losses.gcp
    assert regions.summary()["chosen"] == "mondrian"
    assert sfumato.anonymize(people(), **ASKED, boxes="regions").summary()["chosen"] == "mondrian"
