"""Classes are dissolved and gathered only if that costs no more than allowed; what is refused leaves no trace."""

from __future__ import annotations

import numpy as np
import pytest
from coded import asking, records_of
from searched_classes import KINDS, feasible, first_classes

from sfumato.kernels.decorator import kernel
from sfumato.losses.exact_costs import attribute_cost
from sfumato.methods.class_counting import Counting
from sfumato.methods.search.improvement import Improvement
from sfumato.methods.search.mutable_classes import COST, FIRST, OWNER, SIZE, SearchPart, build_classes
from sfumato.methods.search.whole_classes import LOOKED_AT, dissolve, gather
from sfumato.requirements import Requirements
from sfumato.tables.coding.domains import NumericDomain


@kernel
def change_classes(part, owner, most, rules, tests, row, allowed, is_gathered):
    """Gather a class around a row, or dissolve its class; return the gain, the facts and boxes, and new ones."""
    (codes, values), (layout, units, least), (lack, space, real) = part, rules, tests
    rows, facts, box = build_classes(codes, owner, most, layout, units)
    if is_gathered:
        distances = np.empty(LOOKED_AT * least, np.int64)
        gain = gather(codes, values, rows, facts, box, row, layout, units, least, lack, space, real, allowed, distances)
    else:
        own = rows[row, OWNER]
        gain = dissolve(codes, values, rows, facts, box, own, layout, units, least, lack, space, real, allowed)
    owner[:] = rows[:, OWNER]
    return gain, facts, box[:most], build_classes(codes, owner, most, layout, units)


def changed(improvement: Improvement, owner: np.ndarray, row: int, allowed: int, *, is_gathered: bool) -> int:
    """Change the classes of all rows, and see that sizes, costs and boxes are those of the rows in the classes."""
    part, tests = improvement._part(0, len(owner))
    most = max(len(owner) // improvement._rules.least, int(owner.max()) + 1)
    gain, facts, box, (_, new_facts, new_box) = change_classes(
        part, owner, most, improvement._rules, tests, row, allowed, is_gathered
    )
    used = new_facts[:, SIZE] > 0
    assert np.array_equal(facts[:, SIZE], new_facts[:, SIZE])
    assert np.array_equal(facts[used, COST], new_facts[used, COST])
    assert np.array_equal(box[used], new_box[:most][used])
    assert (facts[used, FIRST] >= 0).all()
    return int(gain)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("is_gathered", [True, False], ids=["gather", "dissolve"])
def test_a_change_is_made_whole_or_not_at_all(kind: str, k: int, is_gathered: bool) -> None:
    generator, tables, kept, refused = np.random.default_rng(k), feasible(kind, k, 3), 0, 0
    for _ in range(12):
        records, requirements = next(tables)
        improvement = Improvement(first_classes(records, requirements), records, requirements)
        part, _ = improvement._part(0, records.count)
        owner = np.repeat(np.arange(len(improvement._starts) - 1), np.diff(improvement._starts))
        for _ in range(20):
            before, cost = owner.copy(), _cost(improvement, part, owner)
            row, allowed = int(generator.integers(records.count)), int(generator.choice([0, cost // 10, 4 * cost]))
            gain = changed(improvement, owner, row, allowed, is_gathered=is_gathered)
            assert _cost(improvement, part, owner) == cost - gain
            assert gain >= -allowed
            assert _all_hold(improvement, requirements, owner)
            if np.array_equal(before, owner):
                refused += 1
                assert gain == 0
                continue
            kept += 1
            number = len(np.unique(owner)) - len(np.unique(before))
            assert number == (1 if is_gathered else -1)
            assert owner[row] != before[row]
    assert refused > 0
    assert kept > 0 or (kind, k) == ("k", 1)  # where every record is a class of its own


def test_a_class_is_gathered_where_no_move_and_no_exchange_gains() -> None:
    """Each of three classes has a row too many, which fits none of the others, but these three are equal."""
    domain = NumericDomain("a", np.array([1, 2]), has_null=False)
    records = records_of(np.array([[0]] * 6 + [[1]] * 3, np.uint8), [domain])
    improvement = Improvement(first_classes(records, asking(2)), records, asking(2))
    improvement._rows, improvement._record_of = np.arange(9, dtype=np.uint32), np.repeat([0, 1], [6, 3])
    owner = np.array([0, 0, 1, 1, 2, 2, 0, 1, 2])
    assert changed(improvement, owner, 6, 0, is_gathered=False) == 0
    assert changed(improvement, owner, 6, 0, is_gathered=True) == 6 * records.costs.full
    assert owner.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 2]


def _cost(improvement: Improvement, part: SearchPart, owner: np.ndarray) -> int:
    """What the classes cost, computed from scratch."""
    total, (layout, units, _) = 0, improvement._rules
    for class_id in np.unique(owner):
        codes = part.codes[owner == class_id]
        ends = zip(codes.min(axis=0), codes.max(axis=0), strict=True)
        total += len(codes) * sum(
            int(attribute_cost(layout, units, q, low, high)) for q, (low, high) in enumerate(ends)
        )
    return total


def _all_hold(improvement: Improvement, requirements: Requirements, owner: np.ndarray) -> bool:
    order = np.argsort(owner, kind="stable")
    starts = np.append(np.flatnonzero(np.diff(owner[order], prepend=-1)), len(owner))
    counts = Counting(improvement._records, requirements).runs(improvement._rows[order], starts)
    return bool(requirements.holds(counts).all())
