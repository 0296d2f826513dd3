"""Records that are left out because the others then lose less: which, how many, and at what price."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Case, cases

import sfumato
from sfumato.cli import main
from sfumato.methods import outlier_search

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


def people(ages: list[int], **columns: list[Any]) -> pa.Table:
    return pa.table({"age": ages, "row": range(len(ages)), **columns})


def asks(**flags: Any) -> dict[str, Any]:
    return {
        "quasi_identifiers": "age",
        "other": "keep",
        "accept_linkable": ["row"],
        "method": "hilbert",
        **flags,
    }


def rows_left_out(release: sfumato.Release, count: int) -> set[int]:
    return set(range(count)) - set(release.data["row"].to_pylist())


# Three tight classes, and three far records that share a class which costs each of them 600 of 1,000.
CLUSTERS = people([0, 1, 2, 20, 21, 22, 40, 41, 42, 400, 700, 1000])


@pytest.mark.parametrize(("cost", "gone"), [(1.0, set()), (0.7, set()), (0.5, {9, 10, 11}), (0.0, {9, 10, 11})])
def test_a_dear_class_goes_as_a_whole_where_its_records_cost_more_than_the_price(cost: float, gone: set[int]) -> None:
    release = sfumato.anonymize(CLUSTERS, **asks(k=3, max_suppressed=0.25, suppression_cost=cost))
    assert rows_left_out(release, 12) == gone
    loss = 18 / 1000 + (0 if gone else 3 * 600 / 1000)
    assert release.losses.cost == pytest.approx((loss + cost * len(gone)) / 12)
    assert release.losses.gcp_released == pytest.approx(loss / (12 - len(gone)))


def test_of_several_outliers_those_go_that_gain_most() -> None:
    table = people([*range(20), 200, 500, 1000])
    for allowed, gone in ((1, {22}), (2, {21, 22}), (3, {20, 21, 22})):
        release = sfumato.anonymize(table, **asks(k=5, max_suppressed=allowed / 23, suppression_cost=0.1))
        assert rows_left_out(release, 23) == gone
    # Neither of two equal outliers gains anything alone.
    release = sfumato.anonymize(people([*range(20), 900, 900]), **asks(k=5, max_suppressed=0.1, suppression_cost=0.5))
    assert rows_left_out(release, 22) == {20, 21}


def test_records_that_cost_nothing_to_leave_out_stay_if_that_gains_nothing() -> None:
    release = sfumato.anonymize(people([30] * 10 + [70] * 10), **asks(k=5, max_suppressed=0.5, suppression_cost=0))
    assert release.audit.records == 20


SPREAD = st.lists(st.sampled_from([*range(10), 60, 61, 200, 999]), min_size=4, max_size=9)


@settings(max_examples=40)
@given(ages=SPREAD, allowed=st.integers(1, 3), cost=st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]))
def test_leaving_out_never_costs_more_than_leaving_out_nobody_nor_less_than_the_best(
    ages: list[int], allowed: int, cost: float
) -> None:
    flags = asks(k=2, max_suppressed=allowed / len(ages))
    release = sfumato.anonymize(people(ages), **flags, suppression_cost=cost)
    assert release.losses.suppressed <= allowed
    assert release.losses.cost <= sfumato.anonymize(people(ages), **asks(k=2)).losses.gcp + 1e-8
    assert release.losses.cost >= least_cost(sorted(ages), allowed, cost) - 1e-8
    assert oracle.smallest_class(release.data.to_pylist(), ["age"]) >= 2


def least_cost(ages: list[int], allowed: int, cost: float) -> float:
    """The least cost of all ways to leave some out and to cut the others, in order, into classes of two or three."""
    extent = max(ages) - min(ages) or 1

    def least(left: tuple[int, ...]) -> float:
        if not left:
            return 0.0
        sizes = [size for size in (2, 3) if size <= len(left)]
        return min((size * (left[size - 1] - left[0]) / extent + least(left[size:]) for size in sizes), default=np.inf)

    ways = (
        least(tuple(stay)) + cost * gone for gone in range(allowed + 1) for stay in combinations(ages, len(ages) - gone)
    )
    return min(ways) / len(ages)


@pytest.mark.not_quick
@settings(max_examples=25)
@given(
    case=cases(rows=24, columns=3, others=False),
    cost=st.sampled_from([0.0, 0.3, 0.7]),
    share=st.sampled_from([0.1, 0.4]),
    method=st.sampled_from(["auto", "mondrian", "hilbert"]),
)
def test_every_release_holds_and_its_figures_are_those_of_the_oracle(
    case: Case, cost: float, share: float, method: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    flags = {**case.settings(tmp_path_factory.mktemp("t")), "method": method}
    count = case.table.num_rows
    release = sfumato.anonymize(case.table, **flags, max_suppressed=share, suppression_cost=cost)
    rows = release.data.to_pylist()
    assert count - len(rows) <= share * count + 1e-9
    assert oracle.smallest_class(rows, list(case.columns)) >= case.k
    true = oracle.losses(count, rows, case.columns, case.k, case.weights, suppression_cost=cost)
    for name in ("gcp", "gcp_released", "cost"):
        assert release.losses.values[name] == pytest.approx(float(true[name])), name
    assert release.losses.cost <= sfumato.anonymize(case.table, **flags).losses.gcp + 1e-8


@pytest.mark.parametrize("effort", ["fast", "normal", pytest.param("balanced", marks=pytest.mark.not_quick)])
def test_the_order_of_the_rows_does_not_matter_and_effort_never_costs_more_than_leaving_out_nobody(effort: str) -> None:
    generator = np.random.default_rng(3)
    ages = [*generator.integers(20, 60, 70).tolist(), *generator.integers(60, 500, 10).tolist()]
    table = pa.table({"age": ages, "weight": generator.integers(0, 40, 80), "ill": ["yes", "no"] * 40})
    flags: dict[str, Any] = {
        "quasi_identifiers": ["age", "weight"],
        "sensitive": "ill",
        "k": 4,
        "require": "distinct(ill, l=2)",
        "effort": effort,
    }
    limited = {**flags, "max_suppressed": 0.1, "suppression_cost": 0.3}
    release = sfumato.anonymize(table, **limited)
    shuffled = table.take(pa.array(generator.permutation(80)))
    assert sfumato.anonymize(shuffled, **limited).data.equals(release.data)
    assert 0 < release.losses.suppressed <= 8
    assert release.losses.cost < sfumato.anonymize(table, **flags).losses.gcp
    assert oracle.fewest_values(release.data.to_pylist(), ["age", "weight"], "ill") == 2


@pytest.mark.not_quick
def test_a_hospital_export_loses_less_on_what_stays(tmp_path: Path) -> None:
    sfumato.generate("hospital", 2000, tmp_path / "patients.csv")
    policy = sfumato.Policy.load(tmp_path / "patients.policy.toml")
    whole = sfumato.anonymize(tmp_path / "patients.csv", policy).losses
    found = sfumato.anonymize(tmp_path / "patients.csv", policy, max_suppressed=0.05, suppression_cost=0.3).losses
    assert found.suppressed == 100
    assert found.gcp_released < 0.97 * whole.gcp
    assert found.cost < whole.cost


# ---- the lines of rows ----


def saved(ages: list[int], sizes: list[int], price: int) -> list[float]:
    """What the stretch of each row saves, where a box costs its extent."""
    top = max(ages) + 1
    units = np.concatenate([np.arange(top), np.arange(top)])
    layout = np.array([[0, 0, top, top]])
    starts = np.append(0, np.cumsum(sizes))
    codes = np.arange(top, dtype=np.uint16)[:, None]
    return outlier_search.stretch_savings(codes, np.array(ages), starts, price, layout, units).tolist()


def test_rows_of_a_stretch_share_what_they_save() -> None:
    # Without 90 each of the other three saves 80 and it saves 90 itself; then 10 and the rest save less than the price.
    assert saved([0, 5, 10, 90], [4], price=20) == [0, 0, 0, 330]
    # First 0 goes, which narrows the box from 90 to 30, then 90, which narrows it to 2.
    assert saved([0, 60, 61, 62, 90], [5], price=40) == [450 - 4 * 30, 0, 0, 0, 4 * 30 - 3 * 2]
    # Of each class, as many rows as save more than the price; nothing is left to save on the last row of the first.
    assert saved([0, 50, 100, 200, 201], [3, 2], price=90) == [200, 100, 0, 0, 0]


def test_a_class_with_more_rows_than_are_peeled_goes_as_a_whole_only_if_it_is_dear() -> None:
    ages = [0, 100] * outlier_search.PEELED
    assert saved(ages, [len(ages)], price=99) == [100.0] * len(ages)
    assert saved(ages, [len(ages)], price=100) == [0.0] * len(ages)


# ---- what is told ----


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("age\n" + "".join(f"{age}\n" for age in CLUSTERS["age"].to_pylist()))
    return tmp_path


FLAGS = ["table.csv", "-o", "release.csv", "--quasi-identifiers", "age", "-k", "3", "--method", "hilbert"]
LIMITED = ["anonymize", *FLAGS, "--max-suppressed", "0.25"]


def test_a_run_says_what_a_lower_cost_would_leave_out_and_gain(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LIMITED, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["suppressed"], found["suppression_cost"], found["cost"]) == (0, 1.0, found["gcp"])
    assert [other["suppression_cost"] for other in found["other_costs"]] == [0.5, 0.2, 0.1, 0.05, 0.0]
    # Nine records of 2 / 1000 instead of twelve that lose 1.818 together.
    gain = 1 - (18 / 9) / (1818 / 12)
    assert found["other_costs"][0] == {"suppression_cost": 0.5, "suppressed": 3, "gain": pytest.approx(gain, abs=1e-5)}
    assert {"other_costs", "cost", "gcp_released"} <= set(found["private_figures"])
    assert main(LIMITED) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "at a suppression cost of 0.5, about 3 records (25.00%) would be left out, and the others would lose" in text
    assert text.count("at a suppression cost") == 1  # lower costs would leave out the same records
    assert main([*LIMITED, "--suppression-cost", "0.5"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "at a suppression cost" not in text
    assert "the released records lose 0.2%. With a record that was left out counted as 0.5 instead of 1" in text


def test_the_certificate_has_the_cost_and_nothing_measured_against_the_original(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*LIMITED, "--suppression-cost", "0.5"]) == 0
    certificate = json.loads(Path("release.csv.sfumato.json").read_text())
    assert (certificate["suppression_cost"], certificate["suppressed"]) == (0.5, 3)
    assert certificate["policy"]["release"]["suppression_cost"] == 0.5
    # Nine records of 2 / 42, the released extent, and three that count 1/2.
    assert certificate["blur_cost"] == pytest.approx((9 * 2 / 42 + 1.5) / 12)
    assert {"cost", "gcp", "gcp_released", "other_costs"}.isdisjoint(certificate)
    capsys.readouterr()
    assert main(["measure", "table.csv", "release.csv", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["cost"] == pytest.approx((18 / 1000 + 1.5) / 12)
    assert measured["suppression_cost"] == 0.5
    assert {"cost", "gcp_released"} <= set(measured["private_figures"])


@pytest.mark.parametrize("value", ["1.5", "-0.1", "true", '"some"', "nan", "inf"])
def test_a_cost_is_a_number_from_0_to_1(value: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(f"[release]\nsuppression_cost = {value}\n")
    with pytest.raises(sfumato.PolicyError, match=r"line 2.*must be a number from 0") as caught:
        sfumato.Policy.load(tmp_path / "policy.toml")
    assert caught.value.exit_code == 2
