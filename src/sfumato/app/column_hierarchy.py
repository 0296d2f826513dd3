"""The hierarchy of a column on the page: its values with their records, and the tree that the policy gives it.

Values and records are those of the last examination, so the table is not read again. A tree that was made on the page
lies in the project as a file that is named after its content: a policy of the history finds the tree that it had.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from sfumato.app.durable_files import write_durably
from sfumato.app.examined_values import values_path
from sfumato.app.project import Project
from sfumato.policy import ColumnSettings, InputOptions
from sfumato.policy.taxonomy_paths import FLAT
from sfumato.progress import Progress
from sfumato.studies.column_taxonomy import ColumnTaxonomy
from sfumato.studies.fitting_taxonomies import fitting_taxonomies
from sfumato.studies.taxonomy_wizards import DraftTaxonomy, TaxonomyWizard
from sfumato.tables.coding.counted_values import CountedValues, count_values
from sfumato.tables.sources.source import kind_of_file
from sfumato.taxonomies.group_tree import GroupTree, TreeNode
from sfumato.taxonomies.taxonomy_file import check_taxonomy, read_rows
from sfumato.taxonomies.taxonomy_rows import TaxonomyRows

TEXT_FILES = frozenset({".csv", ".tsv", ".txt", ".dat", ".fwf", ".asc"})
FOLDER = "taxonomies"
KEPT = 16  # columns whose values are remembered


@dataclass(frozen=True)
class ExaminedTexts:
    """A source of the distinct values of one column, as texts."""

    column: str
    values: pa.StringArray
    kind: str = "csv"
    text: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def types(self) -> dict[str, pa.DataType]:
        return {self.column: pa.string()}

    @property
    def rows(self) -> int:
        return len(self.values)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if len(self.values):
            yield pa.record_batch([self.values.dictionary_encode()] * len(columns), names=list(columns))


@dataclass(frozen=True)
class ExaminedColumn:
    """The values of a column and their records, the most frequent first."""

    name: str
    values: pa.StringArray = field(repr=False)
    records: NDArray[np.int64] = field(repr=False)
    missing: int
    options: InputOptions
    _counted: dict[ColumnSettings, CountedValues] = field(default_factory=dict, repr=False, compare=False)
    _drafts: dict[object, ColumnTaxonomy] = field(default_factory=dict, repr=False, compare=False)

    def drafted(self, wizard: TaxonomyWizard, column_type: str | None = None) -> ColumnTaxonomy:
        """The taxonomy that a wizard makes for the column."""
        key = (wizard.words, wizard.others, column_type)
        if key not in self._drafts:
            counted = self.counted(wizard.settings(column_type))
            self._drafts[key] = ColumnTaxonomy(counted, wizard.draft(counted), wizard.words)
        return self._drafts[key]

    def counted(self, settings: ColumnSettings) -> CountedValues:
        """The values in the order that suits them, as a release with these settings would read them."""
        found = self._counted.get(settings)
        if found is None:
            source = ExaminedTexts(self.name, self.values)
            found = count_values(source, self.name, settings, self.options, Progress())
            records = self.records_of
            counts = np.array([records[value] for value in found.values], np.int64)
            found = self._counted[settings] = replace(found, records=counts, missing=self.missing)
        return found

    @cached_property
    def records_of(self) -> dict[str, int]:
        return dict(zip(self.values.to_pylist(), self.records.tolist(), strict=True))

    @cached_property
    def fits(self) -> dict[str, str]:
        """The flags of ``sfumato taxonomy`` that would make a taxonomy, each with a reason."""
        counted = self.counted(ColumnSettings(role="quasi-identifier"))
        return fitting_taxonomies(ExaminedTexts(self.name, self.values), counted, self.options)


@dataclass(frozen=True)
class TextReading:
    """How the texts of values are read as numbers and dates."""

    decimal: str = "."
    thousands: str | None = None
    date_format: str | None = None

    def options(self) -> InputOptions:
        """The same for readers of tables. No text means a missing value: these are left out already."""
        return InputOptions(decimal=self.decimal, thousands=self.thousands, date_format=self.date_format, nulls=())


def examined_column(project: Project, run: str, figure: dict[str, Any]) -> ExaminedColumn:
    """The column of an examination. figure: what the examination told of it."""
    path = values_path(project.directory / "runs" / run, figure["index"])
    reading = TextReading()
    if kind_of_file(project.table)[0] in TEXT_FILES:  # values of typed files are already as Python writes them
        settings = project.policy.input
        reading = TextReading(settings.decimal, settings.thousands, settings.date_format)
    return _examined(path, figure["name"], figure["missing"], reading)


@lru_cache(KEPT)
def _examined(path: Path, name: str, missing: int, reading: TextReading) -> ExaminedColumn:
    table = pyarrow.parquet.read_table(path)
    values = table["value"].combine_chunks()
    return ExaminedColumn(name, values, table["records"].to_numpy(), missing, reading.options())


@dataclass(frozen=True)
class ColumnHierarchy:
    """The hierarchy of a column as its settings have it."""

    column: ExaminedColumn
    settings: ColumnSettings
    taxonomy: ColumnTaxonomy

    @property
    def is_named(self) -> bool:
        """Whether the policy names a taxonomy with levels."""
        return self.settings.taxonomy not in (None, FLAT)

    @property
    def is_categorical(self) -> bool:
        """Whether groups can be edited: numbers and dates with intervals, periods or none keep their order."""
        return self.settings.implied_type == "categorical" or (
            self.settings.taxonomy is None and self.taxonomy.type == "categorical"
        )

    @property
    def rows(self) -> TaxonomyRows:
        return self.taxonomy.draft.rows

    @property
    def top_level(self) -> int:
        return len(self.rows.levels) + 1

    @property
    def levels(self) -> tuple[int, int]:
        """The numbers of the finest and the coarsest level that may be shown."""
        return self.settings.levels(self.column.name, self.top_level) if self.is_named else (0, self.top_level)

    @cached_property
    def outside(self) -> list[tuple[str, int]]:
        """The values that the tree does not have, with their records, the most frequent first."""
        records, nulls = self.column.records_of, set(self.settings.nulls or ())
        found = [(value, records[value]) for value in self.taxonomy.outside if value not in nulls]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def tree(self) -> GroupTree:
        """The tree, to be changed."""
        return GroupTree(self.rows)

    @property
    def drawn_tree(self) -> GroupTree:
        """The tree, to be looked at only."""
        return _drawn_tree(self.rows)

    def records_under(self, nodes: Sequence[TreeNode]) -> tuple[list[int], list[int]]:
        """The records and the values of the table under each of all nodes of a tree, in their order."""
        records = self.column.records_of
        sums, values = [0] * len(nodes), [0] * len(nodes)
        number = {id(node): position for position, node in enumerate(nodes)}
        for position in range(len(nodes) - 1, -1, -1):
            node = nodes[position]
            if not node.is_group:
                sums[position] = records.get(node.name, 0)
                values[position] = int(node.name in records)
            if node.parent is not None:
                above = number[id(node.parent)]
                sums[above] += sums[position]
                values[above] += values[position]
        return sums, values


def hierarchy_of(project: Project, column: ExaminedColumn, settings: ColumnSettings) -> ColumnHierarchy:
    """The hierarchy that the policy of a project gives a column. Raises TaxonomyError if its file is no tree."""
    if settings.taxonomy_file is not None:
        path = project.policy.taxonomy_path(column.name)
        rows = _file_rows(path, column.name)
        counted = column.counted(ColumnSettings(role="quasi-identifier", type="categorical"))
        known = set(rows.leaves)
        outside = tuple(value for value in counted.values if value not in known)
        draft = DraftTaxonomy(rows, None, outside)
        return ColumnHierarchy(column, settings, ColumnTaxonomy(counted, draft, settings.taxonomy_file))
    wizard = wizard_of(settings)
    return ColumnHierarchy(column, settings, column.drafted(wizard, settings.type))


_files: dict[Path, tuple[int, TaxonomyRows]] = {}  # the last files that were read or written, with their times


def _file_rows(path: Path, column: str) -> TaxonomyRows:
    time = path.stat().st_mtime_ns if path.exists() else -1
    known = _files.get(path)
    return known[1] if known is not None and known[0] == time else _remembered(path, read_rows(path, column))


def _remembered(path: Path, rows: TaxonomyRows) -> TaxonomyRows:
    while len(_files) >= KEPT:
        _files.pop(next(iter(_files)), None)
    _files[path] = path.stat().st_mtime_ns, rows
    return rows


@lru_cache(4)
def _drawn_tree(rows: TaxonomyRows) -> GroupTree:
    return GroupTree(rows)


def wizard_of(settings: ColumnSettings) -> TaxonomyWizard:
    """The wizard that makes the rule of a column; the skeleton if there is none."""
    rule = settings.taxonomy
    if rule is None or isinstance(rule, str):
        return TaxonomyWizard()
    given = {key: value for key, value in rule.model_dump().items() if value is not None}
    return TaxonomyWizard(**given)


def write_rows(project: Project, column: str, rows: TaxonomyRows) -> str:
    """Write a tree into the project, and return the path as the policy names it. Refuses what is no tree."""
    text = rows.text()
    plain = unicodedata.normalize("NFKD", column).encode("ascii", "ignore").decode()
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-_")[:40] or "column"
    name = f"{FOLDER}/{stem}-{hashlib.sha256(text.encode()).hexdigest()[:10]}.csv"
    path = project.directory / name
    check_taxonomy(text, path.name, column)
    if not path.exists():
        write_durably(path, text.encode())
        _remembered(path, rows)
    return name
