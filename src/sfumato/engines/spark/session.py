"""Spark sessions: the user's own, or a new one; and errors of Spark, translated into ours."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sfumato import errors
from sfumato.errors import DataError, SfumatoError, UsageError
from sfumato.kernels.numba_import import runs_the_command

# Types of PySpark, which is loaded only when it is used. Classic sessions and Spark Connect have different types.
Session = Any
Frame = Any

JAVA_OPTIONS = "SPARK_SUBMIT_OPTS"  # of the driver
OURS = re.compile(r"sfumato\.errors\.(\w+): (.*)")
MISSING = re.compile(r"No module named '?(sfumato|pyarrow|numba|numpy)")


def is_spark_frame(data: object) -> bool:
    """Return whether this is a Spark DataFrame, without loading Spark."""
    return any(
        base.__module__.startswith("pyspark.sql.") and base.__name__ == "DataFrame" for base in type(data).__mro__
    )


def session_of(data: object, master: str | None = None, target: str | Path | None = None) -> Session:
    """Return the session of a frame, or else the active session, or else a new one on ``master``.

    target: where the release goes, if that is known.
    """
    sql = _pyspark()
    if is_spark_frame(data):
        return data.sparkSession  # type: ignore[attr-defined]
    active = sql.SparkSession.getActiveSession()
    if active is not None:
        return active
    # Spark starts its workers with "python3", which may be another Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.appName("sfumato").config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
    with in_our_words("start"), _options_of_java(data, target):
        session = builder.getOrCreate()
    # Errors are translated into our own. The log of Spark would hold cells.
    session.sparkContext.setLogLevel("OFF")
    return session


@contextmanager
def _options_of_java(data: object, target: str | Path | None) -> Iterator[None]:
    """Start Java without its second compiler if it is to move nothing but chunks.

    That compiler then takes longer than its code saves; it pays where Java reads or writes rows. Options that the user
    has set for the driver come after this one, and win. Executors in other processes do not get it. A program that uses
    the package may go on with the session, so its Java is left alone.
    """
    if JAVA_OPTIONS in os.environ or not runs_the_command() or not _python_has_all_rows(data, target):
        yield
        return
    os.environ[JAVA_OPTIONS] = "-XX:TieredStopAtLevel=1"
    try:
        yield
    finally:
        del os.environ[JAVA_OPTIONS]


def _python_has_all_rows(data: object, target: str | Path | None) -> bool:
    """Return whether a run reads and writes Parquet files in directories of this machine."""
    if target is None or not isinstance(data, str | os.PathLike):
        return False
    path = Path(data)
    return path.suffix.lower() in (".parquet", ".pq", "") and path.exists() and Path(target).absolute().parent.is_dir()


def shared(session: Session, value: Any) -> Any:
    """Share a value with every executor, as the attribute ``value``. Spark Connect sends it with the function."""
    context = getattr(session, "sparkContext", None)
    return SimpleNamespace(value=value) if context is None else context.broadcast(value)


def as_a_task() -> None:
    """Keep a task to one thread, since Spark runs one task on each core, and what is loaded out of garbage collections.

    Spark's workers collect garbage after every task, which takes a tenth of a second with all that the libraries hold.
    """
    os.environ.setdefault("SFUMATO_THREADS", "1")
    gc.freeze()


def number_of_task() -> int:
    """Return the number of the task that this code runs in."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise AssertionError("something is numbered by task, and this code does not run in a task")
    return int(context.partitionId())


@contextmanager
def in_our_words(what: str) -> Iterator[None]:
    """Replace errors of Spark, which hold cells and pages of Java, by an error that says what could not be done."""
    try:
        yield
    except _errors_of_spark() as error:
        raise _translated(error, what) from None


def _errors_of_spark() -> tuple[type[Exception], ...]:
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ImportError:  # a client of Spark Connect needs no Java
        return (PySparkException,)
    return PySparkException, Py4JError


def _translated(error: BaseException, what: str) -> SfumatoError:
    text = str(error)
    ours = OURS.search(text)
    if ours is not None and isinstance(kind := getattr(errors, ours[1], None), type):
        return kind(ours[2])  # type: ignore[no-any-return]
    missing = MISSING.search(text)
    if missing is not None:
        return UsageError(
            f"the executors of Spark do not have the package {missing[1]}. Install sfumato in the Python that "
            "PYSPARK_PYTHON names on every node, or send a packed environment with --archives."
        )
    if "PYTHON_VERSION_MISMATCH" in text:
        return UsageError(
            "the executors of Spark run another version of Python. Set PYSPARK_PYTHON to the one that this program "
            "runs in, on every node."
        )
    if "JAVA_GATEWAY_EXITED" in text or "JAVA_HOME" in text:
        return UsageError("Spark needs Java, which was not found. Install a JDK 17, or set JAVA_HOME.")
    if "No space left on device" in text:
        return errors.OutputError("Spark has no space left on a disk; nothing was written. Free some, and run again.")
    named = getattr(error, "getCondition", lambda: None)() or type(error).__name__
    return DataError(
        f"Spark could not {what} ({named}); nothing was written. The message of Spark may hold cells of the table, so "
        "it is not repeated here. Try the step in a session of your own to see it."
    )


def _pyspark() -> Any:
    try:
        from pyspark import sql
    except ImportError:
        raise UsageError("Spark is not installed. Run: pip install 'sfumato[spark]'") from None
    return sql
