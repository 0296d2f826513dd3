"""The comparison of methods, as a table and as curves of loss and time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sfumato._version import __version__
from sfumato.evaluation.comparison_points import Point, Row, exit_code, least_losses, table_text
from sfumato.methods.method import Effort
from sfumato.pictures.bars import RankedBar, ranked_bars
from sfumato.pictures.curves import Scale
from sfumato.pictures.picture import Picture, side_by_side
from sfumato.report.html import Markup, element, joined
from sfumato.report.page import definitions, in_widths, page, row_table
from sfumato.report.result_files import Results, curves_of, scale_for
from sfumato.texts import ENGLISH

TITLE = "Methods side by side"
FEW = 4
BARS, NARROW_BARS = 520.0, 330.0  # widths of the bars of methods
FAILED = {2: "refused", 3: "infeasible"}
MEASURES = {
    "GCP": "information loss: the share of its column's range or taxonomy that a released value leaves open, on "
    "average. 0% is the original, 100% says nothing.",
    "C_DM": "discernibility: each record counts the size of its class, and a record that is left out counts the size "
    "of the table.",
    "C_DM by groups": "the same, over the groups that the method formed, as papers count it. Groups that show the same "
    "are one class.",
    "C_AVG": "the average size of a class divided by k.",
    "MAXSIZE": "the largest perimeter of a class: twice the sum of its sides, each scaled to [0, 1].",
    "least MAXSIZE": "a lower bound on MAXSIZE for classes of k records, whatever the method: twice the distance of "
    "the record that is farthest from its nearest k - 1 others. The ratio is MAXSIZE divided by this bound.",
    "largest object box": "a bound that is never weaker: the smallest box of k records around a record, the largest of "
    "these among the records that are farthest from their neighbours. Its ratio is MAXSIZE divided by it.",
    "smallest box": "the weaker bound of Du et al. (2007): the perimeter of the smallest box of k records. It is 0 if "
    "k records are equal; otherwise it lies between the two numbers.",
    "seconds": "partition is the time to form the classes; total includes recoding, sorting and auditing. Reading the "
    "table is in neither, since it is read once for all points. For short runs, the fastest of three is given.",
}
Cell = Callable[[Row], str]


class HasError(Protocol):
    """A result that carries the text of its error, or None."""

    @property
    def error(self) -> str | None: ...


Failed = TypeVar("Failed", bound=HasError)


class Comparison(Results):
    """The results of every method under every k and l.

    ``rows`` are plain dictionaries. ``write`` saves a page, a picture, CSV or JSON; notebooks show the page.
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
        """The number of records of the table."""
        return self.results[0].records

    @property
    def points(self) -> int:
        """The number of requested points."""
        return len(self._points)

    @property
    def effort(self) -> str:
        """How long the methods that search went on, in words."""
        return str(Effort.asked(self._points[0].policy.method))

    @property
    def complete(self) -> bool:
        """Whether there is a row for every point. An interruption leaves some out."""
        return len(self.results) == self.points

    @property
    def exit_code(self) -> int:
        return exit_code(self.results)

    @property
    def has_results(self) -> bool:
        return any(row.code == 0 for row in self.results)

    def summary(self) -> dict[str, Any]:
        """The results that ``sfumato compare --json`` prints."""
        return {
            "records": self.records,
            "quasi_identifiers": list(self._points[0].policy.quasi_identifiers),
            "effort": self.effort,
            "points": self.points,
            "complete": self.complete,
            "rows": self.rows,
            "version": __version__,
            "seconds": {name: round(value, 4) for name, value in self._seconds.items()},
        }

    @property
    def _at_one_point(self) -> bool:
        """Whether all methods were tried with one k and l, so that there is no curve to draw."""
        return len({row.label for row in self.results}) == 1

    def loss(self, theme: str = "light", narrow: bool = False) -> Picture:
        """The curves of the loss; with one k and l, a bar for each method, from the least loss to the most."""
        if self._at_one_point:
            least = {id(row) for row in least_losses(self.results)}
            rows = [
                RankedBar(row.method, row.gcp, f"{row.gcp:.2%}", id(row) in least)
                for row in self.results
                if row.gcp is not None
            ]
            return self._ranked(rows, "Information loss", theme, narrow=narrow)
        # If one method loses many times more than another, an axis from 0 would merge all the others into one line.
        by_label: dict[str, list[float | None]] = {}
        for row in self.results:
            by_label.setdefault(row.label, []).append(row.gcp)
        positive = all(row.gcp != 0 for row in self.results)
        far_apart = any(scale_for(losses) == "log" for losses in by_label.values())
        scale: Scale = "log" if positive and far_apart else "linear"
        return self._curves("gcp", "Information loss", "information loss (GCP)", theme, scale, ".3~p", narrow)

    def time(self, theme: str = "light", narrow: bool = False) -> Picture:
        """The curves of the time to form the classes; with one k and l, a bar for each method."""
        if self._at_one_point:
            rows = [
                RankedBar(row.method, seconds, f"{seconds:.3f} s")
                for row in self.results
                if (seconds := row.partition_seconds) is not None
            ]
            return self._ranked(rows, "Seconds to form the classes", theme, narrow=narrow)
        scale = scale_for([row.partition_seconds for row in self.results])
        return self._curves("partition_seconds", "Time", "seconds to form the classes", theme, scale, None, narrow)

    def picture(self, theme: str = "light") -> Picture:
        """The curves of loss and time beside each other."""
        loss, time = self.loss(theme), self.time(theme)
        return side_by_side([loss, time], title=TITLE, description=f"{loss.description} {time.description}")

    def page(self) -> str:
        """The results as one offline HTML page."""
        drawn = (self.loss, self.time) if self.has_results else ()
        return page(TITLE, element("main", self._body([in_widths(picture) for picture in drawn])), ENGLISH)

    def table(self) -> str:
        """The rows as CSV."""
        return table_text(self.results)

    def _repr_html_(self) -> str:
        pictures = [self.loss(), self.time()] if self.has_results else []
        return self._body([element("div", Markup(picture.svg)) for picture in pictures])

    def __repr__(self) -> str:
        failed = sum(row.code != 0 for row in self.results)
        return f"<Comparison of {len(self.results):,} points, {failed:,} of them without a result>"

    def _curves(
        self, y: str, title: str, y_title: str, theme: str, scale: Scale, form: str | None, narrow: bool
    ) -> Picture:
        return curves_of(self.results, y, title, y_title, theme=theme, scale=scale, form=form, narrow=narrow)

    def _ranked(self, rows: Sequence[RankedBar], title: str, theme: str, *, narrow: bool) -> Picture:
        where = f"{title} at {self.results[0].label}"
        return ranked_bars(rows, title=where, width=NARROW_BARS if narrow else BARS, theme=theme)

    def _body(self, pictures: Sequence[Markup]) -> Markup:
        names = ", ".join(self._points[0].policy.quasi_identifiers)
        about = f"{self.records:,} records; quasi-identifiers {names}; effort {self.effort}."
        audited = "Every measured release passed its audit."
        interrupted = f"Interrupted after {len(self.results):,} of {self.points:,} points."
        shown = columns_of(self.results)
        measures = {name: text for name, text in MEASURES.items() if name == "seconds" or name in shown}
        return joined(
            [
                element("h1", TITLE),
                element("p", f"{about} {audited}", class_="soft"),
                "" if self.complete else element("p", interrupted),
                *(element("p", text) for text in remarks(self.results)),
                element("div", *pictures, class_="pictures"),
                _table(self.results),
                definitions(measures, ENGLISH),
            ]
        )


def columns_of(rows: Sequence[Row]) -> dict[str, Cell]:
    """The cells of a successful row, by heading: functions that format a figure for people."""
    suppressed = any(row.suppressed for row in rows)
    bounds: dict[str, Cell] = {
        "least MAXSIZE": lambda row: "" if row.max_size_bound is None else f"{row.max_size_bound:.3f}",
        "ratio": lambda row: "" if row.max_size_ratio is None else f"{row.max_size_ratio:.2f}",
        "largest object box": lambda row: "" if row.object_box_bound is None else f"{row.object_box_bound:.3f}",
        "its ratio": lambda row: "" if row.object_box_ratio is None else f"{row.object_box_ratio:.2f}",
        "smallest box": _smallest_box,
    }
    by_groups: dict[str, Cell] = {
        "C_DM by groups": lambda row: "" if row.c_dm_groups is None else f"{row.c_dm_groups:,}"
    }
    return {
        "GCP": lambda row: f"{row.gcp:.2%}",
        "C_DM": lambda row: f"{row.c_dm:,}",
        **(by_groups if any(row.c_dm_groups not in (None, row.c_dm) for row in rows) else {}),
        "C_AVG": lambda row: "" if row.c_avg is None else f"{row.c_avg:.3f}",
        "MAXSIZE": lambda row: "" if row.max_size is None else f"{row.max_size:.3f}",
        **({"IL": _squared_errors} if any(row.il is not None for row in rows) else {}),
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


def _squared_errors(row: Row) -> str:
    return "" if row.il is None else f"{row.il:.2f}"


def outcome(row: Row) -> str:
    """The outcome of a row in one word."""
    return "holds" if row.code == 0 else FAILED.get(row.code, "failed")


def remarks(rows: Sequence[Row]) -> list[str]:
    """Sentences on the methods with the least loss, and every remark of an audit once, with its methods."""
    least = least_losses(rows)
    sentences = [f"Least loss: {'; '.join(places(least, rows))}."] if least else []
    methods: dict[str, dict[str, None]] = {}
    for row in rows:
        for text in row.remarks:
            methods.setdefault(text, {})[row.method] = None
    return sentences + [f"{', '.join(names)}: {text}" for text, names in methods.items()]


def by_error(rows: Sequence[Failed]) -> dict[str, list[Failed]]:
    """The rows without figures, grouped by their error."""
    grouped: dict[str, list[Failed]] = {}
    for row in rows:
        if row.error is not None:
            grouped.setdefault(row.error, []).append(row)
    return grouped


def places(selected: Sequence[Row], rows: Sequence[Row]) -> list[str]:
    """The methods of the selected rows with their k and l, in words.

    Methods with the same k and l are named together, those with the most first. ``rows`` are all rows.
    """
    labels: dict[str, list[str]] = {}
    for row in selected:
        labels.setdefault(row.method, []).append(row.label)
    methods: dict[tuple[str, ...], list[str]] = {}
    for name, own in labels.items():
        methods.setdefault(tuple(own), []).append(name)
    every_method, every_label = {row.method for row in rows}, {row.label for row in rows}
    phrases = []
    for shared, names in sorted(methods.items(), key=lambda entry: -len(entry[0])):
        who = "every method" if len(every_method) > 1 and set(names) == every_method else ", ".join(names)
        where = f"at {' and '.join(shared)}" if len(shared) <= FEW else f"at {len(shared):,} points"
        phrases.append(f"{who} {'everywhere' if 1 < len(shared) == len(every_label) else where}")
    return phrases


def _table(rows: Sequence[Row]) -> Markup:
    """The rows as an HTML table. The least loss of each k and l stands out."""
    with_l = any(row.l is not None for row in rows)
    least = {id(row) for row in least_losses(rows)}
    columns = columns_of(rows)
    heads = ["k", *(["l"] if with_l else []), "method", *columns, "what holds"]
    lines = []
    before = None
    for row in rows:
        cells = leading_cells(row, with_l=with_l)
        if row.code == 0:
            cells += [
                element("td", cell(row), class_="least" if head == "GCP" and id(row) in least else None)
                for head, cell in columns.items()
            ]
            cells.append(element("td", row.holds, class_="text long"))
        else:
            cells.append(error_cell(row, len(columns) + 1))
        lines.append(element("tr", *cells, class_="first" if before not in (None, row.label) else None))
        before = row.label
    return row_table(heads, lines, TITLE, text=("method", "what holds"))


def leading_cells(row: Row, *, with_l: bool) -> list[Markup]:
    """The cells of k, l and the method, with which every row begins."""
    parameters = [row.k, *([row.l] if with_l else [])]
    numbers = [element("td", "" if number is None else f"{number:,}") for number in parameters]
    return [*numbers, element("th", row.method, scope="row", class_="text")]


def error_cell(row: Row, columns: int) -> Markup:
    """The cell that takes the place of the figures in a row that failed."""
    return element("td", f"{outcome(row)}: {row.error}", class_="text long soft", colspan=str(columns))
