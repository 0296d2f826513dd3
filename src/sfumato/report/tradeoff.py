"""The trade-off between privacy and loss, as a table and as curves, with the answer to the dual problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from sfumato._version import __version__
from sfumato.evaluation.comparison_points import csv_text, exit_code
from sfumato.evaluation.dual_problem import Answer, TradeoffQuestion, TradeoffStep, latest
from sfumato.evaluation.learning.results import ACCURACY, ERROR, ORIGINAL, Result, figure_text, with_reach
from sfumato.evaluation.parameter_values import MOST, runs_of
from sfumato.methods import AUTO
from sfumato.methods.method import Effort
from sfumato.pictures.curves import Limit
from sfumato.pictures.picture import Picture, side_by_side
from sfumato.report.comparison import by_error, error_cell, places
from sfumato.report.html import Markup, element, joined
from sfumato.report.page import definitions, in_widths, page, row_table
from sfumato.report.result_files import Results, curves_of
from sfumato.report.suppression_curves import suppression_curves
from sfumato.texts import ENGLISH

TITLE = "Privacy against loss"
NEAR = 2  # values on either side of the answer that are shown even if there are many points
MEASURES = {
    "GCP": "information loss: the share of its column's range or taxonomy that a released value leaves open, on "
    "average. 0% is the original, 100% says nothing.",
    "GCP released": "the same for the records that stay alone.",
    "cost": "the same for all records, with one that is left out counted as the suppression_cost of the policy.",
    "KL": "how far the counts of groups that a reader of the release would estimate are from the true counts: the mean "
    "Kullback-Leibler divergence over the group-bys of the datacube and over the sensitive columns.",
    "accuracy": "the share of test records whose class is predicted correctly by a decision tree that learnt from the "
    "release of the other records (5 folds).",
    "error": "the mean absolute error on test records of a regression tree that learnt from the release of the other "
    "records (5 folds).",
    "audit": "passed: a release was made for the point, read back, audited and deleted. counted: the engine tested "
    "every class by its own counts.",
    "seconds": "the time of the point alone. Work that points share is counted in none of them, or in the first that "
    "needed it.",
}
Cell = Callable[[TradeoffStep], str]


class Tradeoff(Results):
    """The loss at every computed k and l, and the largest k or l whose loss stays within a limit.

    ``points`` are plain dictionaries; ``answer`` is one too, or None. ``write`` saves a page, a picture, CSV or JSON;
    notebooks show the page.
    """

    def __init__(
        self,
        steps: Sequence[TradeoffStep],
        question: TradeoffQuestion,
        data: object,
        seconds: Mapping[str, float],
        *,
        original: Sequence[Result] = (),
        complete: bool = True,
    ) -> None:
        super().__init__(data)
        self.steps = tuple(latest(steps))
        self.original = tuple(original)
        """The results of learning from the original table, if there is a target."""
        self.complete = complete
        """Whether everything was computed. False after an interruption."""
        self.asked = question
        self.question = question.for_table(self.records)
        self._seconds = dict(seconds)

    @property
    def records(self) -> int:
        """The number of records of the table."""
        return self.steps[0].records

    @property
    def points(self) -> list[dict[str, Any]]:
        return [step.as_dict() for step in self.steps]

    @property
    def answers(self) -> list[Answer]:
        """The largest k or l within the limit for each method, unless the search was interrupted."""
        return self.question.answers(self.steps) if self.complete else []

    @property
    def found(self) -> Answer | None:
        """The best answer, if there is any."""
        return self.question.answer(self.steps) if self.complete else None

    @property
    def answer(self) -> dict[str, Any] | None:
        return None if self.found is None else asdict(self.found)

    @property
    def effort(self) -> str:
        """How long the methods that search went on, in words."""
        return str(Effort.asked(self.asked.policy.method))

    @property
    def exit_code(self) -> int:
        return exit_code(self.steps)

    @property
    def has_results(self) -> bool:
        return any(step.code == 0 for step in self.steps)

    def summary(self) -> dict[str, Any]:
        """The results that ``sfumato tradeoff --json`` prints."""
        asked, computed = self.asked, {"k": sorted({step.k for step in self.steps})}
        diversity = sorted({step.l for step in self.steps if step.l is not None})
        return {
            "records": self.records,
            "quasi_identifiers": list(asked.policy.quasi_identifiers),
            "asked": {
                **{name: None if values is None else str(values) for name, values in (("k", asked.k), ("l", asked.l))},
                "suppressed": None if asked.suppressed is None else list(asked.suppressed),
            },
            "suppression_cost": asked.policy.release.suppression_cost,
            "effort": self.effort,
            "computed": {**computed, "l": diversity},
            "complete": self.complete,
            "points": self.points,
            "max_loss": asked.max_loss,
            "answer": self.answer,
            "answers": [asdict(answer) for answer in self.answers],
            "queries": asked.queries,
            "original": [result.as_dict() for result in self.original],
            "version": __version__,
            "seconds": {name: round(value, 4) for name, value in self._seconds.items()},
        }

    def table(self) -> str:
        """The points as CSV."""
        names = [name for name in self.points[0] if name != "code"]
        return csv_text(names, ([point[name] for name in names] for point in self.points))

    def parameters(self, step: TradeoffStep) -> dict[str, str]:
        """The values of a step that were asked for, by heading: k, and l and the share to leave out where they were."""
        with_l = any(step.l is not None for step in self.steps)
        return {
            "k": f"{step.k:,}",
            **({"l": f"{step.l:,}"} if with_l else {}),
            **({} if step.max_suppressed is None else {"may go": share(step.max_suppressed)}),
        }

    def loss(self, theme: str = "light", narrow: bool = False) -> Picture:
        """The curve of the loss, with the limit and the answers, or the curves by the share left out."""
        if self.question.suppressed is not None:
            return suppression_curves(self.steps, self.question.policy.release.suppression_cost, theme, narrow=narrow)
        limit = None
        if self.question.max_loss is not None:
            values = [(self.question.value_of(answer), answer.gcp) for answer in self.answers]
            marks = [(value, gcp, f"{self.question.varies} = {value:,}") for value, gcp in values]
            limit = Limit(self.question.max_loss, f"at most {share(self.question.max_loss)}", marks)
        return curves_of(
            self.steps,
            "gcp",
            "Information loss",
            "information loss (GCP)",
            theme=theme,
            form=".3~p",
            limit=limit,
            narrow=narrow,
        )

    def divergence(self, theme: str = "light", narrow: bool = False) -> Picture:
        """The curve of the query error."""
        return curves_of(self.steps, "kl", "Query error", "divergence of group-bys (KL)", theme=theme, narrow=narrow)

    def learnt(self, theme: str = "light", narrow: bool = False) -> Picture:
        """The curve of the model's accuracy or error, beside that of a model that learnt from the original."""
        classes = any(step.accuracy is not None for step in self.steps)
        figure, metric = ("accuracy", ACCURACY) if classes else ("mean_absolute_error", ERROR)
        baseline = next((result for result in self.original if result.metric == metric), None)
        original = [] if baseline is None else [_original_at(step, baseline.value) for step in self.steps]
        return curves_of(
            [*self.steps, *original],
            figure,
            f"{self._target()} learnt",
            "accuracy of a decision tree" if classes else "mean absolute error of a regression tree",
            theme=theme,
            form=".3~p" if classes else None,
            narrow=narrow,
            from_zero=False,
        )

    def _target(self) -> str:
        return self.original[0].target or "" if self.original else ""

    def picture(self, theme: str = "light") -> Picture:
        """The curve of the loss, beside those of the query error and of learning if they were measured."""
        drawn = [draw(theme, False) for draw in self._curves()]
        if len(drawn) == 1:
            return drawn[0]
        return side_by_side(drawn, title=TITLE, description=" ".join(picture.description for picture in drawn))

    def page(self) -> str:
        """The results as one offline HTML page."""
        return page(TITLE, element("main", self._body([in_widths(draw) for draw in self._curves()])), ENGLISH)

    def _repr_html_(self) -> str:
        return self._body([element("div", Markup(draw("light", False).svg)) for draw in self._curves()])

    def __repr__(self) -> str:
        failed = sum(step.code != 0 for step in self.steps)
        return f"<Tradeoff of {len(self.steps):,} points, {failed:,} of them without a result>"

    def _curves(self) -> list[Callable[[str, bool], Picture]]:
        """Functions that draw the curves of everything that was measured."""
        if not self.has_results:
            return []
        measured = any(step.kl is not None for step in self.steps)
        learnt = any(step.accuracy is not None or step.mean_absolute_error is not None for step in self.steps)
        return [self.loss, *([self.divergence] if measured else []), *([self.learnt] if learnt else [])]

    def _body(self, pictures: Sequence[Markup]) -> Markup:
        names = ", ".join(self.question.policy.quasi_identifiers)
        about = f"{self.records:,} records; quasi-identifiers {names}; effort {self.effort}. No release was kept."
        shown = columns_of(self.steps)
        measures = {name: text for name, text in MEASURES.items() if name == "audit" or name in shown}
        return joined(
            [
                element("h1", TITLE),
                element("p", about, class_="soft"),
                *self._answers_shown(),
                *(element("p", text) for text in self.remarks()),
                element("div", *pictures, class_="pictures"),
                self._table(),
                definitions(measures, ENGLISH),
            ]
        )

    def _answers_shown(self) -> list[Markup]:
        """The answer of each method, large, with how certain it is below it; and what has no answer."""
        limit, name = self.question.max_loss, self.question.varies
        if limit is None or not self.complete:
            return []
        several = len({step.method for step in self.steps}) > 1
        shown = []
        for answer in self.answers:
            figure = f"{name} = {self.question.value_of(answer):,}"
            by = f" with {answer.method}" if several else ""
            text = f"is the largest {name} that loses at most {share(limit)}{by}: GCP {answer.gcp:.2%}"
            shown.append(element("p", element("strong", figure), text, class_="answer"))
            shown.append(element("p", self._certainty(answer), class_="soft"))
        return [*shown, *(element("p", text, class_="answer") for text in self._unanswered(limit))]

    def _table(self) -> Markup:
        columns, answers = columns_of(self.steps), {answer.method: answer for answer in self.answers}
        heads = [*self.parameters(self.steps[0]), "method", *columns, "audit"]
        lines = []
        for step in self.steps:
            cells = [element("td", text) for text in self.parameters(step).values()]
            cells.append(element("th", step.method, scope="row", class_="text"))
            if step.code == 0:
                cells += [element("td", cell(step)) for cell in columns.values()]
                cells.append(element("td", audited(step), class_="text"))
            else:
                cells.append(error_cell(step, len(columns) + 1))
            lines.append(element("tr", *cells, class_="least" if is_answer(step, answers) else None))
        return row_table(heads, lines, TITLE, text=("method", "audit"))

    def steps_to_show(self) -> list[TradeoffStep]:
        """The sampled points and those beside the answers, without the many that were only ruled out."""
        if self.question.suppressed is not None:
            return list(self.steps)
        values, answers = self.question.values, {answer.method: answer for answer in self.answers}
        sampled = set(values.sample())

        def is_near(step: TradeoffStep) -> bool:
            value, answer = self.question.value_of(step), answers.get(step.method)
            if value in sampled:
                return True
            if answer is None:
                return False
            return abs(values.index(value) - values.index(self.question.value_of(answer))) <= NEAR

        return [step for step in self.steps if is_near(step)]

    def verdict(self) -> list[str]:
        """The answer to the dual problem in words, a line for each method."""
        limit, name = self.question.max_loss, self.question.varies
        if limit is None or not self.complete:
            return []
        sentences = [
            f"{answer.method}: the largest {name} that loses at most {share(limit)} is "
            f"{self.question.value_of(answer):,} (GCP {answer.gcp:.2%}); a release was made for it, audited and "
            f"deleted. {self._certainty(answer)}"
            for answer in self.answers
        ]
        return [*sentences, *self._unanswered(limit)]

    def _certainty(self, answer: Answer) -> str:
        """Say whether the answer is the largest. With more effort, a method that searches may reach a larger one."""
        among = f" with effort {self.effort}" if answer.method == AUTO else ""
        return f"{f'This is certain{among}' if answer.exact else 'It may not be the largest'}: {answer.because}."

    def _unanswered(self, limit: float) -> list[str]:
        """A sentence for each method with no computed value within the limit."""
        answered, name = {answer.method for answer in self.answers}, self.question.varies
        sentences = []
        for method in dict.fromkeys(step.method for step in self.steps if step.method not in answered):
            losses = [step.gcp for step in self.steps if step.method == method and step.gcp is not None]
            least = f"; the least loss is {min(losses):.2%}" if losses else ""
            sentences.append(f"{method}: no computed {name} loses at most {share(limit)}{least}.")
        return sentences

    def remarks(self) -> list[str]:
        """Sentences on the computed values, the points without figures, and the remarks of audits."""
        sentences = []
        for name in ("k", "l"):
            values = getattr(self.asked, name)
            if values is None or len(values) == 1:
                continue
            computed = sorted({getattr(step, name) for step in self.steps})
            sentences.append(f"Requested: {name} = {values}. Computed: {runs_of(computed)}.")
            left = len(values) - len(computed)
            if self.complete and left:
                sentences[-1] += f" {self._why_not_all(name, left)}"
        for result in self.original:
            metric = str(result.metric).replace("-", " ")
            sentences.append(
                f"From the original, a {result.model} learns {result.target} with {metric} {with_reach(result)}."
            )
        for text, failed in by_error(self.steps).items():
            sentences.append(f"{'; '.join(places(failed, self.steps))}: {text}")
        for text in dict.fromkeys(text for step in self.steps for text in step.remarks):
            sentences.append(text)
        if not self.complete:
            sentences.append(f"Interrupted after {len(self.steps):,} points.")
        return sentences

    def _why_not_all(self, name: str, left: int) -> str:
        too_large = len(getattr(self.asked, name)) - len(getattr(self.question, name))
        sampled = f"A range of more than {MOST} values is sampled in growing steps"
        around = ", and computed closely around the answer" if self.answers else ""
        if too_large == 0:
            return f"{sampled}{around}."
        above = f"no {name} above the {self.records:,} records of the table can be met"
        return f"{sampled}{around}; {above}." if left > too_large else f"{above[0].upper()}{above[1:]}."


def columns_of(steps: Sequence[TradeoffStep]) -> dict[str, Cell]:
    """The cells of a successful step, by heading: functions that format a figure for people."""
    suppressed = any(step.suppressed for step in steps)
    varies = any(step.max_suppressed is not None for step in steps)
    return {
        "GCP": lambda step: f"{step.gcp:.2%}",
        **({"GCP released": lambda step: _percent(step.gcp_released)} if varies else {}),
        **({"cost": lambda step: _percent(step.cost)} if varies else {}),
        **({"KL": lambda step: "" if step.kl is None else f"{step.kl:.4f}"} if _any(steps, "kl") else {}),
        **({"accuracy": lambda step: figure_text(step.accuracy, ACCURACY)} if _any(steps, "accuracy") else {}),
        **(
            {"error": lambda step: figure_text(step.mean_absolute_error, ERROR)}
            if _any(steps, "mean_absolute_error")
            else {}
        ),
        "classes": lambda step: f"{step.classes:,}",
        "smallest class": lambda step: f"{step.smallest_class:,}",
        **({"left out": lambda step: f"{step.suppressed:,}"} if suppressed else {}),
        "seconds": lambda step: f"{step.total_seconds:.3f}",
    }


def _percent(loss: float | None) -> str:
    return "" if loss is None else f"{loss:.2%}"


def _original_at(step: TradeoffStep, value: float | None) -> TradeoffStep:
    """The figure of the original as a step with the same k and l."""
    return replace(step, method=ORIGINAL, accuracy=value, mean_absolute_error=value)


def _any(steps: Sequence[TradeoffStep], name: str) -> bool:
    return any(getattr(step, name) is not None for step in steps)


def audited(step: TradeoffStep) -> str:
    """How the step was tested, in one word."""
    return "passed" if step.audited else "counted"


def is_answer(step: TradeoffStep, answers: Mapping[str, Answer]) -> bool:
    """Whether the step is the answer of its method."""
    answer = answers.get(step.method)
    return answer is not None and (answer.k, answer.l) == (step.k, step.l)


def share(number: float) -> str:
    """A share as a percentage: 10%, 12.5%."""
    return f"{number * 100:.4g}%"
