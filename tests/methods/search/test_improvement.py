"""Search for less loss: every class holds at any moment, loss only falls, and small tables come to their optimum."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from coded import asking, random_records
from numpy.typing import NDArray
from pyarrow import csv
from searched_classes import KINDS, assert_classes, cost_of, feasible, first_classes, optimum

import sfumato
from sfumato.api import anonymize_to_file
from sfumato.cli import main
from sfumato.cli.progress_bar import StoppableProgress
from sfumato.kernels import threads as kernel_threads
from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.class_counting import Counting
from sfumato.methods.clustering.agglomeration import agglomerate, cluster_space
from sfumato.methods.search.improvement import Improvement, SearchLimits, reweighted
from sfumato.methods.search.mutable_classes import SearchPart, SearchRules
from sfumato.methods.search.shortfall import shortfall_tests
from sfumato.policy import merge_flags
from sfumato.progress import Progress

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_classes_hold_and_the_loss_falls_by_what_is_said_to_be_gained(kind: str, k: int) -> None:
    tables, could_be_better = feasible(kind, k, 1), 0
    for _ in range(12):
        records, requirements = next(tables)
        start = first_classes(records, requirements)
        improvement, first_cost = Improvement(start, records, requirements), cost_of(start, records)
        cost = first_cost
        for number in range(3):
            gained = improvement._round(number, lambda: False, Progress())
            batch = improvement.batch
            assert_classes(batch, records, requirements)
            assert cost_of(batch, records) == cost - gained
            cost -= gained
        # Nothing is lost, two classes may be the best ones, and so may those of records that lie in one line.
        varying = np.count_nonzero(np.ptp(records.codes, axis=0))
        if first_cost > 0 and len(start.low) > 2 and varying > 1:
            could_be_better += 1
            assert cost < first_cost
    assert could_be_better >= 6 or (kind, k) == ("k", 1)  # where every record is a class of its own


def test_small_tables_come_to_their_optimum() -> None:
    generator = np.random.default_rng(11)
    reached = 0
    for _ in range(40):
        records = random_records(generator, 9)
        k = int(generator.integers(2, 4))
        improvement = Improvement(first_classes(records, asking(k)), records, asking(k))
        improvement.improve(SearchLimits(30), Progress())
        found, best = cost_of(improvement.batch, records), optimum(records, asking(k))
        assert found >= best
        reached += found == best
    assert reached >= 30


def test_the_same_seed_gives_the_same_classes_whatever_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(np.random.default_rng(5), 600)
    found = []
    for threads in (1, 2, 4):
        monkeypatch.setattr(kernel_threads, "thread_count", lambda threads=threads: threads)
        improvement = Improvement(first_classes(records, asking(3)), records, asking(3))
        improvement.improve(SearchLimits(3), Progress())
        found.append((improvement.batch.rows.tolist(), improvement.batch.starts.tolist()))
    assert found[0] == found[1] == found[2]


def test_it_ends_at_once_with_what_it_has_when_a_person_stops_it_or_the_time_is_over() -> None:
    records = random_records(np.random.default_rng(6), 400)
    start = first_classes(records, asking(4))
    stopped = Progress()
    stopped.stopped = True
    for progress, limits, words in (
        (stopped, SearchLimits(50), "interrupted"),
        (Progress(), SearchLimits(50, 0.0), "the time was over"),
    ):
        improvement = Improvement(start, records, asking(4))
        assert words in improvement.improve(limits, progress)
        assert_classes(improvement.batch, records, asking(4))
        assert cost_of(improvement.batch, records) == cost_of(start, records)


def test_it_settles_where_nothing_is_to_be_gained(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(np.random.default_rng(8), 60, kinds_of=[1])
    improvement = Improvement(first_classes(records, asking(2)), records, asking(2))
    assert improvement.improve(SearchLimits(1 << 20), Progress()) == "settled after 80 rounds"
    monkeypatch.setattr("sfumato.methods.search.improvement.SMALL", 60)
    assert improvement.improve(SearchLimits(50), Progress()) == "settled after 5 rounds"


def test_classes_with_too_many_records_are_not_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(np.random.default_rng(5), 600)
    monkeypatch.setattr("sfumato.methods.search.improvement.LARGE", 0)
    costs = []
    for most in (0, 600):
        monkeypatch.setattr("sfumato.methods.search.improvement.MOST_REBUILT", most)
        improvement = Improvement(first_classes(records, asking(3)), records, asking(3))
        improvement._round(1, lambda: False, Progress())
        assert_classes(improvement.batch, records, asking(3))
        costs.append(improvement.cost)
    assert costs[0] > costs[1]


@kernel
def agglomerated(part, asked, tests, clusters, owner):
    """A way in from Python."""
    (codes, values), (layout, units, least), (lack, space, real) = part, asked, tests
    after, facts, box = clusters
    return agglomerate(codes, values, layout, units, least, lack, space, real, after, facts, box, owner)


@pytest.mark.parametrize("kind", KINDS)
def test_agglomeration_makes_classes_that_hold(kind: str) -> None:
    tables = feasible(kind, 3, 2)
    several = 0
    for _ in range(20):
        records, requirements = next(tables)
        rows = records.rows
        at = np.repeat(np.arange(len(records.codes)), np.diff(records.starts))
        values: NDArray[np.uint32] = records.sensitive["s"].codes[rows][:, None]
        tests = Counting(records, requirements).conjunction()
        some = np.ascontiguousarray(values if KINDS[kind] else values[:, :0])
        part = SearchPart(records.codes[at].astype(np.int64), some)
        owner = np.empty(len(rows), np.int64)
        asked = SearchRules(records.costs.layout, records.costs.units, 3)
        clusters = cluster_space(len(rows), part.codes.shape[1])
        count = agglomerated(part, asked, shortfall_tests(len(rows), tests), clusters, owner)
        order = np.argsort(owner, kind="stable")
        sizes = np.bincount(owner)
        assert len(sizes) == count
        starts = np.append(0, np.cumsum(sizes))
        assert requirements.holds(Counting(records, requirements).runs(rows[order], starts)).all()
        several += count > 2
    assert several > 8


def test_weights_leave_the_codes_of_a_climb_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.losses.exact_costs.TABLE_LIMIT", 3)
    records = random_records(np.random.default_rng(2), 40, kinds_of=[0, 2, 3])
    heavy = reweighted(records.costs, np.array([2.0, 3.0, 0.5]))
    for q, weight in enumerate((2.0, 3.0, 0.5)):
        for low in range(records.domains[q].size):
            for high in range(low, records.domains[q].size):
                before = attribute_cost(records.costs.layout, records.costs.units, q, low, high)
                after = attribute_cost(heavy.layout, heavy.units, q, low, high)
                assert abs(after - before * weight) <= 2


# ---- the default method ----


def people(count: int) -> pa.Table:
    generator = np.random.default_rng(count)
    return pa.table(
        {
            "age": generator.integers(18, 90, count),
            "income": generator.integers(10, 200, count),
            "sex": generator.choice(["f", "m"], count),
            "job": generator.choice([f"{a}{b}" for a in "abcd" for b in "xyz"], count),
            "illness": generator.choice(["flu", "cold", "gout", "acne"], count),
        }
    )


ASKS: dict[str, Any] = {"quasi_identifiers": ["age", "income", "sex", "job"], "sensitive": "illness", "k": 4}


@pytest.mark.not_quick
def test_the_default_has_the_least_loss_of_its_lines_and_search_has_less() -> None:
    table = people(400)
    names = ("hilbert", "snake-hilbert", "gain-tree")
    lines = {name: sfumato.anonymize(table, method=name, **ASKS).losses.gcp for name in names}
    fast = sfumato.anonymize(table, effort="fast", **ASKS)
    assert fast.losses.gcp == min(lines.values())
    told = fast.summary()
    assert told["method"] == "auto"
    assert told["chosen"] == min(lines, key=lambda name: lines[name])
    assert told["choice"]["tried"] == pytest.approx(lines, abs=1e-5)
    balanced = sfumato.anonymize(table, effort="balanced", **ASKS)
    best = sfumato.anonymize(table, effort="best", **ASKS)
    assert best.losses.gcp <= balanced.losses.gcp < fast.losses.gcp
    assert balanced.summary()["choice"]["ended"]


@pytest.mark.not_quick
@pytest.mark.parametrize("l", [None, 3])
def test_the_effort_normal_searches_as_long_as_patience_lasts(l: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    table = people(400)
    fast, normal = (sfumato.anonymize(table, l=l, effort=effort, **ASKS) for effort in ("fast", "normal"))
    assert normal.audit.holds
    assert normal.losses.gcp < fast.losses.gcp
    assert normal.summary()["choice"]["ended"] == ("6 rounds" if l else "12 rounds")
    monkeypatch.setattr("sfumato.methods.method.LARGE", 399)
    assert sfumato.anonymize(table, l=l, effort="normal", **ASKS).data.equals(fast.data)
    assert sfumato.anonymize(table, l=l, effort="balanced", **ASKS).losses.gcp < fast.losses.gcp


def test_a_release_is_searched_for_with_the_effort_normal_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = people(120)
    usual, fast, normal = (sfumato.anonymize(table, effort=effort, **ASKS) for effort in (None, "fast", "normal"))
    assert usual.data.equals(normal.data)
    assert usual.losses.gcp < fast.losses.gcp
    assert [release.summary()["choice"]["effort"] for release in (usual, fast)] == ["normal", "fast"]
    csv.write_csv(table, tmp_path / "people.csv")
    columns = [f"--quasi-identifiers={','.join(ASKS['quasi_identifiers'])}", "--sensitive=illness", "-k4"]
    assert main(["anonymize", str(tmp_path / "people.csv"), "-o", str(tmp_path / "release.csv"), *columns]) == 0
    assert ", effort normal, engine memory, " in capsys.readouterr().out


@pytest.mark.not_quick
def test_search_keeps_every_requirement_and_gives_the_same_bytes_again() -> None:
    table = people(300)
    once, again = (sfumato.anonymize(table, l=3, effort="balanced", **ASKS) for _ in range(2))
    assert once.data.equals(again.data)
    assert once.audit.holds
    other = sfumato.anonymize(table, l=3, effort="balanced", seed=5, **ASKS)
    assert other.audit.holds


def test_what_is_joined_afterwards_is_not_searched() -> None:
    table = people(200).append_column("who", pa.array(range(200)))
    release = sfumato.anonymize(table, person="who", l=2, effort="balanced", **ASKS)
    assert release.audit.holds
    assert "ended" not in release.summary()["choice"]


def test_k_persons_are_kept_by_the_search() -> None:
    table = people(300).append_column("who", pa.array([row // 3 for row in range(300)]))
    fast, searched = (sfumato.anonymize(table, person="who", effort=effort, **ASKS) for effort in ("fast", "balanced"))
    assert searched.audit.holds
    assert "ended" in searched.summary()["choice"]
    assert searched.losses.gcp < fast.losses.gcp


def test_seconds_end_the_search() -> None:
    release = sfumato.anonymize(people(200), seconds=0.05, **ASKS)
    assert release.audit.holds
    ended = release.summary()["choice"]["ended"]
    assert "the time was over" in ended or "settled" in ended


def test_an_interruption_takes_what_was_found_and_the_next_one_ends_the_run(tmp_path: Path) -> None:
    policy = merge_flags(None, effort="best", seconds=600, **ASKS)
    before = signal.getsignal(signal.SIGINT)

    class Interrupted(StoppableProgress):
        def __init__(self, times: int) -> None:
            super().__init__()
            self.stopped = False
            self.times = times

        def advance(self, steps: int) -> None:
            if self._previous_handler is not None and not self.stopped:
                for _ in range(self.times):
                    os.kill(os.getpid(), signal.SIGINT)
                    while not self.stopped:  # the main thread heeds it in its own time, and two at once as one
                        time.sleep(0.001)

    progress = Interrupted(times=1)
    release = anonymize_to_file(people(300), policy, tmp_path / "release.csv", progress)
    assert "interrupted" in release.summary()["choice"]["ended"]
    assert sfumato.audit(tmp_path / "release.csv").holds
    progress = Interrupted(times=2)
    with pytest.raises(KeyboardInterrupt):
        anonymize_to_file(people(3000), policy, tmp_path / "second.csv", progress)
    assert [path.name for path in tmp_path.iterdir() if "second" in path.name] == []
    assert signal.getsignal(signal.SIGINT) is before


def test_outliers_are_left_out_before_the_search() -> None:
    near = np.random.default_rng(3).integers(0, 40, (120, 3))
    table = pa.table({name: np.append(near[:, q], 1000) for q, name in enumerate("abc")})
    asks: dict[str, Any] = {"quasi_identifiers": ["a", "b", "c"], "k": 4, "max_suppressed": 0.05}
    quick, searched = (sfumato.anonymize(table, effort=effort, **asks) for effort in ("fast", "balanced"))
    assert searched.audit.holds
    assert searched.losses.gcp < quick.losses.gcp
    assert quick.losses.suppressed == searched.losses.suppressed == 1


def test_above_the_sample_lines_are_tried_on_a_part_of_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sfumato.methods.auto.WHOLE", 100)
    monkeypatch.setattr("sfumato.methods.auto.EXACT", 449)
    monkeypatch.setattr("sfumato.methods.auto.SAMPLE", 100)
    table = people(450)
    release = sfumato.anonymize(table, effort="fast", **ASKS)
    chosen = release.summary()["chosen"]
    assert release.losses.gcp == sfumato.anonymize(table, method=chosen, **ASKS).losses.gcp
    assert release.summary()["choice"]["tried_on"] == 90
    assert chosen != "hilbert"
    assert release.summary()["choice"]["exact"] is False
    assert sfumato.anonymize(people(100), **ASKS).summary()["choice"]["tried_on"] == 100
    said = "chosen on 90 of the records: on those, and only on those, hilbert is known not to lose less"
    columns = [f"--quasi-identifiers={','.join(ASKS['quasi_identifiers'])}", "--sensitive=illness", "-k4"]
    for exact, times in ((449, 1), (450, 0)):
        monkeypatch.setattr("sfumato.methods.auto.EXACT", exact)
        csv.write_csv(table, tmp_path / "people.csv")
        assert main(["anonymize", str(tmp_path / "people.csv"), "-o", str(tmp_path / f"{exact}.csv"), *columns]) == 0
        assert " ".join(capsys.readouterr().out.split()).count(said) == times


@pytest.mark.parametrize("asks", [{"k": 3}, {"k": 3, "l": 2}])
def test_what_is_best_on_a_sample_gives_way_to_hilbert_where_that_has_less_loss_on_all(
    asks: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.methods.auto.WHOLE", 30)
    monkeypatch.setattr("sfumato.methods.auto.SAMPLE", 30)
    gave_way = 0
    for seed in range(12):
        generator = np.random.default_rng(seed)
        table = pa.table({name: generator.integers(0, 60, 150) for name in "ab"} | {"s": generator.integers(0, 5, 150)})
        given: dict[str, Any] = {"quasi_identifiers": ["a", "b"], "sensitive": "s", **asks}
        release = sfumato.anonymize(table, **given)
        choice = release.summary()["choice"]
        assert choice["exact"] is True
        assert choice["tried_on"] == 30
        assert release.losses.gcp <= sfumato.anonymize(table, method="hilbert", **given).losses.gcp
        gave_way += choice["start"] == "hilbert" != min(choice["tried"], key=choice["tried"].get)
    assert gave_way > 0


@pytest.mark.not_quick
@pytest.mark.parametrize("effort", ["fast", "balanced"])
@pytest.mark.parametrize("asks", [{"k": 200}, {"k": 2, "l": 3}, {"k": 2, "require": ["t-closeness(illness, t=0.01)"]}])
def test_what_a_sample_cannot_meet_is_tried_on_all(
    asks: dict[str, Any], effort: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.methods.auto.WHOLE", 100)
    monkeypatch.setattr("sfumato.methods.auto.SAMPLE", 50)
    table = people(450)
    evenly = table.set_column(4, "illness", pa.array(["flu", "cold", "gout"] * 150))
    release = sfumato.anonymize(evenly, effort=effort, **{**ASKS, **asks})
    assert release.audit.holds
    tried = release.summary()["choice"]["tried"]
    if "k" in asks and asks["k"] == 200:  # so these are the losses of the whole table
        for name in tried:
            assert tried[name] == pytest.approx(
                sfumato.anonymize(evenly, method=name, **{**ASKS, **asks}).losses.gcp, abs=1e-5
            )
