"""Methods side by side, as a table and as curves of loss and time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, TypeVar

from sfumato._version import __version__
from sfumato.evaluation.comparison_points import Point, Row, exit_code, least_losses, table_text
from sfumato.pictures.curves import Scale
from sfumato.pictures.picture import Picture, beside
from sfumato.report.page import of_class, page, themed
from sfumato.report.result_files import Results, curves_of, scale_for

TITLE = "Methods side by side"
FEW = 4
FAILED = {2: "refused", 3: "infeasible"}
MEASURES = {
    "GCP": "information loss: on average a released value leaves open this share of its column's range or taxonomy. "
    "0% is the original, 100% says nothing.",
    "C_DM": "discernibility: each record counts the size of its class, one that is left out the whole table.",
    "C_AVG": "the average size of a class over k.",
    "MAXSIZE": "the largest perimeter of a class: twice the sum of its sides, each scaled to [0, 1].",
    "least MAXSIZE": "no classes of k records have a smaller one, whatever the method: twice the distance of the "
    "record that is farthest from its nearest k - 1 others. The ratio is of MAXSIZE to it.",
    "smallest box": "a weaker bound, that of Du et al. (2007): the perimeter of the smallest box of k records. It is 0 "
    "where k records are equal, else between the two numbers.",
    "seconds": "partition: of forming the classes. Total: of recoding, arranging and auditing as well. Reading the "
    "table is in neither, since it is done once for all. Of short runs the quickest of three is told.",
}
Cell = Callable[[Row], str]
Failed = TypeVar("Failed", bound=Row)


class Comparison(Results):
    """What came of every method under every k and l.

    ``rows`` are plain dictionaries. ``write`` makes a page, a picture, CSV or JSON of them; notebooks show them.
    """

    def __init__(
        self, rows: Sequence[Row], points: Sequence[Point], data: object, seconds: Mapping[str, float]
    ) -> None:
        super().__init__(data)
        self.results = tuple(rows)
        self._points = tuple(points)
        self._seconds = dict(seconds)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row.as_dict() for row in self.results]

    @property
    def records(self) -> int:
        """Those of the table."""
        return self.results[0].records

    @property
    def points(self) -> int:
        """How many were asked for."""
        return len(self._points)

    @property
    def complete(self) -> bool:
        """Is there a row for every point? Not when it was interrupted."""
        return len(self.results) == self.points

    @property
    def exit_code(self) -> int:
        return exit_code(self.results)

    @property
    def has_results(self) -> bool:
        return any(row.code == 0 for row in self.results)

    def summary(self) -> dict[str, Any]:
        """What ``sfumato compare --json`` prints."""
        return {
            "records": self.records,
            "quasi_identifiers": list(self._points[0].policy.quasi_identifiers),
            "points": self.points,
            "complete": self.complete,
            "rows": self.rows,
            "version": __version__,
            "seconds": {name: round(value, 4) for name, value in self._seconds.items()},
        }

    def loss(self, theme: str = "light", narrow: bool = False) -> Picture:
        """The curves of the loss."""
        # Where one method loses many times what another does, an axis from 0 would put all the others into one line.
        alike: dict[str, list[float | None]] = {}
        for row in self.results:
            alike.setdefault(row.label, []).append(row.gcp)
        apart = all(row.gcp != 0 for row in self.results) and any(scale_for(one) == "log" for one in alike.values())
        scale: Scale = "log" if apart else "linear"
        return self._curves("gcp", "Information loss", "information loss (GCP)", theme, scale, ".3~p", narrow)

    def time(self, theme: str = "light", narrow: bool = False) -> Picture:
        """The curves of the time that forming the classes took."""
        scale = scale_for([row.partition_seconds for row in self.results])
        return self._curves("partition_seconds", "Time", "seconds to form the classes", theme, scale, None, narrow)

    def picture(self, theme: str = "light") -> Picture:
        """Both beside each other."""
        loss, time = self.loss(theme), self.time(theme)
        return beside([loss, time], title=TITLE, description=f"{loss.description} {time.description}")

    def page(self) -> str:
        """One offline HTML page."""
        drawn = (self.loss, self.time) if self.has_results else ()
        return page(TITLE, self._body([themed(picture) for picture in drawn]))

    def table(self) -> str:
        """The rows as CSV."""
        return table_text(self.results)

    def _repr_html_(self) -> str:
        pictures = [self.loss(), self.time()] if self.has_results else []
        return self._body([f"<div>{picture.svg}</div>" for picture in pictures])

    def __repr__(self) -> str:
        failed = sum(row.code != 0 for row in self.results)
        return f"<Comparison of {len(self.results):,} points, {failed:,} of them without a result>"

    def _curves(
        self, y: str, title: str, y_title: str, theme: str, scale: Scale, form: str | None, narrow: bool
    ) -> Picture:
        return curves_of(self.results, y, title, y_title, theme=theme, scale=scale, form=form, narrow=narrow)

    def _body(self, pictures: Sequence[str]) -> str:
        names = ", ".join(self._points[0].policy.quasi_identifiers)
        about = f"{self.records:,} records; quasi-identifiers {names}. Every release that is measured passed its audit."
        parts = [f"<h1>{TITLE}</h1>\n", f'<p class="soft">{escape(about)}</p>\n']
        if not self.complete:
            parts.append(f"<p>Interrupted after {len(self.results):,} of {self.points:,} points.</p>\n")
        parts += [f"<p>{escape(text)}</p>\n" for text in remarks(self.results)]
        parts += [f'<div class="pictures">{"".join(pictures)}</div>\n', _table(self.results)]
        shown = columns_of(self.results)
        told = {name: text for name, text in MEASURES.items() if name == "seconds" or name in shown}
        measures = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in told.items())
        return "".join(parts) + f"<h2>What the figures are</h2>\n<dl>{measures}</dl>\n"


def columns_of(rows: Sequence[Row]) -> dict[str, Cell]:
    """The figures of a row that has them, as people read them, by heading."""
    suppressed = any(row.suppressed for row in rows)
    bounds: dict[str, Cell] = {
        "least MAXSIZE": lambda row: "" if row.max_size_bound is None else f"{row.max_size_bound:.3f}",
        "ratio": lambda row: "" if row.max_size_ratio is None else f"{row.max_size_ratio:.2f}",
        "smallest box": _smallest_box,
    }
    return {
        "GCP": lambda row: f"{row.gcp:.2%}",
        "C_DM": lambda row: f"{row.c_dm:,}",
        "C_AVG": lambda row: "" if row.c_avg is None else f"{row.c_avg:.3f}",
        "MAXSIZE": lambda row: "" if row.max_size is None else f"{row.max_size:.3f}",
        **(bounds if any(row.max_size_bound is not None for row in rows) else {}),
        "classes": lambda row: f"{row.classes:,}",
        "smallest class": lambda row: f"{row.smallest_class:,}",
        **({"left out": lambda row: f"{row.suppressed:,}"} if suppressed else {}),
        "partition, seconds": lambda row: f"{row.partition_seconds:.3f}",
        "total, seconds": lambda row: f"{row.total_seconds:.3f}",
    }


def _smallest_box(row: Row) -> str:
    least, most = row.smallest_box_least, row.smallest_box_most
    if least is None or most is None:
        return ""
    return f"{most:.3f}" if f"{least:.3f}" == f"{most:.3f}" else f"{least:.3f} to {most:.3f}"


def outcome(row: Row) -> str:
    """In one word."""
    return "holds" if row.code == 0 else FAILED.get(row.code, "failed")


def remarks(rows: Sequence[Row]) -> list[str]:
    """Which methods have the least loss, and what else is to be known of some, each once."""
    found = []
    least = least_losses(rows)
    if least:
        found.append(f"Least loss: {'; '.join(places(least, rows))}.")
    said: dict[str, dict[str, None]] = {}
    for row in rows:
        for text in row.remarks:
            said.setdefault(text, {})[row.method] = None
    return found + [f"{', '.join(names)}: {text}" for text, names in said.items()]


def by_error(rows: Sequence[Failed]) -> dict[str, list[Failed]]:
    """The rows without figures, by the reason."""
    found: dict[str, list[Failed]] = {}
    for row in rows:
        if row.error is not None:
            found.setdefault(row.error, []).append(row)
    return found


def places(some: Sequence[Row], rows: Sequence[Row]) -> list[str]:
    """The methods of some of the rows with their k and l; those with the same together, those with most first."""
    labels: dict[str, list[str]] = {}
    for row in some:
        labels.setdefault(row.method, []).append(row.label)
    methods: dict[tuple[str, ...], list[str]] = {}
    for name, here in labels.items():
        methods.setdefault(tuple(here), []).append(name)
    every_method, every_label = {row.method for row in rows}, {row.label for row in rows}
    found = []
    for shared, names in sorted(methods.items(), key=lambda one: -len(one[0])):
        who = "every method" if len(every_method) > 1 and set(names) == every_method else ", ".join(names)
        where = f"at {' and '.join(shared)}" if len(shared) <= FEW else f"at {len(shared):,} points"
        found.append(f"{who} {'everywhere' if 1 < len(shared) == len(every_label) else where}")
    return found


def _table(rows: Sequence[Row]) -> str:
    """The rows as an HTML table; the least loss of each k and l stands out."""
    with_l = any(row.l is not None for row in rows)
    least = {id(row) for row in least_losses(rows)}
    columns = columns_of(rows)
    heads = ["k", *(["l"] if with_l else []), "method", *columns, "what holds"]
    text = ("method", "what holds")
    lines = ["".join(f"<th{of_class('text' if head in text else '')}>{head}</th>" for head in heads)]
    before = None
    for row in rows:
        cells = [f"<td>{row.k:,}</td>", *([f"<td>{row.l:,}</td>"] if with_l else [])]
        cells.append(f'<td class="text">{escape(row.method)}</td>')
        if row.code == 0:
            cells += [
                f"<td{of_class('least' if head == 'GCP' and id(row) in least else '')}>{cell(row)}</td>"
                for head, cell in columns.items()
            ]
            cells.append(f'<td class="text long">{escape(row.holds)}</td>')
        else:
            told = f"{outcome(row)}: {row.error}"
            cells.append(f'<td class="text long soft" colspan="{len(columns) + 1}">{escape(told)}</td>')
        lines.append(f"<tr{of_class('first' if before not in (None, row.label) else '')}>{''.join(cells)}</tr>\n")
        before = row.label
    return f'<div class="table"><table>\n<tr>{lines[0]}</tr>\n{"".join(lines[1:])}</table></div>\n'
