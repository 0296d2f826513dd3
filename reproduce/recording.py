"""Recorded results: one JSON file per figure and profile, and its pictures, which are drawn from that file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.environment import environment
from benchmarks.recording import rounded
from reproduce.figure import Figure, Profile, Result, Size

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results"
PICTURES = FOLDER / "pictures"


@dataclass(frozen=True)
class Recording:
    """A result as it was recorded. ``cpu_seconds`` is what the whole figure took."""

    result: Result
    cpu_seconds: float
    environment: Mapping[str, str | int]


def measure(figure: Figure, size: Size) -> Recording:
    """Run a figure. What comes back is what a recorded file would say, with its rounding."""
    started = _cpu_seconds()
    result = figure.run(size)
    return _of_json(json.loads(_to_json(figure, size.profile, result, _cpu_seconds() - started)))


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of the commands that it has run."""
    return sum(os.times()[:4])


def write(figure: Figure, profile: Profile, recording: Recording) -> None:
    """Write the file and the pictures of a figure."""
    path = path_of(figure, profile)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_to_json(figure, profile, recording.result, recording.cpu_seconds), "utf-8")
    draw(figure, profile, recording.result)


def draw(figure: Figure, profile: Profile, result: Result) -> None:
    """Draw the pictures of a figure from its result, in place of older ones."""
    folder = PICTURES / profile
    folder.mkdir(parents=True, exist_ok=True)
    for old in pictures_of(figure, profile):
        old.unlink()
    for panel, picture in figure.draw(result).items():
        (folder / f"{figure.name}{panel}.svg").write_text(picture.svg, "utf-8")


def recorded(figure: Figure, profile: Profile) -> Recording | None:
    """Return what was recorded of a figure, or None."""
    path = path_of(figure, profile)
    return _of_json(json.loads(path.read_text("utf-8"))) if path.exists() else None


def path_of(figure: Figure, profile: Profile) -> Path:
    return RESULTS / profile / f"{figure.name}.json"


def pictures_of(figure: Figure, profile: Profile) -> list[Path]:
    """Return the pictures of a figure, in the order of their panels."""
    folder = PICTURES / profile
    return sorted(folder.glob(f"{figure.name}.svg")) + sorted(folder.glob(f"{figure.name}[a-z].svg"))


def _to_json(figure: Figure, profile: Profile, result: Result, cpu_seconds: float) -> str:
    """Return the file of a result: a line for every row, so that two files can be compared."""
    head: dict[str, Any] = {
        "figure": figure.name,
        "profile": profile,
        "sizes": result.sizes,
        "settings": result.settings,
        "cpu seconds": cpu_seconds,
        "environment": environment(),
    }
    entries = [f" {json.dumps(key)}: {json.dumps(rounded(value))}" for key, value in head.items()]
    tables = [
        f"  {json.dumps(name)}: [\n" + ",\n".join(f"   {json.dumps(rounded(row))}" for row in rows) + "\n  ]"
        for name, rows in result.tables.items()
    ]
    entries.append(' "tables": {\n' + ",\n".join(tables) + "\n }")
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _of_json(contents: Mapping[str, Any]) -> Recording:
    result = Result(contents["sizes"], contents["tables"], contents["settings"])
    return Recording(result, contents["cpu seconds"], contents["environment"])
