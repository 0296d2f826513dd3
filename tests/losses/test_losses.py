"""Every loss against its definition, from the files alone and as the release reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from strategies import Case, cases

import sfumato
from sfumato.losses.all_losses import Measurement, losses
from sfumato.losses.loss import ClassTable

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

PEOPLE = pa.table(
    {
        "age": pa.array([20, 25, 30, 40, 60, None], pa.int64()),
        "city": ["Pisa", "Lucca", "Roma", "Roma", "Pisa", "Pisa"],
        "ill": ["yes", "no", "no", "no", "yes", "yes"],
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("losses")


def expected(case: Case, released: Any, target: str | None = None) -> Any:
    found = oracle.losses(case.table.num_rows, released, case.columns, case.k, case.weights, target)
    return pytest.approx({name: float(value) for name, value in found.items()}, rel=1e-9, abs=1e-9)


def without_il(values: Mapping[str, float]) -> dict[str, float]:
    """The losses but IL, which has tests of its own."""
    return {name: value for name, value in values.items() if name != "il"}


@given(case=cases())
def test_losses_of_a_release_are_those_of_the_oracle(folder: Path, case: Case) -> None:
    release = sfumato.anonymize(case.table, **case.settings(folder))
    assert without_il(release.losses.values) == expected(case, release.data.to_pylist())


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@given(case=cases())
def test_losses_measured_from_files_alone_are_those_of_the_release(suffix: str, folder: Path, case: Case) -> None:
    original, target = folder / "original.parquet", folder / f"release.{suffix}"
    pq.write_table(case.table, original)
    release = sfumato.anonymize(case.table, **case.settings(folder))
    release.write(target)
    measured = sfumato.measure(original, target).values
    assert without_il(measured) == without_il(release.losses.values)
    if "il" in measured:  # files do not always tell which record is in which class
        assert measured["il"] == pytest.approx(release.losses.values["il"])
    if case.others:
        found = sfumato.measure(original, target, target="note")
        assert without_il(found.values) == expected(case, release.data.to_pylist(), "note")


@given(case=cases())
def test_original_has_no_loss_against_itself(folder: Path, case: Case) -> None:
    found = sfumato.measure(case.table, case.table, **{**case.settings(folder), "k": 1})
    assert found.gcp == 0
    assert found.max_size == 0
    assert set(found.columns.values()) == {0}


def test_csv_is_measured_against_csv(tmp_path: Path) -> None:
    original = tmp_path / "original.csv"
    original.write_text("age;city\n1,5;a\n2,5;a\n9,5;b\nNA;b\n", "utf-8")
    asked: dict[str, Any] = {
        "quasi_identifiers": ["age", "city"],
        "k": 2,
        "input": {"separator": ";", "decimal": ",", "nulls": ["NA"]},
    }
    release = sfumato.anonymize(original, **asked)
    release.write(tmp_path / "release.csv")
    assert (tmp_path / "release.csv").read_text() == "age;city\n*;b\n*;b\n[1.5..2.5];a\n[1.5..2.5];a\n"
    found = sfumato.measure(original, tmp_path / "release.csv")
    assert found.values == release.losses.values
    assert found.columns == pytest.approx({"age": (2 * 1 + 2 * 1 / 8) / 4, "city": 0})


def test_weights_shift_the_penalty() -> None:
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "city"], "other": "drop", "k": 2}
    released = pa.table({"age": ["[20..40]"] * 3 + ["60"] * 3, "city": ["*"] * 3 + ["Pisa"] * 3})
    even = sfumato.measure(PEOPLE, released, **asked)
    assert even.gcp == pytest.approx(0.5 * 0.25 + 0.5 * 0.5)
    assert even.columns == pytest.approx({"age": 0.25, "city": 0.5})
    skewed = sfumato.measure(PEOPLE, released, weight={"age": 3}, **asked)
    assert skewed.gcp == pytest.approx(0.75 * 0.25 + 0.25 * 0.5)
    assert skewed.max_size == even.max_size == pytest.approx(2 * 1.5)


def test_losses_by_hand() -> None:
    released = pa.table(
        {"age": ["[20..25]"] * 2 + ["*"] * 3, "city": ["*"] * 2 + ["Roma"] * 3, "ill": ["yes", "no", "no", "no", "yes"]}
    )
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "city"], "other": "keep", "k": 2}
    found = sfumato.measure(PEOPLE, released, target="ill", **asked).values
    assert found == pytest.approx(
        {
            "gcp": (2 * (5 / 40 + 1) / 2 + 3 * 1 / 2 + 1) / 6,  # the sixth record is suppressed
            "gcp_released": (2 * (5 / 40 + 1) / 2 + 3 * 1 / 2) / 5,
            "cost": (2 * (5 / 40 + 1) / 2 + 3 * 1 / 2 + 1) / 6,
            "c_dm": 2**2 + 3**2 + 6 * 1,
            "c_avg": 5 / 2 / 2,
            "c_mdm": 0 + 1,
            "max_size": 2 * (5 / 40 + 1),
            "cm": (1 + 1 + 1) / 6,
        }
    )


@pytest.mark.parametrize(
    ("column", "labels"), [("age", ["young"] * 6), ("city", ["Napoli"] * 6), ("age", ["[40..20]"] * 6)]
)
def test_labels_that_the_original_cannot_have_are_refused(column: str, labels: list[str]) -> None:
    released = PEOPLE.set_column(PEOPLE.column_names.index(column), column, pa.array(labels))
    with pytest.raises(sfumato.InputError, match=f"column '{column}' of the release shows 1 value") as error:
        sfumato.measure(PEOPLE, released, quasi_identifiers=["age", "city"], other="drop", k=2)
    assert labels[0] not in str(error.value)


def test_more_released_records_than_there_were_are_refused() -> None:
    twice = pa.concat_tables([PEOPLE, PEOPLE])
    with pytest.raises(sfumato.InputError, match="more records than the original"):
        sfumato.measure(PEOPLE, twice, quasi_identifiers=["age", "city"], other="drop", k=2)


def test_unknown_target_is_refused() -> None:
    with pytest.raises(sfumato.UsageError, match=r"'illness'.*Did you mean 'ill'\?|Available"):
        sfumato.measure(PEOPLE, PEOPLE, quasi_identifiers=["age", "city"], other="drop", k=2, target="illness")


def test_loss_that_cannot_be_known_is_left_out() -> None:
    assert "cm" not in sfumato.measure(PEOPLE, PEOPLE, quasi_identifiers=["age"], other="drop", k=2).values
    with pytest.raises(AttributeError, match="no loss named 'cm'"):
        _ = sfumato.measure(PEOPLE, PEOPLE, quasi_identifiers=["age"], other="drop", k=2).cm


def test_the_repr_of_losses_is_one_line_of_figures() -> None:
    measured = sfumato.measure(PEOPLE, PEOPLE, quasi_identifiers=["age"], other="drop", k=2)
    figures = ", ".join(f"{name} {value:.4g}" for name, value in measured.values.items())
    assert repr(measured).startswith(f"<Measured: {figures}, 0 records suppressed, ")
    release = sfumato.anonymize(PEOPLE, quasi_identifiers=["age", "city"], other="drop", k=2)
    assert repr(release.losses).startswith(f"<Losses: gcp {release.losses.gcp:.4g}, ")
    assert repr(release.losses).endswith(", 0 records suppressed>")


def test_release_of_nothing_loses_everything() -> None:
    nothing = ClassTable(np.empty(0, np.int64), np.empty((0, 2)), np.array([0.5, 0.5]), records=4, k=2)
    assert Measurement.of(nothing).values() == {"gcp": 1.0, "cost": 1.0, "c_dm": 16, "c_mdm": 0}
    for_less = replace(nothing, suppression_cost=0.25)
    assert Measurement.of(for_less).values() == {"gcp": 1.0, "cost": 0.25, "c_dm": 16, "c_mdm": 0}


@pytest.mark.parametrize("name", sorted(losses()))
def test_every_loss_says_what_it_is(name: str) -> None:
    assert losses()[name].name == name
    assert len(losses()[name].summary) > 10
