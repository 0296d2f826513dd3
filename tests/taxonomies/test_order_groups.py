"""Groups in the order of the values, the most frequent values apart, and the rows of taxonomy files."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import taxonomy_rows

from sfumato.errors import TaxonomyError, UsageError
from sfumato.taxonomies import read_taxonomy
from sfumato.taxonomies.frequent_values import frequent_levels
from sfumato.taxonomies.order_groups import (
    equal_groups,
    names_of_labels,
    names_of_texts,
    names_of_values,
    order_levels,
)
from sfumato.taxonomies.taxonomy_file import read_rows
from sfumato.taxonomies.taxonomy_rows import TaxonomyRows

weights = st.lists(st.integers(1, 30), min_size=2, max_size=9)


@given(weights=weights, count=st.integers(2, 5))
def test_groups_are_runs_and_no_cut_could_be_nearer_to_its_share(weights: list[int], count: int) -> None:
    groups = equal_groups(weights, count)
    wanted = min(count, len(weights))
    assert sorted(set(groups)) == list(range(wanted))
    assert groups == sorted(groups)
    if count == 2:
        shares = [abs(2 * sum(weights[:cut]) - sum(weights)) for cut in range(1, len(weights))]
        assert abs(2 * sum(weights[: groups.index(1)]) - sum(weights)) == min(shares)


def test_equal_weights_make_equal_groups() -> None:
    assert equal_groups([1] * 8, 4) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert equal_groups([10, 1, 1, 1, 1, 1, 1, 4], 2) == [0, 1, 1, 1, 1, 1, 1, 1]
    assert equal_groups([5, 5], 7) == [0, 1]


@given(weights=weights, counts=st.lists(st.integers(2, 6), min_size=2, max_size=3, unique=True))
def test_coarser_groups_consist_of_whole_finer_ones(weights: list[int], counts: list[int]) -> None:
    texts = [f"{number:02}" for number in range(len(weights))]
    levels = order_levels(weights, sorted(counts, reverse=True), names_of_labels(texts))
    for fine, coarse in pairwise(levels):
        assert len(set(zip(fine, coarse, strict=True))) == len(set(fine))


@given(texts=st.lists(st.text("abBÄ", min_size=1, max_size=4), min_size=2, max_size=9, unique=True))
def test_names_of_neighbouring_groups_of_texts_differ(texts: list[str]) -> None:
    texts.sort()
    name = names_of_texts(texts)
    for cuts in combinations(range(1, len(texts)), min(2, len(texts) - 1)):
        ends = [0, *cuts, len(texts)]
        names = [name(first, last - 1) for first, last in pairwise(ends)]
        assert len(set(names)) == len(names)


def test_names_show_as_little_of_the_values_as_it_takes() -> None:
    name = names_of_texts(["Aachen", "Berlin", "Bonn", "Bremen", "Zwickau"])
    assert name(0, 1) == "A..Be"
    assert name(2, 4) == "Bo..Z"
    assert name(1, 3) == "Be..Br"
    assert name(2, 2) == "Bonn"


def test_names_of_numbers_hide_the_smallest_and_the_largest_value() -> None:
    numbers = names_of_values(["18", "30", "41", "99"], dates=False)
    assert [numbers(0, 1), numbers(1, 2), numbers(2, 3), numbers(3, 3)] == ["30-", "[30..41]", "41+", "99"]
    dates = names_of_values(["2024-01-01", "2024-02-01", "2024-03-01"], dates=True)
    assert [dates(0, 1), dates(1, 2)] == ["until 2024-02-01", "from 2024-02-01"]


def test_the_most_frequent_values_stay_apart() -> None:
    values, records = ["a", "b", "c", "d"], [5, 9, 5, 1]
    assert frequent_levels(values, records, [2], "rest", "q") == [["a", "b", "rest", "rest"]]
    assert frequent_levels(values, records, [3, 1], "other", "q") == [
        ["a", "b", "c", "other (all but the 3 most frequent)"],
        ["other (all but the 1 most frequent)", "b", *["other (all but the 1 most frequent)"] * 2],
    ]


def test_others_need_a_name_of_their_own_and_somebody_in_them() -> None:
    with pytest.raises(UsageError, match="is a value of the column 'q'"):
        frequent_levels(["a", "b", "other"], [1, 2, 3], [1], "other", "q")
    with pytest.raises(UsageError, match="3 different values, so 3 cannot stand apart"):
        frequent_levels(["a", "b", "c"], [1, 2, 3], [3], "other", "q")


@given(rows=taxonomy_rows())
def test_rows_are_read_back_as_the_tree_that_they_make(
    rows: list[list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    made = TaxonomyRows.of([row[:-1] for row in rows])
    path.write_text(made.text(), "utf-8")
    read, tree = read_taxonomy(path, "q"), made.taxonomy("q")
    assert (read.leaves, read.labels, read.parent.tolist()) == (tree.leaves, tree.labels, tree.parent.tolist())
    assert read_rows(path, "q") == made


def test_values_that_are_called_like_a_group_are_refused(tmp_path: Path) -> None:
    rows = TaxonomyRows(("a", "b", "A..B", "c"), (("A..B", "A..B", "C", "C"),))
    with pytest.raises(TaxonomyError, match="1 names of the taxonomy would stand for two different sets"):
        rows.taxonomy("q")
    (tmp_path / "t.csv").write_text(rows.text())
    with pytest.raises(TaxonomyError):
        read_taxonomy(tmp_path / "t.csv", "q")


def test_further_leaves_are_in_no_group() -> None:
    rows = TaxonomyRows(("a", "b"), (("G", "G"),)).with_leaves(["z"])
    tree = rows.taxonomy("q")
    assert tree.labels == ("*", "G", "a", "b", "z")
    assert tree.parent.tolist() == [-1, 0, 1, 1, 0]
