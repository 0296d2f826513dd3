"""A real session of Spark on two threads, one for all tests of a process; ``make test`` installs Java where it may."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

LEAST_JAVA = 17
SOURCES = str(Path(__file__).parent.parent / "src")
# Small jobs: whatever is planned, compiled or drawn for large ones takes longer than they do.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.parquet.compression.codec": "uncompressed",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executorEnv.PYTHONPATH": SOURCES,
}


@cache
def java_version() -> int:
    """The version of the Java that Spark would start, 0 where there is none."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None or not Path(program).exists():
        return 0
    told = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', told)
    return int(found[1]) if found else 0


def require_spark() -> None:
    """Skip where Spark or Java is missing; CI does not allow that."""
    pytest.importorskip("pyspark")
    if java_version() < LEAST_JAVA:
        pytest.skip("no Java of version 17 here; on Debian: apt-get install openjdk-17-jre-headless")


@cache
def session() -> Any:
    """The one session."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("sfumato tests")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found
