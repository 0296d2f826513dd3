"""The audit finds what is wrong with a release, whoever made it, and nothing that fails is returned or written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.api import anonymize_to_file
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.engines.memory.released_rows import RowsInMemory
from sfumato.evaluation.audit.audit import audit_classes
from sfumato.methods import ClassBatch, Records
from sfumato.policy import InputOptions, merge_flags
from sfumato.progress import Progress
from sfumato.requirements import Requirements, Verdict
from sfumato.tables.released_classes import find_classes
from sfumato.tables.sources.source import open_source
from sfumato.tables.targets import file_target

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

PEOPLE = pa.table(
    {
        "age": [20, 21, 30, 31, 60, 61],
        "city": ["Pisa", "Pisa", "Roma", "Roma", "Lucca", "Lucca"],
        "score": [1.0, 2.5, 1.0, 2.5, 1.0, 2.5],
        "well": [True, False, True, False, True, False],
    }
)
ASKS: dict[str, Any] = {
    "quasi_identifiers": ["age", "city"],
    "other": "keep",
    "accept_linkable": ["score", "well"],
    "k": 2,
}


def verdict_of(report: Any, words: str) -> Verdict:
    (found,) = [verdict for verdict in report.verdicts if words in verdict.requirement]
    assert isinstance(found, Verdict)
    return found


def k_verdict(data: object, k: int = 2, names: Any = ("a",), **settings: Any) -> tuple[bool, Any, int]:
    report = sfumato.audit(data, quasi_identifiers=list(names), other="keep", k=k, **settings)
    verdict = verdict_of(report, "k-anonymity")
    assert report.smallest_class == verdict.value
    assert report.holds == verdict.holds
    return verdict.holds, verdict.value, report.classes


CELLS = {
    "text": st.one_of(st.none(), st.sampled_from(["", "a", "b", "NA", "[1..2]", "*", "nan"])),
    "whole": st.one_of(st.none(), st.integers(0, 3)),
    "float": st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, float("nan")])),
    "flag": st.one_of(st.none(), st.booleans()),
}


@given(data=st.data())
def test_smallest_class_is_that_of_a_plain_group_by(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4))
    rows = data.draw(st.integers(1, 25))
    types = {"text": pa.string(), "whole": pa.int32(), "float": pa.float64(), "flag": pa.bool_()}
    columns = {
        f"q{place}": pa.array(data.draw(st.lists(CELLS[kind], min_size=rows, max_size=rows)), types[kind])
        for place, kind in enumerate(kinds)
    }
    table = pa.table(columns)
    found = oracle.classes(table.to_pylist(), table.column_names)
    smallest = min(map(len, found.values()))
    k = data.draw(st.integers(1, 4))
    assert k_verdict(table, k, table.column_names) == (smallest >= k, smallest, len(found))


def test_class_below_k_is_found() -> None:
    assert k_verdict(pa.table({"a": ["x", "x", "y"]})) == (False, 1, 2)
    assert k_verdict(pa.table({"a": ["x", "x", "y", "y"]})) == (True, 2, 2)


def test_the_repr_of_a_report_is_one_line_with_the_outcome() -> None:
    asked: dict[str, Any] = {"quasi_identifiers": ["a"], "other": "keep", "k": 2}
    fails = sfumato.audit(pa.table({"a": ["x", "x", "y"]}), **asked)
    assert repr(fails) == "<AuditReport: 1 of 1 requirements fail; 3 records, 2 classes, smallest class 1>"
    holds = sfumato.audit(pa.table({"a": ["x", "x"]}), **asked)
    assert repr(holds) == "<AuditReport: holds; 2 records, 1 classes, smallest class 2>"


def test_nulls_are_a_class_of_their_own() -> None:
    assert k_verdict(pa.table({"a": ["x", "x", None]})) == (False, 1, 2)
    assert k_verdict(pa.table({"a": ["x", "x", None, None]})) == (True, 2, 2)
    assert k_verdict(pa.table({"a": ["x", None, None]})) == (False, 1, 2)


def test_nan_and_null_are_one_class_and_zeros_too() -> None:
    assert k_verdict(pa.table({"a": [float("nan"), float("nan")]})) == (True, 2, 1)
    assert k_verdict(pa.table({"a": [float("nan"), None]})) == (True, 2, 1)
    assert k_verdict(pa.table({"a": [0.0, -0.0, 1.0]})) == (False, 1, 2)


def test_rows_of_stars_are_an_ordinary_class() -> None:
    assert k_verdict(pa.table({"a": ["*", "x", "x"]})) == (False, 1, 2)


def test_null_and_the_word_for_it_are_two_classes(tmp_path: Path) -> None:
    path = tmp_path / "release.csv"
    path.write_text('a,b\n,1\n,1\nNone,1\n"",1\n"",1\n')
    assert k_verdict(path) == (False, 1, 3)


@pytest.mark.not_quick
def test_classes_are_found_across_batches_with_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.tables.sources.source_batches.BATCH_ROWS", 7)
    generator = np.random.default_rng(2)
    table = pa.table({f"q{q}": [f"v{value}" for value in generator.integers(0, 60, 500)] for q in range(20)})
    table = pa.concat_tables([table, table.take(generator.permutation(500))])
    assert k_verdict(table, 2, table.column_names) == (True, 2, 500)


def test_releases_made_elsewhere_are_audited_whatever_their_labels(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.csv"
    path.write_text("alter;plz\n20-29;50***\n20-29;50***\n<20;*\n<20;*\n≥30;*\n", "utf-8")
    report = sfumato.audit(path, quasi_identifiers=["alter", "plz"], k=2, input={"separator": ";"})
    assert (report.holds, report.smallest_class, report.classes, report.records) == (False, 1, 3, 5)
    assert any("no certificate" in remark for remark in report.remarks)
    assert not sfumato.audit(path, quasi_identifiers=["plz"], other="keep", k=3, input={"separator": ";"}).holds
    assert sfumato.audit(path, quasi_identifiers=["plz"], other="keep", k=2, input={"separator": ";"}).holds


def diversity_verdicts(data: object, kinds: dict[str, int], **settings: Any) -> list[tuple[bool, Any]]:
    asked = [{"attribute": "s", "kind": kind, "l": least} for kind, least in kinds.items()]
    columns = {"a": {"role": "quasi-identifier"}, "s": {"role": "sensitive"}}
    policy = sfumato.Policy.from_dict({"columns": columns, "privacy": {"sensitive": asked}})
    report = sfumato.audit(data, policy, **settings)
    return [(one.holds, one.value) for one in report.verdicts if "diversity of 's'" in one.requirement]


def test_planted_violations_of_diversity_are_found() -> None:
    both = {"frequency": 2, "distinct": 2}
    ages = ["x"] * 4 + ["y"] * 3
    assert diversity_verdicts(pa.table({"a": ages, "s": list("ppqqpqr")}), both) == [(True, 2.0), (True, 2)]
    assert diversity_verdicts(pa.table({"a": ages, "s": list("pppqpqr")}), both) == [(False, 4 / 3), (True, 2)]
    assert diversity_verdicts(pa.table({"a": ages, "s": list("ppqqppp")}), both) == [(False, 1.0), (False, 1)]
    assert diversity_verdicts(pa.table({"a": ages, "s": list("ppqqpqr")}), {"frequency": 3}) == [(False, 2.0)]
    assert diversity_verdicts(pa.table({"a": ages, "s": list("ppqqpqr")}), {"distinct": 3}) == [(False, 2)]


def test_null_sensitive_values_protect_nobody_in_an_audit() -> None:
    both = {"frequency": 2, "distinct": 2}
    for nothing in (None, "", "NA"):
        table = pa.table({"a": ["x"] * 4, "s": ["p", "q", "p", nothing]})
        assert diversity_verdicts(table, both, input={"nulls": ["", "NA"]}) == [(False, 1.5), (True, 2)]
        table = pa.table({"a": ["x"] * 3, "s": pa.array([nothing] * 3, pa.string())})
        assert diversity_verdicts(table, both, input={"nulls": ["", "NA"]}) == [(True, 2.0), (False, 0)]
    table = pa.table({"a": ["x"] * 4, "s": [0.0, -0.0, 1.0, float("nan")]})
    assert diversity_verdicts(table, both) == [(False, 1.5), (True, 2)]


@pytest.mark.parametrize("l", [2**31, 2**62, 2**64, 10**30])
def test_no_l_is_too_large_for_the_audit(l: int) -> None:
    table = pa.table({"a": ["x"] * 4, "s": list("pppp")})
    assert diversity_verdicts(table, {"frequency": l, "distinct": l}) == [(False, 1.0), (False, 1)]


@given(data=st.data())
def test_diversity_is_that_of_a_plain_group_by(data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 25))
    cells = data.draw(st.sampled_from([CELLS["text"], CELLS["whole"], CELLS["float"], CELLS["flag"]]))
    columns = {
        "a": pa.array(data.draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))),
        "s": pa.array(data.draw(st.lists(cells, min_size=rows, max_size=rows))),
    }
    table = pa.table(columns)
    least = data.draw(st.integers(1, 4))
    plain = table.to_pylist()
    reached, fewest = oracle.reached_frequency(plain, ["a"], "s"), oracle.fewest_values(plain, ["a"], "s")
    assert diversity_verdicts(table, {"frequency": least, "distinct": least}) == [
        (reached is None or reached >= least, float(least if reached is None else reached)),
        (fewest >= least, fewest),
    ]


def test_sensitive_column_that_is_not_released_cannot_be_audited() -> None:
    with pytest.raises(sfumato.UsageError, match="names the column 's', which the table does not have"):
        diversity_verdicts(pa.table({"a": ["x", "x"], "t": ["p", "q"]}), {"frequency": 2}, other="keep")


def test_typed_release_of_another_tool_is_audited(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere.parquet"
    pq.write_table(pa.table({"age": [25, 25, 35], "name": ["x", "y", "z"]}), path)
    report = sfumato.audit(path, quasi_identifiers=["age"], identifiers="name", k=2)
    assert (report.holds, report.smallest_class) == (False, 1)
    assert not verdict_of(report, "identifier 'name' is not released").holds


def test_nothing_to_check_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "release.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(sfumato.UsageError, match="nothing says what to check"):
        sfumato.audit(path)
    with pytest.raises(sfumato.UsageError, match="'c', which the table does not have"):
        sfumato.audit(path, quasi_identifiers=["c"], k=2)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "csv.gz"])
def test_own_release_is_audited_by_its_certificate(tmp_path: Path, suffix: str) -> None:
    target = sfumato.anonymize(PEOPLE, **ASKS).write(tmp_path / f"release.{suffix}")
    report = sfumato.audit(target)
    assert report.holds
    assert (report.records, report.classes, report.smallest_class) == (6, 3, 2)
    assert verdict_of(report, "certified").holds
    assert not report.remarks
    assert not sfumato.audit(target, k=3).holds


def test_separator_of_the_policy_goes_before_the_suffix(tmp_path: Path) -> None:
    target = sfumato.anonymize(PEOPLE, input={"separator": ";"}, **ASKS).write(tmp_path / "release.tsv")
    assert target.read_text().startswith("age;city")
    assert sfumato.audit(target).holds
    target = sfumato.anonymize(PEOPLE, **ASKS).write(tmp_path / "tabs.tsv")
    assert target.read_text().startswith("age\tcity")
    assert sfumato.audit(target).holds


def test_earlier_release_is_noticed_beside_a_larger_quasi_identifier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_STATE_DIR", str(tmp_path / "state"))
    table = pa.table({"age": [20, 21, 30, 31] * 100, "number": range(400)})
    sfumato.anonymize(table, quasi_identifiers=["age"], other="drop", k=2).write(tmp_path / "one.csv")
    again = sfumato.anonymize(table, quasi_identifiers=["age", "number"], k=2)  # codes of two bytes now
    assert ["released 1 time before" in text for text in again.warnings] == [True]


def test_changed_file_is_not_the_certified_one(tmp_path: Path) -> None:
    target = sfumato.anonymize(PEOPLE, **ASKS).write(tmp_path / "release.csv")
    text = target.read_text()
    target.write_text(text.replace("true", "false", 1))
    report = sfumato.audit(target)
    assert verdict_of(report, "k-anonymity").holds
    assert not verdict_of(report, "certified").holds
    assert not report.holds


def test_certificate_of_another_file_does_not_count(tmp_path: Path) -> None:
    target = sfumato.anonymize(PEOPLE, **ASKS).write(tmp_path / "release.csv")
    renamed = tmp_path / "other.csv"
    renamed.write_bytes(target.read_bytes())
    (tmp_path / "other.csv.sfumato.json").write_bytes((tmp_path / "release.csv.sfumato.json").read_bytes())
    assert not verdict_of(sfumato.audit(renamed), "certified").holds


def test_missing_certificate_is_said(tmp_path: Path) -> None:
    target = sfumato.anonymize(PEOPLE, **ASKS).write(tmp_path / "release.csv")
    (tmp_path / "release.csv.sfumato.json").unlink()
    report = sfumato.audit(target, quasi_identifiers=["age", "city"], other="keep", k=2)
    assert report.holds
    assert ["no certificate" in remark for remark in report.remarks] == [True]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 99}', '"x"', "\xff"])
def test_broken_certificate_is_an_error(tmp_path: Path, content: str) -> None:
    target = sfumato.anonymize(PEOPLE, **ASKS).write(tmp_path / "release.csv")
    (tmp_path / "release.csv.sfumato.json").write_text(content, "latin-1")
    with pytest.raises(sfumato.InputError, match="certificate"):
        sfumato.audit(target)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_kept_columns_are_those_of_the_original(tmp_path: Path, suffix: str) -> None:
    target = sfumato.anonymize(PEOPLE, **ASKS).write(tmp_path / f"release.{suffix}")
    report = sfumato.audit(target, original=PEOPLE)
    assert report.holds
    assert verdict_of(report, "kept column 'score'").value == 0
    changed = PEOPLE.set_column(2, "score", pa.array([1.0, 2.5, 1.0, 2.5, 1.0, 7.0]))
    report = sfumato.audit(target, original=changed)
    assert not report.holds
    assert verdict_of(report, "kept column 'score'").value == 1
    assert verdict_of(report, "kept column 'well'").holds
    assert not verdict_of(
        sfumato.audit(target, original=PEOPLE.drop_columns(["well"])), "column 'well' is in the original"
    ).holds


def test_null_is_not_the_word_none_in_a_kept_column() -> None:
    original = pa.table({"age": [1, 2], "note": ["None", "x"]})
    released = pa.table({"age": ["*", "*"], "note": [None, "x"]})
    report = sfumato.audit(released, original=original, quasi_identifiers=["age"], other="keep", k=2)
    assert not verdict_of(report, "kept column 'note'").holds


def test_bounds_are_part_of_the_class_key(tmp_path: Path) -> None:
    table = pa.table({"age": ["*", "*"], "age_min": [1, 2], "age_max": [9, 9]})
    assert not sfumato.audit(table, quasi_identifiers=["age"], other="keep", form="bounds", k=2).holds
    target = sfumato.anonymize(PEOPLE, form="bounds", **ASKS).write(tmp_path / "release.parquet")
    assert sfumato.audit(target).holds


class Faulty:
    """A method that puts one record fewer than k into its first class."""

    name = "hilbert"
    paper = ""
    summary = ""

    def check(self, requirements: Requirements) -> None:
        return

    separates = False
    use = "never"

    def meets(self, requirements: Requirements) -> bool:
        return True

    def classes(self, records: Records, requirements: Requirements, progress: Progress) -> Iterator[ClassBatch]:
        count = requirements.least_class - 1
        order = records.rows
        low = records.codes[[0, count]]
        high = np.stack([records.codes[:count].max(axis=0), records.codes[count:].max(axis=0)])
        yield ClassBatch(order, np.array([0, count, records.count]), low, high.astype(low.dtype))


@pytest.fixture
def faulty_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.engines.memory.classes.method_named", lambda name: Faulty())


@pytest.fixture
def blind_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Requirements, "holds", lambda self, classes: np.ones(len(classes.sizes), np.bool_))


FAULTY_ASKS: dict[str, Any] = {"quasi_identifiers": ["age"], "other": "drop", "k": 3}


@pytest.mark.usefixtures("faulty_method")
def test_engine_stops_a_method_that_breaks_k(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="does not meet the requirements"):
        sfumato.anonymize(PEOPLE, **FAULTY_ASKS)
    with pytest.raises(AssertionError, match="does not meet the requirements"):
        anonymize_to_file(PEOPLE, merge_flags(None, **FAULTY_ASKS), tmp_path / "release.csv", Progress())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("faulty_method", "blind_engine")
@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "xlsx"])
def test_audit_alone_withholds_a_release_that_breaks_k(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(sfumato.AuditError, match="k-anonymity, k = 3") as error:
        sfumato.anonymize(PEOPLE, **FAULTY_ASKS)
    assert error.value.exit_code == 70
    target = tmp_path / f"release.{suffix}"
    target.write_text("what was there before")
    with pytest.raises(sfumato.AuditError, match="withheld; nothing was written"):
        anonymize_to_file(PEOPLE, merge_flags(None, **FAULTY_ASKS), target, Progress(), force=True)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert target.read_text() == "what was there before"


def test_file_that_differs_from_the_table_in_memory_is_withheld(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = file_target.write_batches

    def forgetful(schema: pa.Schema, batches: Any, path: Path, **options: Any) -> None:
        write(schema, batches, path, **options)
        header, _, *rest = path.read_text().splitlines(keepends=True)
        path.write_text(header + "".join(rest))

    monkeypatch.setattr(file_target, "write_batches", forgetful)
    release = sfumato.anonymize(PEOPLE, **ASKS)
    with pytest.raises(sfumato.AuditError, match="k-anonymity"):
        release.write(tmp_path / "release.csv")
    assert list(tmp_path.iterdir()) == []


def test_audit_does_not_use_what_methods_and_recoding_use() -> None:
    """The audit must not inherit their mistakes."""
    import sfumato.evaluation.audit.audit as audit_module

    source = Path(str(audit_module.__file__)).read_text("utf-8")
    assert not any(f"sfumato.{inner}" in source for inner in ("methods", "orderings", "releases", "engines", "kernels"))


def test_certificate_says_what_the_audit_found(tmp_path: Path) -> None:
    target = sfumato.anonymize(PEOPLE, **ASKS).write(tmp_path / "release.parquet")
    content = json.loads((tmp_path / f"{target.name}.sfumato.json").read_text("utf-8"))
    assert content["audit"] == [{"requirement": "k-anonymity, k = 2", "holds": True, "value": 2}]
    assert (content["records"], content["released"], content["classes"], content["suppressed"]) == (6, 6, 3, 0)
    assert content["policy"]["privacy"] == {"k": 2}


def test_a_release_that_lost_records_is_withheld(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = MemoryEngine.recode

    def lossy(engine: MemoryEngine, table: Any, classes: Any) -> RowsInMemory:
        rows = whole(engine, table, classes)
        return replace(rows, table=rows.table.slice(2))

    monkeypatch.setattr(MemoryEngine, "recode", lossy)
    with pytest.raises(sfumato.AuditError, match="4 records and the table 6, which leaves out more than"):
        sfumato.anonymize(PEOPLE, **ASKS)
    with pytest.raises(sfumato.AuditError, match="withheld"):
        anonymize_to_file(PEOPLE, merge_flags(None, **ASKS), tmp_path / "out.parquet", Progress())
    assert not list(tmp_path.iterdir())


def test_the_original_is_never_overwritten(tmp_path: Path) -> None:
    original = tmp_path / "people.parquet"
    pq.write_table(PEOPLE, original)
    before = original.read_bytes()
    (tmp_path / "link.parquet").symlink_to(original)
    release = sfumato.anonymize(original, **ASKS)
    for target in (original, tmp_path / "link.parquet"):
        with pytest.raises(sfumato.UsageError, match="the output is the input"):
            release.write(target)
    assert original.read_bytes() == before


def test_an_audit_that_is_to_count_persons_never_counts_records_instead() -> None:
    table = pa.table({"age": [1, 1, 2, 2], "illness": ["a", "b", "a", "b"]})
    policy = merge_flags(None, quasi_identifiers=["age"], k=2, person="number")
    source = open_source(table, InputOptions())
    classes = find_classes(source, ["age"], by_row=True)
    for persons in (None, np.zeros(3, np.uint32)):
        with pytest.raises(AssertionError, match="the person of each row is unknown"):
            audit_classes(source, classes, policy, policy.requirements(), {}, persons)
