"""Fig. 10: regions that are made for more and more targets, and how well a model learns each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reproduce.figure import Claim, Figure, Judgement, Result, Size
from reproduce.lefevre.lessons import INFORMATION_GAIN, TEST, TRAINING, agrawal, recoded_features, spread, two_halves
from reproduce.lefevre.paired import judge_pairs
from sfumato.evaluation.learning.models import models
from sfumato.pictures.number_table import TableCell, number_table
from sfumato.pictures.picture import Picture
from sfumato.policy import merge_flags

FUNCTIONS = ("C2", "C3", "C4", "C5", "C6", "C7", "C9")
COLUMNS = "ABCDEFG"
MODELS = {"tree": "Decision tree", "bayes": "Naive Bayes"}
K = 25
TRIALS = 100


def run(size: Size) -> Result:
    trials = size.of(tenth=2, quick=16, full=TRIALS)
    functions = size.of(tenth=FUNCTIONS[:3], quick=FUNCTIONS, full=FUNCTIONS)
    found: dict[tuple[str, int, int], list[float]] = {}
    for seed in range(trials):
        for cell, accuracy in _trial(size, functions, seed).items():
            found.setdefault(cell, []).append(accuracy)
    rows = [
        {"model": model, "targets": targets, "column": COLUMNS[column], **spread(values)}
        for (model, targets, column), values in found.items()
    ]
    return Result(
        sizes=f"{trials} of the paper's {TRIALS} trials",
        tables={"accuracy": rows},
        settings={"functions": functions, "k": K, "records to learn from": TRAINING, "records to test on": TEST},
    )


def _trial(size: Size, functions: Sequence[str], seed: int) -> dict[tuple[str, int, int], float]:
    """Return accuracy by model, number of targets, and column; the functions of the columns are in random order."""
    order = [str(name) for name in np.random.default_rng(seed).permutation(functions)]
    lesson = agrawal(functions, TRAINING + TEST, seed, size.tables.work)
    found = {}
    for made_for in range(1, len(order) + 1):
        policy = merge_flags(lesson.policy, target=order[:made_for], method=INFORMATION_GAIN, k=K)
        halves = two_halves(lesson.under(policy), list(MODELS))
        features = recoded_features(halves, policy)
        training = halves.fold == 0
        for column, function in enumerate(order):
            truth = np.asarray(lesson.data.column(function).to_pylist())[halves.table.encoded.input_rows]
            for model in MODELS:
                learnt = models()[model].learn(features.of(training), truth[training], features.of(~training), 0)
                found[model, made_for, column] = float(np.mean(learnt == truth[~training]))
    return found


def draw(result: Result) -> Mapping[str, Picture]:
    cells = {(row["model"], row["targets"], row["column"]): row["value"] for row in result.tables["accuracy"]}
    columns = list(dict.fromkeys(column for _, _, column in cells))

    def rows(model: str) -> list[tuple[str, list[TableCell]]]:
        return [
            (
                f"{columns[0]}-{columns[targets - 1]}" if targets > 1 else columns[0],
                [
                    TableCell(f"{cells[model, targets, column]:.3f}", place < targets)
                    for place, column in enumerate(columns)
                ],
            )
            for targets in range(len(columns), 0, -1)
        ]

    return {
        panel: number_table(
            "made for",
            columns,
            rows(model),
            title=f"{title}: test set accuracy of models A to {columns[-1]}",
            subtitle=[result.sizes],
            key="the regions are made for this model too",
        )
        for panel, (model, title) in zip("ab", MODELS.items(), strict=True)
    }


def _by_cell(result: Result, model: str) -> dict[tuple[int, int], Sequence[float]]:
    return {
        (row["targets"], COLUMNS.index(row["column"])): row["trials"]
        for row in result.tables["accuracy"]
        if row["model"] == model
    }


def _mean(lists: Sequence[Sequence[float]]) -> list[float]:
    return [float(value) for value in np.mean(lists, axis=0)]


def _included(result: Result) -> Judgement:
    """Compare, within every column, the rows that include the model with those that do not."""
    pairs = {}
    for model in MODELS:
        cells = _by_cell(result, model)
        count = max(targets for targets, _ in cells)
        inside = [_mean([cells[row, column] for row in range(column + 1, count + 1)]) for column in range(1, count)]
        outside = [_mean([cells[row, column] for row in range(1, column + 1)]) for column in range(1, count)]
        pairs[model] = (_mean(inside), _mean(outside))
    return judge_pairs(pairs, "accuracy gained")


def _diluted(result: Result) -> Judgement:
    """Compare, within every column, the first row that includes the model with the row of all models."""
    pairs = {}
    for model in MODELS:
        cells = _by_cell(result, model)
        count = max(targets for targets, _ in cells)
        first = [cells[column + 1, column] for column in range(count - 1)]
        last = [cells[count, column] for column in range(count - 1)]
        pairs[model] = (_mean(first), _mean(last))
    return judge_pairs(pairs, "accuracy lost")


FIGURE_10 = Figure(
    paper="lefevre",
    number="10",
    title="regions made for several models",
    published=f"{TRIALS} training and test sets of 1,000 records; functions C2 to C7 and C9 in random order; k = {K}.",
    run=run,
    draw=draw,
    claims=(
        Claim(
            "A model that the regions are made for is more accurate than one that they are not made for",
            "the same model in the same column, over all rows that leave it out",
            _included,
        ),
        Claim(
            "The more models are included, the less accurate each of them",
            "the same model, included last, against all models included",
            _diluted,
        ),
    ),
    remarks=(
        "As in the paper, a row names the models that the regions are made for, and a column the model that is tested.",
    ),
)
