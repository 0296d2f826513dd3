"""The hierarchy of a column on the page: its values with their records, and the tree that the policy gives it.

Values and records are those of the last examination, so the table is not read again. A tree that was made on the page
lies in the project as a file that is named after its content: a policy of the history finds the tree that it had.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from sfumato.app.date_cells import without_midnight
from sfumato.app.durable_files import write_durably
from sfumato.app.examined_values import values_path
from sfumato.app.project import Project
from sfumato.errors import SfumatoError
from sfumato.policy import ColumnSettings, InputOptions, InputSettings
from sfumato.policy.taxonomy_paths import FLAT
from sfumato.studies.column_taxonomy import ColumnTaxonomy, TaxonomyLevel
from sfumato.studies.fitting_taxonomies import fitting_taxonomies
from sfumato.studies.taxonomy_wizards import DraftTaxonomy, TaxonomyWizard
from sfumato.tables.coding.arrow_arrays import to_numpy
from sfumato.tables.coding.counted_values import CountedValues, with_known_records
from sfumato.tables.sources.source import kind_of_file
from sfumato.taxonomies.group_tree import GroupTree, TreeNode
from sfumato.taxonomies.taxonomy_file import check_taxonomy, read_rows
from sfumato.taxonomies.taxonomy_rows import TaxonomyRows

TEXT_FILES = frozenset({".csv", ".tsv", ".txt", ".dat", ".fwf", ".asc"})
FOLDER = "taxonomies"
NO_VALUES = pa.StringArray.from_buffers(0, pa.py_buffer(b"\0\0\0\0"), pa.py_buffer(b""))
KEPT = 40  # columns whose values are remembered; the list of columns asks for up to 30
KEPT_HIERARCHIES = 3  # of each of them: those of the settings now and, after undo, before


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
    """The values of a column and their records, the most frequent first. What is found out about them is remembered."""

    name: str
    values: pa.StringArray = field(repr=False)
    records: NDArray[np.int64] = field(repr=False)
    missing: int
    options: InputOptions
    _counted: dict[ColumnSettings, CountedValues] = field(default_factory=dict, repr=False, compare=False)
    _hierarchies: dict[object, ColumnHierarchy] = field(default_factory=dict, repr=False, compare=False)

    def hierarchy(self, settings: ColumnSettings, rows: TaxonomyRows | None) -> ColumnHierarchy:
        """The hierarchy that settings give the column. rows: those of the taxonomy file, if the settings name one."""
        key = (settings, rows)
        if key not in self._hierarchies:
            taxonomy = self._skeleton(settings) if settings.taxonomy is None else self._taxonomy(settings, rows)
            _make_room(self._hierarchies, KEPT_HIERARCHIES)
            self._hierarchies[key] = ColumnHierarchy(self, settings, taxonomy)
        return self._hierarchies[key]

    def _taxonomy(self, settings: ColumnSettings, rows: TaxonomyRows | None) -> ColumnTaxonomy:
        if rows is None:
            return self.drafted(wizard_of(settings), settings.type)
        counted = self.counted(ColumnSettings(role="quasi-identifier", type="categorical"))
        known = set(rows.leaves)
        outside = tuple(value for value in counted.values if value not in known)
        return ColumnTaxonomy(counted, DraftTaxonomy(rows, None, outside), str(settings.taxonomy_file))

    def _skeleton(self, settings: ColumnSettings) -> ColumnTaxonomy:
        """Every value directly under ``*``."""
        wizard = TaxonomyWizard()
        try:
            counted = self.counted(settings)
        except SfumatoError:  # limits that do not fit the values, which the screen says where they are set
            counted = self.counted(wizard.settings(settings.type))
        return ColumnTaxonomy(counted, wizard.draft(counted), wizard.words)

    def drafted(self, wizard: TaxonomyWizard, column_type: str | None = None) -> ColumnTaxonomy:
        """The taxonomy that a wizard makes for the column."""
        counted = self.counted(wizard.settings(column_type))
        return ColumnTaxonomy(counted, wizard.draft(counted), wizard.words)

    def counted(self, settings: ColumnSettings) -> CountedValues:
        """The values in the order that suits them, as a release with these settings would read them."""
        if settings not in self._counted:
            counted = with_known_records(self.name, self.values, self.records, self.missing, settings, self.options)
            _make_room(self._counted, KEPT_HIERARCHIES)
            self._counted[settings] = counted
        return self._counted[settings]

    @cached_property
    def records_of(self) -> dict[str, int]:
        return dict(zip(self.values.to_pylist(), self.records.tolist(), strict=True))

    def fits(self) -> dict[str, str]:
        """The flags of ``sfumato taxonomy`` that would make a taxonomy, each with a reason."""
        counted = self.counted(ColumnSettings(role="quasi-identifier"))
        return fitting_taxonomies(ExaminedTexts(self.name, self.values), counted, self.options)


def _make_room(kept: dict[Any, Any], most: int) -> None:
    """Forget what was remembered first, so that there is room for one more."""
    while len(kept) >= most:
        kept.pop(next(iter(kept)), None)


@dataclass(frozen=True)
class TextReading:
    """How the texts of values are read as numbers and dates."""

    decimal: str = "."
    thousands: str | None = None
    date_format: str | None = None

    def options(self) -> InputOptions:
        """The same for readers of tables. No text means a missing value: these are left out already."""
        return InputOptions(decimal=self.decimal, thousands=self.thousands, date_format=self.date_format, nulls=())


def reading_of(table: Path, settings: InputSettings) -> TextReading:
    """How the values of a table are read. Those of typed files are already as Python writes them."""
    if kind_of_file(table)[0] not in TEXT_FILES:
        return TextReading()
    return TextReading(settings.decimal, settings.thousands, settings.date_format)


def examined_column(project: Project, run: str, figure: dict[str, Any]) -> ExaminedColumn:
    """The column of an examination, without values once these are removed. figure: what the examination told of it."""
    path = values_path(project.directory / "runs" / run, figure["index"])
    if not path.exists():
        return ExaminedColumn(figure["name"], NO_VALUES, np.zeros(0, np.int64), 0, TextReading().options())
    return _examined(path, figure["name"], figure["missing"], reading_of(project.table, project.policy.input))


@lru_cache(KEPT)
def _examined(path: Path, name: str, missing: int, reading: TextReading) -> ExaminedColumn:
    return column_of_values(pyarrow.parquet.ParquetFile(path).read(), name, missing, reading)


def column_of_values(values: pa.Table, name: str, missing: int, reading: TextReading) -> ExaminedColumn:
    """The column whose values an examination has counted."""
    texts = values["value"].combine_chunks()
    return ExaminedColumn(name, texts, to_numpy(values["records"].combine_chunks()), missing, reading.options())


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

    def shown(self, value: str) -> str:
        """A value or group as people read it."""
        return without_midnight(value) if self.taxonomy.type == "date" else value

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

    @cached_property
    def level_facts(self) -> list[TaxonomyLevel]:
        """What is on each level below ``*``, from fine to coarse."""
        return self.taxonomy.levels()

    def tree(self) -> GroupTree:
        """The tree, to be changed."""
        return GroupTree(self.rows)

    @cached_property
    def counted_tree(self) -> CountedTree:
        """The tree with its records, to be looked at only."""
        return CountedTree.of(self.rows, self.column.records_of)


@dataclass(frozen=True)
class CountedTree:
    """The nodes of a tree in their order, with the records and values of the table under each."""

    nodes: list[TreeNode]
    records: list[int]
    values: list[int]
    numbers: dict[int, int]
    """The position of each node."""

    @classmethod
    def of(cls, rows: TaxonomyRows, records_of: Mapping[str, int]) -> CountedTree:
        nodes = GroupTree(rows).nodes
        numbers = {id(node): number for number, node in enumerate(nodes)}
        records, values = [0] * len(nodes), [0] * len(nodes)
        for position in range(len(nodes) - 1, -1, -1):
            node = nodes[position]
            if not node.is_group:
                found = records_of.get(node.name)
                if found is not None:
                    records[position], values[position] = found, 1
            if node.parent is not None:
                above = numbers[id(node.parent)]
                records[above] += records[position]
                values[above] += values[position]
        return cls(nodes, records, values, numbers)


def hierarchy_of(project: Project, column: ExaminedColumn, settings: ColumnSettings) -> ColumnHierarchy:
    """The hierarchy that the policy of a project gives a column. Raises TaxonomyError if its file is no tree."""
    rows = None
    if settings.taxonomy_file is not None:
        rows = _file_rows(project.policy.taxonomy_path(column.name), column.name)
    return column.hierarchy(settings, rows)


_files: dict[Path, tuple[int, TaxonomyRows]] = {}  # the last files that were read or written, with their times


def _file_rows(path: Path, column: str) -> TaxonomyRows:
    time = path.stat().st_mtime_ns if path.exists() else -1
    known = _files.get(path)
    return known[1] if known is not None and known[0] == time else _remembered(path, read_rows(path, column))


def _remembered(path: Path, rows: TaxonomyRows) -> TaxonomyRows:
    _make_room(_files, KEPT)
    _files[path] = path.stat().st_mtime_ns, rows
    return rows


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
