"""The dearest classes of a very large table: which they are, and that forming them anew never loses more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from coded import asking, random_records
from searched_classes import assert_classes, cost_of

import sfumato
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods import method_named
from sfumato.methods.lattice import dear_classes as module
from sfumato.methods.lattice.dear_classes import are_peeled, peeled_anew
from sfumato.methods.method import FAST, ClassBatch, Effort, Records
from sfumato.progress import Progress
from sfumato.requirements import FrequencyDiversity, Requirements

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

NUMBER, CATEGORY, TREE = 0, 2, 3  # kinds of columns of random_records


def cut(records: Records, k: int) -> ClassBatch:
    return ClassBatch.joined(list(method_named("hilbert").classes(records, asking(k), Progress())))


def test_the_loss_never_rises_and_every_class_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    generator, gained = np.random.default_rng(3), 0
    for share in (1, 2, 4, 64):
        monkeypatch.setattr(module, "SHARE", share)
        for _ in range(12):
            records = random_records(generator, 400, (CATEGORY, TREE, NUMBER, TREE))
            before = cut(records, 3)
            after, anew = peeled_anew(before, records, asking(3), Progress())
            assert_classes(after, records, asking(3))
            assert anew <= records.count // share
            assert cost_of(after, records) < cost_of(before, records) if anew else after is before
            gained += anew > 0
    assert gained > 10


def test_only_the_classes_that_cost_most_are_formed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARE", 4)
    records = random_records(np.random.default_rng(5), 600, (CATEGORY, TREE, NUMBER, TREE))
    before = cut(records, 5)
    after, anew = peeled_anew(before, records, asking(5), Progress())

    def price(low: np.ndarray, high: np.ndarray) -> int:
        layout, units = records.costs.layout, records.costs.units
        ends = enumerate(zip(low, high, strict=True))
        return sum(int(attribute_cost(layout, units, q, int(first), int(last))) for q, (first, last) in ends)

    def classes(batch: ClassBatch) -> dict[tuple[int, ...], int]:
        runs = zip(batch.starts, batch.starts[1:], batch.low, batch.high, strict=False)
        return {tuple(sorted(batch.rows[begin:end].tolist())): price(low, high) for begin, end, low, high in runs}

    kept = {rows: cost for rows, cost in classes(before).items() if rows in classes(after)}
    gone = {rows: cost for rows, cost in classes(before).items() if rows not in kept}
    assert anew > 0
    assert sum(map(len, gone)) <= anew <= 150
    assert min(gone.values()) >= np.quantile(list(kept.values()), 0.7)


def test_numbers_and_sensitive_values_are_left_as_they_are() -> None:
    generator = np.random.default_rng(1)
    assert are_peeled(random_records(generator, 50, (NUMBER, TREE)), asking(2))
    assert not are_peeled(random_records(generator, 50, (NUMBER, NUMBER, TREE)), asking(2))
    diverse = Requirements((FrequencyDiversity("illness", 2),))
    assert not are_peeled(random_records(generator, 50, (TREE,)), diverse)


def test_more_columns_leave_fewer_records_to_form_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARE", 2)
    narrow, wide = (random_records(np.random.default_rng(2), 400, (TREE,) * columns) for columns in (8, 16))
    few, fewer = (peeled_anew(cut(records, 3), records, asking(3), Progress())[1] for records in (narrow, wide))
    assert 100 < few <= 200
    assert 0 < fewer <= 100


def test_normal_leaves_it_at_that_above_a_million_records() -> None:
    normal, most = Effort("normal"), 1_000_000
    assert normal.within_patience(most) == normal
    assert normal.within_patience(most + 1) == Effort("fast", peels_dear=True)
    assert FAST.within_patience(most + 1) == FAST
    for thorough in (Effort("balanced"), Effort("fast", seconds=2.0)):
        assert thorough.within_patience(most + 1) == thorough


@pytest.mark.not_quick
def test_the_release_of_a_large_table_says_so_and_is_the_same_on_any_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sfumato.generate("census", 3000, tmp_path / "census.parquet")
    asks = {"data": tmp_path / "census.parquet", "policy": tmp_path / "census.policy.toml", "k": 5}
    monkeypatch.setattr("sfumato.methods.method.LARGE", 2999)
    monkeypatch.setattr("sfumato.methods.lattice.cell_peeling.BLOCK", 200)
    monkeypatch.setattr(module, "SHARE", 3)
    fast, releases = sfumato.anonymize(effort="fast", **asks), []
    for threads in ("1", "3"):
        monkeypatch.setenv("SFUMATO_THREADS", threads)
        releases.append(sfumato.anonymize(**asks))
    once, again = releases
    assert once.data.equals(again.data)
    assert once.audit.holds
    assert once.losses.gcp < fast.losses.gcp
    choice = once.summary()["choice"]
    assert (choice["effort"], 0 < choice["formed_anew"] <= 1000, "ended" in choice) == ("normal", True, False)
