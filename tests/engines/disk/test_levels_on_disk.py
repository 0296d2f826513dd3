"""Levels chosen on disk: the release and the rules are those of memory, and counts that do not fit are refused."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.tables.external.memory_budget import MemoryBudget

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

ASKED: dict[str, Any] = {
    "quasi_identifiers": ["age", "day", "city"],
    "sensitive": "ill",
    "taxonomy": {"age": {"intervals": [5, 20]}, "day": {"calendar": ["month", "year"]}},
    "k": 4,
    "method": "global",
}
ON_DISK: dict[str, Any] = {"engine": "disk", "memory": "500MB"}


def visits(count: int = 600) -> pa.Table:
    generator = np.random.default_rng(5)
    first = datetime.date(2020, 1, 1)
    ages = [None if age == 20 else age for age in generator.integers(20, 70, count).tolist()]
    return pa.table(
        {
            "age": pa.array(ages, pa.int64()),
            "day": pa.array([first + datetime.timedelta(days=int(day)) for day in generator.integers(0, 500, count)]),
            "city": generator.choice(["Roma", "Pisa", "Lucca"], count, p=[0.6, 0.3, 0.1]),
            "ill": generator.choice(["flu", "cold", "gout"], count),
        }
    )


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryBudget, "rows", lambda self, width: 1400)


@pytest.mark.parametrize("method", ["global", "datafly", "samarati", "incognito"])
def test_with_k_alone_the_release_is_that_of_memory(small_batches: None, method: str) -> None:
    asked = {**ASKED, "method": method, "max_suppressed": 0.1}
    expected, found = sfumato.anonymize(visits(), **asked), sfumato.anonymize(visits(), **asked, **ON_DISK)
    assert found.data.equals(expected.data)
    assert 0 < found.summary()["suppressed"] == expected.summary()["suppressed"] <= 60
    assert found.losses.gcp == expected.losses.gcp
    assert found.summary()["levels"] == expected.summary()["levels"]
    assert found.summary()["engine"] == "disk"


@pytest.mark.parametrize(
    "more",
    [
        {"cells": True},
        {"require": "frequency(ill, l=2)", "max_suppressed": 0.2},
        {"require": "t-closeness(ill, t=0.3)", "max_suppressed": 0.3},
        {"keep_order": True, "max_suppressed": 0.1},
        {"form": "bounds", "max_suppressed": 0.1},
    ],
    ids=" ".join,
)
def test_whatever_is_asked_for_the_release_is_that_of_memory(small_batches: None, more: dict[str, Any]) -> None:
    expected, found = (
        sfumato.anonymize(visits(), **ASKED, **more),
        sfumato.anonymize(visits(), **ASKED, **more, **ON_DISK),
    )
    assert found.data.equals(expected.data)
    assert found.audit.as_dict() == expected.audit.as_dict()


def test_rules_are_those_of_memory() -> None:
    expected, found = (sfumato.fit(visits(), **ASKED, max_suppressed=0.1, **more) for more in ({}, ON_DISK))
    assert found.to_json() == expected.to_json()


def test_counts_that_do_not_fit_are_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.engines.disk.level_search.SHARE", 10**5)
    monkeypatch.setattr(MemoryBudget, "rows", lambda self, width: 100 * 10**5)
    with pytest.raises(sfumato.UsageError) as caught:
        sfumato.anonymize(visits(), **ASKED, **ON_DISK)
    assert str(caught.value) == (
        "the table has more than 100 different records, and to choose levels all of them must be counted in memory. "
        "Allow more with --memory, set finest for columns with many values, or drop such columns."
    )
