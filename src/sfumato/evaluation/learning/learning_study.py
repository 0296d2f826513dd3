"""The request for a study that learns from releases: methods, privacy levels, models and folds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato.errors import UsageError
from sfumato.evaluation.comparison_points import Point, points_of
from sfumato.evaluation.learning.folds import USUAL, check_folds
from sfumato.evaluation.learning.models import Model, check_models, load_learners, models_named
from sfumato.evaluation.parameter_values import ALL
from sfumato.methods import AUTO
from sfumato.methods.coded_workload import CodedWorkload
from sfumato.policy import Policy

USUAL_METHODS = {
    "mondrian:information-gain": "classification",
    "mondrian:regression": "regression",
    "mondrian:selection": "selection",
    "mondrian": "",
    "tds": "classification",
}
"""The methods that are compared unless others are named, and the kind of task that each needs in the workload."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """Methods, each under every k and l, and models that learn from their releases. None means: choose for me."""

    policy: Policy
    methods: str | Sequence[str] | None = None
    k: int | Iterable[int] | None = None
    l: int | Iterable[int] | None = None
    models: str | Sequence[str] = ALL
    folds: int = USUAL

    @property
    def seed(self) -> int:
        return self.policy.release.seed or 0

    def check(self) -> None:
        """Refuse every mistake that can be seen before a table is read."""
        if not self.policy.workload:
            raise UsageError(
                "there is nothing to learn. Name the column to predict with --target, or write "
                "[[workload.classification]], [[workload.regression]] or [[workload.selection]] into the policy."
            )
        check_folds(self.folds)
        check_models(self.models)
        if self.policy.workload.predicted:
            load_learners()
        points_of(self.policy, self.methods or AUTO, self.k, self.l)

    @property
    def for_reading(self) -> Policy:
        """A policy with which the table can be read, whatever methods are compared."""
        # AUTO serves any table; a method that does not is refused later, in its own rows.
        return points_of(self.policy, AUTO, self.k, self.l)[0].policy

    def points(self, workload: CodedWorkload) -> list[Point]:
        """Every method under every k and l. The workload gives the kinds of the targets."""
        kinds = workload.kinds
        suitable = [name for name, needed in USUAL_METHODS.items() if not needed or getattr(kinds, needed)]
        if kinds.classification and kinds.regression:  # with targets of both kinds the two rules are the same
            suitable.remove("mondrian:regression")
        return points_of(self.policy, self.methods or suitable, self.k, self.l)

    def models_for(self, workload: CodedWorkload) -> list[Model]:
        kinds = [target.kind for target in workload.targets]
        return models_named(self.models, list(dict.fromkeys(kinds))) if kinds else []
