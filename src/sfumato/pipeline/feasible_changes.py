"""The cheapest changes of a policy with which a table can meet it.

A change costs the share that it gives up of what was asked for, from 0 to 1, so that changes of different kinds can be
compared:

- a weaker requirement: the part of the way from what was asked for to a requirement that asks for nothing;
- more records left out: the further share of the records;
- a coarser level that a column may be shown on: the further levels, as a share of the levels of all
  quasi-identifiers together.

Of several changes each leaves its share of what the others leave.

Three kinds of changes are tried: to leave out more records; to weaken the requirements that cannot be met, each as
little as possible; and to let one column become coarser, together with what then still has to be weaker. Numbers other
than whole ones are changed to numbers with two significant digits.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from sfumato.engines.memory.classes import method_for, most_left_out
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.errors import InfeasibleError, PolicyError
from sfumato.methods.class_counting import Counting
from sfumato.methods.lattice.lattice_method import LatticeMethod
from sfumato.methods.level_parts import divided, limited_columns
from sfumato.methods.method import Records
from sfumato.methods.suppression import enough_suppressed, surplus_rows
from sfumato.parameters import Parameter
from sfumato.pipeline.prepare import read_table
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.requirements import Requirements, kinds

MOST = 3
LEAST_K = 2  # with k = 1 nobody is hidden
DECADES = 6  # how far a number is changed at most
DIGITS = 100  # two of them

SettingPath = tuple[str | int, ...]


@dataclass(frozen=True)
class SettingChange:
    """One setting of a policy, by the keys that lead to it, and its value before and after. None: it is not there."""

    path: SettingPath
    before: Any
    after: Any

    def as_dict(self) -> dict[str, Any]:
        return {"path": list(self.path), "before": self.before, "after": self.after}

    @property
    def words(self) -> str:
        name = self.path[-1]
        if self.path[:2] == ("privacy", "sensitive"):
            place = f"requirement {int(self.path[2]) + 1}"
            if self.after is None:
                return f"remove {place}"
            return f"{name} = {self.after:g} instead of {self.before:g} in {place}"
        if self.path[0] == "columns":
            column = f"column {self.path[1]!r}"
            return f"{name} = {self.after} for {column}" if self.after is not None else f"no {name} for {column}"
        before = "" if self.before is None else f" instead of {self.before:g}"
        return f"{name} = {self.after:g}{before}"


@dataclass(frozen=True)
class FeasibleChange:
    """Changes of settings with which the policy can be met, and the share that they give up of what was asked for."""

    settings: tuple[SettingChange, ...]
    cost: float

    def as_dict(self) -> dict[str, Any]:
        """The entries that ``sfumato anonymize --dry-run --json`` prints."""
        return {
            "settings": [setting.as_dict() for setting in self.settings],
            "cost": round(self.cost, 4),
            "words": self.words,
        }

    @property
    def words(self) -> str:
        return " and ".join(setting.words for setting in self.settings)


def changed(data: Mapping[str, Any], settings: Sequence[SettingChange]) -> dict[str, Any]:
    """Return what a policy file holds, with these settings changed."""
    # What is removed from a list goes last, so that the numbers before it stay what they are.
    ordered = sorted(settings, key=lambda setting: [-part for part in setting.path if isinstance(part, int)])
    result: Any = dict(data)
    for setting in ordered:
        result = _with(result, setting.path, setting.after)
    return dict(result)


def _with(data: Any, path: SettingPath, value: Any) -> Any:
    key, *rest = path
    if isinstance(data, list):
        assert isinstance(key, int)
        inside = [] if not rest and value is None else [value if not rest else _with(data[key], tuple(rest), value)]
        return [*data[:key], *inside, *data[key + 1 :]]
    if rest:
        return {**data, key: _with(data.get(key, {}), tuple(rest), value)}
    kept = {name: item for name, item in data.items() if name != key}
    return kept if value is None else {**kept, key: value}


def feasible_changes(table: TableInMemory) -> list[FeasibleChange]:
    """Return the cheapest changes with which a table can meet its policy; of those that change the same, the cheapest.

    table: as read for a policy that it cannot meet.
    """
    cheapest: dict[tuple[SettingPath, ...], FeasibleChange] = {}
    for change in _changes(table):
        paths = tuple(setting.path for setting in change.settings)
        if paths not in cheapest or change.cost < cheapest[paths].cost:
            cheapest[paths] = change
    return sorted(cheapest.values(), key=lambda change: change.cost)[:MOST]


def _changes(table: TableInMemory) -> Iterator[FeasibleChange]:
    policy = table.job.policy
    free = _without_coarsest(table)
    limits = {q: table.domains[q].coarsest for q in limited_columns(table.domains)}
    search = _WeakerRequirements(table)
    start = _limited(free.records, limits)
    yield from _more_left_out(table, start)
    yield from search.changes(start, (), 0.0)
    levels = sum(domain.top_level for domain in free.domains)
    for q, level in limits.items():
        assert level is not None
        name, top = free.domains[q].name, free.domains[q].top_level
        before = policy.columns[name].coarsest
        for number in range(level + 1, top + 1):
            names = policy.columns[name].level_names
            after = None if number == top else names[number] if names else number
            setting = SettingChange(("columns", name, "coarsest"), before, after)
            coarser = _limited(free.records, {**limits, q: None if number == top else number})
            yield from search.changes(coarser, (setting,), (number - level) / levels)


def _without_coarsest(table: TableInMemory) -> TableInMemory:
    """Return the table as it is read without coarsest levels: a tree that is cut at one knows no coarser groups."""
    job = table.job
    if not limited_columns(table.domains):
        return table
    data = job.policy.to_dict()
    for domain in table.domains:
        data = _with(data, ("columns", domain.name, "coarsest"), None)
    return read_table(job.data, Policy.from_dict(data, job.policy.base), Progress(), job.taxonomies)


def _limited(records: Records, limits: Mapping[int, int | None]) -> Records:
    """Return the records with other coarsest levels."""
    domains = [replace(domain, coarsest=limits.get(q)) for q, domain in enumerate(records.domains)]  # type: ignore[type-var]
    return replace(records, domains=domains, lines=None)


def _more_left_out(table: TableInMemory, records: Records) -> Iterator[FeasibleChange]:
    """Yield the change that leaves out as many records as have to be."""
    policy, before = table.job.policy, table.job.policy.release.max_suppressed_fraction
    if policy.release.boxes == "regions" and not isinstance(method_for(table), LatticeMethod):
        return  # regions leave nothing out
    try:
        left_out = len(surplus_rows(records, table.job.requirements, records.count - 1))
    except InfeasibleError:
        return
    fraction = float(enough_suppressed(left_out, records.count))
    if fraction < 1:
        path = ("release", "max_suppressed_fraction")
        yield FeasibleChange((SettingChange(path, before, fraction),), fraction - before)


class _WeakerRequirements:
    """The search for requirements that are just weak enough."""

    def __init__(self, table: TableInMemory) -> None:
        self._policy = table.job.policy
        self._requirements = table.job.requirements
        self._most = most_left_out(table)

    def changes(self, records: Records, already: tuple[SettingChange, ...], cost: float) -> Iterator[FeasibleChange]:
        """Yield what has to be weaker on these records, beside what is changed already at a cost."""
        test = _Feasible(records, self._requirements, self._most)
        if test.holds(self._requirements):
            yield FeasibleChange(already, cost)
            return
        every = range(len(self._requirements.parts))
        failing = [index for index in every if not test.holds(self._requirements, index)]
        if len(failing) > 1:
            # What each leaves out may be too much together. Where nothing is left out, each can be judged by itself.
            together = self._weaker_together(test, failing, already, cost)
            if together is None:
                test = _Feasible(records, self._requirements, 0)
                failing = [index for index in every if not test.holds(self._requirements, index)]
                together = self._weaker_together(test, failing, already, cost)
            if together is not None:
                yield together
            return
        # One fails, or all hold alone but leave out too many records together, so that any of them may be the weaker.
        for index in failing or every:
            for setting, given_up in self._weaker(test, index, alone=False):
                yield FeasibleChange((*already, setting), _together(cost, given_up))

    def _weaker_together(
        self, test: _Feasible, failing: Sequence[int], already: tuple[SettingChange, ...], cost: float
    ) -> FeasibleChange | None:
        """Return one change of every requirement that fails, each the cheapest by itself, if they hold together."""
        settings = list(already)
        for index in failing:
            choices = list(self._weaker(test, index, alone=True))
            if not choices:
                return None
            setting, given_up = min(choices, key=lambda choice: choice[1])
            settings.append(setting)
            cost = _together(cost, given_up)
        together = self._changed(settings)
        held = together is not None and test.holds(together)
        return FeasibleChange(tuple(settings), cost) if held else None

    def _weaker(self, test: _Feasible, index: int, *, alone: bool) -> Iterator[tuple[SettingChange, float]]:
        """Yield the least change of each parameter of a requirement, with its cost; if none helps, its removal.

        alone: whether the others are left out of account.
        """
        found = False
        for path, asked, nothing, values in self._parameters(index):
            settings = [SettingChange(path, asked, value) for value in values]

            def is_enough(setting: SettingChange) -> bool:
                requirements = self._changed([setting])
                return requirements is not None and test.holds(requirements, index if alone else None)

            position = bisect_left(settings, True, key=is_enough)
            if position < len(settings):
                found = True
                yield settings[position], _given_up(asked, settings[position].after, nothing)
        if not found and index > 0:
            kind = self._policy.privacy.sensitive[index - 1].kind
            removal = SettingChange(("privacy", "sensitive", index - 1), kind, None)
            rest = self._changed([removal])
            if rest is not None and (alone or test.holds(rest)):
                yield removal, 1.0

    def _parameters(self, index: int) -> Iterator[tuple[SettingPath, float, float, list[float]]]:
        """Yield the parameters of a requirement that can be weaker: path, value, the value for nothing, weaker ones."""
        if index == 0:
            asked = self._policy.privacy.k
            if asked is not None:
                yield ("privacy", "k"), asked, 1, list(range(asked - 1, LEAST_K - 1, -1))
            return
        demand = self._policy.privacy.sensitive[index - 1]
        for name, parameter in kinds()[demand.kind].parameters.items():
            value = demand.parameters().get(name)
            if parameter.nothing is not None and value is not None:
                path = ("privacy", "sensitive", index - 1, name)
                yield path, value, parameter.nothing, weaker_values(parameter, value)

    def _changed(self, settings: Sequence[SettingChange]) -> Requirements | None:
        """Return the requirements of the changed policy; None if it would not be one."""
        policy = Policy.from_dict(changed(self._policy.to_dict(), settings), self._policy.base)
        try:
            return policy.requirements()
        except PolicyError:
            return None


class _Feasible:
    """Whether some records can meet requirements. They are divided and counted once."""

    def __init__(self, records: Records, requirements: Requirements, most: int) -> None:
        self._records = records
        self._most = most
        self._counts = [Counting(part, requirements).whole for part in divided(records, requirements)]

    def holds(self, requirements: Requirements, index: int | None = None) -> bool:
        """Whether the requirements can be met, or the one at an index. They count what the first ones did."""
        if index is not None:
            requirements = replace(requirements, parts=(requirements.parts[index],))
        if all(requirements.holds(counts).all() for counts in self._counts):
            return True
        if self._most == 0:
            return False
        try:
            surplus_rows(self._records, requirements, self._most)
        except InfeasibleError:
            return False
        return True


def weaker_values(parameter: Parameter, asked: float) -> list[float]:
    """Return the weaker values of a parameter in steps, the strongest first, without the one that asks for nothing."""
    assert parameter.nothing is not None
    if parameter.whole:
        step = -1 if asked > parameter.nothing else 1
        return list(range(int(asked) + step, int(parameter.nothing), step))
    upward = parameter.nothing > asked
    found: list[float] = []
    exponent = Decimal(repr(asked)).adjusted()
    exponents = range(exponent, exponent + DECADES) if upward else range(exponent, exponent - DECADES, -1)
    for power in exponents:
        numbers = [float(Decimal(digits).scaleb(power - 1)) for digits in range(DIGITS // 10, DIGITS)]
        found += numbers if upward else reversed(numbers)
    low, high = sorted((asked, parameter.nothing))
    return [number for number in found if low < number < high]


def _given_up(asked: float, value: float, nothing: float) -> float:
    """Return the part of the way from what was asked for to nothing; where that has no end, by the ratio."""
    return 1 - asked / value if math.isinf(nothing) else (asked - value) / (asked - nothing)


def _together(one: float, other: float) -> float:
    """Return what two changes cost together: each leaves its share of what the other leaves."""
    return 1 - (1 - one) * (1 - other)
