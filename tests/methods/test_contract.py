"""The contract that every method keeps, by name: methods of later versions and of other packages join by themselves."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from conftest import FrameKind
from examples import examples
from hypothesis import given, settings
from naming import hiding_methods, methods_for_k, methods_on_levels
from strategies import Case, Diverse, cases, diverse_cases, released_rows

import sfumato
from sfumato.methods import Records, method_named
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.pipeline.prepare import prepare
from sfumato.policy import merge_flags
from sfumato.progress import Progress

METHODS = methods_for_k()
DIVERSE, ON_LEVELS = hiding_methods(), methods_on_levels()
pytestmark = [
    pytest.mark.parametrize("method", METHODS),
    pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning"),
]

FOREST = pa.table(
    {
        "age": pa.array([34, 41, None, 29, 34, 58, 61, 33, 45, 29, 72, 38], pa.int64()),
        "city": ["Roma", "Roma", "Pisa", "Pisa", "Lucca", None, "Roma", "Pisa", "Lucca", "Roma", "Siena", "Siena"],
        "visits": pa.array([3, 1, 2, 2, 3, 1, None, 1, 2, 3, 1, 2], pa.int64()),
    }
)
FOREST_ASKS: dict[str, Any] = {
    "quasi_identifiers": ["age", "city"],
    "other": "keep",
    "accept_linkable": ["visits"],
    "k": 3,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("contract")


def records_of(table: pa.Table, **settings: Any) -> tuple[Records, Any]:
    """What a method is given, and the codes of the table."""
    prepared = prepare(table, merge_flags(None, **settings), Progress())
    return prepared.records, prepared.encoded.codes


def as_multiset(rows: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(oracle.plain(value) for value in row.values()) for row in rows)


@given(case=cases())
def test_release_is_k_anonymous_covers_every_value_and_is_tight(method: str, folder: Path, case: Case) -> None:
    release = sfumato.anonymize(case.table, method=method, keep_order=True, **case.settings(folder))
    before, after = case.table.to_pylist(), released_rows(release.data)
    assert release.data.column_names == case.table.column_names
    assert len(after) == len(before)
    assert oracle.smallest_class(after, list(case.quasi)) >= case.k
    for original, released in zip(before, after, strict=True):
        for name, column in case.columns.items():
            assert column.covers(released[name], original[name])
        for name in case.others:
            assert released[name] == original[name]
    if method in ON_LEVELS:
        return
    originals: dict[tuple[Any, ...], list[oracle.Row]] = {}
    for original, released in zip(before, after, strict=True):
        originals.setdefault(tuple(released[name] for name in case.quasi), []).append(original)
    for key, members in originals.items():
        for (name, column), label in zip(case.columns.items(), key, strict=True):
            if label != oracle.WHOLE or None not in [oracle.plain(row[name]) for row in members]:
                assert column.is_tight(label, [row[name] for row in members])


@settings(max_examples=examples(0.2))
@given(case=cases())
def test_canonical_order_holds_the_same_rows_sorted_by_what_they_show(method: str, folder: Path, case: Case) -> None:
    settings = case.settings(folder)
    kept = sfumato.anonymize(case.table, method=method, keep_order=True, **settings).data.to_pylist()
    released = sfumato.anonymize(case.table, method=method, **settings).data.to_pylist()
    assert as_multiset(released) == as_multiset(kept)
    assert released == oracle.canonical_order(kept, list(case.quasi), case.others)


@pytest.mark.not_quick
@settings(max_examples=examples(0.5))
@given(asked=diverse_cases())
def test_release_is_diverse_covers_every_value_and_is_in_canonical_order(
    method: str, folder: Path, asked: Diverse
) -> None:
    case = asked.case
    policy = sfumato.Policy.from_dict(asked.policy)
    if method not in DIVERSE and asked.requirements:
        with pytest.raises(sfumato.UsageError, match="published for k-anonymity alone"):
            sfumato.anonymize(case.table, policy, method=method, **case.settings(folder))
        return
    release = sfumato.anonymize(case.table, policy, method=method, keep_order=True, **case.settings(folder))
    before, after = case.table.to_pylist(), released_rows(release.data)
    assert len(after) == len(before)
    for original, released in zip(before, after, strict=True):
        assert all(column.covers(released[name], original[name]) for name, column in case.columns.items())
        assert all(released[name] == original[name] for name in case.others)
    key = list(case.quasi)
    assert oracle.smallest_class(after, key) == release.audit.smallest_class >= case.k
    for requirement, verdict in zip(asked.requirements, release.audit.verdicts[1:], strict=True):
        if requirement["kind"] == "frequency":
            reached = oracle.reached_frequency(after, key, requirement["attribute"])
            assert reached is None or reached >= requirement["l"]
            assert verdict.value == float(requirement["l"] if reached is None else reached)
        else:
            assert oracle.fewest_values(after, key, requirement["attribute"]) == verdict.value >= requirement["l"]
    released = sfumato.anonymize(case.table, policy, method=method, **case.settings(folder)).data.to_pylist()
    assert released == oracle.canonical_order(after, key, case.others)


@given(case=cases())
def test_classes_hold_every_record_once_in_the_smallest_box(method: str, folder: Path, case: Case) -> None:
    settings = case.settings(folder)
    records, codes = records_of(case.table, **settings)
    requirements = merge_flags(None, **settings).requirements()
    rows, sizes = [], []
    for batch in method_named(method).classes(records, requirements, Progress()):
        for place in range(len(batch.low)):
            members = batch.rows[batch.starts[place] : batch.starts[place + 1]]
            assert codes[members].min(axis=0).tolist() == batch.low[place].tolist()
            assert codes[members].max(axis=0).tolist() == batch.high[place].tolist()
            sizes.append(len(members))
            rows += members.tolist()
    assert sorted(rows) == list(range(case.table.num_rows))
    assert min(sizes) >= case.k
    if isinstance(method_named(method), OptimalOneDimensional):
        # Before classes that show the same are counted as one.
        assert max(sizes) <= 2 * case.k - 1


def test_release_is_the_same_kind_of_frame_with_the_same_content(method: str, frame_kind: FrameKind) -> None:
    frame = frame_kind.make(FOREST)
    before = frame_kind.read(frame).to_pylist()
    released = sfumato.anonymize(frame, method=method, **FOREST_ASKS).data
    assert type(released) is type(frame)
    expected = sfumato.anonymize(FOREST, method=method, **FOREST_ASKS).data.to_pylist()
    found = [
        {name: oracle.plain(value) for name, value in row.items()} for row in frame_kind.read(released).to_pylist()
    ]
    assert found == expected
    assert str(frame_kind.read(frame).to_pylist()) == str(before)


def test_input_is_untouched(method: str) -> None:
    copy = pa.table({name: pa.array(FOREST[name].to_pylist()) for name in FOREST.column_names})
    release = sfumato.anonymize(FOREST, method=method, **FOREST_ASKS)
    assert release.audit.holds
    assert FOREST.equals(copy)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "csv.gz", "csv.zst"])
def test_same_seed_gives_the_same_bytes(method: str, suffix: str, tmp_path: Path) -> None:
    contents = []
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        target = tmp_path / run / f"release.{suffix}"
        sfumato.anonymize(FOREST, method=method, seed=7, **FOREST_ASKS).write(target)
        certificate = target.with_name(target.name + ".sfumato.json")
        contents.append((target.read_bytes(), certificate.read_bytes()))
        assert json.loads(certificate.read_text())["seed"] == 7
    assert contents[0] == contents[1]


def test_the_release_is_the_same_whatever_the_threads(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    columns = {"age": random.integers(0, 90, 400), "city": random.choice(["Lucca", "Pisa", "Roma"], 400)}
    table = pa.table({**columns, "illness": random.integers(0, 5, 400), "visits": random.integers(0, 9, 400)})
    found = []
    for threads in ("1", "4"):
        monkeypatch.setenv("SFUMATO_THREADS", threads)
        asked: dict[str, Any] = {"quasi_identifiers": ["age", "city"], "sensitive": "illness", "other": "keep"}
        asked["l"] = 2 if method in DIVERSE else None
        found.append(sfumato.anonymize(table, k=3, method=method, **asked))
    assert found[0].data.equals(found[1].data)
    assert found[0].losses == found[1].losses
    assert found[1].audit.smallest_class >= 3


def test_one_record_is_released_as_it_is(method: str) -> None:
    table = pa.table({"age": [31], "city": ["Roma"]})
    released = sfumato.anonymize(table, quasi_identifiers=["age", "city"], k=1, method=method)
    assert released.data.to_pylist() == [{"age": "31", "city": "Roma"}]
    assert released.losses.gcp == 0


def test_k_of_one_keeps_every_value(method: str) -> None:
    released = sfumato.anonymize(FOREST, **{**FOREST_ASKS, "k": 1}, method=method, keep_order=True)
    expected = [
        {**row, "age": None if row["age"] is None else str(row["age"]), "city": row["city"]}
        for row in FOREST.to_pylist()
    ]
    assert released.data.to_pylist() == expected
    assert released.losses.gcp == 0


def test_k_above_the_number_of_records_is_infeasible(method: str) -> None:
    with pytest.raises(sfumato.InfeasibleError, match=r"k = 13 needs at least 13 records, but the table has 12"):
        sfumato.anonymize(FOREST, **{**FOREST_ASKS, "k": 13}, method=method)


def test_k_of_all_records_makes_one_class(method: str) -> None:
    released = sfumato.anonymize(FOREST, **{**FOREST_ASKS, "k": 12}, method=method)
    assert released.audit.classes == 1
    assert set(released.data["age"].to_pylist()) == {"*"}
    assert released.losses.gcp == 1


def test_equal_records_are_released_without_loss(method: str) -> None:
    table = pa.table({"age": [50] * 11, "city": ["Roma"] * 11, "born": pa.nulls(11, pa.date32())})
    released = sfumato.anonymize(table, quasi_identifiers=table.column_names, k=4, method=method)
    assert released.data.to_pylist() == [{"age": "50", "city": "Roma", "born": None}] * 11
    assert (released.losses.gcp, released.audit.smallest_class) == (0, 11)


@pytest.mark.compiled
def test_a_million_equal_records_are_one_class_without_loss(method: str) -> None:
    count = 1_000_000
    table = pa.table({"age": np.full(count, 50), "city": pa.array(["Roma"] * count).dictionary_encode()})
    release = sfumato.anonymize(table, quasi_identifiers=["age", "city"], k=10, method=method)
    assert (release.audit.classes, release.audit.smallest_class, release.losses.gcp) == (1, count, 0)


def test_distinct_records_in_one_column_are_cut_into_classes_of_k(method: str) -> None:
    table = pa.table({"age": list(range(20))})
    released = sfumato.anonymize(table, quasi_identifiers=["age"], k=5, method=method)
    if method in ON_LEVELS:
        assert {row["age"] for row in released.data.to_pylist()} == {"*"}
        return
    assert [row["age"] for row in released.data.to_pylist()[::5]] == ["[0..4]", "[10..14]", "[15..19]", "[5..9]"]
    assert released.losses.gcp == pytest.approx(4 / 19)


@pytest.mark.parametrize("columns", [30, 100])
def test_many_quasi_identifiers_work(columns: int, method: str) -> None:
    generator = np.random.default_rng(30)
    table = pa.table({f"q{place}": generator.integers(0, 5, 60) for place in range(columns)})
    if method in ("samarati", "incognito"):
        with pytest.raises(sfumato.UsageError, match="this one has too many nodes"):
            sfumato.anonymize(table, quasi_identifiers=table.column_names, k=7, method=method)
        return
    effort: Any = "fast" if method in ON_LEVELS else None  # the lattice is too large to be searched to its end
    released = sfumato.anonymize(table, quasi_identifiers=table.column_names, k=7, method=method, effort=effort)
    assert oracle.smallest_class(released.data.to_pylist(), table.column_names) == released.audit.smallest_class >= 7


def test_bounds_form_shows_the_ends_of_every_range(method: str) -> None:
    released = sfumato.anonymize(FOREST, method=method, form="bounds", **FOREST_ASKS).data
    assert released.column_names == ["age", "age_min", "age_max", "city", "visits"]
    for row in released.to_pylist():
        if row["age"] not in (None, oracle.WHOLE):
            assert oracle.bounds(row["age"]) == (row["age_min"], row["age_max"])
    assert oracle.smallest_class(released.to_pylist(), ["age", "age_min", "age_max", "city"]) >= 3


def test_chosen_method_is_the_one_that_was_asked_for(method: str) -> None:
    chosen = sfumato.anonymize(FOREST, method=method, **FOREST_ASKS).summary()["chosen"]
    assert chosen == method or (
        method == "auto" and chosen in ("hilbert", "snake-hilbert", "gain-tree", "cell-peeling")
    )
