"""What is looked at in a trial: how much of each column is ``*``, rows of it, the smallest classes, and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from sfumato.errors import SfumatoError
from sfumato.evaluation.audit.audit import class_key
from sfumato.methods import method_named
from sfumato.pictures.classes import plot_classes
from sfumato.pipeline.prepare import load_taxonomies
from sfumato.pipeline.release import Release
from sfumato.policy import Policy
from sfumato.report.release_facts import facts_of
from sfumato.studies.finished_release import FinishedRelease
from sfumato.tables.coding.value_order import text_of
from sfumato.tables.sources.source import Source
from sfumato.taxonomies import Taxonomy
from sfumato.texts import LANGUAGES, texts_in

SAMPLED_ROWS = 12
SMALLEST = 6  # classes
STAR = "*"


def trial_facts(release: Release, target: Path, directory: Path, axes: Sequence[str]) -> dict[str, Any]:
    """Return the facts as JSON values. The pictures of the classes are written beside the trial.

    axes: quasi-identifiers to draw the classes on; of fewer than two, those with the most different released values.
    """
    policy = release.policy
    finished = FinishedRelease.of(target, policy, {})
    source, second = finished.source(), finished.sensitive_source()
    taxonomies = load_taxonomies(policy)
    facts = facts_of(source, second, policy, taxonomies)
    rows = pyarrow.parquet.read_table(target)
    kept = [column.name for column in facts.columns if column.role == "other"]
    kept += [column for column in facts.further if column not in policy.quasi_identifiers]
    ends = facts.exact_ends(policy)
    return {
        "stars": {
            name: _star_share(rows.column(name)) for name in policy.quasi_identifiers if name in rows.column_names
        },
        "sample": _sample(rows),
        "smallest_classes": _smallest_classes(rows, class_key(policy, source.names)),
        "kept": kept,
        "exact_ends": {"columns": ends.columns, "share": ends.share},
        "separated": method_named(policy.method.name).separates,
        "persons_counted": policy.privacy.person is not None,
        "plot": _plotted(source, policy, taxonomies, directory, axes),
    }


def _star_share(column: pa.ChunkedArray) -> float:
    stars = pc.sum(pc.equal(column.cast(pa.string()), STAR)).as_py() or 0
    return stars / max(len(column), 1)


def _sample(rows: pa.Table) -> dict[str, Any]:
    """Rows from all over the release, at even steps."""
    step = max(1, rows.num_rows // SAMPLED_ROWS)
    taken = rows.take(pa.array(range(0, rows.num_rows, step))).slice(0, SAMPLED_ROWS)
    return {"columns": rows.column_names, "rows": _texts(taken)}


def _smallest_classes(rows: pa.Table, key: list[str] | tuple[str, ...]) -> dict[str, Any]:
    names = [name for name in key if name in rows.column_names]
    plain = rows.select(names)
    numbered = [f"key-{index}" for index in range(len(names))]  # a name of the table must not meet that of a count
    counted = plain.rename_columns(numbered).group_by(numbered).aggregate([([], "count_all")])
    smallest = counted.sort_by([("count_all", "ascending")]).slice(0, SMALLEST)
    sizes = smallest.column("count_all").to_pylist()
    return {"columns": names, "rows": _texts(smallest.select(numbered)), "sizes": sizes}


def _texts(rows: pa.Table) -> list[list[str | None]]:
    columns = [[None if value is None else text_of(value) for value in column.to_pylist()] for column in rows.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _plotted(
    source: Source, policy: Policy, taxonomies: Mapping[str, Taxonomy], directory: Path, axes: Sequence[str]
) -> bool:
    """Draw the classes on two quasi-identifiers in every language, where that can be drawn. Returns whether it can."""
    x, y = axes[:2] if len(axes) > 1 else (None, None)
    for code in LANGUAGES:
        try:
            picture = plot_classes(source, policy, taxonomies, x, y, say=texts_in(code))
        except SfumatoError:
            return False
        (directory / f"classes-{code}.svg").write_text(picture.svg, "utf-8")
    return True
