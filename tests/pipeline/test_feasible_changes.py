"""The cheapest changes with which a table can meet a policy: each is tried, and compared with all others."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato
from sfumato.cli import main
from sfumato.errors import InfeasibleError
from sfumato.pipeline.feasible_changes import FeasibleChange, changed, feasible_changes, weaker_values
from sfumato.pipeline.prepare import prepare_as_far_as_feasible
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.requirements import kinds

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.SfumatoWarning")

ZIPS = ["1011", "1012", "1023", "2041", "2052", "3071"]
LEVELS = 3 + 1  # of zip: prefixes of 3, 2 and 1 characters, and *
AGE_LEVELS = 1  # a number is shown as it is or as a range; above it there is only *


def people(seed: int, count: int = 40) -> pa.Table:
    drawn = np.random.default_rng(seed)
    return pa.table(
        {
            "age": drawn.integers(20, 70, count),
            "zip": drawn.choice(ZIPS, count, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05]),
            "ill": drawn.choice(["flu", "cold", "gout", "none"], count, p=[0.45, 0.25, 0.2, 0.1]),
        }
    )


def asked(**settings: Any) -> Policy:
    return merge_flags(
        None,
        **{
            "quasi_identifiers": ["age", "zip"],
            "sensitive": "ill",
            "taxonomy": {"zip": {"prefix": [1, 2, 3]}},
            "method": "mondrian",
            **settings,
        },
    )


def suggested(table: pa.Table, policy: Policy) -> list[FeasibleChange]:
    examined, error = prepare_as_far_as_feasible(table, policy, Progress())
    assert error is not None
    return feasible_changes(examined)


# ---- the oracle: groups, counts and every combination ----

Asked = tuple[int, int, int]  # k, l, and the coarsest level of zip


def parts_of(table: pa.Table, level: int) -> list[Counter[str]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in table.to_pylist():
        found[row["zip"][: LEVELS - level]][row["ill"]] += 1
    return list(found.values())


def is_met(table: pa.Table, k: int, l: int, level: int) -> bool:
    return all(part.total() >= k and max(part.values()) * l <= part.total() for part in parts_of(table, level))


def every_change(table: pa.Table, asked_for: Asked) -> Iterator[tuple[frozenset[str], float]]:
    """Yield which settings differ and what that costs, for every weaker policy that the table meets.

    Policies that the table also meets without one of their changes are left out.
    """
    k, l, level = asked_for
    for weaker in itertools.product(range(2, k + 1), range(2, l + 1), range(level, LEVELS + 1)):
        differing = [index for index in range(3) if weaker[index] != asked_for[index]]
        fewer = [(*weaker[:index], asked_for[index], *weaker[index + 1 :]) for index in differing]
        if is_met(table, *weaker) and not any(is_met(table, *settings) for settings in fewer):
            left = (weaker[0] - 1) / (k - 1) * (weaker[1] - 1) / (l - 1)
            cost = 1 - left * (1 - (weaker[2] - level) / (LEVELS + AGE_LEVELS))
            yield frozenset(NAMES[index] for index in differing), cost


NAMES = ("k", "l", "coarsest")


def names_of(change: FeasibleChange) -> frozenset[str]:
    return frozenset(str(setting.path[-1]) for setting in change.settings)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("k", "l", "level"), [(12, 2, 3), (6, 3, 3), (9, 4, 2), (60, 2, 4), (5, 3, 2)])
def test_the_cheapest_of_all_weaker_policies_are_suggested(seed: int, k: int, l: int, level: int) -> None:
    table = people(seed)
    assert not is_met(table, k, l, level)
    cheapest: dict[frozenset[str], float] = {}
    for names, cost in every_change(table, (k, l, level)):
        cheapest[names] = min(cost, cheapest.get(names, math.inf))
    found = suggested(table, asked(k=k, l=l, **({"coarsest": {"zip": level}} if level < LEVELS else {})))
    assert [change.cost for change in found] == sorted(change.cost for change in found)
    # Removals and records that are left out have tests of their own.
    weaker = [(names_of(change), change.cost) for change in found if names_of(change) <= set(NAMES)]
    assert all(cheapest[names] == pytest.approx(cost) for names, cost in weaker)
    assert [cost for _, cost in weaker] == pytest.approx(sorted(cheapest.values())[: len(weaker)])
    assert len(weaker) >= min(len(cheapest), 3 - (len(found) - len(weaker)))


@pytest.mark.not_quick
@pytest.mark.parametrize(("seed", "share"), [(0, 0.0), (1, 0.0), (2, 0.0), (3, 0.0), (1, 0.15), (4, 0.15)])
def test_a_table_meets_every_change_that_is_suggested(seed: int, share: float) -> None:
    table = people(seed)
    drawn = np.random.default_rng(seed)
    require = [
        "entropy(ill, l=3.7)",
        "t-closeness(ill, t=0.05)",
        "recursive(ill, c=0.4, l=3)",
        "alpha-k(ill, alpha=0.2)",
        "beta-likeness(ill, beta=0.1)",
        "delta-disclosure(ill, delta=0.1)",
        "distinct(ill, l=6)",
    ]
    chosen = [require[index] for index in drawn.choice(len(require), 2, replace=False)]
    policy = asked(k=int(drawn.integers(2, 50)), require=chosen, coarsest={"zip": 3}, max_suppressed=share)
    try:
        sfumato.anonymize(table, policy=policy)
        return
    except InfeasibleError:
        pass
    found = suggested(table, policy)
    assert 1 <= len(found) <= 3
    for change in found:
        assert change.cost > 0
        meets = Policy.from_dict(changed(policy.to_dict(), change.settings))
        assert sfumato.anonymize(table, policy=meets).audit.holds


@pytest.mark.parametrize("k", [4, 8, 15])
def test_as_many_records_are_left_out_as_have_to_be(k: int) -> None:
    table = people(3)
    sizes = [part.total() for part in parts_of(table, 3)]
    missing = sum(size for size in sizes if size < k)
    policy = asked(k=k, coarsest={"zip": 3}, sensitive=[], other="drop")
    if not missing:
        return
    (change,) = [one for one in suggested(table, policy) if "max_suppressed_fraction" in names_of(one)]
    fraction = change.settings[0].after
    assert missing <= fraction * 40 < missing + 1
    assert change.cost == fraction


def test_nothing_is_suggested_that_asks_for_nothing() -> None:
    table = pa.table({"age": [20, 30, 40], "zip": ["1011"] * 3, "ill": ["flu"] * 3})
    found = suggested(table, asked(k=2, l=2))
    assert [change.words for change in found] == ["remove requirement 1"]
    assert found[0].cost == 1
    assert changed(asked(k=2, l=2).to_dict(), found[0].settings)["privacy"] == {"k": 2, "sensitive": []}


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_weaker_values_lead_from_what_is_asked_for_to_nothing(kind: str) -> None:
    for name, parameter in kinds()[kind].parameters.items():
        if parameter.nothing is None:
            continue
        value = float(kinds()[kind].example[name])  # type: ignore[arg-type]
        values = weaker_values(parameter, int(value) if parameter.whole else value)
        nearer = [abs(number - parameter.nothing) if math.isfinite(parameter.nothing) else -number for number in values]
        assert nearer == sorted(nearer, reverse=True)
        assert all(parameter.check(number) == number for number in values)
        assert value not in values
        assert parameter.nothing not in values


def test_a_dry_run_prints_the_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyarrow.csv.write_csv(people(1), tmp_path / "people.csv")
    command = ["anonymize", str(tmp_path / "people.csv"), "--dry-run", "--quasi-identifiers", "age,zip", "--sensitive",
               "ill", "-k", "60"]  # fmt: skip
    assert main(command) == 3
    assert "k = 40 instead of 60 (gives up 33.9% of what is asked for)" in capsys.readouterr().out
    assert main([*command, "--json"]) == 3
    summary = json.loads(capsys.readouterr().out)
    assert summary["suggestions"] == [
        {
            "settings": [{"path": ["privacy", "k"], "before": 60, "after": 40}],
            "cost": round(20 / 59, 4),
            "words": "k = 40 instead of 60",
        }
    ]
