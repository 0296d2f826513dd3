"""Read taxonomies from CSV files: one row per leaf, first the leaf, then more and more general groups, last ``*``.

Fields are separated by commas or semicolons, there is no header, and all rows have the same length. Files of ARX load
unchanged:

- a name may be repeated along a row where a branch has fewer levels (``Other,Other,*`` or ``Other,*,*``);
- a group with the name of one of several leaves under it is released as ``NAME (group)``;
- the root may be missing or have another name: ``*`` is put above everything.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from sfumato.errors import TaxonomyError
from sfumato.files.regular_file import read_file
from sfumato.taxonomies.ready import NAMES
from sfumato.taxonomies.taxonomy import ROOT, Taxonomy, grow
from sfumato.taxonomies.taxonomy_rows import TaxonomyRows

SEPARATORS = (",", ";")


def read_taxonomy(path: str | Path, column: str) -> Taxonomy:
    """Read the taxonomy in a CSV file; errors name ``column``."""
    file = _TaxonomyFile(Path(path), column)
    return _tree(file, _checked_rows(file))


def check_taxonomy(text: str, path: str | Path, column: str) -> None:
    """Raise TaxonomyError if a text would be no taxonomy once it is in this file."""
    file = _TaxonomyFile(Path(path), column)
    _tree(file, _checked_rows(file, text))


def read_rows(path: str | Path, column: str) -> TaxonomyRows:
    """Read the taxonomy in a CSV file with all levels of its rows, also those that make no node of the tree."""
    file = _TaxonomyFile(Path(path), column)
    rows = _checked_rows(file)
    _tree(file, rows)  # refuses what is no tree
    return TaxonomyRows.of([_last_name(row.names[: level + 1]) for level in range(len(row.names) - 1)] for row in rows)


def _checked_rows(file: _TaxonomyFile, text: str | None = None) -> list[_Row]:
    rows = _split(file, _text(file) if text is None else text)
    if not rows:
        raise file.error("it is empty. Write one row for each value of the column: the value, its groups, '*'.")
    _check_names(file, rows)
    rows = _with_root(file, rows)
    _check_leaves(file, rows)
    _check_parents(file, rows)
    _check_levels(file, rows)
    return rows


@dataclass(frozen=True)
class _TaxonomyFile:
    path: Path
    column: str

    def error(self, problem: str, *lines: int) -> TaxonomyError:
        """Return an error that names column, file and lines before the problem, which says what to do."""
        where = f"column {self.column!r}, taxonomy {str(self.path)!r}"
        if lines:
            *others, last = map(str, sorted(set(lines)))
            where += f", lines {', '.join(others)} and {last}" if others else f", line {last}"
        return TaxonomyError(f"{where}: {problem}")


@dataclass(frozen=True)
class _Row:
    line: int
    names: tuple[str, ...]
    """The leaf, then more and more general groups."""


def _text(file: _TaxonomyFile) -> str:
    try:
        content = read_file(file.path)
    except FileNotFoundError:
        ready = f' For the ready-made one, write taxonomy = {{ ready = "{file.path.name}" }} into the policy.'
        raise file.error(
            "there is no such file. Paths in a policy are relative to its directory."
            + (ready if file.path.name in NAMES else "")
        ) from None
    except IsADirectoryError:
        raise file.error("it is a directory. Name the CSV file in it.") from None
    except OSError as failure:
        raise file.error(f"it cannot be read ({failure.strerror}). Check the path and its permissions.") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        line = content.count(b"\n", 0, failure.start) + 1
        raise file.error("it is not UTF-8 text. Save the file in that encoding.", line) from None


def _split(file: _TaxonomyFile, text: str) -> list[_Row]:
    """Split the rows at the separator with which they look most like a taxonomy."""
    candidates = [_read(text, separator) for separator in SEPARATORS]
    rows, broken_line = max(candidates, key=_plausibility)
    if broken_line is not None:
        raise file.error('a quotation mark is not closed or not doubled. Write "a ""quoted"" name".', broken_line)
    return rows


def _read(text: str, separator: str) -> tuple[list[_Row], int | None]:
    """Return the rows that are not blank, and the line of a row with wrong quotation marks, if there is one."""
    rows: list[_Row] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = 1
    try:
        for names in reader:
            if len(names) > 1 or "".join(names).strip():
                rows.append(_Row(line, tuple(names)))
            line = reader.line_num + 1
    except csv.Error:
        return rows, line
    return rows, None


def _plausibility(candidate: tuple[list[_Row], int | None]) -> tuple[bool, bool, int]:
    """Return a sort key: whether all rows end in the root, whether their lengths are equal, and the longest length."""
    rows, broken_line = candidate
    lengths = {len(row.names) for row in rows}
    if broken_line is not None:
        lengths |= {1, 2}  # a field that was quoted for this separator suggests more than one field
    rooted = bool(rows) and all(row.names[-1].strip() == ROOT for row in rows)
    return rooted, len(lengths) == 1 and lengths != {1}, max(lengths, default=0)


def _check_names(file: _TaxonomyFile, rows: Sequence[_Row]) -> None:
    (length, _), *others = Counter(len(row.names) for row in rows).most_common()
    for row in rows:
        for field, name in enumerate(row.names, start=1):
            if not name.strip():
                raise file.error(f"field {field} is empty. Name every node; repeat a name to skip a level.", row.line)
            if name != ROOT and name.strip() == ROOT:
                raise file.error(f"field {field} is '*' with spaces around it. Remove the spaces.", row.line)
        if others and len(row.names) != length:
            raise file.error(
                f"this row has {len(row.names)} fields, but most rows have {length}. All rows must have the same "
                "length; repeat a name to skip a level, and quote names that hold the separator.",
                row.line,
            )


def _with_root(file: _TaxonomyFile, rows: list[_Row]) -> list[_Row]:
    """Return the rows so that each ends in one or more ``*`` and has none before."""
    without = [row for row in rows if row.names[-1] != ROOT]
    if len(without) == len(rows):
        rows = [_Row(row.line, (*row.names, ROOT)) for row in rows]
    elif without:
        raise file.error("this row does not end in '*', but others do. End all rows or none with '*'.", without[0].line)
    for row in rows:
        if row.names[0] == ROOT:
            raise file.error("'*' stands for the whole domain and cannot be a leaf. Rename the leaf.", row.line)
        if any(name != ROOT for name in row.names[row.names.index(ROOT) :]):
            raise file.error("'*' appears before the end of the row. Only the end of a row may be '*'.", row.line)
    return rows


def _check_leaves(file: _TaxonomyFile, rows: Sequence[_Row]) -> None:
    seen: dict[str, _Row] = {}
    for row in rows:
        earlier = seen.setdefault(row.names[0], row)
        if earlier is row:
            continue
        advice = "Delete one of the rows." if earlier.names == row.names else "Keep the row with the right groups."
        raise file.error(f"the leaf {row.names[0]!r} has two rows. {advice}", earlier.line, row.line)


def _check_parents(file: _TaxonomyFile, rows: Sequence[_Row]) -> None:
    seen: dict[tuple[int, str], _Row] = {}
    for row in rows:
        for level in range(1, len(row.names) - 1):
            name = row.names[level]
            earlier = seen.setdefault((level, name), row)
            if name != ROOT and earlier.names[level + 1] != row.names[level + 1]:
                raise file.error(
                    f"the group {name!r} has two parents, {earlier.names[level + 1]!r} and {row.names[level + 1]!r}. "
                    "Give it one parent, or give two different groups different names.",
                    earlier.line,
                    row.line,
                )


def _check_levels(file: _TaxonomyFile, rows: Sequence[_Row]) -> None:
    """Refuse a name on two levels unless it is repeated along a row, so that one of its nodes is above the other."""
    seen: dict[str, dict[int, _Row]] = {}
    for row in rows:
        for level, name in enumerate(row.names):
            if name != ROOT:
                seen.setdefault(name, {}).setdefault(level, row)
    for name, row_of_level in seen.items():
        levels = sorted(row_of_level)
        for lower, upper in pairwise(levels):
            # A node has one parent, so any row with the lower node shows the nodes above it.
            if row_of_level[lower].names[upper] != name:
                raise file.error(
                    f"the name {name!r} is on two levels, field {lower + 1} and field {upper + 1}. "
                    "Give different nodes different names.",
                    row_of_level[lower].line,
                    row_of_level[upper].line,
                )


def _tree(file: _TaxonomyFile, rows: Sequence[_Row]) -> Taxonomy:
    line_of_leaf = {row.names[0]: row.line for row in rows}
    # A branch that skips a level has `*` there. The name below replaces it: it has the same leaves, so it is no node.
    groups = [[_last_name(row.names[: level + 1]) for row in rows] for level in range(len(rows[0].names) - 2, 0, -1)]
    # A group with the name of a leaf is above that leaf, since a name on two levels is repeated along a row. If it
    # holds nothing else, it is the same as the leaf.
    labels = []
    for group in groups:
        leaves = Counter(group)
        labels.append([f"{name} (group)" if name in line_of_leaf and leaves[name] > 1 else name for name in group])
    taxonomy, repeated = grow([row.names[0] for row in rows], groups, labels)
    if repeated:
        nodes = [node for node, label in enumerate(taxonomy.labels) if label == repeated[0]]
        ends = {int(bound[node]) for node in nodes for bound in (taxonomy.first, taxonomy.last)}
        raise file.error(
            f"the name {repeated[0]!r} would stand for two different sets of leaves in a release. "
            "Rename one of the groups.",
            *(line_of_leaf[taxonomy.leaves[code]] for code in ends),
        )
    return taxonomy


def _last_name(names: Sequence[str]) -> str:
    return next(name for name in reversed(names) if name != ROOT)
