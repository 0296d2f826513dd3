"""Every loss there is, and all of them measured at once.

A further loss is one file and an entry point in the group ``sfumato.losses`` whose object is a ``Loss``.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from sfumato.losses.certainty import GlobalCertaintyPenalty
from sfumato.losses.class_size import AverageClassSize, Discernibility, ModifiedDiscernibility
from sfumato.losses.classification import ClassificationMetric
from sfumato.losses.extent import LargestPerimeter
from sfumato.losses.loss import ClassTable, Loss


@cache
def losses() -> dict[str, Loss]:
    """Every loss, by name."""
    own: list[Loss] = [
        GlobalCertaintyPenalty(),
        Discernibility(),
        AverageClassSize(),
        ModifiedDiscernibility(),
        LargestPerimeter(),
        ClassificationMetric(),
    ]
    found = {loss.name: loss for loss in own}
    for entry in entry_points(group="sfumato.losses"):
        found.setdefault(entry.name, entry.load())
    return found


def measure_classes(classes: ClassTable) -> dict[str, float | int]:
    """Every loss that can be computed from these classes."""
    values = {name: loss.value(classes) for name, loss in losses().items()}
    return {name: value for name, value in values.items() if value is not None}
