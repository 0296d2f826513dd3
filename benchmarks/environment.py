"""What figures depend on beside the code."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.tables import GENERATOR

PACKAGES = ("sfumato", "numba", "numpy", "pyarrow", "polars", "duckdb", "pyspark", "scikit-learn")


def environment() -> dict[str, str | int]:
    """Return the machine and the versions; nothing that names the machine or its owner."""
    return {
        "cores": os.cpu_count() or 1,
        "processor": _processor(),
        "memory GB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: found for name in PACKAGES if (found := _version(name)) is not None},
        "generator": GENERATOR,
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
