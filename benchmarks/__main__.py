"""Measure section by section and print the figures.

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
from benchmarks.tables import Options, machine_and_versions

SECTIONS: dict[str, Callable[[Options], Any]] = {
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
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="sfumato-benchmarks-") as temporary:
        work: Path = (arguments.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        # Keep releases of generated tables out of the user's run records.
        os.environ["SFUMATO_STATE_DIR"] = str(work / "state")
        options = Options(work, tuple(arguments.records), arguments.data, arguments.peers, arguments.peer_limit)
        environment = machine_and_versions()
        print("Measured with " + ", ".join(f"{name} {value}" for name, value in environment.items()) + ".", flush=True)
        results: dict[str, Any] = {"surroundings": environment}
        for section in arguments.sections or SECTIONS:
            results[section] = SECTIONS[section](options)
            if arguments.json is not None:  # after each section, so that a stopped run keeps its figures
                arguments.json.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


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
        help="sizes for floor and memory, 1 and 10 million by default; the curves vary the first size",
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
        "--peer-limit", type=float, default=300.0, metavar="SECONDS", help="how long a peer may take, 300 by default"
    )
    parser.add_argument(
        "--work", type=Path, metavar="DIR", help="keep generated files here; by default they are removed"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to this file")
    arguments = parser.parse_args()
    for section in arguments.sections:
        if section not in SECTIONS:
            parser.error(f"there is no section {section!r}; there are {', '.join(SECTIONS)}")
    if min(arguments.records) < 1:
        parser.error("--records must be at least 1")
    return arguments


if __name__ == "__main__":
    main()
