"""Run one peer in the environment that has it. Imports nothing of this project.

    python peer.py anonypy|anonypyx|anjana TASK.json

The task gives a CSV file, its columns, the hierarchies, k, the file for the peer's release, and how many bytes of
memory the peer may have. Prints a JSON object: the seconds of each run and the peer's version. Reading, writing and
imports are not timed.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas

ROUNDS = 3
ENOUGH_SECONDS = 20.0
"""Seconds after which no further round starts: one slow run is enough."""

SUPPRESSION_PERCENT = 5

Release = Callable[[], pandas.DataFrame]
Prepare = Callable[[], Release]


def anonypy_runs(frame: pandas.DataFrame, task: dict[str, Any]) -> Prepare:
    import anonypy  # type: ignore[import-not-found]

    names = task["quasi_identifiers"]
    frame = frame.astype({name: "category" for name in frame.columns if name not in task["numeric"]})

    def prepare() -> Release:
        copy = frame.copy()

        def release() -> pandas.DataFrame:
            rows = anonypy.Preserver(copy, names, task["sensitive"]).anonymize_k_anonymity(task["k"])
            return pandas.DataFrame(rows)

        return release

    return prepare


def anonypyx_runs(frame: pandas.DataFrame, task: dict[str, Any]) -> Prepare:
    import anonypyx  # type: ignore[import-not-found]

    frame = frame.astype({name: "category" for name in frame.columns if name not in task["numeric"]})
    arguments = {"feature_columns": task["quasi_identifiers"], "sensitive_column": task["sensitive"], "k": task["k"]}

    def prepare() -> Release:
        copy = frame.copy()

        def release() -> pandas.DataFrame:
            # Labels as anonypy has them; its other form has a column for every category.
            readable = anonypyx.Anonymiser(
                copy, **arguments, algorithm="Mondrian", generalisation_strategy="human-readable"
            )
            return readable.anonymise()

        return release

    return prepare


def anjana_runs(frame: pandas.DataFrame, task: dict[str, Any]) -> Prepare:
    from anjana.anonymity import k_anonymity  # type: ignore[import-not-found]

    def prepare() -> Release:
        copy = frame.copy()
        hierarchies = {name: _levels(rows, name in task["numeric"]) for name, rows in task["hierarchies"].items()}

        def release() -> pandas.DataFrame:
            return k_anonymity(copy, [], list(task["quasi_identifiers"]), task["k"], SUPPRESSION_PERCENT, hierarchies)

        return release

    return prepare


def _levels(rows: list[list[str]], numeric: bool) -> dict[int, list[Any]]:
    """Return a hierarchy in the form of anjana: for each level the name of every leaf's group."""
    levels: dict[int, list[Any]] = {level: [row[level] for row in rows] for level in range(len(rows[0]))}
    if numeric:
        levels[0] = [int(leaf) for leaf in levels[0]]
    return levels


def _expanded(released: pandas.DataFrame, quasi_identifiers: list[str]) -> pandas.DataFrame:
    """Expand to one row per record. anonypy has one per class and sensitive value, with a count and labels in lists."""
    rows = released.loc[released.index.repeat(released["count"])]
    lists = [name for name in quasi_identifiers if isinstance(rows[name].iloc[0], list)]
    return rows.assign(**{name: rows[name].str[0] for name in lists})


RUNS = {
    "anonypy": anonypy_runs,
    "anonypyx": anonypyx_runs,
    "anjana": anjana_runs,
}


def main(peer: str, task_path: Path) -> None:
    task = json.loads(task_path.read_text("utf-8"))
    resource.setrlimit(resource.RLIMIT_AS, (task["memory"], task["memory"]))
    text = {name: str for name in task["columns"] if name not in task["numeric"]}
    frame = pandas.read_csv(task["data"], dtype=text, keep_default_na=False)[task["columns"]]
    prepare = RUNS[peer](frame, task)
    seconds: list[float] = []
    released = pandas.DataFrame()
    with contextlib.redirect_stdout(sys.stderr):  # peers talk
        while len(seconds) < ROUNDS and sum(seconds) < ENOUGH_SECONDS:
            release = prepare()
            started = time.perf_counter()
            released = release()
            seconds.append(time.perf_counter() - started)
    if "count" in released.columns:
        released = _expanded(released, task["quasi_identifiers"])
    if len(released):
        released[task["quasi_identifiers"]].astype(str).to_csv(task["output"], index=False)
    print(json.dumps({"seconds": seconds, "released": len(released), "version": version(peer)}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
