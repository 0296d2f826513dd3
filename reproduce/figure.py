"""What a figure of a paper is: a measurement, its drawing, and the claims that the paper makes about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from benchmarks.tables import Options
from sfumato.pictures.picture import Picture

Profile = Literal["tenth", "quick", "full"]
PROFILES: tuple[Profile, ...] = get_args(Profile)
RECORDED: tuple[Profile, ...] = ("quick", "full")

Verdict = Literal["holds", "fails", "depends"]
Row = dict[str, Any]
One = TypeVar("One")


@dataclass(frozen=True)
class Size:
    """How large a run is, and the tables that it may use."""

    profile: Profile
    tables: Options

    def of(self, *, tenth: One, quick: One, full: One) -> One:
        """Return what this profile uses."""
        return {"tenth": tenth, "quick": quick, "full": full}[self.profile]


@dataclass(frozen=True)
class Result:
    """What a figure gave.

    sizes: the sizes of this run beside those of the paper, in words. Every picture says it.
    tables: rows of JSON values by the name of the table.
    settings: parameters and seeds of the run.
    """

    sizes: str
    tables: Mapping[str, Sequence[Row]]
    settings: Mapping[str, Any] = field(default_factory=dict)


def beside_paper(records: int, published: int) -> str:
    """Say how many records a run has, beside those of the paper."""
    return f"{records:,} records, as in the paper" if records == published else f"{records:,} of {published:,} records"


@dataclass(frozen=True)
class Judgement:
    """Whether a claim holds, and the figures that decide it. Where there is chance they have an interval."""

    verdict: Verdict
    found: str


OURS = "our "
"""How the baseline of a claim begins if it is not the published one but our own, stronger form."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper in our words, how the baseline that it speaks of is read, and who decides."""

    text: str
    baseline: str
    judge: Callable[[Result], Judgement]

    @property
    def against_ours(self) -> bool:
        """Whether the baseline is our own form, of which the paper says nothing."""
        return self.baseline.startswith(OURS)


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper.

    paper: its key, the word before the number in the name of the figure.
    number: as the paper numbers it, such as "12" or "4-7".
    title: what it shows.
    published: the sizes and settings of the paper.
    remarks: what a reader who knows the paper should know about this version.
    """

    paper: str
    number: str
    title: str
    published: str
    run: Callable[[Size], Result]
    draw: Callable[[Result], Mapping[str, Picture]]
    claims: Sequence[Claim]
    remarks: Sequence[str] = ()

    @property
    def name(self) -> str:
        return f"{self.paper}-{self.number}"

    @property
    def label(self) -> str:
        """What the paper calls it. Tables have Roman numbers."""
        return f"figure {self.number}" if self.number[0].isdigit() else f"tables {self.number}"


@dataclass(frozen=True)
class Paper:
    """A paper with the figures that are reproduced, in its order."""

    key: str
    citation: str
    figures: Sequence[Figure]
    remarks: Sequence[str] = ()

    @property
    def author(self) -> str:
        """The first author, with whom the citation begins."""
        return self.citation.split(",")[0]
