"""Values that are not in the taxonomy of their column: one error for all columns that have some."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from typing import TypeVar

from sfumato.errors import TaxonomyError

Result = TypeVar("Result")

ADVICE = (
    "That lists all of them in a private file. Add them to the taxonomy (with -o, a ready-made one becomes a file), or "
    "list them in [input] nulls if they mean that the value is missing."
)


class OutsideTaxonomyError(TaxonomyError):
    """A column has values that its taxonomy does not have. ``problem``: what is wrong, without what to do."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem} {ADVICE}")
        self.problem = problem


def problem_of(column: str, values: str, taxonomy: str, place: str, check: Iterable[str], remark: str = "") -> str:
    """Say how many values of a column are outside.

    values: how many, as a noun and a verb. place: where the first of them is. check: the arguments of ``sfumato
    taxonomy`` that list them.
    """
    command = shlex.join(["sfumato", "taxonomy", "INPUT", column, *check, "--missing", "missing.csv"])
    reason = f"; {remark}" if remark else ""
    return f"column {column!r}: {values} not in {taxonomy}{reason}; the first is in {place}. Run: {command}."


def or_problem(work: Callable[[], Result]) -> Result | OutsideTaxonomyError:
    """Return the result, or the error of a column whose values are outside: other columns may have the same problem."""
    try:
        return work()
    except OutsideTaxonomyError as error:
        return error


def without_problems(results: Iterable[Result | OutsideTaxonomyError]) -> list[Result]:
    """Return the results of all columns, or raise one error for all whose values are outside."""
    good: list[Result] = []
    problems: list[str] = []
    for result in results:
        if isinstance(result, OutsideTaxonomyError):
            problems.append(result.problem)
        else:
            good.append(result)
    if problems:
        raise OutsideTaxonomyError(" ".join(problems))
    return good
