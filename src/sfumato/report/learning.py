"""How well models learn from releases, compared with the original, as a table and a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sfumato._version import __version__
from sfumato.evaluation.comparison_points import exit_code
from sfumato.evaluation.learning.learning_study import Study
from sfumato.evaluation.learning.results import (
    ACCURACY,
    CLASS_SIZE,
    METRICS,
    ORIGINAL,
    Result,
    best_of,
    by_k_and_l,
    comparisons,
    figure_text,
    table_text,
    with_reach,
)
from sfumato.pictures.curves import NARROW as NARROW_CURVES
from sfumato.pictures.curves import WIDTH as WIDTH_OF_CURVES
from sfumato.pictures.curves import curves
from sfumato.pictures.interval_chart import NARROW, WIDTH, EstimateGroup, NamedEstimate, intervals
from sfumato.pictures.picture import Picture, side_by_side
from sfumato.report.comparison import by_error
from sfumato.report.html import Markup, element, joined
from sfumato.report.page import definitions, in_widths, page, row_table
from sfumato.report.result_files import Results, scale_for
from sfumato.texts import ENGLISH

TITLE = "Learning from releases"
COLUMNS = 2  # pictures beside each other
SIGNIFICANCE = (
    "the probability of a difference between two methods at least this large if there were none: a two-sided paired "
    "t-test over the folds, corrected for training records that folds share (Nadeau and Bengio 2003)."
)
Draw = Callable[[str, bool], Picture]
What = tuple[str | None, str | None, str | None]
"""A measured quantity: target or selection, model and metric."""
HEADINGS = {
    "average-class-size": "class size",
    "conditional-entropy": "entropy",
    "weighted-mean-squared-error": "squared error",
    "imprecision": "imprecision",
}


class Evaluation(Results):
    """The results of every model with every method under every k and l, and with the original.

    ``results`` and ``comparisons`` are plain dictionaries. ``write`` saves a page, a picture, CSV or JSON; notebooks
    show the page.
    """

    def __init__(
        self,
        rows: Sequence[Result],
        study: Study,
        data: object,
        records: int,
        seconds: Mapping[str, float],
        *,
        complete: bool = True,
    ) -> None:
        super().__init__(data)
        self.rows = tuple(rows)
        self.study = study
        self.records = records
        self.complete = complete
        """Whether everything was computed. False after an interruption."""
        self._seconds = dict(seconds)
        self._compared = comparisons(self.rows, study.folds)

    @property
    def results(self) -> list[dict[str, Any]]:
        return [row.as_dict() for row in self.rows]

    @property
    def comparisons(self) -> list[dict[str, Any]]:
        return [comparison.as_dict() for comparison in self._compared]

    @property
    def exit_code(self) -> int:
        return exit_code([row for row in self.rows if row.method != ORIGINAL] or self.rows)

    @property
    def has_results(self) -> bool:
        return any(row.value is not None for row in self.rows)

    @property
    def targets(self) -> list[str]:
        """The predicted columns."""
        return list(dict.fromkeys(row.target for row in self.rows if row.model is not None and row.target is not None))

    @property
    def kinds(self) -> dict[str, str]:
        """Whether each target was predicted as classes or as numbers."""
        metrics = {row.target: row.metric for row in self.rows if row.model is not None}
        return {name: "classes" if metrics[name] == ACCURACY else "numbers" for name in self.targets}

    def summary(self) -> dict[str, Any]:
        """The results that ``sfumato evaluate --json`` prints."""
        return {
            "records": self.records,
            "quasi_identifiers": list(self.study.policy.quasi_identifiers),
            "targets": self.targets,
            "kinds": self.kinds,
            "folds": self.study.folds,
            "seed": self.study.seed,
            "complete": self.complete,
            "results": self.results,
            "comparisons": self.comparisons,
            "version": __version__,
            "seconds": {name: round(value, 4) for name, value in self._seconds.items()},
        }

    def table(self) -> str:
        """The results as CSV."""
        return table_text(self.rows)

    def picture(self, theme: str = "light") -> Picture:
        """The figures of every model with every method, with their confidence intervals."""
        drawn = [draw(theme, False) for draw in self._pictures()]
        if len(drawn) == 1:
            return drawn[0]
        description = " ".join(picture.description for picture in drawn)
        return side_by_side(drawn, title=TITLE, description=description, columns=COLUMNS)

    def page(self) -> str:
        """The results as one offline HTML page."""
        return page(TITLE, element("main", self._body([in_widths(draw) for draw in self._pictures()])), ENGLISH)

    def _repr_html_(self) -> str:
        return self._body([element("div", Markup(draw("light", False).svg)) for draw in self._pictures()])

    def __repr__(self) -> str:
        failed = sum(row.code != 0 for row in self.rows)
        return (
            f"<Evaluation of {', '.join(self.targets) or 'selections'}: {len(self.rows):,} results, {failed:,} failed>"
        )

    def asked(self) -> list[tuple[int | None, int | None]]:
        """The requested pairs of k and l."""
        return list(by_k_and_l(self.rows))

    def of_target(self, target: str, *, asked: tuple[int | None, int | None]) -> dict[str, list[Result]]:
        """The results of each model under one k and l, those of the original first."""
        by_model: dict[str, list[Result]] = {}
        for row in by_k_and_l(self.rows)[asked]:
            if row.target == target and row.model is not None:
                by_model.setdefault(row.model, []).append(row)
        return by_model

    def remarks(self) -> list[str]:
        """Sentences on the best release for each target and model, and its distance to the others and the original."""
        sentences = []
        for asked, target in ((asked, target) for asked in self.asked() for target in self.targets):
            for model, rows in self.of_target(target, asked=asked).items():
                best = best_of(rows)
                if best is not None and len(rows) > 1:
                    where = f", {best.label}" if len(self.asked()) > 1 else ""
                    others = ", ".join(self._against(best, row) for row in rows if row is not best)
                    sentences.append(f"{target} by {model}{where}: best {best.method}, {with_reach(best)}; {others}.")
        if not self.complete:
            sentences.append("Interrupted before everything was computed.")
        return sentences

    def _against(self, best: Result, other: Result) -> str:
        """The other method, its difference from the best release, and the significance, in words."""
        for comparison in self._compared:
            if {id(comparison.first), id(comparison.second)} == {id(best), id(other)}:
                value, p = comparison.difference.value, comparison.difference.p
                more = value if comparison.second is best else -value
                sign = "+" if more > 0 else "\N{MINUS SIGN}" if more < 0 else ""
                if best.metric == ACCURACY:
                    amount = f"{sign}{abs(more) * 100:.1f} points"
                else:
                    amount = f"{sign}{figure_text(abs(more), best.metric)}"
                return f"{other.method} {amount}" + ("" if p is None else f" ({chance(p)})")
        return f"{other.method} {figure_text(other.value, other.metric)}"

    def failures(self) -> dict[str, list[Result]]:
        """The rows without figures, grouped by their error."""
        return by_error(self.rows)

    def _pictures(self) -> list[Draw]:
        """Functions that draw a picture for each target or, with several k or l, curves for each model."""
        pictures: list[Draw] = []
        for target in self.targets:
            if len(self.asked()) <= 1:
                pictures.append(lambda theme, narrow, target=target: self._intervals(target, theme, narrow))  # type: ignore[misc]
                continue
            models = dict.fromkeys(row.model for row in self.rows if row.target == target and row.model is not None)
            pictures += [
                lambda theme, narrow, target=target, model=model: self._curves(target, model, theme, narrow)  # type: ignore[misc]
                for model in models
            ]
        return pictures

    def _intervals(self, target: str, theme: str, narrow: bool) -> Picture:
        asked = self.asked()[0] if self.asked() else None
        by_model = self.of_target(target, asked=asked) if asked is not None else {}
        by_metric: dict[str, dict[str, list[Result]]] = {}
        for model, rows in by_model.items():
            by_metric.setdefault(str(rows[0].metric), {})[model] = rows
        metric, models = next(iter(by_metric.items()))
        groups = [
            EstimateGroup(
                model,
                [
                    NamedEstimate(
                        row.method, row.value, *_possible(row), figure_text(row.value, metric), row.method == ORIGINAL
                    )
                    for row in rows
                    if row.value is not None
                ],
            )
            for model, rows in models.items()
        ]
        label = next((row.label for rows in models.values() for row in rows if row.label), "")
        return intervals(
            groups,
            title=f"{target} learnt from releases, {label}" if label else f"{target} learnt",
            subtitle=[f"mean of {self.study.folds} folds and its 95% interval"],
            x_title=_axis(metric),
            x_format=".3~p" if metric == ACCURACY else None,
            width=NARROW if narrow else WIDTH,
            theme=theme,
        )

    def _curves(self, target: str, model: str, theme: str, narrow: bool) -> Picture:
        rows = [row for row in self.rows if row.target == target and row.model == model and row.value is not None]
        metric = str(rows[0].metric)
        released = [row for row in rows if row.method != ORIGINAL]
        original = next((row for row in rows if row.method == ORIGINAL), None)
        by_l = len({row.k for row in released}) == 1
        drawn = [{"x": row.l if by_l else row.k, "y": row.value, "series": _series(row, by_l)} for row in released]
        if original is not None:
            drawn += [{**point, "y": original.value, "series": ORIGINAL} for point in drawn]
        return curves(
            drawn,
            x="x",
            y="y",
            series="series",
            title=f"{target} by {model}",
            x_title="l" if by_l else "k",
            y_title=_axis(metric),
            x_scale=scale_for([point["x"] for point in drawn]),  # type: ignore[misc]
            y_format=".3~p" if metric == ACCURACY else None,
            from_zero=False,
            width=NARROW_CURVES if narrow else WIDTH_OF_CURVES,
            theme=theme,
        )

    def _body(self, pictures: Sequence[Markup]) -> Markup:
        names = ", ".join(self.study.policy.quasi_identifiers)
        about = (
            f"{self.records:,} records; quasi-identifiers {names}. {self.study.folds} folds: for each fold, regions "
            "and models are learnt from the other folds and tested on its records, which neither has seen. No release "
            "was made."
        ) + "".join(f" {name} is predicted as {kind}." for name, kind in self.kinds.items())
        failures = [
            f"{', '.join(f'{row.method} {row.label}' for row in failed)}: {text}"
            for text, failed in self.failures().items()
        ]
        shown = {row.metric for row in self.rows}
        measures = {**{name: text for name, text in METRICS.items() if name in shown}, "p": SIGNIFICANCE}
        return joined(
            [
                element("h1", TITLE),
                element("p", about, class_="soft"),
                element("div", *pictures, class_="pictures"),
                *(element("p", text) for text in (*self.remarks(), *failures)),
                self._table(),
                definitions(measures, ENGLISH),
            ]
        )

    def _table(self) -> Markup:
        heads, lines = columns_of(self.rows), []
        with_l = any(row.l is not None for row in self.rows)
        names = ["k", *(["l"] if with_l else []), "method", *(" ".join(head) for head in heads.values())]
        for cells in table_rows(self.rows):
            k, l = cells.asked
            line = [element("td", "" if k is None else f"{k:,}")]
            line += [element("td", "" if l is None else l)] if with_l else []
            line.append(element("th", cells.method, scope="row", class_="text"))
            for what in heads:
                result = cells.figures.get(what)
                look = "least" if result is not None and result in cells.best else None
                line.append(element("td", "" if result is None else with_reach(result), class_=look))
            lines.append(element("tr", *line))
        return row_table(names, lines, TITLE, text=("method",))


class ResultCells:
    """The figures of one method under one k and l. ``best`` are those that no other release surpasses."""

    def __init__(self, method: str, asked: tuple[int | None, int | None]) -> None:
        self.method, self.asked = method, asked
        self.figures: dict[What, Result] = {}
        self.best: list[Result] = []


def table_rows(rows: Sequence[Result]) -> list[ResultCells]:
    """The figures by method: the original, then the releases by k and l."""
    table: dict[tuple[object, ...], ResultCells] = {}
    for row in rows:
        cells = table.setdefault((row.method, row.asked), ResultCells(row.method, row.asked))
        if row.value is not None:
            cells.figures[row.what] = row
    for group in by_k_and_l(rows).values():
        for what in {row.what for row in group if row.value is not None}:
            comparable = [row for row in group if row.what == what]
            best = best_of(comparable)
            # Small classes are no end in themselves: their size says little about what can be learnt (section 4.4).
            if best is not None and best.metric != CLASS_SIZE and sum(row.method != ORIGINAL for row in comparable) > 1:
                table[best.method, best.asked].best.append(best)
    return list(table.values())


def columns_of(rows: Sequence[Result]) -> dict[What, tuple[str, ...]]:
    """The measured quantities with the lines of their headings, models first."""
    figures = [row for row in rows if row.value is not None]
    several = len({row.target for row in figures if row.model is not None}) > 1
    headings = {}
    for with_model in (True, False):
        for row in figures:
            if (row.model is not None) != with_model:
                continue
            name = str(row.model) if with_model else HEADINGS.get(str(row.metric), str(row.metric))
            about = (row.target,) if row.target is not None and (several or row.metric == "imprecision") else ()
            headings[row.what] = (*about, name)
    return headings


def by_target(heads: Mapping[What, tuple[str, ...]]) -> list[dict[What, tuple[str, ...]]]:
    """Split the columns by target, the columns without a target last. With at most one target, do not split."""
    targets = dict.fromkeys(what[0] for what in heads if what[1] is not None)
    if len(targets) < 2:
        return [dict(heads)]
    parts = [{what: head for what, head in heads.items() if what[0] == target} for target in targets]
    return [*parts, {what: head for what, head in heads.items() if what[0] not in targets}]


def _possible(row: Result) -> tuple[float | None, float | None]:
    """The interval, limited to 0..1 for a share."""
    if row.low is None or row.high is None or row.metric != ACCURACY:
        return row.low, row.high
    return max(row.low, 0.0), min(row.high, 1.0)


def chance(p: float) -> str:
    """A p-value in words."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def _axis(metric: str) -> str:
    return "share of test records predicted correctly" if metric == ACCURACY else "mean absolute error of test records"


def _series(row: Result, by_l: bool) -> str:
    return row.method if by_l or row.l is None else f"{row.method}, l = {row.l}"
