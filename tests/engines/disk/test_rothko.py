"""Rothko-T against Mondrian in memory, and what Rothko-S promises."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from requirement_definitions import EACH_KIND, Asked
from rothko_tables import MEDIAN, REQUIRED, SMALL, WORKLOADS, OnDisk, classes_in, on_disk, people, policy_for
from scipy.stats import chi2
from slow_mondrian import Slow, Table
from strategies import Case, cases

import sfumato
from sfumato.engines.disk import classes as classes_on_disk
from sfumato.engines.disk.rothko_io_cost import ExpectedIo, IoCounters, expected_sample_io, expected_tree_io
from sfumato.engines.disk.rothko_s import rothko_s
from sfumato.engines.disk.rothko_t import rothko_t
from sfumato.methods.method import SensitiveValues
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.methods.trees.region_tree import RegionTree
from sfumato.methods.trees.sampled_tests import least_sampled, sample_holds, sampled_tests, standard_errors
from sfumato.methods.trees.sampled_tree import sums_of_children, undo_splits
from sfumato.pipeline.capabilities import refuse_unsupported
from sfumato.policy import merge_flags
from sfumato.progress import Progress
from sfumato.requirements import (
    AlphaAnonymity,
    BetaLikeness,
    ClassCounts,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Histogram,
    KAnonymity,
    RecursiveDiversity,
    Requirement,
    Requirements,
    TCloseness,
    VarianceDiversity,
)
from sfumato.requirements.conjunction import conjunction
from sfumato.tables.external.memory_budget import MemoryBudget

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")


BUDGETS = st.sampled_from([MemoryBudget(0), MemoryBudget(12_000), MemoryBudget(40_000)])


# ---- Rothko-T: the classes of Mondrian ----


@pytest.mark.not_quick
@given(case=cases(rows=60), budget=BUDGETS, cache=st.sampled_from([1, 2, 5, None]))
@settings(max_examples=examples(0.5), deadline=None)
def test_the_classes_are_those_of_mondrian_in_memory(case: Case, budget: MemoryBudget, cache: int | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        policy = merge_flags(None, method="mondrian", **case.settings(Path(folder)))
        with on_disk(case.table, policy) as there:
            assert there.by_counts(MEDIAN, budget, cache=cache) == there.in_memory(MEDIAN)


@pytest.mark.parametrize("k", [1, 3, 17, 150, 300])
def test_the_classes_are_those_of_mondrian_for_any_k(k: int) -> None:
    with on_disk(people(300, k), policy_for(k=k)) as there:
        for cache in (1, 3, None):
            assert there.by_counts(MEDIAN, cache=cache) == there.in_memory(MEDIAN)


@pytest.mark.parametrize("require", REQUIRED, ids=" ".join)
def test_diverse_classes_are_those_of_mondrian_in_memory(require: list[str]) -> None:
    policy = policy_for(require=require)
    for name in ("pulse", "ward"):
        if any(name in one for one in require):
            policy = merge_flags(policy, sensitive=[name])
    with on_disk(people(250, 5), policy) as there:
        expected = there.in_memory(MEDIAN)
        assert len(expected) > 8
        for cache in (1, None):
            assert there.by_counts(MEDIAN, cache=cache) == expected


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("require", [[], ["frequency(ill, l=2)"]], ids=["k", "l"])
def test_classes_for_a_workload_are_those_of_mondrian_in_memory(name: str, require: list[str]) -> None:
    rule, workload = WORKLOADS[name]
    method = MondrianMethod(rule=rule)  # type: ignore[arg-type]
    with on_disk(people(250, 8), policy_for(rule, 4, require, **workload)) as there:
        expected = there.in_memory(method)
        assert expected != there.in_memory(MEDIAN)
        for cache in (1, None):
            assert there.by_counts(method, cache=cache) == expected


def test_regions_are_counted_together_as_long_as_their_sets_fit() -> None:
    with on_disk(people(400, 2), policy_for()) as there:
        size = there.table.count * there.table.file.kind.itemsize
        one, many = IoCounters(), IoCounters()
        assert there.by_counts(MEDIAN, cache=1, counters=one) == there.by_counts(MEDIAN, counters=many)
        assert one.repartitions > many.repartitions == 1
        assert many.passes(size)[1] == 1
        assert many.groups <= one.groups  # the same regions, and those that are too large for the cache twice
        assert one.read > many.read


def test_frequency_sets_that_do_not_fit_are_refused_before_any_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.engines.disk.rothko_parts.LEAST_ROOM", 100)
    with on_disk(people(100, 2), policy_for()) as there:
        with pytest.raises(sfumato.UsageError, match="frequency sets of this table take"):
            there.by_counts(MEDIAN)
        assert there.sampled(MEDIAN, sample=50, tests=False)  # which does without them


def test_what_parts_of_a_table_cannot_decide_is_refused() -> None:
    with on_disk(people(100, 2), policy_for()) as there:
        for method in (MondrianMethod(splits="relaxed"), MondrianMethod(rule="selection")):
            with pytest.raises(sfumato.UsageError):
                there.by_counts(method)
        counting_persons = replace(there.memory.job.requirements, person="name")
        with pytest.raises(sfumato.UsageError, match="cannot count persons"):
            rothko_t(there.table, MEDIAN, counting_persons, SMALL, there.scratch, Progress())


# ---- Rothko-S: the requirement always, and minimal ----


def slow_version(there: OnDisk, data: pa.Table, k: int, asked: Sequence[Asked]) -> Slow:
    values = data["ill"].to_pylist()
    names = sorted({value for value in values if value is not None})
    codes = [None if value is None else names.index(value) for value in values]
    encoded = there.memory.encoded
    codes_of_input = encoded.codes[np.argsort(encoded.input_rows)]
    table = Table(codes_of_input, encoded.domains, [1.0] * len(encoded.domains), codes, list(range(len(names))))
    return Slow(table, "strict", k, asked)


ON_SAMPLES = {
    "frequency": "frequency(ill, l=2)",
    "distinct": "distinct(ill, l=2)",
    "entropy": "entropy(ill, l=2)",
    "recursive": "recursive(ill, c=1.5, l=2)",
    "closeness, equal": "t-closeness(ill, t=0.3333333333333333)",
    "alpha-k": "alpha-k(ill, alpha=0.5)",
    "likeness": "beta-likeness(ill, beta=1)",
    "disclosure": "delta-disclosure(ill, delta=1)",
}


@pytest.mark.not_quick
@pytest.mark.parametrize("kind", [None, *ON_SAMPLES])
def test_every_class_meets_the_requirement_and_has_no_allowable_split(kind: str | None) -> None:
    data, several = people(300, 11), 0
    asked = EACH_KIND[kind] if kind else []
    policy = policy_for(require=[ON_SAMPLES[kind]] if kind else [], k=4)
    with on_disk(data, policy) as there:
        slow = slow_version(there, data, 4, asked)
        for sample, tests, seed in [(40, True, 0), (40, False, 0), (16, True, 1), (200, True, 2)]:
            counters = IoCounters()
            found = there.sampled(MEDIAN, sample=sample, tests=tests, enough=seed * 10, counters=counters)
            assert all(slow.holds(sorted(part)) for part in found)
            assert all(len(slow.divided(sorted(part))) == 1 for part in found)
            assert counters.nonminimal == 0
            several += counters.repartitions
    assert several > 0


@pytest.mark.not_quick
@pytest.mark.parametrize("rule", ["information-gain", "regression", "selection"])
@pytest.mark.parametrize("exact", [True, False])
def test_every_split_rule_meets_the_requirement_on_a_sample(rule: str, exact: bool) -> None:
    workload: dict[str, dict[str, Any]] = {
        "information-gain": {"classification": [{"target": "grade"}]},
        "regression": {"regression": [{"target": "risk"}]},
        "selection": {"selection": [{"where": "age > 30"}]},
    }
    data, counters = people(3000, 4), IoCounters()
    policy = policy_for(rule, 5, ["frequency(ill, l=2)"], **workload[rule])
    counting, rows = oracle.Counting(), data.to_pylist()
    asked = oracle.Asked("frequency", "ill", {"l": 2})
    with on_disk(data, policy) as there:
        method = MondrianMethod(rule=rule)  # type: ignore[arg-type]
        found = there.sampled(method, MemoryBudget(500_000), sample=1000, exact=exact, counters=counters)
        for part in found:
            members = [rows[row] for row in part]
            assert len(members) >= 5
            assert asked.holds(counting.counts(members, "ill"), counting.counts(rows, "ill"))
    assert len(found) > 15
    assert counters.fallbacks == 0 or exact
    assert not (exact and counters.nonminimal and rule != "selection")


class Unknown(DistinctDiversity):
    """A kind that no kernel knows."""

    def condition(self) -> None:  # type: ignore[override]
        return None


def test_a_requirement_that_kernels_do_not_know_holds_on_disk_too() -> None:
    data, counters = people(400, 6), IoCounters()
    ill = data["ill"].to_pylist()
    with on_disk(data, policy_for(require=["distinct(ill, l=2)"])) as there:
        requirements = Requirements((KAnonymity(3), Unknown("ill", 4)))
        with pytest.raises(sfumato.UsageError, match="cannot decide all of the requirements"):
            rothko_t(there.table, MEDIAN, requirements, SMALL, there.scratch, Progress())
        budget = MemoryBudget(40_000)
        classed = rothko_s(
            there.table, MEDIAN, requirements, budget, there.scratch, Progress(), sample=60, counters=counters
        )
        found = classes_in(classed)
    assert counters.repartitions > 0
    assert len(found) > 5
    assert all(len({ill[row] for row in part} - {None}) >= 4 for part in found)


@pytest.mark.not_quick
def test_tests_of_hypotheses_leave_less_to_undo() -> None:
    believed, naive = IoCounters(), IoCounters()
    for seed in range(3):
        with on_disk(people(3000, seed), policy_for(k=15)) as there:
            for tests, counters in ((True, believed), (False, naive)):
                there.sampled(MEDIAN, MemoryBudget(30_000), sample=100, tests=tests, enough=0, counters=counters)
    assert believed.grown > 0
    assert believed.pruned < naive.pruned / 2


def test_data_are_read_twice_and_written_once_after_the_sample() -> None:
    with on_disk(people(2000, 3), policy_for()) as there:
        counters, size = IoCounters(), there.table.count * there.table.file.kind.itemsize
        there.sampled(MEDIAN, MemoryBudget(200_000), sample=1000, counters=counters)
        assert counters.repartitions == 1
        assert counters.passes(size) == (2, 1)
        assert counters.pruned == 0


def test_a_part_without_an_allowable_split_is_one_class() -> None:
    data = people(200, 1).set_column(0, "age", pa.array([1] * 200)).set_column(1, "place", pa.array(["p"] * 200))
    data = data.set_column(2, "income", pa.array([float(row < 2) for row in range(200)]))
    with on_disk(data, policy_for()) as there:
        counters = IoCounters()
        assert there.sampled(MEDIAN, sample=20, counters=counters) == {frozenset(range(200))}
        assert there.by_counts(MEDIAN) == {frozenset(range(200))}
        assert counters.whole == counters.fallbacks == 1


# ---- the tests, and what is undone ----


def test_a_part_is_believed_to_have_k_records_as_the_paper_says() -> None:
    k, sample, records = 100, 1000, 100_000
    least = least_sampled(k, sample, records, standard_errors(5, 0.05))
    for parts in range(1, 6):
        z = NormalDist().inv_cdf(1 - 0.05 / parts)
        share = k / records
        bound = share + z * math.sqrt(share * (1 - share) / (sample - 1) * (records - sample) / records)
        assert least[parts - 1] == next(count for count in range(sample) if count / sample >= bound)
    assert least_sampled(k, sample, records, standard_errors(2, None)).tolist() == [1, 1]
    assert least_sampled(k, records, records, standard_errors(2, 0.05)).tolist() == [k, k]


COUNTS = st.lists(st.integers(0, 40), min_size=2, max_size=5).filter(any)


def believed(requirement: Requirement, counts: list[int], numbers: list[float], share: float, parts: int) -> bool:
    """Whether a part with these counts of values is believed to hold, the sample being a share of all."""
    values = SensitiveValues(np.zeros(0, np.uint32), len(counts), np.array(numbers))
    reference = np.full(len(counts), 1 / len(counts))
    tests = conjunction(Requirements((requirement,)), [values], [reference])
    count = np.array([counts], np.int64)
    known, largest = count.sum(axis=1), count.max(axis=1)
    different = np.count_nonzero(count, axis=1)
    of_sample = sampled_tests(tests, int(1000 * share), 1000, 8)
    return bool(sample_holds(of_sample, parts, int(known[0]), count, known, largest, different))


@given(COUNTS, st.sampled_from([0.5, 1.0, 2.0]), st.integers(2, 3), st.integers(2, 4))
@settings(deadline=None)
def test_recursive_diversity_is_believed_as_the_paper_says(counts: list[int], c: float, rank: int, parts: int) -> None:
    n, ordered = sum(counts), sorted(counts, reverse=True)
    first, last = ordered[0] / n, sum(ordered[rank - 1 :]) / n
    z = NormalDist().inv_cdf(1 - 0.05 / parts)
    variance = (c * c * last * (1 - last) + first * (1 - first)) / max(n - 1, 1) * 0.9
    margin = c * last - first - z * math.sqrt(variance)
    assume(abs(margin) > 1e-9)
    assert believed(RecursiveDiversity("s", c, rank), counts, [0.0] * len(counts), 0.1, parts) == (margin > 0)


@given(COUNTS, st.floats(0.1, 3), st.integers(1, 4))
@settings(deadline=None)
def test_variance_is_believed_as_chi_square_says(counts: list[int], v: float, parts: int) -> None:
    n, values = sum(counts), range(len(counts))
    mean = sum(count * value for count, value in zip(counts, values, strict=True)) / n
    squares = sum(count * (value - mean) ** 2 for count, value in zip(counts, values, strict=True))
    assume(n > 5)
    bound = chi2.isf(0.05 / parts, n - 1)
    assume(abs(squares / v / bound - 1) > 0.02)  # the kernel approximates
    assert believed(VarianceDiversity("s", v), counts, [float(one) for one in values], 0.1, parts) == (
        squares / v >= bound
    )


@given(COUNTS)
@settings(deadline=None)
def test_what_a_sample_is_believed_to_hold_it_holds_itself(counts: list[int]) -> None:
    size = len(counts)
    for requirement in (
        FrequencyDiversity("s", 2),
        DistinctDiversity("s", 2),
        EntropyDiversity("s", 2),
        AlphaAnonymity("s", 0.5),
        TCloseness("s", 0.3),
        BetaLikeness("s", 1.0),
        DeltaDisclosure("s", 1.0),
    ):
        owner, value = np.zeros(size, np.int64), np.arange(size)
        some = np.array(counts) > 0
        histogram = Histogram(
            owner[some], np.array(counts)[some], value[some], np.full(size, 1 / size), np.arange(size) * 1.0
        )
        holds = bool(requirement.holds(ClassCounts(np.array([sum(counts)]), {"s": histogram})).all())
        assert holds or not believed(requirement, counts, [0.0] * size, 0.1, 2)


def test_a_leaf_that_fails_takes_splits_with_it_upwards_until_all_hold() -> None:
    #        0
    #    1       2
    #  3   4   5   6
    nothing = np.zeros((7, 1), np.uint8)
    tree = RegionTree(
        parent=np.array([-1, 0, 0, 1, 1, 2, 2]), attribute=np.array([0, 0, 0, -1, -1, -1, -1]),
        first_child=np.array([1, 3, 5, -1, -1, -1, -1]), low=nothing, high=nothing, box_low=nothing, box_high=nothing,
        begin=np.zeros(7, np.int64), end=np.ones(7, np.int64),
    )  # fmt: skip
    sizes = sums_of_children(tree, np.array([0, 0, 0, 4, 1, 3, 3]))
    assert sizes.tolist() == [11, 5, 6, 4, 1, 3, 3]
    assert undo_splits(tree, sizes >= 3, sizes).tolist() == [0, 1, 2, 1, 1, 5, 6]
    assert undo_splits(tree, sizes >= 6, sizes).tolist() == [0] * 7  # 1 has too few, also after it was merged
    assert undo_splits(tree, sizes >= 1, sizes).tolist() == [0, 1, 2, 3, 4, 5, 6]
    empty = sums_of_children(tree, np.array([0, 0, 0, 4, 0, 3, 3]))
    assert undo_splits(tree, empty >= 3, empty).tolist() == [0, 1, 2, 3, 4, 5, 6]


# ---- what the analysis expects ----


def test_expected_passes_are_those_of_section_5_3() -> None:
    assert expected_tree_io(50_000_000, 2_000_000, 1) == ExpectedIo(reads=11, writes=5)
    assert expected_tree_io(50_000_000, 2_000_000, 8) == ExpectedIo(reads=8, writes=2)
    assert expected_sample_io(50_000_000, 2_000_000, 1000) == ExpectedIo(reads=3, writes=1)
    assert expected_sample_io(1000, 2000, 10) == ExpectedIo(reads=1, writes=0)


# ---- the settings of a policy ----


@pytest.mark.parametrize("sampled", [True, False])
def test_settings_of_the_policy_reach_the_division(
    sampled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, dict[str, Any]] = {}
    for name in ("rothko_s", "rothko_t"):
        genuine = getattr(classes_on_disk, name)

        def watched(*parts: Any, name: str = name, genuine: Any = genuine, **settings: Any) -> Any:
            seen[name] = {key: value for key, value in settings.items() if key != "counters"}
            return genuine(*parts, **settings)

        monkeypatch.setattr(classes_on_disk, name, watched)
    pq.write_table(people(120, 3).select(["age", "ward"]), tmp_path / "table.parquet")
    flags: dict[str, Any] = {
        "quasi_identifiers": ["age", "ward"], "k": 3, "engine": "disk", "method": "mondrian", "sampled": sampled,
        "sample_size": 40, "sample_alpha": 0.01, "sample_tests": False, "frequency_groups": 7,
    }  # fmt: skip
    release = sfumato.anonymize(tmp_path / "table.parquet", **flags)
    assert release.audit.holds
    asked = {"sample": 40, "alpha": 0.01, "tests": False, "cache": 7}
    assert seen == ({"rothko_s": asked} if sampled else {"rothko_t": {"cache": 7}})


def test_a_stricter_level_grows_smaller_trees() -> None:
    grown = {}
    with on_disk(people(600, 4), policy_for(k=8)) as there:
        for alpha in (0.4, 0.05, 1e-6):
            counters = IoCounters()
            assert there.sampled(MEDIAN, sample=200, alpha=alpha, enough=0, counters=counters)
            grown[alpha] = counters.grown
    assert grown[0.4] > grown[0.05] > grown[1e-6]


def test_settings_out_of_bounds_are_refused_and_so_are_those_that_spark_has_no_use_for() -> None:
    for wrong in ({"sample_size": 1}, {"sample_alpha": 0}, {"sample_alpha": 0.6}, {"frequency_groups": 0}):
        with pytest.raises(sfumato.PolicyError, match="must be"):
            merge_flags(None, quasi_identifiers=["a"], k=2, **wrong)  # type: ignore[arg-type]
    for asked in ({"sample_size": 9}, {"sample_tests": False}, {"frequency_groups": 2}):
        policy = merge_flags(None, quasi_identifiers=["a"], k=2, method="mondrian", **asked)  # type: ignore[arg-type]
        with pytest.raises(sfumato.UsageError, match="the spark engine does not support"):
            refuse_unsupported("spark", policy)
