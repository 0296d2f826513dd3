"""What a requirement of another package promises about unions and additions, and who relies on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from itertools import combinations_with_replacement, product
from typing import Any, ClassVar

import numpy as np
import oracle
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import sfumato
import sfumato.methods
import sfumato.methods.line.diverse_cut
import sfumato.requirements
from sfumato.engines.memory import classes as joining_engine
from sfumato.methods.method import ClassBatch, Records
from sfumato.parameters import Parameter, whole_number
from sfumato.progress import Progress
from sfumato.requirements import (
    AlphaAnonymity,
    BetaLikeness,
    ClassCounts,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Histogram,
    KAnonymity,
    RecursiveDiversity,
    Requirement,
    Requirements,
    TCloseness,
    VarianceDiversity,
    Verdict,
    kinds,
)
from sfumato.requirements.conjunction import DISTINCT
from sfumato.requirements.requirement import Condition

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


# ---- three kinds that another package brings ----


@dataclass(frozen=True)
class Crowd(Requirement):
    """Every value of ``attribute`` in a class occurs ``least`` times. Unions keep it; a single record may break it."""

    attribute: str
    least: int
    kind = "crowd"
    parameters: ClassVar = {"least": Parameter(whole_number(1))}
    closed_under_union = True
    closed_under_addition = False

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        histogram = classes.histograms[self.attribute]
        result = np.ones(len(classes.sizes), np.bool_)
        result[histogram.owner[histogram.count < self.least]] = False
        return result

    def verdict(self, classes: ClassCounts) -> Verdict:
        fewest = int(classes.histograms[self.attribute].count.min(initial=classes.sizes.max(initial=0)))
        return Verdict("crowd", bool(self.holds(classes).all()), fewest)


@dataclass(frozen=True)
class Unlike(Requirement):
    """No class has exactly ``size`` records. Two classes may meet it, and their union not."""

    attribute: str
    size: int
    kind = "unlike"
    parameters: ClassVar = {"size": Parameter(whole_number(1))}
    closed_under_union = False
    closed_under_addition = False

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return np.asarray(classes.sizes != self.size)

    def verdict(self, classes: ClassCounts) -> Verdict:
        nearest = int(np.abs(classes.sizes - self.size).min(initial=self.size))
        return Verdict("unlike", nearest > 0, nearest)


@dataclass(frozen=True)
class Varied(Requirement):
    """At least ``least`` values of ``attribute`` in a class. The kernel knows it; further records keep it."""

    attribute: str
    least: int
    kind = "varied"
    parameters: ClassVar = {"least": Parameter(whole_number(1))}
    closed_under_union = True
    closed_under_addition = True

    def condition(self) -> Condition:
        return Condition(DISTINCT, whole=self.least)

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        owner = classes.histograms[self.attribute].owner
        return np.asarray(np.bincount(owner, minlength=len(classes.sizes)) >= self.least)

    def verdict(self, classes: ClassCounts) -> Verdict:
        owner = classes.histograms[self.attribute].owner
        fewest = int(np.bincount(owner, minlength=len(classes.sizes)).min(initial=len(owner)))
        return Verdict("varied", fewest >= self.least, fewest)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kinds and a method are installed, as a package would install them."""
    found = [EntryPoint(one.kind, f"test_closure:{one.__name__}", "sfumato.requirements") for one in OUTSIDE]
    method = EntryPoint("twins", "test_closure:TWINS", "sfumato.methods")
    monkeypatch.setattr(sfumato.requirements, "entry_points", lambda group: found)
    monkeypatch.setattr(sfumato.methods, "entry_points", lambda group: [method])
    kinds.cache_clear()
    sfumato.methods._makers.cache_clear()
    yield
    kinds.cache_clear()
    sfumato.methods._makers.cache_clear()


OUTSIDE: tuple[type[Requirement], ...] = (Crowd, Unlike, Varied)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the watched functions, in the order in which they were called."""
    called: list[str] = []

    def watch(module: Any, name: str) -> None:
        original: Callable[..., Any] = getattr(module, name)

        def watched(*arguments: Any) -> Any:
            called.append(name)
            return original(*arguments)

        monkeypatch.setattr(module, name, watched)

    watch(joining_engine, "join_failing")
    watch(sfumato.methods.line.diverse_cut, "best_windows")
    watch(sfumato.methods.line.diverse_cut, "best_runs")
    return called


# ---- the definitions ----


def counted(values: str) -> ClassCounts:
    """One class of records with these values of ``s``."""
    names = sorted(set("abc"))
    codes = np.array([names.index(value) for value in values])
    times = np.bincount(codes, minlength=len(names))
    value = np.flatnonzero(times)
    share = np.full(len(names), 1 / len(names))
    numbers = np.arange(len(names), dtype=np.float64)
    histogram = Histogram(np.zeros(len(value), np.int64), times[value], value, share, numbers)
    return ClassCounts(np.array([len(values)]), {"s": histogram})


def every_class(most: int) -> list[str]:
    return ["".join(values) for size in range(1, most + 1) for values in product("abc", repeat=size)]


DECLARED: list[Requirement] = [
    KAnonymity(3),
    FrequencyDiversity("s", 2),
    DistinctDiversity("s", 2),
    EntropyDiversity("s", 2),
    RecursiveDiversity("s", 2, 2),
    VarianceDiversity("s", 0.9),
    TCloseness("s", 0.4),
    TCloseness("s", 0.3, "ordered"),
    AlphaAnonymity("s", 0.6),
    BetaLikeness("s", 0.6),
    BetaLikeness("s", 2, enhanced=True),
    DeltaDisclosure("s", 0.5),
    Crowd("s", 2),
    Unlike("s", 4),
    Varied("s", 2),
]


def test_no_kind_is_left_out_here() -> None:
    assert {one.kind for one in DECLARED} == {KAnonymity.kind, *kinds()}


@pytest.mark.parametrize("requirement", DECLARED, ids=str)
def test_every_kind_keeps_what_it_declares(requirement: Requirement) -> None:
    everything = every_class(4)
    held = [values for values in everything if requirement.holds(counted(values)).all()]
    assert 0 < len(held) < len(everything)
    kept = all(requirement.holds(counted(one + other)).all() for one, other in combinations_with_replacement(held, 2))
    longer = all(requirement.holds(counted(one + more)).all() for one in held for more in "abc")
    assert (kept, longer) == (requirement.closed_under_union, requirement.closed_under_addition)


def test_requirements_are_closed_under_union_if_all_are_and_no_values_of_persons_are_counted() -> None:
    closed, k = Crowd("s", 2), KAnonymity(2)
    assert Requirements((k, closed)).closed_under_union
    assert Requirements((k,), person="p").closed_under_union
    assert not Requirements((k, closed), person="p").closed_under_union
    assert not Requirements((k, closed, Unlike("s", 4))).closed_under_union


# ---- unions: classes that show the same are one in the release ----


class Twins:
    """A method whose neighbouring classes, of two records each, show the same in pairs."""

    name, paper, summary, use, separates = "twins", "", "", "never", False

    def check(self, requirements: Requirements) -> None:
        return

    def meets(self, requirements: Requirements) -> bool:
        return True

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        at = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
        starts = np.append(np.arange(0, records.count - 1, 2), records.count)
        low = np.minimum.reduceat(records.codes[at], starts[:-1], axis=0)
        high = np.maximum.reduceat(records.codes[at], starts[:-1], axis=0)
        yield ClassBatch(records.rows, starts, low, high)


TWINS = Twins()

# Classes of 2, 2 and 3 records; the first two show the same, so that the release has classes of 4 and 3.
SEVEN = pa.table({"age": [1, 1, 1, 1, 7, 8, 9], "s": list("ababaab")})


def asks(require: str) -> dict[str, Any]:
    return {"quasi_identifiers": ["age"], "sensitive": "s", "k": 1, "require": require}


def test_what_unions_keep_is_not_tested_again(calls: list[str]) -> None:
    release = sfumato.anonymize(SEVEN, **asks("crowd(s, least=1)"), method="twins")
    assert calls == []
    assert release.audit.classes == 2


def test_what_unions_may_break_is_joined_until_it_holds(monkeypatch: pytest.MonkeyPatch, calls: list[str]) -> None:
    release = sfumato.anonymize(SEVEN, **asks("unlike(s, size=4)"), method="twins")
    assert calls == ["join_failing"]
    assert [len(rows) for rows in oracle.classes(release.data.to_pylist(), ["age"]).values()] == [7]
    # A kind that promises more than it keeps makes no release.
    monkeypatch.setattr(Unlike, "closed_under_union", True)
    with pytest.raises(sfumato.AuditError, match="unlike"):
        sfumato.anonymize(SEVEN, **asks("unlike(s, size=4)"), method="twins")
    assert calls == ["join_failing"]


def specialised(require: str, table: pa.Table) -> sfumato.Release:
    return sfumato.anonymize(
        table, quasi_identifiers=["a", "b"], sensitive="y", target="y", k=1, require=require, method="tds"
    )


# Parted by ``a`` alone the classes have 4 and 6 records, by ``b`` alone 5 and 5, by both 2, 2, 3 and 3.
GRID = pa.table(
    {
        "a": [0] * 4 + [1] * 6,
        "b": [0, 0, 1, 1, 0, 0, 0, 1, 1, 1],
        "y": list("pppp" + "pqqqqq"),
    }
)  # fmt: skip


def sizes(release: sfumato.Release, key: list[str]) -> list[int]:
    return sorted(len(rows) for rows in oracle.classes(release.data.to_pylist(), key).values())


def test_top_down_specialization_meets_any_kind_that_unions_keep(
    monkeypatch: pytest.MonkeyPatch, calls: list[str]
) -> None:
    release = specialised("crowd(y, least=2)", GRID)
    assert calls == []
    rows = release.data.to_pylist()
    for one in oracle.classes(rows, ["a", "b"]).values():
        assert all([row["y"] for row in one].count(row["y"]) >= 2 for row in one)
    monkeypatch.setattr(Crowd, "closed_under_union", False)
    assert specialised("crowd(y, least=2)", GRID).data.equals(release.data)
    assert calls == ["join_failing"]


def test_top_down_specialization_tries_again_what_unions_may_break(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sizes(specialised("unlike(y, size=4)", GRID), ["a", "b"]) == [2, 2, 3, 3]
    monkeypatch.setattr(Unlike, "closed_under_union", True)
    assert sizes(specialised("unlike(y, size=4)", GRID), ["a", "b"]) == [5, 5]


def test_the_disk_engine_refuses_what_unions_may_break() -> None:
    flags = asks("unlike(s, size=4)") | {"engine": "disk", "method": "hilbert"}
    with pytest.raises(sfumato.UsageError, match="that a union of classes may break"):
        sfumato.anonymize(SEVEN, **flags)
    release = sfumato.anonymize(SEVEN, **flags | {"require": "crowd(s, least=1)"})
    assert release.audit.holds


# ---- additions: the cut of a line ----


@pytest.mark.parametrize(("declared", "way"), [(True, "best_runs"), (False, "best_windows")])
def test_a_line_is_cut_into_the_best_runs_where_additions_keep_a_requirement(
    declared: bool, way: str, monkeypatch: pytest.MonkeyPatch, calls: list[str]
) -> None:
    monkeypatch.setattr(Varied, "closed_under_addition", declared)
    generator = np.random.default_rng(5)
    table = pa.table({"age": generator.integers(0, 90, 60), "s": generator.choice(list("aaabc"), 60)})
    release = sfumato.anonymize(table, **asks("varied(s, least=2)"), method="hilbert")
    assert calls == [way]
    rows = release.data.to_pylist()
    assert min(len({row["s"] for row in one}) for one in oracle.classes(rows, ["age"]).values()) >= 2
    assert release.audit.classes > 5
    own = sfumato.anonymize(table, **asks("distinct(s, l=2)"), method="hilbert")
    assert release.losses.gcp == pytest.approx(own.losses.gcp)
