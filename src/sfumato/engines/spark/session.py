"""Sessions of Spark: the user's as it is, or one of our own; and what Spark reports, in our words."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from sfumato import errors
from sfumato.errors import DataError, SfumatoError, UsageError

# Of PySpark, which is loaded by those who use it. Classic sessions and those of Spark Connect have different types.
Session = Any
Frame = Any

OURS = re.compile(r"sfumato\.errors\.(\w+): (.*)")
MISSING = re.compile(r"No module named '?(sfumato|pyarrow|numba|numpy)")


def is_spark_frame(data: object) -> bool:
    """Whether this is a DataFrame of Spark; Spark is not loaded to find out."""
    return any(
        base.__module__.startswith("pyspark.sql.") and base.__name__ == "DataFrame" for base in type(data).__mro__
    )


def session_of(data: object, master: str | None = None) -> Session:
    """The session of a frame, else the one that is there, else a new one on ``master``."""
    sql = _pyspark()
    if is_spark_frame(data):
        return data.sparkSession  # type: ignore[attr-defined]
    there = sql.SparkSession.getActiveSession()
    if there is not None:
        return there
    # Spark starts its workers with "python3", which need not be this one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.appName("sfumato").config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
    with in_our_words("start"):
        session = builder.getOrCreate()
    # What went wrong is told in our words. Spark's log would hold cells.
    session.sparkContext.setLogLevel("OFF")
    return session


def shared(session: Session, value: Any) -> Any:
    """``value`` for every executor, as an object that has it as ``value``. Spark Connect sends it with the function."""
    context = getattr(session, "sparkContext", None)
    return SimpleNamespace(value=value) if context is None else context.broadcast(value)


def as_a_task() -> None:
    """Called in an executor: Spark gives a task one core, and runs as many beside each other as there are."""
    os.environ.setdefault("SFUMATO_THREADS", "1")


@contextmanager
def in_our_words(what: str) -> Iterator[None]:
    """Errors of Spark hold cells and pages of Java. Say that it could not do ``what``, and why as far as is known."""
    try:
        yield
    except _errors_of_spark() as error:
        raise _translated(error, what) from None


def _errors_of_spark() -> tuple[type[Exception], ...]:
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ImportError:  # a client of Spark Connect alone has no Java beside it
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
        return UsageError("Spark needs Java, and none was found. Install a JDK 17, or set JAVA_HOME.")
    if "No space left on device" in text:
        return errors.OutputError("Spark has no space left on a disk; nothing was written. Free some, and run again.")
    named = getattr(error, "getCondition", lambda: None)() or type(error).__name__
    return DataError(
        f"Spark could not {what} ({named}); nothing was written. Try the step in a session of your own to see why: "
        "what Spark says may hold cells of the table, so it is not repeated here."
    )


def _pyspark() -> Any:
    try:
        from pyspark import sql
    except ImportError:
        raise UsageError("Spark is not installed. Run: pip install 'sfumato[spark]'") from None
    return sql
