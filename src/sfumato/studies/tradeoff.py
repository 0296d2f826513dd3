"""The trade-off of privacy against loss on one table, which is read once.

Everything that does not depend on k and l is done once: reading, profiling, encoding, collapsing, the line of an
ordering, and the costs of classes along it. For most points no rows are made: the classes, as a release would show
them, give the loss. A release is made, audited and not kept if it is needed: for the answer, for queries, and for
methods that release two tables.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from sfumato.engines.engine import Draft
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.evaluation.audit.audit import class_key
from sfumato.evaluation.comparison_points import CapturedError, Point
from sfumato.evaluation.dual_problem import TradeoffQuestion, TradeoffStep, by_method, largest_within
from sfumato.evaluation.learning.learning_study import Study
from sfumato.evaluation.learning.models import load_learners
from sfumato.evaluation.learning.results import ACCURACY, ERROR, Result
from sfumato.evaluation.queries import QueryWorkload, ask_release, queried_columns
from sfumato.evaluation.release_losses import Losses
from sfumato.kernels.decorator import on_compilation
from sfumato.methods import chosen_name, method_named
from sfumato.methods.method import Foreseeing
from sfumato.pipeline.prepare import read_table, table_for
from sfumato.pipeline.run import kept
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.studies.cross_validation import CrossValidation
from sfumato.studies.trial import sketch, trial_draft
from sfumato.tables.released_classes import find_classes

MODELS = ("tree", "regression-tree")
FOLDS = 5  # fewer than evaluate takes, since there are many points


class TradeoffStudy:
    """The points of one question. ``steps`` has the results so far, also after an interruption.

    A later step of a point replaces an earlier one.
    """

    def __init__(self, data: object, question: TradeoffQuestion, progress: Progress) -> None:
        self.steps: list[TradeoffStep] = []
        self.complete = False
        self._data, self._question, self._progress = data, question, progress
        self._workload = QueryWorkload(level=question.queries)
        self._expected = 0
        self._study = Study(policy=question.policy, models=MODELS, folds=FOLDS) if question.learns else None
        self._validation: CrossValidation | None = None
        self.original: tuple[Result, ...] = ()
        """The results of models on the original table, if the policy names a target."""
        self._unlearnt = CapturedError()
        with self._unlearnt:
            if self._study is not None:
                load_learners()

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds of each phase, for all points together."""
        return self._progress.seconds

    def run(self) -> None:
        """Compute the points, and search for the answer if there is a limit."""
        first = self._question.points[0].policy
        if not self._workload.empty:
            self._workload.check(first.quasi_identifiers, first.sensitive)
        with on_compilation(self._progress.compiling):
            # auto takes any table, so that a method that does not is refused in its own point.
            table = read_table(self._data, merge_flags(first, method="auto"), self._progress).shared()
            if not self._workload.empty:
                queried_columns(first, None, table.job.source, table.job.source)
            question = self._question.for_table(table.count)
            if self._study is not None and self._unlearnt.error is None:
                self._validation = CrossValidation.of(table, self._study)
                self.original = tuple(self._validation.from_original(self._progress))
            points = question.points
            self._expected = len(points)
            self._foresee(table, points)
            for point in points:
                self._compute(table, point, learnt=True)
            if question.max_loss is not None:
                for method in list(by_method(self.steps)):
                    self._search(table, question, method)
        self.complete = True

    def _foresee(self, table: TableInMemory, points: Sequence[Point]) -> None:
        """Let methods prepare for all values of k at once."""
        many: dict[str, list[int]] = {}
        for point in points:
            requirements = point.policy.requirements()
            if not requirements.attributes and requirements.person is None and self._question.suppressed is None:
                many.setdefault(point.method, []).append(point.k)
        for name, many_k in many.items():
            method = method_named(chosen_name(name, table.records.workload, table.job.policy.method.loss))
            if isinstance(method, Foreseeing) and len(many_k) > 1:
                # What fails here fails again with the points, which report it.
                with CapturedError(), self._progress.phase("partition", table.records.count):
                    method.foresee(table.records, many_k, self._progress)

    def _search(self, table: TableInMemory, question: TradeoffQuestion, method: str) -> None:
        """Search for the answer of a method until it has passed its audit as a release."""
        like = by_method(self.steps)[method][0]
        beyond = question.beyond(method, like.records)

        def allows(value: int) -> bool:
            self._expected += 1
            return question.allows(self._compute(table, question.point(method, value, like)))

        while True:
            own = {question.value_of(step): step for step in by_method(self.steps)[method]}
            known = {value: question.allows(step) for value, step in own.items()}
            answer = largest_within(question.values, known, allows, beyond=beyond)
            if answer is None or (answer in own and own[answer].audited):
                return
            self._expected += 1
            self._compute(table, question.point(method, answer, like), audited=True, learnt=True)

    def _compute(
        self, table: TableInMemory, point: Point, *, audited: bool = False, learnt: bool = False
    ) -> TradeoffStep:
        number = len(self.steps) + 1
        share = None if self._question.suppressed is None else point.policy.release.max_suppressed_fraction
        step = TradeoffStep(method=point.method, k=point.k, l=point.l, records=table.count, max_suppressed=share)
        self._progress.next_run(f"{point.method}, {step.label}", number, max(self._expected, number))
        started, attempt = time.perf_counter(), CapturedError()
        with attempt:
            prepared = table_for(table, point.policy)
            whole = audited or not self._workload.empty or method_named(point.method).separates
            measured = self._released(step, prepared) if whole else self._sketched(step, prepared)
            step = replace(measured, total_seconds=time.perf_counter() - started)
            if learnt and self._validation is not None:
                step = self._learnt(step, self._validation, point)
            elif self._unlearnt.error is not None:
                step = replace(step, remarks=(*step.remarks, self._unlearnt.error))
        self.steps.append(replace(step, error=attempt.error, code=attempt.code))
        return self.steps[-1]

    def _learnt(self, step: TradeoffStep, validation: CrossValidation, point: Point) -> TradeoffStep:
        """Add the scores of models to a step. A method without regions has none."""
        before = next((earlier for earlier in self.steps if earlier.place == step.place), None)
        if before is not None and before.accuracy is not before.mean_absolute_error:
            return replace(step, accuracy=before.accuracy, mean_absolute_error=before.mean_absolute_error)
        attempt = CapturedError()
        results: list[Result] = []
        with attempt:
            results = validation.from_release(point, self._progress)
        if attempt.error is not None:
            return replace(step, remarks=(*step.remarks, f"{point.method}, not learnt from: {attempt.error}"))
        by_metric = {result.metric: result.value for result in reversed(results) if result.model is not None}
        return replace(step, accuracy=by_metric.get(ACCURACY), mean_absolute_error=by_metric.get(ERROR))

    def _sketched(self, step: TradeoffStep, prepared: TableInMemory) -> TradeoffStep:
        figures = sketch(prepared)
        return replace(
            step,
            **self._certainty_penalties(figures.losses, step.records),
            classes=figures.classes,
            smallest_class=figures.smallest_class,
            suppressed=figures.losses.suppressed,
            hides_identity=True,
        )

    def _released(self, step: TradeoffStep, prepared: TableInMemory) -> TradeoffStep:
        draft = trial_draft(prepared)
        release = kept(draft)
        return replace(
            step,
            **self._certainty_penalties(release.losses, step.records),
            kl=None if self._workload.empty else self._divergence(draft, prepared),
            classes=release.audit.classes,
            smallest_class=release.audit.smallest_class,
            suppressed=release.losses.suppressed,
            hides_identity=draft.rows.sensitive is None,
            audited=True,
            remarks=release.audit.remarks,
        )

    def _certainty_penalties(self, losses: Losses, records: int) -> dict[str, Any]:
        """Return the loss of all records, of those that stay, and with those left out counted as the policy says.

        That is the policy of the question. The policies of points may say otherwise: see TradeoffQuestion.
        """
        excess = 1 - self._question.policy.release.suppression_cost
        cost = losses.gcp - excess * losses.suppressed / records
        return {"gcp": losses.gcp, "gcp_released": losses.values.get("gcp_released"), "cost": cost}

    def _divergence(self, draft: Draft, prepared: TableInMemory) -> float | None:
        """Return the mean divergence of the datacube over the sensitive columns, or None if one is not finite."""
        with self._progress.phase("measure"):
            first, second = draft.engine.sources(draft.rows)
            policy = draft.job.policy
            classes = find_classes(first, class_key(policy, first.names), by_row=second is None)
            carried = {column.name: column for column in prepared.encoded.carried}
            sensitive = {name: pa.chunked_array([carried[name].take(None)]) for name in policy.sensitive}
            codes, domains = prepared.encoded.codes, prepared.encoded.domains
            options = policy.input_options
            answers = ask_release(self._workload, codes, domains, sensitive, first, second, classes, options)
        divergences = [answer.kl for answer in answers if answer.kl is not None and math.isfinite(answer.kl)]
        return math.fsum(divergences) / len(divergences) if len(divergences) == len(answers) else None
