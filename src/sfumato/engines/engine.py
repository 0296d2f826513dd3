"""What an engine is: it makes the released rows of tables of one order of size, and gives them to whoever reads them.

How rows come about is an engine's own affair: it brings the right records together for the same kernels, and never
implements a method again. Nothing above the engines touches what it holds them in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from sfumato.tables.external.scratch import Scratch
from sfumato.tables.released_classes import ReleasedClasses
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.target import Target


class Engine(Protocol):
    """What can be done with released rows, whatever engine made them."""

    @property
    def name(self) -> str: ...

    @property
    def limit(self) -> tuple[int, Scratch] | None:
        """How much memory may be used, in bytes, and where to keep what does not fit; none where nothing is limited."""
        ...

    def write(self, released: Any, target: Target) -> Source:
        """The released rows to where they go, batch by batch; gives them back to read."""
        ...

    def write_sensitive(self, released: Any, target: Target) -> Source:
        """The second table, where sensitive values are released apart."""
        ...

    def readable(self, released: Any) -> object:
        """The released rows as something that can be read as a table: a table in memory, or a file."""
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
