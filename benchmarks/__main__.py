"""Measure and print, section by section.

python -m benchmarks [section ...] [--records N ...] [--data DIR] [--peers PYTHON] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import (
    curves,
    disk,
    diversity,
    first_use,
    floor,
    learning,
    loss,
    memory,
    methods,
    peers,
    rothko,
    selection,
    spark,
    targets,
    tradeoff,
    workload,
)
from benchmarks.setting import Setting, surroundings

SECTIONS: dict[str, Callable[[Setting], Any]] = {
    "floor": floor.run,
    "curves": curves.run,
    "memory": memory.run,
    "disk": disk.run,
    "loss": loss.run,
    "methods": methods.run,
    "diversity": diversity.run,
    "tradeoff": tradeoff.run,
    "learning": learning.run,
    "targets": targets.run,
    "selection": selection.run,
    "workload": workload.run,
    "rothko": rothko.run,
    "spark": spark.run,
    "peers": peers.run,
    "first-use": first_use.run,
}


def main() -> None:
    asked = _arguments()
    with tempfile.TemporaryDirectory(prefix="sfumato-benchmarks-") as temporary:
        work: Path = (asked.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        # Releases of generated tables have no place among the user's own run records.
        os.environ["SFUMATO_STATE_DIR"] = str(work / "state")
        setting = Setting(work, tuple(asked.records), asked.data, asked.peers, asked.peer_limit)
        around = surroundings()
        print("Measured with " + ", ".join(f"{name} {value}" for name, value in around.items()) + ".", flush=True)
        results: dict[str, Any] = {"surroundings": around}
        for section in asked.sections or SECTIONS:
            results[section] = SECTIONS[section](setting)
            if asked.json is not None:  # after each: a long run that is stopped keeps what it has
                asked.json.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure speed, memory and loss of Sfumato, and compare it with peers."
    )
    parser.add_argument("sections", nargs="*", metavar="section", help=f"{', '.join(SECTIONS)}; all by default")
    parser.add_argument(
        "--records",
        type=int,
        nargs="+",
        default=[1_000_000, 10_000_000],
        metavar="N",
        help="sizes for floor and memory, 1 and 10 million by default; curves are drawn around the first",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="a real table for loss, methods and peers: data.csv or data.csv.gz, schema.json and taxonomies/; "
        "without it a generated one is used",
    )
    parser.add_argument("--peers", type=Path, metavar="PYTHON", help="the Python of the environment that has the peers")
    parser.add_argument(
        "--peer-limit", type=float, default=300.0, metavar="SECONDS", help="the longest a peer may take, 300 by default"
    )
    parser.add_argument("--work", type=Path, metavar="DIR", help="where generated files stay; by default they do not")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there as well")
    asked = parser.parse_args()
    for section in asked.sections:
        if section not in SECTIONS:
            parser.error(f"there is no section {section!r}; there are {', '.join(SECTIONS)}")
    if min(asked.records) < 1:
        parser.error("--records must be at least 1")
    return asked


if __name__ == "__main__":
    main()
