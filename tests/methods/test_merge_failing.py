"""Classes joined until they hold: which ones, and for kinds of requirements that other packages bring."""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from naming import hiding_methods, methods_on_levels
from numpy.typing import NDArray

import sfumato
import sfumato.requirements
from sfumato.cli import main
from sfumato.methods import ClassBatch
from sfumato.methods.merge_failing import join_failing
from sfumato.parameters import Parameter, whole_number
from sfumato.pipeline.prepare import prepare
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.requirements import ClassCounts, FrequencyDiversity, Requirement, Verdict, kinds
from sfumato.tables.coding.domains import Codes

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
by_method = pytest.mark.parametrize("method", hiding_methods())


def seeded(name: str) -> Callable[[Any], Any]:
    """Tables that are the same every time, and others for every name."""
    return seed(zlib.crc32(name.encode())) if settings().derandomize else lambda test: test


# ---- which classes are joined ----


def joined(classes: Sequence[str]) -> list[str]:
    """Classes of records such as ``20a``, an age and a value, joined until each has two values."""
    records = [record for one in classes for record in one.split()]
    ages, values = [int(record[:-1]) for record in records], [record[-1] for record in records]
    policy = merge_flags(None, quasi_identifiers=["age"], sensitive="s", require="distinct(s, l=2)")
    prepared = prepare(pa.table({"age": ages, "s": values}), policy, Progress())
    codes = prepared.encoded.codes
    starts = np.cumsum([0, *(len(one.split()) for one in classes)])
    low = np.minimum.reduceat(codes, starts[:-1], axis=0)
    high = np.maximum.reduceat(codes, starts[:-1], axis=0)

    def shown(low: Codes, high: Codes) -> NDArray[np.integer]:
        boxes = np.concatenate([low, high], axis=1)
        return np.unique(boxes, axis=0, return_inverse=True)[1].ravel()

    batch = ClassBatch(np.arange(len(records), dtype=np.uint32), starts, low, high)
    found = join_failing(batch, prepared.records, prepared.job.requirements, shown)
    members = [found.rows[start:end] for start, end in pairwise(found.starts)]
    assert found.low.tolist() == [codes[rows].min(axis=0).tolist() for rows in members]
    assert found.high.tolist() == [codes[rows].max(axis=0).tolist() for rows in members]
    return [" ".join(records[row] for row in rows) for rows in members]


@pytest.mark.parametrize(
    "classes, expected",
    [
        (["0a 1b", "4a 5b", "90a 91b"], ["0a 1b", "4a 5b", "90a 91b"]),
        (["0a 1b", "4a 5a", "90a 91b"], ["0a 1b 4a 5a", "90a 91b"]),
        (["0a 1b", "84a 85a", "90a 91b"], ["0a 1b", "84a 85a 90a 91b"]),
        (["0a 1a", "70a 71b", "90a 91b"], ["0a 1a 70a 71b", "90a 91b"]),
        (["0a 1b", "10a 11b", "90a 91a"], ["0a 1b", "10a 11b 90a 91a"]),
        (["0a", "1b", "2a", "3b"], ["0a 1b", "2a 3b"]),
        (["0a", "1a", "2a", "50b"], ["0a 1a 2a 50b"]),
        (["5a", "5b", "9a 9b"], ["5a", "5b", "9a 9b"]),
        (["5a 5b"], ["5a 5b"]),
    ],
    ids=[
        "none fails",
        "with the nearer one before",
        "with the nearer one after",
        "the first with the next",
        "the last with the one before",
        "two that fail help each other",
        "on and on up to the whole table",
        "equal boxes are one class and hold",
        "one class",
    ],
)
def test_a_class_that_fails_is_joined_with_a_neighbour(classes: list[str], expected: list[str]) -> None:
    assert joined(classes) == expected


def test_the_neighbour_is_the_one_that_adds_less_loss_for_all_records() -> None:
    # Nearer to the ten before; but each of these would pay for the way.
    many = " ".join(["0a 0b"] * 5)
    assert joined([many, "10a", "21a 21b"]) == [many, "10a 21a 21b"]
    assert joined(["0a 0b", "10a", "21a 21b"]) == ["0a 0b 10a", "21a 21b"]


@given(
    values=st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=3), min_size=1, max_size=9),
    gaps=st.lists(st.integers(1, 50), min_size=27, max_size=27),
)
def test_joined_classes_hold_and_are_whole_classes_in_a_row(values: list[list[str]], gaps: list[int]) -> None:
    ages = iter(np.cumsum(gaps).tolist())
    classes = [" ".join(f"{next(ages)}{value}" for value in one) for one in values]
    if len(set("".join(classes)) & set("ab")) < 2:
        with pytest.raises(sfumato.InfeasibleError):
            joined(classes)
        return
    found = joined(classes)
    assert " ".join(found) == " ".join(classes)
    assert {"a", "b"} == set.intersection(*(set(one) & {"a", "b"} for one in found))
    ends = {" ".join(classes[: place + 1]) for place in range(len(classes))}
    assert all(" ".join(found[: place + 1]) in ends for place in range(len(found)))
    # What held at first and has neighbours that held too is left as it was.
    alone = [{"a", "b"} <= set(one) for one in classes]
    for place, one in enumerate(classes):
        if all(alone[max(place - 1, 0) : place + 2]):
            assert one in found


# ---- a kind that another package brings ----


@dataclass(frozen=True)
class Crowd(Requirement):
    """Whoever has a value of ``attribute`` shares it with ``least - 1`` others of the class. No kernel knows it."""

    attribute: str
    least: int
    kind = "crowd"
    parameters: ClassVar = {"least": Parameter(whole_number(1))}
    closed_under_union = True
    closed_under_addition = False

    def holds(self, classes: ClassCounts) -> NDArray[np.bool_]:
        histogram = classes.histograms[self.attribute]
        result = np.ones(len(classes.sizes), np.bool_)
        result[histogram.owner[histogram.count < self.least]] = False
        return result

    def verdict(self, classes: ClassCounts) -> Verdict:
        count = classes.histograms[self.attribute].count
        text = f"crowds of {self.attribute!r}, least = {self.least}"
        return Verdict(text, bool(self.holds(classes).all()), int(count.min(initial=classes.sizes.max(initial=0))))


@dataclass(frozen=True)
class Pair(Crowd):
    """A crowd of two, which nothing need be said of."""

    least: int = 2
    kind = "pair"
    parameters: ClassVar = {}


def crowds(rows: Sequence[oracle.Row], key: Sequence[str], counting: oracle.Counting) -> float:
    """The fewest that share a value in a class; where nobody has one, any number do."""
    parts = [counting.counts(part, "illness").of.values() for part in counting.parts(rows, key, "illness")]
    return min((count for part in parts for count in part), default=math.inf)


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kind is installed, as a package would install it."""
    entry = EntryPoint("crowd", "test_merge_failing:Crowd", "sfumato.requirements")
    plain = EntryPoint("pair", "test_merge_failing:Pair", "sfumato.requirements")
    impostor = EntryPoint("frequency", "test_merge_failing:Crowd", "sfumato.requirements")
    found = {"sfumato.requirements": [plain, entry, impostor]}
    monkeypatch.setattr(sfumato.requirements, "entry_points", lambda group: found[group])
    kinds.cache_clear()
    yield
    kinds.cache_clear()


def patients(ages: Sequence[int], illness: Sequence[Any], **more: Sequence[Any]) -> pa.Table:
    return pa.table({"age": ages, "illness": pa.array(illness, pa.string()), **more})


def asks(require: str, **more: Any) -> dict[str, Any]:
    return {"quasi_identifiers": ["age"], "sensitive": "illness", "require": require, **more}


PAIRS = patients([20, 21, 30, 31, 70, 71], ["flu", "cold", "cold", "flu", "gout", "gout"])


def test_a_kind_is_known_only_while_its_package_is_there() -> None:
    with pytest.raises(sfumato.PolicyError, match=r"kind must be one of 'frequency', .*, not 'crowd'"):
        merge_flags(None, **asks("crowd(illness, least=2)"))


def test_a_kind_of_ours_stays_ours(crowd: None) -> None:
    assert kinds()["frequency"] is FrequencyDiversity
    assert list(kinds())[-1] == "crowd"


def test_a_kind_without_parameters_is_asked_for_by_its_column_alone(crowd: None) -> None:
    for require in ("pair(illness)", " pair ( illness ) "):
        found, expected = (sfumato.anonymize(PAIRS, **asks(text)).data for text in (require, "crowd(illness, least=2)"))
        assert found.equals(expected)
    with pytest.raises(sfumato.PolicyError, match="does not belong to the kind 'pair', which has no parameters"):
        merge_flags(None, **asks("pair(illness, least=2)"))


@by_method
def test_its_classes_are_joined_until_it_holds(crowd: None, method: str) -> None:
    release = sfumato.anonymize(PAIRS, **asks("crowd(illness, least=2)"), method=method)
    rows = release.data.to_pylist()
    assert len(rows) == 6
    assert crowds(rows, ["age"], oracle.Counting()) == release.audit.verdicts[1].value >= 2
    assert [one.requirement for one in release.audit.verdicts] == [
        "k-anonymity, k = 1",
        "crowds of 'illness', least = 2",
    ]


def test_it_costs_no_more_than_it_must_on_a_plain_table(crowd: None) -> None:
    release = sfumato.anonymize(PAIRS, **asks("crowd(illness, least=2)", keep_order=True))
    assert release.data["age"].to_pylist() == ["[20..31]"] * 4 + ["[70..71]"] * 2


@pytest.mark.not_quick
@by_method
@pytest.mark.parametrize(
    "counting",
    [
        oracle.Counting(),
        oracle.Counting(person="pid"),
        oracle.Counting(joint=("illness", "ward")),
        oracle.Counting(null_is_value=True),
    ],
    ids=["plain", "persons", "jointly", "null as value"],
)
def test_every_class_holds_or_the_table_cannot(crowd: None, method: str, counting: oracle.Counting) -> None:
    @seeded(f"{method} {counting}")
    @settings(max_examples=max(settings().max_examples // 4, 1))
    @given(data=st.data())
    def holds(data: st.DataObject) -> None:
        size = data.draw(st.integers(1, 25))

        def column(values: Sequence[Any]) -> list[Any]:
            return data.draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))

        table = patients(
            column(range(12)),
            column(["flu", "cold", None]),
            ward=column(["n", "s"]),
            pid=column(range(9)),
            row=range(size),
        )
        least = data.draw(st.integers(1, 4))
        flags = asks(
            f"crowd(illness, least={least})",
            k=data.draw(st.integers(1, 2)),
            identifiers=["pid"],
            other="keep",
            accept_linkable=["row", "ward"],
            person=counting.person,
            joint=bool(counting.joint),
            null_sensitive="value" if counting.null_is_value else "missing",
        )
        if counting.joint:
            flags["sensitive"] = ["illness", "ward"]
        before = table.to_pylist()
        try:
            release = sfumato.anonymize(table, **flags, method=method)
        except sfumato.InfeasibleError:
            assert crowds(before, [], counting) < least or counting.members(before) < flags["k"]
            return
        rows = [{**row, "pid": before[row["row"]]["pid"]} for row in release.data.to_pylist()]
        assert len(rows) == size
        assert crowds(rows, ["age"], counting) >= least
        assert oracle.smallest_membership(rows, ["age"], counting) >= flags["k"]

    holds()


@by_method
def test_it_holds_together_with_kinds_of_ours(crowd: None, method: str) -> None:
    generator = np.random.default_rng(4)
    table = patients(generator.integers(0, 80, 120).tolist(), generator.choice(["flu", "cold", "gout"], 120).tolist())
    flags = asks("crowd(illness, least=2)") | {"require": ["crowd(illness, least=2)", "entropy(illness, l=2)"]}
    release = sfumato.anonymize(table, **flags, k=5, method=method)
    rows = release.data.to_pylist()
    assert crowds(rows, ["age"], oracle.Counting()) >= 2
    assert oracle.is_met(oracle.Asked("entropy", "illness", {"l": 2}), rows, ["age"], oracle.Counting())
    assert oracle.smallest_class(rows, ["age"]) >= 5
    assert release.audit.classes > 1 or method in methods_on_levels()  # there, all or nothing of a number is shown


@by_method
def test_what_always_holds_changes_nothing(crowd: None, method: str) -> None:
    table = patients(range(0, 120, 3), ["flu", "cold"] * 20)
    alone = sfumato.anonymize(table, **asks((), k=4), method=method)  # type: ignore[arg-type]
    beside = sfumato.anonymize(table, **asks("crowd(illness, least=1)", k=4), method=method)
    assert oracle.smallest_class(beside.data.to_pylist(), ["age"]) >= 4
    if method in ("hilbert", "idistance"):  # the exact optimum along the line, both times
        assert beside.losses.gcp == pytest.approx(alone.losses.gcp)


def test_where_the_whole_table_fails_it_is_refused_by_its_own_words(crowd: None) -> None:
    table = patients([20, 30, 40, 50, 60], ["flu", "flu", "cold", "cold", "secret"])
    with pytest.raises(sfumato.InfeasibleError) as caught:
        sfumato.anonymize(table, **asks("crowd(illness, least=2)"))
    assert str(caught.value) == (
        "crowds of 'illness', least = 2 cannot be reached: the whole table reaches 1. Ask for less."
    )
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    "keys, words",
    [
        ("least = 0", r"line 6.*least.*must be a whole number of at least 1"),
        ('least = "2"', r"line 6.*least.*must be a whole number of at least 1"),
        ("", r"least.*is missing: the kind 'crowd' needs it"),
        ("least = 2\nl = 3", r"line 7.*does not belong to the kind 'crowd', which has 'least'"),
        ("least = 2\nlast = 3", r"line 7.*last"),
    ],
)
def test_a_policy_checks_the_parameters_that_it_declares(crowd: None, keys: str, words: str, tmp_path: Path) -> None:
    head = '[columns.illness]\nrole = "sensitive"\n[[privacy.sensitive]]\nattribute = "illness"\nkind = "crowd"\n'
    (tmp_path / "policy.toml").write_text(head + keys + "\n")
    with pytest.raises(sfumato.PolicyError, match=words):
        Policy.load(tmp_path / "policy.toml")


def test_a_policy_that_asks_for_it_comes_back_from_its_file(crowd: None, tmp_path: Path) -> None:
    policy = merge_flags(None, **asks("crowd(illness, least=2)", k=3))
    policy.save(tmp_path / "policy.toml")
    again = Policy.load(tmp_path / "policy.toml")
    assert again == policy
    assert again.privacy.sensitive[0].requirement() == Crowd("illness", 2)


def test_the_command_line_makes_and_audits_it(crowd: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pq.write_table(PAIRS, tmp_path / "patients.parquet")
    flags = ["--quasi-identifiers", "age", "--sensitive", "illness", "--json", "--require"]
    target = tmp_path / "release.parquet"
    command = ["anonymize", str(tmp_path / "patients.parquet"), "-o", str(target), *flags]
    assert main([*command, "crowd(illness, least=2)"]) == 0
    verdict = {"requirement": "crowds of 'illness', least = 2", "holds": True, "value": 2}
    assert json.loads(capfd.readouterr().out)["audit"][1] == verdict
    assert Counter(pq.read_table(target)["age"].to_pylist()) == {"[20..31]": 4, "[70..71]": 2}
    assert main(["audit", str(target), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["audit"][1] == verdict
    assert main(["audit", str(target), *flags, "crowd(illness, least=3)"]) == 1
    assert json.loads(capfd.readouterr().out)["audit"][1] == {
        "requirement": "crowds of 'illness', least = 3",
        "holds": False,
        "value": 2,
    }
    assert main([*command, "crowd(illness, least=3)"]) == 3
    assert main([*command, "crowd(illness, least=0)"]) == 2


def test_a_release_that_breaks_it_is_withheld(crowd: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.engines.memory.classes.join_failing", lambda batch, *rest: batch)
    with pytest.raises(sfumato.AuditError, match="crowds of 'illness', least = 2"):
        sfumato.anonymize(PAIRS, **asks("crowd(illness, least=2)"))
