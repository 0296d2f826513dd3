"""Tables to learn from, and trials on them: regions and models from one part, tested on the other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.setting import Setting
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
TRIALS = 40
ORIGINAL = "original"
INFORMATION_GAIN, REGRESSION, SELECTION = "mondrian:information-gain", "mondrian:regression", "mondrian:selection"
MEDIAN, TDS = "mondrian", "tds"
# What is learnt from each real table, and the columns that are quasi-identifiers beside those of its schema.
REAL: dict[str, tuple[str, tuple[str, ...]]] = {
    "adult": ("salary-class", ("occupation",)),
    "cmc": ("contraceptive-method", ()),
    "census-income": ("income", ()),
}
REAL_NUMBERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "adult-raw": ("hours-per-week", ("occupation",)),
    "census-income": ("weeks-worked", ()),
}
Scores = dict[tuple[str, str], float]
"""By method, or ``original``, and model."""


@dataclass(frozen=True)
class RealTable:
    """A file and the policy to learn a column of it with."""

    name: str
    path: Path
    policy: Policy


def real_tables(setting: Setting, wanted: Mapping[str, tuple[str, tuple[str, ...]]]) -> list[RealTable]:
    """Those of the tables beside ``--data`` that are there."""
    if setting.data is None:
        return []
    directories = [setting.data.resolve().parent / name for name in wanted]
    return [_real_table(place, *wanted[place.name]) for place in directories if (place / "schema.json").exists()]


def _real_table(directory: Path, target: str, further: Sequence[str]) -> RealTable:
    attributes = json.loads((directory / "schema.json").read_text("utf-8"))["attributes"]
    asked = [
        one
        for one in attributes
        if (one["role"] == "quasi-identifier" or one["name"] in further) and one["name"] != target
    ]
    policy = merge_flags(
        quasi_identifiers=[one["name"] for one in asked],
        other="drop",
        type={one["name"]: "numeric" for one in asked if one["type"] == "numeric"},
        taxonomy={one["name"]: (directory / one["taxonomy"]).resolve() for one in asked if one["type"] != "numeric"},
        target=target,
    )
    path = next(place for name in ("data.csv.gz", "data.csv") if (place := directory / name).exists())
    return RealTable(directory.name, path, policy)


def agrawal(functions: Sequence[str], records: int, seed: int, work: Path) -> tuple[pa.Table, Policy]:
    """One table with a target for each function, named by it; the constants of C2 to C6 are random."""
    generators = [Agrawal(function=one, random_constants=one in RULES) for one in functions]  # type: ignore[arg-type]
    tables = [pa.Table.from_batches(list(one.batches(records, seed))) for one in generators]
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


def halves(table: object, policy: Policy, models: str, *, training: int = TRAINING) -> CrossValidation:
    """The lesson whose fold 1 are the records after the first ``training`` ones."""
    study = Study(policy=policy, models=models, folds=2)
    lesson = CrossValidation.of(read_table(table, study.for_reading, Progress()), study)
    return replace(lesson, fold=(np.arange(len(lesson.fold)) >= training).astype(np.int64))


def trial(lesson: CrossValidation, policies: Mapping[str, Policy]) -> Scores:
    """What every model comes to on fold 1, with the original and with each named policy."""
    found: Scores = {(ORIGINAL, str(what[1])): score for what, score in lesson.scores(lesson.original, 1).items()}
    for name, policy in policies.items():
        features, _ = recoded(lesson, policy)
        found |= {(name, str(what[1])): score for what, score in lesson.scores(features, 1).items()}
    return found


def recoded(lesson: CrossValidation, policy: Policy, fold: int = 1) -> tuple[Any, NDArray[np.int64]]:
    """The table as regions learnt from the other folds show it: features, and the region of each record."""
    here = lesson.under(policy)
    recoding = here.recoding(here.fold != fold)
    region = recoding.regions.regions_of(here.table.encoded.codes, here.table.encoded.domains)
    return here.features(recoding, region), region


def methods(policy: Policy, *names: str) -> dict[str, Policy]:
    return {name: merge_flags(policy, method=name) for name in names}


def claim(text: str, first: Sequence[float], second: Sequence[float], overlap: float = 0.0) -> dict[str, Any]:
    """A row: the claim is that the first is larger than the second."""
    found = difference(first, second, overlap)
    assert found.low is not None
    assert found.high is not None
    assert found.p is not None
    verdict = "holds" if found.low > 0 else "fails" if found.high < 0 else "not decided"
    return {
        "claim": text,
        "first": estimate(first, overlap).value,
        "second": estimate(second, overlap).value,
        "difference": _signed(found.value),
        "95% interval": f"{_signed(found.low)} to {_signed(found.high)}",
        "p": f"{found.p:.1e}" if found.p < 0.001 else f"{found.p:.3f}",
        "verdict": verdict,
    }


def _signed(number: float) -> str:
    return f"{number:+.4f}" if abs(number) < 10 else f"{number:+,.0f}"
