"""The page of the papers is what the recorded results make of it, and the results are whole."""

from __future__ import annotations

import json
import re

import pytest

from benchmarks.process_usage import ROOT
from reproduce.data_files import DATA, changed_files, checksums
from reproduce.figure import RECORDED, Figure, Profile
from reproduce.html_page import html_of
from reproduce.page import PAGE, VERDICTS, judgements, page_text
from reproduce.papers import FIGURES, PAPERS, chosen
from reproduce.recording import PICTURES, RESULTS, path_of, pictures_of, recorded

KEPT = [(figure, profile) for figure in FIGURES.values() for profile in RECORDED if path_of(figure, profile).exists()]


def test_the_page_is_made_from_the_recorded_results() -> None:
    assert PAGE.read_text("utf-8") == page_text(), "python -m reproduce page"


def test_every_figure_has_a_quick_result() -> None:
    assert [name for name, figure in FIGURES.items() if recorded(figure, "quick") is None] == []


def test_nothing_is_recorded_but_figures_and_their_pictures() -> None:
    results = {path_of(figure, profile) for figure, profile in KEPT}
    assert set(RESULTS.rglob("*.json")) == results
    assert set(PICTURES.rglob("*.svg")) == {path for kept in KEPT for path in pictures_of(*kept)}


@pytest.mark.parametrize(("figure", "profile"), KEPT, ids=[f"{figure.name}-{profile}" for figure, profile in KEPT])
def test_a_recorded_result_has_pictures_a_verdict_for_every_claim_and_no_path_of_the_machine(
    figure: Figure, profile: Profile
) -> None:
    text = path_of(figure, profile).read_text("utf-8")
    contents = json.loads(text)
    assert (contents["figure"], contents["profile"]) == (figure.name, profile)
    assert str(ROOT) not in text
    assert all(rows for rows in contents["tables"].values())
    found = judgements(figure, profile)
    assert list(found) == list(figure.claims)
    assert {judgement.verdict for judgement in found.values()} <= set(VERDICTS)
    pictures = pictures_of(figure, profile)
    assert pictures
    page = PAGE.read_text("utf-8")
    for picture in pictures:
        assert picture.relative_to(ROOT).as_posix() in page
        svg = picture.read_text("utf-8")
        numbers = [int(number) for number in re.findall(r"\d+", figure.number)]
        assert all(numbers[0] <= int(drawn) <= numbers[-1] for drawn in re.findall(r"Fig\. (\d+)", svg))
        assert contents["sizes"].replace("&", "&amp;") in svg, "every picture says the sizes of its run"


def test_the_names_of_figures_and_papers_choose_figures() -> None:
    (first, *_) = PAPERS
    assert chosen([]) == list(FIGURES.values())
    assert chosen([first.key]) == list(first.figures)
    assert chosen([first.figures[0].name]) == [first.figures[0]]
    with pytest.raises(ValueError, match="there is no figure or paper nobody-1; there are "):
        chosen(["nobody-1"])


def test_the_real_tables_are_those_of_the_checksums() -> None:
    assert changed_files() == []
    listed = {(DATA / name).resolve() for name in checksums()}
    beside = {DATA / name for name in ("NOTICE", "README.md", "SHA256SUMS")}
    assert {path for path in DATA.rglob("*") if path.is_file()} == listed | beside


def test_the_html_page_has_every_heading_table_and_picture_and_loads_nothing() -> None:
    markdown = page_text()
    html = html_of(markdown, PAGE.parent)
    assert html.count("<h3>") == markdown.count("\n### ")
    assert html.count("<svg ") >= markdown.count("<img ")
    assert html.count("<table>") == len(re.findall(r"\n\n\| ", markdown))
    assert "<img" not in html
    assert "**" not in html
    assert re.findall(r'(?:href|src)="', html) == []


def test_claims_against_our_own_forms_are_counted_apart() -> None:
    forms = {"`mondrian`", "`topdown`", "mondrian", "bound: the farthest (k - 1)th neighbour of any record"}
    for paper in PAPERS:
        claims = [claim for figure in paper.figures for claim in figure.claims]
        ours = [claim for claim in claims if claim.against_ours]
        assert {claim.baseline.removeprefix("our ") for claim in ours} <= forms
        counted = [found for figure in paper.figures if (found := judgements(figure, "quick"))]
        row = next(line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {paper.citation}"))
        *_, holds, depends, fails, our_holds, our_depends, our_fails = (cell.strip() for cell in row.split("|")[:-1])
        assert int(holds) + int(depends) + int(fails) == sum(map(len, counted)) - len(ours)
        assert int(our_holds) + int(our_depends) + int(our_fails) == len(ours)
