"""Methods side by side: the figures, what failures do to them, and what is written."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import sfumato
from sfumato.cli import main
from sfumato.cli.flag_values import MOST_VALUES, many_values
from sfumato.cli.progress_bar import DrawnProgress
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.errors import InputError, PolicyError, UsageError
from sfumato.evaluation.audit.audit import AuditReport
from sfumato.evaluation.comparison_points import Point, Row, exit_code, least_losses, points_of, table_text
from sfumato.methods import ForNumbers, Kinds, _makers, check_method, method_named, methods
from sfumato.methods.method import ClassBatch, Records
from sfumato.pictures.theme import DARK, LIGHT
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.report.comparison import Comparison, places, remarks
from sfumato.requirements import Requirements
from sfumato.studies import compare

SECRET = "zzsecretzz"
PEOPLE = pa.table(
    {
        "age": [20 + (number * 7) % 53 for number in range(240)],
        "city": [f"c{number * number % 11}" for number in range(240)],
        "diagnosis": [f"d{number % 5}" for number in range(240)],
    }
)
ROLES: dict[str, Any] = {"quasi_identifiers": ["age", "city"], "sensitive": "diagnosis"}
FLAGS = ["--quasi-identifiers", "age,city", "--sensitive", "diagnosis"]
TWO = ["hilbert", "hilbert-fast"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the table in it, and a place for run records that nothing should use."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "state"))
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    return tmp_path


class Shell:
    """Runs ``sfumato compare`` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: str, code: int = 0, table: str = "people.parquet") -> str:
        found = main(["compare", table, *FLAGS, *arguments])
        captured = self._capsys.readouterr()
        assert found == code, captured.err
        self.err = captured.err
        return captured.out

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self(*arguments, "--json", code=code))
        return content


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], place: Path) -> Shell:
    return Shell(capsys)


class Strange:
    """A method that does what a test wants when it is to form classes."""

    paper = summary = use = "of a test"
    separates = False

    def __init__(self, act: Callable[[Records], Iterator[ClassBatch]]) -> None:
        self.name = "strange"
        self._act = act

    def check(self, requirements: Requirements) -> None:
        """Anything is accepted."""

    def meets(self, requirements: Requirements) -> bool:
        return True

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        return self._act(records)


@pytest.fixture
def strange(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Records], Iterator[ClassBatch]]], None]:
    """Adds a method named ``strange`` to those that there are."""

    def add(act: Callable[[Records], Iterator[ClassBatch]]) -> None:
        monkeypatch.setitem(_makers(), "strange", lambda: Strange(act))

    return add


def a_bug(_: Records) -> Iterator[ClassBatch]:
    raise KeyError(SECRET)


def each_alone(records: Records) -> Iterator[ClassBatch]:
    """Classes of one distinct record, which need not be k records."""
    yield ClassBatch(records.rows, records.starts, records.codes, records.codes)


# The figures


def test_every_figure_is_that_of_the_release_that_anonymize_makes() -> None:
    found = sfumato.compare(PEOPLE, methods=TWO, k=[3, 10], l=[2, 3], **ROLES)
    assert [(row["k"], row["l"], row["method"]) for row in found.rows] == [
        (k, diversity, method) for k in (3, 10) for diversity in (2, 3) for method in TWO
    ]
    for row in found.rows:
        release = sfumato.anonymize(PEOPLE, method=row["method"], k=row["k"], l=row["l"], **ROLES)
        assert {name: row[name] for name in ("gcp", "c_dm", "c_avg", "max_size")} == {
            name: release.losses.values[name] for name in ("gcp", "c_dm", "c_avg", "max_size")
        }
        assert (row["classes"], row["smallest_class"]) == (release.audit.classes, release.audit.smallest_class)
        assert row["audit"] == release.audit.as_dict()
        assert (row["records"], row["suppressed"], row["error"], row["code"]) == (240, 0, None, 0)
        assert 0 < row["partition_seconds"] <= row["total_seconds"]


@pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
def test_discernibility_by_groups_counts_groups_that_show_the_same_apart() -> None:
    table = pa.table({"age": [30] * 6 + [40] * 4, "s": list("abababbaab")})
    asks: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": "s", "other": "drop"}
    release = sfumato.anonymize(table, k=2, method="hilbert", **asks).summary()
    assert (release["classes"], release["c_dm"]) == (2, 36 + 16)
    assert (release["groups"], release["c_dm_groups"]) == (5, 5 * 4)
    assert {"groups", "c_dm_groups"} <= set(release["private_figures"])
    rows = sfumato.compare(table, methods="hilbert,mondrian,global", k=2, l=2, **asks).rows
    found = {row["method"]: (row["c_dm"], row["c_dm_groups"]) for row in rows}
    assert found == {"hilbert": (52, 20), "mondrian": (52, 52), "global": (52, None)}


def test_a_record_that_is_left_out_counts_the_table_by_groups_too() -> None:
    table = pa.table({"age": [30] * 4 + [90]})
    asks: dict[str, Any] = {"quasi_identifiers": ["age"], "max_suppressed": 0.2}
    release = sfumato.anonymize(table, k=2, method="hilbert", **asks).summary()
    assert (release["suppressed"], release["c_dm"], release["c_dm_groups"]) == (1, 16 + 5, 4 + 4 + 5)


@pytest.mark.not_quick
def test_groups_are_counted_alike_on_disk(tmp_path: Path) -> None:
    pq.write_table(PEOPLE.select(["age", "city"]), tmp_path / "table.parquet")
    asks: dict[str, Any] = {"quasi_identifiers": ["age", "city"], "k": 5}
    for method in ("hilbert", "mondrian"):
        summaries = [
            sfumato.anonymize(tmp_path / "table.parquet", method=method, engine=engine, **asks).summary()
            for engine in ("memory", "disk")
        ]
        assert summaries[0]["c_dm_groups"] == summaries[1]["c_dm_groups"] <= summaries[0]["c_dm"]
        assert summaries[0]["groups"] == summaries[1]["groups"] >= summaries[0]["classes"]


def test_without_k_and_l_those_of_the_policy_are_compared() -> None:
    policy = merge_flags(None, k=7, l=2, **ROLES)
    found = sfumato.compare(PEOPLE, policy, methods="hilbert")
    assert [(row["k"], row["l"]) for row in found.rows] == [(7, None)]
    assert [verdict["requirement"] for verdict in found.rows[0]["audit"]] == [
        "k-anonymity, k = 7",
        "frequency l-diversity of 'diagnosis', l = 2",
    ]


def test_records_that_are_left_out_are_counted() -> None:
    settings = {**ROLES, "max_suppressed": 0.05, "l": 2}
    found = sfumato.compare(PEOPLE, methods=["hilbert"], k=25, **settings)
    release = sfumato.anonymize(PEOPLE, k=25, method="hilbert", **settings)
    assert found.rows[0]["suppressed"] == release.losses.suppressed > 0
    assert found.rows[0]["records"] == 240


def test_the_table_is_read_and_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    for verb in ("read", "profile", "encode"):
        before = getattr(MemoryEngine, verb)

        def counted(*arguments: Any, _before: Any = before, _verb: str = verb, **named: Any) -> Any:
            calls.append(_verb)
            return _before(*arguments, **named)

        monkeypatch.setattr(MemoryEngine, verb, counted)
    sfumato.compare(PEOPLE, methods=TWO, k=[2, 3, 4], **ROLES)
    assert sorted(calls) == ["encode", "profile", "read"]


def test_a_frame_of_any_kind_is_taken_and_left_as_it_was() -> None:
    frame = PEOPLE.to_pandas()
    before = frame.copy(deep=True)
    found = sfumato.compare(frame, methods="hilbert", k=5, **ROLES)
    assert found.rows[0]["gcp"] == sfumato.compare(PEOPLE, methods="hilbert", k=5, **ROLES).rows[0]["gcp"]
    assert frame.equals(before)


def test_a_release_that_fails_its_audit_has_no_figures(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_at_five(report: AuditReport) -> bool:
        return report.verdicts[0].requirement != "k-anonymity, k = 5"

    monkeypatch.setattr(AuditReport, "holds", property(fails_at_five))
    found = shell.json("--methods", "hilbert", "-k", "4,5", code=70)
    good, bad = found["rows"]
    assert good["gcp"] > 0
    assert bad["gcp"] is None
    assert "did not pass its audit" in bad["error"]


def test_classes_that_do_not_meet_the_requirements_are_never_measured(shell: Shell, strange: Any) -> None:
    strange(each_alone)
    found = shell.json("--methods", "strange,hilbert", "-k", "5", code=70)
    assert [row["code"] for row in found["rows"]] == [70, 0]
    assert found["rows"][0]["error"].startswith("unexpected AssertionError.")


# Bounds of MAXSIZE


@pytest.mark.not_quick
def test_beside_nng_every_method_is_told_with_what_no_classes_go_below() -> None:
    found = sfumato.compare(PEOPLE, methods=["hilbert", "nng"], k=[3, 8], **ROLES)
    people = list(zip(PEOPLE["age"].to_pylist(), PEOPLE["city"].to_pylist(), strict=True))
    ages = [age for age, _ in people]

    def apart(one: tuple[int, str], other: tuple[int, str]) -> float:
        return abs(one[0] - other[0]) / (max(ages) - min(ages)) + (one[1] != other[1])

    for row in found.rows:
        farthest = max(sorted(apart(one, other) for other in people)[row["k"] - 1] for one in people)
        assert row["max_size_bound"] == pytest.approx(2 * farthest, abs=1e-8)
        assert row["max_size_ratio"] == row["max_size"] / row["max_size_bound"] >= 1
        assert 0 <= row["smallest_box_least"] <= row["smallest_box_most"] <= row["max_size"]


def test_there_is_no_ratio_to_a_bound_of_nothing() -> None:
    (row,) = sfumato.compare(PEOPLE, methods="nng", k=1, **ROLES).rows
    assert (row["max_size_bound"], row["max_size_ratio"]) == (0, None)


def test_without_nng_no_bound_is_looked_for_and_no_column_told(shell: Shell) -> None:
    assert not re.search(r"ratio|least|smallest box", shell("--methods", "hilbert", "-k", "5"))
    assert "ratio" in shell("--methods", "nng", "-k", "5")
    assert shell.json("--methods", "hilbert", "-k", "5")["rows"][0]["max_size_bound"] is None


def test_a_release_that_leaves_records_out_is_not_held_to_a_bound_of_all() -> None:
    settings = {**ROLES, "max_suppressed": 0.05, "l": 2}
    rows = sfumato.compare(PEOPLE, methods=["hilbert", "nng"], k=25, **settings).rows
    assert [row["max_size_bound"] is None for row in rows] == [row["suppressed"] > 0 for row in rows]
    assert rows[0]["suppressed"] > 0


def test_quasi_identifiers_as_they_are_have_no_bound() -> None:
    rows = sfumato.compare(PEOPLE, methods=["anatomy", "nng"], k=1, l=2, **ROLES).rows
    assert [row["max_size_bound"] for row in rows] == [None, 0]


def test_a_bound_that_cannot_be_found_loses_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: object) -> None:
        raise MemoryError(SECRET)

    monkeypatch.setattr(compare, "perimeter_bounds", too_large)
    rows = sfumato.compare(PEOPLE, methods=["hilbert", "nng"], k=5, **ROLES).rows
    assert [(row["code"], row["max_size_bound"]) for row in rows] == [(0, None), (0, None)]
    assert [remark for row in rows for remark in row["remarks"]] == [
        "no bound of MAXSIZE was found: not enough memory. Leave this method out, or use a machine with more memory."
    ]


def test_the_page_explains_a_bound_where_it_shows_one() -> None:
    with_nng, without = (sfumato.compare(PEOPLE, methods=one, k=5, **ROLES).page() for one in ("nng", "hilbert"))
    for heading in ('<th scope="col">ratio</th>', "<dt>least MAXSIZE</dt>", "<dt>smallest box</dt>"):
        assert heading in with_nng
        assert heading not in without


# Seconds


def test_a_run_that_compiled_kernels_is_not_the_one_that_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([60.0, 6.0, 5.0])
    runs: list[float] = []

    def compared(_: object, point: Point, __: object) -> tuple[Row, bool]:
        runs.append(next(seconds))
        return Row(method=point.method, k=2, l=None, records=4, total_seconds=runs[-1]), len(runs) == 1

    clock = iter([0.0, 60.0, 60.0, 66.0, 66.0, 71.0])
    monkeypatch.setattr(compare, "_compared", compared)
    monkeypatch.setattr(compare.time, "perf_counter", lambda: next(clock))
    point = Point(merge_flags(None, k=2, quasi_identifiers=["age"], method="hilbert"))
    row = compare._quickest(None, point, compare.FIRST_SECONDS, Progress())  # type: ignore[arg-type]
    assert runs == [60.0, 6.0]
    assert row.total_seconds == 6.0


def test_short_runs_are_repeated_and_long_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    point = Point(merge_flags(None, k=2, quasi_identifiers=["age"], method="hilbert"))
    for length, expected in ((0.001, compare.RUNS), (compare.SHORT_SECONDS / 2, 2), (compare.SHORT_SECONDS, 1)):
        runs = []
        clock = iter(length * (step // 2 + step % 2) for step in range(2 * compare.RUNS))

        def compared(_: object, point: Point, __: object, runs: list[int] = runs) -> tuple[Row, bool]:
            runs.append(1)
            return Row(method=point.method, k=2, l=None, records=4), False

        monkeypatch.setattr(compare, "_compared", compared)
        monkeypatch.setattr(compare.time, "perf_counter", lambda clock=clock: next(clock))
        compare._quickest(None, point, compare.SHORT_SECONDS, Progress())  # type: ignore[arg-type]
        assert len(runs) == expected


# Which points there are


def asked(**flags: Any) -> sfumato.Policy:
    return merge_flags(None, **ROLES, **flags)


def test_all_means_every_method_that_accepts_what_is_asked_for() -> None:
    points = points_of(asked(), "all", k=[1, 5], l=2)
    for k in (1, 5):
        requirements = asked(k=k, l=2).requirements()
        expected = []
        for name, method in methods().items():
            try:
                check_method(method, requirements, Kinds())
            except UsageError:
                continue
            if not isinstance(method, ForNumbers):  # tables may have columns without a mean
                expected.append(name)
        assert [point.method for point in points if point.k == k] == expected
        assert ("anatomy" in expected) == (k == 1)
        assert "hilbert" in expected


def test_methods_are_named_as_text_or_in_a_list_and_taken_once() -> None:
    for names in ("hilbert-fast, auto,hilbert-fast", ["hilbert-fast", "auto", "hilbert-fast"]):
        assert [point.method for point in points_of(asked(k=2), names)] == ["hilbert-fast", "auto"]


def test_values_are_taken_once_in_their_order() -> None:
    points = points_of(asked(), "hilbert", k=(9, 3, 9), l=range(2, 4))
    assert [(point.k, point.l) for point in points] == [(9, 2), (9, 3), (3, 2), (3, 3)]


@pytest.mark.parametrize(
    "arguments, error, says",
    [
        ({"methods": "hilbrt"}, UsageError, "Did you mean 'hilbert'"),
        ({"methods": []}, UsageError, "empty name"),
        ({"methods": "hilbert,"}, UsageError, "empty name"),
        ({"methods": "all,hilbert"}, UsageError, "Give 'all' alone"),
        ({"k": []}, UsageError, "the list of values for k is empty"),
        ({"k": [5, 0]}, PolicyError, "whole number of at least 1"),
        ({"k": [2.5]}, PolicyError, "whole number of at least 1"),
        ({"k": 5, "l": []}, UsageError, "the list of values for l is empty"),
        ({"k": None}, PolicyError, "k"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_the_table_is_read(
    arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        sfumato.compare("nothing.csv", **{"k": 5, **arguments}, **ROLES)


def test_a_table_that_cannot_be_read_is_an_error_of_the_whole() -> None:
    with pytest.raises(InputError, match="does not exist"):
        sfumato.compare("nothing.csv", k=5, **ROLES)


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9)), min_size=1, max_size=9), st.sampled_from(["", " "]))
def test_lists_and_ranges_are_read_as_written(pieces: list[tuple[int, int]], gap: str) -> None:
    text = f"{gap},{gap}".join(str(low) if more == 0 else f"{low}{gap}..{gap}{low + more}" for low, more in pieces)
    expected = [value for low, more in pieces for value in range(low, low + more + 1)]
    assert many_values("-k", text) == list(dict.fromkeys(expected))


@pytest.mark.parametrize("text", ["", "0", "5,", "5,,6", "2...9", "9..2", "-3", "1.5", "ten", "²", "2..", "9" * 5000])
def test_what_is_no_list_of_values_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"not understood|below 1"):
        many_values("-k", text)


def test_a_range_without_end_is_refused_and_not_cut() -> None:
    assert many_values("-k", f"1..{MOST_VALUES}") == list(range(1, MOST_VALUES + 1))
    for text in (f"1..{MOST_VALUES + 1}", "2..999999999999999999", f"1..{MOST_VALUES},{MOST_VALUES + 1}"):
        with pytest.raises(UsageError, match="more than 1,000 values"):
            many_values("-k", text)


# Failures


def test_a_method_that_refuses_does_not_lose_the_others(shell: Shell) -> None:
    found = shell.json("--methods", "anatomy,hilbert", "-k", "5", "-l", "2")
    refused, good = found["rows"]
    assert (refused["method"], refused["code"], refused["gcp"]) == ("anatomy", 2, None)
    assert "k must be 1" in refused["error"]
    assert good["gcp"] > 0
    assert good["error"] is None
    text = shell("--methods", "anatomy,hilbert", "-k", "5", "-l", "2")
    assert re.search(r"5\s+2\s+anatomy\s+refused", text)
    assert re.search(r"5\s+2\s+hilbert\s+\d+\.\d\d%.*holds", text)
    assert "anatomy at k = 5, l = 2: anatomy releases the quasi-identifiers unchanged" in text
    assert shell.err == ""


def test_a_method_that_its_columns_do_not_suit_is_refused_in_its_row(tmp_path: Path) -> None:
    table = PEOPLE.append_column("ward", pa.array([number % 2 for number in range(240)]))
    found = sfumato.compare(table, methods=["anatomy", "hilbert"], k=1, l=2, other="keep", **ROLES)
    assert "the column 'ward' cannot be kept" in found.rows[0]["error"]
    assert found.rows[1]["code"] == 0


def test_a_k_that_is_infeasible_does_not_lose_the_others(shell: Shell) -> None:
    found = shell.json("--methods", "hilbert", "-k", "241,240")
    assert [(row["k"], row["code"]) for row in found["rows"]] == [(241, 3), (240, 0)]
    assert found["rows"][1]["classes"] == 1


def test_without_any_result_it_ends_with_the_code_of_the_first_error(shell: Shell, place: Path) -> None:
    text = shell("--methods", "hilbert,hilbert-fast", "-k", "300,400", "-o", "out.html", code=3)
    assert "every method at k = 300: k = 300 needs at least 300 records" in text
    assert "wrote" not in text
    assert not (place / "out.html").exists()
    refused_first = ["--methods", "anatomy,hilbert", "-k", "300", "-l", "2"]
    assert [row["code"] for row in shell.json(*refused_first, code=2)["rows"]] == [2, 3]


@pytest.mark.parametrize("suffix", [".csv", ".json", ".html"])
def test_a_bug_in_one_method_tells_its_kind_only_and_ends_with_70(
    suffix: str, shell: Shell, strange: Any, place: Path
) -> None:
    strange(a_bug)
    text = shell("--methods", "strange,hilbert", "-k", "5,6", "-o", f"out{suffix}", code=70)
    assert "strange everywhere: unexpected KeyError. This is a fault in Sfumato" in text
    assert re.search(r"5\s+hilbert\s+\d+\.\d\d%", text)
    assert f"wrote   out{suffix}" in text
    written = (place / f"out{suffix}").read_text()
    assert "unexpected KeyError" in written
    assert SECRET not in text + shell.err + written


def test_too_little_memory_for_one_method_is_said_in_its_row(strange: Any) -> None:
    def too_much(_: Records) -> Iterator[ClassBatch]:
        raise MemoryError(SECRET)

    strange(too_much)
    found = sfumato.compare(PEOPLE, methods=["strange", "hilbert"], k=5, **ROLES)
    assert found.rows[0]["error"].startswith("not enough memory.")
    assert [row["code"] for row in found.rows] == [70, 0]


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_interruption_prints_what_is_there_and_writes_nothing(
    number: int, code: int, form: tuple[str, ...], shell: Shell, strange: Any, place: Path
) -> None:
    def stop(_: Records) -> Iterator[ClassBatch]:
        os.kill(os.getpid(), number)
        time.sleep(10)
        raise AssertionError("the signal was not noticed")

    strange(stop)
    before = sorted(place.rglob("*"))
    text = shell("--methods", "hilbert,strange", "-k", "5,6", "-o", "out.csv", *form, code=code)
    if form:
        found = json.loads(text)
        assert [row["method"] for row in found["rows"]] == ["hilbert"]
        assert (found["points"], found["complete"]) == (4, False)
    else:
        assert re.search(r"5\s+hilbert\s+\d+\.\d\d%", text)
        assert "interrupted after 1 of 4 points" in text
    assert shell.err in ("interrupted\n", "terminated\n")
    assert sorted(place.rglob("*")) == before


def rows_with(*codes: int) -> list[Row]:
    return [Row(method="m", k=2, l=None, records=9, code=code) for code in codes]


@pytest.mark.parametrize(
    "codes, expected", [([0, 3], 0), ([3, 2], 3), ([2, 3], 2), ([0, 70], 70), ([4, 70], 70), ([4, 0], 0)]
)
def test_the_exit_code_is_of_a_fault_then_of_any_result_then_of_the_first_error(
    codes: list[int], expected: int
) -> None:
    assert exit_code(rows_with(*codes)) == expected


# What is said


def row(method: str, k: int, gcp: float | None, *, hides: bool = True, l: int | None = None) -> Row:
    return Row(method=method, k=k, l=l, records=9, gcp=gcp, hides_identity=hides, code=0 if gcp is not None else 3)


def test_the_least_loss_is_sought_among_methods_that_hide_identity() -> None:
    rows = [
        row("a", 2, 0.2),
        row("b", 2, 0.1),
        row("anatomy", 2, 0.0, hides=False),
        row("a", 5, 0.3),
        row("b", 5, 0.3),
        row("a", 9, 0.4),
        row("b", 9, None),
    ]
    assert [(one.method, one.k) for one in least_losses(rows)] == [("b", 2), ("a", 5), ("b", 5)]
    assert remarks(rows)[0] == "Least loss: b at k = 2 and k = 5; a at k = 5."


def test_places_are_said_shortly() -> None:
    rows = [row(name, k, 0.1, l=3) for k in range(2, 9) for name in ("a", "b")]
    assert places(rows, rows) == ["every method everywhere"]
    assert places(rows[::2], rows) == ["a everywhere"]
    assert places(rows[:4], rows) == ["every method at k = 2, l = 3 and k = 3, l = 3"]
    assert places(rows[:10:2], rows) == ["a at 5 points"]


def test_that_anatomy_hides_nobody_is_said_beside_its_figures(shell: Shell) -> None:
    arguments = ["--methods", "anatomy,hilbert", "-k", "1", "-l", "2"]
    assert "anatomy: identity is not protected" in shell(*arguments)
    anatomy, hilbert = shell.json(*arguments)["rows"]
    assert (anatomy["gcp"], anatomy["hides_identity"]) == (0.0, False)
    assert anatomy["remarks"][0].startswith("identity is not protected")
    assert (hilbert["hides_identity"], hilbert["remarks"]) == (True, [])
    assert "Least loss" not in shell(*arguments)


def test_a_narrow_window_has_fewer_columns_and_says_so(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.cli.output.NARROWEST", 60)
    monkeypatch.setenv("COLUMNS", "60")
    text = shell("--methods", "hilbert", "-k", "5")
    assert "MAXSIZE" not in text.split("the window")[0]
    assert "the window has no room for MAXSIZE; C_DM" in text
    assert re.search(r"5\s+hilbert\s+\d+\.\d\d%", text)
    monkeypatch.setattr("sfumato.cli.output.NARROWEST", 120)
    assert "no room" not in shell("--methods", "hilbert", "-k", "5")


def test_the_point_at_work_is_drawn() -> None:
    screen = io.StringIO()
    progress = DrawnProgress(Console(file=screen, force_terminal=True, width=120), 0)
    progress.next_run("hilbert, k = 5", 3, 12)
    deadline = time.monotonic() + 10
    while "(3 of 12)" not in screen.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    progress.close()
    assert "hilbert, k = 5 (3 of 12)" in screen.getvalue()


# What is written, and what is not


def test_no_release_certificate_or_run_record_is_left(shell: Shell, place: Path) -> None:
    before = sorted(place.rglob("*"))
    shell("--methods", "hilbert,anatomy", "-k", "1,5", "-l", "2")
    assert sorted(place.rglob("*")) == before
    assert not (place / "state").exists()


def test_csv_has_a_line_for_every_point(shell: Shell, place: Path) -> None:
    shell("--methods", "hilbert,anatomy", "-k", "5,10", "-l", "2", "-o", "out.csv")
    found = shell.json("--methods", "hilbert,anatomy", "-k", "5,10", "-l", "2")
    with (place / "out.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == [
        "method", "k", "l", "records", "gcp", "c_dm", "c_dm_groups", "c_avg", "max_size", "il", "max_size_bound",
        "max_size_ratio", "object_box_bound", "object_box_ratio", "smallest_box_least", "smallest_box_most",
        "classes", "smallest_class", "suppressed", "partition_seconds", "total_seconds", "hides_identity", "holds",
        "error",
    ]  # fmt: skip
    for line, expected in zip(lines, found["rows"], strict=True):
        assert (line["method"], int(line["k"]), int(line["l"])) == (expected["method"], expected["k"], expected["l"])
        if expected["gcp"] is None:
            assert line["gcp"] == line["holds"] == ""
            assert line["error"] == expected["error"]
        else:
            assert float(line["gcp"]) == expected["gcp"]
            assert line["holds"] == "; ".join(one["requirement"] for one in expected["audit"])
            assert line["error"] == ""


def test_json_is_one_object_with_the_promised_keys(shell: Shell, place: Path) -> None:
    found = shell.json("--methods", "hilbert", "-k", "2..4", "-o", "out.json")
    assert shell.err == ""
    assert list(found) == ["records", "quasi_identifiers", "effort", "points", "complete", "rows", "version", "seconds"]
    assert found["effort"] == "normal"
    assert (found["records"], found["quasi_identifiers"]) == (240, ["age", "city"])
    assert (found["points"], found["complete"]) == (3, True)
    assert found["seconds"].keys() >= {"read", "partition", "audit"}
    assert json.loads((place / "out.json").read_text()) == found


class Page(HTMLParser):
    """What a page holds: its tags with their attributes, and the text of table cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.table: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag == "tr":
            self.table.append([])
        if tag in ("td", "th"):
            self.table[-1].append("")
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.table[-1][-1] += data


def test_the_page_is_whole_offline_and_light_or_dark() -> None:
    found = sfumato.compare(PEOPLE, methods=[*TWO, "anatomy"], k=[2, 5, 40], l=2, **ROLES)
    text = found.page()
    page = Page(text)
    assert page.open == []
    names = [tag for tag, _ in page.tags]
    assert names.count("svg") == 4  # loss and time, each for wide windows and narrow ones
    assert [text.count('class="broad"'), text.count('class="narrowed"')] == [2, 2]
    assert not {"script", "link", "img", "iframe", "image", "use", "object"} & set(names)
    asks = {"src", "href", "xlink:href", "srcset", "action", "data"}
    assert not [attributes for _, attributes in page.tags if asks & attributes.keys()]
    assert re.findall(r"https?://[^\"' <]+", re.sub(r'xmlns(:\w+)?="[^"]+"', "", text)) == []
    assert "url(" not in text
    assert "@import" not in text
    policy = next(one["content"] for tag, one in page.tags if one.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert LIGHT.background in text
    assert DARK.background in text
    assert "prefers-color-scheme: dark" in text
    assert [len(line) for line in page.table[1:]] == [
        4 if "anatomy" in line else len(page.table[0]) for line in page.table[1:]
    ]
    first = found.rows[0]
    assert page.table[1][:5] == ["2", "2", "hilbert", f"{first['gcp']:.2%}", f"{first['c_dm']:,}"]
    assert page.table[3][3].startswith("refused: anatomy releases the quasi-identifiers")


def test_names_of_columns_are_no_markup_in_the_page() -> None:
    name = "<b>age</b>&amp;"
    table = PEOPLE.rename_columns([name, "city", "<i>d</i>"])
    found = sfumato.compare(
        table, methods="hilbert", k=5, quasi_identifiers=[name], sensitive="<i>d</i>", l=2, other="drop"
    )
    page = Page(found.page())
    assert not {"b", "i"} & {tag for tag, _ in page.tags}
    assert "<i>d</i>" in page.table[1][-1]


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.not_quick
def test_curves_are_by_k_by_l_or_of_one_point() -> None:
    by_k = sfumato.compare(PEOPLE, methods=TWO, k=[2, 4], **ROLES)
    assert by_k.loss().title == "Information loss by k"
    assert {"hilbert", "hilbert-fast", "2", "4"} <= set(texts(by_k.time().svg))
    assert by_k.loss().facts["series"] == TWO
    by_l = sfumato.compare(PEOPLE, methods=TWO, k=4, l=[2, 3], **ROLES)
    assert by_l.time().title == "Time by l, k = 4"
    assert by_l.loss().facts["series"] == TWO
    both = sfumato.compare(PEOPLE, methods=TWO, k=[4, 6], l=[2, 3], **ROLES)
    assert both.loss().facts["series"] == [f"{name}, l = {diversity}" for diversity in (2, 3) for name in TWO]
    assert sfumato.compare(PEOPLE, methods=TWO, k=[4, 6], l=2, **ROLES).loss().title == "Information loss by k, l = 2"
    point = sfumato.compare(PEOPLE, methods=TWO, k=4, l=2, **ROLES)
    assert point.loss().title == "Information loss at k = 4, l = 2"
    ranked = sorted(point.rows, key=lambda row: row["gcp"])
    listed = "; ".join(f"{row['method']} {row['gcp']:.2%}" for row in ranked)
    assert point.loss().description == f"Information loss at k = 4, l = 2. {listed}."
    assert point.time().title == "Seconds to form the classes at k = 4, l = 2"


def rows_of(**losses: tuple[float, ...]) -> Comparison:
    """A comparison of methods with these losses at k = 5, 10, ..."""
    ks = [5, 10, 25, 50][: len(next(iter(losses.values())))]
    rows = [
        Row(method=name, k=k, l=None, records=9, gcp=values[place], partition_seconds=1.0)
        for place, k in enumerate(ks)
        for name, values in losses.items()
    ]
    return Comparison(rows, [Point(merge_flags(None, quasi_identifiers=["age"], k=5))] * len(rows), None, {})


@pytest.mark.parametrize(
    ("losses", "logarithmic"),
    [
        ({"a": (0.02, 0.2), "b": (0.03, 0.3)}, False),  # far apart by k alone
        ({"a": (0.03, 0.1), "b": (0.8, 0.9)}, True),
        ({"a": (0.03, 0.1), "b": (0.23, 0.7)}, False),  # less than eight times
        ({"a": (0.0, 0.1), "b": (0.8, 0.9)}, False),  # 0 has no place
    ],
)
def test_losses_that_one_method_would_press_into_one_line_are_drawn_by_ratio(
    losses: dict[str, tuple[float, ...]], logarithmic: bool
) -> None:
    titles = [text for text in texts(rows_of(**losses).loss().svg) if text.startswith("information loss")]
    assert titles == ["information loss (GCP), logarithmic" if logarithmic else "information loss (GCP)"]


def test_the_picture_for_a_narrow_window_has_text_of_the_same_size_and_fits() -> None:
    found = rows_of(**{"single-dimensional": (0.8, 0.9), "hilbert": (0.1, 0.2)})
    wide, narrow = found.loss().svg, found.loss(narrow=True).svg
    assert set(texts(narrow)) == set(texts(wide))
    sizes = [float(re.search(r'<svg [^>]*?width="([\d.]+)"', svg)[1]) for svg in (wide, narrow)]  # type: ignore[index]
    assert sizes[0] > 600
    assert sizes[1] < 400


@pytest.mark.parametrize(
    "suffix, start", [(".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF"), (".html", b"<!do")]
)
def test_the_suffix_says_what_is_written(suffix: str, start: bytes, shell: Shell, place: Path) -> None:
    text = shell("--methods", "hilbert", "-k", "5,10", "-o", f"out{suffix}", "--theme", "dark")
    assert f"wrote   out{suffix}" in text
    content = (place / f"out{suffix}").read_bytes()
    assert content.startswith(start)
    if suffix == ".svg":
        assert {"Information loss by k", "Time by k"} <= set(texts(content.decode()))
        assert DARK.background in content.decode()


@pytest.mark.parametrize(
    "arguments, code, says",
    [
        (["-o", "out.gif"], 2, "no suffix that says what to write"),
        (["-o", "out"], 2, "no suffix"),
        (["-o", "people.csv"], 2, "the output is the input"),
        (["-o", "nowhere/out.html"], 4, "does not exist"),
        (["--theme", "blue"], 2, "theme"),
        (["--methods", "hilbrt"], 2, "Did you mean 'hilbert'"),
        (["-k", "9..2"], 2, "ends before it starts"),
        (["-l", "two"], 2, "-l 'two' is not understood"),
        (["--policy", "nothing.toml"], 4, "nothing.toml"),
        (["--taxonomy", "city=nothing.csv"], 4, "nothing.csv"),
        (["--identifiers", "city"], 2, "two roles"),
    ],
)
def test_wrong_use_is_one_line_before_anything_is_measured(
    arguments: list[str], code: int, says: str, shell: Shell, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "people.csv").write_text("age,city,diagnosis\n" + "1,a,x\n" * 9)
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    monkeypatch.setattr(MemoryEngine, "read", lambda *_: pytest.fail("the table was read"))
    given_k = [] if "-k" in arguments else ["-k", "3"]
    assert shell(*arguments, *given_k, code=code, table="people.csv") == ""
    assert shell.err.startswith("error: ")
    assert shell.err.count("\n") == 1
    assert says in shell.err
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before


def test_the_original_is_not_overwritten_from_python_either(place: Path) -> None:
    table = place / "people.csv"
    table.write_text("age,city,diagnosis\n" + "1,a,x\n" * 9)
    found = sfumato.compare(table, methods="hilbert", k=3, **ROLES)
    before = table.read_bytes()
    with pytest.raises(UsageError, match="the output is the input"):
        found.write(table)
    assert table.read_bytes() == before


def test_a_frame_is_not_held_by_its_comparison() -> None:
    found = sfumato.compare(PEOPLE, methods="hilbert", k=5, **ROLES)
    assert not any(value is PEOPLE for value in vars(found).values())


def test_notebooks_show_table_and_curves() -> None:
    found = sfumato.compare(PEOPLE, methods=TWO, k=[2, 5], **ROLES)
    assert isinstance(found, Comparison)
    shown = Page(found._repr_html_())
    assert [tag for tag, _ in shown.tags].count("svg") == 2
    assert len(shown.table) == 5
    assert repr(found) == "<Comparison of 4 points, 0 of them without a result>"


def test_where_nothing_has_a_result_the_table_says_why_and_there_is_nothing_to_draw(tmp_path: Path) -> None:
    found = sfumato.compare(PEOPLE, methods=TWO, k=999, **ROLES)
    shown = Page(found._repr_html_())
    assert "svg" not in [tag for tag, _ in shown.tags]
    assert shown.table[1][2].startswith("infeasible: k = 999 needs at least 999 records")
    with pytest.raises(UsageError, match="nothing to draw"):
        found.write(tmp_path / "out.svg")
    assert table_text(found.results).count("\n") == 3


def test_method_names_are_looked_up_in_one_place(monkeypatch: pytest.MonkeyPatch, strange: Any) -> None:
    """A name with a split rule is understood wherever the lookup understands it."""
    named = Strange(each_alone)
    named.name = "mondrian:information-gain"
    for module in (
        "sfumato.evaluation.comparison_points",
        "sfumato.engines.memory.classes",
        "sfumato.pipeline.prepare",
    ):
        monkeypatch.setattr(
            f"{module}.method_named", lambda name: named if name.startswith("mondrian:") else method_named(name)
        )
    found = sfumato.compare(PEOPLE, methods="mondrian:information-gain,hilbert", k=1, **ROLES)
    assert [(row["method"], row["code"]) for row in found.rows] == [("mondrian:information-gain", 0), ("hilbert", 0)]
