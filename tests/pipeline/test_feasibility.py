"""A dry run: whether each requirement can be met, by counts made here, and what levels a class may show."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import InfeasibleError
from sfumato.pipeline.feasibility import Feasibility, feasibility_of
from sfumato.pipeline.prepare import prepare_as_far_as_feasible
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.studies.dry_run import plan_of

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


def people(seed: int, count: int = 60) -> pa.Table:
    drawn = np.random.default_rng(seed)
    return pa.table(
        {
            "age": drawn.integers(20, 70, count),
            "zip": [f"{number:03}" for number in drawn.choice([101, 102, 207, 350], count, p=[0.5, 0.3, 0.15, 0.05])],
            "ill": drawn.choice(["flu", "cold", "gout", "none"], count, p=[0.5, 0.25, 0.15, 0.1]),
            "person": [f"P{number}" for number in drawn.integers(0, count // 2, count)],
        }
    )


ASKED: dict[str, Any] = {
    "quasi_identifiers": ["age", "zip"],
    "sensitive": "ill",
    "other": "drop",
    "taxonomy": {"zip": {"prefix": [1]}},
    "method": "mondrian",
}


def lines_of(table: pa.Table, **asked: Any) -> tuple[list[Feasibility], InfeasibleError | None]:
    examined, error = prepare_as_far_as_feasible(table, merge_flags(None, **{**ASKED, **asked}), Progress())
    return feasibility_of(examined), error


def released(table: pa.Table, **asked: Any) -> sfumato.Release | None:
    try:
        return sfumato.anonymize(table, **{**ASKED, **asked})
    except InfeasibleError:
        return None


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_what_the_whole_table_reaches_decides(seed: int, share: float) -> None:
    table = people(seed)
    values = Counter(table["ill"].to_pylist())
    k, l = int(np.random.default_rng(seed).integers(40, 80)), 2 + seed % 3
    lines, error = lines_of(table, k=k, l=l, max_suppressed=share)
    records, frequency = lines
    assert (records.value, records.feasible) == (60, k <= 60)
    most = max(values.values())
    assert frequency.value == pytest.approx(60 / most)
    # The largest number of records that stay if every value is cut down to the same count, and l times that is allowed.
    staying = max(
        sum(min(count, cap) for count in values.values())
        for cap in range(61)
        if cap * l <= sum(min(count, cap) for count in values.values())
    )
    allowed = int(share * 60)
    if most * l <= 60:
        assert (frequency.feasible, frequency.left_out, frequency.reason) == (True, 0, "")
    elif 0 < 60 - staying <= allowed:
        assert (frequency.feasible, frequency.left_out) == (None, 60 - staying)
        assert "have to be left out for it, which max_suppressed_fraction allows" in frequency.reason
    else:
        assert frequency.feasible is False
        assert f"with l = {l} allows the most frequent value" in frequency.reason
    assert (error is None) == (released(table, k=k, l=l, max_suppressed=share) is not None)


@pytest.mark.parametrize("k", [3, 8, 20])
def test_every_part_of_the_coarsest_level_decides(k: int) -> None:
    table = people(1)
    sizes = Counter(text[:1] for text in table["zip"].to_pylist())
    missing = sum(size for size in sizes.values() if size < k)
    (line,), error = lines_of(table, k=k, coarsest={"zip": 1}, sensitive=[], max_suppressed=0.1)
    assert (line.value, line.parts) == (min(sizes.values()), len(sizes))
    assert line.feasible is (True if not missing else None if missing <= 6 else False)
    assert line.left_out == (missing if 0 < missing <= 6 else 0)
    assert (error is not None) == (line.feasible is False)
    if error is not None:
        assert line.reason == str(error)
        assert f"{missing} of the 60 records" in line.reason


def test_persons_are_counted_where_the_policy_counts_them() -> None:
    table = people(2)
    persons, rows = set(table["person"].to_pylist()), table.to_pylist()
    of_value = defaultdict(set)
    for row in rows:
        of_value[row["ill"]].add(row["person"])
    lines, error = lines_of(table, k=len(persons) + 1, l=2, person="person", identifiers=["person"])
    assert [line.requirement for line in lines] == [
        f"k-anonymity, k = {len(persons) + 1}, in persons",
        "frequency l-diversity of 'ill', l = 2",
    ]
    assert (lines[0].value, lines[0].feasible) == (len(persons), False)
    assert f"the table has {len(persons)}" in lines[0].reason
    assert lines[1].feasible is (2 * max(map(len, of_value.values())) <= len(persons))
    assert error is not None


def test_each_of_several_requirements_has_its_line() -> None:
    lines, error = lines_of(
        people(3), k=5, require=["distinct(ill, l=9)", "entropy(ill, l=2)", "t-closeness(ill, t=0.9)"]
    )
    assert [line.feasible for line in lines] == [True, False, True, True]
    assert "Choose an l of at most 4." in lines[1].reason
    assert str(error) == lines[1].reason


def test_requirements_that_are_feasible_alone_may_not_be_together() -> None:
    # Each leaves out some records, and together these are more than the policy allows.
    table = pa.table(
        {
            "age": list(range(20, 40)),
            "zip": ["101"] * 20,
            "ill": ["flu"] * 12 + ["cold"] * 8,
            "job": ["cook"] * 8 + ["smith"] * 12,
        }
    )
    asked = {
        "sensitive": ["ill", "job"], "k": 2, "require": ["frequency(ill, l=2)", "frequency(job, l=2)"],
        "max_suppressed": 0.2,
    }  # fmt: skip
    lines, error = lines_of(table, **asked)
    assert [(line.feasible, line.left_out) for line in lines] == [(True, 0), (None, 4), (None, 4)]
    assert error is not None
    assert released(table, **asked) is None


def shown(**asked: Any) -> dict[str, list[tuple[int, str, int]]]:
    table = people(4).append_column("day", pa.array(np.arange("2024-01-15", "2024-03-15", dtype="datetime64[D]")))
    names = {"quasi_identifiers": ["age", "zip", "day"], "k": 2, "sensitive": [], "taxonomy": {}}
    examined, _ = prepare_as_far_as_feasible(table, merge_flags(None, **{**ASKED, **names, **asked}), Progress())
    columns = plan_of(examined, feasible=True)["columns"]
    return {
        column["name"]: [(level["level"], level["name"], level["groups"]) for level in column["shown"]]
        for column in columns
        if column["shown"] is not None
    }


def test_levels_are_named_with_the_groups_that_occur() -> None:
    ages = set(people(4)["age"].to_pylist())
    assert shown() == {
        "age": [(0, "single values and ranges", len(ages)), (1, "*", 1)],
        "zip": [(0, "single values", 4), (1, "*", 1)],
        "day": [(0, "single values and ranges", 60), (1, "*", 1)],
    }
    levels = shown(
        taxonomy={"age": {"intervals": [10, 50]}, "zip": {"prefix": [1, 2]}, "day": {"calendar": ["month", "year"]}}
    )
    assert levels == {
        "age": [
            (0, "single values", len(ages)),
            (1, "intervals of 10", len({age // 10 for age in ages})),
            (2, "intervals of 50", len({age // 50 for age in ages})),
            (3, "*", 1),
        ],
        "zip": [(0, "single values", 4), (1, "2 characters", 3), (2, "1 character", 3), (3, "*", 1)],
        "day": [(0, "single values", 60), (1, "month", 3), (2, "year", 1), (3, "*", 1)],
    }
    assert shown(round={"age": 5})["age"][0][1] == "single values and ranges between multiples of 5"


def test_levels_end_where_the_policy_ends_them(tmp_path: Path) -> None:
    (tmp_path / "zip.csv").write_text("101,south,*\n102,south,*\n207,north,*\n350,north,*\n999,none,*\n")
    levels = shown(
        taxonomy={"zip": str(tmp_path / "zip.csv"), "day": {"calendar": ["month", "year"]}},
        coarsest={"zip": 1},
        finest={"day": "month"},
    )
    assert levels["zip"] == [(0, "single values", 4), (1, "level 1 of its taxonomy", 2)]
    assert levels["day"] == [(1, "month", 3), (2, "year", 1), (3, "*", 1)]


def test_anatomy_shows_quasi_identifiers_as_they_are() -> None:
    levels = shown(method="anatomy", sensitive="ill", k=None, require="frequency(ill, l=2)")
    assert [name for column in levels.values() for _, name, _ in column] == ["single values"] * 3


def test_the_command_lists_every_requirement_and_ends_as_the_run_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "state"))
    pa.csv.write_csv(people(5), "in.csv")
    command = ["anonymize", "in.csv", "--quasi-identifiers", "age,zip", "--sensitive", "ill", "--other", "drop"]
    assert main([*command, "-k", "61", "-l", "2", "--dry-run"]) == 3
    printed = capsys.readouterr()
    assert "\nNOT FEASIBLE k-anonymity, k = 61 (the whole table reaches 60)\n" in printed.out
    assert "k = 61 needs at least 61 records, but the table has 60." in printed.out
    assert "frequency l-diversity of 'ill', l = 2 (" in printed.out
    assert "next" not in printed.out
    assert printed.err.startswith("error: k = 61 needs at least 61 records")
    assert main([*command, "-k", "61", "--dry-run", "--json"]) == 3
    plan = json.loads(capsys.readouterr().out)
    assert plan["feasible"] is False
    assert plan["feasibility"][0]["feasible"] is False
    assert main([*command, "-k", "60", "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert "  age  single values and ranges (" in text
    assert text.endswith("next    run the same command without --dry-run\n")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_a_dry_run_warns_of_an_earlier_release_under_another_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "people.csv"
    table.write_text("age,zip\n" + "".join(f"{20 + row % 9},{row % 4}\n" for row in range(60)), "utf-8")
    common = [str(table), "--quasi-identifiers", "age,zip"]
    assert main(["anonymize", *common, "-k", "3", "-o", str(tmp_path / "release.csv")]) == 0
    capsys.readouterr()
    assert main(["anonymize", *common, "-k", "5", "--dry-run", "--json"]) == 0
    warned = json.loads(capsys.readouterr().out)["warnings"]
    assert any("was released 1 time before" in text for text in warned)
    assert main(["anonymize", *common, "-k", "5", "--dry-run", "--trial", "--json"]) == 0
    assert not any("before" in text for text in json.loads(capsys.readouterr().out)["warnings"])
