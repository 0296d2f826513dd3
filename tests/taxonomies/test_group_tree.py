"""Trees that are changed: each change is compared with nested lists, and what is written is a taxonomy that reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.taxonomies.group_tree import GroupTree, TreeNode
from sfumato.taxonomies.taxonomy_file import read_rows, read_taxonomy
from sfumato.taxonomies.taxonomy_rows import TaxonomyRows

COUNTRIES = TaxonomyRows.of(
    [
        ("DE", "West", "Europe"),
        ("FR", "West", "Europe"),
        ("PL", "East", "Europe"),
        ("JP", "JP", "Asia"),
        ("X", "X", "X"),
    ]
)


def shape(node: TreeNode) -> object:
    return {node.name: [shape(member) for member in node.members]} if node.is_group else node.name


def named(tree: GroupTree, *names: str) -> list[TreeNode]:
    return [next(node for node in tree.nodes if node.name == name) for name in names]


def test_rows_become_a_tree_and_the_tree_the_same_rows() -> None:
    tree = GroupTree(COUNTRIES)
    assert shape(tree.root) == {
        "*": [{"Europe": [{"West": ["DE", "FR"]}, {"East": ["PL"]}]}, {"Asia": ["JP"]}, "X"],
    }
    assert tree.rows() == COUNTRIES
    assert [tree.level_now(number) for number in range(4)] == [0, 1, 2, 3]


def test_a_group_with_the_name_of_one_of_its_values_stays_a_group() -> None:
    rows = TaxonomyRows.of([("Other", "Other"), ("Rest", "Other"), ("A", "A")])
    tree = GroupTree(rows)
    assert shape(tree.root) == {"*": [{"Other": ["Other", "Rest"]}, "A"]}
    assert tree.rows() == rows


def test_a_new_group_gets_a_level_where_there_is_room_and_a_new_one_where_there_is_none() -> None:
    tree = GroupTree(COUNTRIES)
    tree.group(named(tree, "JP", "X"), "Far")  # only the root is above both, and level 1 has room below it
    assert tree.rows().levels[0] == ("West", "West", "East", "Far", "Far")
    tree = GroupTree(COUNTRIES)
    tree.group(named(tree, "DE"), "Central")
    assert tree.root.level == 4
    assert tree.rows() == TaxonomyRows.of(
        [
            ("DE", "Central", "West", "Europe"),
            ("FR", "FR", "West", "Europe"),
            ("PL", "PL", "East", "Europe"),
            ("JP", "JP", "JP", "Asia"),
            ("X", "X", "X", "X"),
        ]
    )
    assert [tree.level_now(number) for number in range(4)] == [0, 2, 3, 4]


def test_moving_raises_a_group_that_takes_in_a_group_of_its_own_level() -> None:
    tree = GroupTree(COUNTRIES)
    tree.move(named(tree, "East"), named(tree, "West")[0])
    assert shape(tree.root) == {"*": [{"Europe": [{"West": ["DE", "FR", {"East": ["PL"]}]}]}, {"Asia": ["JP"]}, "X"]}
    assert tree.rows() == TaxonomyRows.of(
        [
            ("DE", "DE", "West", "Europe"),
            ("FR", "FR", "West", "Europe"),
            ("PL", "East", "West", "Europe"),
            ("JP", "JP", "JP", "Asia"),
            ("X", "X", "X", "X"),
        ]
    )


def test_groups_and_levels_that_are_empty_go() -> None:
    tree = GroupTree(COUNTRIES)
    tree.move(named(tree, "DE", "FR"), named(tree, "Asia")[0])
    tree.dissolve(named(tree, "East")[0])
    assert shape(tree.root) == {"*": [{"Europe": ["PL"]}, {"Asia": ["JP", "DE", "FR"]}, "X"]}
    assert tree.rows() == TaxonomyRows.of(
        [("PL", "Europe"), ("JP", "Asia"), ("DE", "Asia"), ("FR", "Asia"), ("X", "X")]
    )
    assert [tree.level_now(number) for number in range(4)] == [0, 1, 1, 2]


def test_new_values_and_new_names() -> None:
    tree = GroupTree(COUNTRIES)
    tree.rename(named(tree, "West")[0], "Western Europe")
    tree.add(["CN"], named(tree, "Asia")[0])
    tree.add(["Y"], tree.root)
    rows = tree.rows()
    assert dict(zip(rows.leaves, zip(*rows.levels, strict=True), strict=True)) == {
        "DE": ("Western Europe", "Europe"), "FR": ("Western Europe", "Europe"), "PL": ("East", "Europe"),
        "JP": ("JP", "Asia"), "CN": ("CN", "Asia"), "X": ("X", "X"), "Y": ("Y", "Y"),
    }  # fmt: skip


REFUSED: dict[str, Callable[[GroupTree, TreeNode, TreeNode, TreeNode], object]] = {
    "a group into what is in it": lambda tree, europe, west, german: tree.move([europe], west),
    "a group into a value": lambda tree, europe, west, german: tree.move([west], german),
    "another name for a value": lambda tree, europe, west, german: tree.rename(german, "Germany"),
    "no root": lambda tree, europe, west, german: tree.dissolve(tree.root),
    "a group of nothing": lambda tree, europe, west, german: tree.group([], "Empty"),
    "the name of the root": lambda tree, europe, west, german: tree.group([german], " * "),
}


@pytest.mark.parametrize("change", REFUSED)
def test_what_makes_no_tree_is_refused_and_changes_nothing(change: str) -> None:
    tree = GroupTree(COUNTRIES)
    with pytest.raises(UsageError):
        REFUSED[change](tree, *named(tree, "Europe", "West", "DE"))
    assert tree.rows() == COUNTRIES


@pytest.mark.parametrize("name", ["X", "Asia"])
def test_a_name_for_two_sets_of_values_makes_no_rows(name: str) -> None:
    tree = GroupTree(COUNTRIES)
    tree.group(named(tree, "DE", "FR"), name)
    with pytest.raises(UsageError, match="name"):
        tree.rows()


@pytest.mark.parametrize("seed", range(20))
def test_after_any_changes_every_value_is_there_once_and_the_file_reads(seed: int, tmp_path: Path) -> None:
    drawn = np.random.default_rng(seed)
    tree = GroupTree(TaxonomyRows(tuple(f"v{number}" for number in range(12))))
    for step in range(15):
        nodes = tree.nodes
        some = [nodes[index] for index in drawn.choice(len(nodes), 3, replace=False)]
        groups = [node for node in nodes if node.is_group]
        target = groups[drawn.integers(len(groups))]
        try:
            match drawn.integers(3):
                case 0:
                    tree.group(some, f"g{step}")
                case 1:
                    tree.move(some, target)
                case 2:
                    tree.dissolve(target)
        except UsageError:
            continue
        assert all(node.parent is None or node.level < node.parent.level for node in tree.nodes)
    rows = tree.rows()
    assert sorted(rows.leaves) == sorted(f"v{number}" for number in range(12))
    file = tmp_path / "tree.csv"
    file.write_text(rows.text())
    assert read_rows(file, "column") == rows
    assert read_taxonomy(file, "column").top_level == tree.root.level
    assert shape(GroupTree(rows).root) == shape(tree.root)
