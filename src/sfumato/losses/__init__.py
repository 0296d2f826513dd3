"""Losses: how much information a release has lost."""

from __future__ import annotations

from sfumato.losses.loss import ClassTable, Extent, Loss

__all__ = ["ClassTable", "Extent", "Loss"]
