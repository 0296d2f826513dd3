"""The sections ``[method]`` and ``[engine]``: how classes are found, and what computes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, StrictBool

from sfumato.parameters import byte_size, positive_number, significance_level, whole_number
from sfumato.policy.section import PolicySection, given_name
from sfumato.policy.workload import LeastGain

EffortName = Literal["fast", "normal", "balanced", "best", "exact"]
EngineName = Literal["auto", "memory", "disk", "spark"]
USUAL_EFFORT: EffortName = "normal"
LossName = Literal["ncp", "sse"]


class MethodSettings(PolicySection):
    """How classes are found. The package ``methods`` knows which names exist."""

    name: Annotated[str, BeforeValidator(given_name)] = "auto"
    loss: LossName = "ncp"
    """What a search lowers: the certainty penalty of ranges and groups, or the sum of squares around means."""
    effort: EffortName | None = None
    """How long a method that searches for less loss goes on. Without it, every command has its usual one."""
    seconds: Annotated[float, BeforeValidator(positive_number)] | None = None
    """How long the search goes on, in seconds, instead of the effort. The same seed then gives different bytes."""
    least_gain: LeastGain = 0.01
    """Where a split gains less than this for the workload, regions are divided at the median."""
    cells: StrictBool = False
    """Whether ``global`` suppresses single cells before it leaves out whole records."""

    @property
    def names_effort(self) -> bool:
        """Whether it says how long to search, by an effort or in seconds."""
        return self.effort is not None or self.seconds is not None


class EngineSettings(PolicySection):
    """What the computation runs on."""

    name: EngineName = "auto"
    memory: Annotated[int, BeforeValidator(byte_size)] | None = None
    """How much memory a run may take, in bytes. A policy may write it as 2GB."""
    sampled: StrictBool = False
    """Whether Mondrian on disk finds its first splits on a sample. It reads less, and its classes differ."""
    sample_size: Annotated[int, BeforeValidator(whole_number(2))] | None = None
    """How many records a sample has; by default 65,536, or what fits into memory."""
    sample_alpha: Annotated[float, BeforeValidator(significance_level)] | None = None
    """The level of the tests that a split on a sample must pass; by default 0.05."""
    sample_tests: StrictBool = True
    """Whether a split on a sample must pass tests; otherwise the sample is taken at face value."""
    frequency_groups: Annotated[int, BeforeValidator(whole_number(1))] | None = None
    """How many frequency groups Mondrian on disk counts at once, F_CACHE; by default as many as fit into memory."""

    @property
    def asks_for_sampling(self) -> bool:
        """Whether it says how samples are drawn or tested."""
        return self.sample_size is not None or self.sample_alpha is not None or not self.sample_tests
