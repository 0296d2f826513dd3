"""What an engine is: the verbs of a run, for tables of one order of size.

A run is the same everywhere: scan, profile, encode, order, assign, recode, release, write, group_count. What passes
between the verbs is the engine's own affair; nothing above the engines touches it or a frame. Engines bring the right
records together for the same kernels, they never implement a method again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from sfumato.methods.method import ClassBatch, Method
from sfumato.policy import Policy
from sfumato.requirements import Requirements
from sfumato.tables.grouping import ReleasedClasses
from sfumato.tables.source import InputOptions, Source
from sfumato.taxonomies.tree import Taxonomy


class Engine(Protocol):
    """The verbs, in the order of a run."""

    @property
    def name(self) -> str: ...

    def scan(self, source: Source, names: Sequence[str]) -> Any:
        """Take hold of the named columns."""
        ...

    def profile(
        self, scanned: Any, policy: Policy, options: InputOptions, taxonomies: Mapping[str, Taxonomy]
    ) -> list[Any]:
        """The domain of every quasi-identifier, and how its values become codes."""
        ...

    def encode(self, scanned: Any, encoders: Sequence[Any]) -> Any:
        """The quasi-identifiers in codes."""
        ...

    def sensitive(
        self, encoded: Any, names: Sequence[str], policy: Policy, taxonomies: Mapping[str, Taxonomy]
    ) -> Mapping[str, Any]:
        """The sensitive attributes that requirements count, in codes."""
        ...

    def workload(self, encoded: Any, policy: Policy) -> Any:
        """What the policy says the release is for, in codes."""
        ...

    def persons(self, scanned: Any, policy: Policy) -> Any:
        """Whose each record is, where the policy names a person key."""
        ...

    def order(
        self,
        encoded: Any,
        weights: Sequence[float],
        sensitive: Mapping[str, Any],
        *,
        persons: Any = None,
        seed: int = 0,
    ) -> Any:
        """The records as methods take them: equal records together."""
        ...

    def check_feasible(self, records: Any, requirements: Requirements, most_suppressed: int) -> None:
        """Raise InfeasibleError when no release can meet the requirements with so few records left out."""
        ...

    def assign(
        self, records: Any, method: Method, requirements: Requirements, *, bounds: bool, most_suppressed: int = 0
    ) -> Iterator[ClassBatch]:
        """Which records share a class, in batches; a record in none of them is left out."""
        ...

    def recode(self, encoded: Any, classes: Iterator[ClassBatch], *, bounds: bool) -> Any:
        """What each class shows."""
        ...

    def release(
        self,
        encoded: Any,
        recoded: Any,
        names: Sequence[str],
        *,
        bounds: bool,
        keep_order: bool,
        means: Mapping[str, Fraction] | None = None,
        persons: Any = None,
    ) -> Any:
        """The released rows, in canonical order unless the order is kept; ``means`` of columns, rounded to these."""
        ...

    def separate(self, encoded: Any, records: Any, classes: Iterator[ClassBatch], sensitive: str) -> Any:
        """Every record with its group, and the sensitive values of each group in a table of their own."""
        ...

    def write(self, released: Any, path: Path, *, separator: str) -> None:
        """The released rows as a file."""
        ...

    def write_sensitive(self, released: Any, path: Path, *, separator: str) -> None:
        """The second table as a file, where sensitive values are released apart."""
        ...

    def table(self, released: Any) -> pa.Table:
        """The released rows as a table in memory."""
        ...

    def sensitive_table(self, released: Any) -> pa.Table | None:
        """The second table, where there is one."""
        ...

    def persons_of(self, released: Any) -> Any:
        """Whose each released row is, where persons are counted; never written."""
        ...

    def group_count(self, source: Source, key: Sequence[str], *, by_row: bool) -> ReleasedClasses:
        """The classes of a finished release, by its class key."""
        ...
