"""The audit agrees with pyCANON on tables without nulls, or differs from it exactly as docs/diversity.md says."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycanon import anonymity  # type: ignore[import-untyped]
from strategies import NAMES

import sfumato
from sfumato.evaluation.audit.audit import AuditReport

QUASI = ["region", "age"]
SENSITIVE = ["s"]
A_LITTLE = 1e-6  # far more than rounding, far less than one record makes


# ---- tables ----


@dataclass(frozen=True)
class Table:
    """A frame, and how often each sensitive value occurs in each of its classes: ``counts[class][value]``."""

    frame: pd.DataFrame
    counts: list[list[int]]

    @property
    def shares(self) -> list[float]:
        """Of each sensitive value in the whole table."""
        totals = [sum(column) for column in zip(*self.counts, strict=True)]
        return [total / sum(totals) for total in totals]

    @property
    def ratios(self) -> list[float]:
        """The share of a value in a class to its share in the table, for each value that a class has."""
        return [
            count / sum(counts) / share
            for counts in self.counts
            for count, share in zip(counts, self.shares, strict=True)
            if count
        ]


def frame_of(regions: Sequence[Any], sensitive: Sequence[Any]) -> pd.DataFrame:
    """A small table written out; the second quasi-identifier is the same for all."""
    return pd.DataFrame({"region": regions, "age": [40] * len(regions), "s": sensitive})


TEXTS = st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=5)
NUMBERS = st.lists(st.integers(-1000, 1000) | st.floats(-1e6, 1e6), unique=True, min_size=1, max_size=5)
VALUES: dict[str, st.SearchStrategy[list[Any]]] = {"text": TEXTS, "numbers": NUMBERS}


@st.composite
def tables(draw: st.DrawFn, values: st.SearchStrategy[list[Any]], least: int = 0) -> Table:
    """Up to five classes over up to five values, each value at least ``least`` times in each, in any order of rows."""
    names = draw(values)
    one = st.lists(st.integers(least, 5), min_size=len(names), max_size=len(names)).filter(any)
    counts = draw(st.lists(one, min_size=1, max_size=5))
    occurring = [place for place in range(len(names)) if any(row[place] for row in counts)]
    counts = [[row[place] for place in occurring] for row in counts]
    rows = [
        ("ns"[number % 2], 30 + number // 2, names[place])
        for number, row in enumerate(counts)
        for place, count in zip(occurring, row, strict=True)
        for _ in range(count)
    ]
    draw(st.randoms(use_true_random=False)).shuffle(rows)
    return Table(pd.DataFrame(rows, columns=[*QUASI, *SENSITIVE]), counts)


ANY = tables(TEXTS) | tables(NUMBERS)


# ---- what either says ----


def audit(frame: pd.DataFrame, *require: str, k: int = 1) -> AuditReport:
    return sfumato.audit(frame, quasi_identifiers=QUASI, sensitive=SENSITIVE, require=require, k=k)


def reached(frame: pd.DataFrame, require: str) -> float:
    """The value that the audit finds for one requirement."""
    _, verdict = audit(frame, require).verdicts
    return verdict.value


def holds(frame: pd.DataFrame, require: str) -> bool:
    _, verdict = audit(frame, require).verdicts
    return verdict.holds


def close(value: float) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-12)


# ---- where both follow the definition ----


@given(table=ANY)
def test_the_smallest_class_is_that_of_pycanon(table: Table) -> None:
    k = anonymity.k_anonymity(table.frame, QUASI)
    assert audit(table.frame, k=k).verdicts[0].value == k
    assert [audit(table.frame, k=asked).holds for asked in (k, k + 1)] == [True, False]


@given(table=ANY)
def test_distinct_l_is_that_of_pycanon(table: Table) -> None:
    l = anonymity.l_diversity(table.frame, QUASI, SENSITIVE)
    assert reached(table.frame, "distinct(s, l=2)") == l
    assert [holds(table.frame, f"distinct(s, l={asked})") for asked in (l, l + 1)] == [True, False]


@given(table=ANY)
def test_alpha_is_that_of_pycanon_and_frequency_l_its_inverse(table: Table) -> None:
    alpha, k = anonymity.alpha_k_anonymity(table.frame, QUASI, SENSITIVE)
    assert audit(table.frame).smallest_class == k
    assert reached(table.frame, "alpha-k(s, alpha=0.5)") == alpha
    assert reached(table.frame, "frequency(s, l=2)") == close(1 / alpha)
    asked = [float(alpha), alpha * (1 - A_LITTLE)]
    assert [holds(table.frame, f"alpha-k(s, alpha={share!r})") for share in asked] == [True, False]


@pytest.mark.parametrize("kind, distance", [("text", "equal"), ("numbers", "ordered")])
@given(data=st.data())
def test_closeness_is_that_of_pycanon_equal_for_text_and_ordered_for_numbers(
    kind: str, distance: str, data: st.DataObject
) -> None:
    values = VALUES[kind].filter(lambda names: len(names) > 1)
    table = data.draw(tables(values).filter(lambda table: len(table.shares) > 1))
    t = float(anonymity.t_closeness(table.frame, QUASI, SENSITIVE))
    assert reached(table.frame, f"t-closeness(s, t=0.5, distance={distance!r})") == close(t)
    if t > A_LITTLE:
        asked = [t * (1 + A_LITTLE), t * (1 - A_LITTLE)]
        found = [holds(table.frame, f"t-closeness(s, t={bound!r}, distance={distance!r})") for bound in asked]
        assert found == [True, False]


@given(table=ANY)
def test_basic_beta_is_that_of_pycanon(table: Table) -> None:
    beta = float(anonymity.basic_beta_likeness(table.frame, QUASI, SENSITIVE))
    assert reached(table.frame, "beta-likeness(s, beta=1)") == close(beta)
    if beta > A_LITTLE:
        asked = [beta * (1 + A_LITTLE), beta * (1 - A_LITTLE)]
        assert [holds(table.frame, f"beta-likeness(s, beta={bound!r})") for bound in asked] == [True, False]


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_delta_is_that_of_pycanon_where_every_class_has_every_value(kind: str, data: st.DataObject) -> None:
    table = data.draw(tables(VALUES[kind], least=1))
    delta = float(anonymity.delta_disclosure(table.frame, QUASI, SENSITIVE))
    assert reached(table.frame, "delta-disclosure(s, delta=1)") == close(delta)
    if delta > A_LITTLE:
        asked = [delta * (1 + A_LITTLE), delta * (1 - A_LITTLE)]
        assert [holds(table.frame, f"delta-disclosure(s, delta={bound!r})") for bound in asked] == [True, False]


# ---- where pyCANON departs from the definition ----


@given(table=ANY)
def test_pycanon_cuts_the_l_of_the_entropy_to_a_whole_number(table: Table) -> None:
    value = reached(table.frame, "entropy(s, l=2)")
    l = anonymity.entropy_l_diversity(table.frame, QUASI, SENSITIVE)
    whole = round(value)
    assert l in ([whole - 1, whole] if value == close(whole) else [math.floor(value)])


def test_pycanon_loses_an_l_of_the_entropy_to_rounding() -> None:
    lost = []
    for different in range(2, 21):
        frame = frame_of(["n"] * different, range(different))
        assert reached(frame, "entropy(s, l=2)") == close(different)
        assert [holds(frame, f"entropy(s, l={l})") for l in (different, different + 1)] == [True, False]
        lost.append(different - anonymity.entropy_l_diversity(frame, QUASI, SENSITIVE))
    assert set(lost) == {0, 1}


@given(table=ANY)
def test_pycanon_takes_the_rarest_value_for_the_most_frequent_in_recursive_diversity(table: Table) -> None:
    c, l = anonymity.recursive_c_l_diversity(table.frame, QUASI, SENSITIVE)
    assert l == reached(table.frame, "distinct(s, l=2)")
    classes = [sorted((count for count in counts if count), reverse=True) for counts in table.counts]
    if l == 1:
        assert math.isnan(c)
        assert holds(table.frame, "recursive(s, c=0.01, l=1)")
    else:
        # The rarest over the sum from the l-th rarest on is 1 for l equally frequent values, and at most 1/2 otherwise.
        assert c == (2 if any(len(counts) == l and len(set(counts)) == 1 for counts in classes) else 1)
        needed = max(counts[0] / sum(counts[l - 1 :]) for counts in classes)
        assert reached(table.frame, f"recursive(s, c=1, l={l})") == close(needed)
        asked = [needed * (1 + A_LITTLE), needed]
        assert [holds(table.frame, f"recursive(s, c={bound!r}, l={l})") for bound in asked] == [True, False]


@pytest.mark.parametrize(
    "values, theirs, ours",
    [("xxyy", (2, 2), 1.0), ("xxxxxxxxxy", (1, 2), 9.0), ("xxxxxxyz", (1, 3), 6.0)],
)
def test_recursive_diversity_of_one_class(values: str, theirs: tuple[int, int], ours: float) -> None:
    frame = frame_of(["n"] * len(values), list(values))
    assert anonymity.recursive_c_l_diversity(frame, QUASI, SENSITIVE) == theirs
    assert reached(frame, f"recursive(s, c=1, l={theirs[1]})") == ours


@given(table=ANY)
def test_pycanon_bounds_enhanced_beta_by_the_rarest_value_alone(table: Table) -> None:
    theirs = anonymity.enhanced_beta_likeness(table.frame, QUASI, SENSITIVE)
    basic = reached(table.frame, "beta-likeness(s, beta=1)")
    assert reached(table.frame, "beta-likeness(s, beta=1, enhanced=true)") == basic
    assert theirs == close(min(basic, -math.log(min(table.shares))))


def test_pycanon_gives_an_enhanced_beta_where_none_is_enough() -> None:
    frame = frame_of(["n"] * 5 + ["s"] * 5, list("xxxxx" + "xxxxy"))
    assert anonymity.enhanced_beta_likeness(frame, QUASI, SENSITIVE) == close(1.0)
    assert holds(frame, "beta-likeness(s, beta=1.001)")
    # Among the first five, x gains 1/9 over its share of 9/10; -ln 0.9 is less.
    assert not holds(frame, "beta-likeness(s, beta=1000, enhanced=true)")


@given(table=ANY.filter(lambda table: any(0 in counts for counts in table.counts)))
def test_pycanon_passes_over_the_values_that_a_class_lacks_in_delta(table: Table) -> None:
    assert reached(table.frame, "delta-disclosure(s, delta=1)") == math.inf
    assert not holds(table.frame, "delta-disclosure(s, delta=1e300)")
    present = max(abs(math.log(ratio)) for ratio in table.ratios)
    assert anonymity.delta_disclosure(table.frame, QUASI, SENSITIVE) == close(present)


def test_the_delta_of_pycanon_is_reached_so_that_only_larger_ones_hold() -> None:
    frame = frame_of(["n"] * 4 + ["s"] * 4, list("xyyy" + "xxxy"))
    delta = float(anonymity.delta_disclosure(frame, QUASI, SENSITIVE))
    assert delta == reached(frame, "delta-disclosure(s, delta=1)") == math.log(2)
    asked = [delta, delta * (1 + A_LITTLE)]
    assert [holds(frame, f"delta-disclosure(s, delta={bound!r})") for bound in asked] == [False, True]


@pytest.mark.parametrize("distance", ["equal", "ordered"])
def test_pycanon_has_no_closeness_for_a_single_number_and_for_dates(distance: str) -> None:
    require = f"t-closeness(s, t=0.5, distance={distance!r})"
    single = frame_of(list("nnss"), [5] * 4)
    assert reached(single, require) == 0
    with pytest.raises(ZeroDivisionError):
        anonymity.t_closeness(single, QUASI, SENSITIVE)
    days = [datetime.datetime(2020, 1, day) for day in (1, 1, 2, 3)]
    dates = frame_of(list("nnss"), days)
    assert reached(dates, require) == close({"equal": 1 / 2, "ordered": 3 / 8}[distance])
    with pytest.raises(ValueError, match="type"):
        anonymity.t_closeness(dates, QUASI, SENSITIVE)


# ---- where pyCANON miscounts ----


def test_pycanon_leaves_out_records_with_a_null_quasi_identifier() -> None:
    frame, region = frame_of(["n", "n", None], list("xyx")), ["region"]  # with several, pandas before 3 counts them
    assert (anonymity.k_anonymity(frame, region), audit(frame).smallest_class) == (2, 1)
    assert (anonymity.l_diversity(frame, region, SENSITIVE), reached(frame, "distinct(s, l=2)")) == (2, 1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_pycanon_counts_a_missing_number_as_a_value_and_fails_on_missing_text() -> None:
    numbers = frame_of(["n"] * 4, [1.0, 1.0, 2.0, None])
    assert (anonymity.l_diversity(numbers, QUASI, SENSITIVE), reached(numbers, "distinct(s, l=2)")) == (3, 2)
    assert anonymity.alpha_k_anonymity(numbers, QUASI, SENSITIVE) == (1 / 2, 4)
    assert reached(numbers, "alpha-k(s, alpha=0.5)") == 2 / 3
    with pytest.raises(ValueError, match="NaN"):
        anonymity.entropy_l_diversity(numbers, QUASI, SENSITIVE)
    text = frame_of(["n"] * 4, ["x", "x", "y", None])
    with pytest.raises(TypeError):
        anonymity.l_diversity(text, QUASI, SENSITIVE)
    for frame in (numbers, text):
        assert reached(frame, "entropy(s, l=2)") == close(3 / 2 ** (2 / 3))


def test_pycanon_takes_the_labels_of_a_frame_for_the_places_of_its_rows() -> None:
    frame = frame_of(list("nnss"), list("xxyz"))
    assert anonymity.alpha_k_anonymity(frame, QUASI, SENSITIVE) == (1.0, 2)
    exchanged, filtered = frame.set_axis([3, 1, 2, 0]), frame.set_axis([10, 11, 12, 13])
    assert anonymity.alpha_k_anonymity(exchanged, QUASI, SENSITIVE) == (0.5, 2)
    with pytest.raises(IndexError):
        anonymity.alpha_k_anonymity(filtered, QUASI, SENSITIVE)
    for one in (frame, exchanged, filtered):
        assert reached(one, "alpha-k(s, alpha=0.5)") == 1.0
