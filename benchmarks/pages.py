"""Figures in the documentation: made from what was recorded, between markers.

    <!-- figures: floor.ratios -->          the table of that name, in lines of its own

    <!-- end -->

    took <!-- figures: floor.seconds -->7<!-- end --> seconds          a phrase inside a sentence

Every section also has the phrase ``machine``, with the versions of what was used, and a timed one ``quiet``: how little
other processes did meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.markdown import table as markdown_table
from benchmarks.process_usage import ROOT
from benchmarks.recording import RUNS, Recording, recorded, rows_by_table
from benchmarks.sections import SECTIONS

MARKER = re.compile(r"(<!-- figures: ([\w-]+)\.([^>]+?) -->)(.*?)(<!-- end -->)", re.DOTALL)
NOT_RECORDED = "not recorded yet"


def pages() -> Iterator[Path]:
    """Yield the pages that may have figures."""
    yield from sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def fill() -> list[Path]:
    """Write all figures into the pages; return the pages that changed."""
    changed = []
    for path in pages():
        text = path.read_text("utf-8")
        if (filled := filled_text(text)) != text:
            path.write_text(filled, "utf-8")
            changed.append(path)
    return changed


def filled_text(text: str) -> str:
    """Return the text with every figure as it was recorded."""

    def replaced(match: re.Match[str]) -> str:
        opening, section, name, old, closing = match.groups()
        figure = figure_text(section, name)
        return f"{opening}\n\n{figure}\n\n{closing}" if old.startswith("\n") else f"{opening}{figure}{closing}"

    return MARKER.sub(replaced, text)


def figure_text(section: str, name: str) -> str:
    """Return a table or a phrase of a section."""
    if section not in SECTIONS:
        raise ValueError(f"there is no section {section!r}")
    recording = recorded(section)
    if recording is None:
        return f"({NOT_RECORDED}: `make bench BENCH={section}`)"
    rows = rows_by_table(recording)
    if name in rows:
        return markdown_table(rows[name])
    phrases = {**SECTIONS[section].phrases(rows), **_surroundings(recording)}
    if name not in phrases:
        raise ValueError(f"the section {section!r} has no table and no phrase {name!r}")
    return phrases[name]


def _surroundings(recording: Recording) -> dict[str, str]:
    about = dict(recording["environment"])
    cores, processor, memory, system = (about.pop(name) for name in ("cores", "processor", "memory GB", "system"))
    versions = ", ".join(f"{name} {value}" for name, value in about.items())
    phrases = {"machine": f"{cores} cores ({processor}), {memory} GB of memory, {system}, {versions}"}
    if recording["timed"]:
        share = f"{max(recording['others']):.1%}"
        phrases["quiet"] = f"The worst of {RUNS} runs, during which other processes took at most {share} of the cores."
    return phrases
