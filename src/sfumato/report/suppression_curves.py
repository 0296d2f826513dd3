"""The curves of the loss by the share of records that are left out."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.evaluation.dual_problem import TradeoffStep
from sfumato.pictures.curves import NARROW, WIDTH, curves
from sfumato.pictures.picture import Picture


def suppression_curves(steps: Sequence[TradeoffStep], suppression_cost: float, theme: str, *, narrow: bool) -> Picture:
    """Draw three lines for each method: the loss of what stays, of all records, and the cost that the policy gives.

    The share is that of the records that were left out, which may be fewer than allowed.
    """
    losses = {"released": "gcp_released", f"left out as {suppression_cost:g}": "cost", "left out as 1": "gcp"}
    if suppression_cost == 1:  # the cost is then GCP
        losses.pop("left out as 1")
    methods = {step.method for step in steps}
    drawn = [
        {
            "share": 100 * (step.suppressed or 0) / step.records,
            "loss": getattr(step, figure),
            "series": name if len(methods) == 1 else f"{step.method}, {name}",
        }
        for name, figure in losses.items()
        for step in steps
        if step.code == 0
    ]
    return curves(
        drawn,
        x="share",
        y="loss",
        series="series",
        title=f"Information loss by what is left out, k = {steps[0].k:,}",
        x_title="records left out, %",
        y_title="information loss (GCP)",
        y_format=".3~p",
        width=NARROW if narrow else WIDTH,
        theme=theme,
    )
