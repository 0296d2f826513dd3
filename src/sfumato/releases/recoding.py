"""A recoding that is learnt on one table and applies to any other (LeFevre 2008, sections 2 and 4.2).

The regions tile the domain, so every record of the domain shows its region, even if it was not in the table when the
recoding was learnt. The result of ``transform`` is not audited: each region has at least k records of the table on
which the recoding was learnt, but it may have only one record of another table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.errors import UsageError
from sfumato.kernels.threads import in_threads
from sfumato.policy import ColumnSettings, Policy
from sfumato.releases.level_regions import domains_of_levels, level_regions
from sfumato.releases.regions import Regions, TreeOfRegions
from sfumato.tables.coding.arrow_arrays import from_numpy, from_texts
from sfumato.tables.coding.domains import CategoricalDomain, Codes, Domain, NumericDomain, ReleasedValues, numbers_of
from sfumato.tables.coding.passthrough import PassthroughColumn
from sfumato.tables.coding.profile import profile_column
from sfumato.tables.coding.released_labels import WHOLE
from sfumato.tables.sources.input_table import open_input
from sfumato.tables.sources.source import Source
from sfumato.taxonomies.taxonomy import Taxonomy

MARK = {b"sfumato": b"unaudited"}  # schema metadata of a table that was recoded but not audited


@dataclass(frozen=True, eq=False)
class Recoding:
    """Regions over the domain of the quasi-identifiers, and the released values of their records.

    ``policy`` and ``method`` are those with which the recoding was learnt, ``taxonomies`` those of sensitive columns,
    ``names`` the columns that a release of the table would have. ``levels`` is the level of each quasi-identifier, if
    the recoding shows every column on one level; its regions then depend on the table. Get a recoding from
    ``sfumato.fit``.
    """

    regions: Regions
    policy: Policy
    method: str
    taxonomies: Mapping[str, Taxonomy] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        tree: TreeOfRegions,
        domains: Sequence[Domain],
        *,
        policy: Policy,
        method: str,
        taxonomies: Mapping[str, Taxonomy] | None = None,
        names: Sequence[str] = (),
    ) -> Recoding:
        """The recoding whose regions are the leaves of a tree over the codes of these domains."""
        sensitive = {name: each for name, each in (taxonomies or {}).items() if name not in policy.quasi_identifiers}
        regions = Regions.of(tree, domains)
        return cls(regions, policy, method, sensitive, tuple(names) or policy.quasi_identifiers)

    @classmethod
    def of_levels(
        cls,
        levels: Mapping[str, int],
        domains: Sequence[Domain],
        *,
        policy: Policy,
        method: str,
        taxonomies: Mapping[str, Taxonomy],
        names: Sequence[str],
    ) -> Recoding:
        """The recoding that shows every column on its level. domains: of the table that it was learnt from."""
        sensitive = {name: each for name, each in taxonomies.items() if name not in policy.quasi_identifiers}
        regions = Regions.whole(domains_of_levels(domains, levels))
        return cls(regions, policy, method, sensitive, tuple(names), dict(levels))

    @classmethod
    def load(cls, path: str | Path) -> Recoding:
        """Read a recoding that ``write`` wrote."""
        from sfumato.releases.rules import load_rules

        return load_rules(Path(path))

    @classmethod
    def from_json(cls, text: str) -> Recoding:
        """Read a recoding from the text that ``to_json`` returned."""
        from sfumato.releases.rules import read_rules

        return read_rules(text)

    def to_json(self) -> str:
        """The recoding as rules that a person can read."""
        from sfumato.releases.rules import rules_text

        return rules_text(self)

    def write(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the rules as JSON, readable by the owner only: they hold bounds and categories of the table.

        Rules that are there already are replaced, anything else only with ``force``.
        """
        from sfumato.releases.rules import check_rules_target, write_rules

        check_rules_target(None, Path(path), force=force)
        write_rules(self, Path(path))
        return Path(path)

    def to_sql(self, dialect: str, table: str | Sequence[str]) -> str:
        """A query that recodes a database table like ``transform``. ``dialect`` is duckdb or postgresql.

        ``table`` is a name, or a schema and a name. Its columns must have the types of the table that was learnt from.
        """
        from sfumato.releases.rules_sql import query_of

        return query_of(self, dialect, (table,) if isinstance(table, str) else tuple(table))

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domain of each quasi-identifier. The values of a numeric domain are the bounds of regions."""
        return self.regions.domains

    def __len__(self) -> int:
        """The number of regions."""
        return len(self.regions)

    def __repr__(self) -> str:
        names = ", ".join(domain.name for domain in self.domains)
        what = "levels" if self.levels else f"{len(self):,} regions"
        return f"<Recoding by {self.method}: {what} over {names}>"

    def regions_of(self, data: object) -> NDArray[np.int64]:
        """The region of each record: int64[n], -1 for a record with a value outside the domain.

        With ``levels`` the regions are those of this table.
        """
        return self._located(data)[1]

    def bounds(self, data: object) -> NDArray[np.float64]:
        """The region of each record as numbers to learn from: float64[n, 2d], the smallest and largest of each column.

        Dates are days and moments microseconds since 1970, categories their index among the leaves of the taxonomy,
        null is one more than the largest value. A record outside the domain gets the bounds of the whole domain.
        """
        recoding, regions = self._located(data)
        return recoding._bounds(regions)

    def bound_names(self) -> list[str]:
        """The names of the columns of ``bounds``."""
        return [f"{domain.name}_{end}" for domain in self.domains for end in ("min", "max")]

    def transform(self, data: object) -> pa.Table:
        """Replace the quasi-identifiers of each record by its region. Rows keep the order of the input.

        Other columns are kept or dropped as the policy says. A record outside the domain shows ``*`` in every
        quasi-identifier. The result is not audited, and the metadata of its schema say so: to release it, use
        ``apply``.
        """
        from sfumato.tables.sources.frames import to_frame

        source = self.open_source(data)
        table, _ = self.transformed(source)
        plain: pa.Table = to_frame(table, "pyarrow", None)
        return plain.replace_schema_metadata(MARK)

    def transformed(self, source: Source) -> tuple[pa.Table, NDArray[np.int64]]:
        """The recoded table, and the region of each record."""
        kept = self.policy.kept_columns(source.names)
        table = _read(source, kept)
        recoding, regions = self._regions(source, table)
        shown = zip(recoding.domains, recoding.shown(), strict=True)
        recoded = {domain.name: self._spread(domain, values, regions) for domain, values in shown}

        def column(name: str) -> list[tuple[str, pa.Array]]:
            return recoded.get(name) or [(name, PassthroughColumn.of(name, table.column(name)).take(None))]

        columns = [pair for pairs in in_threads(column, kept) for pair in pairs]
        return pa.Table.from_arrays([array for _, array in columns], names=[name for name, _ in columns]), regions

    def shown(self, regions: NDArray[np.int64] | None = None) -> list[ReleasedValues]:
        """The released values of all regions, or of ``regions``, one entry for each quasi-identifier."""
        nodes = self.regions.leaves if regions is None else self.regions.leaves[regions]
        low, high = self.regions.low[nodes], self.regions.high[nodes]
        return [domain.release(low[:, q], high[:, q]) for q, domain in enumerate(self.domains)]

    def labels(self, regions: NDArray[np.int64] | None = None) -> list[list[str | None]]:
        """The released labels of all regions, or of ``regions``: a row for each, with a label per quasi-identifier."""
        columns = [shown.labels.take(from_numpy(shown.index)).to_pylist() for shown in self.shown(regions)]
        return [list(row) for row in zip(*columns, strict=True)]

    def open_column(self, name: str) -> ColumnSettings:
        """The settings for reading a quasi-identifier of another table: the learnt type, and any value."""
        domain = next(domain for domain in self.domains if domain.name == name)
        learnt = self.policy.columns[name]
        if isinstance(domain, CategoricalDomain):
            return ColumnSettings(role="quasi-identifier", type="categorical", weight=learnt.weight, nulls=learnt.nulls)
        if learnt.implied_type == "date" and learnt.taxonomy is not None:
            return learnt  # a calendar turns moments into days
        assert isinstance(domain, NumericDomain)
        if not len(domain.values) and (not self.levels or domain.kind == "categorical"):
            # The column held only nulls, which have no type.
            return ColumnSettings(role="quasi-identifier", weight=learnt.weight, nulls=learnt.nulls, form=learnt.form)
        return ColumnSettings(
            role="quasi-identifier",
            type="numeric" if domain.kind == "numeric" else "date",
            weight=learnt.weight,
            nulls=learnt.nulls,
            form=learnt.form,
            bottom=learnt.bottom,
            top=learnt.top,
        )

    def all_taxonomies(self) -> dict[str, Taxonomy]:
        """The taxonomies from files, of quasi-identifiers and of sensitive columns."""
        from_files = {
            domain.name: domain.taxonomy
            for domain in self.domains
            if isinstance(domain, CategoricalDomain) and self.policy.columns[domain.name].taxonomy_file is not None
        }
        return {**from_files, **self.taxonomies}

    def open_source(self, data: object) -> Source:
        """Open another table. Refuses one that lacks a quasi-identifier."""
        source = open_input(data, self.policy)
        for domain in self.domains:
            if domain.name not in source.names:
                raise UsageError.unknown_column(domain.name, "the recoding", source.names)
        return source

    def for_table(self, codes: Codes, domains: Sequence[Domain]) -> Recoding:
        """The recoding with the regions that a table needs: with ``levels`` these are its own groups."""
        if not self.levels:
            return self
        return replace(self, regions=level_regions(self.domains, self.levels, codes, domains))

    def _located(self, data: object) -> tuple[Recoding, NDArray[np.int64]]:
        source = self.open_source(data)
        return self._regions(source, _read(source, [domain.name for domain in self.domains]))

    def _regions(self, source: Source, table: pa.Table) -> tuple[Recoding, NDArray[np.int64]]:
        """The recoding for a table, and the region of each record."""
        options = self.policy.input_options

        def encoded(domain: Domain) -> tuple[Codes, Domain]:
            column = table.column(domain.name)
            encoder = profile_column(source, domain.name, column, self.open_column(domain.name), options, None)
            return np.concatenate([encoder.encode(chunk) for chunk in column.chunks]), encoder.domain

        columns = in_threads(encoded, self.domains)
        domains, codes = [domain for _, domain in columns], np.column_stack([codes for codes, _ in columns])
        recoding = self.for_table(codes, domains)
        return recoding, recoding.regions.regions_of(codes, domains)

    def _spread(self, domain: Domain, shown: ReleasedValues, regions: NDArray[np.int64]) -> list[tuple[str, pa.Array]]:
        """The released columns of one quasi-identifier, by record."""
        outside = len(shown.labels)
        entry = from_numpy(np.append(shown.index, outside)[regions])  # region -1 takes the last entry
        columns = [(domain.name, pa.concat_arrays([shown.labels, from_texts([WHOLE])]).take(entry))]
        if domain.name in self.policy.numbered and domain.kind != "categorical":
            for end, bounds in (("min", shown.low), ("max", shown.high)):
                columns.append(
                    (f"{domain.name}_{end}", pa.concat_arrays([bounds, pa.nulls(1, bounds.type)]).take(entry))
                )
        return columns

    def _bounds(self, regions: NDArray[np.int64]) -> NDArray[np.float64]:
        low, high = self.regions.low, self.regions.high
        nodes = np.append(self.regions.leaves, 0)[regions]  # the root is the whole domain
        bounds = np.empty((len(regions), 2 * len(self.domains)))
        for q, domain in enumerate(self.domains):
            firsts = lasts = numbers_of(domain)
            if isinstance(domain, NumericDomain) and domain.finest and len(domain.values):
                lasts = numbers_of(replace(domain, values=domain.cell_ends(domain.values)))
            bounds[:, 2 * q], bounds[:, 2 * q + 1] = firsts[low[nodes, q]], lasts[high[nodes, q]]
        return bounds


def _read(source: Source, names: Sequence[str]) -> pa.Table:
    return pa.Table.from_batches(list(source.batches(names)))
