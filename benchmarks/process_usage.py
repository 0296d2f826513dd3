"""The wall-clock time, CPU seconds and peak resident memory of a fresh process.

Linux counts the memory of the parent towards the peak of a new process. So this file is also a small program that
starts the command, with nothing else loaded, and prints what it used.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Usage:
    """What a finished process has used, in seconds and bytes."""

    exit: int
    seconds: float
    cpu: float
    peak_bytes: int


def run_child(command: Sequence[str], environment: Mapping[str, str]) -> Usage:
    """Run ``command`` from the project's directory, with ``environment`` over the current one; it must succeed."""
    launcher = subprocess.run(
        [sys.executable, "-I", __file__, *command],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    usage = Usage(**json.loads(launcher.stdout))
    if usage.exit != 0:
        raise SystemExit(f"error: a measured process ended with exit code {usage.exit}: {' '.join(command)}")
    return usage


def main(command: Sequence[str]) -> None:
    started = time.perf_counter()
    child = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    seconds = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1 if sys.platform == "darwin" else 1024
    print(json.dumps(asdict(Usage(child.returncode, seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * unit))))


if __name__ == "__main__":
    main(sys.argv[1:])
