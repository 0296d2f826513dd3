"""``sfumato.taxonomy``: a taxonomy for a column, made from its values or checked against them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import UsageError
from sfumato.pictures.picture import Picture
from sfumato.pictures.trees import Branch, whole_tree
from sfumato.policy import PolicyLike, merge_flags
from sfumato.progress import Progress
from sfumato.studies.fitting_taxonomies import fitting_taxonomies
from sfumato.studies.taxonomy_wizards import DraftTaxonomy, TaxonomyWizard
from sfumato.tables.coding.counted_values import CountedValues, count_values
from sfumato.tables.sources.input_table import open_studied
from sfumato.tables.targets.replacement import check_replaceable
from sfumato.tables.targets.staging import Stage, check_target, write_staged
from sfumato.tables.targets.target import refuse_input_as_output
from sfumato.taxonomies.frequent_values import OTHERS
from sfumato.taxonomies.taxonomy import ROOT, Taxonomy
from sfumato.taxonomies.taxonomy_file import read_rows
from sfumato.taxonomies.taxonomy_rows import TaxonomyRows, taxonomy_text

MOST_DRAWN = 60  # nodes
SMALLEST = 3  # groups whose records are told


@dataclass(frozen=True)
class TaxonomyLevel:
    """A level of a taxonomy, 0 for the values: its groups, those with records, and the records of the smallest."""

    number: int
    groups: int
    used: int
    smallest: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        return {"level": self.number, "groups": self.groups, "used": self.used, "smallest": list(self.smallest)}


@dataclass(frozen=True, repr=False)
class ColumnTaxonomy:
    """A taxonomy for a column, and how the column's records are spread over it.

    What it writes holds values of the original or their counts, so the files are for their owner alone.
    """

    counted: CountedValues = field(repr=False)
    draft: DraftTaxonomy = field(repr=False)
    made: str
    """How the taxonomy was made, in words."""
    fits: Mapping[str, str] = field(default_factory=dict)
    """Flags that would make a taxonomy for this column, each with a reason."""
    data: object = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<ColumnTaxonomy: {self.column}, {self.made}, {self.distinct:,} values, {len(self.outside):,} outside>"

    @property
    def column(self) -> str:
        return self.counted.column

    @property
    def type(self) -> str:
        """What a release takes the column for: numeric, categorical or date."""
        return "date" if self.counted.kind == "moment" else self.counted.kind

    @property
    def distinct(self) -> int:
        return len(self.counted.values)

    @property
    def rule(self) -> str | dict[str, Any] | None:
        """What a policy says for this taxonomy without a file; None if it takes the file."""
        return self.draft.rule

    @property
    def outside(self) -> tuple[str, ...]:
        """The values that the taxonomy does not have."""
        return self.draft.outside

    @property
    def outside_records(self) -> int:
        """The number of records with a value that the taxonomy does not have."""
        records = self.counted.by_value
        return sum(records[value] for value in self.outside)

    @property
    def unused(self) -> int:
        """The number of leaves that no record has."""
        return len(set(self.draft.rows.leaves) - set(self.counted.values))

    def taxonomy(self) -> Taxonomy:
        """Return the tree."""
        return self.draft.rows.taxonomy(self.column)

    def levels(self) -> list[TaxonomyLevel]:
        """Return what is on each level below ``*``, from fine to coarse."""
        rows, by_value = self.draft.rows, self.counted.by_value
        records = [by_value.get(leaf, 0) for leaf in rows.leaves]
        found = []
        for number, names in enumerate((rows.leaves, *rows.levels)):
            sums = dict.fromkeys(names, 0)
            for name, count in zip(names, records, strict=True):
                sums[name] += count
            used = sorted(filter(None, sums.values()))
            found.append(TaxonomyLevel(number, len(sums), len(used), tuple(used[:SMALLEST])))
        return found

    def text(self) -> str:
        """Return the taxonomy file. Values that the taxonomy does not have are in it too, directly under ``*``."""
        return self._whole.text()

    def write(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the taxonomy file, which only its owner can read. Raises TaxonomyError if it would be no tree."""
        self._whole.taxonomy(self.column)
        return self._write(path, "taxonomy", self.text(), force=force)

    def write_counts(self, path: str | Path, *, force: bool = False) -> Path:
        """Write all values with their records, the most frequent first, for people to look at."""
        most_frequent_first = sorted(self.counted.by_value.items(), key=lambda pair: -pair[1])
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["value", "records"])
        writer.writerows(most_frequent_first)
        return self._write(path, "list of counts", stream.getvalue(), force=force)

    def write_missing(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the values that the taxonomy does not have, as rows to fill in and to add to its file."""
        roots = [ROOT] * (len(self.draft.rows.levels) + 1)
        text = taxonomy_text([value, *roots] for value in self.outside)
        return self._write(path, "list of missing values", text, force=force)

    def draw(self, *, theme: str = "light") -> Picture:
        """Draw the tree with the records under each node; of a large tree the upper levels."""
        taxonomy = self.taxonomy()
        records = self._node_records(taxonomy)
        shown = _upper_nodes(taxonomy, records)
        depth = _depths(taxonomy)
        branches = [Branch(taxonomy.labels[node], depth[node], records[node]) for node in shown]
        left_out = len(taxonomy.labels) - len(shown)
        subtitle = [f"{records[0]:,} records, {len(taxonomy.leaves):,} values"]
        if left_out:
            subtitle.append(f"{left_out:,} of {len(taxonomy.labels):,} groups and values are not drawn")
        return whole_tree(branches, title=self.column, subtitle=subtitle, theme=theme)

    def write_drawing(self, path: str | Path, *, theme: str = "light", force: bool = False) -> Path:
        """Write the drawing as .svg, .png or .pdf, for its owner alone: it shows values and counts of the table."""
        check_private_file(Path(path), "picture", self.data, force=force)
        return self.draw(theme=theme).write(path, force=force, private=True)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as JSON values. No value of a cell is among them."""
        return {
            "column": self.column,
            "type": self.type,
            "records": self.counted.total,
            "missing": self.counted.missing,
            "distinct": self.distinct,
            "made": self.made,
            "rule": self.rule,
            "levels": [level.as_dict() for level in self.levels()],
            "outside": len(self.outside),
            "outside_records": self.outside_records,
            "unused": self.unused,
            "remark": self.draft.remark,
            "fits": dict(self.fits),
        }

    @property
    def _whole(self) -> TaxonomyRows:
        return self.draft.rows.with_leaves(self.outside)

    def _node_records(self, taxonomy: Taxonomy) -> list[int]:
        counts = self.counted.by_value
        before = np.append(0, np.cumsum([counts.get(leaf, 0) for leaf in taxonomy.leaves])).astype(np.int64)
        return [int(count) for count in before[taxonomy.last + 1] - before[taxonomy.first]]

    def _write(self, path: str | Path, what: str, text: str, *, force: bool) -> Path:
        target = Path(path)
        check_private_file(target, what, self.data, force=force)
        with Stage() as stage:
            write_staged(stage, target, text, private=True)
            stage.publish()
        return target


def check_private_file(target: Path, what: str, data: object, *, force: bool) -> None:
    """Refuse a file that cannot be written, that is the table itself, or that exists and is not forced."""
    refuse_input_as_output(data, target)
    check_target(target)
    check_replaceable(target, what, force=force)


def taxonomy(
    data: object,
    column: str,
    policy: PolicyLike | None = None,
    *,
    intervals: Sequence[float] = (),
    calendar: Sequence[str] = (),
    prefix: Sequence[int] = (),
    groups: Sequence[int] = (),
    frequent: Sequence[int] = (),
    others: str = OTHERS,
    ready: str | None = None,
    check: str | Path | None = None,
    input: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> ColumnTaxonomy:
    """Make a taxonomy for a column of a table, or check a file against it.

    ``intervals`` are widths, ``calendar`` units such as month, ``prefix`` numbers of characters. ``groups`` are numbers
    of groups of about equally many records in the order of the values, alone or on top of these. ``frequent`` are
    numbers of most frequent values that stay apart, while the ``others`` have one name. ``ready`` is the name of a
    ready-made taxonomy: countries, months, weekdays or icd-10. ``check`` is a taxonomy file. With none of these, every
    value is directly under ``*``, and ``fits`` says what to try. ``policy`` and ``input`` say how the table is read.
    """
    progress = progress or Progress()
    wizard = TaxonomyWizard(
        intervals=intervals,
        calendar=calendar,
        prefix=prefix,
        groups=groups,
        frequent=frequent,
        others=others,
        ready=ready,
    )
    if check is not None and wizard.asked:
        raise UsageError(f"check and {wizard.asked[0]} do not go together. Check a file, or make a taxonomy.")
    merged = merge_flags(policy, input=input)
    checked = None if check is None else read_rows(check, column)
    source = open_studied(data, merged)
    if column not in source.names:
        raise UsageError.unknown_column(column, "the command", source.names)
    described = merged.columns.get(column)
    # A file makes the column categorical.
    settings = wizard.settings("categorical" if checked is not None else described and described.type)
    counted = count_values(source, column, settings, merged.input_options, progress)
    if checked is not None:
        known = set(checked.leaves)
        outside = tuple(value for value in counted.values if value not in known)
        return ColumnTaxonomy(counted, DraftTaxonomy(checked, None, outside), f"the file {check}", data=data)
    fits = {} if wizard.asked else fitting_taxonomies(source, counted, merged.input_options)
    return ColumnTaxonomy(counted, wizard.draft(counted), wizard.words, fits, data)


def _depths(taxonomy: Taxonomy) -> list[int]:
    depths = [0]
    for parent in taxonomy.parent.tolist()[1:]:
        depths.append(depths[parent] + 1)
    return depths


def _upper_nodes(taxonomy: Taxonomy, records: Sequence[int]) -> list[int]:
    """Return the nodes of as many levels as fit into a picture; if not even one fits, its largest nodes."""
    depths = _depths(taxonomy)
    per_depth = Counter(depths)
    drawn = deepest = 0
    while deepest in per_depth and drawn + per_depth[deepest] <= MOST_DRAWN:
        drawn += per_depth[deepest]
        deepest += 1
    shown = [node for node, depth in enumerate(depths) if depth < deepest]
    if deepest > 1:
        return shown
    largest = sorted((node for node, depth in enumerate(depths) if depth == 1), key=lambda node: -records[node])
    return sorted([*shown, *largest[: MOST_DRAWN - len(shown)]])
