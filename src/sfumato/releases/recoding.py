"""A recoding that was learnt on one table and applies to any other (LeFevre 2008, sections 2 and 4.2).

Its regions tile the domain, so every record of the domain shows the region that it is in, whether it was there when the
recoding was learnt or not. What ``transform`` gives back nobody has audited: k records of the table that the recoding
was learnt on are in each of its regions, of another table there may be one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.kernels.threads import in_threads
from sfumato.policy import ColumnSettings, Policy
from sfumato.releases.regions import Divided, Regions
from sfumato.tables.coding.arrow_arrays import from_numpy, from_texts
from sfumato.tables.coding.domains import (
    WHOLE,
    CategoricalDomain,
    Codes,
    Domain,
    NumericDomain,
    ReleasedValues,
    numbers_of,
)
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.coding.profile import profile_column
from sfumato.tables.sources.source import Source, open_source
from sfumato.taxonomies.taxonomy import Taxonomy

MARK = {b"sfumato": b"unaudited"}  # of the schema of a table that was recoded and not audited


@dataclass(frozen=True, eq=False)
class Recoding:
    """Regions over the domain of the quasi-identifiers, and what a record shows that is in one of them.

    ``policy`` is what the recoding was learnt under, ``method`` what found the regions, ``taxonomies`` those of
    sensitive columns, ``names`` the columns that a release of the table would have. Get one with ``sfumato.fit``.
    """

    regions: Regions
    policy: Policy
    method: str
    taxonomies: Mapping[str, Taxonomy] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        tree: Divided,
        domains: Sequence[Domain],
        *,
        policy: Policy,
        method: str,
        taxonomies: Mapping[str, Taxonomy] | None = None,
        names: Sequence[str] = (),
    ) -> Recoding:
        """The recoding by the leaves of a tree that was grown over the codes of these domains."""
        sensitive = {name: tree for name, tree in (taxonomies or {}).items() if name not in policy.quasi_identifiers}
        regions = Regions.of(tree, domains)
        return cls(regions, policy, method, sensitive, tuple(names) or policy.quasi_identifiers)

    @classmethod
    def load(cls, path: str | Path) -> Recoding:
        """Read a recoding that ``write`` wrote."""
        from sfumato.releases.rules import load_rules

        return load_rules(Path(path))

    @classmethod
    def from_json(cls, text: str) -> Recoding:
        """The recoding that ``to_json`` gave."""
        from sfumato.releases.rules import read_rules

        return read_rules(text)

    def to_json(self) -> str:
        """The recoding as rules that a person can read."""
        from sfumato.releases.rules import rules_text

        return rules_text(self)

    def write(self, path: str | Path) -> Path:
        """Write the rules as JSON, for their owner alone: they hold bounds and categories of the table."""
        from sfumato.releases.rules import write_rules

        write_rules(self, Path(path))
        return Path(path)

    def to_sql(self, dialect: str, table: str | Sequence[str]) -> str:
        """A query that gives for a table of a database what ``transform`` gives; ``dialect`` is duckdb or postgresql.

        ``table`` is a name, or a schema and a name. Its columns have the types of the table that was learnt from.
        """
        from sfumato.releases.rules_sql import query_of

        return query_of(self, dialect, (table,) if isinstance(table, str) else tuple(table))

    @property
    def domains(self) -> tuple[Domain, ...]:
        """What each quasi-identifier can be; of numbers the values are the bounds of regions."""
        return self.regions.domains

    def __len__(self) -> int:
        """How many regions there are."""
        return len(self.regions)

    def __repr__(self) -> str:
        names = ", ".join(domain.name for domain in self.domains)
        return f"<Recoding by {self.method}: {len(self):,} regions over {names}>"

    def regions_of(self, data: object) -> NDArray[np.int64]:
        """int64[n]: the region of each record, -1 for one with a value outside the domain."""
        source = self.open_source(data)
        table = _read(source, [domain.name for domain in self.domains])
        return self._regions(source, table)

    def bounds(self, data: object) -> NDArray[np.float64]:
        """float64[n, 2d]: the region of each record as numbers to learn from, the least and the largest of each column.

        Dates are days and moments microseconds since 1970, categories their place among the leaves of the taxonomy,
        null is one more than the largest value. A record outside the domain has the whole domain.
        """
        return self._bounds(self.regions_of(data))

    def bound_names(self) -> list[str]:
        """What the columns of ``bounds`` are."""
        return [f"{domain.name}_{end}" for domain in self.domains for end in ("min", "max")]

    def transform(self, data: object) -> pa.Table:
        """The table with the region of each record in the place of its quasi-identifiers, in the order of the input.

        Other columns are kept or dropped as the policy says. A record outside the domain shows ``*`` throughout. The
        result is not audited, and marked so in the metadata of its schema: to release it, use ``apply``.
        """
        from sfumato.tables.sources.frames import to_kind

        source = self.open_source(data)
        table, _ = self.transformed(source)
        plain: pa.Table = to_kind(table, "pyarrow", None)
        return plain.replace_schema_metadata(MARK)

    def transformed(self, source: Source) -> tuple[pa.Table, NDArray[np.int64]]:
        """The recoded table, and the region of each record."""
        kept = self.policy.kept_columns(source.names)
        table = _read(source, kept)
        regions = self._regions(source, table)
        shown = zip(self.domains, self.shown(), strict=True)
        recoded = {domain.name: self._spread(domain, values, regions) for domain, values in shown}

        def column(name: str) -> list[tuple[str, pa.Array]]:
            return recoded.get(name) or [(name, PassthroughColumn.of(name, table.column(name)).take(None))]

        columns = [pair for pairs in in_threads(column, kept) for pair in pairs]
        return pa.Table.from_arrays([array for _, array in columns], names=[name for name, _ in columns]), regions

    def shown(self, regions: NDArray[np.int64] | None = None) -> list[ReleasedValues]:
        """What the regions, or some of them, show, one quasi-identifier after the other."""
        nodes = self.regions.leaves if regions is None else self.regions.leaves[regions]
        low, high = self.regions.low[nodes], self.regions.high[nodes]
        return [domain.release(low[:, q], high[:, q]) for q, domain in enumerate(self.domains)]

    def labels(self, regions: NDArray[np.int64] | None = None) -> list[list[str | None]]:
        """What each region, or each of some, shows for each quasi-identifier."""
        columns = [shown.labels.take(from_numpy(shown.index)).to_pylist() for shown in self.shown(regions)]
        return [list(row) for row in zip(*columns, strict=True)]

    def open_column(self, name: str) -> ColumnSettings:
        """What a policy says of a quasi-identifier of a further table: its type as it was learnt, any value."""
        domain = next(domain for domain in self.domains if domain.name == name)
        asked = self.policy.columns[name]
        if isinstance(domain, CategoricalDomain):
            return ColumnSettings(role="quasi-identifier", type="categorical", weight=asked.weight)
        if asked.implied_type == "date" and asked.taxonomy is not None:
            return asked  # a calendar makes days of moments
        assert isinstance(domain, NumericDomain)
        if not len(domain.values):  # nothing but null was there, which is of no type
            return ColumnSettings(role="quasi-identifier", weight=asked.weight)
        return ColumnSettings(
            role="quasi-identifier", type="numeric" if domain.kind == "numeric" else "date", weight=asked.weight
        )

    def all_taxonomies(self) -> dict[str, Taxonomy]:
        """The taxonomies of quasi-identifiers and of sensitive columns that files gave."""
        given = {
            domain.name: domain.taxonomy
            for domain in self.domains
            if isinstance(domain, CategoricalDomain) and self.policy.columns[domain.name].taxonomy_file is not None
        }
        return {**given, **self.taxonomies}

    def open_source(self, data: object) -> Source:
        """A further table to read, which has all the quasi-identifiers."""
        source = open_source(data, self.policy.input_options)
        for domain in self.domains:
            if domain.name not in source.names:
                raise UsageError.unknown_column(domain.name, "the recoding", source.names)
        return source

    def _regions(self, source: Source, table: pa.Table) -> NDArray[np.int64]:
        options = self.policy.input_options

        def encoded(domain: Domain) -> tuple[Codes, Domain]:
            column = table.column(domain.name)
            encoder = profile_column(source, domain.name, column, self.open_column(domain.name), options, None)
            return np.concatenate([encoder.encode(chunk) for chunk in column.chunks]), encoder.domain

        columns = in_threads(encoded, self.domains)
        return self.regions.regions_of(np.column_stack([codes for codes, _ in columns]), [one for _, one in columns])

    def _spread(self, domain: Domain, shown: ReleasedValues, regions: NDArray[np.int64]) -> list[tuple[str, pa.Array]]:
        """One quasi-identifier as it is released, by record."""
        known = len(shown.labels)
        entry = from_numpy(np.append(shown.index, known)[regions])  # the last is that of a record outside the domain
        columns = [(domain.name, pa.concat_arrays([shown.labels, from_texts([WHOLE])]).take(entry))]
        if self.policy.release.bounds and domain.kind != "categorical":
            for end, bounds in (("min", shown.low), ("max", shown.high)):
                columns.append(
                    (f"{domain.name}_{end}", pa.concat_arrays([bounds, pa.nulls(1, bounds.type)]).take(entry))
                )
        return columns

    def _bounds(self, regions: NDArray[np.int64]) -> NDArray[np.float64]:
        own = self.regions
        nodes = np.append(own.leaves, 0)[regions]  # the root is the whole domain
        found = np.empty((len(regions), 2 * len(self.domains)))
        for q, domain in enumerate(self.domains):
            numbers = numbers_of(domain)
            found[:, 2 * q], found[:, 2 * q + 1] = numbers[own.low[nodes, q]], numbers[own.high[nodes, q]]
        return found


def _read(source: Source, names: Sequence[str]) -> pa.Table:
    return pa.Table.from_batches(list(source.batches(names)))
