"""What an engine cannot do is refused from one table, before anything is read, and the docs print that table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sfumato
import sfumato.requirements
from sfumato.cli import main
from sfumato.engines.disk.engine import DiskEngine
from sfumato.engines.engine import Engine, LearningEngine
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.engines.spark.engine import SparkEngine
from sfumato.errors import InputError, UsageError
from sfumato.methods import method_named, methods
from sfumato.pipeline.capabilities import (
    DISK,
    ENGINES,
    LEARNING_FEATURES,
    MEMORY,
    RELEASE_FEATURES,
    SPARK,
    Feature,
    as_markdown,
    takes_method,
)
from sfumato.pipeline.release import Release
from sfumato.policy import merge_flags
from sfumato.releases.learn_recoding import learns_rules
from sfumato.requirements import DistinctDiversity, kinds

ROOT = Path(__file__).parents[2]
NOWHERE = "no-such-table.csv"
QUASI: dict[str, Any] = {"quasi_identifiers": ["age", "zip"], "k": 2}
ILL: dict[str, Any] = {"sensitive": "ill", "l": 2}
VERB_FILES = {"engine.py", "coded_table.py", "classes.py", "released_rows.py", "linkability.py", "audit.py"}

# How a policy asks for each feature, how a command does, and which calls stand for the others.
BY_POLICY: dict[str, dict[str, Any]] = {
    "max_suppressed": {"max_suppressed": 0.1},
    "keep_order": {"keep_order": True},
    'loss = "sse"': {"loss": "sse", "method": "mdav"},
    "codebook": {"codebook": True},
    'form = "bounds"': {"form": "bounds"},
    'form = "mean"': {"form": {"age": "mean"}},
    'form = "median"': {"form": {"age": "median"}},
    'form = "statistics"': {"form": "statistics"},
    'boxes = "regions"': {"boxes": "regions", "method": "mondrian"},
    "seconds": {"effort": "best", "seconds": 3.0},
    "effort exact": {"effort": "exact"},
    "header_row": {"input": {"header_row": 2}},
    "layout": {"input": {"layout": "layout.csv"}},
    "nulls of a column": {"column_nulls": {"age": ["-999"]}},
    "sample_size, sample_alpha or sample_tests": {"sample_size": 40, "method": "mondrian"},
    "frequency_groups": {"frequency_groups": 3, "method": "mondrian"},
    "coarsest": {"taxonomy": {"age": {"intervals": [5]}}, "coarsest": {"age": 1}},
    "derive": {"derive": {"zip": {"from": "code", "first": 2}}},
    "pseudonym": {"pseudonyms": "who", "accept_linkable": "who"},
    "person": {"person": "who"},
    "joint": {"sensitive": ["ill", "ward"], "require": ["distinct(ill, l=2)", "distinct(ward, l=2)"], "joint": True},
    "a requirement of another package": {"sensitive": "ill", "require": "foreign(ill, l=2)"},
    "a requirement that a union of classes may break": {"sensitive": "ill", "require": "breakable(ill, l=2)"},
}
BY_FLAG: dict[str, list[str]] = {
    "--dry-run": ["--dry-run"],
    "--explain": ["--explain"],
    "--bound": ["--bound"],
    "--report": ["--report", "page.html"],
    "--report-private": ["--report-private", "page.html"],
    "--shareable-policy": ["--shareable-policy", "policy.toml"],
}
BY_TABLE = ("files of SPSS, Stata and SAS",)
BY_CALL = ("plot", "aggregates", "linked")  # test_linked.py refuses the last
BY_LEARNING: dict[str, dict[str, Any]] = {
    "fit": {},
    "regions divided by selections": {"select": ["age > 40"]},
    "person": BY_POLICY["person"],
    "joint": BY_POLICY["joint"],
    "a requirement of another package": BY_POLICY["a requirement of another package"],
}
# What a method has to be asked for; all others take k alone.
BY_METHOD: dict[str, dict[str, Any]] = {
    "mondrian:information-gain": {"target": "ill"},
    "mondrian:regression": {"target": "ill"},
    "mondrian:selection": {"select": ["age > 40"]},
    "tds": {"target": "ill"},
    "gain-tree": ILL,
    "eligible-tree": ILL,
    "anatomy": {**ILL, "k": 1},
}


class Foreign(DistinctDiversity):
    """A kind of another package, which no kernel knows."""

    kind = "foreign"

    def condition(self) -> None:  # type: ignore[override]
        return None


class Breakable(DistinctDiversity):
    """A kind that declares that a union of classes may break it."""

    kind = "breakable"
    closed_under_union = False


class SessionStartError(Exception):
    """A Spark session would have been started."""


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No JVM is started, and the foreign kind is installed as a package would install it."""

    def start(*_: object) -> None:
        raise SessionStartError

    entries = [SimpleNamespace(name=kind.kind, load=lambda kind=kind: kind) for kind in (Foreign, Breakable)]
    monkeypatch.setattr("sfumato.engines.spark.session.session_of", start)
    monkeypatch.setattr(sfumato.requirements, "entry_points", lambda group: entries)
    kinds.cache_clear()
    yield
    kinds.cache_clear()


def pairs(features: tuple[Feature, ...], names: Any) -> list[Any]:
    """Every engine with every feature that has one of these names."""
    return [
        pytest.param(engine, feature, id=f"{engine}-{feature.name}")
        for engine in ENGINES
        for feature in features
        if feature.name in names
    ]


def reaches_table(engine: str) -> Any:
    """A run that was not refused goes on to its table: a missing file, or a session that would read it."""
    return pytest.raises(SessionStartError if engine == SPARK else InputError)


def refused(engine: str, what: str) -> Any:
    return pytest.raises(UsageError, match=rf"^the {engine} engine does not support {what}\. Leave it out, or choose")


def test_every_feature_of_the_table_is_tested_here() -> None:
    names = [feature.name for feature in RELEASE_FEATURES]
    assert sorted(names) == sorted([*BY_POLICY, *BY_FLAG, *BY_CALL, *BY_TABLE, "fit"])
    assert sorted(feature.name for feature in LEARNING_FEATURES) == sorted(BY_LEARNING)
    assert set(BY_METHOD) <= set(methods())


def test_the_memory_engine_has_every_feature() -> None:
    assert all(MEMORY in feature.engines for feature in (*RELEASE_FEATURES, *LEARNING_FEATURES))


@pytest.mark.parametrize("engine, feature", pairs(RELEASE_FEATURES, BY_POLICY))
def test_a_feature_that_an_engine_lacks_is_refused_before_the_table_is_read(engine: str, feature: Feature) -> None:
    asked = {**QUASI, "method": "hilbert", **BY_POLICY[feature.name]}
    with reaches_table(engine) if engine in feature.engines else refused(engine, feature.name):
        sfumato.anonymize(NOWHERE, engine=engine, **asked)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["global", "datafly", "samarati", "incognito"])
def test_methods_on_levels_leave_records_out_on_every_engine(engine: str, name: str) -> None:
    with reaches_table(engine):
        sfumato.anonymize(NOWHERE, engine=engine, **QUASI, method=name, max_suppressed=0.1)


@pytest.mark.parametrize("engine", [DISK, SPARK])
def test_where_another_method_would_leave_records_out_the_refusal_says_so(engine: str) -> None:
    with pytest.raises(UsageError) as caught:
        sfumato.anonymize(NOWHERE, engine=engine, **QUASI, method="hilbert", max_suppressed=0.1)
    assert str(caught.value) == (
        f"the {engine} engine does not support max_suppressed. Leave it out, or choose --engine memory or --method "
        "global."
    )


@pytest.mark.parametrize("engine, feature", pairs(RELEASE_FEATURES, BY_FLAG))
def test_a_flag_that_an_engine_lacks_is_refused_with_exit_code_2(
    engine: str, feature: Feature, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["anonymize", NOWHERE, "-o", "out.parquet", "--quasi-identifiers", "age", "-k", "2", "--engine", engine]
    code = main([*command, *BY_FLAG[feature.name]])
    told = " ".join(capsys.readouterr().err.split())
    assert code == (4 if engine in feature.engines else 2)
    assert (f"the {engine} engine does not support {feature.name}" in told) == (code == 2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("engine, feature", pairs(RELEASE_FEATURES, BY_POLICY))
def test_a_command_that_asks_for_what_an_engine_lacks_ends_with_exit_code_2(
    engine: str, feature: Feature, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.toml"
    merge_flags(None, **{**QUASI, "method": "hilbert", **BY_POLICY[feature.name]}).save(policy)
    if engine in feature.engines:
        return
    target = tmp_path / "out.parquet"
    assert main(["anonymize", NOWHERE, "-o", str(target), "--policy", str(policy), "--engine", engine]) == 2
    assert f"the {engine} engine does not support {feature.name}" in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["policy.toml"]


@pytest.mark.parametrize("call, feature", [
    ("plot", "plot"),
    ("aggregates", "aggregates"),
    ("report", "--report"),
    ("report_private", "--report-private"),
])  # fmt: skip
def test_what_a_release_of_spark_lacks_is_refused_by_the_release(call: str, feature: str, tmp_path: Path) -> None:
    policy = merge_flags(None, **QUASI)
    engine = SimpleNamespace(name=SPARK)
    draft: Any = SimpleNamespace(engine=engine, job=SimpleNamespace(policy=policy), trial=False)
    nothing: Any = SimpleNamespace(audit=None, losses=None)
    release = Release(draft, nothing)
    with refused(SPARK, feature):
        getattr(release, call)(*([tmp_path / "page.html"] if call == "report_private" else []))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", methods())
def test_a_method_that_an_engine_lacks_is_refused_before_the_table_is_read(engine: str, name: str) -> None:
    asked = {**QUASI, "method": name, **BY_METHOD.get(name, {})}
    if takes_method(engine, method_named(name)):
        with reaches_table(engine):
            sfumato.anonymize(NOWHERE, engine=engine, **asked)
        return
    with pytest.raises(UsageError, match=rf"^the {engine} engine does not support the method '{name}'") as error:
        sfumato.anonymize(NOWHERE, engine=engine, **asked)
    able = {known for known, method in methods().items() if takes_method(engine, method)}
    assert able <= set(str(error.value).replace(",", " ").split())


@pytest.mark.parametrize("feature", LEARNING_FEATURES, ids=lambda feature: str(feature.name))
def test_rules_that_disk_cannot_learn_are_refused_before_the_table_is_read(feature: Feature) -> None:
    asked = {**QUASI, **BY_LEARNING[feature.name]}
    with reaches_table(DISK) if DISK in feature.engines else refused(DISK, feature.name):
        sfumato.fit(NOWHERE, engine=DISK, **asked)


@pytest.mark.parametrize(
    "name",
    [name for name, method in methods().items() if learns_rules(method)],
)
def test_rules_by_a_method_are_learnt_on_disk_or_refused_as_the_table_says(name: str) -> None:
    asked = {**QUASI, "method": name, **BY_METHOD.get(name, {})}
    able = f"| rules by `{name}` | yes | yes | - |" in as_markdown()
    with reaches_table(DISK) if able else pytest.raises(UsageError, match=r"^the disk engine does not support"):
        sfumato.fit(NOWHERE, engine=DISK, **asked)


def test_rules_are_not_learnt_with_spark_and_no_session_is_started_to_say_so() -> None:
    with pytest.raises(UsageError, match=r"(?i)the spark engine"):
        sfumato.fit(NOWHERE, engine=SPARK, **QUASI)


@pytest.mark.parametrize("feature", [*RELEASE_FEATURES, *LEARNING_FEATURES], ids=lambda feature: str(feature.name))
def test_a_refusal_names_the_engine_the_feature_and_the_engines_that_have_it(feature: Feature) -> None:
    for engine in ENGINES:
        if engine in feature.engines:
            feature.refuse_on(engine)
            continue
        with refused(engine, feature.name) as error:
            feature.refuse_on(engine)
        assert all(f"--engine {other}" in str(error.value) for other in feature.engines)


def test_the_docs_have_the_table() -> None:
    page = (ROOT / "docs" / "engines.md").read_text("utf-8")
    _, table, _ = page.split("<!-- capabilities -->\n")
    assert table == as_markdown()


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_has_the_same_file_names_for_the_verbs(engine: str) -> None:
    folder = ROOT / "src" / "sfumato" / "engines" / engine
    assert {path.name for path in folder.glob("*.py")} >= VERB_FILES


def verbs(kind: type) -> set[str]:
    return {name for base in kind.__mro__ for name in vars(base) if not name.startswith("_")}


@pytest.mark.parametrize(
    "engine, contract", [(MemoryEngine, LearningEngine), (DiskEngine, LearningEngine), (SparkEngine, Engine)]
)
def test_an_engine_has_the_verbs_of_the_contract_and_no_others(engine: type, contract: type) -> None:
    assert verbs(engine) == verbs(contract)
