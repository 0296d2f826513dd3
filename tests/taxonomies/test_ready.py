"""Ready-made taxonomies: complete and consistent facts, and how they read a column."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import get_args

import pytest

from sfumato.errors import PolicyError
from sfumato.policy.column_settings import ReadyName
from sfumato.policy.levels import READY_LEVELS
from sfumato.taxonomies.ready import NAMES, has_fixed_leaves, ready_taxonomy, taxonomy_of_release
from sfumato.taxonomies.ready.country_codes import COUNTRIES
from sfumato.taxonomies.ready.icd10 import Icd10
from sfumato.taxonomies.ready.icd10_blocks import CHAPTERS_AND_BLOCKS
from sfumato.taxonomies.taxonomy import Taxonomy

ICD10 = Icd10()
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# The numbers of countries and areas that M49 lists for its subregions, without Sark, and Taiwan in Eastern Asia.
SIZES = {
    "Northern Africa": 7, "Eastern Africa": 22, "Middle Africa": 9, "Southern Africa": 5, "Western Africa": 17,
    "Caribbean": 28, "Central America": 8, "South America": 16, "Northern America": 5, "Central Asia": 5,
    "Eastern Asia": 8, "South-eastern Asia": 11, "Southern Asia": 9, "Western Asia": 18, "Eastern Europe": 10,
    "Northern Europe": 16, "Southern Europe": 16, "Western Europe": 9, "Australia and New Zealand": 6, "Melanesia": 5,
    "Micronesia": 8, "Polynesia": 10,
}  # fmt: skip


def tree(name: str, *values: str) -> Taxonomy:
    found = ready_taxonomy(name).rows(values)
    assert found.outside == ()
    return found.rows.taxonomy("q")


def path(taxonomy: Taxonomy, leaf: str) -> list[str]:
    node = taxonomy.labels.index(leaf)
    names = []
    while node >= 0:
        names.append(taxonomy.labels[node])
        node = int(taxonomy.parent[node])
    return names


def test_a_policy_knows_every_ready_made_taxonomy() -> None:
    assert get_args(ReadyName) == NAMES == tuple(READY_LEVELS)
    for name, value in zip(NAMES, ("DE", "1", "1", "I10"), strict=True):
        assert tree(name, value).top_level == len(READY_LEVELS[name])
    assert all(ready_taxonomy(name).source for name in NAMES)
    with pytest.raises(PolicyError, match="Did you mean 'countries'"):
        ready_taxonomy("countrys")


# ---- countries ----


def test_there_are_249_countries_with_three_codes_each() -> None:
    lines = [line.split(maxsplit=3) for line in COUNTRIES.splitlines() if line.startswith("    ")]
    assert len(lines) == 249
    for field, form in enumerate(("[A-Z]{2}", "[A-Z]{3}", "[0-9]{3}")):
        codes = [line[field] for line in lines]
        assert len(set(codes)) == 249
        assert all(re.fullmatch(form, code) for code in codes)
    names = [name.strip().casefold() for line in lines for name in line[3].split("|")]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_every_subregion_has_the_countries_of_m49_and_lies_in_one_region() -> None:
    taxonomy = tree("countries", "DE")
    sizes = dict(zip(taxonomy.labels, taxonomy.span().tolist(), strict=True))
    assert {name: sizes[name] for name in SIZES} == SIZES
    assert sum(SIZES.values()) == 248
    regions = {path(taxonomy, name)[1] for name in SIZES}
    assert regions == {"Africa", "Americas", "Asia", "Europe", "Oceania"}
    assert path(taxonomy, "AQ") == ["AQ", "*"]


@pytest.mark.parametrize(
    ("values", "leaf"),
    [
        (["DE", "fr", "NA"], "DE"),
        (["DEU", "FRA"], "DEU"),
        (["276", "008", "004"], "276"),
        (["276", "8", "4"], "276"),
        (["Germany", "the Netherlands", "Cote d'Ivoire", "ST. LUCIA", "Korea, Republic of", "Viet Nam"], "Germany"),
    ],
    ids=["two letters", "three letters", "three digits", "numbers", "names"],
)
def test_a_column_may_write_countries_in_one_of_four_ways(values: list[str], leaf: str) -> None:
    taxonomy = tree("countries", *values)
    assert path(taxonomy, leaf) == [leaf, "Western Europe", "Europe", "*"]
    assert set(values) <= set(taxonomy.leaves)
    assert len(taxonomy.leaves) == 249


def test_names_of_territories_lead_to_them_and_not_to_their_mother_countries() -> None:
    taxonomy = tree("countries", "Guinea", "Guinea-Bissau", "Niger", "Nigeria", "Dominica", "Samoa", "Georgia")
    assert path(taxonomy, "Dominica")[1] == "Caribbean"
    assert path(taxonomy, "Georgia")[1] == "Western Asia"
    assert path(taxonomy, "Samoa")[1] == "Polynesia"


def test_mixed_ways_of_writing_are_outside_and_explained() -> None:
    found = ready_taxonomy("countries").rows(["DE", "FR", "Austria", "Atlantis"])
    assert set(found.outside) == {"Austria", "Atlantis"}
    assert found.explanation == (
        "the column was read as codes of two letters; among them are English names (1), and a column has to keep to "
        "one way of writing"
    )


def test_two_spellings_of_one_country_are_not_two_countries() -> None:
    found = ready_taxonomy("countries").rows(["de", "DE", "FR"])
    assert found.outside == ("de",)
    assert "second spellings (1)" in found.explanation


# ---- months and weekdays ----


@pytest.mark.parametrize(
    ("values", "leaf"),
    [(["January", "MAY"], "January"), (["Jan", "sep", "Dec."], "Jan"), (["1", "12"], "1"), (["01", "12"], "01")],
    ids=["names", "abbreviations", "numbers", "two digits"],
)
def test_months_lie_in_quarters_and_half_years(values: list[str], leaf: str) -> None:
    taxonomy = tree("months", *values)
    assert path(taxonomy, leaf) == [leaf, "Q1", "H1", "*"]
    assert Counter(taxonomy.span().tolist()) == {1: 12, 3: 4, 6: 2, 12: 1}


@pytest.mark.parametrize("values", [["Saturday", "monday"], ["Sat", "Mon"], ["6", "1"]])
def test_weekdays_are_working_days_or_the_weekend(values: list[str]) -> None:
    taxonomy = tree("weekdays", *values)
    assert path(taxonomy, values[0])[1:] == ["weekend", "*"]
    assert path(taxonomy, values[1])[1:] == ["working day", "*"]
    assert len(taxonomy.leaves) == 7


@pytest.mark.parametrize(("name", "bad"), [("months", "13"), ("months", "0"), ("months", "001"), ("weekdays", "0")])
def test_numbers_beyond_the_calendar_are_outside(name: str, bad: str) -> None:
    assert ready_taxonomy(name).rows(["1", bad]).outside == (bad,)


# ---- ICD-10 ----


def test_icd_10_has_22_chapters_and_263_blocks_that_do_not_overlap() -> None:
    chapters = [line.split(" ", 2) for line in CHAPTERS_AND_BLOCKS.strip().splitlines() if line[0] != " "]
    numbers = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI XXII"
    assert " ".join(chapter[0] for chapter in chapters) == numbers
    assert len(ICD10.blocks) == 263
    assert all(block.first <= block.last for block in ICD10.blocks)
    for block, following in pairwise(ICD10.blocks):
        assert block.last < following.first
    assert len({block.name for block in ICD10.blocks}) == 263


def test_every_block_lies_within_the_range_of_its_chapter() -> None:
    first = last = ""
    for line in CHAPTERS_AND_BLOCKS.strip().splitlines():
        codes = re.findall(r"[A-Z]\d\d", line)[:2]
        if line[0] != " ":
            first, last = codes
        else:
            assert first <= codes[0] <= codes[1] <= last, line


def test_every_letter_has_blocks_and_their_gaps_are_the_codes_that_the_who_does_not_use() -> None:
    unused = [f"{letter}{n:02}" for letter in LETTERS for n in range(100) if ICD10.block_of(f"{letter}{n:02}") is None]
    assert {letter for letter in LETTERS if f"{letter}00" in unused} == {"V"}
    assert set(unused) == {
        *(f"A{n}" for n in range(10, 15)), "A29", *(f"B{n}" for n in range(10, 15)), "B84",
        *(f"C{n}" for n in (27, 28, 29, 42, 59, 98, 99)), "D49", "D54", "D78", "D79",
        *(f"D{n}" for n in range(90, 100)), "E08", "E09", "E17", "E18", "E19", "E36", "E37", "E38", "E39", "E47", "E48",
        "E49", "E69", *(f"E{n}" for n in range(91, 100)), "F49", "G15", "G16", "G17", "G18", "G19", "G27", "G28", "G29",
        "G33", "G34", "G38", "G39", "G48", "G49", "G65", "G66", "G67", "G68", "G69", "G74", "G75", "G76", "G77", "G78",
        "G79", *(f"G{n}" for n in range(84, 90)), "H07", "H08", "H09", "H14", "H23", "H24", "H29", "H37", "H38", "H39",
        "H63", "H64", "H76", "H77", "H78", "H79", *(f"H{n}" for n in range(84, 90)), "H96", "H97", "H98", "H99", "I03",
        "I04", "I16", "I17", "I18", "I19", "I29", *(f"I{n}" for n in range(53, 60)), "I90", "I91", "I92", "I93", "I94",
        "J07", "J08", "J19", *(f"J{n}" for n in range(23, 30)), *(f"J{n}" for n in range(48, 60)),
        *(f"J{n}" for n in range(71, 80)), "J87", "J88", "J89", "K15", "K16", "K17", "K18", "K19", "K32", "K33", "K34",
        "K39", "K47", "K48", "K49", "K53", "K54", "K68", "K69", "K78", "K79", "K88", "K89",
        *(f"K{n}" for n in range(94, 100)), "L09", "L15", "L16", "L17", "L18", "L19",
        *(f"L{n}" for n in range(31, 40)), "L46", "L47", "L48", "L49", "L76", "L77", "L78", "L79", "M04", "M26", "M27",
        "M28", "M29", "M37", "M38", "M39", "M44", *(f"M{n}" for n in range(55, 60)), "M64", "M69", "N09", "N24",
        *(f"N{n}" for n in range(52, 60)), *(f"N{n}" for n in range(65, 70)), "N78", "N79", "O09",
        *(f"O{n}" for n in range(17, 20)), *(f"O{n}" for n in range(49, 60)), *(f"O{n}" for n in range(76, 80)), "O93",
        "P09", *(f"P{n}" for n in range(16, 20)), *(f"P{n}" for n in range(30, 35)),
        *(f"P{n}" for n in range(40, 50)), *(f"P{n}" for n in range(62, 70)), "P79", *(f"P{n}" for n in range(84, 90)),
        "P97", "P98", "P99", "Q08", "Q09", "Q19", "Q29", "Q46", "Q47", "Q48", "Q49", "Q57", "Q58", "Q59", "R24", "T89",
        "T99", "V00", "Y37", "Y38", "Y39", "Y99", *(f"Z{n}" for n in range(14, 20)), "Z66", "Z67", "Z68", "Z69", "Z77",
        "Z78", "Z79", *(f"U{n}" for n in range(50, 80)), *(f"U{n}" for n in range(90, 100)),
    }  # fmt: skip


@pytest.mark.parametrize("code", ["E11.9", "E119", "E11", "e11.9", " E11.9", "E11.90", "E11.9+", "E11.-"])
def test_a_code_leads_to_its_category_block_and_chapter_however_it_is_written(code: str) -> None:
    taxonomy = tree("icd-10", code, "E11.8", "E10.0", "E66.0", "I10")
    category = "E11.- (group)" if code == "E11.-" else "E11.-"
    chapter = "IV hormones and nutrition and metabolism"
    assert path(taxonomy, code) == [code, category, "E10-E14 diabetes mellitus", chapter, "*"]


@pytest.mark.parametrize("code", ["E18", "E1", "11.9", "diabetes", "E11.99999", "", "C7A.0", "Y99"])
def test_what_is_no_code_of_the_who_is_outside(code: str) -> None:
    found = ready_taxonomy("icd-10").rows(["E11.9", code])
    assert found.outside == (code,)
    assert found.rows.leaves == ("E11.9",)


def test_groups_of_icd_10_are_never_mistaken_for_codes() -> None:
    taxonomy = tree("icd-10", "E11", "E11.0", "E14.1", "C50.1", "C50.9", "I10", "I11.0")
    ready = ready_taxonomy("icd-10")
    span = dict(zip(taxonomy.labels, taxonomy.span().tolist(), strict=True))
    levels = {label: ready.levels_of(label) for label in taxonomy.labels if label != "*"}
    assert {label for label, level in levels.items() if level != (0, 0)} == {
        label for label in levels if span[label] > 1
    }
    assert levels["E11.-"] == (1, 1)
    assert levels["E10-E14 diabetes mellitus"] == (2, 2)
    assert ready.levels_of("II neoplasms") == (3, 3)
    assert ready.levels_of("E18") is None


def test_labels_tell_their_levels() -> None:
    ready = ready_taxonomy("countries")
    assert ready.levels_of("deu") == ready.levels_of("Germany") == (0, 0)
    assert ready.levels_of("Western Europe") == (1, 1)
    assert ready.levels_of("Europe") == (2, 2)
    assert ready.levels_of("AQ") == (0, 2)  # in no region, so it stands for itself on every level
    assert ready.levels_of("Atlantis") is None


# ---- what a release alone tells ----


def test_a_release_alone_tells_the_leaves_unless_they_come_from_the_original() -> None:
    assert [name for name in NAMES if not has_fixed_leaves(name)] == ["icd-10"]
    taxonomy = taxonomy_of_release("countries", ["Europe", "deu", "*", "Polynesia"], "q")
    assert taxonomy is not None
    assert path(taxonomy, "deu") == ["deu", "Western Europe", "Europe", "*"]
    assert len(taxonomy.leaves) == 249
    assert taxonomy_of_release("icd-10", ["E11"], "q") is None
    assert taxonomy_of_release(None, ["E11"], "q") is None
