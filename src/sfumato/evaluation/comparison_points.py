"""The points of a comparison of methods, and the row of results of each.

A point is a method under one k and one l. If a point fails, its row holds the error and the other points go on.
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
from sfumato.evaluation.parameter_values import ALL
from sfumato.evaluation.release_losses import Losses
from sfumato.methods import ForNumbers, Kinds, Method, check_loss, check_method, method_named, methods
from sfumato.methods.clustering.nearest_neighbour_groups import PerimeterBounds
from sfumato.policy import Policy, merge_flags
from sfumato.requirements import Requirements

UNEXPECTED = SfumatoError.exit_code


@dataclass(frozen=True)
class Point:
    """One of the policies to compare. ``l`` is the value that overrides the policy's, or None."""

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
    """The result of a point: its figures, or the error and its exit code."""

    method: str
    k: int
    l: int | None
    records: int
    gcp: float | None = None
    c_dm: int | None = None
    c_dm_groups: int | None = None
    """C_DM over the groups that the method formed, as papers count it. Groups that show the same are one class."""
    c_avg: float | None = None
    max_size: float | None = None
    il: float | None = None
    """100 SSE / SST, where all quasi-identifiers are numbers."""
    max_size_bound: float | None = None
    """A lower bound on MAXSIZE for any classes of this size, where nng is compared."""
    max_size_ratio: float | None = None
    object_box_bound: float | None = None
    """Another bound on it: the smallest box of k records around each record, the largest of these."""
    object_box_ratio: float | None = None
    smallest_box_least: float | None = None
    """The perimeter of the smallest box of k records lies between these two."""
    smallest_box_most: float | None = None
    classes: int | None = None
    smallest_class: int | None = None
    suppressed: int | None = None
    partition_seconds: float | None = None
    total_seconds: float | None = None
    """The time for everything but reading the table, which is read once for all points."""
    hides_identity: bool | None = None
    audit: tuple[Mapping[str, object], ...] = ()
    remarks: tuple[str, ...] = ()
    error: str | None = None
    code: int = 0

    @classmethod
    def measured(
        cls,
        point: Point,
        report: AuditReport,
        losses: Losses,
        seconds: Mapping[str, float],
        c_dm_groups: int | None = None,
    ) -> Row:
        """The row of a release that passed its audit. ``seconds`` has the keys "partition" and "total"."""
        values: Mapping[str, Any] = losses.values
        return cls(
            method=point.method,
            k=point.k,
            l=point.l,
            records=report.records + losses.suppressed,
            gcp=values["gcp"],
            c_dm=values["c_dm"],
            c_dm_groups=c_dm_groups,
            c_avg=values.get("c_avg"),
            max_size=values.get("max_size"),
            il=values.get("il"),
            classes=report.classes,
            smallest_class=report.smallest_class,
            suppressed=losses.suppressed,
            partition_seconds=seconds["partition"],
            total_seconds=seconds["total"],
            hides_identity=not method_named(point.method).separates,
            audit=tuple(report.as_dict()),
            remarks=report.remarks,
        )

    def bounded(self, bounds: PerimeterBounds | None, object_box: float) -> Self:
        """This row with the lower bounds on MAXSIZE. Where a bound is 0 there is no ratio."""
        if bounds is None or self.max_size is None:
            return self
        return replace(
            self,
            max_size_bound=bounds.reach,
            max_size_ratio=self.max_size / bounds.reach if bounds.reach > 0 else None,
            object_box_bound=object_box,
            object_box_ratio=self.max_size / object_box if object_box > 0 else None,
            smallest_box_least=bounds.smallest_box[0],
            smallest_box_most=bounds.smallest_box[1],
        )

    @property
    def holds(self) -> str:
        """The requirements that hold according to the audit, in words."""
        return "; ".join(str(verdict["requirement"]) for verdict in self.audit if verdict["holds"])

    @property
    def label(self) -> str:
        """The requested k and l, in words."""
        return f"k = {self.k:,}" if self.l is None else f"k = {self.k:,}, l = {self.l:,}"

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON values."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**content, "audit": [dict(verdict) for verdict in self.audit], "remarks": list(self.remarks)}


class CapturedError:
    """A context that catches an error and keeps it as one line and an exit code. Interruptions propagate.

    The text of a foreign error may hold cell values, so only its type is kept.
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
                "where it occurs, and please report it.",
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
    """Combine every method with every k and l, points of one k together. Without k or l, the policy's is used.

    ``methods`` are names, or one text with commas; ``all`` means every method that accepts the requirements.
    """
    chosen = _chosen(methods)
    points = []
    for each_k in _numbers("k", k):
        for each_l in _numbers("l", l):
            merged = merge_flags(policy, k=each_k, l=each_l)
            requirements = merged.requirements()
            kinds = Kinds.of(merged.workload)
            names = accepting(requirements, kinds, merged.method.loss) if chosen is None else chosen
            points += [Point(merge_flags(merged, method=name), each_l) for name in names]
    if not points:
        raise UsageError("no method accepts all of these requirements together. Ask for fewer of them.")
    return points


class HasExitCode(Protocol):
    """A result that carries the exit code of its error, or 0."""

    @property
    def code(self) -> int: ...


def exit_code(rows: Sequence[HasExitCode]) -> int:
    """The exit code for all rows: a fault in Sfumato goes first, then 0 for any result, then the first error."""
    codes = [row.code for row in rows]
    if UNEXPECTED in codes:
        return UNEXPECTED
    return 0 if 0 in codes else codes[0]


def least_losses(rows: Sequence[Row]) -> list[Row]:
    """The rows with the least loss under their k and l, if several methods that hide identity have a result there."""
    best = []
    by_label: dict[str, list[Row]] = {}
    for row in rows:
        if row.gcp is not None and row.hides_identity:
            by_label.setdefault(row.label, []).append(row)
    for competitors in by_label.values():
        least = min(row.gcp for row in competitors if row.gcp is not None)
        best += [row for row in competitors if row.gcp == least] if len(competitors) > 1 else []
    return best


def table_text(rows: Sequence[Row]) -> str:
    """The rows as CSV."""
    names = [field.name for field in fields(Row) if field.name not in ("audit", "remarks", "code")]
    names.insert(names.index("error"), "holds")
    return csv_text(names, ([getattr(row, name) for name in names] for row in rows))


def csv_text(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV table with a header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue()


def _chosen(names: str | Sequence[str]) -> list[str] | None:
    """The requested methods, each once; None stands for all."""
    wanted = [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]
    if ALL in wanted:
        if len(wanted) > 1:
            raise UsageError("the list of methods has 'all' beside other names. Give 'all' alone, or only names.")
        return None
    if not wanted or "" in wanted:
        raise UsageError("the list of methods has an empty name. Separate names by single commas, or give 'all'.")
    return list(dict.fromkeys(method_named(name).name for name in wanted))


def accepting(requirements: Requirements, kinds: Kinds, loss: str = "ncp") -> list[str]:
    """The methods that can meet the requirements, serve a workload of these kinds and lower the loss.

    Those for sums of squares are among them only if that is the loss: other tables may have columns without a mean.
    """
    return [name for name, method in methods().items() if _accepts(method, requirements, kinds, loss)]


def _accepts(method: Method, requirements: Requirements, kinds: Kinds, loss: str) -> bool:
    if isinstance(method, ForNumbers) and loss != "sse":
        return False
    try:
        check_loss(method, loss)
        check_method(method, requirements, kinds)
    except UsageError:
        return False
    return True


def _numbers(name: str, values: int | Iterable[int] | None) -> list[int | None]:
    if values is None:
        return [None]
    if not isinstance(values, Iterable):
        return [values]
    distinct: list[int | None] = list(dict.fromkeys(values))
    if not distinct:
        raise UsageError(f"the list of values for {name} is empty. Give at least one.")
    return distinct
