"""Tracing the trade-off of privacy against loss on a table that is read once.

Whatever does not depend on k and l is done once: reading, profiling, encoding, collapsing, the line of an ordering, and
what the classes along it would cost.
Of a point no rows are made: its classes, as a release would show them, say what it loses. A release is made, audited
and forgotten where it is needed: for the answer, for queries, and for methods that release two tables.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from sfumato.engines.engine import Draft
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.evaluation.audit.audit import class_key
from sfumato.evaluation.comparison_points import Attempt, Point
from sfumato.evaluation.dual_problem import Question, Step, by_method, largest_within
from sfumato.evaluation.learning.learning_study import Study
from sfumato.evaluation.learning.models import load_learners
from sfumato.evaluation.learning.results import ACCURACY, ERROR, Result
from sfumato.evaluation.queries import QueryWorkload, ask_release, queried_columns
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
FOLDS = 5  # fewer than evaluate has: there are many points


class TradeoffStudy:
    """The points of one question. ``steps`` has what came of them so far, also after an interruption.

    A later step of a point stands for an earlier one.
    """

    def __init__(self, data: object, question: Question, progress: Progress) -> None:
        self.steps: list[Step] = []
        self.complete = False
        self._data, self._question, self._progress = data, question, progress
        self._workload = QueryWorkload(level=question.queries)
        self._expected = 0
        self._study = Study(policy=question.policy, models=MODELS, folds=FOLDS) if question.learns else None
        self._lesson: CrossValidation | None = None
        self.original: tuple[Result, ...] = ()
        """What is learnt from the table itself, where the policy names a target."""
        self._unlearnt = Attempt()
        with self._unlearnt:
            if self._study is not None:
                load_learners()

    @property
    def seconds(self) -> dict[str, float]:
        """By phase, of all points together."""
        return self._progress.seconds

    def run(self) -> None:
        """Compute the points, and look for the answer where there is a limit."""
        first = self._question.points[0].policy
        if not self._workload.empty:
            self._workload.check(first.quasi_identifiers, first.sensitive)
        with on_compilation(self._progress.compiling):
            # The method that serves any table, so that each of the others is refused in its own point.
            table = read_table(self._data, merge_flags(first, method="auto"), self._progress).shared()
            if not self._workload.empty:
                queried_columns(first, None, table.job.source, table.job.source)
            question = self._question.for_table(table.count)
            if self._study is not None and self._unlearnt.error is None:
                self._lesson = CrossValidation.of(table, self._study)
                self.original = tuple(self._lesson.from_original(self._progress))
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
        """Let methods do at once what they need for all k."""
        many: dict[str, list[int]] = {}
        for point in points:
            asked = point.policy.requirements()
            if not asked.attributes and asked.person is None:
                many.setdefault(point.method, []).append(point.k)
        for name, many_k in many.items():
            method = method_named(chosen_name(name, table.records.workload))
            if isinstance(method, Foreseeing) and len(many_k) > 1:
                # What goes wrong here goes wrong again with the points, and is told of them.
                with Attempt(), self._progress.phase("partition", table.records.count):
                    method.foresee(table.records, many_k, self._progress)

    def _search(self, table: TableInMemory, question: Question, method: str) -> None:
        """Look for the answer of one method until it has passed as a release."""
        like = by_method(self.steps)[method][0]
        beyond = question.beyond(method, like.records)

        def allows(value: int) -> bool:
            self._expected += 1
            return question.allows(self._compute(table, question.point(method, value, like)))

        while True:
            own = {question.value_of(step): step for step in by_method(self.steps)[method]}
            known = {value: question.allows(step) for value, step in own.items()}
            found = largest_within(question.values, known, allows, beyond=beyond)
            if found is None or (found in own and own[found].audited):
                return
            self._expected += 1
            self._compute(table, question.point(method, found, like), audited=True, learnt=True)

    def _compute(self, table: TableInMemory, point: Point, *, audited: bool = False, learnt: bool = False) -> Step:
        number = len(self.steps) + 1
        told = f"k = {point.k:,}" if point.l is None else f"k = {point.k:,}, l = {point.l:,}"
        self._progress.turned_to(f"{point.method}, {told}", number, max(self._expected, number))
        started, attempt = time.perf_counter(), Attempt()
        records = table.count
        step = Step(method=point.method, k=point.k, l=point.l, records=records)
        with attempt:
            prepared = table_for(table, point.policy)
            whole = audited or not self._workload.empty or method_named(point.method).separates
            made = self._released(step, prepared) if whole else self._sketched(step, prepared)
            step = replace(made, total_seconds=time.perf_counter() - started)
            if learnt and self._lesson is not None:
                step = self._learnt(step, self._lesson, point)
            elif self._unlearnt.error is not None:
                step = replace(step, remarks=(*step.remarks, self._unlearnt.error))
        self.steps.append(replace(step, error=attempt.error, code=attempt.code))
        return self.steps[-1]

    def _learnt(self, step: Step, lesson: CrossValidation, point: Point) -> Step:
        """The step with what is learnt at its point; a method without regions cannot be learnt from so."""
        before = next((one for one in self.steps if one.place == step.place), None)
        if before is not None and before.accuracy is not before.mean_absolute_error:
            return replace(step, accuracy=before.accuracy, mean_absolute_error=before.mean_absolute_error)
        attempt = Attempt()
        found: list[Result] = []
        with attempt:
            found = lesson.from_release(point, self._progress)
        if attempt.error is not None:
            return replace(step, remarks=(*step.remarks, f"{point.method}, not learnt from: {attempt.error}"))
        by_metric = {one.metric: one.value for one in reversed(found) if one.model is not None}
        return replace(step, accuracy=by_metric.get(ACCURACY), mean_absolute_error=by_metric.get(ERROR))

    def _sketched(self, step: Step, prepared: TableInMemory) -> Step:
        found = sketch(prepared)
        return replace(
            step,
            gcp=found.losses.gcp,
            classes=found.classes,
            smallest_class=found.smallest_class,
            suppressed=found.losses.suppressed,
            hides_identity=True,
        )

    def _released(self, step: Step, prepared: TableInMemory) -> Step:
        draft = trial_draft(prepared)
        release = kept(draft)
        return replace(
            step,
            gcp=release.losses.gcp,
            kl=None if self._workload.empty else self._divergence(draft, prepared),
            classes=release.audit.classes,
            smallest_class=release.audit.smallest_class,
            suppressed=release.losses.suppressed,
            hides_identity=draft.rows.sensitive is None,
            audited=True,
            remarks=release.audit.remarks,
        )

    def _divergence(self, draft: Draft, prepared: TableInMemory) -> float | None:
        """The mean divergence of the datacube, over the sensitive columns."""
        with self._progress.phase("measure"):
            first, second = draft.engine.sources(draft.rows)
            policy = draft.job.policy
            classes = find_classes(first, class_key(policy, first.names), by_row=second is None)
            carried = {column.name: column for column in prepared.encoded.carried}
            sensitive = {name: pa.chunked_array([carried[name].take(None)]) for name in policy.sensitive}
            codes, domains = prepared.encoded.codes, prepared.encoded.domains
            found = ask_release(self._workload, codes, domains, sensitive, first, second, classes, policy.input_options)
        divergences = [one.kl for one in found if one.kl is not None and math.isfinite(one.kl)]
        return math.fsum(divergences) / len(divergences) if len(divergences) == len(found) else None
