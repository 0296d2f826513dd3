"""What a reader of a release and its certificate can learn about records that were left out: nothing.

The attacker divides what the release shows by what the certificate says. The loss of a column once was divided by the
range of the original: a record that was left out, and the range before rounding, came back to the unit.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato
from sfumato.tables.locations import certificate_path

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

TABLES = 20
RECORDS = 60


def incomes(seed: int) -> list[int]:
    """Incomes of ordinary people, and one that stands out; the smallest is far from a multiple of 100."""
    draw = random.Random(seed)
    ordinary = [1_000 + 37 + draw.randrange(60) * 50 for _ in range(RECORDS - 1)]
    return [*ordinary, draw.randrange(20_000, 90_000)]


def released(table: dict[str, list[Any]], folder: Path, **flags: Any) -> tuple[list[str], dict[str, Any]]:
    """The released incomes and the certificate, as a reader has them."""
    path = folder / "release.csv"
    release = sfumato.anonymize(pa.table(table), quasi_identifiers=["income", "age"], k=4, **flags)
    release.write(path)
    with path.open(encoding="utf-8", newline="") as file:
        labels = [row["income"] for row in csv.DictReader(file)]
    return labels, json.loads(certificate_path(path).read_text("utf-8"))


def shares(content: Any) -> Iterator[float]:
    """Every number of a certificate that could be a loss."""
    match content:
        case dict():
            for inner in content.values():
                yield from shares(inner)
        case list():
            for inner in content:
                yield from shares(inner)
        case float() if 0 < content <= 1:
            yield content


def estimated_ranges(labels: list[str], certificate: dict[str, Any]) -> list[float]:
    """The range of the original, if a figure of the certificate is the mean width of a record over that range."""
    ends = [ends_of(label) for label in labels if label != "*"]
    widths = sum(high - low for low, high in ends)
    hidden = certificate["suppressed"] + labels.count("*")
    left = [figure * certificate["records"] - hidden for figure in shares(certificate)]
    return [widths / each for each in left if each > 0]


def ends_of(label: str) -> tuple[float, float]:
    low, _, high = label.strip("[]").partition("..")
    return float(low), float(high or low)


@pytest.mark.parametrize("grid", [None, 100])
def test_a_record_that_was_left_out_cannot_be_computed(tmp_path: Path, grid: int | None) -> None:
    for seed in range(TABLES):
        income = incomes(seed)
        table = {"income": income, "age": [20 + seed * row % 50 for row in range(RECORDS)]}
        flags = {"round": {"income": grid}} if grid else {}
        labels, certificate = released(table, tmp_path, max_suppressed=0.02, method="hilbert", **flags)
        lows, highs = zip(*(ends_of(label) for label in labels if label != "*"), strict=True)
        outlier, extent = max(income), max(income) - min(income)
        assert max(highs) < outlier, "the outlier was to be left out"
        estimates = [min(lows) + each for each in estimated_ranges(labels, certificate)]
        assert estimates, "the attacker had nothing to compute with, so the test says nothing"
        nearest = min(estimates, key=lambda estimate: abs(estimate - outlier))
        assert abs(nearest - outlier) > 0.1 * extent


def test_the_range_before_rounding_cannot_be_computed(tmp_path: Path) -> None:
    for seed in range(TABLES):
        income = incomes(seed)[:-1]
        table = {"income": income, "age": [20 + seed * row % 50 for row in range(RECORDS - 1)]}
        labels, certificate = released(table, tmp_path, round={"income": 100}, method="hilbert")
        lows, highs = zip(*(ends_of(label) for label in labels if label != "*"), strict=True)
        shown, exact = max(highs) - min(lows), max(income) - min(income)
        assert shown != exact
        estimates = estimated_ranges(labels, certificate)
        assert any(each == pytest.approx(shown) for each in estimates)
        assert not any(each == pytest.approx(exact, rel=1e-6) for each in estimates)


def test_nothing_says_what_the_search_tried(tmp_path: Path) -> None:
    """Losses of what was tried, and what was chosen, would let a reader test guesses of the original."""
    table = {"income": incomes(1), "age": [20 + row % 50 for row in range(RECORDS)]}
    _, certificate = released(table, tmp_path, max_suppressed=0.02)
    assert not {"choice", "chosen", "tried", "bound"} & set(keys(certificate))


@pytest.mark.parametrize(
    "flags",
    [
        {"taxonomy": {"income": {"intervals": [200, 800]}}, "form": "bounds"},
        {"round": {"income": 100}, "form": "bounds"},
        {"form": "statistics"},
        {"form": {"income": "mean"}},
        {"form": {"income": "median", "age": "bounds"}},
        {"taxonomy": {"income": {"intervals": [200, 800]}}, "form": "statistics"},
    ],
)
def test_no_bound_or_grid_tells_of_a_record_that_was_left_out(flags: dict[str, Any], tmp_path: Path) -> None:
    """What is released as ``*`` once had the bounds of the original, and means a grid by its range."""
    income = incomes(3)
    table = pa.table({"income": income, "age": [20 + row * 7 % 50 for row in range(RECORDS)]})
    asked: dict[str, Any] = {"quasi_identifiers": ["income", "age"], "max_suppressed": 0.02, "k": 5, **flags}
    asked["effort"] = "fast"  # a search may find a place for the record that is left out here
    release = sfumato.anonymize(table, **asked)
    release.write(tmp_path / "release.csv")
    text = (tmp_path / "release.csv").read_text("utf-8") + certificate_path(tmp_path / "release.csv").read_text("utf-8")
    assert release.summary()["suppressed"] == 1
    assert str(max(income)) not in text
    without = sfumato.anonymize(table.slice(0, RECORDS - 1), **asked)
    grids = [each.public_summary().get("statistics") for each in (release, without)]
    assert grids[0] == grids[1]


def test_rounded_bounds_of_a_star_are_rounded_too() -> None:
    income = incomes(3)[:-1]
    table = pa.table({"income": income})
    release = sfumato.anonymize(table, quasi_identifiers=["income"], k=40, round={"income": 100}, form="bounds")
    assert set(release.data.column("income").to_pylist()) == {"*"}
    assert set(release.data.column("income_min").to_pylist()) == {min(income) // 100 * 100}
    assert set(release.data.column("income_max").to_pylist()) == {-(-max(income) // 100) * 100}


def keys(content: Any) -> Iterator[str]:
    match content:
        case dict():
            for key, inner in content.items():
                yield key
                yield from keys(inner)
        case list():
            for inner in content:
                yield from keys(inner)
