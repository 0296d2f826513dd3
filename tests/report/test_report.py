"""The report of a release: what it counts, what it says, that it is whole and safe, and that it tells no more."""

from __future__ import annotations

import datetime
import json
import random
import re
import stat
import tomllib
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.csv
import pytest
from browser import Browser, chromium
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.cli import main
from sfumato.errors import OutputError, UsageError
from sfumato.pictures.theme import DARK, LIGHT
from sfumato.policy import InputOptions, Policy
from sfumato.report.figures import size_edges
from sfumato.report.html import element, joined, name
from sfumato.report.release_facts import association, facts_of
from sfumato.report.requirement_rows import requirement_rows
from sfumato.report.sentences import left_out, verdict
from sfumato.report.stylesheet import colour_names
from sfumato.report.value_cells import (
    DASH,
    ReleasedValuesOfColumn,
    ValueCells,
    cells_of,
    cross_tabulate,
    in_their_order,
    median_width,
    values_of,
)
from sfumato.tables.sources.source import open_source
from sfumato.texts import ENGLISH

SECTIONS = [
    "verdict", "risks", "class-sizes", "loss", "columns", "taxonomies", "classes", "pairs", "diversity", "policy",
    "certificate",
]  # fmt: skip
QUASI = ["age", "sex", "zip", "city", "admitted"]
TAXONOMY = """\
Wien,East,Austria,*
Linz,West,Austria,*
Graz,East,Austria,*
Roma,Lazio,Italy,*
Pisa,Toscana,Italy,*
Bari,Puglia,Italy,*
"""
BOUND = 2_000_000


def patients(count: int = 260, seed: int = 1) -> pa.Table:
    drawn = random.Random(seed)
    cities = [line.split(",")[0] for line in TAXONOMY.split()]
    return pa.table(
        {
            "name": [f"person-{row}" for row in range(count)],
            "age": [min(max(round(drawn.gauss(50, 18)), 0), 99) for _ in range(count)],
            "sex": [drawn.choice(["female", "male"]) for _ in range(count)],
            # No number on the page can be taken for one of these.
            "zip": [f"{drawn.choice(['QA', 'QB', 'XZ'])}{drawn.randrange(100):02}" for _ in range(count)],
            "city": [drawn.choice(cities) if drawn.random() > 0.05 else None for _ in range(count)],
            "admitted": [f"20{drawn.randrange(10, 14)}-{drawn.randrange(1, 13):02}-11" for _ in range(count)],
            "diagnosis": [drawn.choice(["flu", "flu", "cold", "ulcer", "cancer"]) for _ in range(count)],
            "ward": [drawn.choice(["A", "B", "C"]) for _ in range(count)],
        }
    )


def policy(folder: Path, **more: Any) -> Policy:
    (folder / "city.csv").write_text(TAXONOMY)
    columns: dict[str, Any] = {column: {"role": "quasi-identifier"} for column in QUASI}
    columns["zip"]["taxonomy"] = {"prefix": [1, 2]}
    columns["city"]["taxonomy"] = "city.csv"
    columns |= {"name": {"role": "identifier"}, "diagnosis": {"role": "sensitive"}, "ward": {"role": "other"}}
    return Policy.from_dict({"columns": columns, "privacy": {"k": 4}, **more}, folder)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One release of every kind with its page: NAME.html, NAME.csv."""
    folder = tmp_path_factory.mktemp("pages")
    table = patients()
    frequency = {"attribute": "diagnosis", "kind": "frequency", "l": 2}
    kinds: dict[str, dict[str, Any]] = {
        "plain": {},
        "diverse": {"privacy": {"k": 4, "sensitive": [frequency, {**frequency, "kind": "distinct"}]}},
        "suppressed": {
            "privacy": {"k": 4, "sensitive": [{**frequency, "l": 3}]},
            "release": {"max_suppressed_fraction": 0.2},
        },
        "bounds": {"release": {"form": "bounds", "keep_order": True}},
        "persons": {"privacy": {"k": 3, "person": "name"}},
    }
    for kind, more in kinds.items():
        release = quietly(table, policy(folder, **more))
        release.write(folder / f"{kind}.csv")
        release.report(folder / f"{kind}.html")
    anatomy = policy(folder, privacy={"sensitive": [frequency]}, method={"name": "anatomy"}).to_dict()
    anatomy["columns"]["ward"] = {"role": "identifier"}
    release = quietly(table, Policy.from_dict(anatomy, folder))
    release.write(folder / "anatomy.csv")
    release.report(folder / "anatomy.html")
    joint = policy(folder, privacy={"k": 4, "joint": True, "sensitive": [frequency]}).to_dict()
    joint["columns"]["ward"] = {"role": "sensitive"}
    quietly(table, Policy.from_dict(joint, folder)).report(folder / "joint.html")
    quietly(
        table.select(["age"]), Policy.from_dict({"columns": {"age": {"role": "quasi-identifier"}}, "privacy": {"k": 4}})
    ).report(folder / "single.html")
    return folder


KINDS = ["plain", "diverse", "suppressed", "bounds", "persons", "anatomy", "joint", "single"]


def quietly(data: object, asked: Policy) -> sfumato.Release:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sfumato.anonymize(data, asked)


class Read(HTMLParser):
    """A page as a program sees it: what is open where, which attributes there are, and the text."""

    VOID = frozenset({"meta", "br", "hr", "path", "rect"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sections: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text: dict[str, str] = {}
        self.pictures: list[list[str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags[tag] += 1
        self.attributes |= set(found)
        if tag == "section":
            self.sections.append(found["id"] or "")
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes |= {one for one, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        where = self.sections[-1] if self.sections else "head"
        if "style" not in self.open:
            self.text[where] = self.text.get(where, "") + data


def read(file: Path) -> Read:
    return Read(file.read_text("utf-8"))


# What is said


def summary(**more: Any) -> dict[str, Any]:
    k = {"requirement": "k-anonymity, k = 10", "holds": True, "value": 10}
    return {"records": 1000, "released": 997, "suppressed": 3, "blur": 0.05, "audit": [k], **more}


@pytest.mark.parametrize(
    "more, said",
    [
        (
            {},
            "k = 10 holds, checked again from the released file; 3 in 1,000 records left out; 5% of a column left "
            "open on average.",
        ),
        (
            {"bound": 0.036, "gcp": 0.04, "released": 1000, "suppressed": 0},  # an old certificate has a bound
            "k = 10 holds, checked again from the released file; no record left out; 5% of a column left open on "
            "average.",
        ),
        ({"released": 0}, "The release has no records, so it says nothing about anybody."),
        (
            {"audit": [{"requirement": "k-anonymity, k = 10", "holds": False, "value": 4}]},
            "The release does not meet its policy. Requirements that fail, checked from the released file: "
            "k-anonymity, k = 10. Do not share it.",
        ),
        (
            {
                "audit": [
                    *summary()["audit"],
                    {"requirement": "entropy l-diversity of 'd', l = 2", "holds": True, "value": 3},
                ]
            },
            "k = 10 and the requirement on sensitive columns hold, checked again",
        ),
    ],
)
def test_the_verdict_is_one_sentence(more: dict[str, Any], said: str) -> None:
    asked = Policy.from_dict({"columns": {"a": {"role": "quasi-identifier"}}, "privacy": {"k": 10}})
    assert said in verdict(summary(**more), asked, "released file", ENGLISH)


@pytest.mark.parametrize(
    "names, which",
    [
        (["k-anonymity, k = 10, in persons"], "a requirement that cannot be checked from the released file may fail"),
        (
            ["k-anonymity, k = 10, in persons", "entropy l-diversity of 'd', l = 2"],
            "2 requirements that cannot be checked from the released file may fail",
        ),
    ],
)
def test_a_verdict_that_leaves_something_open_does_not_say_that_it_holds(names: list[str], which: str) -> None:
    asked = Policy.from_dict({"columns": {"a": {"role": "quasi-identifier"}}, "privacy": {"k": 10}})
    lines = [{"requirement": name, "holds": None, "value": 12, "reason": "nobody knows"} for name in names]
    held = {"requirement": "distinct l-diversity of 'd', l = 2", "holds": True, "value": 3}
    assert verdict(summary(audit=[*lines, held]), asked, "released file", ENGLISH) == (
        f"Nothing fails, but {which}: {'; '.join(names)}. "
        "3 in 1,000 records left out; 5% of a column left open on average."
    )
    failed = verdict(summary(audit=[*lines, {**held, "holds": False}]), asked, "released file", ENGLISH)
    assert failed.startswith("The release does not meet its policy.")
    assert "in persons" not in failed


def test_a_verdict_without_k_names_the_requirement() -> None:
    asked = Policy.from_dict({"columns": {"a": {"role": "quasi-identifier"}}})
    held = [{"requirement": "frequency l-diversity of 'd', l = 3", "holds": True, "value": 3.0}]
    said = verdict(summary(audit=held), asked, "released file", ENGLISH, separated=True)
    assert said == (
        "Frequency l-diversity of 'd', l = 3 holds, checked again from the released file; 3 in 1,000 records left out; "
        "quasi-identifiers released unchanged."
    )


@pytest.mark.parametrize(
    "suppressed, records, said",
    [
        (0, 10, "no record left out"),
        (1, 1000, "1 in 1,000 records left out"),
        (111, 20_000, "6 in 1,000 records left out"),
        (200, 20_000, "1 in 100 records left out"),
        (1, 1_000_000, "1 in 1,000,000 records left out"),
        (3, 100, "3% of the records left out"),
        (125, 1000, "12.5% of the records left out"),
    ],
)
def test_records_that_were_left_out_are_told_as_people_say_it(suppressed: int, records: int, said: str) -> None:
    assert left_out(suppressed, records, ENGLISH) == said


@pytest.mark.parametrize(
    "texts, ordered",
    [
        (["March", "January", "December"], ["January", "March", "December"]),
        (["Sun", "Mon", "Fri"], ["Mon", "Fri", "Sun"]),
        (["20***", "10115", "101**"], ["101**", "10115", "20***"]),
        (["20-29", "5-9", "100+"], ["5-9", "20-29", "100+"]),
        (["flu", "cold", "7"], ["flu", "cold", "7"]),
    ],
)
def test_values_stand_in_an_order_of_their_own_if_they_have_one(texts: list[str], ordered: list[str]) -> None:
    assert [texts[value] for value in in_their_order(range(len(texts)), texts)] == ordered


def test_a_percentage_has_three_digits_of_the_share_and_never_rounds_to_nothing_or_to_all() -> None:
    shares = [0.0, 0.0004, 0.0005, 0.05, 0.1234, 0.9996, 1.0]
    assert [ENGLISH.percent(share) for share in shares] == [
        "0%", "less than 0.1%", "0.1%", "5%", "12.3%", "more than 99.9%", "100%",
    ]  # fmt: skip


def test_whatever_is_no_markup_is_escaped() -> None:
    hostile = "<script>alert('&')</script>\u202e"
    assert element("p", hostile, title=hostile) == (
        '<p title="&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;\ufffd">'
        "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;\ufffd</p>"
    )
    assert joined([element("b", "x"), "<"]) == "<b>x</b>&lt;"
    assert name("x" * 500).count("x") == 119 + 500


# What is counted


def numbers(
    texts: list[str | None], records: list[int], column: dict[str, Any] | None = None
) -> ReleasedValuesOfColumn:
    from sfumato.policy import ColumnSettings

    said = ColumnSettings(role="quasi-identifier", **(column or {}))
    return values_of("age", "quasi-identifier", texts, np.array(records, np.int64), said, None)


def counted(cells: ValueCells, values: ReleasedValuesOfColumn) -> dict[str, float]:
    return dict(zip(cells.names, cells.totals(values.records).tolist(), strict=True))


def test_a_range_is_spread_evenly_over_the_cells_that_it_reaches_over() -> None:
    values = numbers(["[20..29]", "[25..44]", "31", "*", None], [10, 20, 5, 7, 3])
    cells = cells_of(values, 3)
    assert counted(cells, values) == {f"20 {DASH} 29": 15, f"30 {DASH} 39": 15, f"40 {DASH} 49": 5, "*": 7, "null": 3}
    assert cells.special == 2


def test_dates_fall_into_months_quarters_or_years_as_there_is_room() -> None:
    values = numbers(["2020-01-05", "[2020-02-01..2020-04-30]", "2020-12-31"], [4, 9, 2], {"type": "date"})
    monthly = counted(cells_of(values, 12), values)
    assert list(monthly)[:2] == ["2020-01", "2020-02"]
    assert monthly["2020-03"] == pytest.approx(9 * 31 / 90)
    assert counted(cells_of(values, 6), values) == {
        "2020 Q1": pytest.approx(4 + 9 * 60 / 90), "2020 Q2": pytest.approx(9 * 30 / 90), "2020 Q3": 0, "2020 Q4": 2,
    }  # fmt: skip
    assert counted(cells_of(values, 2), values) == {"2020": 15}


def test_rare_categories_share_a_cell() -> None:
    values = numbers(["a", "b", "c", "d", "*"], [5, 9, 1, 2, 4], {"type": "categorical"})
    assert counted(cells_of(values, 3), values) == {"b": 9, "a": 5, "2 others": 3, "*": 4}
    assert counted(cells_of(values, 4), values) == {"b": 9, "a": 5, "d": 2, "c": 1, "*": 4}


def ranges() -> st.SearchStrategy[str]:
    ends = st.tuples(st.integers(-50, 50), st.integers(0, 60))
    return ends.map(lambda one: f"[{one[0]}..{one[0] + one[1]}]" if one[1] else str(one[0]))


@given(
    rows=st.lists(st.tuples(st.one_of(ranges(), st.just("*")), ranges(), st.integers(1, 9)), min_size=1, max_size=12),
    most=st.integers(2, 12),
)
def test_pairs_are_counted_as_records_spread_over_both_ranges(rows: list[tuple[str, str, int]], most: int) -> None:
    """Against every value of every range, one by one."""
    sides = []
    for side in (0, 1):
        texts = list(dict.fromkeys(row[side] for row in rows))
        records = [sum(row[2] for row in rows if row[side] == text) for text in texts]
        values = numbers(list(texts), records)
        sides.append((texts, values, cells_of(values, most)))
    places = [np.array([texts.index(row[side]) for row in rows]) for side, (texts, _, _) in enumerate(sides)]
    sizes = np.array([row[2] for row in rows])
    found = cross_tabulate(sides[0][2], places[0], sides[1][2], places[1], sizes)
    expected: Counter[tuple[str, str]] = Counter()
    for one, other, many in rows:
        homes = [_homes(text, cells) for text, cells in ((one, sides[0][2]), (other, sides[1][2]))]
        for first, first_share in homes[0].items():
            for second, second_share in homes[1].items():
                expected[first, second] += many * first_share * second_share  # type: ignore[assignment]
    shown = {
        (x, y): found[i, j]
        for i, x in enumerate(sides[0][2].names)
        for j, y in enumerate(sides[1][2].names)
        if found[i, j]
    }
    assert shown == pytest.approx({pair: many for pair, many in expected.items() if many})
    for _, values, cells in sides:
        assert cells.totals(values.records).sum() == pytest.approx(values.total)
        assert len(cells.names) - cells.special <= most


def _homes(text: str, cells: ValueCells) -> dict[str, float]:
    """Cells of a released text with their shares, by the whole numbers that it leaves open."""
    if text == "*":
        return {"*": 1.0}
    low, high = (int(end) for end in (text[1:-1].split("..") if text[0] == "[" else (text, text)))
    every = range(low, high + 1)
    found: Counter[str] = Counter()
    for number in every:
        for cell in cells.names:
            ends = re.fullmatch(rf"(-?\d+)(?: {DASH} (-?\d+))?", cell)
            if ends and int(ends[1]) <= number <= int(ends[2] or ends[1]):
                found[cell] += 1
    return {cell: many / len(every) for cell, many in found.items()}


def test_the_width_of_ranges_is_that_of_half_of_their_records() -> None:
    assert median_width(numbers(["[10..19]", "[20..24]", "7", "[0..50]"], [3, 4, 100, 1])) == 4
    assert median_width(numbers(["[10..19]", "[20..24]"], [5, 4])) == 9
    assert median_width(numbers(["1", "2"], [5, 4])) is None
    assert median_width(numbers(["[2020-01-01..2020-01-11]"], [5], {"type": "date"})) == 10


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=60))
def test_every_size_of_a_class_has_a_bar(sizes: list[int]) -> None:
    edges, _ = size_edges(np.array(sizes))
    assert edges[0] < min(sizes)
    assert max(sizes) < edges[-1]
    assert np.histogram(sizes, edges)[0].sum() == len(sizes)
    assert (edges % 1 == 0.5).all()


def test_columns_that_determine_each_other_are_the_most_telling_pair() -> None:
    assert association(np.diag([3.0, 4.0, 5.0])) == pytest.approx(1)
    assert association(np.outer([1.0, 2.0], [3.0, 4.0])) == pytest.approx(0)
    assert association(np.array([[5.0, 3.0]])) == 0


def rows_of(file: Path) -> list[dict[str, str]]:
    import csv

    with file.open(newline="") as text:
        return list(csv.DictReader(text))


@pytest.mark.not_quick
@pytest.mark.parametrize("kind", ["plain", "diverse", "suppressed", "bounds", "persons"])
def test_facts_are_what_a_group_by_of_the_file_gives(pages: Path, kind: str) -> None:
    rows = rows_of(pages / f"{kind}.csv")
    asked = policy(pages, release={"form": "bounds"} if kind == "bounds" else {})
    facts = facts_of(open_source(pages / f"{kind}.csv", InputOptions()), None, asked, {})
    groups = oracle.classes(rows, QUASI)
    assert Counter(facts.sizes.tolist()) == Counter(len(group) for group in groups.values())
    assert [column.name for column in facts.columns] == [*QUASI, "diagnosis", "ward"]
    for column in facts.columns:
        counts = {text or None: many for text, many in Counter(row[column.name] for row in rows).items()}
        assert dict(zip(column.texts, column.records.tolist(), strict=True)) == counts
    (diversity,) = facts.diversity
    per_class = [Counter(row["diagnosis"] for row in group) for group in groups.values()]
    shares = sorted((max(one.values()) / sum(one.values()), len(one), sum(one.values())) for one in per_class)
    found = sorted(zip(diversity.share, diversity.distinct, diversity.sizes, strict=True))
    assert np.array(found) == pytest.approx(np.array(shares))
    assert diversity.revealed == sum(sum(one.values()) for one in per_class if len(one) == 1)
    assert diversity.commonest == pytest.approx(max(Counter(row["diagnosis"] for row in rows).values()) / len(rows))
    for pair in facts.pairs:
        assert pair.records.sum() == pytest.approx(len(rows))
        if {pair.x, pair.y} == {"sex", "diagnosis"}:
            found = {(x, y): pair.records[i, j] for i, x in enumerate(pair.x_names) for j, y in enumerate(pair.y_names)}
            both = Counter((row["sex"], row["diagnosis"]) for row in rows)
            assert {key: many for key, many in found.items() if many} == both
    assert len(facts.pairs) == 6


@pytest.mark.not_quick
def test_facts_of_two_tables_are_those_of_the_groups(pages: Path) -> None:
    first, second = (open_source(pages / f"{name}.csv", InputOptions()) for name in ("anatomy", "anatomy.sensitive"))
    certified = json.loads((pages / "anatomy.csv.sfumato.json").read_text())
    facts = facts_of(first, second, Policy.from_dict(certified["policy"], pages), {})
    counts: dict[str, Counter[str]] = {}
    for row in rows_of(pages / "anatomy.sensitive.csv"):
        counts.setdefault(row["group"], Counter())[row["diagnosis"]] += int(row["count"])
    (diversity,) = facts.diversity
    expected = sorted((max(one.values()) / sum(one.values()), sum(one.values())) for one in counts.values())
    assert np.array(sorted(zip(diversity.share, diversity.sizes, strict=True))) == pytest.approx(np.array(expected))
    assert diversity.limit == 0.5
    total: Counter[str | None] = Counter()
    for one in counts.values():
        total.update(one)
    (diagnosis,) = (column for column in facts.columns if column.name == "diagnosis")
    assert dict(zip(diagnosis.texts, diagnosis.records.tolist(), strict=True)) == total


# The page


@pytest.mark.parametrize("kind", KINDS)
def test_every_section_is_there_in_its_order(pages: Path, kind: str) -> None:
    found = read(pages / f"{kind}.html")
    assert found.sections == SECTIONS
    assert all(found.text[section].strip() for section in SECTIONS)
    assert (pages / f"{kind}.html").stat().st_size < BOUND
    assert found.tags["script"] == found.tags["link"] == found.tags["img"] == 0
    assert "style" not in found.attributes  # a page that forbids inline styles can have the same elements
    assert not any(attribute.startswith("on") or attribute in ("src", "srcset") for attribute in found.attributes)


def test_the_page_says_what_the_audit_and_the_losses_say(pages: Path) -> None:
    certified = json.loads((pages / "diverse.csv.sfumato.json").read_text())
    found = read(pages / "diverse.html").text
    held = "k = 4 and all 2 requirements on sensitive columns hold, checked again from the released file"
    assert f"{held}; no record left out." in found["head"]  # without a total, since zip has prefixes
    assert set(certified["blur_by_column"]) == set(QUASI) - {"zip"}
    for column, blur in certified["blur_by_column"].items():
        assert f"{column}{ENGLISH.percent(blur)}" in found["loss"]
    assert "zipnot given" in found["loss"]
    assert certified["files"][0]["sha256"] in found["certificate"]
    assert 'kind = "distinct"' in found["policy"]
    assert "The policy allows 50%." in found["diversity"]


@pytest.mark.parametrize(
    "kind, section, said",
    [
        ("plain", "risks", "diagnosis is released as it is"),
        ("plain", "risks", "ward is released unchanged"),
        ("diverse", "risks", "Different values may mean the same"),
        ("diverse", "risks", "all classes together tell which values go with them"),
        ("diverse", "risks", "can try out which sensitive values would have led to this release"),
        ("anatomy", "risks", "all groups together tell which values go with them"),
        ("suppressed", "risks", "Records that were left out"),
        ("persons", "risks", "Persons cannot be counted again"),
        ("persons", "verdict", "k-anonymity, k = 3, in persons"),
        ("bounds", "risks", "Rows are in the order of the original"),
        ("anatomy", "head", "quasi-identifiers released unchanged"),
        ("anatomy", "verdict", "Identity is not protected"),
        ("anatomy", "classes", "groups are not rectangles"),
        ("anatomy", "class-sizes", "groups"),
        ("joint", "verdict", "jointly"),
        ("single", "classes", "a single quasi-identifier"),
        ("single", "diversity", "no sensitive column"),
        ("bounds", "policy", 'form = "bounds"'),
        ("plain", "taxonomies", "Austria"),
        ("plain", "taxonomies", "zip"),
    ],
)  # fmt: skip
def test_the_page_says_what_is_special_of_a_release(pages: Path, kind: str, section: str, said: str) -> None:
    assert said in read(pages / f"{kind}.html").text[section]


def test_the_page_says_how_many_records_show_ranges_that_end_at_true_values(tmp_path: Path) -> None:
    release = sfumato.anonymize(pa.table({"age": [21, 23, 34, 34, 48, 50]}), quasi_identifiers=["age"], k=2)
    assert release.data["age"].to_pylist() == ["34", "34", "[21..23]", "[21..23]", "[48..50]", "[48..50]"]
    release.report(tmp_path / "page.html")
    assert "66.7% of the records show such a range" in read(tmp_path / "page.html").text["risks"]


@pytest.mark.parametrize(
    "widened", [{"round": {"age": 5}}, {"taxonomy": {"age": {"intervals": [10, 50]}}}, {"boxes": "regions"}]
)
def test_ranges_that_were_widened_do_not_end_at_true_values(tmp_path: Path, widened: dict[str, Any]) -> None:
    table = pa.table({"age": [21, 23, 34, 36, 58, 59, 71, 75]})
    for more, told in (({}, True), (widened, False)):
        release = sfumato.anonymize(table, quasi_identifiers=["age"], k=2, method="mondrian", **more)
        assert any(value.startswith("[") for value in release.data.to_pydict()["age"])
        release.report(tmp_path / "page.html")
        assert ("Ranges end at true values" in read(tmp_path / "page.html").text["risks"]) == told


def test_bounds_are_no_columns_of_their_own(pages: Path) -> None:
    assert "age_min" not in read(pages / "bounds.html").text["columns"]


def test_a_picture_has_the_colours_of_the_page_and_no_other(pages: Path) -> None:
    text = (pages / "plain.html").read_text("utf-8")
    body = text[text.index("</style>") :]
    assert re.findall(r'(?:fill|stroke)="#', body) == []
    used = set(re.findall(r"var\(--([a-z0-9-]+)\)", body))
    assert {"ink", "soft", "series-0"} <= used <= set(colour_names(LIGHT))


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_no_two_colours_of_a_theme_are_the_same(theme: Any) -> None:
    colours = colour_names(theme)
    assert len(set(colours.values())) == len(colours)


# In a browser


RIGHT_ENDS = "[...document.querySelectorAll('main p, main figure, h2')].map(one => one.getBoundingClientRect().right)"


@pytest.mark.parametrize("kind", KINDS)
def test_a_browser_shows_the_page_and_asks_for_nothing(browser: Browser, pages: Path, kind: str) -> None:
    file = pages / f"{kind}.html"
    page = browser.open(file)
    assert page.evaluate("[...document.querySelectorAll('section')].map(one => one.id)") == SECTIONS
    for width in (400, 1000, 1600):
        page.resize(width)
        assert page.evaluate("innerWidth") == width
        assert page.evaluate("[...document.querySelectorAll('section')].every(one => one.offsetHeight > 40)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert max(page.evaluate(RIGHT_ENDS)) <= width
    assert page.requests == [file.absolute().as_uri()]
    assert page.messages == []


def test_the_contents_are_at_the_side_where_there_is_room(browser: Browser, pages: Path) -> None:
    page = browser.open(pages / "plain.html")
    box = "document.querySelector('{}').getBoundingClientRect().{}"
    for width, beside in ((400, False), (1000, False), (1600, True)):
        page.resize(width)
        ends = page.evaluate(box.format("nav", "right")), page.evaluate(box.format("nav", "bottom"))
        starts = page.evaluate(box.format("main", "left")), page.evaluate(box.format("main", "top"))
        assert (ends[0] <= starts[0], ends[1] <= starts[1]) == (beside, not beside)


def test_the_verdict_is_the_largest_text_of_the_page(browser: Browser, pages: Path) -> None:
    page = browser.open(pages / "plain.html")
    sizes = "[...document.querySelectorAll('{}')].map(one => parseFloat(getComputedStyle(one).fontSize))"
    for width in (400, 1000, 1600):
        page.resize(width)
        (verdict,) = page.evaluate(sizes.format(".verdict .word"))
        assert verdict >= 32
        assert verdict > max(page.evaluate(sizes.format("h1, h2, p:not(.word), td, dd, svg text")))


def test_a_page_is_light_or_dark_as_the_reader_has_it_and_light_in_print(browser: Browser, pages: Path) -> None:
    page = browser.open(pages / "plain.html")
    ground = "getComputedStyle(document.body).backgroundColor"
    bar = "getComputedStyle(document.querySelector('#columns path[fill=\"var(--series-0)\"]')).fill"
    seen = []
    for scheme, kind in (("light", "screen"), ("dark", "screen"), ("dark", "print")):
        page.media(scheme=scheme, kind=kind)
        seen.append((page.evaluate(ground), page.evaluate(bar)))
    light, dark = ((_rgb(theme.background), _rgb(theme.series[0])) for theme in (LIGHT, DARK))
    assert seen == [light, dark, light]
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"


def _rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[place : place + 2], 16)) for place in (1, 3, 5))})"


def test_the_keyboard_reaches_and_opens_everything(browser: Browser, pages: Path) -> None:
    page = browser.open(pages / "plain.html")
    page.press("Tab", 9)
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(400):
        page.press("Tab", 9)
        tag = page.evaluate("document.activeElement.tagName + ' ' + document.activeElement.className")
        if tag.startswith("BODY"):
            break
        reached.add(tag.strip())
    assert {"A", "SUMMARY", "PRE", "DIV table", "DIV wide"} <= reached
    page.evaluate("document.querySelector('summary').focus()")
    assert not page.evaluate("document.querySelector('details').open")
    page.press("Enter", 13)
    assert page.evaluate("document.querySelector('details').open")


def test_a_screen_reader_meets_landmarks_headings_and_described_pictures(browser: Browser, pages: Path) -> None:
    page = browser.open(pages / "plain.html")
    met = page.names()
    roles = Counter(role for role, _ in met)
    assert roles["main"] == roles["navigation"] == roles["banner"] == 1
    assert roles["heading"] == 1 + len(SECTIONS)
    pictures = [name for role, name in met if role in ("image", "img", "graphics-document")]
    assert len(pictures) == page.evaluate("document.querySelectorAll('svg:not([aria-hidden])').length") > 10
    assert all(pictures)
    every = "[...document.querySelectorAll('svg:not([aria-hidden])')]"
    described = f"{every}.every(one => one.querySelector('desc').textContent.length > 20)"
    assert page.evaluate(described)
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.evaluate("[...document.querySelectorAll('th')].every(one => one.scope)")


# Hostile input

HOSTILE = [
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '" onload="alert(1)',
    "'; DROP TABLE",
    "\u202egnirts desrever",
    "\u05d0\u05d1 \u200f mark",
    "a&b <b>c</b>",
    "{{7*7}} ${7*7}",
    "x" * 3000,
    "tab\there",
]


def hostile_table() -> pa.Table:
    drawn = random.Random(3)
    quasi = [f"{text} {place}" for place, text in enumerate(HOSTILE[:4])]
    columns: dict[str, Any] = {column: [drawn.choice(HOSTILE) for _ in range(200)] for column in quasi}
    columns[HOSTILE[4]] = [drawn.choice(HOSTILE) for _ in range(200)]
    columns[HOSTILE[8]] = [drawn.choice(["p", "q"]) for _ in range(200)]
    return pa.table(columns)


def test_hostile_names_and_values_stay_text(browser: Browser, tmp_path: Path) -> None:
    table = hostile_table()
    quasi = table.column_names[:4]
    columns: dict[str, Any] = {column: {"role": "quasi-identifier"} for column in quasi}
    columns |= {table.column_names[4]: {"role": "sensitive"}, table.column_names[5]: {"role": "other"}}
    release = quietly(table, Policy.from_dict({"columns": columns, "privacy": {"k": 3}}))
    for file, write in (("shared.html", release.report), ("private.html", release.report_private)):
        write(tmp_path / file)
        found = read(tmp_path / file)
        assert found.tags["script"] == found.tags["img"] == found.tags["b"] == 0
        assert not any(attribute.startswith("on") for attribute in found.attributes)
        text = (tmp_path / file).read_text("utf-8")
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f]", text)
        for width in (400, 1600):
            page = browser.open(tmp_path / file, width=width)
            assert (page.messages, len(page.requests)) == ([], 1)
            assert page.evaluate("document.querySelectorAll('script, img, iframe, object, link').length") == 0
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert read(tmp_path / "shared.html").sections == SECTIONS


def test_five_hundred_columns_and_a_hundred_thousand_strings_make_a_page_of_usual_size(
    browser: Browser, tmp_path: Path
) -> None:
    count = 100_000
    table = pa.table(
        {"group": [str(row % 7) for row in range(count)], "code": [f"secret-{row:06}" for row in range(count)]}
    )
    found = sfumato.anonymize(table, quasi_identifiers=["group"], other="keep", accept_linkable=["code"], k=5)
    found.report(tmp_path / "long.html")
    drawn = random.Random(2)
    many = pa.table({f"column-{place}": [drawn.randrange(3) for _ in range(60)] for place in range(500)})
    quasi = many.column_names[:480]
    wide = sfumato.anonymize(many, quasi_identifiers=quasi, other="keep", k=5, method="hilbert-fast")
    wide.report(tmp_path / "wide.html")
    for file in ("long.html", "wide.html"):
        assert (tmp_path / file).stat().st_size < BOUND
        assert read(tmp_path / file).sections == SECTIONS
        page = browser.open(tmp_path / file, width=400)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert page.messages == []
    text = read(tmp_path / "wide.html").text
    assert all(f"column-{place}" in text["loss"] for place in range(480))
    assert "column-499" in text["columns"]


def test_a_release_without_records_has_a_whole_page(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "original.csv").write_text("age,sex\n1,m\n2,f\n")
    (tmp_path / "release.csv").write_text("age,sex\n")
    made = sfumato.report_release(
        tmp_path / "original.csv", tmp_path / "release.csv", tmp_path / "r.html", quasi_identifiers=["age", "sex"], k=2
    )
    assert repr(made) == "<ReleaseReport of 0 records in 0 classes>"
    assert made.summary()["suppressed"] == 2
    found = read(tmp_path / "r.html")
    assert found.sections == SECTIONS
    assert "The release has no records" in found.text["head"]
    page = browser.open(tmp_path / "r.html")
    assert (page.messages, len(page.requests)) == ([], 1)


# Leaks


def written(folder: Path, table: pa.Table) -> Path:
    """The table, its policy and its release."""
    pyarrow.csv.write_csv(table, folder / "original.csv")
    asked = policy(folder)
    asked.save(folder / "policy.toml")
    quietly(folder / "original.csv", asked).write(folder / "release.csv")
    return folder / "release.csv"


def changed(table: pa.Table, row: int, **cells: Any) -> pa.Table:
    for column, value in cells.items():
        values = table.column(column).to_pylist()
        values[row] = value
        table = table.set_column(table.column_names.index(column), column, pa.array(values))
    return table


def test_a_record_that_changes_within_its_class_changes_nothing_on_the_page(tmp_path: Path) -> None:
    table = patients()
    release = written(tmp_path, table)
    original = tmp_path / "original.csv"
    asked = Policy.load(tmp_path / "policy.toml")
    before = sfumato.report_release(original, release, policy=asked)
    ranges = [row["age"] for row in rows_of(release) if row["age"].startswith("[")]
    low, high = min(
        (
            (int(low), int(high))
            for low, high in (text[1:-1].split("..") for text in ranges)
            if int(high) - int(low) > 1
        ),
        key=lambda ends: ends[0] - ends[1],
    )
    ages = table.column("age").to_pylist()
    inner = next(row for row, age in enumerate(ages) if low < age < high and ages.count(age) > 1)
    other = ages[inner] + (1 if ages[inner] + 1 < high else -1)
    pyarrow.csv.write_csv(changed(table, inner, age=other, sex="male"), original)
    after = sfumato.report_release(original, release, policy=asked)
    assert after.page() == before.page()
    assert after.summary() == before.summary()


def test_a_record_that_widens_a_domain_changes_nothing_on_the_page(tmp_path: Path) -> None:
    table = patients()
    release = written(tmp_path, table)
    original = tmp_path / "original.csv"
    asked = Policy.load(tmp_path / "policy.toml")
    before = sfumato.report_release(original, release, policy=asked)
    pyarrow.csv.write_csv(changed(table, 7, age=180), original)
    after = sfumato.report_release(original, release, policy=asked)
    assert after.summary() == before.summary()
    assert after.page() == before.page()


@pytest.mark.not_quick
@pytest.mark.parametrize("kind", ["plain", "diverse", "suppressed", "bounds", "persons"])
def test_no_string_of_the_original_is_on_the_page_that_is_not_released(pages: Path, kind: str) -> None:
    table = patients()
    released = {value for row in rows_of(pages / f"{kind}.csv") for value in row.values()}
    text = (pages / f"{kind}.html").read_text("utf-8")
    body = text[text.index("</head>") :]
    made = sfumato.report_release(  # its JSON
        table,
        pages / f"{kind}.csv",
        policy=Policy.from_dict(json.loads((pages / f"{kind}.csv.sfumato.json").read_text())["policy"], pages),
    )
    told = json.dumps(made.summary(), ensure_ascii=False)
    words, strings = set(re.findall(r"[\w-]+", body)), set(re.findall(r'"([^"]*)"', told))
    for column in ("name", "zip", "city"):
        hidden = {value for value in table.column(column).to_pylist() if value is not None} - released
        assert hidden or column == "city"
        assert hidden.isdisjoint(words | strings)


# Before and after


def test_the_private_page_is_marked_and_is_its_owners_alone(browser: Browser, tmp_path: Path) -> None:
    release = quietly(patients(), policy(tmp_path))
    release.report_private(tmp_path / "private.html")
    assert stat.S_IMODE((tmp_path / "private.html").stat().st_mode) == 0o600
    found = read(tmp_path / "private.html")
    text = "".join(found.text.values())
    assert found.sections == ["summary", "losses", "distributions", "differences"]
    assert f"all columns (GCP){ENGLISH.percent(release.losses.gcp)}" in found.text["losses"]
    for column, loss in release.losses.columns.items():
        assert f"{column}{ENGLISH.percent(loss)}" in found.text["losses"]
    assert '"tried"' in found.text["losses"]
    assert "Do not share this page" in found.text["head"]
    assert "Before and after: do not share" in text
    for width in (400, 1600):
        page = browser.open(tmp_path / "private.html", width=width, scheme="dark")
        assert (page.messages, len(page.requests)) == ([], 1)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_private_page_has_the_counts_of_the_original_beside_those_of_the_release(tmp_path: Path) -> None:
    table = patients()
    release = quietly(table, policy(tmp_path))
    private = release.report_private(tmp_path / "private.html")
    assert repr(private) == "<PrivateReport of 5 columns>"
    for compared in private._columns:
        assert [compared.before.sum(), compared.after.sum()] == pytest.approx([table.num_rows] * 2)
    by_name = {compared.name: compared for compared in private._columns}
    for column in ("sex", "city"):
        counts = Counter("null" if value is None else value for value in table.column(column).to_pylist())
        found_counts = dict(zip(by_name[column].cells.names, by_name[column].before.tolist(), strict=True))
        assert {name: count for name, count in found_counts.items() if name != "*"} == counts
    (sex,) = (one for one in private._columns if one.name == "sex")
    shown = Counter(release.data.column("sex").to_pylist())
    assert sex.after.tolist() == pytest.approx([shown[text] for text in sex.cells.names])
    ages = by_name["age"]
    assert ages.cells.edges is not None
    found = np.histogram(table.column("age").to_pylist(), ages.cells.edges)[0]
    assert ages.before[: len(found)].tolist() == found.tolist()
    assert not ages.before[len(found) :].any()
    for pair in private._pairs:
        assert pair.records.sum() == pytest.approx(0, abs=1e-9)


def test_a_record_that_shows_nothing_counts_as_moved(tmp_path: Path) -> None:
    values = ["a", "b"] * 20 + ["c"] * 3 + ["d"] * 2
    release = quietly(
        pa.table({"letter": values}),
        Policy.from_dict({"columns": {"letter": {"role": "quasi-identifier"}}, "privacy": {"k": 5}}),
    )
    shown = Counter(release.data.column("letter").to_pylist())
    assert shown["*"] > 0
    (letter,) = release.report_private(tmp_path / "private.html")._columns
    whole = shown["*"] / len(values)
    original = Counter(values)
    moved = (whole + sum(abs(original[text] - shown[text]) for text in original) / len(values)) / 2
    assert letter.whole == pytest.approx(whole)
    assert letter.moved == pytest.approx(moved)
    assert f"{ENGLISH.percent(whole)} show nothing (*)" in read(tmp_path / "private.html").text["distributions"]


def test_a_release_that_hides_nothing_has_moved_nothing(tmp_path: Path) -> None:
    release = quietly(patients(), policy(tmp_path, privacy={"k": 1}))
    private = release.report_private(tmp_path / "private.html")
    assert max(compared.moved for compared in private._columns) == pytest.approx(0, abs=1e-12)
    assert max(float(np.abs(pair.records).max()) for pair in private._pairs) == pytest.approx(0, abs=1e-9)


# On the command line


@pytest.fixture
def files(tmp_path: Path) -> Path:
    written(tmp_path, patients())
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_anonymize_writes_the_pages_that_are_asked_for(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, private = files / "out", files / "elsewhere"
    out.mkdir()
    private.mkdir()
    arguments = ["anonymize", files / "original.csv", "-o", out / "r.csv", "--policy", files / "policy.toml", "--json"]
    pages = ["--report", out / "r.html", "--report-private", private / "p.html", "--shareable-policy", out / "p.toml"]
    code, text, _ = run(capsys, *arguments, *pages)
    told = json.loads(text)
    assert (code, told["report"], told["report_private"]) == (0, str(out / "r.html"), str(private / "p.html"))
    assert sorted(file.name for file in out.iterdir()) == ["p.toml", "r.csv", "r.csv.sfumato.json", "r.html"]
    certified = json.loads((out / "r.csv.sfumato.json").read_text())
    assert tomllib.loads((out / "p.toml").read_text("utf-8")) == certified["policy"]
    assert certified["files"][0]["sha256"] in read(out / "r.html").text["certificate"]
    assert "report" in told["seconds"]
    assert stat.S_IMODE((private / "p.html").stat().st_mode) == 0o600
    code, _, _ = run(capsys, *arguments[:3], out / "again.csv", *arguments[4:])
    assert code == 0
    assert not [file for file in out.iterdir() if file.name.startswith("again") and file.suffix == ".html"]


def test_a_private_page_beside_the_release_is_warned_of(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(
        capsys, "report", files / "original.csv", files / "release.csv", "--policy", files / "policy.toml", "-o",
        files / "r.html", "--private", files / "p.html",
    )  # fmt: skip
    assert code == 0
    assert "do not share it, and move it away from the release" in text
    assert text.startswith("k = 4 holds, checked again from the released file; ")


def test_report_gives_the_page_of_anonymize_with_what_was_checked_anew(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["anonymize", files / "original.csv", "-o", files / "release.csv", "--policy", files / "policy.toml"]
    assert run(capsys, *arguments, "--report", files / "at-once.html")[0] == 0
    made = ["report", files / "original.csv", files / "release.csv", "--policy", files / "policy.toml"]
    code, text, _ = run(capsys, *made, "--json")
    told = json.loads(text)
    assert (code, told["holds"], told["file"]) == (0, True, str(files / "release.csv.report.html"))
    assert told["class_sizes"] == dict(
        sorted(
            Counter(str(len(one)) for one in oracle.classes(rows_of(files / "release.csv"), QUASI).values()).items(),
            key=lambda one: int(one[0]),
        )
    )
    at_once, later = (read(files / name) for name in ("at-once.html", "release.csv.report.html"))
    assert "the file is the one that was certified" in later.text["verdict"]
    same = set(SECTIONS) - {"verdict", "certificate"}
    assert {section: at_once.text[section] for section in same} == {section: later.text[section] for section in same}


def test_a_release_that_does_not_hold_is_told_on_the_page_and_by_the_exit_code(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (files / "release.csv").read_text().splitlines()
    (files / "release.csv").write_text("\n".join(lines[:-1]) + "\n")
    code, text, _ = run(
        capsys, "report", files / "original.csv", files / "release.csv", "--policy", files / "policy.toml"
    )
    assert code == 1
    assert "does not meet its policy" in text
    found = read(files / "release.csv.report.html").text
    assert "The release does not meet its policy" in found["head"]
    assert "fails" in found["verdict"]


CERTIFIED_IN_PERSONS = (
    "The certificate states what held when the release was made and its persons were counted: k-anonymity, k = 4, in "
    "persons; frequency l-diversity of 'diagnosis', l = 2."
)


def marks(page: str) -> list[str]:
    """The words at the head of a page that say whether it may be shared, and their looks."""
    return re.findall(r'class="verdict ([^"]*)"><p class="word">([^<]*)</p>', page)


def counting_persons(files: Path) -> None:
    with (files / "policy.toml").open("a") as policy_file:
        policy_file.write('\n[[privacy.sensitive]]\nattribute = "diagnosis"\nkind = "frequency"\nl = 2\n')
    text = (files / "policy.toml").read_text()
    assert text.count("[privacy]\n") == 1
    (files / "policy.toml").write_text(text.replace("[privacy]\n", '[privacy]\nperson = "name"\n'))


def test_the_page_made_with_a_release_says_when_its_persons_were_counted(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counting_persons(files)
    arguments = ["anonymize", files / "original.csv", "-o", files / "release.csv", "--policy", files / "policy.toml"]
    assert run(capsys, *arguments, "--report", files / "at-once.html")[0] == 0
    page = (files / "at-once.html").read_text()
    assert marks(page) == [("holding", "Meets its policy")]
    found = Read(page).text
    held = "k = 4 and the requirement on sensitive columns hold, counted in persons when the release was made; "
    assert held in found["head"]
    assert "What the audit checked when the release was made, knowing the person of each record" in found["verdict"]
    assert "finds at least 4 persons that fit" in found["risks"]
    assert "as anybody can" not in page
    assert "from the release alone" not in page
    assert "checked again" not in page


@pytest.mark.not_quick
def test_the_page_of_a_file_has_its_own_words_for_what_was_not_checked(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counting_persons(files)
    policy_file = ["--policy", files / "policy.toml"]
    assert run(capsys, "anonymize", files / "original.csv", "-o", files / "release.csv", *policy_file)[0] == 0
    report = ["report", files / "original.csv", files / "release.csv", *policy_file]
    code, text, _ = run(capsys, *report)
    assert code == 5
    assert text.startswith("Nothing fails, but 2 requirements that cannot be checked from the released file may fail: ")
    assert run(capsys, *report, "--accept-unchecked")[0] == 0
    code, text, _ = run(capsys, *report, "--json")
    told = json.loads(text)
    assert (code, told["holds"]) == (5, None)
    assert [line["holds"] for line in told["audit"]] == [None, None, True]
    page = (files / "release.csv.report.html").read_text()
    assert marks(page) == [("unchecked", "Not fully checked")]
    assert "Meets its policy" not in page
    assert page.count('<span class="undecided">not checked</span>') == 2
    found = Read(page).text
    smallest = told["smallest_class"]
    assert f"k-anonymity, k = 4, in personsnot checked{smallest} in records" in found["verdict"]
    assert "Not checked: the policy counts persons" in found["verdict"]
    assert CERTIFIED_IN_PERSONS in found["verdict"]
    assert "What the audit checked, reading the release as anybody can" in found["verdict"]
    assert "finds at least 4 records that fit" in found["risks"]


def with_equal_diagnoses(files: Path) -> list[object]:
    """The command that reports on a release in which all diagnoses are equal."""
    counting_persons(files)
    rows = rows_of(files / "release.csv")
    lines = [",".join(rows[0]), *(",".join({**row, "diagnosis": "flu"}.values()) for row in rows)]
    (files / "equal.csv").write_text("\n".join(lines) + "\n")
    return ["report", files / "original.csv", files / "equal.csv", "--policy", files / "policy.toml"]


def test_a_page_of_a_release_that_fails_does_not_call_it_safe(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text, _ = run(capsys, *with_equal_diagnoses(files), "--accept-unchecked")
    assert code == 1
    assert "Requirements that fail, checked from the released file: frequency l-diversity of 'diagnosis'" in text
    page = (files / "equal.csv.report.html").read_text()
    assert marks(page) == [("fails", "Do not share")]
    assert (page.count('class="broken"'), page.count('class="undecided"')) == (1, 1)


@pytest.mark.not_quick
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_was_not_checked_has_a_colour_that_is_neither_that_of_failing_nor_of_holding(
    browser: Browser, files: Path, capsys: pytest.CaptureFixture[str], scheme: str
) -> None:
    held = files / "held.html"
    release = ["report", files / "original.csv", files / "release.csv"]
    assert run(capsys, *release, "--policy", files / "policy.toml", "-o", held)[0] == 0
    assert run(capsys, *with_equal_diagnoses(files))[0] == 1
    unchecked = [*release, "--policy", files / "policy.toml", "-o", files / "unchecked.html", "-l", "1"]
    assert run(capsys, *unchecked)[0] == 5

    def colours(file: Path, word: str) -> dict[str, str]:
        page = browser.open(file, scheme=scheme)
        look = "getComputedStyle(document.querySelector('{}')).{}"
        return {
            "words": page.evaluate(look.format(f".audit .{word}", "color")),
            "banner": page.evaluate(look.format(".verdict", "backgroundColor")),
        }

    pages = [
        colours(held, "holds"),
        colours(files / "equal.csv.report.html", "broken"),
        colours(files / "unchecked.html", "undecided"),
    ]
    for where in ("words", "banner"):
        assert len({page[where] for page in pages}) == 3


@pytest.mark.parametrize(
    "flags, code, said",
    [
        (["--report", "r.txt"], 2, "ends in .html"),
        (["--report", "no/r.html"], 4, "does not exist"),
        (["--report", "r.html", "--report-private", "r.html"], 2, "the same name"),
        (["--report-private", "."], 2, "ends in .html"),
        (["--shareable-policy", "p.html"], 2, "ends in .toml"),
        (["--shareable-policy", "policy.toml", "--force"], 2, "never overwritten"),
    ],
)
def test_a_page_that_cannot_be_written_is_told_before_any_work(
    files: Path, capsys: pytest.CaptureFixture[str], flags: list[str], code: int, said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(files)
    made, _, complaint = run(capsys, "anonymize", "original.csv", "-o", "new.csv", "--policy", "policy.toml", *flags)
    assert (made, said in complaint) == (code, True)
    assert not (files / "new.csv").exists()


def test_a_dry_run_writes_no_page(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["anonymize", files / "original.csv", "--policy", files / "policy.toml", "--dry-run"]
    assert run(capsys, *arguments, "--report", files / "r.html")[0] == 0
    assert not (files / "r.html").exists()


def test_without_the_library_that_draws_a_report_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    release = quietly(patients(60), policy(tmp_path))
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UsageError, match="vl-convert-python"):
        release.report(tmp_path / "r.html")
    with pytest.raises(OutputError, match="does not exist"):
        release.report(tmp_path / "no" / "r.html")


def test_what_is_reached_has_a_column_only_where_a_requirement_has_such_a_figure() -> None:
    persons = {"requirement": "k-anonymity, k = 5, in persons", "holds": True, "reason": ""}
    assert "reached" not in requirement_rows([persons], ENGLISH)
    assert "reached" in requirement_rows([persons, {**persons, "value": 7}], ENGLISH)


def test_long_periods_are_told_in_years_and_short_ones_in_days(tmp_path: Path) -> None:
    born = {"role": "quasi-identifier", "taxonomy": {"calendar": ["month", "decade"]}}
    days = pa.array([datetime.date(1930 + 10 * (row % 6), 1, 1 + row % 28) for row in range(240)])
    for finest, told in (("decade", "no wider than 10 years"), ("month", "no wider than 30 days")):
        policy = Policy.from_dict({"columns": {"born": {**born, "finest": finest}}, "privacy": {"k": 5}})
        release = sfumato.anonymize(pa.table({"born": days}), policy=policy)
        release.report(tmp_path / f"{finest}.html")
        assert told in (tmp_path / f"{finest}.html").read_text("utf-8")
