"""Every method with every kind of requirement, however it is counted: the oracle looks at every class of the release.

Methods and kinds are found by name, so that later ones join by themselves.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from naming import hiding_methods

import sfumato
from sfumato.cli import main
from sfumato.methods import method_named, methods
from sfumato.policy import Policy, merge_flags
from sfumato.requirements import kinds

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

METHODS = hiding_methods()
KEY = ["age", "city"]
# Ways of different lengths; a group of one; leaves that no table has.
TREE = [["0", "a", "A", "*"], ["1", "a", "A", "*"], ["2", "b", "A", "*"], ["3", "B", "*"], ["5", "B", "*"], ["4", "*"]]
few_examples = settings(max_examples=max(settings().max_examples // 15, 1))

# What a policy asks of the column "s", by the counts of the whole table or, jointly, of a part of it: some of it barely
# holds there, some barely not.
Parameters = Callable[[oracle.Counts], Sequence[Mapping[str, Any]]]


def levels(reached: int) -> list[dict[str, Any]]:
    return [{"l": level} for level in sorted({1, 2, max(reached, 1), reached + 1})]


def bounds_of(name: str, *numbers: Fraction | int, **more: Any) -> list[dict[str, Any]]:
    return [{name: Fraction(number), **more} for number in numbers if number > 0]


def recursive_bounds(some: oracle.Counts) -> list[dict[str, Any]]:
    found = []
    for level in range(1, len(some.of) + 2):
        rest = sum(sorted(some.of.values(), reverse=True)[level - 1 :])
        ratio = Fraction(some.largest, rest) if rest else Fraction(1)
        found += [{"c": c, "l": level} for c in (ratio, ratio * Fraction(51, 50), ratio * 3) if c]
    return found


def closeness(distance: str | None = None) -> Parameters:
    more = {} if distance is None else {"distance": distance}
    return lambda some: bounds_of("t", Fraction(1, 20), Fraction(1, 5), Fraction(2, 5), 1, **more)


def likeness(**more: Any) -> Parameters:
    return lambda some: bounds_of("beta", Fraction(1, 10), Fraction(1, 2), 1, 3, **more)


def shares(some: oracle.Counts) -> list[dict[str, Any]]:
    largest = Fraction(some.largest, max(some.known, 1))
    return bounds_of("alpha", largest, largest * Fraction(99, 100), min(largest * 2, Fraction(1)), 1)


def variances(some: oracle.Counts) -> list[dict[str, Any]]:
    reached = oracle.Asked.variance(some)
    return bounds_of("v", reached, reached * Fraction(101, 100), reached / 2, reached / 5, Fraction(1, 10))


KINDS: dict[str, tuple[str, Parameters]] = {
    "frequency": ("frequency", lambda some: levels(some.known // max(some.largest, 1))),
    "distinct": ("distinct", lambda some: levels(len(some.of))),
    "entropy": ("entropy", lambda some: [{"l": level} for level in range(1, len(some.of) + 2)]),
    "recursive": ("recursive", recursive_bounds),
    "variance": ("variance", variances),
    "closeness": ("t-closeness", closeness()),
    "closeness, ordered": ("t-closeness", closeness("ordered")),
    "closeness, hierarchical": ("t-closeness", closeness("hierarchical")),
    "alpha-k": ("alpha-k", shares),
    "likeness": ("beta-likeness", likeness()),
    "likeness, enhanced": ("beta-likeness", likeness(enhanced=True)),
    "disclosure": ("delta-disclosure", lambda some: bounds_of("delta", Fraction(1, 10), Fraction(1, 2), 1, 3)),
}
WAYS: dict[str, oracle.Counting] = {
    "plain": oracle.Counting(),
    "persons": oracle.Counting(person="pid"),
    "joint": oracle.Counting(joint=("s", "t")),
    "null as value": oracle.Counting(null_is_value=True),
    "all of it": oracle.Counting(person="pid", joint=("s", "t"), null_is_value=True),
}
CELLS = [(kind, way) for kind in KINDS for way in WAYS if kind != "variance" or not WAYS[way].null_is_value]
# What methods refuse before any work is done, of these with k = 2.
REFUSED: dict[str, set[tuple[str, str]]] = {
    method: set(CELLS) for method in ("anatomy", "datafly", "samarati", "incognito")
}

by_method = pytest.mark.parametrize("method", METHODS)


def seeded(*names: str) -> Callable[[Any], Any]:
    """Tables that are the same every time, and others for every name."""
    return seed(zlib.crc32(" ".join(names).encode())) if settings().derandomize else lambda test: test


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("taxonomies") / "s.csv"
    longest = max(map(len, TREE))
    path.write_text("".join(",".join([row[0]] * (longest - len(row)) + row) + "\n" for row in TREE))
    return path


@dataclass(frozen=True)
class Case:
    """A table of records with numbers, and what is asked of it."""

    rows: list[dict[str, Any]]
    asked: list[oracle.Asked]
    counting: oracle.Counting
    k: int
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> pa.Table:
        types = {"city": pa.string(), "t": pa.string()}
        return pa.table(
            {name: pa.array([row[name] for row in self.rows], types.get(name, pa.int64())) for name in self.rows[0]}
        )

    def policy(self, tree: Path) -> Policy:
        sensitive = dict.fromkeys(["s", *(asked.attribute for asked in self.asked), *self.counting.joint])
        return merge_flags(
            Policy.from_dict({"privacy": {"sensitive": [written(asked) for asked in self.asked]}}),
            quasi_identifiers=KEY,
            sensitive=list(sensitive),
            identifiers=["pid"],
            taxonomy={"s": tree} if any("hierarchical" in asked.parameters.values() for asked in self.asked) else None,
            other="keep",
            accept_linkable=["row", "t"],
            k=self.k,
            person=self.counting.person,
            joint=bool(self.counting.joint),
            null_sensitive="value" if self.counting.null_is_value else "missing",
            keep_order=True,
            **self.more,
        )

    def is_met(self, rows: Sequence[oracle.Row], key: Sequence[str]) -> bool:
        """Whether every class holds what is asked for; without a key, all rows as one."""
        if oracle.smallest_membership(rows, key, self.counting) < self.k:
            return False
        return all(oracle.is_met(asked, rows, key, self.counting) for asked in self.asked)

    def released(self, release: sfumato.Release) -> list[dict[str, Any]]:
        """The released rows with the person of each, which a release does not show."""
        assert "pid" not in release.data.column_names
        return [{**row, "pid": self.rows[row["row"]]["pid"]} for row in release.data.to_pylist()]


def written(asked: oracle.Asked) -> dict[str, Any]:
    """As a policy has it."""
    numbers = {name: float(value) if isinstance(value, Fraction) else value for name, value in asked.parameters.items()}
    return {"attribute": asked.attribute, "kind": asked.kind, **numbers}


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Records with few different quasi-identifiers, so that some are equal, and of few or many persons."""
    size = draw(st.one_of(st.integers(1, 6), st.integers(7, 40)))
    values: tuple[int | None, ...] = draw(
        st.sampled_from([(0,), (0, 1), (0, 0, 0, 1), (0, 1, 2), (0, 1, 2, 3, 4), (0, 0, 0, 0, 1, 2, 3)])
    )
    if draw(st.booleans()):
        values = (*values, None)
    ages, persons = draw(st.sampled_from([2, 6, 40])), draw(st.sampled_from([1, 3, 12, 200]))
    columns = {
        "age": st.integers(0, ages),
        "city": st.sampled_from(["Lucca", "Pisa", "Roma", None]),
        "s": st.sampled_from(values),
        "t": st.sampled_from(draw(st.sampled_from([("x",), ("x", "x", "x", "y"), ("x", "y", None), ("", "x", None)]))),
        "pid": st.integers(1, persons),
    }
    cells = {name: draw(st.lists(one, min_size=size, max_size=size)) for name, one in columns.items()}
    return [{**{name: cells[name][row] for name in cells}, "row": row} for row in range(size)]


@st.composite
def cases(draw: st.DrawFn, some_kinds: Sequence[str], counting: oracle.Counting) -> Case:
    rows = draw(tables())
    asked = []
    for name in some_kinds:
        kind, parameters = KINDS[name]
        column = draw(st.sampled_from(["s", "t"])) if len(some_kinds) > 1 and kind in ("frequency", "distinct") else "s"
        part = draw(st.sampled_from(counting.parts(rows, (), column)))
        found = draw(st.sampled_from(parameters(counting.counts(part, column))))
        asked.append(oracle.Asked(kind, column, found, TREE))
    most = len(rows) if counting.person is None else len({row[counting.person] for row in rows})
    k = draw(st.sampled_from(sorted({1, 2, 4, most, most + 1})))
    # Classes that differ before their bounds are widened show the same afterwards.
    grid = {"round": {"age": draw(st.sampled_from([3, 20]))}} if draw(st.integers(0, 3)) == 0 else {}
    return Case(rows, asked, counting, k, grid)


def anonymized(case: Case, method: str, tree: Path, **more: Any) -> sfumato.Release:
    return sfumato.anonymize(case.table, case.policy(tree), method=method, **more)


def check(case: Case, method: str, tree: Path) -> None:
    """A release in which every class holds, or a refusal where not even the whole table does."""
    try:
        release = anonymized(case, method, tree)
    except sfumato.InfeasibleError:
        assert not case.is_met(case.rows, ())
        return
    rows = case.released(release)
    assert [row["row"] for row in rows] == list(range(len(case.rows)))
    assert [row["s"] for row in rows] == [row["s"] for row in case.rows]
    assert case.is_met(rows, KEY)
    assert release.audit.classes == len(oracle.classes(rows, KEY))
    assert release.audit.verdicts[0].value == oracle.smallest_membership(rows, KEY, case.counting)


def test_every_kind_there_is_is_tested() -> None:
    assert {kind for kind, _ in KINDS.values()} == set(kinds())


def some_case(kind: str, way: str) -> Case:
    """A table that can hold whatever is asked for."""
    rows = [{"age": row, "city": "Pisa", "s": row % 4, "t": "xy"[row // 4 % 2], "pid": row} for row in range(32)]
    name, parameters = KINDS[kind]
    asked = oracle.Asked(name, "s", parameters(oracle.Counts(dict.fromkeys(range(4), 8), 32))[0], TREE)
    return Case([{**row, "row": row["age"]} for row in rows], [asked], WAYS[way], 2)


@pytest.mark.parametrize("method", sorted(methods()))
def test_what_a_method_refuses_is_listed(method: str, tree: Path) -> None:
    refused = set()
    for kind, way in CELLS:
        case = some_case(kind, way)
        try:
            method_named(method).check(case.policy(tree).requirements())
        except sfumato.UsageError:
            refused.add((kind, way))
            with pytest.raises(sfumato.UsageError):
                anonymized(case, method, tree)
    assert refused == REFUSED.get(method, set())


@by_method
@pytest.mark.parametrize("way", ["null as value", "all of it"])
def test_variance_is_refused_where_null_is_a_value(method: str, way: str, tree: Path) -> None:
    with pytest.raises(sfumato.PolicyError, match="null_sensitive is 'value', but variance needs numbers"):
        anonymized(some_case("variance", way), method, tree)


@pytest.mark.parametrize("kind, way", CELLS)
@by_method
def test_every_class_holds_or_the_table_cannot(method: str, kind: str, way: str, tree: Path) -> None:
    @seeded(method, kind, way)
    @few_examples
    @given(case=cases([kind], WAYS[way]))
    def holds(case: Case) -> None:
        check(case, method, tree)

    holds()


TOGETHER = [
    ["frequency", "distinct", "frequency"],
    ["entropy", "distinct", "closeness, ordered"],
    ["alpha-k", "likeness, enhanced", "frequency"],
    ["recursive", "variance", "closeness, hierarchical"],
]


@pytest.mark.parametrize("together", TOGETHER, ids=" and ".join)
@pytest.mark.parametrize("way", ["plain", "persons", "joint"])
@by_method
def test_requirements_hold_together(method: str, way: str, together: list[str], tree: Path) -> None:
    @seeded(method, way, *together)
    @few_examples
    @given(case=cases(together, WAYS[way]))
    def hold(case: Case) -> None:
        check(case, method, tree)

    hold()


# ---- records left out ----


@pytest.mark.parametrize("kind, way", CELLS)
def test_with_records_left_out_every_class_holds_and_advice_can_be_followed(kind: str, way: str, tree: Path) -> None:
    @seeded(kind, way)
    @few_examples
    @given(
        case=cases([kind], WAYS[way]),
        method=st.sampled_from(METHODS),
        fraction=st.sampled_from([0.0, 0.05, 0.2, 0.7]),
    )
    def hold(case: Case, method: str, fraction: float) -> None:
        check_with_records_left_out(case, method, tree, fraction)

    hold()


def check_with_records_left_out(case: Case, method: str, tree: Path, fraction: float) -> None:
    try:
        release = anonymized(case, method, tree, max_suppressed=fraction)
    except sfumato.InfeasibleError as error:
        assert not case.is_met(case.rows, ())
        proposed = re.search(r"max_suppressed_fraction = (\d\.\d+)", str(error))
        if proposed is None:
            return
        assert float(proposed[1]) > fraction
        fraction = float(proposed[1])
        release = anonymized(case, method, tree, max_suppressed=fraction)
    rows = case.released(release)
    numbers = [row["row"] for row in rows]
    assert numbers == sorted(set(numbers))
    assert all(row[name] == case.rows[row["row"]][name] for row in rows for name in ("s", "t"))
    suppressed = len(case.rows) - len(rows)
    assert suppressed <= fraction * len(case.rows) + 1e-9
    assert (release.summary()["suppressed"], release.summary()["released"]) == (suppressed, len(rows))
    assert case.is_met(rows, KEY)
    if "round" not in case.more and case.is_met(case.rows, ()):
        assert release.losses.gcp <= anonymized(case, method, tree).losses.gcp + 1e-9


# ---- the hierarchical distance ----

DISEASES = [
    ["flu", "infection", "lung", "*"],
    ["bronchitis", "infection", "lung", "*"],
    ["embolism", "vessels", "lung", "*"],
    ["ulcer", "stomach", "belly", "*"],
    ["colitis", "colon", "belly", "*"],
]


@pytest.fixture
def diseases(tmp_path: Path) -> Path:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "diseases.csv").write_text("".join(",".join(row) + "\n" for row in DISEASES))
    return tmp_path / "kept" / "diseases.csv"


@pytest.mark.parametrize(
    "other, distance",
    [
        ("flu", Fraction(0)),
        ("bronchitis", Fraction(1, 3)),
        ("embolism", Fraction(2, 3)),
        ("ulcer", Fraction(1)),
        (None, Fraction(1)),
    ],
)
def test_two_values_are_as_far_apart_as_their_group_is_high(
    other: str | None, distance: Fraction, diseases: Path
) -> None:
    assert oracle.hierarchical_distance({"flu": Fraction(1)}, {other: Fraction(1)}, DISEASES) == distance
    # Two classes, each of one of the values: either half of its records would have to become the other.
    table = pa.table({"age": ["1", "1", "2", "2"], "s": pa.array(["flu", "flu", other, other])})
    report = sfumato.audit(
        table,
        quasi_identifiers=["age"],
        sensitive="s",
        taxonomy={"s": diseases},
        null_sensitive="value",
        require="t-closeness(s, t=1, distance=hierarchical)",
    )
    assert report.verdicts[1].value == pytest.approx(float(distance / 2))
    assert report.remarks == ("null counts as a sensitive value like another, as the policy asks",)


def spread(values: Sequence[Any]) -> pa.Table:
    return pa.table({"age": range(len(values)), "s": pa.array(values)})


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_needs_the_taxonomy_only_where_the_distance_does(suffix: str, diseases: Path, tmp_path: Path) -> None:
    table = spread(["flu", "ulcer"] * 6)
    flags: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": "s", "taxonomy": {"s": diseases}}
    target = tmp_path / f"release.{suffix}"
    sfumato.anonymize(table, **flags, l=2).write(target)
    assert sfumato.audit(target).holds
    sfumato.anonymize(table, **flags, require="t-closeness(s, t=0.3, distance=hierarchical)").write(target)
    with pytest.raises(sfumato.TaxonomyError, match="is in none of the folders"):
        sfumato.audit(target)
    report = sfumato.audit(target, taxonomy={"s": diseases})
    assert report.holds
    assert report.verdicts[1].value <= 0.3


def test_a_sensitive_value_outside_its_taxonomy_is_refused_without_it(diseases: Path) -> None:
    with pytest.raises(sfumato.InputError) as caught:
        sfumato.anonymize(
            spread(["flu", "secret", "ulcer", "hidden"]),
            quasi_identifiers=["age"],
            sensitive="s",
            taxonomy={"s": diseases},
            require="t-closeness(s, t=0.5, distance=hierarchical)",
        )
    assert "the sensitive column 's' has 2 different values that are not in its taxonomy" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("values, leaves", [([1.0, 2.5], ["1", "2.5"]), ([True, False], ["true", "false"])])
def test_values_that_are_not_text_are_found_in_their_taxonomy_in_every_file(
    suffix: str, values: list[Any], leaves: list[str], tmp_path: Path
) -> None:
    taxonomy, target = tmp_path / "s.csv", tmp_path / f"release.{suffix}"
    taxonomy.write_text("".join(f"{leaf},*\n" for leaf in leaves))
    release = sfumato.anonymize(
        spread(values * 6),
        quasi_identifiers=["age"],
        sensitive="s",
        taxonomy={"s": taxonomy},
        require="t-closeness(s, t=0.3, distance=hierarchical)",
    )
    assert sfumato.audit(release.write(target), taxonomy={"s": taxonomy}).holds


# ---- null as a value ----


@by_method
@pytest.mark.parametrize("null", [None, "", "NA"])
def test_null_is_one_more_value_where_the_policy_says_so(method: str, null: str | None) -> None:
    table = spread(["flu", null] * 6)
    flags: dict[str, Any] = {
        "quasi_identifiers": ["age"],
        "sensitive": "s",
        "input": {"nulls": ["", "NA"]},
        "method": method,
    }
    with pytest.raises(sfumato.InfeasibleError):
        sfumato.anonymize(table, **flags, l=2)
    release = sfumato.anonymize(table, **flags, l=2, null_sensitive="value")
    counting = oracle.Counting(null_is_value=True, nulls=("", "NA"))
    assert oracle.is_met(oracle.Asked("frequency", "s", {"l": 2}), release.data.to_pylist(), ["age"], counting)
    assert release.audit.verdicts[1].value == 2
    assert "null counts as a sensitive value like another, as the policy asks" in release.warnings


@by_method
def test_where_null_is_a_value_it_has_to_be_hidden_too(method: str) -> None:
    table = spread([None, None, None, "flu", "cold"])
    flags: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": "s", "method": method}
    assert sfumato.anonymize(table, **flags, l=2).audit.holds
    with pytest.raises(sfumato.InfeasibleError, match=r"it has 60\.0%"):
        sfumato.anonymize(table, **flags, l=2, null_sensitive="value")


def test_nulls_of_all_sorts_are_one_value() -> None:
    table = spread(["", "NA", None, "", "NA", None])
    with pytest.raises(sfumato.InfeasibleError, match="needs 2 different values, but the table has 1"):
        sfumato.anonymize(
            table,
            quasi_identifiers=["age"],
            sensitive="s",
            require="distinct(s, l=2)",
            null_sensitive="value",
            input={"nulls": ["", "NA"]},
        )


def test_the_command_line_takes_null_as_a_value_and_the_file_remembers(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(spread(["flu", None] * 6), tmp_path / "patients.parquet")
    target = tmp_path / "release.csv"
    flags = ["--quasi-identifiers", "age", "--sensitive", "s", "-l", "2", "--json"]
    command = ["anonymize", str(tmp_path / "patients.parquet"), "-o", str(target), *flags]
    assert main(command) == 3
    assert main([*command, "--null-sensitive", "nothing"]) == 2
    capfd.readouterr()
    assert main([*command, "--null-sensitive", "value"]) == 0
    assert json.loads(capfd.readouterr().out)["audit"][1]["value"] == 2
    assert main(["audit", str(target), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["remarks"] == ["null counts as a sensitive value like another, as the policy asks"]
    assert found["audit"][1] == {"requirement": "frequency l-diversity of 's', l = 2", "holds": True, "value": 2.0}
    assert Policy.from_dict(
        json.loads(Path(f"{target}.sfumato.json").read_text())["policy"]
    ).privacy.null_sensitive == ("value")
