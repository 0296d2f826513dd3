"""The split rules for a workload against exhaustive search at every node, and what they are for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import oracle
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from requirement_definitions import EACH_KIND, Asked
from slow_mondrian import Part, Slow, Table, numeric, random_table, requirements_for, with_values
from strategies import Diverse, Quasi, diverse_cases, released_rows

import sfumato
from sfumato.methods.coded_workload import ClassTarget, CodedWorkload, NumberTarget
from sfumato.methods.method import Records
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.progress import Progress
from sfumato.tables.coding.selections import SelectionBoxes

Rule = Literal["information-gain", "regression", "selection"]
RULES: tuple[Rule, ...] = ("information-gain", "regression", "selection")
Box = tuple[list[int], list[int]]
EQUAL = 1e-9  # gains so near to each other are the same
each_rule = pytest.mark.parametrize("rule", RULES)
both_ways = pytest.mark.parametrize("block", [1 << 15, 3])
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


# ---- the slow version ----


@dataclass(frozen=True)
class Uses:
    """What a table is for, on lists: classes and numbers by row, None for missing."""

    classes: list[tuple[list[int | None], float]] = field(default_factory=list)
    numbers: list[tuple[list[float | None], float]] = field(default_factory=list)
    cells: list[int] | None = None
    boxes: list[tuple[Box, float]] = field(default_factory=list)
    least_gain: float = 0.0

    def coded(self) -> CodedWorkload:
        classes = []
        for values, weight in self.classes:
            known = max((value for value in values if value is not None), default=-1) + 1
            codes = np.array([known if value is None else value for value in values], np.uint32)
            classes.append(ClassTarget("c", codes, known, weight))
        numbers = [
            NumberTarget("n", np.array([math.nan if value is None else value for value in values]), weight)
            for values, weight in self.numbers
        ]
        boxes = None
        if self.boxes:
            low, high = (np.array([box[side] for box, _ in self.boxes], np.int64) for side in (0, 1))
            boxes = SelectionBoxes(low, high, np.array([weight for _, weight in self.boxes]))
        cells = None if self.cells is None else np.array(self.cells, np.uint32)
        return CodedWorkload(tuple(classes), tuple(numbers), cells, boxes, self.least_gain)


@dataclass(frozen=True)
class SlowRules:
    """The rules as they are written down: every allowable split of every attribute is tried."""

    table: Table
    uses: Uses
    median: Slow

    def classes(self, rule: Rule) -> list[Part]:
        rows = list(range(len(self.table.codes)))
        return [sorted(part) for part in self.divided(rows, rule == "selection")]

    def divided(self, rows: Part, selecting: bool) -> list[Part]:
        if selecting:
            parts = self.best(rows, self.reduction, 0.0)
            if parts is not None:
                return [leaf for part in parts for leaf in self.divided(part, True)]
        parts = self.best(rows, self.gain, max(self.uses.least_gain, 1e-6) - EQUAL) or self.at_median(rows)
        return [rows] if parts is None else [leaf for part in parts for leaf in self.divided(part, False)]

    def at_median(self, rows: Part) -> list[Part] | None:
        for attribute in self.median.attributes(rows):
            for parts in self.median.candidates(rows, attribute):
                if all(self.median.holds(part) for part in parts):
                    return parts
        return None

    def best(self, rows: Part, worth: Any, least: float) -> list[Part] | None:
        found = [(worth(rows, attribute, parts), parts) for attribute, parts in self.candidates(rows)]
        highest = max((gain for gain, _ in found), default=0.0)
        if highest <= least:
            return None
        return next(parts for gain, parts in found if gain >= highest - EQUAL)

    def candidates(self, rows: Part) -> Iterator[tuple[int, list[Part]]]:
        for attribute, domain in enumerate(self.table.domains):
            codes = sorted({self.median.code(row, attribute) for row in rows})
            natural = self.median.natural(rows, attribute, domain) if len(codes) > 1 else None
            if natural is not None and all(self.median.holds(part) for part in natural):
                yield attribute, natural
                continue
            for cut in codes[1:]:
                below = [row for row in rows if self.median.code(row, attribute) < cut]
                above = [row for row in rows if self.median.code(row, attribute) >= cut]
                if self.median.holds(below) and self.median.holds(above):
                    yield attribute, [below, above]

    def gain(self, rows: Part, _: int, parts: list[Part]) -> float:
        """What a record gains on average, over all targets."""
        everyone = list(range(len(self.table.codes)))
        total, mixed = 0.0, bool(self.uses.classes) and bool(self.uses.numbers)
        variances = [
            self.error(everyone, values) / max(sum(value is not None for value in values), 1)
            for values, _ in self.uses.numbers
        ]
        together = sum(one * weight for one, (_, weight) in zip(variances, self.uses.numbers, strict=True))
        for values, weight in self.uses.classes:
            lost = self.entropy(rows, values) - sum(self.entropy(part, values) for part in parts)
            known = [row for row in everyone if values[row] is not None]
            whole = self.entropy(everyone, values) / max(len(known), 1) if mixed else 1.0
            total += weight * lost / whole if whole > 1e-12 else 0.0
        for variance, (numbers, weight) in zip(variances, self.uses.numbers, strict=True):
            less = self.error(rows, numbers) - sum(self.error(part, numbers) for part in parts)
            compared = variance if mixed else together
            total += weight * less / compared if compared > 1e-12 else 0.0
        return total / len(rows)

    def cell(self, row: int) -> int:
        return 0 if self.uses.cells is None else self.uses.cells[row]

    def entropy(self, rows: Part, values: Sequence[int | None]) -> float:
        """Of all records together, in bits, each combination of features apart."""
        known = [(self.cell(row), values[row]) for row in rows if values[row] is not None]
        of_cell = Counter(cell for cell, _ in known)
        return math.fsum(-count * math.log2(count / of_cell[cell]) for (cell, _), count in Counter(known).items())

    def error(self, rows: Part, values: Sequence[float | None]) -> float:
        by_cell: dict[int, list[float]] = {}
        for row in rows:
            value = values[row]
            if value is not None:
                by_cell.setdefault(self.cell(row), []).append(value)
        return math.fsum(
            (value - math.fsum(members) / len(members)) ** 2 for members in by_cell.values() for value in members
        )

    def reduction(self, rows: Part, attribute: int, parts: list[Part]) -> float:
        """By how much a split lowers the weighted imprecision."""
        box = self.box(rows)
        total = 0.0
        for selected, weight in self.uses.boxes:
            before = self.imprecision(rows, box, selected)
            after = 0
            for part in parts:
                codes = [self.median.code(row, attribute) for row in part]
                low, high = list(box[0]), list(box[1])
                low[attribute], high[attribute] = min(codes), max(codes)
                after += self.imprecision(part, (low, high), selected)
            total += weight * (before - after)
        return total

    def box(self, rows: Part) -> Box:
        codes = self.table.codes[rows]
        return codes.min(axis=0).tolist(), codes.max(axis=0).tolist()

    def imprecision(self, rows: Part, box: Box, selected: Box) -> int:
        if any(high < first or low > last for low, high, first, last in zip(*box, *selected, strict=True)):
            return 0
        return sum(
            not all(
                first <= code <= last
                for code, first, last in zip(self.table.codes[row].tolist(), *selected, strict=True)
            )
            for row in rows
        )


# ---- tables and what they are for ----


def random_uses(rule: Rule, table: Table, generator: np.random.Generator) -> Uses:
    rows = len(table.codes)
    kinds = generator.integers(0, 4)
    classes, numbers, boxes = [], [], []
    for _ in range(int(rule == "information-gain") + int(kinds == 0)):
        drawn: list[int | None] = generator.integers(0, generator.integers(1, 5), rows).tolist()
        signal = table.codes[:, int(generator.integers(0, table.codes.shape[1]))]
        for row in np.flatnonzero(signal > np.median(signal)).tolist():
            drawn[row] = 0
        classes.append((with_gaps(drawn, generator), float(generator.choice([1.0, 1.0, 0.5]))))
    for _ in range(int(rule == "regression") + int(kinds == 1)):
        signal = table.codes[:, int(generator.integers(0, table.codes.shape[1]))]
        values: list[float | None] = (generator.normal(0, 1, rows) + signal).tolist()
        numbers.append((with_gaps(values, generator), float(generator.choice([1.0, 1.0, 3.0]))))
    for _ in range(int(generator.integers(1, 4)) if rule == "selection" else 0):
        ends = [sorted(generator.integers(0, domain.size, 2).tolist()) for domain in table.domains]
        for q in range(len(ends)):
            if generator.integers(0, 2):
                ends[q] = [0, table.domains[q].size - 1]
        weight = float(generator.choice([1.0, 2.0, 0.25]))
        boxes.append((([low for low, _ in ends], [high for _, high in ends]), weight))
    cells = None
    if generator.integers(0, 3) == 0 and (classes or numbers):
        cells = np.unique(generator.integers(0, 3, rows), return_inverse=True)[1].tolist()
    return Uses(classes, numbers, cells, boxes, float(generator.choice([0.0, 0.01, 0.1])))


def with_gaps(values: list[Any], generator: np.random.Generator) -> list[Any]:
    if generator.integers(0, 4) == 0:
        for place in generator.choice(len(values), len(values) // 6, replace=False).tolist():
            values[place] = None
    codes = sorted({value for value in values if isinstance(value, int)})
    return [codes.index(value) if isinstance(value, int) else value for value in values]


def classes_of(table: Table, uses: Uses, rule: Rule, requirements: Any) -> list[Part]:
    records = replace(table.records(), workload=uses.coded())
    found = []
    for batch in MondrianMethod(rule=rule).classes(records, requirements, Progress()):
        for low, high, (start, end) in zip(batch.low, batch.high, pairwise(batch.starts), strict=True):
            members = batch.rows[start:end]
            assert table.codes[members].min(axis=0).tolist() == low.tolist()
            assert table.codes[members].max(axis=0).tolist() == high.tolist()
            found.append(sorted(members.tolist()))
    return found


@pytest.mark.not_quick
@each_rule
@both_ways
def test_every_split_is_that_of_exhaustive_search(rule: Rule, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.methods.trees.region_tree.BLOCK", block)
    generator = np.random.default_rng([block, len(rule)])
    several, other_than_median = 0, 0
    for _ in range(70):
        table = random_table(generator, int(generator.integers(1, 45)))
        k = int(generator.integers(1, 6))
        uses, median = random_uses(rule, table, generator), Slow(table, "strict", k)
        expected = SlowRules(table, uses, median).classes(rule)
        assert classes_of(table, uses, rule, requirements_for(k)) == expected
        several += len(expected) > 2
        other_than_median += sorted(expected) != sorted(median.classes())
    assert several > 25
    assert other_than_median > 20


@pytest.mark.slow
@each_rule
@pytest.mark.parametrize("kind", EACH_KIND)
def test_every_split_is_that_of_exhaustive_search_under_any_requirement(rule: Rule, kind: str) -> None:
    generator = np.random.default_rng([len(kind), len(rule)])
    tables, several = 0, 0
    while tables < 12:
        table = with_values(random_table(generator, int(generator.integers(8, 40))), generator)
        median = Slow(table, "strict", int(generator.integers(1, 4)), EACH_KIND[kind])
        if not median.holds(list(range(len(table.codes)))):
            continue
        tables += 1
        uses = random_uses(rule, table, generator)
        expected = SlowRules(table, uses, median).classes(rule)
        found = classes_of(table, uses, rule, requirements_for(median.k, median.asked))
        assert found == expected
        assert all(median.holds(part) for part in found)
        several += len(expected) > 1
    assert several >= 2


@pytest.mark.not_quick
@each_rule
def test_every_split_is_that_of_exhaustive_search_for_persons(rule: Rule) -> None:
    generator = np.random.default_rng(8)
    several = 0
    for _ in range(8):
        table = replace(random_table(generator, 36), persons=generator.integers(0, 14, 36).tolist())
        median = Slow(table, "strict", int(generator.integers(1, 4)))
        uses = random_uses(rule, table, generator)
        expected = SlowRules(table, uses, median).classes(rule)
        assert classes_of(table, uses, rule, requirements_for(median.k, person="p")) == expected
        several += len(expected) > 2
    assert several > 2


def test_the_class_itself_may_be_the_sensitive_value() -> None:
    """Fig. 11: diversity of what is predicted bounds how well it is."""
    generator = np.random.default_rng(1)
    asked: Sequence[Asked] = EACH_KIND["entropy"]
    for _ in range(10):
        table = with_values(random_table(generator, 40), generator)
        median = Slow(table, "strict", 2, asked)
        if not median.holds(list(range(40))):
            continue
        uses = Uses(classes=[(list(table.values), 1.0)])
        expected = SlowRules(table, uses, median).classes("information-gain")
        assert classes_of(table, uses, "information-gain", requirements_for(2, asked)) == expected


# ---- the tree ----


def records_and_tree(rule: Rule, generator: np.random.Generator) -> tuple[Table, Any, NDArray[np.uint32], Records]:
    table = random_table(generator, int(generator.integers(5, 60)))
    uses = random_uses(rule, table, generator)
    records = replace(table.records(), workload=uses.coded())
    tree, rows = MondrianMethod(rule=rule).tree(records, requirements_for(2), Progress())
    return table, tree, rows, records


@pytest.mark.not_quick
@each_rule
def test_regions_tile_the_domain_and_hold_their_records(rule: Rule) -> None:
    generator = np.random.default_rng(4)
    divided = 0
    for _ in range(25):
        table, tree, rows, _ = records_and_tree(rule, generator)
        leaves = np.flatnonzero(tree.attribute < 0)
        sizes = [math.prod((tree.high[leaf].astype(int) - tree.low[leaf] + 1).tolist()) for leaf in leaves]
        assert sum(sizes) == math.prod(domain.size for domain in table.domains)
        anywhere = np.stack([generator.integers(0, domain.size, 50) for domain in table.domains], axis=1)
        for codes in anywhere:
            inside = [leaf for leaf in leaves if (tree.low[leaf] <= codes).all() and (codes <= tree.high[leaf]).all()]
            assert inside == tree.leaves_of(codes[None].astype(table.codes.dtype)).tolist()
        for leaf in leaves:
            members = table.codes[rows[tree.begin[leaf] : tree.end[leaf]]]
            assert (tree.low[leaf] <= members).all()
            assert (members <= tree.high[leaf]).all()
        divided += len(leaves) > 3
    assert divided > 10


@each_rule
def test_the_order_of_the_rows_changes_nothing(rule: Rule) -> None:
    generator = np.random.default_rng(6)
    for _ in range(20):
        table = random_table(generator, 40)
        uses = random_uses(rule, table, generator)
        order = generator.permutation(40)
        moved = replace(table, codes=table.codes[order])
        moved_uses = replace(
            uses,
            classes=[([values[row] for row in order], weight) for values, weight in uses.classes],
            numbers=[([values[row] for row in order], weight) for values, weight in uses.numbers],
            cells=None if uses.cells is None else [uses.cells[row] for row in order],
        )
        found = classes_of(table, uses, rule, requirements_for(2))
        again = [sorted(order[part].tolist()) for part in classes_of(moved, moved_uses, rule, requirements_for(2))]
        assert found == again


def test_a_threshold_lies_at_the_edge_of_a_selection_also_where_no_record_is() -> None:
    """Records to come between the two ages are then in the right region."""
    table = Table(np.array([[0], [1], [7], [8]], np.uint8), [numeric(9)], [1.0])
    uses = Uses(boxes=[(([0], [4]), 1.0)])
    tree, _ = MondrianMethod(rule="selection").tree(
        replace(table.records(), workload=uses.coded()), requirements_for(2), Progress()
    )
    leaves = tree.classes()
    assert [(int(tree.low[leaf, 0]), int(tree.high[leaf, 0])) for leaf in leaves] == [(0, 4), (5, 8)]


# ---- what they are for ----


def agrawal_like(records: int, seed: int) -> pa.Table:
    generator = np.random.default_rng(seed)
    age, salary = generator.integers(20, 81, records), generator.integers(20, 151, records)
    level = generator.integers(0, 5, records)
    young, old = (age < 40) & (salary > 50) & (salary <= 100), (age >= 60) & (salary > 25) & (salary <= 75)
    group = young | old | ((age >= 40) & (age < 60) & (salary > 75) & (salary <= 125))
    return pa.table(
        {
            "age": age,
            "salary": salary,
            "level": [f"e{one}" for one in level],
            "group": ["A" if one else "B" for one in group],
            "hours": salary * 0.5 + generator.normal(0, 1, records),
        }
    )


TABLE = agrawal_like(1000, 7)
ASKS: dict[str, Any] = {
    "quasi_identifiers": ["age", "salary", "level"],
    "other": "keep",
    "accept_linkable": ["hours"],
}


def figures(release: sfumato.Release) -> dict[str, Any]:
    return {task.about: task.values for task in release.losses.tasks}


@pytest.mark.parametrize("k", [5, 25, 60])
def test_a_release_made_for_a_target_tells_more_of_it_than_the_median(k: int) -> None:
    for target, measure in (("group", "entropy"), ("hours", "wmse")):
        made = sfumato.anonymize(TABLE, k=k, target=target, **ASKS)
        median = sfumato.anonymize(TABLE, k=k, target=target, method="mondrian", **ASKS)
        assert figures(made)[target][measure] < 0.8 * figures(median)[target][measure]


@pytest.mark.parametrize("k", [2, 10, 25, 100])
def test_a_release_made_for_a_selection_is_less_imprecise_at_every_k(k: int) -> None:
    where = "age < 40 and salary between 51 and 100"
    made = figures(sfumato.anonymize(TABLE, k=k, select=where, **ASKS))[where]
    median = figures(sfumato.anonymize(TABLE, k=k, select=where, method="mondrian", **ASKS))[where]
    assert made["imprecision"] < median["imprecision"]
    assert k > 25 or made["imprecision"] == 0
    assert made["selected"] == median["selected"] == oracle_selected()


def oracle_selected() -> int:
    return sum(row["age"] < 40 and 51 <= row["salary"] <= 100 for row in TABLE.to_pylist())


def test_auto_takes_the_rule_that_the_workload_asks_for() -> None:
    chosen = {
        "mondrian:information-gain": {"target": "group"},
        "mondrian:regression": {"target": "hours"},
        "mondrian:selection": {"select": "age > 40", "target": "group"},
    }
    for name, flags in chosen.items():
        summary = sfumato.anonymize(TABLE, k=20, **flags, **ASKS).summary()
        assert (summary["method"], summary["chosen"]) == ("auto", name)
    both = sfumato.anonymize(TABLE, k=20, target=["group", "hours"], **ASKS).summary()
    assert both["chosen"] == "mondrian:information-gain"
    assert [(task["task"], task["inferred"]) for task in both["workload"]] == [
        ("classification", True),
        ("regression", True),
    ]


def test_without_gain_enough_the_release_is_that_of_the_median() -> None:
    median = sfumato.anonymize(TABLE, k=10, method="mondrian", **ASKS)
    for target in ("group", "hours"):
        made = sfumato.anonymize(TABLE, k=10, target=target, least_gain=50, **ASKS)
        assert made.data.equals(median.data)
    assert sfumato.anonymize(TABLE, k=10, method="mondrian:median", **ASKS).data.equals(median.data)


def test_features_beside_the_quasi_identifiers_are_known_to_the_learner() -> None:
    """Fig. 3: the class depends on a quasi-identifier only together with a column that is released as it is."""
    generator = np.random.default_rng(2)
    q, f = generator.integers(0, 100, 800), generator.integers(0, 2, 800)
    noise = generator.integers(0, 100, 800)
    table = pa.table({"q": q, "noise": noise, "f": f, "c": np.where((q < 37) ^ (f == 1), "+", "-")})
    asks: dict[str, Any] = {
        "columns": {"q": {"role": "quasi-identifier"}, "noise": {"role": "quasi-identifier"}},
        "other": "keep",
        "privacy": {"k": 200},
    }
    told: dict[str, Any] = {"classification": [{"target": "c"}]}
    with_features = sfumato.Policy.from_dict({**asks, "workload": {**told, "features": ["f"]}})
    without = sfumato.Policy.from_dict({**asks, "workload": told})
    below = {row["q"] for row in sfumato.anonymize(table, with_features).data.to_pylist()}
    assert "[0..36]" in below
    assert "[0..36]" not in {row["q"] for row in sfumato.anonymize(table, without).data.to_pylist()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rules")


@pytest.mark.not_quick
@each_rule
@settings(max_examples=examples(0.5), deadline=None)
@given(asked=diverse_cases(), seed=st.integers(0, 99))
def test_releases_hold_what_is_asked_and_cover_every_value(rule: Rule, asked: Diverse, seed: int, folder: Path) -> None:
    """What the contract asks of every method, with targets and selections that are drawn."""
    generator = np.random.default_rng(seed)
    case = asked.case
    rows = case.table.num_rows
    table = case.table.append_column("label", pa.array(generator.choice(["x", "y", None], rows, p=[0.4, 0.4, 0.2])))
    table = table.append_column("number", pa.array(generator.integers(0, 5, rows)))
    workload: dict[str, Any] = {
        "classification": [{"target": "label"}],
        "regression": [{"target": "number"}],
    }
    if rule == "selection":
        workload["selection"] = [{"where": selectable(case.quasi["q0"], generator)}]
    policy = sfumato.Policy.from_dict({**asked.policy, "workload": workload})
    asks = case.settings(folder)
    asks["accept_linkable"] += ["label", "number"]
    release = sfumato.anonymize(table, policy, method=f"mondrian:{rule}", keep_order=True, **asks)
    before, after = table.to_pylist(), released_rows(release.data)
    assert len(before) == len(after)
    for original, released in zip(before, after, strict=True):
        assert all(column.covers(released[name], original[name]) for name, column in case.columns.items())
        assert released["label"] == original["label"]
    assert oracle.smallest_class(after, list(case.quasi)) == release.audit.smallest_class >= case.k
    assert release.audit.holds


def selectable(quasi: Quasi, generator: np.random.Generator) -> str:
    """A predicate on the first quasi-identifier that one of its values meets, whatever kind it is of."""
    values = [value for value in map(oracle.plain, quasi.values) if value is not None]
    if not values:
        return "q0 = '2020-01-01'" if pa.types.is_temporal(quasi.type) else "q0 = 1"
    text = str(values[int(generator.integers(0, len(values)))]).replace("'", "''")
    operator = generator.choice(["=", ">=", "<"]) if not pa.types.is_string(quasi.type) else "="
    return f"q0 {operator} '{text}'"
