"""The study of learning: models trained on what several methods make of one table, which is read once."""

from __future__ import annotations

from sfumato.evaluation.comparison_points import CapturedError
from sfumato.evaluation.learning.learning_study import Study
from sfumato.evaluation.learning.results import Result
from sfumato.kernels.decorator import on_compilation
from sfumato.pipeline.prepare import read_table
from sfumato.progress import Progress
from sfumato.studies.cross_validation import CrossValidation


class LearningStudy:
    """The results of one study. ``results`` has those so far, also after an interruption."""

    def __init__(self, data: object, study: Study, progress: Progress) -> None:
        study.check()
        self.results: list[Result] = []
        self.complete = False
        self.records = 0
        self._data, self._study, self._progress = data, study, progress

    def run(self) -> None:
        """Learn from the original, then from what each method makes under each k and l."""
        study, progress = self._study, self._progress
        with on_compilation(progress.compiling):
            table = read_table(self._data, study.for_reading, progress)
            self.records = table.count
            validation = CrossValidation.of(table, study)
            points = study.points(validation.workload)
            if validation.models:
                progress.next_run("original", 1, len(points) + 1)
                self.results += validation.from_original(progress)
            for number, point in enumerate(points, 2):
                progress.next_run(f"{point.method}, k = {point.k:,}", number, len(points) + 1)
                attempt, results = CapturedError(), []
                with attempt:
                    results = validation.from_release(point, progress)
                if attempt.error is not None:
                    failed = Result(method=point.method, k=point.k, l=point.l, error=attempt.error, code=attempt.code)
                    results = [failed]
                self.results += results
        self.complete = True
