"""Measure one figure in a process of its own, and record it unless it is only tried."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.tables import Options
from reproduce.data_files import DATA
from reproduce.figure import RECORDED, Profile, Size
from reproduce.papers import FIGURES
from reproduce.recording import Recording, measure, write


def measure_figure(name: str, profile: Profile, work: str) -> Recording:
    """Measure the figure of this name. Generated tables go into a directory under ``work``."""
    figure = FIGURES[name]
    own = Path(work) / str(os.getpid())  # two processes never generate the same file
    own.mkdir(exist_ok=True)
    recording = measure(figure, Size(profile, Options(own, DATA)))
    if profile in RECORDED:
        write(figure, profile, recording)
    return recording
