"""Several sensitive columns jointly: what is asked of one holds also for whoever knows the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naming import hiding_methods

import sfumato
from sfumato.cli import main
from sfumato.policy import Policy

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")
by_method = pytest.mark.parametrize("method", hiding_methods())
JOINTLY = oracle.Counting(joint=("illness", "ward"))
TWO = oracle.Asked("frequency", "illness", {"l": 2})


def patients(ages: Sequence[Any], illness: Sequence[Any], ward: Sequence[Any], **more: Sequence[Any]) -> pa.Table:
    return pa.table({"age": ages, "illness": pa.array(illness), "ward": pa.array(ward), **more})


def asks(require: str | list[str], **more: Any) -> dict[str, Any]:
    sensitive = ["illness", "ward"]
    return {"quasi_identifiers": ["age"], "sensitive": sensitive, "require": require, "joint": True, **more}


# Both illnesses in equal shares; but in each ward there is only one.
TELLING = patients([40] * 4, ["flu", "cold", "flu", "cold"], ["north", "south", "north", "south"])


@by_method
def test_a_class_in_which_one_column_tells_the_other_is_refused(method: str) -> None:
    assert sfumato.anonymize(TELLING, **asks("frequency(illness, l=2)", joint=False), method=method).audit.holds
    with pytest.raises(sfumato.InfeasibleError) as caught:
        sfumato.anonymize(TELLING, **asks("frequency(illness, l=2)"), method=method)
    assert str(caught.value) == (
        "frequency l-diversity of 'illness', l = 2, jointly cannot be reached: some records that are equal in the "
        "other sensitive columns reach only 1 even if the whole table is one class. Ask for less, or not jointly."
    )
    assert caught.value.exit_code == 3


@by_method
def test_what_not_even_the_whole_table_reaches_is_said_of_the_table(method: str) -> None:
    table = patients([40] * 4, ["flu"] * 3 + ["cold"], ["north"] * 4)
    with pytest.raises(sfumato.InfeasibleError, match=r"allows the most frequent value 50\.0%.*it has 75\.0%"):
        sfumato.anonymize(table, **asks("frequency(illness, l=2)"), method=method)


@by_method
def test_classes_are_joined_until_each_ward_has_both_illnesses(method: str) -> None:
    # Alone, the young and the old have both illnesses, but each ward has one.
    table = patients(
        [20, 20, 20, 20, 80, 80, 80, 80], ["flu", "cold"] * 2 + ["cold", "flu"] * 2, ["north", "south"] * 4
    )
    apart = sfumato.anonymize(table, **asks("frequency(illness, l=2)", joint=False), method=method)
    assert sorted(set(apart.data["age"].to_pylist())) == ["20", "80"]
    together = sfumato.anonymize(table, **asks("frequency(illness, l=2)"), method=method)
    assert together.data["age"].to_pylist() == ["*"] * 8
    assert [(one.requirement, one.value) for one in together.audit.verdicts] == [
        ("k-anonymity, k = 1", 8),
        ("frequency l-diversity of 'illness', l = 2, jointly", 2.0),
    ]


@by_method
def test_a_column_without_a_requirement_is_known_all_the_same(method: str) -> None:
    # Only the ward is asked about; the illness, asked for nothing, tells it.
    with pytest.raises(sfumato.InfeasibleError, match="distinct l-diversity of 'ward', l = 2, jointly"):
        sfumato.anonymize(TELLING, **asks("distinct(ward, l=2)"), method=method)


@by_method
def test_each_column_holds_with_the_others_known(method: str) -> None:
    generator = np.random.default_rng(2)
    table = patients(
        generator.integers(0, 60, 90).tolist(),
        generator.choice(["flu", "cold", "gout"], 90).tolist(),
        generator.choice(["north", "south"], 90).tolist(),
        pay=generator.integers(1, 4, 90).tolist(),
    )
    release = sfumato.anonymize(
        table,
        **{
            **asks(["distinct(illness, l=2)", "frequency(ward, l=1)", "entropy(pay, l=2)"]),
            "sensitive": ["illness", "ward", "pay"],
        },
        k=3,
        method=method,
    )
    rows = release.data.to_pylist()
    counting = oracle.Counting(joint=("illness", "ward", "pay"))
    assert oracle.is_met(oracle.Asked("distinct", "illness", {"l": 2}), rows, ["age"], counting)
    assert oracle.is_met(oracle.Asked("entropy", "pay", {"l": 2}), rows, ["age"], counting)
    fewest = min(len({row["illness"] for row in part}) for part in counting.parts(rows, ["age"], "illness"))
    assert [one.requirement.endswith(", jointly") for one in release.audit.verdicts] == [False, True, True, True]
    assert release.audit.verdicts[1].value == fewest >= 2
    # k is a matter of classes, not of their parts.
    assert release.audit.verdicts[0].value == oracle.smallest_class(rows, ["age"])
    assert min(map(len, counting.parts(rows, ["age"], "illness"))) < release.audit.verdicts[0].value


@by_method
@pytest.mark.parametrize(
    "ward, holds",
    [
        (["north", "north", None, None], True),
        (["north", None, "north", None], False),
        (["north", "north", None, ""], True),
        ([None, "north", None, "north"], False),
        ([None, None, None, None], True),
    ],
)
def test_null_is_one_value_of_the_column_that_is_known(method: str, ward: list[str | None], holds: bool) -> None:
    table = patients([40] * 4, ["flu", "cold"] * 2, pa.array(ward, pa.string()))
    assert oracle.is_met(TWO, table.to_pylist(), [], JOINTLY) == holds
    if holds:
        assert sfumato.anonymize(table, **asks("frequency(illness, l=2)"), method=method).audit.holds
    else:
        with pytest.raises(sfumato.InfeasibleError, match="jointly"):
            sfumato.anonymize(table, **asks("frequency(illness, l=2)"), method=method)


@by_method
def test_a_part_without_any_value_has_nothing_to_hide_from_shares_but_lacks_different_values(method: str) -> None:
    table = patients([40] * 4, ["flu", "cold", None, None], ["north", "north", "south", "south"])
    assert sfumato.anonymize(table, **asks("frequency(illness, l=2)"), method=method).audit.holds
    with pytest.raises(sfumato.InfeasibleError, match="reach only 0 even"):
        sfumato.anonymize(table, **asks("distinct(illness, l=1)"), method=method)


@by_method
def test_the_parts_are_compared_with_the_whole_release(method: str) -> None:
    # In the table flu has 3 of 8. In the north 2 of 4, in the south 1 of 4: each 1/8 away.
    table = patients([40] * 8, ["flu", "flu", "cold", "cold", "flu", "cold", "cold", "cold"], ["n"] * 4 + ["s"] * 4)
    release = sfumato.anonymize(table, **asks("t-closeness(illness, t=0.125)"), method=method)
    assert release.audit.verdicts[1].value == pytest.approx(1 / 8)
    with pytest.raises(sfumato.InfeasibleError, match=r"reach only 0\.125 even"):
        sfumato.anonymize(table, **asks("t-closeness(illness, t=0.12)"), method=method)


@by_method
def test_persons_are_counted_in_each_part(method: str) -> None:
    # By records each ward has both illnesses in equal shares; but in the north one person has both.
    table = patients([40] * 4, ["flu", "cold"] * 2, ["n", "n", "s", "s"], pid=["a", "a", "b", "c"])
    assert sfumato.anonymize(table.drop(["pid"]), **asks("frequency(illness, l=2)"), method=method).audit.holds
    with pytest.raises(sfumato.InfeasibleError):
        sfumato.anonymize(table, **asks("frequency(illness, l=2)", person="pid"), method=method)


@given(data=st.data())
def test_what_holds_jointly_holds_by_itself(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 30))
    cells = {
        "age": st.integers(0, 9),
        "illness": st.sampled_from(["flu", "cold", None]),
        "ward": st.sampled_from(["n", "s"]),
    }
    table = patients(*(pa.array(data.draw(st.lists(one, min_size=size, max_size=size))) for one in cells.values()))
    table = table.set_column(1, "illness", table["illness"].cast(pa.string()))
    require = data.draw(
        st.sampled_from(["frequency(illness, l=2)", "alpha-k(illness, alpha=0.6)", "entropy(illness, l=2)"])
    )
    try:
        release = sfumato.anonymize(table, **asks(require))
    except sfumato.InfeasibleError:
        return
    rows = release.data.to_pylist()
    kinds = {
        "frequency": TWO,
        "alpha-k": oracle.Asked("alpha-k", "illness", {"alpha": Fraction(3, 5)}),
        "entropy": oracle.Asked("entropy", "illness", {"l": 2}),
    }
    asked = kinds[require.partition("(")[0]]
    assert oracle.is_met(asked, rows, ["age"], JOINTLY)
    assert oracle.is_met(asked, rows, ["age"], oracle.Counting())


# ---- the policy ----

POLICY = """\
[columns.age]
role = "quasi-identifier"
[columns.illness]
role = "sensitive"
[columns.ward]
role = "sensitive"
[privacy]
joint = true
[[privacy.sensitive]]
attribute = "illness"
kind = "frequency"
l = 2
"""


def test_a_joint_policy_comes_back_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY)
    policy = Policy.load(tmp_path / "policy.toml")
    policy.save(tmp_path / "again.toml")
    again = Policy.load(tmp_path / "again.toml")
    assert again == policy
    assert again.privacy.joint
    with pytest.raises(sfumato.InfeasibleError, match="jointly"):
        sfumato.anonymize(TELLING, again)
    assert sfumato.anonymize(TELLING, again, joint=False).audit.holds


@pytest.mark.parametrize(
    "text",
    [
        POLICY.replace('[columns.ward]\nrole = "sensitive"', '[columns.ward]\nrole = "identifier"'),
        POLICY.partition("[[")[0] + "k = 2\n",
    ],
    ids=["one sensitive column", "no requirement"],
)
def test_joint_without_two_columns_and_a_requirement_is_refused_with_its_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(text)
    with pytest.raises(sfumato.PolicyError) as caught:
        sfumato.anonymize(TELLING, Policy.load(tmp_path / "policy.toml"))
    assert "line 8" in str(caught.value)
    assert (
        "joint protects several sensitive columns together, which needs at least two of them and a requirement. "
        "Remove it, or name them."
    ) in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("value", ["1", '"yes"'])
def test_joint_is_true_or_false(value: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY.replace("joint = true", f"joint = {value}"))
    with pytest.raises(sfumato.PolicyError, match=r"line 8.*joint.*must be true or false"):
        Policy.load(tmp_path / "policy.toml")


# ---- the finished file ----


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_audit_of_a_file_finds_what_holds_jointly_and_what_no_longer_does(
    suffix: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    table = patients([20] * 4 + [80] * 4, ["flu", "cold"] * 4, ["north", "north", None, None] * 2)
    target = sfumato.anonymize(table, **asks("frequency(illness, l=2)")).write(tmp_path / f"release.{suffix}")
    report = sfumato.audit(target)
    assert [(one.requirement, one.holds, one.value) for one in report.verdicts[1:]] == [
        ("frequency l-diversity of 'illness', l = 2, jointly", True, 2.0),
        ("the file is the one that was certified", True, 1),
    ]
    # The same values in each class, but no longer in each ward.
    changed = patients(["20"] * 4 + ["80"] * 4, ["flu", "cold"] * 4, ["north", None] * 4)
    report = sfumato.audit(changed, **asks("frequency(illness, l=2)"))
    assert [(one.holds, one.value) for one in report.verdicts] == [(True, 4), (False, 1.0)]
    assert sfumato.audit(changed, **asks("frequency(illness, l=2)", joint=False)).holds
    pq.write_table(changed, tmp_path / "changed.parquet")
    (tmp_path / "policy.toml").write_text(POLICY)
    flags = ["--policy", str(tmp_path / "policy.toml"), "--json"]
    assert main(["audit", str(tmp_path / "changed.parquet"), *flags]) == 1
    assert json.loads(capfd.readouterr().out)["audit"][1] == {
        "requirement": "frequency l-diversity of 'illness', l = 2, jointly",
        "holds": False,
        "value": 1.0,
    }


def test_a_file_without_one_of_the_columns_is_refused() -> None:
    with pytest.raises(sfumato.UsageError, match="the column 'ward', which the table does not have"):
        sfumato.audit(TELLING.drop(["ward"]), **asks("frequency(illness, l=2)"))


def test_the_command_line_asks_jointly(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pq.write_table(TELLING, tmp_path / "telling.parquet")
    flags = ["--quasi-identifiers", "age", "--sensitive", "illness,ward", "--require", "frequency(illness, l=2)"]
    command = ["anonymize", str(tmp_path / "telling.parquet"), "-o", str(tmp_path / "release.csv"), *flags, "--json"]
    assert main([*command, "--joint"]) == 3
    assert "jointly cannot be reached" in " ".join(capfd.readouterr().err.split())
    assert not (tmp_path / "release.csv").exists()
    assert main(command) == 0
    assert json.loads(capfd.readouterr().out)["audit"][1]["requirement"] == "frequency l-diversity of 'illness', l = 2"
    mixed = TELLING.set_column(2, "ward", pa.array(["north", "north", "south", "south"]))
    pq.write_table(mixed, tmp_path / "telling.parquet")
    assert main([*command, "--joint"]) == 0
    found = json.loads(capfd.readouterr().out)["audit"][1]
    assert found == {"requirement": "frequency l-diversity of 'illness', l = 2, jointly", "holds": True, "value": 2.0}
