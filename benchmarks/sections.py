"""All sections, in the order in which they are measured: those whose figures depend on the load first."""

from __future__ import annotations

from benchmarks import (
    attacks,
    bound,
    csv_floor,
    disk,
    diversity,
    efforts,
    first_use,
    floor,
    gap,
    global_levels,
    growth,
    guides,
    loss,
    memory,
    methods,
    microaggregation,
    page,
    peers,
    spark,
    tradeoff,
    workload,
)
from benchmarks.section import Section

SECTIONS: dict[str, Section] = {
    "floor": floor.SECTION,
    "csv": csv_floor.SECTION,
    "growth": growth.SECTION,
    "memory": memory.SECTION,
    "first-use": first_use.SECTION,
    "efforts": efforts.SECTION,
    "tradeoff": tradeoff.SECTION,
    "global": global_levels.SECTION,
    "workload": workload.SECTION,
    "disk": disk.SECTION,
    "disk-long": disk.LONG_SECTION,
    "peers": peers.SECTION,
    "spark": spark.SECTION,
    "page": page.SECTION,
    "loss": loss.SECTION,
    "bound": bound.SECTION,
    "microaggregation": microaggregation.SECTION,
    **gap.SECTIONS,
    "methods": methods.SECTION,
    "diversity": diversity.SECTION,
    "guides": guides.SECTION,
    "attacks": attacks.SECTION,
}
