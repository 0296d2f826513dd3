"""The citation names the version that the package has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_citation_has_the_version_the_licence_and_all_papers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [project["version"]]
    assert re.findall(r"^license: (.*)$", citation, re.MULTILINE) == [project["license"]]
    papers = re.findall(r"- \{family-names: (\w+)", citation)
    assert {"Ghinita", "Wang", "Du", "LeFevre"} <= set(papers)
