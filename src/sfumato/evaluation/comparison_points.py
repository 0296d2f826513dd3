"""Methods side by side: which points there are, and what came of each.

A point is a method under one k and one l. What goes wrong with one is told in its row and loses no other.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import TracebackType
from typing import Any, Protocol, Self

from sfumato.errors import SfumatoError, UsageError
from sfumato.evaluation.audit.audit import AuditReport
from sfumato.evaluation.measurement import Losses
from sfumato.methods import Kinds, Method, check_method, method_named, methods
from sfumato.methods.clustering.nearest_neighbour_groups import PerimeterBounds
from sfumato.policy import Policy, merge_flags
from sfumato.requirements import Requirements

ALL = "all"
UNEXPECTED = SfumatoError.exit_code


@dataclass(frozen=True)
class Point:
    """One of the policies to compare. ``l`` is what it was given beside the policy, for all others none."""

    policy: Policy
    l: int | None = None

    @property
    def method(self) -> str:
        return self.policy.method.name

    @property
    def k(self) -> int:
        return self.policy.k


@dataclass(frozen=True, kw_only=True)
class Row:
    """What came of a point: its figures, or the error and its exit code."""

    method: str
    k: int
    l: int | None
    records: int
    gcp: float | None = None
    c_dm: int | None = None
    c_avg: float | None = None
    max_size: float | None = None
    max_size_bound: float | None = None
    """What MAXSIZE is at least for any classes of this size, where nng is compared."""
    max_size_ratio: float | None = None
    smallest_box_least: float | None = None
    """The perimeter of the smallest box of so many records is between these two."""
    smallest_box_most: float | None = None
    classes: int | None = None
    smallest_class: int | None = None
    suppressed: int | None = None
    partition_seconds: float | None = None
    total_seconds: float | None = None
    """Of everything but reading the table, which is done once for all points."""
    hides_identity: bool | None = None
    audit: tuple[Mapping[str, object], ...] = ()
    remarks: tuple[str, ...] = ()
    error: str | None = None
    code: int = 0

    @classmethod
    def measured(cls, point: Point, report: AuditReport, losses: Losses, seconds: Mapping[str, float]) -> Row:
        """The row of a release that passed its audit. ``seconds``: of the partition, and in total."""
        values: Mapping[str, Any] = losses.values
        return cls(
            method=point.method,
            k=point.k,
            l=point.l,
            records=report.records + losses.suppressed,
            gcp=values["gcp"],
            c_dm=values["c_dm"],
            c_avg=values.get("c_avg"),
            max_size=values.get("max_size"),
            classes=report.classes,
            smallest_class=report.smallest_class,
            suppressed=losses.suppressed,
            partition_seconds=seconds["partition"],
            total_seconds=seconds["total"],
            hides_identity=not method_named(point.method).separates,
            audit=tuple(report.as_dict()),
            remarks=report.remarks,
        )

    def bounded(self, bounds: PerimeterBounds | None) -> Self:
        """The same beside what no classes have a smaller MAXSIZE than. There is no ratio to nothing."""
        if bounds is None or self.max_size is None:
            return self
        return replace(
            self,
            max_size_bound=bounds.reach,
            max_size_ratio=self.max_size / bounds.reach if bounds.reach > 0 else None,
            smallest_box_least=bounds.smallest_box[0],
            smallest_box_most=bounds.smallest_box[1],
        )

    @property
    def holds(self) -> str:
        """What the audit found to hold, in words."""
        return "; ".join(str(verdict["requirement"]) for verdict in self.audit if verdict["holds"])

    @property
    def label(self) -> str:
        """What is asked for."""
        return f"k = {self.k:,}" if self.l is None else f"k = {self.k:,}, l = {self.l:,}"

    def as_dict(self) -> dict[str, Any]:
        """As Python users and JSON have it."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**content, "audit": [dict(verdict) for verdict in self.audit], "remarks": list(self.remarks)}


class Attempt:
    """Keeps what goes wrong inside as one line and an exit code. Interruptions go on outward.

    The text of an error that is not Sfumato's own may hold cells, so only its type is told.
    """

    def __init__(self) -> None:
        self.error: str | None = None
        self.code = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        if isinstance(error, SfumatoError):
            text, self.code = str(error), error.exit_code
        elif isinstance(error, MemoryError):
            text, self.code = "not enough memory. Leave this method out, or use a machine with more memory.", UNEXPECTED
        else:
            text, self.code = (
                f"unexpected {type(error).__name__}. This is a fault in Sfumato: run anonymize with this method to see "
                "where, and please report it.",
                UNEXPECTED,
            )
        self.error = " ".join(text.split())
        return True

    def row(self, point: Point, records: int) -> Row:
        """The row of a point that failed."""
        return Row(method=point.method, k=point.k, l=point.l, records=records, error=self.error, code=self.code)


def points_of(
    policy: Policy,
    methods: str | Sequence[str] = ALL,
    k: int | Iterable[int] | None = None,
    l: int | Iterable[int] | None = None,
) -> list[Point]:
    """Every method under every k and l, those of one k together. A k or l that is not given is the policy's.

    ``methods`` are names, also as one text with commas; ``all`` means every method that accepts what is asked for.
    """
    chosen = _chosen(methods)
    points = []
    for one_k in _numbers("k", k):
        for one_l in _numbers("l", l):
            asked = merge_flags(policy, k=one_k, l=one_l)
            requirements = asked.requirements()
            kinds = Kinds.of(asked.workload)
            names = accepting(requirements, kinds) if chosen is None else chosen
            points += [Point(merge_flags(asked, method=name), one_l) for name in names]
    if not points:
        raise UsageError("no method accepts these requirements together. Ask for fewer of them.")
    return points


class Coded(Protocol):
    """What may have gone wrong."""

    @property
    def code(self) -> int: ...


def exit_code(rows: Sequence[Coded]) -> int:
    """That of a fault in Sfumato if there was one, 0 if there is any result, else that of the first error."""
    codes = [row.code for row in rows]
    if UNEXPECTED in codes:
        return UNEXPECTED
    return 0 if 0 in codes else codes[0]


def least_losses(rows: Sequence[Row]) -> list[Row]:
    """The rows with the least loss under their k and l, where several methods that hide identity have a result."""
    found = []
    by_label: dict[str, list[Row]] = {}
    for row in rows:
        if row.gcp is not None and row.hides_identity:
            by_label.setdefault(row.label, []).append(row)
    for same in by_label.values():
        least = min(row.gcp for row in same if row.gcp is not None)
        found += [row for row in same if row.gcp == least] if len(same) > 1 else []
    return found


def table_text(rows: Sequence[Row]) -> str:
    """The rows as CSV."""
    names = [field.name for field in fields(Row) if field.name not in ("audit", "remarks", "code")]
    names.insert(names.index("error"), "holds")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([getattr(row, name) for name in names] for row in rows)
    return text.getvalue()


def _chosen(names: str | Sequence[str]) -> list[str] | None:
    """The methods that are asked for, each once; none stands for all."""
    given = names.split(",") if isinstance(names, str) else list(names)
    wanted = [name.strip() for name in given]
    if ALL in wanted:
        if len(wanted) > 1:
            raise UsageError("the methods are 'all' and others beside. Name the others, or all alone.")
        return None
    if not wanted or "" in wanted:
        raise UsageError("the list of methods has an empty name. Separate names by single commas, or say 'all'.")
    return list(dict.fromkeys(method_named(name).name for name in wanted))


def accepting(requirements: Requirements, kinds: Kinds) -> list[str]:
    """The methods that can meet the requirements and serve such a workload."""
    return [name for name, method in methods().items() if _accepts(method, requirements, kinds)]


def _accepts(method: Method, requirements: Requirements, kinds: Kinds) -> bool:
    try:
        check_method(method, requirements, kinds)
    except UsageError:
        return False
    return True


def _numbers(name: str, values: int | Iterable[int] | None) -> list[int | None]:
    if values is None:
        return [None]
    if not isinstance(values, Iterable):
        return [values]
    found: list[int | None] = list(dict.fromkeys(values))
    if not found:
        raise UsageError(f"the list of values for {name} is empty. Give at least one.")
    return found
