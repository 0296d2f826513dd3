"""A tenth of every figure runs, is drawn and is judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.tables import Options
from reproduce.data_files import DATA
from reproduce.figure import Figure, Size
from reproduce.papers import FIGURES
from reproduce.recording import measure


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


STARTS_PROCESSES = ("lefevre-17",)  # a second for each


@pytest.mark.not_quick
@pytest.mark.parametrize(
    "figure",
    [
        pytest.param(figure, id=name, marks=pytest.mark.slow if name in STARTS_PROCESSES else ())
        for name, figure in FIGURES.items()
    ],
)
def test_a_tenth_of_a_figure_runs_is_drawn_and_is_judged(figure: Figure, work: Path) -> None:
    result = measure(figure, Size("tenth", Options(work, DATA))).result
    assert json.loads(json.dumps(result.tables)) == result.tables
    pictures = figure.draw(result)
    assert pictures
    assert all("<svg" in picture.svg for picture in pictures.values())
    for claim in figure.claims:
        assert claim.judge(result).found
