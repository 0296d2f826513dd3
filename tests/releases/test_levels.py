"""``finest`` and ``coarsest``: nothing finer is ever shown, and no class reaches beyond, by the released rows."""

from __future__ import annotations

import csv
import datetime
import io
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naming import hiding_methods

import sfumato
from sfumato.errors import InfeasibleError, InputError, PolicyError, UsageError
from sfumato.policy import Policy

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")  # the same tables come again
PLACES = {
    "Kiel": ["Kiel", "North", "Germany", "*"],
    "Bonn": ["Bonn", "West", "Germany", "*"],
    "Köln": ["Köln", "West", "Germany", "*"],
    "Oslo": ["Oslo", "Oslo", "Norway", "*"],
    "Rome": ["Rome", "Rome", "*", "*"],
}
FIRST_DAY = datetime.date(1995, 1, 1)


def interval(width: float, value: float) -> str:
    """The interval of a number, by counting on."""
    whole = isinstance(value, int)
    start = int(value // width) * width
    end = start + width - 1 if whole else start + width
    low, high = (str(int(end) if float(end).is_integer() else end) for end in (start, end))
    return low if low == high else f"[{low}..{high}]"


def period(unit: str, day: datetime.date) -> str:
    if unit == "week":
        monday = day - datetime.timedelta(days=day.weekday())
        return f"[{monday}..{monday + datetime.timedelta(days=6)}]"
    quarter = f"{day.year}-Q{(day.month - 1) // 3 + 1}"
    return {"month": f"{day:%Y-%m}", "quarter": quarter, "year": f"{day.year}", "decade": f"{day.year // 10}0s"}[unit]


@dataclass(frozen=True)
class Kind:
    """A kind of column: its values, its taxonomy, and what a value is shown as on each level below ``*``."""

    values: st.SearchStrategy[Any]
    taxonomy: Any
    levels: list[Callable[[Any], str]]


def place_label(level: int) -> Callable[[str], str]:
    return lambda place: next(name for name in reversed(PLACES[place][: level + 1]) if name != "*")


def prefixed(length: int) -> Callable[[str], str]:
    return lambda code: code if len(code) < length else code[:length] + "*" * (4 - length)


def number(value: float) -> str:
    return str(int(value) if float(value).is_integer() else value)


CALENDARS = (["month", "quarter", "year", "decade"], ["week"])
KINDS = {
    "ages": Kind(
        st.integers(-9, 60), {"intervals": [5, 10, 20]}, [str, *(lambda v, w=w: interval(w, v) for w in (5, 10, 20))]
    ),
    "doses": Kind(
        st.integers(-9, 30).map(lambda half: half / 2 + 0.25),
        {"intervals": [1.5, 6]},
        [number, *(lambda v, w=w: interval(w, v) for w in (1.5, 6))],
    ),
    **{
        "-".join(units): Kind(
            st.integers(0, 7000).map(lambda days: FIRST_DAY + datetime.timedelta(days=days)),
            {"calendar": units},
            [str, *(lambda v, unit=unit: period(unit, v) for unit in units)],
        )
        for units in CALENDARS
    },
    "places": Kind(st.sampled_from(sorted(PLACES)), "places.csv", [place_label(level) for level in range(3)]),
    "codes": Kind(
        st.one_of(st.integers(1000, 1130).map(str), st.sampled_from(["7", "81", "812"])),
        {"prefix": [1, 3]},
        [str, prefixed(3), prefixed(1)],
    ),
}


@pytest.fixture(autouse=True)
def _places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path_factory.mktemp("places")
    (directory / "places.csv").write_text("\n".join(map(",".join, PLACES.values())), "utf-8")
    monkeypatch.chdir(directory)


@dataclass(frozen=True)
class Case:
    """Columns by name: kind, values, finest and coarsest level."""

    columns: dict[str, tuple[Kind, list[Any], int, int | None]]

    @property
    def table(self) -> pa.Table:
        values = {name: column[1] for name, column in self.columns.items()}
        return pa.table({**values, "id": range(len(next(iter(values.values()))))})

    @property
    def flags(self) -> dict[str, Any]:
        return {
            "quasi_identifiers": list(self.columns),
            "taxonomy": {name: column[0].taxonomy for name, column in self.columns.items()},
            "finest": {name: column[2] for name, column in self.columns.items() if column[2]},
            "coarsest": {name: column[3] for name, column in self.columns.items() if column[3] is not None},
            "other": "keep",
            "accept_linkable": ["id"],
            "max_suppressed": 0.9,
        }

    def allowed(self, name: str, row: int) -> set[str | None]:
        """What a record may show in a column."""
        kind, values, finest, coarsest = self.columns[name]
        rest: set[str | None] = set() if coarsest is not None and coarsest < len(kind.levels) else {"*"}
        if values[row] is None:
            return {None, *rest}
        last = len(kind.levels) - 1 if coarsest is None else coarsest
        return rest | {level(values[row]) for level in kind.levels[finest : last + 1]}


@st.composite
def level_cases(draw: st.DrawFn, nulls: bool = True) -> Case:
    size = draw(st.integers(1, 24))
    columns = {}
    for number_of in range(draw(st.integers(1, 3))):
        kind = KINDS[draw(st.sampled_from(sorted(KINDS)))]
        one = kind.values if not nulls else st.one_of(kind.values, kind.values, kind.values, st.none())
        values = draw(st.lists(one, min_size=size, max_size=size))
        assume(any(value is not None for value in values))
        finest = draw(st.integers(0, len(kind.levels) - 1))
        coarsest = draw(st.one_of(st.none(), st.integers(finest, len(kind.levels))))
        columns[f"q{number_of}"] = (kind, values, finest, coarsest)
    return Case(columns)


def assert_within_levels(case: Case, released: pa.Table, k: int) -> None:
    assert_rows_within_levels(case, released.select([*case.columns, "id"]).to_pylist(), k)


def assert_rows_within_levels(case: Case, rows: list[dict[str, Any]], k: int) -> None:
    for row in rows:
        for name in case.columns:
            assert row[name] in case.allowed(name, row["id"])
    classes = Counter(tuple(row[name] for name in case.columns) for row in rows)
    assert not classes or min(classes.values()) >= k


@pytest.mark.parametrize("method", hiding_methods())
@settings(max_examples=examples(0.3))
@given(case=level_cases(), k=st.integers(1, 3))
def test_no_method_shows_anything_beyond_the_levels(method: str, case: Case, k: int) -> None:
    try:
        release = sfumato.anonymize(case.table, k=k, method=method, **case.flags)
    except InfeasibleError:
        return
    assert_within_levels(case, release.data, k)
    assert release.audit.holds
    limits = [line.requirement for line in release.audit.verdicts if "shows nothing" in line.requirement]
    assert len(limits) == len(case.flags["finest"]) + len(case.flags["coarsest"])


@settings(max_examples=examples(0.5))
@given(case=level_cases(), k=st.integers(1, 3), method=st.sampled_from(["hilbert", "mondrian", "auto"]))
def test_the_disk_engine_keeps_to_the_levels_with_the_release_of_memory(case: Case, k: int, method: str) -> None:
    flags = case.flags | {"max_suppressed": 0.0, "effort": "fast"}  # the default searches in memory, not on disk
    files = []
    for engine in ("memory", "disk"):
        target = Path(f"{engine}.csv")
        try:
            sfumato.anonymize(case.table, k=k, method=method, engine=engine, **flags).write(target, force=True)
        except InfeasibleError:
            files.append(None)
        else:
            files.append(target.read_text("utf-8"))
    assert files[0] == files[1]
    if files[0] is not None:
        rows = csv.DictReader(io.StringIO(files[0], newline=""))
        shown = [{name: cell or None for name, cell in row.items()} | {"id": int(row["id"])} for row in rows]
        assert len(shown) == case.table.num_rows
        assert_rows_within_levels(case, shown, k)


@settings(max_examples=examples(0.5))
@given(case=level_cases(nulls=False), k=st.integers(1, 4))
def test_rules_show_nothing_finer_and_sql_agrees(case: Case, k: int) -> None:
    assume(all(column[0] is not KINDS["codes"] or column[2] == 0 for column in case.columns.values()))  # refused
    flags = {key: value for key, value in case.flags.items() if key not in ("coarsest", "max_suppressed")}
    case = Case({name: (*column[:3], None) for name, column in case.columns.items()})
    k = min(k, case.table.num_rows)
    rules = sfumato.fit(case.table, k=k, method="mondrian", **flags)
    again = sfumato.Recoding.from_json(rules.to_json())
    shown = again.transform(case.table)
    assert_within_levels(case, shown, k)
    connection = duckdb.connect()
    connection.register("people", case.table)
    rows = connection.sql(again.to_sql("duckdb", "people")).to_arrow_table()
    by_sql, by_rules = (
        Counter(zip(*(table[name].to_pylist() for name in case.columns), strict=True)) for table in (rows, shown)
    )
    assert by_sql == by_rules


@pytest.mark.parametrize(("taxonomy", "code"), [({"prefix": [3, 4]}, "101{:02}"), ({"ready": "icd-10"}, "E{}.1")])
@pytest.mark.parametrize("method", ["mondrian", "global"])
def test_rules_that_would_list_what_the_finest_level_hides_are_refused(taxonomy: Any, code: str, method: str) -> None:
    table = pa.table({"code": [code.format(10 + number % 4) for number in range(40)]})
    flags: dict[str, Any] = {"quasi_identifiers": ["code"], "taxonomy": {"code": taxonomy}, "k": 5, "method": method}
    with pytest.raises(UsageError, match="rules would list the values of the column 'code'"):
        sfumato.fit(table, finest={"code": 1}, **flags)
    assert sfumato.fit(table, **flags).to_json()  # without that level nothing is hidden


def test_values_between_those_that_were_learnt_have_their_own_cells() -> None:
    learnt = pa.table({"age": [20, 22, 21, 25, 26, 29], "dose": [2.5, 2.5, 2.5, 5.0, 5.0, 5.0]})
    flags: dict[str, Any] = {
        "quasi_identifiers": ["age", "dose"],
        "taxonomy": {"age": {"intervals": [5, 10]}, "dose": {"intervals": [2.5, 20]}},
        "finest": {"age": 1, "dose": 1},
    }
    rules = sfumato.fit(learnt, k=3, method="mondrian", **flags)
    further = pa.table({"age": [24, 24, 28, 30, 24], "dose": [2.75, 4.5, 7.25, 5.0, 7.5]})
    shown = rules.transform(further)["age"].to_pylist()
    # What is beyond the cells that were learnt, 30 years and 7.5, is in no region.
    assert shown == ["[20..24]", "[20..24]", "[25..29]", "*", "*"]


def test_a_level_is_named_or_numbered() -> None:
    days = [datetime.date(1990 + number, 1 + number, 7) for number in range(6)]
    table = pa.table({"born": days})
    for finest, coarsest in (("year", "decade"), (2, 3), ("year", 3)):
        release = sfumato.anonymize(
            table,
            quasi_identifiers=["born"],
            k=2,
            taxonomy={"born": {"calendar": ["month", "year", "decade"]}},
            finest={"born": finest},
            coarsest={"born": coarsest},
        )
        assert set(release.data["born"].to_pylist()) == {"1990s"}
    flags: dict[str, Any] = {"quasi_identifiers": ["born"], "taxonomy": {"born": {"calendar": ["year"]}}, "k": 1}
    release = sfumato.anonymize(table, finest={"born": "day"}, **flags)
    assert release.data["born"].to_pylist() == [str(day) for day in days]


def test_the_loss_counts_what_the_finest_level_hides() -> None:
    ages = pa.table({"age": [0, 1, 2, 50, 51, 100]})
    flags: dict[str, Any] = {"quasi_identifiers": ["age"], "taxonomy": {"age": {"intervals": [5, 50]}}, "k": 1}
    release = sfumato.anonymize(ages, finest={"age": 1}, **flags)
    assert sorted(release.data["age"].to_pylist()) == ["[0..4]"] * 3 + ["[100..104]"] + ["[50..54]"] * 2
    assert release.losses.gcp == pytest.approx(0.04)
    places = pa.table({"place": ["Kiel", "Bonn", "Köln", "Oslo"]})
    release = sfumato.anonymize(
        places, quasi_identifiers=["place"], taxonomy={"place": "places.csv"}, finest={"place": 1}, k=1
    )
    assert sorted(release.data["place"].to_pylist()) == ["North", "Oslo", "West", "West"]
    assert release.losses.gcp == pytest.approx((2 / 5) * 2 / 4)  # West has two of five leaves


def test_top_and_bottom_go_with_levels() -> None:
    ages = pa.table({"age": [15, 18, 19, 23, 61, 66, 68, 91, 95, 99]})
    release = sfumato.anonymize(
        ages,
        quasi_identifiers=["age"],
        taxonomy={"age": {"intervals": [5, 10]}},
        finest={"age": 1},
        coarsest={"age": 2},
        bottom={"age": 18},
        top={"age": 67},
        k=3,
        max_suppressed=0.5,
        keep_order=True,
    )
    # 67 and more lie in [60..69], which ends with everything above.
    assert release.data["age"].to_pylist() == ["[18-..19]"] * 3 + ["[60..67+]"] * 3 + ["[65..67+]"] * 3


def test_what_a_certificate_and_a_file_alone_say(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    table = pa.table({"age": random.integers(20, 80, 200), "place": random.choice(sorted(PLACES), 200)})
    flags: dict[str, Any] = {
        "quasi_identifiers": ["age", "place"],
        "taxonomy": {"age": {"intervals": [5, 10, 40]}, "place": "places.csv"},
        "finest": {"age": 1, "place": 1},
        "coarsest": {"age": 2},
        "k": 5,
    }
    release = sfumato.anonymize(table, **flags)
    release.write(tmp_path / "release.csv")
    audit = sfumato.audit(tmp_path / "release.csv")
    assert audit.holds  # the taxonomy lies in the working directory
    assert [line.requirement for line in audit.verdicts][1:4] == [
        "'age' shows nothing finer than intervals of 5",
        "'age' shows nothing coarser than intervals of 10",
        "'place' shows nothing finer than level 1 of its taxonomy",
    ]
    assert sfumato.measure(table, tmp_path / "release.csv", **flags).gcp == pytest.approx(release.losses.gcp)
    release.report(tmp_path / "report.html")
    release.plot("age", "place")
    Path("places.csv").unlink()
    audit = sfumato.audit(tmp_path / "release.csv")
    assert not audit.holds
    assert [line.requirement for line in audit.unchecked] == [
        "'place' shows nothing finer than level 1 of its taxonomy"
    ]
    assert "copy the file there" in audit.unchecked[0].reason


FORGED = [
    ({"age": ["[20..24]"] * 4 + ["37"] * 4}, ["'age' shows nothing finer than intervals of 5"], 4),
    ({"age": ["[20..24]"] * 4 + ["[30..37]"] * 4}, ["'age' shows nothing finer than intervals of 5"], 4),
    ({"age": ["[20..24]"] * 4 + ["[20..39]"] * 4}, ["'age' shows nothing coarser than intervals of 10"], 4),
    ({"age": ["[20..24]"] * 4 + ["*"] * 4}, ["'age' shows nothing coarser than intervals of 10"], 4),
    ({"born": ["1990"] * 4 + ["1990-02"] * 4}, ["'born' shows nothing finer than the year"], 4),
    ({"born": ["1990"] * 4 + ["[1990-01-01..1991-12-31]"] * 4}, ["'born' shows nothing finer than the year"], 4),
    ({"born": ["1990"] * 4 + ["*"] * 4}, ["'born' shows nothing coarser than the decade"], 4),
    ({"place": ["West"] * 4 + ["Bonn"] * 4}, ["'place' shows nothing finer than level 1 of its taxonomy"], 4),
    ({"place": ["West"] * 4 + ["*"] * 4}, ["'place' shows nothing coarser than level 2 of its taxonomy"], 4),
    ({"code": ["101*"] * 4 + ["1012"] * 4}, ["'code' shows nothing finer than 3 characters"], 4),
    ({"code": ["101*"] * 4 + ["1***"] * 4}, ["'code' shows nothing coarser than 2 characters"], 4),
]
LIMITS: dict[str, tuple[Any, Any, Any]] = {
    "age": ({"intervals": [5, 10, 40]}, 1, 2),
    "born": ({"calendar": ["month", "year", "decade"]}, "year", "decade"),
    "place": ("places.csv", 1, 2),
    "code": ({"prefix": [1, 2, 3]}, 1, 2),
}


@pytest.mark.parametrize(("columns", "failing", "records"), FORGED)
def test_the_audit_notices_a_release_from_elsewhere(
    columns: dict[str, list[str]], failing: list[str], records: int
) -> None:
    (name,) = columns
    taxonomy, finest, coarsest = LIMITS[name]
    audit = sfumato.audit(
        pa.table(columns),
        quasi_identifiers=[name],
        taxonomy={name: taxonomy},
        finest={name: finest},
        coarsest={name: coarsest},
        k=4,
    )
    broken = [line for line in audit.failed if line.requirement in failing]
    assert [(line.requirement, line.value) for line in broken] == [(failing[0], records)]


def test_parts_that_cannot_hold_are_left_out_or_said() -> None:
    table = pa.table({"age": [21, 22, 23, 24, 25, 26, 41, 42], "town": list("aabbaabb")})
    flags: dict[str, Any] = {
        "quasi_identifiers": ["age", "town"],
        "taxonomy": {"age": {"intervals": [10, 20]}},
        "coarsest": {"age": 1},
        "k": 3,
    }
    with pytest.raises(InfeasibleError) as refusal:
        sfumato.anonymize(table, **flags)
    assert "the coarsest levels of 'age' divide the table into 2 parts, and 1 of these" in str(refusal.value)
    assert "2 of the 8 records (25.00%)" in str(refusal.value)
    assert "max_suppressed_fraction = 0.2500 would be enough" in str(refusal.value)
    release = sfumato.anonymize(table, max_suppressed=0.25, **flags)
    assert release.data.num_rows == 6
    with pytest.raises(InfeasibleError, match="1 of these, with 2 records, cannot meet the requirements"):
        sfumato.anonymize(table, engine="disk", **flags)


def test_parts_meet_requirements_that_refer_to_the_whole_release() -> None:
    random = np.random.default_rng(5)
    count = 400
    table = pa.table(
        {
            "age": random.integers(20, 60, count),
            "town": random.choice(list("abcd"), count),
            "illness": random.choice(list("xyz"), count, p=[0.6, 0.3, 0.1]),
        }
    )
    release = sfumato.anonymize(
        table,
        quasi_identifiers=["age", "town"],
        sensitive="illness",
        taxonomy={"age": {"intervals": [5, 20]}},
        coarsest={"age": 2},
        require=["t-closeness(illness, t=0.15)"],
        k=4,
    )
    rows = release.data.to_pylist()
    whole = Counter(row["illness"] for row in rows)
    groups: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        groups.setdefault((row["age"], row["town"]), Counter())[row["illness"]] += 1
    for group in groups.values():
        distance = sum(abs(group[value] / group.total() - whole[value] / len(rows)) for value in whole) / 2
        assert distance <= 0.15 + 1e-9
    assert len(groups) > 2


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"finest": 1}, "finest of column 'age' needs levels"),
        ({"finest": 1, "taxonomy": "flat"}, "finest of column 'age' needs levels"),
        ({"finest": 1, "round": 5}, "finest of column 'age' needs levels"),
        ({"finest": -1, "taxonomy": {"intervals": [5]}}, "must be the name of a level"),
        ({"finest": 1.5, "taxonomy": {"intervals": [5]}}, "must be the name of a level"),
        (
            {"finest": "year", "taxonomy": {"intervals": [5]}},
            "only the levels of calendars and ready-made taxonomies have names",
        ),
        ({"coarsest": "year", "taxonomy": {"calendar": ["month"]}}, "the levels of this taxonomy are 'day', 'month'"),
        ({"finest": 2, "coarsest": 1, "taxonomy": {"intervals": [5, 10]}}, "is more specific than finest"),
    ],
)
def test_levels_that_make_no_sense_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        Policy.from_dict({"columns": {"age": {"role": "quasi-identifier", **settings}}})


def test_levels_that_a_taxonomy_does_not_have_are_refused() -> None:
    table = pa.table({"place": ["Kiel", "Bonn"]})
    flags: dict[str, Any] = {"quasi_identifiers": ["place"], "taxonomy": {"place": "places.csv"}, "k": 1}
    with pytest.raises(PolicyError, match="finest is level 3, but its taxonomy has the levels 0 to 2 below"):
        sfumato.anonymize(table, finest={"place": 3}, **flags)
    with pytest.raises(PolicyError, match="coarsest is level 4, but the most general level of its taxonomy"):
        sfumato.anonymize(table, coarsest={"place": 4}, **flags)


def test_coarsest_goes_neither_with_regions_nor_with_anatomy() -> None:
    table = pa.table({"age": [1, 2, 3, 4], "illness": list("xyxy")})
    flags: dict[str, Any] = {
        "quasi_identifiers": ["age"],
        "sensitive": "illness",
        "taxonomy": {"age": {"intervals": [2, 4]}},
        "coarsest": {"age": 1},
    }
    with pytest.raises(UsageError, match="coarsest does not go with the method anatomy"):
        sfumato.anonymize(table, method="anatomy", l=2, **flags)
    with pytest.raises(UsageError, match="coarsest does not go with regions"):
        sfumato.anonymize(table, boxes="regions", k=2, **flags)


def test_anatomy_shows_the_finest_level() -> None:
    table = pa.table({"age": [1, 2, 3, 4], "illness": list("xyxy")})
    release = sfumato.anonymize(
        table,
        quasi_identifiers=["age"],
        sensitive="illness",
        taxonomy={"age": {"intervals": [2, 4]}},
        finest={"age": 1},
        method="anatomy",
        l=2,
    )
    assert sorted(release.data["age"].to_pylist()) == ["[0..1]", "[2..3]", "[2..3]", "[4..5]"]
    assert "'age' shows nothing finer than intervals of 2" in [line.requirement for line in release.audit.verdicts]


def test_the_years_before_the_first_whole_decade_are_in_no_decade() -> None:
    table = pa.table({"day": [datetime.date(1 + number, 3, 7) for number in range(14)]})
    flags: dict[str, Any] = {"taxonomy": {"day": {"calendar": ["year", "decade"]}}, "k": 2}
    release = sfumato.anonymize(table, quasi_identifiers=["day"], **flags)
    assert set(release.data["day"].to_pylist()) == {"*", "0010s"}
    with pytest.raises(InputError, match="has values that are in no interval or period"):
        sfumato.anonymize(table, quasi_identifiers=["day"], coarsest={"day": "decade"}, **flags)


def test_numbers_beyond_all_intervals_are_refused() -> None:
    table = pa.table({"number": [2**63 - 1, 5]})
    with pytest.raises(InputError, match="has values that are in no interval or period"):
        sfumato.anonymize(
            table, quasi_identifiers=["number"], taxonomy={"number": {"intervals": [10]}}, finest={"number": 1}, k=1
        )
