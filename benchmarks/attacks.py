"""How much does an attacker learn from a release that meets its policy, and what helps at which price?

Three attacks, each in a module of its own: ``correlation_attack``, ``minimality_attack``, ``box_end_attack``. They use
what an attacker has. Whether a guess is right is looked up in the original afterwards.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

import sfumato
from benchmarks.box_end_attack import NumericEnds, place_persons
from benchmarks.correlation_attack import PublishedGroups, guess_values, number_features, right_without_release
from benchmarks.minimality_attack import NONE, Rows, Values, eligible_originals, try_out
from benchmarks.section import Row, Section, Table
from benchmarks.section import Rows as FigureRows
from benchmarks.tables import GENERATOR, Options
from sfumato import Policy, Release
from sfumato.evaluation.queries.box_estimates import shown_spans
from sfumato.pipeline.prepare import read_table
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import open_source

RECORDS = 30_000  # of the generated table, about as many as Adult has
SEED = 0
SURE = 0.9
NO_RELEASE = "no release; half of all values known"

CORRELATION: tuple[Mapping[str, Any], ...] = (
    {"method": "anatomy", "l": 2},
    {"method": "anatomy", "l": 3},
    {"method": "anatomy", "l": 4},
    {"method": "anatomy", "l": 6},
    {"method": "auto", "l": 3},
    {"method": "auto", "l": 3, "k": 10},
    {"method": "auto", "l": 3, "k": 50},
    {"method": "hilbert", "k": 10, "require": ["t-closeness(occupation, t=0.4)"]},
)

AGES = range(1, 8)
PERSONS = 6
DIAGNOSES = ("asthma", "flu", "gout")
MINIMALITY: tuple[Mapping[str, Any], ...] = (
    {"method": "hilbert", "k": 2, "l": 2},
    {"method": "auto", "k": 2, "l": 2},
    {"method": "mondrian", "k": 2, "l": 2},
    {"method": "mondrian", "k": 2, "l": 2, "boxes": "regions"},
    {"method": "hilbert", "k": 2, "l": 2, "round": 2},
    {"method": "hilbert", "k": 3, "l": 2},
    {"method": "hilbert", "k": 2},
)

BOX_ENDS: tuple[Mapping[str, Any], ...] = (
    {"method": "auto", "k": 5},
    {"method": "hilbert", "k": 5},
    {"method": "mondrian", "k": 5},
    {"method": "auto", "k": 5, "round": 5},
    {"method": "auto", "k": 5, "round": 10},
    {"method": "mondrian", "k": 5, "boxes": "regions"},
    {"method": "auto", "k": 10},
    {"method": "auto", "k": 25},
)


@dataclass(frozen=True)
class AttackedTable:
    """A table whose persons are known to the attacker. ``numeric``: the quasi-identifiers that are numbers."""

    name: str
    data: pa.Table
    policy: Policy
    numeric: Sequence[str]

    def texts(self, column: str, data: pa.Table | None = None) -> list[str]:
        return [str(value) for value in (self.data if data is None else data).column(column).to_pylist()]

    def policy_with(self, settings: Mapping[str, Any]) -> Policy:
        """Return the policy with these flags; ``round`` is one number for all numeric quasi-identifiers."""
        flags = dict(settings)
        if "round" in flags:
            flags["round"] = dict.fromkeys(self.numeric, flags["round"])
        return merge_flags(self.policy, **flags)


def run(options: Options) -> Mapping[str, Table]:
    census, adult, adult_raw = _census(options), _real(options, "adult"), _real(options, "adult-raw")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sfumato.SfumatoWarning)
        return {
            "correlation": Table(
                "Right guesses from correlations across groups",
                [row for table in (census, adult) for row in _correlation(options, table)],
                [f"Persons with unique quasi-identifiers. sure: by the model, at least {SURE:.0%}."],
            ),
            "minimality": Table(
                "Values that become certain by trying out all originals",
                [_minimality(options, settings) for settings in MINIMALITY],
                [
                    f"All tables of {PERSONS} persons of different ages from {AGES[0]} to {AGES[-1]} with "
                    f"{len(DIAGNOSES)} diagnoses, none of them more frequent than a half."
                ],
            ),
            "box ends": Table(
                "Persons who are certainly in a class because of the ends of its box",
                [row for table in (census, adult, adult_raw) for row in _box_ends(options, table)],
                ["A register of the persons in the table, and one of twice as many of whom a random half is in it."],
            ),
        }


def _correlation(options: Options, table: AttackedTable) -> FigureRows:
    quasi_identifiers = list(table.policy.quasi_identifiers)
    (sensitive,) = table.policy.sensitive
    persons = list(zip(*map(table.texts, quasi_identifiers), strict=True))
    number: dict[str, int] = {}
    truth = np.array([number.setdefault(text, len(number)) for text in table.texts(sensitive)])
    unique = _unique(persons)
    truth_of = {person: int(value) for person, value, alone in zip(persons, truth, unique, strict=True) if alone}
    numeric = [name in table.numeric for name in quasi_identifiers]
    features = number_features(list(map(table.texts, quasi_identifiers)), numeric)
    without = right_without_release(features, truth, SEED)[unique].mean()
    rows: list[Row] = [_correlation_row(table, NO_RELEASE, right=without)]
    for settings in options.some(CORRELATION):
        anatomy = settings["method"] == "anatomy"
        # Rows in the order of the input say which class each person is in; Anatomy says it in the release.
        flags = {"seed": SEED} if anatomy else {"keep_order": True}
        release = sfumato.anonymize(table.data, table.policy_with({**settings, **flags}))
        if anatomy:
            shown = [table.texts(name, release.data) for name in quasi_identifiers]
            seen = np.array([truth_of.get(person, -1) for person in zip(*shown, strict=True)])
            published = _published_by_anatomy(release, sensitive, number)
            guessed = guess_values(number_features(shown, numeric), published)
        else:
            seen = np.where(unique, truth, -1)
            published = _published_by_classes(release, quasi_identifiers, truth)
            guessed = guess_values(features, published)
        known = seen >= 0
        right, sure = (guessed.value == seen)[known], guessed.likelihood[known] >= SURE
        rows.append(
            _correlation_row(
                table,
                _in_words(settings),
                gcp=float(release.losses.gcp),
                group=float(published.largest_share[known].mean()),
                right=float(right.mean()),
                sure=float(sure.mean()),
                sure_right=float(right[sure].mean()) if sure.any() else None,
            )
        )
    return rows


def _correlation_row(
    table: AttackedTable,
    release: str,
    *,
    right: float,
    gcp: float | None = None,
    group: float | None = None,
    sure: float | None = None,
    sure_right: float | None = None,
) -> Row:
    return {
        "table": table.name,
        "release": release,
        "GCP": gcp,
        "right by the group alone": group,
        "right by the model": float(right),
        "sure": sure,
        "of these right": sure_right,
    }


def _unique(persons: Sequence[tuple[str, ...]]) -> NDArray[np.bool_]:
    _, which, count = np.unique(np.array(persons), axis=0, return_inverse=True, return_counts=True)
    return np.asarray(count[which.ravel()] == 1)


def _published_by_anatomy(release: Release, sensitive: str, number: Mapping[str, int]) -> PublishedGroups:
    second = release.sensitive
    assert second is not None
    return PublishedGroups.of(
        np.array(release.data.column("group").to_pylist()) - 1,
        np.array(second.column("group").to_pylist()) - 1,
        np.array([number[str(value)] for value in second.column(sensitive).to_pylist()]),
        np.array(second.column("count").to_pylist()),
    )


def _published_by_classes(release: Release, key: Sequence[str], truth: NDArray[np.int64]) -> PublishedGroups:
    """Count the values of every class, as the rows of the release show them."""
    rows = np.array([release.data.column(name).to_pylist() for name in key], np.str_).T
    _, group = np.unique(rows, axis=0, return_inverse=True)
    group = group.ravel()
    width = int(truth.max()) + 1
    pairs, count = np.unique(group * width + truth, return_counts=True)
    return PublishedGroups.of(group, pairs // width, pairs % width, count)


def _minimality(options: Options, settings: Mapping[str, Any]) -> Row:
    """Try out all originals. A policy without l publishes only what turns out to be diverse."""
    total, loss, releases = NONE, 0.0, 0
    originals = eligible_originals(PERSONS, DIAGNOSES, 2)
    table = AttackedTable("", pa.table({}), merge_flags(quasi_identifiers="age", sensitive="diagnosis"), ("age",))
    policy = table.policy_with(settings)
    for ages in options.some(list(combinations(AGES, PERSONS))):

        def released(values: Values, ages: Sequence[int] = ages) -> Rows | None:
            nonlocal loss, releases
            release = sfumato.anonymize(pa.table({"age": ages, "diagnosis": values}), policy)
            if "l" not in settings and not sfumato.audit(release.data, policy, l=2).holds:
                return None
            loss, releases = loss + float(release.losses.gcp), releases + 1
            columns = (map(str, column.to_pylist()) for column in release.data.columns)
            return tuple(zip(*columns, strict=True))

        total += try_out(originals, released)
    return {
        "release": _in_words(settings),
        "GCP": loss / releases,
        "tables": total.originals,
        "with a certain value": total.with_certain / total.originals,
        "persons whose value is certain": total.certain / total.persons,
        "right by the class alone": total.right_by_class / total.persons,
        "right by the attack": total.right / total.persons,
    }


def _box_ends(options: Options, table: AttackedTable) -> FigureRows:
    persons = np.arange(len(table.data))
    half = np.sort(np.random.default_rng(SEED).permutation(persons)[: len(persons) // 2])
    rows = []
    for settings in options.some(BOX_ENDS):
        everybody, some = (_placed(table, members, settings) for members in (persons, half))
        rows.append(
            {
                "table": table.name,
                "release": _in_words(settings),
                "GCP": everybody["GCP"],
                "placed": everybody["placed"],
                "rightly": everybody["rightly"],
                "placed, half in the table": some["placed"],
                "rightly, half": some["rightly"],
            }
        )
    return rows


def _placed(table: AttackedTable, members: NDArray[np.int64], settings: Mapping[str, Any]) -> Row:
    """Attack the release of some members of the register, which are the persons of ``table``."""
    policy = table.policy_with(settings)
    key = list(policy.quasi_identifiers)
    # The rows stay in the order of the input only to find out afterwards which conclusions are right.
    release = sfumato.anonymize(table.data.take(pa.array(members)), policy, keep_order=True)
    encoded = read_table(table.data, merge_flags(table.policy, k=1), Progress()).encoded
    register = np.empty((len(table.data), len(key)), np.int64)
    register[encoded.input_rows] = encoded.codes
    classes = find_classes(open_source(release.data, policy.input_options), key, by_row=True)
    spans, shown = shown_spans(encoded.domains, classes)
    low = np.stack([spans[q][shown[:, q], 0] for q in range(len(key))], axis=1)
    high = np.stack([spans[q][shown[:, q], 1] - 1 for q in range(len(key))], axis=1)
    ends = []
    for name in table.numeric:
        labels = [str(classes.values[name][entry]) for entry in classes.shown[name].tolist()]
        bounds = np.array([_bounds(label) for label in labels])
        numbers = np.array(table.texts(name), np.float64)
        ends.append(NumericEnds(bounds[:, 0], bounds[:, 1], numbers, settings.get("round", 0)))
    pairs = place_persons(register, low, high, ends)
    class_of_person = np.full(len(table.data), -1)
    assert classes.class_of_row is not None
    class_of_person[members] = classes.class_of_row
    right = class_of_person[pairs[:, 1]] == pairs[:, 0]
    return {
        "GCP": float(release.losses.gcp),
        "placed": len(np.unique(pairs[right, 1])) / len(members),
        "rightly": float(right.mean()) if len(right) else None,
    }


def _bounds(label: str) -> tuple[float, float]:
    """The ends of a range such as ``[20..29]``; not a number for a single value and for ``*``."""
    if not label.startswith("["):
        return np.nan, np.nan
    low, high = label[1:-1].split("..")
    return float(low), float(high)


def _in_words(settings: Mapping[str, Any]) -> str:
    """The settings as a reader would write them: the method, then its parameters."""
    words = [f"`{settings['method']}`"]
    words += [f"{name} = {value}" for name, value in settings.items() if name not in ("method", "require")]
    return ", ".join([*words, *settings.get("require", ())])


def _census(options: Options) -> AttackedTable:
    generated = options.census(options.size(RECORDS))
    whole = Policy.load(generated.policy_path)
    contents = whole.to_dict() | {"other": "drop", "privacy": {}}
    contents["columns"] = {name: column for name, column in contents["columns"].items() if column["role"] != "other"}
    policy = Policy.from_dict(contents, whole.base)
    return AttackedTable(GENERATOR, pq.read_table(generated.path), policy, ("age", "education"))


def _real(options: Options, name: str) -> AttackedTable:
    table = options.real(name)
    return AttackedTable(name, pyarrow.csv.read_csv(table.path), table.policy, table.numeric)


def phrases(rows: Mapping[str, FigureRows]) -> Mapping[str, str]:
    """The figures that SECURITY.md, the docs and the report quote."""
    model = {(row["table"], row["release"]): row for row in rows["correlation"]}
    certain = {row["release"]: row["with a certain value"] for row in rows["minimality"]}

    def guessed(release: str, column: str = "right by the model") -> str:
        census, adult = (model[table, release][column] for table in (GENERATOR, "adult"))
        return f"{100 * census:.0f} and {adult:.0%}"

    def placed(release: str, column: str = "placed") -> str:
        return _from_to([row[column] for row in rows["box ends"] if row["release"] == release])

    def dearer(release: str) -> str:
        loss = {(row["table"], row["release"]): row["GCP"] for row in rows["box ends"]}
        tight = "`auto`, k = 5"
        ratios = [gcp / loss[table, tight] for (table, shown), gcp in loss.items() if shown == release]
        return f"{min(ratios):.1f} to {max(ratios):.1f} times"

    return {
        "without the release": guessed(NO_RELEASE),
        **{f"anatomy, l = {l}": guessed(f"`anatomy`, l = {l}") for l in (2, 3, 4, 6)},
        "anatomy, l = 3, sure": guessed("`anatomy`, l = 3", "sure"),
        "classes, l = 3": guessed("`auto`, l = 3"),
        "classes, l = 3, loss": guessed("`auto`, l = 3", "GCP"),
        "classes, l = 3, k = 10": guessed("`auto`, l = 3, k = 10"),
        "classes, t = 0.4": guessed("`hilbert`, k = 10, t-closeness(occupation, t=0.4)"),
        "certain": f"{certain['`auto`, k = 2, l = 2']:.0%}",
        "certain, mondrian": f"{certain['`mondrian`, k = 2, l = 2']:.0%}",
        "placed": placed("`auto`, k = 5"),
        "placed, half": placed("`auto`, k = 5", "placed, half in the table"),
        "placed, round": placed("`auto`, k = 5, round = 5"),
        "loss, round": dearer("`auto`, k = 5, round = 5"),
        "placed, k = 10": placed("`auto`, k = 10"),
        "loss, k = 10": dearer("`auto`, k = 10"),
        "rightly, regions": placed("`mondrian`, k = 5, boxes = regions", "rightly"),
        "rightly, regions, half": placed("`mondrian`, k = 5, boxes = regions", "rightly, half"),
    }


def _from_to(shares: Sequence[float]) -> str:
    return f"{100 * min(shares):.0f} to {max(shares):.0%}"


SECTION = Section(
    run=run,
    timed=False,
    parameters={"records": RECORDS, "seed": SEED, "sure": SURE, "ages": [AGES[0], AGES[-1]], "persons": PERSONS},
    tables=("adult", "adult-raw"),
    phrases=phrases,
)
