"""Releases of any size: audited and measured in parts, with the same result as in memory, within a memory limit."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Case, cases

import sfumato
from sfumato.cli import main
from sfumato.evaluation.audit.audit import AuditReport, audit_classes, class_key
from sfumato.evaluation.audit.audit_in_parts import audit_in_parts
from sfumato.evaluation.audit.audit_with_losses import audit_and_measure_in_parts
from sfumato.evaluation.public_figures import Examination, PublicTotals, public_figures
from sfumato.evaluation.release_losses import Losses, measure_release
from sfumato.policy import InputOptions, Policy, merge_flags
from sfumato.progress import Progress
from sfumato.requirements import ClassCounts, FrequencyDiversity, Histogram, Verdict
from sfumato.tables.coding.profile import profile_source
from sfumato.tables.external.partition_by_key import (
    CELL_BYTES,
    COUNT,
    RUN_BYTES,
    VALUE_BYTES,
    PartsByKey,
    room_within,
    runs_of,
)
from sfumato.tables.external.scratch import Scratch
from sfumato.tables.released_classes import find_classes, majorities
from sfumato.tables.sources.source import Source, open_source
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.taxonomies.taxonomy_file import read_taxonomy

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
KEY, SENSITIVE = ("a", "b", "c", "d"), ("s", "n", "t")
PATHS = [["flu", "lung", "*"], ["cold", "lung", "*"], ["ulcer", "stomach", "*"], ["NA", "stomach", "*"]]
KINDS = [
    ("s", "frequency", {"l": 2}),
    ("s", "distinct", {"l": 2}),
    ("n", "distinct", {"l": 3}),
    ("s", "entropy", {"l": 2}),
    ("n", "recursive", {"c": 2.0, "l": 2}),
    ("n", "variance", {"v": 0.5}),
    ("s", "t-closeness", {"t": 0.4, "distance": "hierarchical"}),
    ("n", "t-closeness", {"t": 0.3, "distance": "ordered"}),
    ("t", "t-closeness", {"t": 0.3}),
    ("t", "alpha-k", {"alpha": 0.6}),
    ("n", "beta-likeness", {"beta": 1.5}),
    ("t", "beta-likeness", {"beta": 1.0, "enhanced": True}),
    ("t", "delta-disclosure", {"delta": 1.0}),
    ("t", "frequency", {"l": 3}),
]


@pytest.fixture(autouse=True, scope="module")
def small_batches() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.tables.sources.source_batches.BATCH_ROWS", 64)
        yield


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Taxonomy:
    path = tmp_path_factory.mktemp("taxonomy") / "s.csv"
    path.write_text("".join(",".join(row) + "\n" for row in PATHS))
    return read_taxonomy(path, "s")


def some_release(seed: int, rows: int, keys: int) -> pa.Table:
    """A release in canonical order: classes of several sizes, every kind of cell, and nulls of every kind."""
    draw = np.random.default_rng(seed)
    values: dict[str, list[Any]] = {
        "a": ["*", "", None, *(f"[{low}..{low + 9}]" for low in range(30))],
        "b": [0.0, -0.0, 1.5, float("nan"), None],
        "c": [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), None],
        "d": [True, False, None],
    }
    cells: dict[str, list[Any]] = {
        "s": ["flu", "cold", "ulcer", "", None],
        "n": [1, 2, 10, None, 3],
        "t": ["x", "y", "NA", None],
    }
    classes = [tuple(value[draw.integers(len(value))] for value in values.values()) for _ in range(keys)]
    shown = [classes[place] for place in np.sort(draw.integers(0, keys, rows)).tolist()]
    columns = dict(zip(values, zip(*shown, strict=True), strict=True))
    for name, value in cells.items():
        common = draw.integers(1, len(value) + 1)  # some releases have few values, some nothing but one
        columns[name] = tuple(value[place] for place in draw.integers(0, common, rows).tolist())
    kinds = [pa.string(), pa.float64(), pa.date32(), pa.bool_(), pa.string(), pa.int32(), pa.string()]
    return pa.table({name: pa.array(columns[name], kind) for name, kind in zip(columns, kinds, strict=True)})


def asked_of(requirements: Sequence[tuple[str, str, dict[str, Any]]], **privacy: Any) -> Policy:
    columns = {name: {"role": "quasi-identifier"} for name in KEY} | {name: {"role": "sensitive"} for name in SENSITIVE}
    columns["pid"] = {"role": "identifier"}
    if any("hierarchical" in parameters.values() for *_, parameters in requirements):
        columns["s"]["taxonomy"] = "s.csv"
    asked = [{"attribute": name, "kind": kind, **parameters} for name, kind, parameters in requirements]
    return Policy.from_dict({"columns": columns, "privacy": {"k": 2, "sensitive": asked, **privacy}})


def shuffled(table: pa.Table, seed: int = 0) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))


def tight(table: pa.Table, key: Sequence[str], others: int) -> int:
    """A limit that the largest class just fits into, whatever its cells are, and little more."""
    largest = max(map(len, oracle.classes(table.to_pylist(), list(key)).values()))
    run = RUN_BYTES + (len(key) + others) * (CELL_BYTES + VALUE_BYTES + 150)
    return 8 * (largest * run * 4 // 3 + 1)


def same_value(one: float, other: float) -> bool:
    return type(one) is type(other) and (
        one == other or (isinstance(one, float) and one == pytest.approx(other, 1e-12))
    )


def assert_same_report(one: AuditReport, other: AuditReport) -> None:
    for verdict, expected in zip(one.verdicts, other.verdicts, strict=True):
        assert replace(verdict, value=0) == replace(expected, value=0)
        assert same_value(verdict.value, expected.value), (verdict, expected)
    assert replace(one, verdicts=()) == replace(other, verdicts=())


def assert_same_losses(one: Losses, other: Losses) -> None:
    assert list(one.values) == list(other.values)
    assert all(same_value(one.values[name], other.values[name]) for name in one.values)
    assert one.columns == pytest.approx(other.columns, rel=1e-12)
    assert one.suppressed == other.suppressed


def audited(table: pa.Table, policy: Policy, trees: dict[str, Taxonomy], memory: int) -> tuple[AuditReport, int]:
    """What the audit in parts finds, and how many files it made on the way."""
    source = open_source(table, InputOptions())
    with Scratch() as scratch:
        requirements = policy.requirements_without_persons()
        report = audit_in_parts(
            source, policy, requirements, trees, memory=memory, scratch=scratch, progress=Progress()
        )
        assert [path.name for path in scratch.directory.iterdir()] == ["lock"]
        return report, int(scratch.path("next").name[:6]) - 1


def audited_in_memory(table: pa.Table, policy: Policy, trees: dict[str, Taxonomy]) -> AuditReport:
    source = open_source(table, InputOptions())
    classes = find_classes(source, class_key(policy, source.names), by_row=True)
    return audit_classes(source, classes, policy, policy.requirements_without_persons(), trees)


# ---- the same as in memory ----


@given(data=st.data())
def test_verdicts_are_those_found_in_memory_for_every_requirement(data: st.DataObject, tree: Taxonomy) -> None:
    table = some_release(
        data.draw(st.integers(0, 1 << 30)), data.draw(st.integers(1, 150)), data.draw(st.integers(1, 40))
    )
    chosen = data.draw(st.lists(st.sampled_from(KINDS), max_size=5, unique_by=lambda one: one[:2]))
    null = data.draw(st.sampled_from(["missing", "value"]))
    chosen = [one for one in chosen if (null, one[1]) != ("value", "variance")]
    person = {"person": "pid"} if data.draw(st.booleans()) else {}
    policy = asked_of(chosen, joint=bool(chosen) and data.draw(st.booleans()), null_sensitive=null, **person)
    trees = {"s": tree} if any("hierarchical" in parameters.values() for *_, parameters in chosen) else {}
    if data.draw(st.booleans()):
        table = shuffled(table)
    others = len(policy.requirements().columns)
    found, _ = audited(table, policy, trees, tight(table, KEY, others))
    assert_same_report(found, audited_in_memory(table, policy, trees))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[1]}-{kind[0]}")
@pytest.mark.parametrize("joint, order", [(False, "canonical"), (True, "shuffled")], ids=["alone", "jointly"])
def test_many_parts_and_parts_of_parts_judge_as_the_oracle_does(
    kind: tuple[str, str, dict[str, Any]], order: str, joint: bool, tree: Taxonomy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LEAST_FILES", "MOST_FILES"):
        monkeypatch.setattr(f"sfumato.tables.external.partition_by_key.{name}", 3)
    table = some_release(7, 300, 150)
    table = shuffled(table) if order == "shuffled" else table
    policy = asked_of([kind], joint=joint)
    trees = {"s": tree} if "hierarchical" in kind[2].values() else {}
    found, files = audited(table, policy, trees, tight(table, KEY, 1 + 2 * joint))
    assert files > 3  # parts that were divided again
    rows = table.to_pylist()
    counting = oracle.Counting(joint=SENSITIVE if joint else ())
    classes = oracle.classes(rows, list(KEY))
    assert (found.classes, found.records) == (len(classes), 300)
    assert found.smallest_class == found.verdicts[0].value == min(map(len, classes.values()))
    met = oracle.is_met(oracle.Asked(kind[1], kind[0], kind[2], PATHS), rows, KEY, counting)
    assert found.verdicts[1].holds == met
    assert_same_report(found, audited_in_memory(table, policy, trees))
    # Nobody knows whose the records are: the same figures, and the same as in memory.
    policy = asked_of([kind], joint=joint, person="pid")
    unknown, _ = audited(table, policy, trees, tight(table, KEY, 1 + 2 * joint))
    assert [line.value for line in unknown.verdicts] == pytest.approx([line.value for line in found.verdicts])
    assert unknown.verdicts[1].holds in (met, None)
    assert_same_report(unknown, audited_in_memory(table, policy, trees))


@dataclass(frozen=True)
class Examined:
    """A release by Sfumato, with what is needed to examine it."""

    original: pa.Table
    table: pa.Table
    policy: Policy

    def both(self, target: str | None, memory: int) -> tuple[Examination, Examination]:
        policy, requirements = self.policy, self.policy.requirements()
        taxonomies = {
            name: read_taxonomy(policy.taxonomy_path(name), name)
            for name in policy.quasi_identifiers
            if policy.columns[name].taxonomy_file is not None
        }
        columns = {name: policy.columns[name] for name in policy.quasi_identifiers}
        original = open_source(self.original, InputOptions())
        encoders, records = profile_source(original, columns, InputOptions(), taxonomies, Progress())
        domains = [encoder.domain for encoder in encoders]
        source = open_source(self.table, InputOptions())
        with Scratch() as scratch:
            in_parts = audit_and_measure_in_parts(
                source,
                policy,
                requirements,
                taxonomies,
                domains,
                records=records,
                memory=memory,
                scratch=scratch,
                progress=Progress(),
                target=target,
            )
        classes = find_classes(source, class_key(policy, source.names), by_row=True)
        report = audit_classes(source, classes, policy, requirements, taxonomies)
        majority = None if target is None else majorities(source, classes, target)
        weights = policy.weights(domains)
        losses = measure_release(classes, domains, weights, records=records, k=policy.k, majority=majority)
        return in_parts, Examination(report, losses, PublicTotals.of(classes, policy, taxonomies))


@pytest.mark.not_quick
@settings(max_examples=examples(2 / 3))
@given(case=cases(rows=40), form=st.sampled_from(["labels", "bounds", "statistics"]), data=st.data())
def test_losses_are_those_measured_in_memory_and_by_the_oracle(
    case: Case, form: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    policy = merge_flags(None, **case.settings(tmp_path_factory.mktemp("case")), form=form)
    if policy.k > case.table.num_rows:
        return
    table = sfumato.anonymize(case.table, policy, method="hilbert").data
    table = shuffled(table) if data.draw(st.booleans()) else table
    target = data.draw(st.sampled_from([None, *case.others]))
    key = class_key(policy, table.column_names)
    examined = Examined(case.table, table, policy)
    in_parts, whole = examined.both(target, tight(table, key, target is not None))
    (report, losses, totals), (expected, measured, totals_of_whole) = in_parts, whole
    assert_same_report(report, expected)
    public = public_figures(totals, report, policy, left_out=0)
    public_of_whole = public_figures(totals_of_whole, expected, policy, left_out=0)
    for key in ("blur", "blur_by_column", "c_dm", "c_avg", "c_mdm", "classes", "smallest_class"):
        assert public.get(key) == pytest.approx(public_of_whole.get(key))
    assert_same_losses(losses, measured)
    true = oracle.losses(case.table.num_rows, table.to_pylist(), case.columns, policy.k, case.weights, target)
    if form == "labels":  # bounds and means make further classes of equal labels
        assert losses.values == pytest.approx({name: float(value) for name, value in true.items()}, rel=1e-9)
    assert losses.values["gcp"] == pytest.approx(float(true["gcp"]), rel=1e-9)


def test_classes_of_nothing_but_null_do_not_hide_what_others_reach() -> None:
    asked = FrequencyDiversity("s", 2)
    sizes, one = np.array([4]), np.zeros(1, np.int64)
    empty = ClassCounts(sizes, {"s": Histogram(one[:0], one[:0])})
    some = ClassCounts(sizes, {"s": Histogram(np.zeros(4, np.int64), np.ones(4, np.int64))})
    nothing, found = asked.verdict(empty), asked.verdict(some)
    assert (nothing.value, found.value) == (2.0, 4.0)
    for joined in (asked.worse(nothing, found), asked.worse(found, nothing)):
        assert (joined.holds, joined.value, joined.vacuous) == (True, 4.0, False)
    assert asked.worse(nothing, nothing) == nothing
    failed = Verdict("frequency", False, 1.0)
    assert not asked.worse(nothing, failed).holds
    assert asked.worse(found, failed).value == 1.0


# ---- what is wrong is found, wherever it stands ----


def scattered(rare: int, k: int = 5, classes: int = 150) -> pa.Table:
    """Classes of k whose rows stand apart from each other in the file, and one of ``rare`` rows among them."""
    names = [f"class {number:04}" for number in range(classes)]
    rows = names * k
    for place in range(rare):
        rows.insert(place * len(rows) // rare, "planted")
    return pa.table({"a": rows, "b": [1] * len(rows)})


@pytest.mark.parametrize("rare", [4, 5])
def test_a_class_below_k_whose_rows_are_scattered_over_the_file_is_found(rare: int) -> None:
    table = scattered(rare)
    policy = merge_flags(None, quasi_identifiers=["a", "b"], k=5)
    found, files = audited(table, policy, {}, tight(table, ["a", "b"], 0))
    assert files > 10
    assert (found.holds, found.smallest_class, found.classes) == (rare == 5, rare, 151)
    assert found.verdicts == (Verdict("k-anonymity, k = 5", rare == 5, rare),)


def test_equal_boxes_in_distant_places_are_one_class() -> None:
    once = pa.table({"a": [f"class {number // 2:04}" for number in range(300)]})
    policy = merge_flags(None, quasi_identifiers=["a"], k=4)
    assert not audited(once, policy, {}, tight(once, ["a"], 0))[0].holds
    found, files = audited(pa.concat_tables([once, once]), policy, {}, tight(once, ["a"], 0))
    assert files > 10
    assert (found.holds, found.smallest_class, found.classes, found.records) == (True, 4, 150, 600)


def test_a_sensitive_value_too_frequent_in_one_scattered_class_is_found() -> None:
    table = scattered(5)
    values = [str(place % 7) for place in range(table.num_rows)]
    for place, name in enumerate(table["a"].to_pylist()):
        values[place] = "same" if name == "planted" else values[place]
    table = table.append_column("s", pa.array(values))
    policy = merge_flags(None, quasi_identifiers=["a", "b"], sensitive="s", k=5, l=2)
    found, files = audited(table, policy, {}, tight(table, ["a", "b"], 1))
    assert files > 10
    assert [(one.holds, one.value) for one in found.verdicts] == [(True, 5), (False, 1.0)]


def test_an_identifier_in_a_large_release_is_found() -> None:
    table = scattered(5).append_column("name", pa.array(["x"] * 755))
    policy = merge_flags(None, quasi_identifiers=["a", "b"], identifiers="name", k=5)
    found, _ = audited(table, policy, {}, tight(table, ["a", "b"], 0))
    assert [one.requirement for one in found.verdicts if not one.holds] == ["the identifier 'name' is not released"]


# ---- memory and files ----


def test_few_classes_in_any_order_need_no_file() -> None:
    table = shuffled(pa.table({"a": [f"{number % 10}" for number in range(5000)]}))
    policy = merge_flags(None, quasi_identifiers=["a"], k=500)
    found, files = audited(table, policy, {}, 240_000)
    assert (found.holds, found.classes, files) == (True, 10, 0)


def test_neighbouring_equal_rows_become_one_run() -> None:
    batch = pa.record_batch(
        {
            "a": pa.array(["x", "x", None, None, "x"]).dictionary_encode(),
            "b": pa.array([0.0, -0.0, 1.0, 1.0, float("nan")]),
        }
    )
    runs = runs_of(batch)
    assert runs.column(COUNT).to_pylist() == [2, 2, 1]
    assert runs.column("a").to_pylist() == ["x", None, "x"]
    assert runs.column("b").to_pylist() == [0.0, 1.0, None]


def test_every_part_has_whole_classes_and_keeps_to_its_share_of_memory() -> None:
    table = shuffled(
        pa.table({"a": [f"{number % 300}" for number in range(1800)], "s": [f"{n % 9}" for n in range(1800)]})
    )
    source, memory = open_source(table, InputOptions()), 160_000
    seen: dict[Any, int] = {}
    with Scratch() as scratch:
        parts = PartsByKey(source, ["a"], ["s"], counted=["s"], memory=memory, scratch=scratch)
        for number, part in enumerate(parts):
            assert part.table.num_rows * (RUN_BYTES + 2 * CELL_BYTES) < room_within(memory)
            assert parts.totals == {"s": {str(n): table["s"].to_pylist().count(str(n)) for n in range(9)}}
            for value in set(part.table["a"].to_pylist()):
                assert seen.setdefault(value, number) == number
    assert len(seen) == 300
    assert len(set(seen.values())) > 10


def test_one_class_with_too_many_different_values_asks_for_more_memory() -> None:
    table = pa.table({"a": ["*"] * 2000, "s": [f"{number}" for number in range(2000)]})
    policy = merge_flags(None, quasi_identifiers=["a"], sensitive="s", k=5, l=2)
    with pytest.raises(sfumato.UsageError, match=r"Raise the limit with --memory"):
        audited(table, policy, {}, 400_000)


class Interrupted:
    """A source that does something to the scratch directory half way."""

    def __init__(self, source: Source, after: Any) -> None:
        self._source, self._after = source, after
        self.names, self.types, self.rows = source.names, source.types, source.rows

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(self._source.batches(columns)):
            if number == 6:
                self._after()
            yield batch


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_lost_temporary_files_are_told_and_never_half_a_result(damage: str) -> None:
    table = scattered(5)
    policy = merge_flags(None, quasi_identifiers=["a", "b"], k=5)
    with Scratch() as scratch:

        def after() -> None:
            for path in scratch.directory.glob("*-runs"):
                path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
            if damage == "gone":
                shutil.rmtree(scratch.directory)

        source: Any = Interrupted(open_source(table, InputOptions()), after)
        with pytest.raises(sfumato.OutputError, match="temporary files in"):
            audit_in_parts(
                source, policy, policy.requirements(), {}, memory=80_000, scratch=scratch, progress=Progress()
            )


def test_a_sensitive_column_that_is_missing_is_told_before_anything_is_read() -> None:
    policy = merge_flags(None, quasi_identifiers=["a"], sensitive="ill", k=2, l=2)
    with pytest.raises(sfumato.UsageError, match="the policy names the column 'ill'"):
        audited(pa.table({"a": ["x", "x"]}), policy, {}, 1 << 20)


# ---- as users call it ----


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """An original and its release with a certificate beside."""
    draw = np.random.default_rng(3)
    table = pa.table(
        {
            "age": draw.integers(0, 90, 400),
            "city": [f"city {number}" for number in draw.integers(0, 9, 400)],
            "ill": [f"illness {number}" for number in draw.integers(0, 5, 400)],
            "score": draw.integers(0, 4, 400) / 2,
        }
    )
    original, release = tmp_path / "original.parquet", tmp_path / "release.parquet"
    pq.write_table(table, original)
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "city"], "sensitive": "ill", "other": ["score"], "k": 5}
    sfumato.anonymize(original, **asked, l=2, method="hilbert").write(release)
    return original, release


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    code = main([*map(str, arguments), "--json"])
    result = json.loads(capsys.readouterr().out)
    result.pop("seconds")
    return code, result


def test_audit_and_measure_print_the_same_with_a_memory_limit(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    original, release = files
    place = tmp_path / "place"
    place.mkdir()
    limit = ("--memory", "1GB", "--temporary", place)
    for command in (
        ("audit", release),
        ("audit", release, "--original", original),
        ("audit", release, "--require", "t-closeness(ill, t=0.1)", "-k", 6),
        ("measure", original, release),
        ("measure", original, release, "--target", "ill"),
    ):
        plain, limited = printed(capsys, *command), printed(capsys, *command, *limit)
        assert plain == limited
        assert list(place.iterdir()) == []


def test_kept_values_that_the_original_has_less_often_are_found_with_a_memory_limit(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    original, release = files
    table = pq.read_table(release)
    score = table["score"].to_pylist()
    changed = tmp_path / "changed.parquet"
    pq.write_table(
        table.set_column(table.column_names.index("score"), "score", pa.array([7.5, 7.5, *score[2:]])), changed
    )
    policy = merge_flags(None, quasi_identifiers=["age", "city"], sensitive="ill", k=5)
    limits: list[dict[str, Any]] = [{}, {"memory": "1GB"}]
    for limit in limits:
        report = sfumato.audit(changed, policy, original=original, **limit)
        (found,) = [one for one in report.verdicts if "'score'" in one.requirement]
        assert found == Verdict("the kept column 'score' holds values of the original", False, 2)


@pytest.mark.parametrize("asked", [{"queries": 1}, {"range_queries": 5}, {"select": "age > 40"}])
def test_what_is_measured_in_memory_only_is_refused_with_a_limit(
    files: tuple[Path, Path], asked: dict[str, Any]
) -> None:
    with pytest.raises(sfumato.UsageError, match=r"on tables in memory\. Leave out memory"):
        sfumato.measure(*files, **asked, memory="1GB")


def test_two_tables_are_refused_with_a_limit(files: tuple[Path, Path], tmp_path: Path) -> None:
    original, _ = files
    release = tmp_path / "two.parquet"
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "city"], "sensitive": "ill", "other": "drop", "l": 2}
    sfumato.anonymize(original, **asked, method="anatomy").write(release)
    assert sfumato.audit(release).holds
    with pytest.raises(sfumato.UsageError, match=r"anatomy is audited as a whole\. Leave out memory"):
        sfumato.audit(release, memory="1GB")


def test_a_temporary_directory_that_is_not_there_is_told(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code = main(["audit", str(files[1]), "--memory", "1GB", "--temporary", str(tmp_path / "nowhere")])
    assert code == 4
    assert "--temporary" in capsys.readouterr().err


def test_a_limit_that_is_no_size_is_told(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(files[1]), "--memory", "little"]) == 2
    assert "must be a size of at least 256MB" in capsys.readouterr().err


def test_the_libraries_are_part_of_what_a_limit_allows() -> None:
    assert room_within(2 * 10**9) == 900 * 10**6
    assert room_within(256 * 10**6) == 32 * 10**6
