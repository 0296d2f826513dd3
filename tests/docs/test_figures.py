"""Every figure in README and docs comes from a recorded run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.pages import MARKER, filled_text, pages
from benchmarks.process_usage import ROOT
from benchmarks.recording import MOST_OTHERS, RESULTS, RUNS
from benchmarks.sections import SECTIONS

RECORDINGS = sorted(RESULTS.glob("*.json"))
PAGES = {path.relative_to(ROOT).as_posix(): path for path in pages()}
# The first two tell of the day on which they were written. The last is made from recordings, see tests/reproduce.
FREE = ("CHANGELOG.md", "docs/decisions/", "docs/papers.md")

# What is no measurement, although it looks like one.
NOT_MEASURED = {
    "README.md": ["Python 3.11"],
    "docs/anatomy.md": ["0.4937 for Anatomy and 0.4631 for `hilbert`"],  # the worked example
    "docs/benchmarks.md": [
        "more than 5% of the cores",  # rules and aims
        "GB are 10^9 bytes. The aim is 1.2 GB",
        "The aim is 1.25 times the floor, within 2 GB",
        "The aim is 4.5 times",
        "The aims are 8 CPU seconds",
        "1.2 seconds for the second process",
        "may leave out 5% of them",
    ],
    "docs/comparison.md": ["three times within five seconds"],  # what `compare` does
    "docs/first-policy.md": ["at least 95% of 20 or more records"],  # a rule
    "docs/large-releases.md": ["up to 4 bytes per cell"],  # the format of a file
    "docs/learning.md": ["95% interval"],
    "docs/queries.md": [  # the worked examples, and a setting
        "1/6 ln 1.5 = 0.0676",
        "2/6 ln 2 = 0.2310",
        "1/6 ln 3 = 0.1831",
        "Together 0.5493. The group-by of `age` has 0.8676, so level 1 has their mean, 0.7084",
        "ln 2 = 0.6931",
        "selectivity 0.05",
    ],
    "docs/recoding.md": ["about 100 bytes for a region"],  # the format of a tree
    "docs/report.md": ["less than 2 MB"],  # tests/report/test_report.py holds it
    "docs/risk.md": ["the highest prosecutor risk is 10% and the marketer risk 7.8%"],  # the worked example
    "docs/rothko.md": ["at the level 0.05"],  # a setting
}

CODE = (
    re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE),
    re.compile(r"(?<=\n\n)(?:    [^\n]*\n|\n(?=    ))+"),
    MARKER,
    re.compile(r"`[^`\n]*`"),
    re.compile(r"\]\([^)]*\)"),
)
UNIT = r"(?:%|s\b|(?:CPU |milli|micro)?seconds?\b|minutes?\b|hours?\b|[GMk]B\b|bytes\b|times\b|percent\b)"
NUMBER_WORD = r"(?:two|three|four|five|six|seven|eight|nine|ten|twenty|thirty|sixty)"
FIGURE = re.compile(
    rf"(?<![\w.^])\d[\d,]*(?:\.\d+)?\s?{UNIT}"  # 7 seconds, 95%
    r"|(?<![\w.])\d*\.\d{2,}(?!\.?\d)"  # .0497, but not the version 1.2.3
    r"|(?<=\| )\d[\d,]*\.\d+(?= +\|)"  # a number in a table
    rf"|\b{NUMBER_WORD} (?:seconds|minutes|hours)\b"
)


def unrecorded(text: str, allowed: list[str]) -> list[str]:
    """Figures of a page that stand neither in code nor between markers, nor in the allowed phrases."""
    for phrase in allowed:
        text = text.replace(phrase, "")
    for pattern in CODE:
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return [f"line {text.count(chr(10), 0, match.start()) + 1}: {match[0]}" for match in FIGURE.finditer(text)]


@pytest.mark.parametrize("page", PAGES)
def test_the_figures_of_a_page_are_those_that_were_recorded(page: str) -> None:
    text = PAGES[page].read_text("utf-8")
    assert filled_text(text) == text, "make figures"


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith(FREE)])
def test_a_page_has_no_figures_beside_the_recorded_ones(page: str) -> None:
    assert unrecorded(PAGES[page].read_text("utf-8"), NOT_MEASURED.get(page, [])) == [], (
        "Record it (see benchmarks/__init__.py), leave it out, or, if it is not measured, name it in NOT_MEASURED."
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It takes 7 seconds, 1.9 times the floor.", ["line 1: 7 seconds", "line 1: 1.9 times"]),
        ("GCP is .0497,\nor 5%, of 1,106 MB.", ["line 1: .0497", "line 2: 5%", "line 2: 1,106 MB"]),
        ("| Adult | 2.4 |\n| cmc   | three |", ["line 1: 2.4"]),
        ("That takes nine seconds.", ["line 1: nine seconds"]),
        ("k = 10, polars 2.1.0, 30,162 records, `--max-suppressed 0.01`, l of 3.", []),
        ("So:\n\n    7 seconds\n\n```\n95%\n```\n<!-- figures: floor.pace -->7 seconds<!-- end -->", []),
    ],
)
def test_figures_are_found_in_prose_and_tables_but_not_in_code_and_markers(text: str, found: list[str]) -> None:
    assert unrecorded(text, []) == found


def test_every_phrase_that_is_allowed_is_still_there() -> None:
    missing = {
        page: [phrase for phrase in phrases if phrase not in PAGES[page].read_text("utf-8")]
        for page, phrases in NOT_MEASURED.items()
    }
    assert {page: phrases for page, phrases in missing.items() if phrases} == {}


# Sections whose figures are still to be measured on a quiet machine; their pages say so.
NOT_RECORDED_YET = {"large-search-long", "requirements", "wide"}


def test_every_section_is_recorded() -> None:
    assert {path.stem for path in RECORDINGS} == set(SECTIONS) - NOT_RECORDED_YET


def test_every_section_is_shown_on_a_page() -> None:
    shown = {match[2] for page in PAGES.values() for match in MARKER.finditer(page.read_text("utf-8"))}
    assert set(SECTIONS) - shown == set()


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recording_is_of_the_section_as_it_is_now(path: Path) -> None:
    kept = json.loads(path.read_text("utf-8"))
    section = SECTIONS[path.stem]
    assert kept["parameters"] == json.loads(json.dumps(section.parameters)), f"make bench BENCH={path.stem}"
    assert kept["timed"] == section.timed
    assert set(kept["data"]) == set(section.tables)
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in kept["data"].values())
    assert str(ROOT) not in path.read_text("utf-8")
    for table in kept["tables"].values():
        assert len(table["runs"]) == (RUNS if section.timed else 1)
    if section.timed:
        assert len(kept["others"]) == RUNS
        assert max(kept["others"]) <= MOST_OTHERS


def test_all_timed_sections_were_measured_on_one_machine_with_the_same_versions() -> None:
    kept = [json.loads(path.read_text("utf-8")) for path in RECORDINGS]
    assert len({json.dumps(one["environment"]) for one in kept if one["timed"]}) <= 1
