"""Privacy against loss, as a table and as curves, with the answer of the dual problem."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from html import escape
from typing import Any

from sfumato._version import __version__
from sfumato.evaluation.comparison_points import exit_code
from sfumato.evaluation.dual_problem import Answer, Question, Step, latest
from sfumato.evaluation.learning.results import ACCURACY, ERROR, ORIGINAL, Result, figure_text, with_reach
from sfumato.evaluation.parameter_values import MOST, runs_of
from sfumato.pictures.curves import Limit
from sfumato.pictures.picture import Picture, beside
from sfumato.report.comparison import by_error, outcome, places
from sfumato.report.page import of_class, page, themed
from sfumato.report.result_files import Results, curves_of

TITLE = "Privacy against loss"
NEAR = 2  # values on either side of the answer that are shown even where points are many
TEXT = ("method", "audit")  # columns of words
MEASURES = {
    "GCP": "information loss: on average a released value leaves open this share of its column's range or taxonomy. "
    "0% is the original, 100% says nothing.",
    "KL": "how far counts of groups, as a reader of the release would estimate them, are from the true ones: the mean "
    "Kullback-Leibler divergence over the group-bys of the datacube, and over the sensitive columns.",
    "accuracy": "the share of test records whose class a decision tree tells right that learnt from the release of "
    "others (5 folds).",
    "error": "how far a regression tree that learnt from the release of others is off test records on average "
    "(5 folds).",
    "audit": "passed: a release was made for the point, read back, audited and forgotten. counted: the engine tested "
    "every class on its own counts.",
    "seconds": "of the point alone. What the points share is in none of them, or in the first that needed it.",
}
Cell = Callable[[Step], str]


class Tradeoff(Results):
    """The loss at every k and l that was computed, and the largest that stays within a limit.

    ``points`` are plain dictionaries, ``answer`` is one too, or none. ``write`` makes a page, a picture, CSV or JSON of
    them; notebooks show them.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        question: Question,
        data: object,
        seconds: Mapping[str, float],
        *,
        original: Sequence[Result] = (),
        complete: bool = True,
    ) -> None:
        super().__init__(data)
        self.steps = tuple(latest(steps))
        self.original = tuple(original)
        """What is learnt from the table itself, where there is a target."""
        self.complete = complete
        """Was everything computed? Not when it was interrupted."""
        self.asked = question
        self.question = question.for_table(self.records)
        self._seconds = dict(seconds)

    @property
    def records(self) -> int:
        """Those of the table."""
        return self.steps[0].records

    @property
    def points(self) -> list[dict[str, Any]]:
        return [step.as_dict() for step in self.steps]

    @property
    def answers(self) -> list[Answer]:
        """For each method the largest k or l within the limit; where the search was not interrupted."""
        return self.question.answers(self.steps) if self.complete else []

    @property
    def found(self) -> Answer | None:
        """The best of the answers."""
        return self.question.answer(self.steps) if self.complete else None

    @property
    def answer(self) -> dict[str, Any] | None:
        return None if self.found is None else asdict(self.found)

    @property
    def exit_code(self) -> int:
        return exit_code(self.steps)

    @property
    def has_results(self) -> bool:
        return any(step.code == 0 for step in self.steps)

    def summary(self) -> dict[str, Any]:
        """What ``sfumato tradeoff --json`` prints."""
        asked, computed = self.asked, {"k": sorted({step.k for step in self.steps})}
        diversity = sorted({step.l for step in self.steps if step.l is not None})
        return {
            "records": self.records,
            "quasi_identifiers": list(asked.policy.quasi_identifiers),
            "asked": {
                name: None if values is None else str(values) for name, values in (("k", asked.k), ("l", asked.l))
            },
            "computed": {**computed, "l": diversity},
            "complete": self.complete,
            "points": self.points,
            "max_loss": asked.max_loss,
            "answer": self.answer,
            "answers": [asdict(answer) for answer in self.answers],
            "queries": asked.queries,
            "original": [one.as_dict() for one in self.original],
            "version": __version__,
            "seconds": {name: round(value, 4) for name, value in self._seconds.items()},
        }

    def table(self) -> str:
        """The points as CSV."""
        text = io.StringIO()
        names = [name for name in self.points[0] if name != "code"]
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([point[name] for name in names] for point in self.points)
        return text.getvalue()

    def loss(self, theme: str = "light", narrow: bool = False) -> Picture:
        """The curve of the loss, with the limit and the answers."""
        limit = None
        if self.question.max_loss is not None:
            across = self.question.varies
            reached = [(getattr(one, across), one.gcp, f"{across} = {getattr(one, across):,}") for one in self.answers]
            limit = Limit(self.question.max_loss, f"at most {share(self.question.max_loss)}", reached)
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
        """The curve of what is learnt, and what is learnt from the original."""
        classes = any(step.accuracy is not None for step in self.steps)
        figure, name = ("accuracy", ACCURACY) if classes else ("mean_absolute_error", ERROR)
        before = next((one for one in self.original if one.metric == name), None)
        places = [] if before is None else [_with(step, before.value) for step in self.steps]
        return curves_of(
            [*self.steps, *places],
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
        """The loss, and beside it the query error and what is learnt where that was measured."""
        drawn = [draw(theme, False) for draw in self._curves()]
        if len(drawn) == 1:
            return drawn[0]
        return beside(drawn, title=TITLE, description=" ".join(picture.description for picture in drawn))

    def page(self) -> str:
        """One offline HTML page."""
        return page(TITLE, self._body([themed(draw) for draw in self._curves()]))

    def _repr_html_(self) -> str:
        return self._body([f"<div>{draw('light', False).svg}</div>" for draw in self._curves()])

    def __repr__(self) -> str:
        failed = sum(step.code != 0 for step in self.steps)
        return f"<Tradeoff of {len(self.steps):,} points, {failed:,} of them without a result>"

    def _curves(self) -> list[Callable[[str, bool], Picture]]:
        """What there is to draw."""
        if not self.has_results:
            return []
        measured = any(step.kl is not None for step in self.steps)
        learnt = any(step.accuracy is not None or step.mean_absolute_error is not None for step in self.steps)
        return [self.loss, *([self.divergence] if measured else []), *([self.learnt] if learnt else [])]

    def _body(self, pictures: Sequence[str]) -> str:
        names = ", ".join(self.question.policy.quasi_identifiers)
        about = f"{self.records:,} records; quasi-identifiers {names}. No release is kept."
        parts = [f"<h1>{TITLE}</h1>\n", f'<p class="soft">{escape(about)}</p>\n']
        parts += [f"<p><strong>{escape(text)}</strong></p>\n" for text in self.verdict()]
        parts += [f"<p>{escape(text)}</p>\n" for text in self.remarks()]
        parts += [f'<div class="pictures">{"".join(pictures)}</div>\n', self._table()]
        measured = columns_of(self.steps)
        said = {name: text for name, text in MEASURES.items() if name == "audit" or name in measured}
        measures = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in said.items())
        return "".join(parts) + f"<h2>What the figures are</h2>\n<dl>{measures}</dl>\n"

    def _table(self) -> str:
        columns, answers = columns_of(self.steps), {one.method: one for one in self.answers}
        with_l = any(step.l is not None for step in self.steps)
        heads = ["k", *(["l"] if with_l else []), "method", *columns, "audit"]
        lines = ["".join(f"<th{of_class('text' if head in TEXT else '')}>{head}</th>" for head in heads)]
        for step in self.steps:
            cells = [f"<td>{step.k:,}</td>", *([f"<td>{step.l:,}</td>"] if with_l else [])]
            cells.append(f'<td class="text">{escape(step.method)}</td>')
            if step.code == 0:
                cells += [f"<td>{cell(step)}</td>" for cell in columns.values()]
                cells.append(f'<td class="text">{audited(step)}</td>')
            else:
                told = f"{outcome(step)}: {step.error}"
                cells.append(f'<td class="text long soft" colspan="{len(columns) + 1}">{escape(told)}</td>')
            lines.append(f"<tr{of_class('least' if is_answer(step, answers) else '')}>{''.join(cells)}</tr>\n")
        return f'<div class="table"><table>\n<tr>{lines[0]}</tr>\n{"".join(lines[1:])}</table></div>\n'

    def shortly(self) -> list[Step]:
        """The points that were sampled and those beside the answers, without the many that were only ruled out."""
        values, answers = self.question.values, {one.method: one for one in self.answers}
        sampled = set(values.sample())

        def is_near(step: Step) -> bool:
            value, one = self.question.value_of(step), answers.get(step.method)
            if value in sampled:
                return True
            return one is not None and abs(values.index(value) - values.index(self.question.value_of(one))) <= NEAR

        return [step for step in self.steps if is_near(step)]

    def verdict(self) -> list[str]:
        """What the dual problem comes to, in words: a line for each method."""
        limit, name = self.question.max_loss, self.question.varies
        if limit is None or not self.complete:
            return []
        said = [
            f"{one.method}: the largest {name} that loses at most {share(limit)} is {getattr(one, name):,} "
            f"(GCP {one.gcp:.2%}); a release was made for it, audited and forgotten. "
            f"{'This is certain' if one.exact else 'It may not be the largest'}: {one.because}."
            for one in self.answers
        ]
        answered = {one.method for one in self.answers}
        for method in dict.fromkeys(step.method for step in self.steps if step.method not in answered):
            losses = [step.gcp for step in self.steps if step.method == method and step.gcp is not None]
            least = f"; the least loss is {min(losses):.2%}" if losses else ""
            said.append(f"{method}: no {name} that was computed loses at most {share(limit)}{least}.")
        return said

    def remarks(self) -> list[str]:
        """Which values were computed, why some points have no figures, and what else is to be known."""
        said = []
        for name in ("k", "l"):
            values = getattr(self.asked, name)
            if values is None or len(values) == 1:
                continue
            computed = sorted({getattr(step, name) for step in self.steps})
            said.append(f"{name} = {values} was asked for; computed were {runs_of(computed)}.")
            left = len(values) - len(computed)
            if self.complete and left:
                said[-1] += f" {self._why_not_all(name, left)}"
        for one in self.original:
            metric = str(one.metric).replace("-", " ")
            said.append(f"From the original, a {one.model} learns {one.target} with {metric} {with_reach(one)}.")
        for text, failed in by_error(self.steps).items():
            said.append(f"{'; '.join(places(failed, self.steps))}: {text}")
        for text in dict.fromkeys(text for step in self.steps for text in step.remarks):
            said.append(text)
        if not self.complete:
            said.append(f"Interrupted after {len(self.steps):,} points.")
        return said

    def _why_not_all(self, name: str, left: int) -> str:
        cut = len(getattr(self.asked, name)) - len(getattr(self.question, name))
        sampled = f"A range of more than {MOST} values is sampled in growing steps"
        around = ", and computed closely around the answer" if self.answers else ""
        if cut == 0:
            return f"{sampled}{around}."
        above = f"no {name} above the {self.records:,} records of the table can be met"
        return f"{sampled}{around}; {above}." if left > cut else f"{above[0].upper()}{above[1:]}."


def columns_of(steps: Sequence[Step]) -> dict[str, Cell]:
    """The figures of a step that has them, as people read them, by heading."""
    suppressed, asked = any(step.suppressed for step in steps), any(step.kl is not None for step in steps)
    return {
        "GCP": lambda step: f"{step.gcp:.2%}",
        **({"KL": lambda step: "" if step.kl is None else f"{step.kl:.4f}"} if asked else {}),
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


def _with(step: Step, value: float | None) -> Step:
    """The original at the place of a step."""
    return replace(step, method=ORIGINAL, accuracy=value, mean_absolute_error=value)


def _any(steps: Sequence[Step], name: str) -> bool:
    return any(getattr(step, name) is not None for step in steps)


def audited(step: Step) -> str:
    """In one word."""
    return "passed" if step.audited else "counted"


def is_answer(step: Step, answers: Mapping[str, Answer]) -> bool:
    one = answers.get(step.method)
    return one is not None and (one.k, one.l) == (step.k, step.l)


def share(number: float) -> str:
    """A share as people write it: 10%, 12.5%."""
    return f"{number * 100:.4g}%"
