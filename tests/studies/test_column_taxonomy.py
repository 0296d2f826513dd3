"""``sfumato.taxonomy``: what a column holds, taxonomies from wizards, checks of files, private files, drawings."""

from __future__ import annotations

import datetime
import json
import re
import stat
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato
from sfumato.taxonomies import read_taxonomy

AGES = [*range(18, 98), *range(30, 50), 30, 30, None]
CITIES = ["Aachen", "Berlin", "Berlin", "Bonn", "Bremen", "Essen", "Ulm", "Ulm", "Ulm", "Zwickau", "Zittau"]


def private(path: Path) -> bool:
    return stat.S_IMODE(path.stat().st_mode) == 0o600


def rows(found: Any) -> list[list[str]]:
    return [line.split(",") for line in found.text().splitlines()]


def test_a_column_is_described_without_any_of_its_values() -> None:
    found = sfumato.taxonomy(pa.table({"age": AGES}), "age")
    assert (found.type, found.distinct, found.counted.missing, found.counted.total) == ("numeric", 80, 1, 103)
    assert list(found.fits) == ["--intervals 5,10,20", "--groups 8,4,2"]
    assert found.rule == "flat"
    assert [level.as_dict() for level in found.levels()] == [
        {"level": 0, "groups": 80, "used": 80, "smallest": [1, 1, 1]}
    ]
    assert repr(found) == "<ColumnTaxonomy: age, skeleton, 80 values, 0 outside>"
    city = sfumato.taxonomy(pa.table({"city": CITIES}), "city")
    assert not any(name in f"{city!r}{city.counted!r}{city.draft!r}{city.as_dict()}" for name in CITIES)


@pytest.mark.parametrize(
    ("values", "flag"),
    [
        (["DE", "FR", "AT"], "--ready countries"),
        (["E11.9", "I10", "C50.1"], "--ready icd-10"),
        (["Mon", "Sun"], "--ready weekdays"),
        ([f"0{n}" for n in range(100, 130)], "--prefix 2,3"),
        ([datetime.date(1950 + n, 1, 1) for n in range(40)], "--calendar month,quarter,year,decade"),
    ],
    ids=["countries", "diagnoses", "weekdays", "codes", "dates"],
)
def test_what_fits_follows_from_the_values(values: list[Any], flag: str) -> None:
    assert next(iter(sfumato.taxonomy(pa.table({"q": values}), "q").fits)) == flag


def test_small_numbers_are_months_only_if_the_name_says_so() -> None:
    numbers = [1, 2, 3, 12]
    assert "--ready months" not in sfumato.taxonomy(pa.table({"visits": numbers}), "visits").fits
    assert "--ready months" in sfumato.taxonomy(pa.table({"Month": numbers}), "Month").fits


def test_a_skeleton_has_every_value_in_the_order_that_suits_it() -> None:
    numbers = sfumato.taxonomy(pa.table({"q": ["10", "9", "100", "9"]}), "q")
    assert rows(numbers) == [["10", "*"], ["100", "*"], ["9", "*"]]  # text of a frame is no number
    typed = sfumato.taxonomy(pa.table({"q": [10, 9, 100, 9]}), "q")
    assert rows(typed) == [["9", "*"], ["10", "*"], ["100", "*"]]


def test_text_of_a_file_is_ordered_as_a_release_would_read_it(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("q;d\n10;2.3.2024\n9;1.12.2023\n100;?\n9,5;nan\n")
    reading = {"separator": ";", "decimal": ",", "nulls": ["?"]}
    found = sfumato.taxonomy(table, "q", input=reading, intervals=[1, 10])
    assert rows(found) == [
        ["9", "[9..10]", "[0..10]", "*"],
        ['"9', '5"', "[9..10]", "[0..10]", "*"],
        ["10", "[10..11]", "[10..20]", "*"],
        ["100", "[100..101]", "[100..110]", "*"],
    ]


def test_texts_that_are_no_numbers_but_nan_stand_alone(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("q\n1\nnan\n7\n")
    assert rows(sfumato.taxonomy(table, "q", intervals=[5])) == [
        ["1", "[0..5]", "*"], ["7", "[5..10]", "*"], ["nan", "nan", "*"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("values", "wizard", "first", "rule"),
    [
        (AGES, {"intervals": [20, 5]}, ["18", "[15..19]", "[0..19]", "*"], {"intervals": [5, 20]}),
        ([0.05, 0.5, 1.5], {"intervals": [0.1, 1]}, ["0.05", "[0..0.1]", "[0..1]", "*"], {"intervals": [0.1, 1]}),
        ([datetime.date(2024, 5, 17), datetime.date(2031, 1, 1)], {"calendar": ["year", "month"]},
         ["2024-05-17", "2024-05", "2024", "*"], {"calendar": ["month", "year"]}),
        (["10115", "10117", "20095"], {"prefix": [3, 1]}, ["10115", "101**", "1****", "*"], {"prefix": [1, 3]}),
        (["10115", "10117", "2"], {"prefix": [3, 1]}, ["10115", "101**", "1****", "*"], {"prefix": [1, 3]}),
        (["KE", "DE"], {"ready": "countries"}, ["DZ", "Northern Africa", "Africa", "*"], {"ready": "countries"}),
        (CITIES, {"groups": [3]}, ["Aachen", "A..Bo", "*"], None),
        (AGES, {"groups": [2, 4]}, ["18", "35-", "47-", "*"], None),
        (AGES, {"intervals": [10], "groups": [3]}, ["18", "[10..19]", "[10..39]", "*"], None),
        (CITIES, {"frequent": [2]}, ["Aachen", "other", "*"], None),
    ],
    ids=["intervals", "decimals", "calendar", "prefix", "short", "ready", "words", "numbers", "both", "frequent"],
)  # fmt: skip
def test_a_wizard_makes_a_file_that_loads_or_a_rule_that_makes_the_same_tree(
    values: list[Any], wizard: dict[str, Any], first: list[str], rule: dict[str, Any] | None, tmp_path: Path
) -> None:
    found = sfumato.taxonomy(pa.table({"q": values}), "q", **wizard)
    assert rows(found)[0] == first
    assert found.rule == rule
    path = found.write(tmp_path / "q.csv")
    assert private(path)
    read, made = read_taxonomy(path, "q"), found.taxonomy()
    assert (read.leaves, read.labels) == (made.leaves, made.labels)
    assert {str(value) for value in values if value is not None} <= set(read.leaves)
    assert sfumato.taxonomy(pa.table({"q": values}), "q", check=path).outside == ()


@pytest.mark.not_quick
@pytest.mark.parametrize("rule", [{"prefix": [2, 3]}, {"intervals": [5, 20]}, {"ready": "months"}])
def test_a_file_from_a_wizard_gives_the_release_of_its_rule(rule: dict[str, Any], tmp_path: Path) -> None:
    months = "ready" in rule
    table = pa.table({"q": [str(1 + n * n % 12) if months else str(100 + n * n % 61) for n in range(90)]})
    typed = table if not rule.get("intervals") else pa.table({"q": [int(text) for text in table["q"].to_pylist()]})
    file = sfumato.taxonomy(typed, "q", **rule).write(tmp_path / "q.csv")
    asked: dict[str, Any] = {"quasi_identifiers": "q", "k": 4, "effort": "fast"}
    shown = [sfumato.anonymize(typed, taxonomy={"q": each}, **asked).data["q"].to_pylist() for each in (rule, file)]
    assert Counter(shown[0]) == Counter(shown[1])


def test_groups_in_order_have_about_equally_many_records() -> None:
    found = sfumato.taxonomy(pa.table({"age": AGES}), "age", groups=[8, 4, 2])
    _, *levels = found.levels()
    assert [level.groups for level in levels] == [8, 4, 2]
    assert [min(level.smallest) for level in levels] == [12, 24, 50]


def test_several_numbers_of_frequent_values_are_levels() -> None:
    found = sfumato.taxonomy(pa.table({"city": CITIES}), "city", frequent=[1, 2], others="elsewhere")
    assert [level.groups for level in found.levels()] == [8, 3, 2]
    assert rows(found)[1] == [
        "Berlin", "Berlin", "elsewhere (all but the 1 most frequent)", "*",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wizard", "problem"),
    [
        ({"prefix": [2], "ready": "months"}, "prefix and ready do not go together"),
        ({"groups": [2], "frequent": [2]}, "groups and frequent do not go together"),
        ({"groups": [2], "ready": "months"}, "groups and ready do not go together"),
        ({"groups": [1]}, "groups takes whole numbers of at least 2"),
        ({"frequent": [0]}, "frequent takes whole numbers of at least 1"),
        ({"groups": [9]}, "8 different values, which 9 groups would not make coarser"),
        ({"prefix": [1], "groups": [7]}, "has 5 groups below, which 7 groups would not make coarser"),
        ({"others": "rest"}, "Give frequent too"),
        ({"ready": "planets"}, "unknown ready-made taxonomy 'planets'"),
        ({"check": "t.csv", "prefix": [2]}, "check and prefix do not go together"),
        ({"intervals": [0]}, "must be a list of finite numbers above 0"),
        ({"calendar": ["day"]}, "must be a list of units out of"),
        ({"prefix": [0]}, "must be a list of whole numbers of at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(wizard: dict[str, Any], problem: str) -> None:
    with pytest.raises(sfumato.UsageError, match=re.escape(problem)):
        sfumato.taxonomy(pa.table({"city": CITIES}), "city", **wizard)


def test_an_unknown_column_is_named_with_those_that_there_are() -> None:
    with pytest.raises(sfumato.UsageError, match="Did you mean 'city'"):
        sfumato.taxonomy(pa.table({"city": CITIES}), "cyty")


def test_a_column_without_any_value_has_an_empty_skeleton() -> None:
    found = sfumato.taxonomy(pa.table({"q": pa.array([None, None], pa.string())}), "q")
    assert (found.distinct, found.counted.missing, found.text(), found.fits) == (0, 2, "", {})


# ---- checks ----


def test_a_check_counts_what_the_file_lacks_and_what_the_column_does_not_use(tmp_path: Path) -> None:
    file = tmp_path / "city.csv"
    file.write_text("Berlin,north,*\nBremen,north,*\nUlm,south,*\nKiel,north,*\n")
    found = sfumato.taxonomy(pa.table({"city": [*CITIES, None]}), "city", check=file)
    assert found.outside == ("Aachen", "Bonn", "Essen", "Zittau", "Zwickau")
    assert (found.outside_records, found.unused) == (5, 1)
    assert [level.as_dict() for level in found.levels()] == [
        {"level": 0, "groups": 4, "used": 3, "smallest": [1, 2, 3]},
        {"level": 1, "groups": 2, "used": 2, "smallest": [3, 3]},
    ]
    missing = found.write_missing(tmp_path / "missing.csv")
    assert private(missing)
    assert missing.read_text() == "Aachen,*,*\nBonn,*,*\nEssen,*,*\nZittau,*,*\nZwickau,*,*\n"
    file.write_text(file.read_text() + missing.read_text())
    assert sfumato.taxonomy(pa.table({"city": CITIES}), "city", check=file).outside == ()


def test_the_written_file_of_a_check_has_the_missing_values_under_the_root(tmp_path: Path) -> None:
    file = tmp_path / "city.csv"
    file.write_text("Berlin,north,*\nBremen,north,*\n")
    whole = sfumato.taxonomy(pa.table({"city": CITIES}), "city", check=file).write(tmp_path / "whole.csv")
    tree = read_taxonomy(whole, "city")
    assert set(tree.leaves) == set(CITIES)
    assert [label for label, parent in zip(tree.labels, tree.parent.tolist(), strict=True) if parent == 0] == [
        "north", "Aachen", "Bonn", "Essen", "Ulm", "Zittau", "Zwickau",
    ]  # fmt: skip


def test_codes_that_a_ready_made_taxonomy_lacks_are_listed(tmp_path: Path) -> None:
    found = sfumato.taxonomy(pa.table({"q": ["E11.9", "E18", "I10", "E18"]}), "q", ready="icd-10")
    assert (found.outside, found.outside_records) == (("E18",), 2)
    assert found.write_missing(tmp_path / "m.csv").read_text() == "E18,*,*,*,*\n"
    assert read_taxonomy(found.write(tmp_path / "t.csv"), "q").leaves[-1] == "E18"


# ---- files ----


def test_counts_are_a_private_file_for_people(tmp_path: Path) -> None:
    path = sfumato.taxonomy(pa.table({"city": ["b", "a", "b", None]}), "city").write_counts(tmp_path / "counts.csv")
    assert path.read_text() == "value,records\nb,2\na,1\n"
    assert private(path)


def test_an_existing_file_and_the_table_itself_are_not_replaced(tmp_path: Path) -> None:
    table, target = tmp_path / "t.csv", tmp_path / "q.csv"
    table.write_text("q\na\n")
    target.write_text("mine")
    found = sfumato.taxonomy(table, "q")
    for write in (found.write, found.write_counts, found.write_missing):
        with pytest.raises(sfumato.UsageError, match="exists"):
            write(target)
        with pytest.raises(sfumato.UsageError, match="the output is the input"):
            write(table, force=True)
    target.chmod(0o644)
    found.write(target, force=True)
    assert target.read_text() == "a,*\n"
    assert private(target)
    assert table.read_text() == "q\na\n"


# ---- drawings ----


def test_a_drawing_has_every_node_of_a_small_tree_with_its_records(tmp_path: Path) -> None:
    picture = sfumato.taxonomy(pa.table({"age": AGES}), "age", intervals=[20]).draw()
    assert "not drawn" in picture.svg  # the ages
    assert re.findall(r">(\[[^<]*\])</text>", picture.svg) == [
        "[0..19]",
        "[20..39]",
        "[40..59]",
        "[60..79]",
        "[80..99]",
    ]
    assert "[20..39]: 32" in picture.description
    city = sfumato.taxonomy(pa.table({"city": CITIES}), "city", prefix=[1]).draw(theme="dark")
    assert "not drawn" not in city.svg
    assert all(f">{name}</text>" in city.svg for name in CITIES)


def test_of_a_large_flat_tree_the_largest_values_are_drawn() -> None:
    values = [f"v{n:03}" for n in range(200) for _ in range(1 + (n == 150))]
    picture = sfumato.taxonomy(pa.table({"q": values}), "q").draw()
    assert "141 of 201 groups and values are not drawn" in picture.svg
    assert ">v150</text>" in picture.svg


# ---- in a policy ----


COUNTRIES = ["DE", "FR", "AT", "PL", "CZ", "US", "CA", "KE", "NG", "JP"]
CODES = ["E11.9", "E10", "E119", "I10", "I20.1", "C50.9", "C51"]
READY = {"country": {"ready": "countries"}, "diagnosis": {"ready": "icd-10"}, "month": {"ready": "months"}}


def ready_table(records: int = 60) -> pa.Table:
    return pa.table(
        {
            "country": [COUNTRIES[n * n % 10] for n in range(records)],
            "diagnosis": [CODES[n * 5 % 7] for n in range(records)],
            "month": [1 + n * n % 12 for n in range(records)],
        }
    )


def blur_by_hand(shown: list[str], groups: dict[str, int], leaves: int) -> float:
    """The mean share of the leaves that a record leaves open. groups: the leaves of each."""
    return sum(groups.get(label, 0) / leaves for label in shown) / len(shown)


@pytest.mark.not_quick
def test_the_published_blur_counts_all_leaves_of_a_ready_made_taxonomy(tmp_path: Path) -> None:
    months = pa.table({"m": [1 + n * n * n % 12 for n in range(80)]})
    release = sfumato.anonymize(months, quasi_identifiers="m", taxonomy={"m": {"ready": "months"}}, k=9)
    release.write(tmp_path / "r.csv")
    groups = {"Q1": 3, "Q2": 3, "Q3": 3, "Q4": 3, "H1": 6, "H2": 6, "*": 12}
    shown = [line.strip() for line in (tmp_path / "r.csv").read_text().splitlines()[1:]]
    assert set(shown) & set(groups)
    figures = json.loads((tmp_path / "r.csv.sfumato.json").read_text())
    assert figures["blur_by_column"]["m"] == pytest.approx(blur_by_hand(shown, groups, 12))


@pytest.mark.not_quick
@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
def test_ready_made_taxonomies_serve_every_command_from_the_files_alone(tmp_path: Path) -> None:
    table, release, rules = ready_table(), tmp_path / "release.csv", tmp_path / "rules.json"
    made = sfumato.anonymize(table, quasi_identifiers=list(READY), taxonomy=READY, k=3)
    made.write(release)
    assert sfumato.audit(release).holds
    assert sfumato.measure(table, release).gcp == pytest.approx(made.losses.gcp)
    # ICD-10 has as many leaves as the column has codes, which only the original tells.
    figures = json.loads((tmp_path / "release.csv.sfumato.json").read_text())
    assert set(figures["blur_by_column"]) == {"country", "month"}
    sfumato.report_release(table, release, tmp_path / "page.html")
    assert "its values come from the original" in (tmp_path / "page.html").read_text()
    assert sfumato.plot(release, "country", "diagnosis").facts is not None
    recoding = sfumato.fit(table, quasi_identifiers=list(READY), taxonomy=READY, k=3, method="mondrian")
    recoding.write(rules)
    assert sfumato.apply(rules, ready_table(90)).audit.holds


def with_levels(column: str, **limits: str | int) -> dict[str, Any]:
    settings = {"role": "quasi-identifier", "taxonomy": READY[column], **limits}
    return {"other": "drop", "columns": {column: settings}, "privacy": {"k": 3}}


@pytest.mark.not_quick
@pytest.mark.parametrize(
    ("column", "limits", "shown"),
    [
        ("country", {"finest": "subregion", "coarsest": "region"},
         {"Western Europe", "Eastern Europe", "Northern America", "Africa", "Eastern Asia"}),
        ("country", {"finest": 2}, {"Europe", "Americas", "Africa", "Asia"}),
        ("diagnosis", {"finest": "block"},
         {"C50 cancer of the breast", "C51-C58 cancer of the female genital organs", "E10-E14 diabetes mellitus",
          "I10-I15 high blood pressure", "I20-I25 ischaemic heart disease"}),
        ("month", {"finest": "half-year"}, {"H1", "H2"}),
    ],
    ids=["subregions", "regions", "blocks", "half-years"],
)  # fmt: skip
def test_levels_of_ready_made_taxonomies_have_names_and_are_audited(
    column: str, limits: dict[str, str | int], shown: set[str], tmp_path: Path
) -> None:
    release = sfumato.anonymize(ready_table(), with_levels(column, **limits))
    labels = release.data[column].to_pylist()
    assert set(labels) <= shown | {"Eastern Africa", "Western Africa"}
    assert min(Counter(labels).values()) >= 3
    release.write(tmp_path / "release.csv")
    assert sfumato.audit(tmp_path / "release.csv").holds
    finer = pa.table({column: [str(value) for value in ready_table()[column].to_pylist()]})
    failed = sfumato.audit(finer, with_levels(column, **limits)).failed
    assert [verdict.value for verdict in failed if "finer" in verdict.requirement] == [60]


@pytest.mark.not_quick
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_values_outside_are_told_for_all_columns_at_once(engine: Any, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    lines = [f"{20 + n},{COUNTRIES[n % 10]},{'EFG'[n % 3]},{CODES[n % 7]}" for n in range(30)]
    lines[7] = "27,Atlantis,E,zzz"
    table.write_text("age,country,floor,diagnosis\n" + "\n".join(lines) + "\n")
    (tmp_path / "floor.csv").write_text("E,*\nF,*\n")
    taxonomy = {**READY, "floor": tmp_path / "floor.csv"}
    del taxonomy["month"]
    with pytest.raises(sfumato.TaxonomyError) as error:
        sfumato.anonymize(
            table, quasi_identifiers=["age", *taxonomy], taxonomy=taxonomy, k=3, engine=engine, method="hilbert"
        )
    text = str(error.value)
    assert "column 'country': 1 distinct value is not in the ready-made taxonomy 'countries'" in text
    assert "first is in line 9. Run: sfumato taxonomy INPUT country --ready countries --missing missing.csv" in text
    assert "column 'diagnosis': 1 distinct value is not in the ready-made taxonomy 'icd-10'" in text
    assert "column 'floor': 1 distinct value is not in the taxonomy" in text
    assert "first is in line 4." in text
    assert text.count("list them in [input] nulls") == 1
    assert "Atlantis" not in text
    assert "zzz" not in text
