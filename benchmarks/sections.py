"""All sections, in the order in which they are measured: those whose figures depend on the load first."""

from __future__ import annotations

from benchmarks import (
    attacks,
    bound,
    csv_floor,
    disk,
    diversity,
    first_use,
    floor,
    global_levels,
    growth,
    guides,
    loss,
    memory,
    methods,
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
    "tradeoff": tradeoff.SECTION,
    "global": global_levels.SECTION,
    "workload": workload.SECTION,
    "disk": disk.SECTION,
    "peers": peers.SECTION,
    "spark": spark.SECTION,
    "page": page.SECTION,
    "loss": loss.SECTION,
    "bound": bound.SECTION,
    "methods": methods.SECTION,
    "diversity": diversity.SECTION,
    "guides": guides.SECTION,
    "attacks": attacks.SECTION,
}
