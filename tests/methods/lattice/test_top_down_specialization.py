"""Top-down specialization: the cuts of exhaustive search in plain Python, and regions that are a grid."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import oracle_learning as oracle
import pyarrow as pa
import pytest
from coded import asking, records_of
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import fewest_values, reached_frequency, smallest_class
from strategies import Case, Diverse, cases, diverse_cases

import sfumato
from sfumato import Policy
from sfumato.errors import UsageError
from sfumato.methods import Records, method_named
from sfumato.methods.coded_workload import ClassTarget, CodedWorkload, Kinds
from sfumato.methods.lattice import region_grid as grids
from sfumato.methods.lattice.region_grid import RegionGrid
from sfumato.methods.lattice.top_down_specialization import TopDownSpecialization
from sfumato.methods.method import SensitiveValues
from sfumato.progress import Progress
from sfumato.requirements import DistinctDiversity, EntropyDiversity, KAnonymity, Requirements
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain
from sfumato.taxonomies.derived_taxonomies import flat, prefix

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

METHOD = TopDownSpecialization()
# Each domain with what the oracle knows of it: how many numbers, or the tree of its categories.
NUMBERS: oracle.Tree = 7
FLAT: oracle.Tree = [None] * 4
GROUPED: oracle.Tree = [[None, None], [None, None, None], None]


def domain_of(tree: oracle.Tree, null: bool) -> Domain:
    if tree == NUMBERS:
        return NumericDomain("number", np.array([1, 2, 4, 8, 16, 32, 64]), null)
    if tree == FLAT:
        return CategoricalDomain("flat", flat(list("uvwx"), "flat"), null)
    return CategoricalDomain("grouped", prefix(["aa", "ab", "ba", "bb", "bc", "cc"], [1], "grouped"), null)


@st.composite
def tables(
    draw: st.DrawFn, attributes: int = 1, fewest: int = 2, most: int = 30
) -> tuple[Records, list[list[int]], list[int], list[tuple[oracle.Tree, bool]], int]:
    kind = st.tuples(st.sampled_from([NUMBERS, FLAT, GROUPED]), st.sampled_from([False, False, True]))
    kinds = draw(st.lists(kind, min_size=attributes, max_size=3))
    domains = [domain_of(tree, null) for tree, null in kinds]
    count = draw(st.integers(fewest, most))
    row = st.tuples(*(st.integers(0, domain.size - 1) for domain in domains))
    rows = [list(one) for one in draw(st.lists(row, min_size=count, max_size=count))]
    classes = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    records = records_of(np.array(rows, np.uint8), domains)
    workload = CodedWorkload(classification=(ClassTarget("class", np.array(classes, np.uint32), 3),))
    return replace(records, workload=workload), rows, classes, kinds, draw(st.integers(1, 5))


def starts_of(grid: RegionGrid) -> list[list[int]]:
    return [starts.tolist() for starts in grid.starts]


@settings(max_examples=examples(2.5), deadline=None)
@given(case=st.one_of(tables(), tables(attributes=2, fewest=25, most=60)))
def test_cuts_are_those_of_exhaustive_search(case: Any) -> None:
    records, rows, classes, kinds, k = case
    k = min(k, len(rows))
    expected = oracle.top_down_specialization(
        rows, classes, kinds, lambda groups: all(len(group) >= k for group in groups)
    )
    assert starts_of(METHOD.grid(records, asking(k))) == expected


@settings(max_examples=examples(1.5), deadline=None)
@given(case=tables(), secrets=st.lists(st.integers(0, 3), min_size=30, max_size=30), l=st.integers(2, 3))
def test_every_class_meets_sensitive_requirements_and_cuts_are_those_of_exhaustive_search(
    case: Any,
    secrets: list[int],
    l: int,
) -> None:
    records, rows, classes, kinds, k = case
    secrets = secrets[: len(rows)]
    if len(set(secrets)) < l or len(rows) < k:
        return
    values = SensitiveValues(np.array(secrets, np.uint32), 4, np.arange(4.0))
    records = replace(records, sensitive={"secret": values})
    requirements = Requirements((KAnonymity(k), DistinctDiversity("secret", l)))
    expected = oracle.top_down_specialization(
        rows,
        classes,
        kinds,
        lambda groups: all(len(group) >= k and len({secrets[n] for n in group}) >= l for group in groups),
    )
    assert starts_of(METHOD.grid(records, requirements)) == expected


@settings(max_examples=examples(1.5), deadline=None)
@given(case=tables())
def test_regions_tile_the_domain_and_hold_the_records_of_their_class(case: Any) -> None:
    records, rows, _, _, k = case
    tree, order = METHOD.tree(records, asking(min(k, len(rows))), Progress())
    leaves = np.flatnonzero(tree.attribute < 0)
    sizes = [domain.size for domain in records.domains]
    volume = np.prod(tree.high[leaves].astype(np.int64) - tree.low[leaves] + 1, axis=1).sum()
    assert volume == np.prod(sizes)
    every = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=-1).reshape(-1, len(sizes))
    found = tree.leaves_of(every.astype(np.uint8))
    assert ((tree.low[found] <= every) & (every <= tree.high[found])).all()
    assert sorted(order.tolist()) == list(range(len(rows)))
    for leaf in tree.classes():
        members = np.array(rows)[order[tree.begin[leaf] : tree.end[leaf]]]
        assert members.min(axis=0).tolist() == tree.box_low[leaf].tolist()
        assert members.max(axis=0).tolist() == tree.box_high[leaf].tolist()
        assert ((tree.low[leaf] <= members) & (members <= tree.high[leaf])).all()


@settings(max_examples=examples(2 / 3), deadline=None)
@given(case=tables())
def test_a_grid_of_many_cells_is_divided_only_where_there_are_records(case: Any) -> None:
    records, rows, _, _, k = case
    grid = METHOD.grid(records, asking(min(k, len(rows))))
    line = grid.line(records.codes)
    whole = grid.tree(records.codes, line, np.diff(records.starts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grids, "MOST_CELLS", 0)
        pruned = grid.tree(records.codes, line, np.diff(records.starts))
    for tree in (whole, pruned):
        leaves = tree.leaves_of(records.codes)
        assert (tree.begin[leaves] < tree.end[leaves]).all()
    here, there = whole.classes(), pruned.classes()
    assert whole.low[here].tolist() == pruned.low[there].tolist()
    assert whole.begin[here].tolist() == pruned.begin[there].tolist()
    empty = np.flatnonzero((pruned.begin == pruned.end) & (pruned.attribute >= 0))
    assert not len(empty)


@given(
    case=cases(others=False), labels=st.lists(st.sampled_from("abc"), min_size=24, max_size=24), seed=st.integers(0, 9)
)
def test_a_release_is_k_anonymous_covers_every_value_and_tells_nothing_of_the_order(
    tmp_path_factory: pytest.TempPathFactory, case: Case, labels: list[str], seed: int
) -> None:
    table = case.table.append_column("label", pa.array(labels[: case.table.num_rows]))
    asked = case.settings(tmp_path_factory.getbasetemp())
    asked |= {"method": "tds", "target": "label", "accept_linkable": ["label"]}
    kept = sfumato.anonymize(table, **asked, keep_order=True).data.to_pylist()
    assert smallest_class(kept, list(case.quasi)) >= case.k
    for before, after in zip(table.to_pylist(), kept, strict=True):
        assert all(column.covers(after[name], before[name]) for name, column in case.columns.items())
        assert after["label"] == before["label"]
    order = list(range(table.num_rows))
    random.Random(seed).shuffle(order)
    assert sfumato.anonymize(table.take(order), **asked).data.equals(sfumato.anonymize(table, **asked).data)


@given(asked=diverse_cases(), labels=st.lists(st.sampled_from("abc"), min_size=24, max_size=24))
def test_a_release_meets_requirements_on_sensitive_columns(
    tmp_path_factory: pytest.TempPathFactory, asked: Diverse, labels: list[str]
) -> None:
    case = asked.case
    table = case.table.append_column("label", pa.array(labels[: case.table.num_rows]))
    settings = case.settings(tmp_path_factory.getbasetemp())
    settings |= {"method": "tds", "target": "label", "accept_linkable": [*case.others, "label"]}
    after = sfumato.anonymize(table, Policy.from_dict(asked.policy), **settings).data.to_pylist()
    key = list(case.quasi)
    assert smallest_class(after, key) >= case.k
    for requirement in asked.requirements:
        if requirement["kind"] == "frequency":
            reached = reached_frequency(after, key, requirement["attribute"])
            assert reached is None or reached >= requirement["l"]
        else:
            assert fewest_values(after, key, requirement["attribute"]) >= requirement["l"]


def test_a_recoding_learnt_by_tds_recodes_its_training_data_as_the_release_shows_it() -> None:
    drawn = np.random.default_rng(5)
    ages, cities = drawn.integers(20, 80, 300), drawn.integers(0, 5, 300)
    table = pa.table(
        {"age": ages, "city": [f"c{n}" for n in cities], "buys": np.where(ages > 40, cities > 1, cities > 3)}
    )
    asked = {"quasi_identifiers": ["age", "city"], "other": "keep", "method": "tds", "target": "buys", "k": 10}
    release = sfumato.anonymize(table, **asked, boxes="regions", keep_order=True)
    recoding = sfumato.fit(table, **asked)
    shown = recoding.transform(table)
    assert shown.to_pydict() == release.data.to_pydict()
    assert len(set(shown["age"].to_pylist())) > 1
    # Every value is generalised alike, whatever the others: as many cells as combinations of what is shown.
    assert len(recoding) == len(set(shown["age"].to_pylist())) * len(set(shown["city"].to_pylist()))


def test_several_targets_count_by_their_weight() -> None:
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 2, np.uint8)
    domains = [NumericDomain(name, np.array([0, 1]), False) for name in "ab"]
    first = ClassTarget("first", codes[:, 0].astype(np.uint32), 2, 1.0)
    for weight, expected in ((0.5, [[0, 1], [0]]), (2.0, [[0], [0, 1]])):
        second = ClassTarget("second", codes[:, 1].astype(np.uint32), 2, weight)
        records = replace(records_of(codes, domains), workload=CodedWorkload(classification=(first, second)))
        assert starts_of(METHOD.grid(records, asking(4))) == expected


def test_records_without_a_class_say_nothing_of_it() -> None:
    codes = np.array([[0, 0]] * 3 + [[0, 1]] * 3 + [[1, 0]] * 3 + [[1, 1]] * 3, np.uint8)
    domains = [NumericDomain(name, np.array([0, 1]), False) for name in "ab"]
    classes = np.array([0, 0, 2, 1, 1, 2, 0, 0, 2, 1, 1, 2], np.uint32)
    records = replace(
        records_of(codes, domains), workload=CodedWorkload(classification=(ClassTarget("c", classes, 2),))
    )
    assert starts_of(METHOD.grid(records, asking(6))) == [[0], [0, 1]]


def test_entropy_of_the_class_itself_keeps_classes_mixed() -> None:
    codes = np.array([[n // 4] for n in range(16)], np.uint8)
    classes = np.array([n // 8 for n in range(16)], np.uint32)
    records = replace(
        records_of(codes, [NumericDomain("a", np.arange(4), False)]),
        workload=CodedWorkload(classification=(ClassTarget("class", classes, 2),)),
        sensitive={"class": SensitiveValues(classes, 2, np.arange(2.0))},
    )
    requirements = Requirements((KAnonymity(1), EntropyDiversity("class", 2)))
    assert starts_of(METHOD.grid(records, requirements)) == [[0]]
    assert starts_of(METHOD.grid(records, asking(1))) == [[0, 2]]


def test_a_workload_without_a_class_is_refused_and_the_error_says_what_to_add() -> None:
    with pytest.raises(UsageError, match="--target"):
        method_named("tds").check_workload(Kinds(regression=True))  # type: ignore[attr-defined]
