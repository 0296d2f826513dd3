"""Rules that are learnt on disk: the bytes of those that are learnt in memory, whatever the limit."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyarrow import parquet
from rothko_tables import MEDIAN, REQUIRED, SMALL, WORKLOADS, on_disk, people, policy_for
from strategies import Case, cases

import sfumato
from sfumato.cli import main
from sfumato.engines.disk import region_checks, rothko_t
from sfumato.engines.disk.region_checks import failing_leaves
from sfumato.engines.disk.rothko_regions import regions_by_counts
from sfumato.errors import UsageError
from sfumato.methods.trees.region_tree import Tiling
from sfumato.pipeline.capabilities import refuse_unsupported_learning
from sfumato.pipeline.engine_choice import plan_run
from sfumato.pipeline.learn import fit_recoding
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.releases import rules as rules_file
from sfumato.releases.learn_recoding import grown_recoding, sound_recoding
from sfumato.releases.recoding import Recoding
from sfumato.releases.regions import leaves_under
from sfumato.requirements import ClassCounts, DistinctDiversity, FrequencyDiversity, KAnonymity, Requirements
from sfumato.tables.external.memory_budget import MemoryBudget
from sfumato.tables.external.scratch import MARK

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
anywhere = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(0.5)
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Sixteen records at a time, and a place for temporary files that is looked at."""
    monkeypatch.setattr(MemoryBudget, "of", staticmethod(lambda _: MemoryBudget(1)))
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield
    assert not list(place.glob(f"{MARK}*"))


def both(data: object, policy: Policy | None = None, **asked: Any) -> tuple[str, str]:
    """The rules of memory and those of the disk."""
    memory, disk = (sfumato.fit(data, policy, engine=engine, **asked).to_json() for engine in ("memory", "disk"))
    return memory, disk


@pytest.mark.not_quick
@anywhere
@given(case=cases(rows=120), budget=st.sampled_from([0, 12_000, 40_000]), form=st.sampled_from(["labels", "bounds"]))
def test_the_rules_are_those_of_memory(
    case: Case, budget: int, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MemoryBudget, "of", staticmethod(lambda _: MemoryBudget(budget)))
    memory, disk = both(case.table, method="mondrian", form=form, **case.settings(tmp_path))
    assert disk == memory


@pytest.mark.parametrize("k", [1, 3, 17, 150, 300])
@pytest.mark.parametrize("cache", [1, None])
def test_the_rules_are_those_of_memory_for_any_k_and_however_few_regions_are_counted_at_once(
    k: int, cache: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    divide, asked = rothko_t.divide_by_counts, []

    def divided(parting: Any, whole: Any, _: int | None) -> None:
        asked.append(whole.count)
        divide(parting, whole, cache)

    monkeypatch.setattr("sfumato.engines.disk.rothko_regions.divide_by_counts", divided)
    memory, disk = both(people(300, k), policy_for(k=k))
    assert disk == memory
    assert asked == [300]


@pytest.mark.not_quick
@pytest.mark.parametrize("require", REQUIRED, ids=" ".join)
def test_rules_under_requirements_are_those_of_memory(require: list[str]) -> None:
    policy = policy_for(require=require)
    for name in ("pulse", "ward"):
        if any(name in one for one in require):
            policy = merge_flags(policy, sensitive=[name])
    memory, disk = both(people(250, 5), policy)
    assert disk == memory
    assert memory.count('"region"') > 8


@pytest.mark.not_quick
@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("method", ["rule", "auto"])
def test_rules_for_a_workload_are_those_of_memory(name: str, method: str) -> None:
    rule, workload = WORKLOADS[name]
    policy = policy_for(rule, 4, ["frequency(ill, l=2)"], **workload)
    if method == "auto":
        policy = merge_flags(policy, method="auto")
    memory, disk = both(people(250, 8), policy)
    assert disk == memory
    assert Recoding.from_json(memory).method != "mondrian"


@dataclass(frozen=True)
class AlsoDistinct(FrequencyDiversity):
    """Asks for more than the kernel is told, so that regions are found which do not meet it."""

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        return super().holds(classes) & DistinctDiversity(self.attribute, 4).holds(classes)


@pytest.mark.parametrize("pairs", [1, 30, 10**6], ids="room for {} values".format)
@pytest.mark.parametrize("rounded", [{}, {"age": 20}])
def test_divisions_into_regions_that_do_not_meet_the_requirements_are_undone_as_in_memory(
    pairs: int, rounded: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(region_checks, "LEAST_ROOM", pairs * region_checks.PAIR)
    policy = merge_flags(policy_for(require=["frequency(ill, l=2)"]), round=rounded)
    requirements = Requirements((KAnonymity(3), AlsoDistinct("ill", 2)))
    with on_disk(people(250, 5), policy) as there:
        memory, table, names = there.memory, there.table, there.memory.job.kept
        expected = grown_recoding(MEDIAN, memory.records, requirements, table.policy, {}, names, Progress())
        tree = regions_by_counts(table, MEDIAN, requirements, SMALL, there.scratch, Progress())
        found = []

        def recoding_by(tree: Tiling) -> Recoding:
            found.append(Recoding.of(tree, table.domains, policy=table.policy, method="mondrian", names=names))
            return found[-1]

        sound = sound_recoding(tree, recoding_by, lambda *of: failing_leaves(table, requirements, *of, SMALL))
        assert sound.to_json() == expected.to_json()
        assert len(found[0]) > len(found[-1]) > 3


def test_rules_of_the_disk_are_applied_and_the_release_is_that_of_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = people(400, 3).select(["age", "place", "income", "ill"])
    parquet.write_table(data, tmp_path / "in.parquet")
    flags = ["--quasi-identifiers", "age,place,income", "--sensitive", "ill", "-k", "5", "-l", "2", "--json"]
    said = {}
    for engine in ("memory", "disk"):
        where = [str(tmp_path / "in.parquet"), "-o", str(tmp_path / f"{engine}.json")]
        assert main(["fit", *where, "--engine", engine, *flags]) == 0
        said[engine] = json.loads(capsys.readouterr().out)
        assert said[engine]["engine"] == engine
    assert (tmp_path / "disk.json").read_bytes() == (tmp_path / "memory.json").read_bytes()
    assert (tmp_path / "disk.json").stat().st_mode & 0o777 == 0o600
    assert said["disk"]["regions"] == said["memory"]["regions"] > 10
    released = sfumato.apply(tmp_path / "disk.json", data).data
    shown = sfumato.anonymize(data, method="mondrian", boxes="regions", engine="memory", quasi_identifiers=[
        "age", "place", "income"], sensitive=["ill"], k=5, l=2).data  # fmt: skip
    assert released.equals(shown)


def test_auto_learns_on_disk_where_the_table_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryBudget, "of", staticmethod(lambda _: MemoryBudget(10**7)))
    parquet.write_table(
        pa.table({"age": np.arange(200_000) % 90, "ill": np.arange(200_000) % 7}), tmp_path / "in.parquet"
    )
    asked: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["ill"], "k": 5}
    for memory, engine in (("300MB", "disk"), ("2GB", "memory")):
        progress = Progress()
        policy = merge_flags(None, memory=memory, method="mondrian", **asked)
        recoding = fit_recoding(tmp_path / "in.parquet", policy, progress)
        assert progress.decisions["engine"]["engine"] == engine
        assert len(recoding) == 90
    unable = merge_flags(None, memory="300MB", method="tds", target="ill", **asked)
    plan, _ = plan_run(tmp_path / "in.parquet", unable, refuse_unsupported_learning)
    assert plan.engine == "memory"
    assert "the disk engine does not support learning rules by 'tds'" in plan.reason


@pytest.mark.parametrize(
    "asked, what",
    [
        ({"method": "tds", "target": "ill"}, "does not support learning rules by 'tds'"),
        ({"method": "hilbert"}, "hilbert has no regions"),
        (
            {"method": "mondrian:selection", "select": ["age > 40"]},
            "does not support regions divided by selections",
        ),
        ({"select": ["age > 40"]}, "does not support regions divided by selections"),
        ({"person": "who"}, "does not support person"),
        ({"sampled": True}, "never from samples"),
    ],
)
def test_what_cannot_be_learnt_on_disk_is_refused_before_any_work(asked: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        sfumato.fit("nowhere.csv", quasi_identifiers=["age"], k=2, engine="disk", **asked)


def test_rules_are_written_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recoding = sfumato.fit(people(300, 2), policy_for(k=2))
    monkeypatch.setattr(rules_file, "BATCH", 7)
    lines = list(rules_file.rules_lines(recoding))
    assert len(lines) == len(recoding.regions.attribute) + 2
    assert recoding.write(tmp_path / "rules.json").read_text("utf-8") == "".join(lines) == recoding.to_json()


@given(st.lists(st.integers(0, 4), max_size=40))
def test_leaves_come_depth_first(counts: list[int]) -> None:
    first_child, made = [-1], 1
    for node, count in enumerate(counts):
        if node < made and count:
            first_child[node], made = made, made + count
            first_child += [-1] * count
    firsts = [first for first in first_child if first >= 0]
    ends = dict(pairwise([*firsts, len(first_child)]))

    def under(node: int) -> list[int]:
        first = first_child[node]
        return [node] if first < 0 else [leaf for child in range(first, ends[first]) for leaf in under(child)]

    assert leaves_under(np.array(first_child)).tolist() == under(0)
