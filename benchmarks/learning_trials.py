"""Tables to learn from, and trials on them: regions and models learn from one part and are tested on the other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.tables import Options, data_file
from sfumato import Policy
from sfumato.evaluation.learning.learning_study import Study
from sfumato.evaluation.learning.significance import difference, estimate
from sfumato.pipeline.prepare import read_table
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.studies.cross_validation import CrossValidation
from sfumato.synthetic import Agrawal
from sfumato.synthetic.agrawal import RULES

TRAINING = TEST = 1_000
K = 25
TRIALS = 12
ORIGINAL = "original"
INFORMATION_GAIN, REGRESSION, SELECTION = "mondrian:information-gain", "mondrian:regression", "mondrian:selection"
MEDIAN, TDS = "mondrian", "tds"
# The target of each real table, and quasi-identifiers beyond those of its schema.
REAL: dict[str, tuple[str, tuple[str, ...]]] = {
    "adult": ("salary-class", ("occupation",)),
    "cmc": ("contraceptive-method", ()),
}
REAL_NUMBERS: dict[str, tuple[str, tuple[str, ...]]] = {"adult-raw": ("hours-per-week", ("occupation",))}
Scores = dict[tuple[str, str], float]
"""Scores by method (or ``original``) and model."""


@dataclass(frozen=True)
class RealTable:
    """A file and the policy to learn a column of it with."""

    name: str
    path: Path
    policy: Policy


def real_tables(options: Options, wanted: Mapping[str, tuple[str, tuple[str, ...]]]) -> list[RealTable]:
    return [_real_table(options.directory(name), *wanted[name]) for name in wanted]


def _real_table(directory: Path, target: str, further: Sequence[str]) -> RealTable:
    attributes = json.loads((directory / "schema.json").read_text("utf-8"))["attributes"]
    quasi_identifiers = [
        column
        for column in attributes
        if (column["role"] == "quasi-identifier" or column["name"] in further) and column["name"] != target
    ]
    policy = merge_flags(
        quasi_identifiers=[column["name"] for column in quasi_identifiers],
        other="drop",
        type={column["name"]: "numeric" for column in quasi_identifiers if column["type"] == "numeric"},
        taxonomy={
            column["name"]: (directory / column["taxonomy"]).resolve()
            for column in quasi_identifiers
            if column["type"] != "numeric"
        },
        target=target,
    )
    path = data_file(directory)
    assert path is not None
    return RealTable(directory.name, path, policy)


def agrawal(functions: Sequence[str], records: int, seed: int, work: Path) -> tuple[pa.Table, Policy]:
    """Generate one table with a target column for each function; the constants of C2 to C6 are random."""
    generators = [Agrawal(function=name, random_constants=name in RULES) for name in functions]  # type: ignore[arg-type]
    tables = [pa.Table.from_batches(list(generator.batches(records, seed))) for generator in generators]
    labels = {"class", "target"}
    columns = {name: tables[0].column(name) for name in tables[0].column_names if name not in labels}
    for function, table in zip(functions, tables, strict=True):
        columns[function] = table.column(next(name for name in table.column_names if name in labels))
    taxonomies = {}
    for name, rows in generators[0].taxonomies().items():
        taxonomies[name] = work / f"agrawal-{name}.csv"
        if not taxonomies[name].exists():
            taxonomies[name].write_text("".join(",".join(row) + "\n" for row in rows), "utf-8")
    quasi = [name for name in columns if name not in functions]
    policy = merge_flags(
        quasi_identifiers=quasi,
        other=list(functions),
        taxonomy=taxonomies,
        type={name: "numeric" for name in quasi if name not in taxonomies},
        accept_linkable=list(functions),
        k=K,
    )
    return pa.table(columns), policy


def two_halves(table: object, policy: Policy, models: str, *, training: int = TRAINING) -> CrossValidation:
    """Return a cross-validation whose fold 1 has the records after the first ``training`` ones of the table."""
    study = Study(policy=policy, models=models, folds=2)
    lesson = CrossValidation.of(read_table(table, study.for_reading, Progress()), study)
    # Coded records are sorted, so halves of them would differ in age: halves are those of the table.
    return replace(lesson, fold=(lesson.table.encoded.input_rows >= training).astype(np.int64))


def trial(lesson: CrossValidation, policies: Mapping[str, Policy]) -> Scores:
    """Return the score of every model on fold 1, with the original and with each named policy."""
    scores: Scores = {(ORIGINAL, str(what[1])): score for what, score in lesson.scores(lesson.original, 1).items()}
    for name, policy in policies.items():
        features, _ = recoded_features(lesson, policy)
        scores |= {(name, str(what[1])): score for what, score in lesson.scores(features, 1).items()}
    return scores


def recoded_features(lesson: CrossValidation, policy: Policy, fold: int = 1) -> tuple[Any, NDArray[np.int64]]:
    """Recode the table by regions learnt from the other folds; return features and the region of each record."""
    prepared = lesson.under(policy)
    recoding = prepared.recoding(prepared.fold != fold)
    region = recoding.regions.regions_of(prepared.table.encoded.codes, prepared.table.encoded.domains)
    return prepared.features(recoding, region), region


def methods(policy: Policy, *names: str) -> dict[str, Policy]:
    return {name: merge_flags(policy, method=name) for name in names}


def claim(text: str, first: Sequence[float], second: Sequence[float], overlap: float = 0.0) -> dict[str, Any]:
    """Return a row about the claim that the first figure is larger than the second."""
    estimated = difference(first, second, overlap)
    assert estimated.low is not None
    assert estimated.high is not None
    assert estimated.p is not None
    verdict = "holds" if estimated.low > 0 else "fails" if estimated.high < 0 else "not decided"
    return {
        "claim": text,
        "first": estimate(first, overlap).value,
        "second": estimate(second, overlap).value,
        "difference": _signed(estimated.value),
        "95% interval": f"{_signed(estimated.low)} to {_signed(estimated.high)}",
        "p": f"{estimated.p:.1e}" if estimated.p < 0.001 else f"{estimated.p:.3f}",
        "verdict": verdict,
    }


def _signed(number: float) -> str:
    return f"{number:+.4f}" if abs(number) < 10 else f"{number:+,.0f}"
