"""Write the results of several runs as a file: a page, a picture, or a table."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.errors import UsageError
from sfumato.evaluation.comparison_points import Row
from sfumato.pictures.curves import NARROW, WIDTH, Limit, Scale, curves
from sfumato.pictures.picture import FORMATS, Picture
from sfumato.report.page import PAGE
from sfumato.tables.targets.replacement import check_replaceable
from sfumato.tables.targets.staging import Stage, check_target, write_staged
from sfumato.tables.targets.target import refuse_input_as_output

KINDS = (".html", *FORMATS, ".csv", ".json")
WIDE = 8.0  # from this ratio of the largest to the smallest value on, the axis is logarithmic


class Results(ABC):
    """Results that people read as a page or a picture, and programs as CSV or JSON."""

    def __init__(self, data: object) -> None:
        self._source = data if isinstance(data, str | Path) else None  # do not keep a frame in memory for this

    @property
    @abstractmethod
    def has_results(self) -> bool:
        """Whether any run has a result, so that there is something to write."""

    @property
    @abstractmethod
    def exit_code(self) -> int:
        """The exit code of the command: 0 if any run has a result."""

    @abstractmethod
    def summary(self) -> dict[str, Any]:
        """The results that the command prints with ``--json``."""

    @abstractmethod
    def picture(self, theme: str = "light") -> Picture:
        """The curves as one picture."""

    @abstractmethod
    def page(self) -> str:
        """The results as one offline HTML page."""

    @abstractmethod
    def table(self) -> str:
        """The figures as CSV."""

    def write(self, path: str | Path, *, theme: str = "light", force: bool = False) -> Path:
        """Write a page (.html), the curves (.svg, .png, .pdf) or the table (.csv, .json), depending on the suffix.

        A page of Sfumato is replaced; any other file that exists only with ``force``.
        """
        target = Path(path)
        check_results(self._source, target, force=force)
        kind = target.suffix.lower()
        if kind in FORMATS:
            return self.picture(theme).write(target, force=force)
        if kind == ".html":
            text = self.page()
        else:
            text = self.table() if kind == ".csv" else json.dumps(self.summary(), indent=2) + "\n"
        write_text(text, target)
        return target


def write_text(text: str, target: Path, *, private: bool = False) -> None:
    """Write a text file, whole or not at all. Only its owner can read a private one."""
    with Stage() as stage:
        write_staged(stage, target, text, private=private)
        stage.publish()


def check_results(data: object, target: Path, *, force: bool = False) -> None:
    """Refuse a target that cannot hold results, or that exists and may not be replaced, before anything is measured."""
    if target.suffix.lower() not in KINDS:
        raise UsageError(
            f"the output {target.name!r} has no suffix that says what to write. Use one of {', '.join(KINDS)}."
        )
    check_target(target)
    refuse_input_as_output(data, target)
    is_page = target.suffix.lower() == ".html"
    check_replaceable(target, "page" if is_page else "results", PAGE if is_page else None, force=force)


def scale_for(values: Sequence[float | None]) -> Scale:
    """The scale of an axis: logarithmic for values that are far apart."""
    numbers = [value for value in values if value is not None]
    return "log" if numbers and min(numbers) > 0 and max(numbers) / min(numbers) >= WIDE else "linear"


def curves_of(
    rows: Sequence[Row],
    y: str,
    title: str,
    y_title: str,
    *,
    theme: str,
    scale: Scale = "linear",
    form: str | None = None,
    limit: Limit | None = None,
    narrow: bool = False,
    from_zero: bool = True,
) -> Picture:
    """Curves of the attribute ``y`` of the rows by k, or by l if there is one k. If both vary, each l has a line."""
    ks, ls = {row.k for row in rows}, {row.l for row in rows}
    by_l = len(ks) == 1 and len(ls) > 1
    drawn = [
        {
            "x": row.l if by_l else row.k,
            "y": getattr(row, y),
            "series": row.method if by_l or len(ls) == 1 else f"{row.method}, l = {row.l}",
        }
        for row in rows
    ]
    if len(ks) == len(ls) == 1:
        where = f"at {rows[0].label}"
    elif by_l:
        where = f"by l, k = {min(ks):,}"
    else:
        where = "by k" if len(ls) > 1 or None in ls else f"by k, l = {rows[0].l:,}"
    return curves(
        drawn,
        x="x",
        y="y",
        series="series",
        title=f"{title} {where}",
        x_title="l" if by_l else "k",
        y_title=f"{y_title}, logarithmic" if scale == "log" else y_title,
        x_scale=scale_for([row["x"] for row in drawn]),
        y_scale=scale,
        y_format=form,
        from_zero=from_zero,
        limit=limit,
        width=NARROW if narrow else WIDTH,
        theme=theme,
    )
