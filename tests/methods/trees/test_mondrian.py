"""Mondrian against a slow version of it, and the tree of its regions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from requirement_definitions import (
    EACH_KIND,
    entropy,
    frequency,
)
from slow_mondrian import (
    Part,
    Slow,
    Splits,
    Table,
    flat_categories,
    grouped_categories,
    numeric,
    random_table,
    requirements_for,
    with_values,
)

import sfumato
from sfumato.losses.exact_costs import attribute_cost, exact_widths
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.methods.trees.region_tree import RegionTree
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.requirements import Joint, KAnonymity, Requirement, Requirements
from sfumato.requirements.requirement import ClassCounts, Verdict
from sfumato.tables.coding.domains import CategoricalDomain, Domain, NumericDomain

both_splits = pytest.mark.parametrize("splits", ["strict", "relaxed"])
all_splits = pytest.mark.parametrize("splits", ["strict", "relaxed", "published", "ordered"])
METHODS = {
    "strict": MondrianMethod(),
    "relaxed": MondrianMethod(splits="relaxed"),
    "published": MondrianMethod(rule="published"),
    "ordered": MondrianMethod(rule="ordered"),
}
# How many units one thread grows to the end: all of these tables, or so few that most regions are given to threads.
both_ways = pytest.mark.parametrize("block", [1 << 15, 3])
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


# ---- the slow version ----


def classes_of(table: Table, splits: Splits, requirements: Requirements) -> list[Part]:
    found = []
    for batch in METHODS[splits].classes(table.records(), requirements, Progress()):
        for low, high, (start, end) in zip(batch.low, batch.high, pairwise(batch.starts), strict=True):
            members = batch.rows[start:end]
            assert table.codes[members].min(axis=0).tolist() == low.tolist()
            assert table.codes[members].max(axis=0).tolist() == high.tolist()
            found.append(sorted(members.tolist()))
    return found


def assert_alike(found: list[Part], expected: list[Part], table: Table, splits: Splits) -> None:
    """The same classes in the same order. Which of several equal rows are in a class is not decided by the paper."""
    if splits != "relaxed":
        assert found == expected
        return

    def contents(part: Part) -> Counter[tuple[Any, ...]]:
        return Counter((*table.codes[row].tolist(), *(table.values[row : row + 1])) for row in part)

    assert [contents(part) for part in found] == [contents(part) for part in expected]
    assert sorted(row for part in found for row in part) == list(range(len(table.codes)))


@pytest.mark.not_quick
@all_splits
@both_ways
def test_classes_are_those_of_the_slow_version(splits: Splits, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.methods.trees.region_tree.BLOCK", block)
    generator = np.random.default_rng(block)
    sizes = []
    for _ in range(100):
        table = random_table(generator, int(generator.integers(1, 45)))
        k = int(generator.integers(1, 6))
        expected = Slow(table, splits, k).classes()
        assert_alike(classes_of(table, splits, requirements_for(k)), expected, table, splits)
        sizes.append(len(expected))
    assert sum(size > 2 for size in sizes) > 40


@pytest.mark.not_quick
@all_splits
@pytest.mark.parametrize("block", [1 << 15, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", EACH_KIND)
def test_diverse_classes_are_those_of_the_slow_version(
    splits: Splits, block: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.methods.trees.region_tree.BLOCK", block)
    generator = np.random.default_rng([block, len(kind)])
    several, tables = 0, 0
    while tables < 15:
        table = with_values(random_table(generator, int(generator.integers(8, 40))), generator)
        slow = Slow(table, splits, int(generator.integers(1, 4)), EACH_KIND[kind])
        if not slow.holds(list(range(len(table.codes)))):
            continue
        tables += 1
        expected = slow.classes()
        found = classes_of(table, splits, requirements_for(slow.k, slow.asked))
        assert_alike(found, expected, table, splits)
        assert all(slow.holds(part) for part in found)
        several += len(expected) > 1
    assert several >= 3


@both_splits
def test_a_class_has_k_persons_and_not_only_k_records(splits: Splits) -> None:
    generator = np.random.default_rng(3)
    several = 0
    for _ in range(30):
        table = random_table(generator, 36)
        table = replace(table, persons=generator.integers(0, 14, 36).tolist())
        k = int(generator.integers(1, 4))
        slow = Slow(table, splits, k)
        expected = slow.classes()
        found = classes_of(table, splits, requirements_for(k, person="p"))
        assert_alike(found, expected, table, splits)
        assert all(slow.holds(part) for part in found)
        several += len(expected) > 2
    assert several > 10


# ---- minimal: no class has an allowable cut left ----


def allowable_cuts(part: Part, table: Table, definition: Slow) -> list[list[Part]]:
    """Every division of a class by a threshold of one attribute, or by the groups of one level, that would hold."""
    found = []
    for q, domain in enumerate(table.domains):
        codes = {row: int(table.codes[row, q]) for row in part}
        sides_of = [{row: int(code <= last) for row, code in codes.items()} for last in set(codes.values())]
        if isinstance(domain, CategoricalDomain):
            tree = domain.taxonomy
            nodes = range(len(tree.labels))
            paths = [[node for node in nodes if tree.first[node] <= code <= tree.last[node]] for code in codes.values()]
            for level in range(max(map(len, paths))):  # null is under no node
                sides_of.append({row: [-1, *path][: level + 2][-1] for row, path in zip(codes, paths, strict=True)})
        for side_of in sides_of:
            sides = [[row for row in part if side_of[row] == side] for side in set(side_of.values())]
            if len(sides) > 1 and all(definition.holds(side) for side in sides):
                found.append(sides)
    return found


def test_the_cut_before_the_median_is_made_where_the_one_after_it_leaves_too_few() -> None:
    table = pa.table({"age": [1, 1, 1, 2, 2, 2, 2, 3]})
    released = sfumato.anonymize(table, quasi_identifiers=["age"], k=3, method="mondrian").data
    assert Counter(released["age"].to_pylist()) == {"1": 3, "[2..3]": 5}


@pytest.mark.not_quick
@pytest.mark.parametrize("kind", ["k", "persons", *EACH_KIND])
def test_no_class_of_strict_mondrian_has_an_allowable_cut_left(kind: str) -> None:
    generator = np.random.default_rng([31, len(kind)])
    divided, tables = 0, 0
    while tables < (40 if kind == "k" else 12):
        table = random_table(generator, int(generator.integers(8, 45)))
        table = with_values(table, generator) if kind in EACH_KIND else table
        if kind == "persons":
            table = replace(table, persons=generator.integers(0, 14, len(table.codes)).tolist())
        definition = Slow(table, "strict", int(generator.integers(1, 5)), EACH_KIND.get(kind, ()))
        if not definition.holds(list(range(len(table.codes)))):
            continue
        tables += 1
        person = "p" if kind == "persons" else None
        found = classes_of(table, "strict", requirements_for(definition.k, definition.asked, person=person))
        assert [cut for part in found for cut in allowable_cuts(part, table, definition)] == []
        divided += len(found) > 1
    assert divided >= 3


# ---- what it is for ----


def points(coordinates: Sequence[tuple[int, int]]) -> pa.Table:
    return pa.table({"x": [x for x, _ in coordinates], "y": [y for _, y in coordinates]})


THREE_CLUSTERS = [
    (0, 0),
    (1, 0),
    (0, 1),
    (1, 1),
    (9, 9),
    (10, 9),
    (9, 10),
    (10, 10),
    (19, 20),
    (20, 19),
    (19, 19),
    (20, 20),
]


@both_splits
def test_twelve_points_in_three_clusters_are_two_classes_where_hilbert_finds_three(splits: Splits) -> None:
    method = MondrianMethod(splits=splits).name
    release = sfumato.anonymize(points(THREE_CLUSTERS), quasi_identifiers=["x", "y"], k=4, method=method)
    assert (release.audit.classes, release.audit.smallest_class) == (2, 6)
    assert sfumato.anonymize(points(THREE_CLUSTERS), quasi_identifiers=["x", "y"], k=4).audit.classes == 3


def test_a_median_that_would_show_a_value_too_often_is_not_cut_at() -> None:
    table = points([(place, 0) for place in range(12)]).append_column("s", [list("aaaaaabbbbbb")])
    release = sfumato.anonymize(table, quasi_identifiers=["x", "y"], sensitive="s", l=2, method="mondrian")
    assert release.audit.classes == 1
    mixed = points([(place, 0) for place in range(12)]).append_column("s", [list("aabbbaabbbaa")])
    release = sfumato.anonymize(mixed, quasi_identifiers=["x", "y"], sensitive="s", l=2, method="mondrian")
    # Each half has three a and three b; its own middle would leave two a with one b, four from the end do not.
    assert Counter(row["x"] for row in release.data.to_pylist()) == {
        "[0..3]": 4,
        "[4..5]": 2,
        "[6..7]": 2,
        "[8..11]": 4,
    }


@pytest.mark.compiled
def test_hundred_points_on_a_lattice_make_one_class_more_than_was_reported() -> None:
    """Wang 2011 reports 25 classes and a C_DM of 430; with one side of the median alone there are 25.7 and 415."""
    classes, discernibility = [], []
    for seed in range(200):
        codes = np.random.default_rng(seed).integers(0, 20, (100, 2)).astype(np.uint8)
        domains: list[Domain] = [NumericDomain(name, np.arange(20), False) for name in "xy"]
        found = classes_of(Table(codes, domains, [1.0, 1.0]), "strict", requirements_for(3))
        classes.append(len(found))
        discernibility.append(sum(len(part) ** 2 for part in found))
    assert np.mean(classes) == pytest.approx(26.3, abs=0.3)
    assert np.mean(discernibility) == pytest.approx(402, abs=5)


def test_records_of_the_median_value_are_on_both_sides_only_when_relaxed() -> None:
    table = pa.table({"age": [1, 5, 5, 5, 5, 5, 5, 9]})
    strict = sfumato.anonymize(table, quasi_identifiers=["age"], k=2, method="mondrian").data.to_pylist()
    relaxed = sfumato.anonymize(table, quasi_identifiers=["age"], k=2, method="mondrian-relaxed").data.to_pylist()
    assert Counter(row["age"] for row in strict) == {"*": 8}
    assert Counter(row["age"] for row in relaxed) == {"[1..5]": 2, "5": 4, "[5..9]": 2}


def test_relaxed_classes_are_smaller_than_two_k_unless_their_records_are_equal() -> None:
    generator = np.random.default_rng(8)
    for _ in range(60):
        table, k = random_table(generator, 60), int(generator.integers(1, 8))
        for part in classes_of(table, "relaxed", requirements_for(k)):
            assert k <= len(part)
            assert len(part) < 2 * k or len(np.unique(table.codes[part], axis=0)) == 1


def test_categories_are_divided_by_the_children_of_their_node(tmp_path: Path) -> None:
    (tmp_path / "city.csv").write_text("Roma,Italy,*\nPisa,Italy,*\nBari,Italy,*\nLyon,France,*\nMetz,France,*\n")
    table = pa.table({"city": ["Roma"] * 2 + ["Pisa"] * 2 + ["Bari"] * 2 + ["Lyon"] * 3})
    taxonomy = {"city": str(tmp_path / "city.csv")}
    released = sfumato.anonymize(table, quasi_identifiers=["city"], taxonomy=taxonomy, k=3, method="mondrian").data
    # The threshold nearest to the median would put Bari and Lyon together.
    assert Counter(released["city"].to_pylist()) == {"Italy": 6, "Lyon": 3}


def test_one_rare_child_does_not_keep_the_others_together() -> None:
    cities = ["Bari"] * 5 + ["Como"] * 5 + ["Lodi"] + ["Pisa"] * 5
    release = sfumato.anonymize(pa.table({"city": cities}), quasi_identifiers=["city"], k=3, method="mondrian")
    shown = Counter(release.data["city"].to_pylist())
    assert shown["Bari"] + shown["Como"] + shown["Pisa"] == 10
    assert shown[oracle.WHOLE] == 6


def test_as_published_one_rare_child_keeps_the_others_together_unless_categories_are_ordered() -> None:
    table = pa.table({"city": ["Bari"] * 5 + ["Como"] * 5 + ["Lodi"] + ["Pisa"] * 5})
    shown = {
        name: Counter(sfumato.anonymize(table, quasi_identifiers=["city"], k=3, method=name).data["city"].to_pylist())
        for name in ("mondrian:published", "mondrian:ordered")
    }
    assert shown == {"mondrian:published": {"*": 16}, "mondrian:ordered": {"Bari": 5, "Como": 5, "*": 6}}


def test_as_published_only_the_thresholds_beside_the_median_are_tried_also_for_diversity() -> None:
    # Only the threshold after 5 leaves a b on either side.
    table = points([(place, 0) for place in range(8)]).append_column("s", [list("aaaaabab")])
    asks: dict[str, Any] = {"quasi_identifiers": ["x", "y"], "sensitive": "s", "require": ["distinct(s, l=2)"], "k": 1}
    classes = {
        name: sfumato.anonymize(table, method=name, **asks).audit.classes
        for name in ("mondrian", "mondrian:published", "mondrian:ordered")
    }
    assert classes == {"mondrian": 2, "mondrian:published": 1, "mondrian:ordered": 1}


def test_the_first_of_equally_wide_attributes_is_divided_as_published() -> None:
    # The root holds all of both; x has more values, so that ours divides y.
    table = pa.table({"x": [0, 1, 2, 3, 4, 5, 6, 7], "y": [0, 1, 0, 1, 0, 1, 0, 1]})
    shown = {
        name: sorted({(row["x"], row["y"]) for row in release.data.to_pylist()})
        for name in ("mondrian", "mondrian:published")
        for release in [sfumato.anonymize(table, quasi_identifiers=["x", "y"], k=4, method=name)]
    }
    assert shown == {
        "mondrian": [("[0..6]", "0"), ("[1..7]", "1")],
        "mondrian:published": [("[0..3]", "*"), ("[4..7]", "*")],
    }


def test_the_width_of_a_range_is_an_exact_fraction() -> None:
    """Costs are rounded at both ends of a range, so that of equally wide attributes one could seem wider."""
    domains: list[Domain] = [NumericDomain("x", np.array([0, 1, 2, 4, 7]), False), flat_categories()]
    widths = exact_widths(domains, np.array([0.5, 0.5]))
    for low, high, expected in ((0, 1, Fraction(1, 7)), (1, 3, Fraction(3, 7)), (2, 4, Fraction(5, 7))):
        units = int(attribute_cost(widths.layout, widths.units, 0, low, high))
        assert Fraction(units, int(widths.layout[0, 3])) == expected
    assert int(attribute_cost(widths.layout, widths.units, 1, 0, 5)) == int(widths.layout[1, 3]) == 6


def test_null_is_told_apart_from_values_before_these_are_divided() -> None:
    table = pa.table({"age": pa.array([1, 2, 3, 4, 50, 51, 52, None, None, None], pa.int64())})
    released = sfumato.anonymize(table, quasi_identifiers=["age"], k=3, method="mondrian").data["age"].to_pylist()
    assert Counter(released) == {"[1..4]": 4, "[50..52]": 3, None: 3}


def test_the_attribute_of_greater_weight_is_divided_first() -> None:
    square = points([(x, y) for x in range(4) for y in range(4)])
    for heavy, light in (("x", "y"), ("y", "x")):
        release = sfumato.anonymize(
            square, quasi_identifiers=["x", "y"], k=8, method="mondrian", weight={heavy: 2.0, light: 1.0}
        )
        rows = release.data.to_pylist()
        assert {row[heavy] for row in rows} == {"[0..1]", "[2..3]"}
        assert {row[light] for row in rows} == {oracle.WHOLE}


def test_fewer_records_than_two_k_are_one_class() -> None:
    table = random_table(np.random.default_rng(5), 19)
    assert classes_of(table, "strict", requirements_for(10)) == [list(range(19))]
    assert classes_of(table, "relaxed", requirements_for(10)) == [list(range(19))]


@both_splits
def test_columns_of_one_value_change_nothing(splits: Splits) -> None:
    table = random_table(np.random.default_rng(6), 40)
    constant = np.full((40, 1), 2, table.codes.dtype)
    wider = replace(
        table,
        codes=np.hstack([constant, table.codes, constant]),
        domains=[numeric(5), *table.domains, flat_categories()],
        weights=[1.0, *table.weights, 1.0],
    )
    expected = classes_of(table, splits, requirements_for(3))
    assert len(expected) > 3
    assert classes_of(wider, splits, requirements_for(3)) == expected


# ---- determinism ----


@pytest.mark.not_quick
@both_splits
def test_order_of_the_input_leaves_no_trace_where_equal_records_differ_in_what_is_sensitive(splits: Splits) -> None:
    generator = np.random.default_rng(9)
    for _ in range(20):
        table = pa.table(
            {
                "age": generator.integers(0, 4, 60),
                "city": generator.choice(list("abc"), 60),
                "s": generator.choice(list("uvwxyz"), 60),
            }
        )
        asks: dict[str, Any] = {"quasi_identifiers": ["age", "city"], "sensitive": "s", "k": 4, "l": 2}
        asks["method"] = MondrianMethod(splits=splits).name
        released = sfumato.anonymize(table, **asks).data
        assert sfumato.anonymize(table.take(generator.permutation(60)), **asks).data.equals(released)


@pytest.mark.compiled
@both_splits
def test_any_threads_and_sizes_of_blocks_give_the_same_classes(splits: Splits, monkeypatch: pytest.MonkeyPatch) -> None:
    table = with_values(random_table(np.random.default_rng(12), 3000), np.random.default_rng(13))
    asked = [entropy(2)]
    expected = [classes_of(table, splits, requirements_for(4, some)) for some in ((), asked)]
    assert min(map(len, expected)) > 20
    for block, threads in ((1, 1), (50, 4), (900, 2)):
        monkeypatch.setattr("sfumato.kernels.threads.thread_count", lambda threads=threads: threads)
        monkeypatch.setattr("sfumato.methods.trees.region_tree.BLOCK", block)
        assert [classes_of(table, splits, requirements_for(4, some)) for some in ((), asked)] == expected


def test_progress_counts_every_record_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Steps(Progress):
        total = 0

        def advance(self, steps: int) -> None:
            self.total += steps

    table = random_table(np.random.default_rng(14), 500)
    for block in (1 << 15, 20):
        monkeypatch.setattr("sfumato.methods.trees.region_tree.BLOCK", block)
        for splits in ("strict", "relaxed"):
            progress = Steps()
            assert list(MondrianMethod(splits=splits).classes(table.records(), requirements_for(3), progress))
            assert progress.total == 500


# ---- requirements ----


class Odd(Requirement):
    """A kind that the kernel does not know: classes of an odd number of records."""

    kind = "odd"
    closed_under_union = False
    closed_under_addition = False
    attribute = None

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return np.asarray(classes.sizes % 2 == 1)

    def verdict(self, classes: ClassCounts) -> Verdict:
        return Verdict("odd", bool(self.holds(classes).all()), int(classes.sizes.min()))


def test_what_is_left_to_joining_is_said() -> None:
    method = MondrianMethod(splits="strict")
    diverse = frequency(2).requirement
    assert method.meets(Requirements((KAnonymity(2),)))
    assert method.meets(Requirements((KAnonymity(2), diverse, entropy(3).requirement)))
    assert method.meets(Requirements((KAnonymity(2),), person="p"))
    assert not method.meets(Requirements((KAnonymity(2), diverse), person="p"))
    assert not method.meets(Requirements((KAnonymity(2), Joint(diverse)), joint=("s", "t")))
    assert not method.meets(Requirements((KAnonymity(2), Odd())))


@both_splits
def test_values_too_frequent_in_records_but_not_in_persons_still_leave_many_classes(splits: Splits) -> None:
    # One person has half of all records, so that no class of records alone would be diverse.
    ages = list(range(40))
    table = pa.table(
        {
            "age": [*ages, *ages],
            "who": [*(f"p{place}" for place in ages), *["often"] * 40],
            "s": [*("abcd" * 10), *"a" * 40],
        }
    )
    policy = Policy.from_dict(
        {
            "columns": {
                "age": {"role": "quasi-identifier"},
                "who": {"role": "identifier"},
                "s": {"role": "sensitive"},
            },
            "privacy": {"k": 3, "person": "who", "sensitive": [{"attribute": "s", "kind": "frequency", "l": 2}]},
        }
    )
    release = sfumato.anonymize(table, policy, method=MondrianMethod(splits=splits).name)
    assert release.audit.holds
    assert release.audit.classes >= 5


# ---- the tree ----


def tree_of(table: Table, splits: Splits, k: int) -> tuple[RegionTree, NDArray[np.uint32]]:
    return MondrianMethod(splits=splits).tree(table.records(), requirements_for(k), Progress())


def small_domains(generator: np.random.Generator) -> list[Domain]:
    kinds = [numeric(6), numeric(5, null=True), flat_categories(null=True), grouped_categories()]
    return [kinds[place] for place in generator.choice(4, 2, replace=False)]


def small_tables(count: int) -> Iterator[Table]:
    generator = np.random.default_rng(21)
    for _ in range(count):
        domains = small_domains(generator)
        columns = [generator.choice(domain.size, 40, p=generator.dirichlet(np.ones(domain.size))) for domain in domains]
        yield Table(np.column_stack(columns).astype(np.uint8), domains, [1.0, 1.0])


@both_ways
def test_leaves_tile_the_whole_domain(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.methods.trees.region_tree.BLOCK", block)
    empty = 0
    for table in small_tables(40):
        tree, _ = tree_of(table, "strict", 2)
        leaves = np.flatnonzero(tree.attribute < 0)
        every = np.array(list(product(*(range(domain.size) for domain in table.domains))), np.uint8)
        inside = (every[:, None] >= tree.low[leaves]) & (every[:, None] <= tree.high[leaves])
        holding = inside.all(axis=2)
        assert (holding.sum(axis=1) == 1).all()
        assert (leaves[holding.argmax(axis=1)] == tree.leaves_of(every)).all()
        empty += int((tree.begin[leaves] == tree.end[leaves]).sum())
    assert empty > 20


@both_splits
@both_ways
def test_records_of_a_node_are_in_its_region_and_those_of_its_children(
    splits: Splits, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.methods.trees.region_tree.BLOCK", block)
    for table in small_tables(30):
        tree, rows = tree_of(table, splits, 3)
        assert (tree.parent[0], tree.begin[0], tree.end[0]) == (-1, 0, len(table.codes))
        assert tree.low[0].tolist() == [0, 0]
        assert tree.high[0].tolist() == [domain.size - 1 for domain in table.domains]
        for node in range(len(tree.parent)):
            members = table.codes[rows[tree.begin[node] : tree.end[node]]]
            if len(members):
                assert members.min(axis=0).tolist() == tree.box_low[node].tolist()
                assert members.max(axis=0).tolist() == tree.box_high[node].tolist()
                assert (tree.low[node] <= tree.box_low[node]).all()
                assert (tree.high[node] >= tree.box_high[node]).all()
            children = np.flatnonzero(tree.parent == node)
            assert (len(children) > 0) == (tree.attribute[node] >= 0)
            if len(children):
                assert children.tolist() == list(range(tree.first_child[node], tree.first_child[node] + len(children)))
                assert children[0] > node
                ends = [tree.begin[node], *tree.end[children]]
                assert ends[-1] == tree.end[node]
                assert tree.begin[children].tolist() == ends[:-1]
                other = 1 - tree.attribute[node]
                assert set(tree.low[children, other]) == {tree.low[node, other]}
                assert set(tree.high[children, other]) == {tree.high[node, other]}


def test_every_record_comes_to_the_leaf_that_it_was_put_in() -> None:
    for table in small_tables(30):
        tree, rows = tree_of(table, "strict", 3)
        classes = tree.classes()
        owner = np.repeat(classes, tree.end[classes] - tree.begin[classes])
        assert tree.leaves_of(table.codes[rows]).tolist() == owner.tolist()


def test_parts_of_a_category_are_nodes_of_its_taxonomy_and_what_has_no_records_is_between_them() -> None:
    # aaa, aab, aac, aba, abb, aca, baa, bab, bba, c, da: nothing of b, and only aab and aba of a.
    codes = np.array([[1]] * 5 + [[3]] * 5 + [[10]] * 5, np.uint8)
    tree, _ = tree_of(Table(codes, [grouped_categories()], [1.0]), "strict", 5)
    leaves = np.flatnonzero(tree.attribute < 0)
    found = sorted(zip(tree.low[leaves, 0].tolist(), tree.high[leaves, 0].tolist(), strict=True))
    classes = [(int(tree.low[leaf, 0]), int(tree.high[leaf, 0])) for leaf in tree.classes()]
    assert classes == [(0, 2), (3, 4), (10, 10)]  # aa, ab, da
    assert found == [(0, 2), (3, 4), (5, 5), (6, 9), (10, 10)]
