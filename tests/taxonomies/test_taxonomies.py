"""Taxonomies: trees from files and from values, and the widening of numeric and date boxes."""

from __future__ import annotations

import csv
import datetime
import io
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import PolicyError, TaxonomyError
from sfumato.taxonomies import Calendar, Intervals, RoundingGrid, Snap, Taxonomy, flat, prefix, read_taxonomy
from sfumato.taxonomies.periods import period_days

INT64 = np.iinfo(np.int64)


def read(folder: Path, text: str) -> Taxonomy:
    path = folder / "country.csv"
    path.write_bytes(text.encode())
    return read_taxonomy(path, "country")


def groups_of(taxonomy: Taxonomy) -> dict[str, set[str]]:
    """Every released label with the leaves that it stands for."""
    return {
        label: set(taxonomy.leaves[taxonomy.first[node] : taxonomy.last[node] + 1])
        for node, label in enumerate(taxonomy.labels)
    }


def parents_of(taxonomy: Taxonomy) -> dict[str, str]:
    return {label: taxonomy.labels[taxonomy.parent[node]] for node, label in enumerate(taxonomy.labels) if node > 0}


def assert_is_a_tree(taxonomy: Taxonomy) -> None:
    """The promises of the class, checked node by node."""
    first, last, parent = (array.tolist() for array in (taxonomy.first, taxonomy.last, taxonomy.parent))
    assert taxonomy.labels[0] == "*"
    assert (first[0], last[0], parent[0]) == (0, len(taxonomy.leaves) - 1, -1)
    assert len(set(taxonomy.labels)) == len(taxonomy.labels)
    assert len(set(taxonomy.leaves)) == len(taxonomy.leaves)
    for node in range(1, len(taxonomy.labels)):
        above = parent[node]
        assert 0 <= above < node
        assert first[above] <= first[node] <= last[node] <= last[above]
    # Preorder: every node is followed by its descendants.
    assert [(one, -other) for one, other in zip(first, last, strict=True)] == sorted(
        (one, -other) for one, other in zip(first, last, strict=True)
    )
    spans = list(zip(first, last, strict=True))
    assert len(set(spans)) == len(spans) or len(taxonomy.leaves) == 1
    children = {node: [child for child in range(len(parent)) if parent[child] == node] for node in range(len(parent))}
    for node, below in children.items():
        if below:
            covered = [code for child in below for code in range(first[child], last[child] + 1)]
            assert covered == list(range(first[node], last[node] + 1))
    inner_leaves = [taxonomy.labels[node] for node, below in children.items() if not below]
    assert tuple(inner_leaves) == taxonomy.leaves
    assert taxonomy.span().tolist() == [high - low + 1 for low, high in spans]
    nodes = taxonomy.node_of_label()
    assert {label: nodes[label] for label in taxonomy.labels} == {label: n for n, label in enumerate(taxonomy.labels)}
    for labels in taxonomy.level_labels:
        for label in set(labels):
            codes = [code for code, shown in enumerate(labels) if shown == label]
            assert spans[nodes[label]] == (codes[0], codes[-1]), "a group is the node with its leaves"


# ---------------------------------------------------------------------------------------------------------- files


@st.composite
def taxonomy_rows(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Rows of a random tree, shuffled; some groups of the first level are named like their first leaf."""
    width = draw(st.integers(1, 14))
    columns = [[f"leaf {number}" for number in range(width)]]
    numbers = list(range(width))
    for level in range(1, draw(st.integers(1, 4))):
        count = max(numbers) + 1
        upward = draw(st.lists(st.integers(0, max(0, count // 2)), min_size=count, max_size=count))
        numbers = [upward[number] for number in numbers]
        columns.append([f"group {level}.{number}" for number in numbers])
    if len(columns) > 1:
        namesakes = draw(st.sets(st.sampled_from(sorted(set(columns[1])))))
        name = {group: columns[0][columns[1].index(group)] for group in namesakes}
        columns[1] = [name.get(group, group) for group in columns[1]]
    rows = list(zip(*columns, ["*"] * width, strict=True))
    return draw(st.permutations(rows))


def as_csv(rows: list[tuple[str, ...]], separator: str = ",") -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=separator).writerows(rows)
    return text.getvalue()


def common_group_by_paths(rows: list[tuple[str, ...]], one: str, other: str) -> tuple[str, set[str]]:
    """The lowest common group of two leaves and its leaves, by walking both rows upward together."""
    path = {row[0]: row for row in rows}
    if one == other:
        return one, {one}
    level = next(level for level in range(1, len(rows[0])) if path[one][level] == path[other][level])
    name = path[one][level]
    leaves = {row[0] for row in rows if row[level] == name}
    if leaves == set(path):
        return "*", leaves
    return (f"{name} (group)" if name in path else name), leaves


@settings(max_examples=examples(5), deadline=None)
@given(rows=taxonomy_rows(), separator=st.sampled_from([",", ";"]))
def test_a_random_tree_survives_its_file(
    rows: list[tuple[str, ...]], separator: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    taxonomy = read(tmp_path_factory.getbasetemp(), as_csv(rows, separator))

    assert_is_a_tree(taxonomy)
    assert sorted(taxonomy.leaves) == sorted(row[0] for row in rows)
    low, high = (part.ravel() for part in np.triu_indices(len(rows)))
    nodes = taxonomy.lowest_common_ancestor(low, high)
    assert nodes.dtype == np.int32
    groups = groups_of(taxonomy)
    for one, other, node in zip(low.tolist(), high.tolist(), nodes.tolist(), strict=True):
        label, leaves = common_group_by_paths(rows, taxonomy.leaves[one], taxonomy.leaves[other])
        assert taxonomy.labels[node] == label
        assert groups[label] == leaves


@settings(max_examples=examples(2), deadline=None)
@given(rows=taxonomy_rows())
def test_ancestors_lead_from_the_leaf_to_the_root(
    rows: list[tuple[str, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    taxonomy = read(tmp_path_factory.getbasetemp(), as_csv(rows))

    ancestors = taxonomy.ancestors()
    assert ancestors.shape == (len(rows), taxonomy.levels)
    assert ancestors.dtype == np.int32
    longest = 0
    for leaf, path in zip(taxonomy.leaves, ancestors.tolist(), strict=True):
        expected = [taxonomy.node_of_label()[leaf]]
        while expected[-1] != 0:
            expected.append(int(taxonomy.parent[expected[-1]]))
        longest = max(longest, len(expected))
        assert path == expected + [0] * (taxonomy.levels - len(expected))
    assert taxonomy.levels == longest


def test_children_follow_the_file_and_leaves_of_a_group_stand_together(tmp_path: Path) -> None:
    taxonomy = read(tmp_path, "Peru,South,*\nChina,Asia,*\nChile,South,*\nJapan,Asia,*\n")

    assert taxonomy.leaves == ("Peru", "Chile", "China", "Japan")
    assert taxonomy.labels == ("*", "South", "Peru", "Chile", "Asia", "China", "Japan")
    assert taxonomy.first.tolist() == [0, 0, 0, 1, 2, 2, 3]
    assert taxonomy.last.tolist() == [3, 1, 0, 1, 3, 2, 3]
    assert taxonomy.parent.tolist() == [-1, 0, 1, 1, 0, 4, 4]
    assert taxonomy.levels == 3


def test_the_arrays_of_a_taxonomy_cannot_be_changed(tmp_path: Path) -> None:
    taxonomy = read(tmp_path, "a,*\nb,*\n")

    with pytest.raises(ValueError, match="read-only"):
        taxonomy.parent[0] = 3


def test_codes_outside_the_tree_or_in_the_wrong_order_are_refused(tmp_path: Path) -> None:
    taxonomy = read(tmp_path, "a,*\nb,*\n")

    for low, high in [(0, 2), (-1, 1), (1, 0)]:
        with pytest.raises(ValueError, match="0 <= low <= high < 2"):
            taxonomy.lowest_common_ancestor(np.array([low]), np.array([high]))


def test_common_ancestors_keep_the_shape_of_their_codes(tmp_path: Path) -> None:
    taxonomy = read(tmp_path, "a,A,*\nb,A,*\nc,C,*\n")

    nodes = taxonomy.lowest_common_ancestor(np.array([[0, 0], [1, 2]], dtype=np.uint8), np.array([[1, 2], [1, 2]]))
    assert [[taxonomy.labels[node] for node in row] for row in nodes.tolist()] == [["A", "*"], ["b", "c"]]


def test_a_repr_shows_no_leaf() -> None:
    assert repr(flat(["secret one", "secret two"], "name")) == "Taxonomy(2 leaves, 3 nodes, 2 levels)"


def test_a_taxonomy_of_one_leaf_is_a_root_over_it(tmp_path: Path) -> None:
    taxonomy = read(tmp_path, "only,some,group,*\n")

    assert taxonomy.labels == ("*", "only")
    assert taxonomy.parent.tolist() == [-1, 0]
    assert taxonomy.span().tolist() == [1, 1]
    assert taxonomy.levels == 2
    assert taxonomy.ancestors().tolist() == [[1, 0]]
    assert taxonomy.lowest_common_ancestor(np.array([0]), np.array([0])).tolist() == [1]


def test_of_groups_over_the_same_leaves_the_most_specific_stays(tmp_path: Path) -> None:
    taxonomy = read(tmp_path, "a,low,middle,high,*\nb,low,middle,high,*\nc,other,elsewhere,high,*\nd,x,y,z,*\n")

    assert groups_of(taxonomy) == {
        "*": {"a", "b", "c", "d"},
        "high": {"a", "b", "c"},
        "low": {"a", "b"},
        "a": {"a"},
        "b": {"b"},
        "c": {"c"},
        "d": {"d"},
    }
    assert parents_of(taxonomy) == {"high": "*", "low": "high", "a": "low", "b": "low", "c": "high", "d": "*"}


@pytest.mark.parametrize(
    "text",
    [
        "a,A,*\nb,A,*\nc,C,*\n",
        "a;A;*\nb;A;*\nc;C;*\n",
        "\ufeffa,A,*\r\nb,A,*\r\nc,C,*\r\n",
        '"a","A","*"\n"b",A,*\nc,C,*',
        '"a";"A";"*"\n"b";A;*\nc;C;*',
        "\n\na,A,*\n\n   \nb,A,*\nc,C,*\n\n",
        "a,A\nb,A\nc,C\n",
        "a,A,everything\nb,A,everything\nc,C,everything\n",
        "a,A,***\nb,A,***\nc,C,***\n",
        "a,A,A,*\nb,A,A,*\nc,c,c,*\n",
        "a,A,*,*\nb,A,*,*\nc,*,*,*\n",
    ],
    ids=[
        "commas",
        "semicolons",
        "byte-order mark and CRLF",
        "quoted",
        "quoted with semicolons",
        "blank lines",
        "no root",
        "another root",
        "ARX's redacted root",
        "names repeated",
        "root repeated",
    ],
)
def test_the_same_tree_may_be_written_in_many_ways(tmp_path: Path, text: str) -> None:
    taxonomy = read(tmp_path, text)

    assert_is_a_tree(taxonomy)
    assert taxonomy.leaves == ("a", "b", "c")
    assert taxonomy.labels == ("*", "A", "a", "b", "c")


@pytest.mark.parametrize(
    ("text", "leaves", "labels"),
    [
        ('"Korea, North";Asia;*\nPeru;South;*\n', ("Korea, North", "Peru"), ("*", "Korea, North", "Peru")),
        ("Korea, North;Asia;*\nPeru;South;*\n", ("Korea, North", "Peru"), ("*", "Korea, North", "Peru")),
        ("x;y;z,G,*\nw,G,*\nv,H,*\n", ("x;y;z", "w", "v"), ("*", "G", "x;y;z", "w", "v")),
        ('"two\nlines",G,*\n"a ""b""",G,*\n', ("two\nlines", 'a "b"'), ("*", "two\nlines", 'a "b"')),
        ("a\nb\n", ("a", "b"), ("*", "a", "b")),
    ],
    ids=["quoted comma", "comma in a name", "semicolon in a name", "quoted line end", "leaves only"],
)
def test_names_may_hold_what_csv_allows(
    tmp_path: Path, text: str, leaves: tuple[str, ...], labels: tuple[str, ...]
) -> None:
    taxonomy = read(tmp_path, text)

    assert (taxonomy.leaves, taxonomy.labels) == (leaves, labels)


def test_redacted_values_as_arx_writes_them_form_a_tree(tmp_path: Path) -> None:
    taxonomy = read(tmp_path, "81667;8166*;816**;*****\n81675;8167*;816**;*****\n81925;8192*;819**;*****\n")

    assert taxonomy.labels == ("*", "816**", "81667", "81675", "81925")


def test_a_group_named_like_one_of_its_leaves_says_that_it_is_a_group(tmp_path: Path) -> None:
    taxonomy = read(tmp_path, "Other,Other,*\nUnknown,Other,*\nWhite,White,*\n")

    assert groups_of(taxonomy) == {
        "*": {"Other", "Unknown", "White"},
        "Other (group)": {"Other", "Unknown"},
        "Other": {"Other"},
        "Unknown": {"Unknown"},
        "White": {"White"},
    }


def test_a_group_may_be_named_like_a_leaf_some_levels_below(tmp_path: Path) -> None:
    taxonomy = read(tmp_path, "Other,Rare,Other,*\nUnknown,Missing,Other,*\nWhite,White,White,*\n")

    assert taxonomy.labels == ("*", "Other (group)", "Other", "Unknown", "White")


def test_a_placeholder_named_like_the_group_above_it_is_no_second_group(tmp_path: Path) -> None:
    taxonomy = read(tmp_path, "a,A,A,*\nb,B,A,*\nc,C,C,*\n")

    assert groups_of(taxonomy)["A"] == {"a", "b"}
    assert taxonomy.labels == ("*", "A", "a", "b", "c")


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("", "", "it is empty"),
        (" \n\n", "", "it is empty"),
        ("a,A,*\nb,B,C,*\nc,C,*\n", ", line 2", "this row has 4 fields, but most rows have 3"),
        ('"x\ny",A,*\nb,B,C,*\nc,C,*\n', ", line 3", "this row has 4 fields, but most rows have 3"),
        ("a,A,*\nb,B,*\na,A,*\n", ", lines 1 and 3", "the leaf 'a' has two rows. Delete one"),
        ("a,A,*\nb,B,*\na,B,*\n", ", lines 1 and 3", "the leaf 'a' has two rows. Keep the row with the right groups"),
        ("a,A,X,*\n\nb,B,Y,*\nc,A,Y,*\n", ", lines 1 and 4", "the group 'A' has two parents, 'X' and 'Y'"),
        ("a,A,X,*\nb,A,*,*\n", ", lines 1 and 2", "the group 'A' has two parents, 'X' and '*'"),
        ("a,A,X,*\nb,B,A,*\n", ", lines 1 and 2", "the name 'A' is on two levels, field 2 and field 3"),
        ("a,A,*\nb,a,*\n", ", lines 1 and 2", "the name 'a' is on two levels, field 1 and field 2"),
        ("a,*,*\nb,a,*\n", ", lines 1 and 2", "the name 'a' is on two levels, field 1 and field 2"),
        ("a,A,A,*\nb,A,A,*\nc,C,A,*\nd,D,D,*\n", ", lines 1, 2 and 3", "'A' would stand for two different sets"),
        ("a,a,*\nb,a,*\na (group),G,*\n", ", lines 1, 2 and 3", "'a (group)' would stand for two different sets"),
        ("a,a,a,*\nb,a,a,*\nc,C,a,*\nd,D,D,*\n", ", lines 1, 2 and 3", "'a (group)' would stand for two different"),
        ("a,A,*\nb,*,B\n", ", line 2", "this row does not end in '*', but others do"),
        ("a,A,*\nb,B,C\nc,C,*\n", ", line 2", "this row does not end in '*', but others do"),
        ("a,A,B,*\nb,*,B,*\n", ", line 2", "'*' appears before the end of the row"),
        ("a,*,B\nb,A,B\n", ", line 1", "'*' appears before the end of the row"),
        ("a,A,*\n*,A,*\n", ", line 2", "'*' stands for the whole domain and cannot be a leaf"),
        ("a, A, *\nb, A, *\n", ", line 1", "field 3 is '*' with spaces around it"),
        ("a,A,*\nb,,*\n", ", line 2", "field 2 is empty"),
        ("a,A,*\n ,A,*\n", ", line 2", "field 1 is empty"),
        ("a,A,*,\nb,A,*,\n", ", line 1", "field 4 is empty"),
        ('a,A,*\nb,"B,*\n', ", line 2", "a quotation mark is not closed"),
        ('a,"A,*\n', ", line 1", "a quotation mark is not closed"),
        ('"a" b,A,*\n', ", line 1", "a quotation mark is not closed or not doubled"),
    ],
)
def test_a_file_that_is_no_tree_is_refused_with_its_lines(tmp_path: Path, text: str, place: str, problem: str) -> None:
    with pytest.raises(TaxonomyError) as caught:
        read(tmp_path, text)

    start = f"column 'country', taxonomy {str(tmp_path / 'country.csv')!r}{place}: "
    assert str(caught.value).startswith(start)
    assert problem in str(caught.value)
    assert caught.value.exit_code == 4


def test_a_file_in_another_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "country.csv"
    path.write_bytes("Peru,South,*\nCôte d'Ivoire,Africa,*\n".encode("cp1252"))

    with pytest.raises(TaxonomyError, match=r"line 2: it is not UTF-8 text\. Save the file in that encoding"):
        read_taxonomy(str(path), "country")


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a,*\n")

    for path, problem in [
        (tmp_path / "missing.csv", "there is no such file"),
        (tmp_path, "it is a directory"),
        (tmp_path / "file" / "country.csv", "it cannot be read (Not a directory)"),
    ]:
        with pytest.raises(TaxonomyError, match=re.escape(f"taxonomy {str(path)!r}: {problem}")) as caught:
            read_taxonomy(path, "country")
        assert caught.value.__suppress_context__


# -------------------------------------------------------------------------------------------------------- derived


def test_a_flat_taxonomy_has_the_sorted_values_under_the_root() -> None:
    taxonomy = flat(["b", "a", "c", "a"], "letter")

    assert_is_a_tree(taxonomy)
    assert taxonomy.leaves == ("a", "b", "c")
    assert taxonomy.labels == ("*", "a", "b", "c")
    assert taxonomy.levels == 2


@pytest.mark.parametrize("make", [lambda: flat([], "empty"), lambda: prefix([], [1], "empty")])
def test_a_column_without_values_has_the_root_alone(make: Callable[[], Taxonomy]) -> None:
    taxonomy = make()

    assert (taxonomy.leaves, taxonomy.labels) == ((), ("*",))
    assert taxonomy.span().tolist() == [0]
    assert taxonomy.levels == 1
    assert taxonomy.ancestors().shape == (0, 1)
    nobody = np.zeros(0, dtype=np.uint8)
    assert taxonomy.lowest_common_ancestor(nobody, nobody).size == 0


def test_prefixes_group_values_and_star_what_they_drop() -> None:
    taxonomy = prefix(["10115", "10117", "10243", "80331", "80333", "99999"], [2, 3], "postcode")

    assert_is_a_tree(taxonomy)
    assert groups_of(taxonomy) == {
        "*": {"10115", "10117", "10243", "80331", "80333", "99999"},
        "10***": {"10115", "10117", "10243"},
        "101**": {"10115", "10117"},
        "803**": {"80331", "80333"},
        **{leaf: {leaf} for leaf in taxonomy.leaves},
    }
    assert taxonomy.levels == 4


def test_prefixes_of_values_of_different_length_are_padded_to_the_longest() -> None:
    taxonomy = prefix(["1", "10", "101", "1012", "2"], [1, 2, 3], "code")

    assert groups_of(taxonomy) == {
        "*": {"1", "10", "101", "1012", "2"},
        "1***": {"1", "10", "101", "1012"},
        "10**": {"10", "101", "1012"},
        "101*": {"101", "1012"},
        **{leaf: {leaf} for leaf in taxonomy.leaves},
    }


@settings(max_examples=examples(3.5), deadline=None)
@given(
    values=st.lists(st.text(alphabet="ab\0", max_size=5), max_size=20),
    lengths=st.sets(st.integers(1, 6), min_size=1).map(sorted),
)
def test_a_prefix_group_holds_exactly_the_values_with_its_prefix(values: list[str], lengths: list[int]) -> None:
    taxonomy = prefix(values, lengths, "code")

    if values:
        assert_is_a_tree(taxonomy)
    assert taxonomy.leaves == tuple(sorted(set(values)))
    groups = groups_of(taxonomy)
    longest = max(map(len, values), default=0)
    for length in lengths:
        for value in values:
            sharing = {other for other in values if len(value) >= length and other[:length] == value[:length]}
            if 1 < len(sharing) < len(set(values)):
                deeper = [more for more in lengths if more >= length and len({one[:more] for one in sharing}) == 1]
                label = value[: max(deeper)] + "*" * (longest - max(deeper))
                if all(len(one) >= max(deeper) for one in sharing):
                    assert groups[label] == sharing
    for label, leaves in groups.items():
        if label != "*" and len(leaves) > 1:
            shown = label.rstrip("*")
            assert leaves == {value for value in values if value.startswith(shown)}


def test_a_hundred_thousand_values_make_a_prefix_taxonomy() -> None:
    values = [f"{number:06d}" for number in range(0, 1_000_000, 10)]
    taxonomy = prefix(values, [1, 3], "postcode")

    assert len(taxonomy.labels) == 1 + 10 + 1_000 + 100_000
    low = np.arange(0, 99_999)
    labels = [taxonomy.labels[node] for node in taxonomy.lowest_common_ancestor(low, low + 1)[[0, 99, 9_999]]]
    assert labels == ["000***", "0*****", "*"]


@pytest.mark.parametrize("make", [lambda: flat(["a", "*"], "letter"), lambda: prefix(["aa", "*"], [1], "letter")])
def test_a_literal_star_among_the_values_is_refused(make: Callable[[], Taxonomy]) -> None:
    with pytest.raises(TaxonomyError, match=re.escape("column 'letter' holds the value '*'")):
        make()


@pytest.mark.parametrize("values", [["10*", "101", "102"], ["1*1", "1*2", "123"], ["1**", "1*2", "123", "2"]])
def test_prefix_labels_that_collide_are_refused_without_showing_a_value(values: list[str]) -> None:
    lengths = [1, 2]
    values = [*values, "999"]
    with pytest.raises(TaxonomyError, match="column 'code': some of its values hold a '\\*'") as caught:
        prefix(values, lengths, "code")

    assert not any(value in str(caught.value) for value in values)


@pytest.mark.parametrize("lengths", [[], [0], [-1, 2], [3, 2], [2, 2], [True], [2.0]])
def test_prefix_lengths_must_ascend_from_one(lengths: list[int]) -> None:
    with pytest.raises(PolicyError, match="column 'code': the prefix lengths must be whole numbers of at least 1"):
        prefix(["a"], lengths, "code")


# ------------------------------------------------------------------------------------------------------- snapping

INTEGERS = st.integers(INT64.min, INT64.max)
SMALL_INTEGERS = st.integers(-500, 500)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
STEPS = st.sampled_from([0.1, 0.05, 0.25, 1, 2.5, 3, 7.3, 1000, 1e-7, 1e-15, 0.123456789012345, 1e16, 1e300, 5e-324])


def boxes(values: st.SearchStrategy[float]) -> st.SearchStrategy[list[tuple[float, float]]]:
    return st.lists(st.tuples(values, values).map(lambda pair: (min(pair), max(pair))), min_size=1, max_size=20)


def snap(how: Snap, pairs: Sequence[tuple[float, float]], integral: bool) -> list[tuple[float, float] | None]:
    """The released boxes, None where the whole domain is released."""
    low, high = (np.array(side, dtype=np.int64 if integral else np.float64) for side in zip(*pairs, strict=True))
    before = low.copy(), high.copy()
    new_low, new_high, whole = how.snap(low, high, integral)
    assert new_low.dtype == low.dtype
    assert new_high.dtype == low.dtype
    assert np.array_equal(low, before[0])
    assert np.array_equal(high, before[1])
    bounds = zip(new_low.tolist(), new_high.tolist(), whole.tolist(), strict=True)
    return [None if every else (one, other) for one, other, every in bounds]


def nearest_double(exact: Fraction) -> float:
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def is_a_multiple(value: float, step: float) -> bool:
    exact = Fraction(str(step))
    return nearest_double(round(Fraction(value) / exact) * exact) == value


def test_intervals_of_whole_numbers_are_the_smallest_that_hold_the_box() -> None:
    pairs = [(21, 24), (21, 25), (19, 20), (20, 20), (0, 19), (-1, 0), (-3, -1), (-21, -19), (5, 9)]

    assert snap(Intervals((5, 10, 20)), pairs, integral=True) == [
        (20, 24),
        (20, 29),
        None,
        (20, 20),
        (0, 19),
        None,
        (-5, -1),
        None,
        (5, 9),
    ]


def test_intervals_of_decimals_have_both_ends_and_no_rounding_noise() -> None:
    pairs = [(0.31, 0.39), (0.3, 0.35), (0.7, 0.75), (0.35, 0.4), (0.95, 1.0), (-0.05, -0.01), (1.23, 1.23)]

    assert snap(Intervals((0.1, 0.5)), pairs, integral=False) == [
        (0.3, 0.4),
        (0.3, 0.4),
        (0.7, 0.8),
        (0.0, 0.5),
        None,
        (-0.1, 0.0),
        (1.23, 1.23),
    ]


@settings(max_examples=examples(5), deadline=None)
@given(pairs=boxes(st.one_of(SMALL_INTEGERS, INTEGERS)), widths=st.lists(st.integers(2, 9), min_size=1, max_size=3))
def test_whole_intervals_equal_a_search_by_hand(pairs: list[tuple[int, int]], widths: list[int]) -> None:
    products = [math.prod(widths[: end + 1]) for end in range(len(widths))]

    def by_hand(low: int, high: int) -> tuple[int, int] | None:
        if low == high:
            return low, high
        for width in products:
            start = low // width * width
            if high < start + width and INT64.min <= start and start + width - 1 <= INT64.max:
                return start, start + width - 1
        return None

    assert snap(Intervals(tuple(products)), pairs, integral=True) == [by_hand(*pair) for pair in pairs]


@settings(max_examples=examples(7), deadline=None)
@given(pairs=boxes(st.one_of(FLOATS, st.floats(-100, 100), SMALL_INTEGERS.map(lambda number: number / 10))), step=STEPS)
def test_intervals_of_any_floats_only_widen_and_end_on_multiples(pairs: list[tuple[float, float]], step: float) -> None:
    for (low, high), released in zip(pairs, snap(Intervals((step,)), pairs, integral=False), strict=True):
        if low == high:
            assert released == (low, high)
        elif released is not None:
            assert released[0] <= low <= high < released[1]
            assert is_a_multiple(released[0], step)
            assert is_a_multiple(released[1], step)
        else:
            exact = Fraction(str(step))
            start = math.floor(Fraction(low) / exact) * exact
            assert high >= nearest_double(start + exact) or not math.isfinite(nearest_double(start + exact))


@settings(max_examples=examples(7), deadline=None)
@given(pairs=boxes(st.one_of(FLOATS, st.floats(-100, 100), SMALL_INTEGERS.map(lambda number: number / 10))), step=STEPS)
def test_a_grid_on_any_floats_only_widens_to_the_nearest_multiples(
    pairs: list[tuple[float, float]], step: float
) -> None:
    exact = Fraction(str(step))
    for (low, high), released in zip(pairs, snap(RoundingGrid(step), pairs, integral=False), strict=True):
        if released is None:
            outer = [math.floor(Fraction(low) / exact) * exact, math.ceil(Fraction(high) / exact) * exact]
            assert not all(math.isfinite(nearest_double(bound)) for bound in outer)
            continue
        assert released[0] <= low
        assert high <= released[1]
        for bound, inner, direction in [(released[0], low, 1), (released[1], high, -1)]:
            assert is_a_multiple(bound, step)
            next_inward = nearest_double((round(Fraction(bound) / exact) + direction) * exact)
            assert bound == inner or (next_inward - inner) * direction > 0


@settings(max_examples=examples(3.5), deadline=None)
@given(
    pairs=boxes(st.integers(-(10**7), 10**7)),
    hundredths=st.sampled_from([1, 5, 10, 20, 25, 30, 50, 100, 250, 1700]),
)
def test_a_grid_on_decimals_reads_as_decimals(pairs: list[tuple[int, int]], hundredths: int) -> None:
    decimals = [(low / 100, high / 100) for low, high in pairs]
    expected = [
        (low // hundredths * hundredths / 100, -(-high // hundredths) * hundredths / 100) for low, high in pairs
    ]

    released = snap(RoundingGrid(hundredths / 100), decimals, integral=False)
    assert repr(released) == repr(expected)


@settings(max_examples=examples(5), deadline=None)
@given(pairs=boxes(st.one_of(SMALL_INTEGERS, INTEGERS)), step=st.sampled_from([1, 2, 5, 7, 1000, 2**40, INT64.max]))
def test_a_grid_on_whole_numbers_is_exact(pairs: list[tuple[int, int]], step: int) -> None:
    for (low, high), released in zip(pairs, snap(RoundingGrid(step), pairs, integral=True), strict=True):
        expected = (low // step * step, -(-high // step) * step)
        representable = INT64.min <= expected[0] and expected[1] <= INT64.max
        assert released == (expected if representable else None)


def test_a_single_value_stays_only_on_the_grid() -> None:
    assert snap(RoundingGrid(5), [(20, 20), (22, 22)], integral=True) == [(20, 20), (20, 25)]
    assert snap(RoundingGrid(0.1), [(0.3, 0.3), (0.33, 0.33)], integral=False) == [(0.3, 0.3), (0.3, 0.4)]


def days(date: str) -> int:
    return datetime.date.fromisoformat(date).toordinal() - datetime.date(1970, 1, 1).toordinal()


@pytest.mark.parametrize(
    ("units", "low", "high", "expected"),
    [
        (["week"], "2024-01-01", "2024-01-07", ("2024-01-01", "2024-01-07")),
        (["week"], "1969-12-30", "1970-01-01", ("1969-12-29", "1970-01-04")),
        (["week"], "2024-01-07", "2024-01-08", None),
        (["month"], "2024-02-01", "2024-02-03", ("2024-02-01", "2024-02-29")),
        (["month", "quarter"], "1969-11-30", "1969-12-01", ("1969-10-01", "1969-12-31")),
        (["quarter", "year"], "2023-03-31", "2023-04-01", ("2023-01-01", "2023-12-31")),
        (["month", "year", "decade"], "1960-01-01", "1969-12-31", ("1960-01-01", "1969-12-31")),
        (["month", "year", "decade"], "1969-12-31", "1970-01-01", None),
        (["decade"], "2020-05-05", "2020-05-05", ("2020-05-05", "2020-05-05")),
    ],
)
def test_dates_widen_to_the_smallest_unit_that_holds_them(
    units: list[str], low: str, high: str, expected: tuple[str, str] | None
) -> None:
    released = snap(Calendar(tuple(units)), [(days(low), days(high))], integral=True)

    assert released == [None if expected is None else (days(expected[0]), days(expected[1]))]


def unit_key(date: datetime.date, unit: str) -> tuple[int, ...]:
    """Two dates are in the same unit when their keys are equal."""
    return {
        "week": date.isocalendar()[:2],
        "month": (date.year, date.month),
        "quarter": (date.year, (date.month - 1) // 3),
        "year": (date.year,),
        "decade": (date.year // 10,),
    }[unit]


@settings(max_examples=examples(5), deadline=None)
@given(
    start=st.dates(datetime.date(1600, 1, 1), datetime.date(2400, 1, 1)),
    length=st.integers(1, 4000),
    units=st.one_of(
        st.just(("week",)),
        st.lists(st.sampled_from(["month", "quarter", "year", "decade"]), min_size=1, unique=True).map(
            lambda chosen: tuple(unit for unit in ("month", "quarter", "year", "decade") if unit in chosen)
        ),
    ),
)
def test_calendar_units_agree_with_the_calendar(start: datetime.date, length: int, units: tuple[str, ...]) -> None:
    end = start + datetime.timedelta(days=length)
    (released,) = snap(Calendar(units), [(days(str(start)), days(str(end)))], integral=True)

    fitting = [unit for unit in units if unit_key(start, unit) == unit_key(end, unit)]
    if not fitting:
        assert released is None
        return
    assert released is not None
    low, high = (datetime.date(1970, 1, 1) + datetime.timedelta(days=bound) for bound in released)
    one_day = datetime.timedelta(days=1)
    key = unit_key(start, fitting[0])
    assert low <= start <= end <= high
    assert unit_key(low, fitting[0]) == unit_key(high, fitting[0]) == key
    assert unit_key(low - one_day, fitting[0]) != key
    assert unit_key(high + one_day, fitting[0]) != key


@pytest.mark.parametrize(
    ("unit", "first", "last", "name"),
    [
        ("month", "2023-01-01", "2023-01-31", "2023-01"),
        ("month", "2024-02-01", "2024-02-29", "2024-02"),
        ("month", "9999-12-01", "9999-12-31", "9999-12"),
        ("quarter", "2023-01-01", "2023-03-31", "2023-Q1"),
        ("quarter", "1969-10-01", "1969-12-31", "1969-Q4"),
        ("year", "1964-01-01", "1964-12-31", "1964"),
        ("decade", "1950-01-01", "1959-12-31", "1950s"),
    ],
)
def test_a_period_has_the_name_that_people_know(unit: str, first: str, last: str, name: str) -> None:
    low, high = np.array([days(first)]), np.array([days(last)])
    assert Calendar((unit,)).names(low, high) == [name]
    assert period_days(name) == (datetime.date.fromisoformat(first), datetime.date.fromisoformat(last))
    assert Calendar((unit,)).names(low, high - 1) == Calendar((unit,)).names(low + 1, high) == [None]


def test_only_units_of_the_calendar_have_names() -> None:
    january = np.array([days("2023-01-01")]), np.array([days("2023-01-31")])
    assert Calendar(("quarter", "year")).names(*january) == [None]
    assert Calendar(("week",)).names(np.array([days("2023-01-02")]), np.array([days("2023-01-08")])) == [None]


@pytest.mark.parametrize("text", ["2023-13", "2023-00", "2023-Q5", "0000", "0000s", "1955s", "23", "2023-1", "-2023"])
def test_other_texts_name_no_period(text: str) -> None:
    assert period_days(text) is None


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Intervals((), column="age"), "column 'age': intervals without a width"),
        (lambda: Intervals((5, 12), column="age"), "width 12 do not consist of intervals of width 5"),
        (lambda: Intervals((10, 5), column="age"), "width 5 do not consist of intervals of width 10"),
        (lambda: Intervals((5, 5), column="age"), "width 5 do not consist of intervals of width 5"),
        (lambda: Intervals((0, 5), column="age"), "an interval's width must be a number above 0"),
        (lambda: Intervals((math.inf,), column="age"), "an interval's width must be a number above 0"),
        (lambda: Intervals((0.5, 1)).check(integral=True), "an interval's width is 0.5, but the column holds whole"),
        (lambda: RoundingGrid(0, column="age"), "column 'age': round must be a number above 0"),
        (lambda: RoundingGrid(math.nan, column="age"), "column 'age': round must be a number above 0"),
        (
            lambda: RoundingGrid(2.5, column="age").check(integral=True),
            "column 'age': round is 2.5, but the column holds",
        ),
        (lambda: RoundingGrid(2**63).check(integral=True), "but the column holds whole numbers"),
        (lambda: Calendar((), column="born"), "column 'born': a calendar without a unit"),
        (lambda: Calendar(("month", "week"), column="born"), "column 'born': weeks cross the ends of months and years"),
        (lambda: Calendar(("year", "month"), column="born"), "column 'born': calendar units must ascend"),
        (lambda: Calendar(("month", "month")), "calendar units must ascend"),
        (lambda: Calendar(("months",), column="born"), "unknown calendar unit of column 'born' 'months'. Did you mean"),
        (lambda: Calendar(("year",), column="born").check(integral=False), "a calendar needs a column of dates"),
    ],
)
def test_steps_that_cannot_nest_are_refused(make: Callable[[], object], problem: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(problem)) as caught:
        make()

    assert caught.value.exit_code == 2


def test_decimal_widths_nest_as_they_are_written() -> None:
    assert Intervals([0.1, 0.3, 0.6]).widths == (0.1, 0.3, 0.6)  # type: ignore[arg-type]
    Intervals((5, 10, 20)).check(integral=True)
    RoundingGrid(5.0).check(integral=True)


@given(rows=taxonomy_rows(), values=st.lists(st.text("ab", max_size=4), max_size=8))
def test_every_taxonomy_that_is_read_or_derived_is_a_tree(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]], values: list[str]
) -> None:
    path = tmp_path_factory.mktemp("tree") / "tree.csv"
    path.write_text(as_csv(rows), "utf-8")
    assert read_taxonomy(path, "column").is_tree()
    assert flat(values, "column").is_tree()
    assert prefix(values, [1, 3], "column").is_tree()
