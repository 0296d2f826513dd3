"""What a section of the benchmarks declares and returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.tables import Options

Row = Mapping[str, Any]
Rows = Sequence[Row]


@dataclass(frozen=True)
class Table:
    """One table of figures.

    ``worst`` names the column by which the worst of several runs is found, row by row: the largest value of it, or the
    smallest with ``worst_is_smallest``. A table without it must be the same in every run.
    """

    title: str
    rows: Rows
    notes: Sequence[str] = ()
    worst: str | None = None
    worst_is_smallest: bool = False


def no_phrases(_: Mapping[str, Rows]) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class Section:
    """A question, and how it is answered.

    run: measures once and returns the tables by name.
    timed: whether a figure depends on the load of the machine. Such a section runs three times, on a quiet machine.
    parameters: what was measured; it is recorded with the figures.
    tables: the real tables that it needs from ``--data``.
    phrases: makes the figures that sentences contain from the rows of the tables.
    """

    run: Callable[[Options], Mapping[str, Table]]
    timed: bool
    parameters: Mapping[str, Any]
    tables: Sequence[str] = ()
    phrases: Callable[[Mapping[str, Rows]], Mapping[str, str]] = no_phrases
