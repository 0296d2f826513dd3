"""What models learn from releases (sections 4.1 to 4.3): tables with a target, and trials on them.

The tables are Agrawal's with the class of one or more functions, the census (``acs-census``, a later year of the
paper's source) and the contraceptives (``cmc``). Regions and models learn from one part of a table and are tested on
the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from benchmarks.tables import complete_records, data_file
from reproduce.figure import OURS, Row, Size
from sfumato import Policy
from sfumato.evaluation.learning.features import Features
from sfumato.evaluation.learning.learning_study import Study
from sfumato.evaluation.learning.models import ALL
from sfumato.evaluation.learning.significance import estimate
from sfumato.pipeline.prepare import read_table
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.studies.cross_validation import CrossValidation, FigureKey
from sfumato.synthetic import Agrawal
from sfumato.synthetic.agrawal import RULES

ORIGINAL = "original"
INFORMATION_GAIN, REGRESSION, SELECTION = "mondrian:information-gain", "mondrian:regression", "mondrian:selection"
MEDIAN, TDS = "mondrian:published", "tds"
OUR_MEDIAN = "mondrian"
PAPER_NAMES = {TDS: "TDS", MEDIAN: "Median Mondrian", OUR_MEDIAN: "Median Mondrian"}
READINGS = {
    TDS: "tds; its intervals are learnt from as single values",
    MEDIAN: MEDIAN,
    OUR_MEDIAN: f"{OURS}{OUR_MEDIAN}",
}
"""How each baseline is read."""

FOLDS = 10

# Footnote 18 switches to the median where little is gained, for the running times of section 6 alone.
ALL_THE_GAIN = 0.0
TRAINING = TEST = 1_000
CENSUS_RECORDS = 49_657  # Table III
CENSUS_SEED = 0
WAGE_CLASS, CLASS_LIMIT = 2_500, 30_000  # dollars: the classes of the table, and where the paper divides them


@dataclass(frozen=True)
class Lesson:
    """A table, and the policy under which its target is learnt."""

    data: pa.Table
    policy: Policy

    def under(self, policy: Policy) -> Lesson:
        return replace(self, policy=policy)


def census(size: Size, records: int, target: Literal["salary-class", "salary"] = "salary-class") -> Lesson:
    """Return random records of the census, with the class or the number to predict.

    The table has wages in classes of 2,500 dollars. The number is the middle of the class; the last one is open, and
    stands for its lower end.
    """
    data, policy = _real(size.tables.directory("acs-census"), "salary-class")
    names = data.column("salary-class").to_pylist()
    wage = np.array([int(name.split(" ")[0]) for name in names])
    if target == "salary-class":
        values = pa.array(np.where(wage * WAGE_CLASS < CLASS_LIMIT, "below 30K", "30K and more"))
    else:
        values = pa.array(wage * WAGE_CLASS + np.where(wage == wage.max(), 0, WAGE_CLASS // 2))
    chosen = np.random.default_rng(CENSUS_SEED).permutation(len(wage))[:records]
    whole = data.drop_columns("salary-class").append_column(target, values)
    return _with_target(whole.take(np.sort(chosen)), policy, target)


def contraceptives(size: Size) -> Lesson:
    """Return the table of contraceptives with the method to predict."""
    return _with_target(*_real(size.tables.directory("cmc"), "contraceptive-method"), "contraceptive-method")


def _with_target(data: pa.Table, policy: Policy, target: str) -> Lesson:
    return Lesson(data, merge_flags(policy, target=target, accept_linkable=[target], least_gain=ALL_THE_GAIN))


def _real(directory: Path, target: str) -> tuple[pa.Table, Policy]:
    """Return the quasi-identifiers and the target of a real table, and a policy for them without a target."""
    attributes = json.loads((directory / "schema.json").read_text("utf-8"))["attributes"]
    quasi = [attribute for attribute in attributes if attribute["role"] == "quasi-identifier"]
    names = [attribute["name"] for attribute in quasi]
    numeric: dict[str, Literal["numeric"]] = {
        attribute["name"]: "numeric" for attribute in quasi if attribute["type"] == "numeric"
    }
    taxonomies = {
        attribute["name"]: (directory / attribute["taxonomy"]).resolve()
        for attribute in quasi
        if attribute["name"] not in numeric
    }
    path = data_file(directory)
    assert path is not None
    schema = pa.schema([(name, pa.float64() if name in numeric else pa.string()) for name in (*names, target)])
    data = complete_records(path).select([*names, target]).cast(schema)
    return data, merge_flags(quasi_identifiers=names, other="drop", type=numeric, taxonomy=taxonomies)


def agrawal(functions: Sequence[str], records: int, seed: int, work: Path) -> Lesson:
    """Generate one table with a column for each function; the constants of C2 to C6 are random, as in section 4.4.

    The policy has no target yet. Files of hierarchies are written to ``work``.
    """
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
        least_gain=ALL_THE_GAIN,
    )
    return Lesson(pa.table(columns), policy)


def cross_validation(lesson: Lesson, models: Sequence[str], folds: int = FOLDS) -> CrossValidation:
    """Read a table once, and divide its records into folds. Every use of it names a k of its own."""
    study = Study(policy=merge_flags(lesson.policy, k=1), models=models or ALL, folds=folds)
    validation = CrossValidation.of(read_table(lesson.data, study.for_reading, Progress()), study)
    return validation if models else replace(validation, models=[])


def two_halves(lesson: Lesson, models: Sequence[str], *, training: int = TRAINING) -> CrossValidation:
    """Return a cross-validation whose fold 1 has the records after the first ``training`` ones of the table."""
    validation = cross_validation(lesson, models, folds=2)
    # Coded records are sorted, so halves of them would differ in age: halves are those of the table.
    rows = validation.table.encoded.input_rows
    assert rows is not None
    return replace(validation, fold=(rows >= training).astype(np.int64))


def scores(validation: CrossValidation, features: Features, fold: int = 1) -> dict[str, float]:
    """Return the score of every model on one fold. There is one target."""
    return {str(what[1]): score for what, score in validation.scores(features, fold).items()}


def recoded_features(validation: CrossValidation, policy: Policy, fold: int = 1) -> Features:
    """Recode the table by regions that are learnt from the other folds."""
    prepared = validation.under(policy)
    recoding = prepared.recoding(prepared.fold != fold)
    region = recoding.regions.regions_of(prepared.table.encoded.codes, prepared.table.encoded.domains)
    return prepared.features(recoding, region)


def sweep(
    lesson: Lesson, methods: Sequence[str], many_k: Sequence[int], models: Sequence[str], folds: int
) -> Iterator[Row]:
    """Yield the figures of every model on the original and on every method under every k.

    Each method also has measures of its regions, without a model: entropy or squared error, and class size.
    """
    validation = cross_validation(lesson, models, folds)
    original = [validation.scores(validation.original, fold) for fold in range(folds)]
    yield from _rows(original, method=ORIGINAL, k=None)
    for method in methods:
        for k in many_k:
            yield from _rows(list(fold_figures(validation, lesson.policy, method=method, k=k)), method=method, k=k)


def fold_figures(validation: CrossValidation, policy: Policy, **flags: Any) -> Iterator[dict[FigureKey, float]]:
    """Yield the figures of each fold under the policy with these flags: of the models, and of the regions."""
    here = validation.under(merge_flags(policy, **flags))
    codes, domains = here.table.encoded.codes, here.table.encoded.domains
    for fold in range(here.folds):
        training = here.fold != fold
        recoding = here.recoding(training)
        region = recoding.regions.regions_of(codes, domains)
        measured = here.measures(recoding, region, training)
        yield measured | (here.scores(here.features(recoding, region), fold) if here.models else {})


def _rows(by_fold: Sequence[Mapping[FigureKey, float]], **about: Any) -> Iterator[Row]:
    for target, model, metric in by_fold[0]:
        values = [figures[target, model, metric] for figures in by_fold]
        yield {**about, "model": model, "metric": metric, **spread(values, overlap_of_folds(values))}


def overlap_of_folds(values: Sequence[float]) -> float:
    """Return the test records for each training record, by which intervals over folds are corrected."""
    return 1 / (len(values) - 1)


def spread(values: Sequence[float], overlap: float = 0.0) -> Row:
    """Return the columns of a figure over several trials: the mean, its 95% interval, and every trial."""
    estimated = estimate(values, overlap)
    return {"value": estimated.value, "low": estimated.low, "high": estimated.high, "trials": list(values)}
