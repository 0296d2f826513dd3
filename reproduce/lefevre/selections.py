"""Fig. 12 and 13: selections that regions are made for, and models that use fewer attributes than were released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from reproduce.figure import Claim, Figure, Judgement, Result, Row, Size
from reproduce.judging import in_every_case, number, ranges
from reproduce.lefevre.lessons import (
    CENSUS_RECORDS,
    CENSUS_SEED,
    FOLDS,
    INFORMATION_GAIN,
    MEDIAN,
    ORIGINAL,
    SELECTION,
    TDS,
    Lesson,
    agrawal,
    census,
    cross_validation,
    overlap_of_folds,
    recoded_features,
    scores,
    spread,
)
from reproduce.lefevre.paired import judge_folds, judge_pairs, swapped, trials_of
from reproduce.lines import lines, means
from sfumato.evaluation.learning.features import Features, regions
from sfumato.evaluation.learning.results import IMPRECISION
from sfumato.losses.prediction import conditional_entropy
from sfumato.pictures.curves import curves
from sfumato.pictures.picture import Picture
from sfumato.policy import merge_flags
from sfumato.studies.cross_validation import CrossValidation
from sfumato.synthetic.agrawal import RULES

RECORDS, TRIALS = 1_000, 100
MANY_K = (2, 5, 10, 25, 50, 100)
RESTRICTED = f"{MEDIAN}, age and salary only"
MANY_GROUPS, GROUP_K = (1, 2, 5, 10, 20, 50), 50
PROJECTION_K = 100
MODEL = "tree"


def figure_12(size: Size) -> Result:
    trials = size.of(tenth=2, quick=20, full=TRIALS)
    many_k = size.of(tenth=(5, 25), quick=MANY_K, full=MANY_K)
    found: dict[tuple[str, int], list[float]] = {}
    for seed in range(trials):
        table = agrawal(["C2"], RECORDS, seed, size.tables.work)
        whole = table.under(merge_flags(table.policy, select=_selections(), other="drop"))
        numbers = ["age", "salary"]
        few = merge_flags(
            quasi_identifiers=numbers, type=dict.fromkeys(numbers, "numeric"), other="drop", select=_selections()
        )
        restricted = Lesson(table.data.select(numbers), few)
        for name, lesson, method in (
            (MEDIAN, whole, MEDIAN),
            (RESTRICTED, restricted, MEDIAN),
            (SELECTION, whole, SELECTION),
        ):
            validation = cross_validation(lesson, [])
            for k in many_k:
                found.setdefault((name, k), []).append(_imprecision(validation, lesson, method, k))
    return Result(
        sizes=f"{trials} tables of {RECORDS:,} records; the paper does not say how many",
        tables={"imprecision": [{"method": name, "k": k, **spread(values)} for (name, k), values in found.items()]},
        settings={"records": RECORDS, "k": many_k, "selections": _selections(), "seeds": f"0 to {trials - 1}"},
    )


def _selections() -> list[str]:
    """C2 with the published constants: three boxes."""
    rule = RULES["C2"]
    ages = (f"age < {rule.middle_age}", f"age >= {rule.middle_age} and age < {rule.old_age}", f"age >= {rule.old_age}")
    return [
        f"{age} and salary between {condition.interval.low} and {condition.interval.high}"
        for age, condition in zip(ages, (rule.young, rule.middle, rule.old), strict=True)
    ]


def _imprecision(validation: CrossValidation, lesson: Lesson, method: str, k: int) -> float:
    """Return the imprecision of all selections on the records that the regions were learnt from."""
    here = validation.under(merge_flags(lesson.policy, method=method, k=k))
    everyone = np.ones(len(here.fold), np.bool_)
    recoding = here.recoding(everyone)
    region = recoding.regions.regions_of(here.table.encoded.codes, here.table.encoded.domains)
    return sum(value for what, value in here.measures(recoding, region, everyone).items() if what[2] == IMPRECISION)


def figure_13(size: Size) -> Result:
    records = size.of(tenth=400, quick=6_000, full=CENSUS_RECORDS)
    folds = size.of(tenth=3, quick=FOLDS, full=FOLDS)
    many_groups = size.of(tenth=(1, 2), quick=MANY_GROUPS, full=MANY_GROUPS)
    lesson = census(size, records)
    return Result(
        sizes=f"{records:,} census records in {folds} folds; {CENSUS_RECORDS:,} in the paper",
        tables={
            "selection": [
                row for name in (INFORMATION_GAIN, MEDIAN) for row in _of_groups(lesson, name, many_groups, folds)
            ],
            "projection": _projection(lesson, folds),
        },
        settings={
            "k of selection": GROUP_K,
            "k of projection": PROJECTION_K,
            "records": records,
            "folds": folds,
            "seed of the sample": CENSUS_SEED,
        },
    )


def _of_groups(lesson: Lesson, method: str, many_groups: Sequence[int], folds: int) -> list[Row]:
    """Put records into random groups, learn the regions of each group separately, and one model for all."""
    policy = merge_flags(lesson.policy, method=method, k=GROUP_K)
    validation = cross_validation(lesson, [MODEL], folds).under(policy)
    rows = []
    for groups in many_groups:
        values = [_score_of_groups(validation, groups, fold) for fold in range(folds)]
        rows.append({"method": method, "groups": groups, **spread(values, overlap_of_folds(values))})
    return rows


def _score_of_groups(validation: CrossValidation, groups: int, fold: int) -> float:
    group = np.random.default_rng(fold).integers(0, groups, len(validation.fold))
    codes, domains = validation.table.encoded.codes, validation.table.encoded.domains
    numbers = np.empty((len(codes), 2 * len(domains)))
    for number_of_group in range(groups):
        members = group == number_of_group
        recoding = validation.recoding((validation.fold != fold) & members)
        shown = regions(recoding.regions.region_low, recoding.regions.region_high, recoding.domains, alike=False)
        numbers[members] = shown.numbers[recoding.regions.regions_of(codes, domains)[members]]
    return scores(validation, Features(numbers, np.zeros(numbers.shape[1], np.bool_)), fold)[MODEL]


def _projection(lesson: Lesson, folds: int) -> list[Row]:
    """Learn without the first few attributes, the most informative ones first."""
    policies = {
        name: merge_flags(lesson.policy, method=name, k=PROJECTION_K) for name in (INFORMATION_GAIN, MEDIAN, TDS)
    }
    validation = cross_validation(lesson, [MODEL], folds)
    order = _by_gain(validation)
    domains = validation.table.encoded.domains
    found: dict[tuple[str, int], list[float]] = {}
    for fold in range(folds):
        shown = {ORIGINAL: validation.original} | {
            name: recoded_features(validation, policy, fold) for name, policy in policies.items()
        }
        for dropped in range(len(order)):
            for name, features in shown.items():
                rest = features.without(order[:dropped], features.numbers.shape[1] // len(domains))
                found.setdefault((name, dropped), []).append(scores(validation, rest, fold)[MODEL])
    return [
        {
            "method": name,
            "dropped": dropped,
            "without": [domains[attribute].name for attribute in order[:dropped]],
            **spread(values, overlap_of_folds(values)),
        }
        for (name, dropped), values in found.items()
    ]


def _by_gain(validation: CrossValidation) -> list[int]:
    """Order the attributes greedily by what each adds to predicting the class in the original."""
    target = validation.workload.classification[0]
    codes = validation.table.encoded.codes
    owner, order = np.zeros(len(codes), np.int64), list[int]()
    rest = list(range(codes.shape[1]))
    while rest:
        joined = {q: owner * (int(codes[:, q].max()) + 1) + codes[:, q] for q in rest}
        best = min(rest, key=lambda q: _entropy(joined[q], target.codes, target.distinct))
        owner = np.unique(joined[best], return_inverse=True)[1]
        order.append(best)
        rest.remove(best)
    return order


def _entropy(owner: NDArray[np.int64], classes: NDArray[np.uint32], distinct: int) -> float:
    pairs, count = np.unique(np.unique(owner, return_inverse=True)[1] * distinct + classes, return_counts=True)
    return conditional_entropy(pairs // distinct, count)


def draw_12(result: Result) -> Mapping[str, Picture]:
    title = "Imprecision of function C2 as three selections"
    rows = result.tables["imprecision"]
    return {
        "": curves(
            rows, x="k", y="value", title=title, subtitle=result.sizes, y_title="imprecision (records)", x_scale="log"
        )
    }


def draw_13(result: Result) -> Mapping[str, Picture]:
    panels = {
        "a": ("selection", "groups", f"Random selections, k = {GROUP_K}", "number of selections"),
        "b": ("projection", "dropped", f"Projection, k = {PROJECTION_K}", "attributes left out, most predictive first"),
    }
    return {
        panel: curves(
            result.tables[table],
            x=x,
            y="value",
            title=f"{title}: decision tree",
            subtitle=result.sizes,
            x_title=x_title,
            y_title="test set accuracy",
            x_scale="log" if table == "selection" else "linear",
            from_zero=False,
        )
        for panel, (table, x, title, x_title) in panels.items()
    }


def _selection_saves(other: str) -> Claim:
    def judge(result: Result) -> Judgement:
        pairs = trials_of(result.tables["imprecision"], "method", SELECTION, other, ("k",))
        return judge_pairs(swapped(pairs), "records saved")

    names = {MEDIAN: "Median Mondrian", RESTRICTED: "Median Mondrian on age and salary"}
    return Claim(f"Selection Mondrian has less imprecision than {names[other]}", other, judge)


def _rises_with_k(result: Result) -> Judgement:
    found = means(lines(result.tables["imprecision"], "k", "value"))
    cases = {
        f"{name}, k = {k}": line[k] >= line[before]
        for name, line in found.items()
        for before, k in zip(line, list(line)[1:], strict=False)
    }
    return in_every_case(cases, ranges(found, list(found)))


def _more_selections_cost(result: Result) -> Judgement:
    rows = result.tables["selection"]
    most = max(row["groups"] for row in rows)
    by_case = {(row["method"], row["groups"]): row["trials"] for row in rows}
    return judge_folds(
        {
            f"{name}, {most} selections": (by_case[name, 1], by_case[name, most])
            for name, groups in by_case
            if groups == 1
        },
        "accuracy lost",
    )


def _several_cost_little(result: Result) -> Judgement:
    """Several selections have no large effect: read as five of them, and less than two percent of the records."""
    rows = result.tables["selection"]
    several = max(row["groups"] for row in rows if row["groups"] <= 5)
    value = {(row["method"], row["groups"]): row["value"] for row in rows}
    lost = {name: value[name, 1] - value[name, several] for name, groups in value if groups == 1}
    found = "; ".join(f"{name} loses {number(one)}" for name, one in lost.items())
    return in_every_case({name: one < 0.02 for name, one in lost.items()}, f"with {several} selections {found}")


def _decays_most(other: str) -> Claim:
    def judge(result: Result) -> Judgement:
        lost = {name: _mean_loss(result, name) for name in (TDS, other)}
        return judge_folds({f"mean over all projections, against {other}": (lost[TDS], lost[other])}, "accuracy lost")

    names = {INFORMATION_GAIN: "InfoGain Mondrian", MEDIAN: "Median Mondrian"}
    return Claim(f"As predictive attributes are left out, TDS loses more accuracy than {names[other]}", other, judge)


def _mean_loss(result: Result, method: str) -> list[float]:
    """Return, for each fold, the accuracy that is lost on average when one or more attributes are left out."""
    trials = {row["dropped"]: np.array(row["trials"]) for row in result.tables["projection"] if row["method"] == method}
    rest = [values for dropped, values in trials.items() if dropped]
    return [float(value) for value in trials[0] - np.mean(rest, axis=0)]


def _tds_is_lowest(result: Result) -> Judgement:
    rows = [row for row in result.tables["projection"] if row["dropped"]]
    found = means(lines(rows, "dropped", "value"))
    cases = {
        f"{dropped} left out ({name})": found[TDS][dropped] <= found[name][dropped]
        for name in (INFORMATION_GAIN, MEDIAN)
        for dropped in found[TDS]
    }
    return in_every_case(cases, ranges(found, [TDS, INFORMATION_GAIN, MEDIAN]))


FIGURE_12 = Figure(
    paper="lefevre",
    number="12",
    title="imprecision of a selection",
    published=f"{RECORDS:,} synthetic records; function C2 is the selection.",
    run=figure_12,
    draw=draw_12,
    claims=(
        _selection_saves(MEDIAN),
        _selection_saves(RESTRICTED),
        Claim("Imprecision increases with k", "the next smaller k", _rises_with_k),
    ),
    remarks=("Imprecision is that of the three selections together, each with its own surplus records.",),
)
FIGURE_13 = Figure(
    paper="lefevre",
    number="13",
    title="selections that say nothing about the class, and projections",
    published=f"Census with {CENSUS_RECORDS:,} records, {FOLDS} folds; k = {GROUP_K} and {PROJECTION_K}.",
    run=figure_13,
    draw=draw_13,
    claims=(
        Claim("Accuracy decreases as the number of selections grows", "no selection", _more_selections_cost),
        Claim(
            "Several selections have no large effect (read as: five cost less than 0.02)",
            "no selection",
            _several_cost_little,
        ),
        _decays_most(INFORMATION_GAIN),
        _decays_most(MEDIAN),
        Claim(
            "With predictive attributes left out, TDS is the least accurate",
            f"{INFORMATION_GAIN}, {MEDIAN}",
            _tds_is_lowest,
        ),
    ),
)
