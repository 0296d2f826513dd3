"""Every figure of a certificate, computed from the released files and the policy alone, slowly and obviously.

Nothing of the product is imported, and nothing of the original is known but how many of its records were left out.
"""

from __future__ import annotations

import csv
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests import oracle
from tests.oracle import Asked, Counting, Counts, Row

SUFFIXES = {
    "labels": (),
    "bounds": ("_min", "_max"),
    "mean": ("_mean",),
    "median": ("_median",),
    "statistics": ("_min", "_max", "_mean"),
}
FEW_NUMBERS = 20  # a target with more different numbers is predicted as a number


def certificate_of(
    files: Sequence[Path], policy: Mapping[str, Any], left_out: int, *, engine: str = "memory"
) -> dict[str, Any]:
    """The certificate of the released files, whose first row holds the names. Taxonomy files lie beside them."""
    first, *others = map(rows_of, files)
    columns, privacy, release = policy["columns"], policy.get("privacy", {}), policy.get("release", {})
    quasi = [name for name, column in columns.items() if column["role"] == "quasi-identifier"]
    forms = {name: columns[name].get("form", release.get("form", "labels")) for name in quasi}
    method = policy.get("method", {}).get("name", "auto")
    separated = method == "anatomy"
    least = 5 if {"statistics", "mean", "median"} & set(forms.values()) else 1
    k = max(privacy.get("k", 1), least)
    key = [name + suffix for name in quasi for suffix in ("", *SUFFIXES[forms[name]]) if name + suffix in first[0]]
    classes = oracle.classes(first, ["group"] if separated else key)
    sizes = [len(rows) for rows in classes.values()]
    records = len(first) + left_out
    blur = {
        name: blur_of([row[name] for row in first], columns[name], files[0].parent, left_out)
        for name in quasi
        if not is_prefix(columns[name])
    }
    weights = {name: Fraction(str(columns[name].get("weight", 1))) for name in quasi}
    content: dict[str, Any] = {
        "format": 2,
        "records": records,
        "released": len(first),
        "classes": len(sizes),
        "smallest_class": min(sizes),
        "suppressed": left_out,
        "suppression_cost": release.get("suppression_cost", 1.0),
        "blur_by_column": {name: float(each) for name, each in blur.items()},
        "c_dm": sum(size * size for size in sizes) + records * left_out,
        "c_avg": len(first) / len(sizes) / k,
        "c_mdm": sum((size - k) ** 2 for size in sizes),
        "audit": audit_of(first, others, key, k, policy, files[0].parent),
        "method": method,
        "engine": engine,
        "seed": release.get("seed", None if separated else 0),
        "version": version("sfumato"),
        "libraries": {name: version(name) for name in ("numba", "numpy", "pyarrow")},
        "policy": policy,
        "files": [
            {
                "name": file.name,
                "bytes": file.stat().st_size,
                "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
                "text": {"separator": ",", "encoding": "utf-8", "decimal": "."},
            }
            for file in files
        ],
    }
    if len(blur) == len(quasi):
        mean = sum(weights[name] * blur[name] for name in quasi) / sum(weights.values())
        content["blur"] = float(mean)
        if left_out:
            cost = Fraction(release.get("suppression_cost", 1.0))
            content["blur_cost"] = float((mean * records - left_out + cost * left_out) / records)
    summarised = [name for name in quasi if {f"{name}_mean", f"{name}_median"} & set(first[0])]
    if summarised:
        content["statistics"] = {name: grid_of(first, name, columns[name]) for name in summarised}
    tasks = tasks_of(first, key, policy, left_out)
    return content | ({"workload": tasks} if tasks else {})


def rows_of(file: Path) -> list[Row]:
    """The rows of a CSV file; an empty cell is null."""
    with file.open(encoding="utf-8", newline="") as opened:
        return [{name: cell or None for name, cell in row.items()} for row in csv.DictReader(opened)]


def is_prefix(column: Mapping[str, Any]) -> bool:
    return isinstance(column.get("taxonomy"), Mapping) and "prefix" in column["taxonomy"]


def taxonomy_rows(file: Path) -> list[list[str]]:
    """One row for each leaf, the leaf first, ever more general, the root last."""
    return [line.split(",") for line in file.read_text("utf-8").split()]


def blur_of(labels: Sequence[str | None], column: Mapping[str, Any], folder: Path, left_out: int) -> Fraction:
    """The share of what the column shows that a record leaves open, on average."""
    plain = [label for label in labels if label is not None and label != oracle.WHOLE]
    hidden = labels.count(oracle.WHOLE) + left_out
    taxonomy = column.get("taxonomy")
    opened = Fraction(0)
    if isinstance(taxonomy, str) and taxonomy != "flat":
        tree = oracle.CategoryColumn([row[:-1] for row in taxonomy_rows(folder / taxonomy)])
        opened = sum((tree.penalty(label) for label in plain), Fraction(0))
    elif any(label.startswith("[") for label in plain) or (isinstance(taxonomy, dict) and "calendar" in taxonomy):
        ends = [oracle.bounds(label, dates=isinstance(taxonomy, dict) and "calendar" in taxonomy) for label in plain]
        extent = max(high for _, high in ends) - min(low for low, _ in ends)
        opened = sum(((high - low) / extent for low, high in ends), Fraction(0))
    return (opened + hidden) / (len(labels) + left_out)


# ---- what holds ----


def audit_of(
    first: Sequence[Row],
    others: Sequence[Sequence[Row]],
    key: Sequence[str],
    k: int,
    policy: Mapping[str, Any],
    folder: Path,
) -> list[dict[str, Any]]:
    """A line for each requirement: its kind, whether it holds, and the value it reaches, unless persons are counted."""
    privacy = policy["privacy"]
    settings = [dict(each) for each in privacy.get("sensitive", ())]
    rows, parts_by = list(first), list(key)
    lines = []
    if others:  # each value of a group stands in the second table, with its count
        (second,) = others
        name = settings[0]["attribute"]
        rows = [{"group": row["group"], name: row[name]} for row in second for _ in range(int(row["count"]))]
        parts_by = ["group"]
        assert Counter(row["group"] for row in rows) == Counter(row["group"] for row in first)
    else:
        smallest = oracle.smallest_class(first, key)
        lines.append({"requirement": "k-anonymity", "holds": smallest >= k, "value": smallest})
    null_is_value = privacy.get("null_sensitive") == "value"
    sensitive = [name for name, column in policy["columns"].items() if column["role"] == "sensitive"]
    counting = Counting(joint=sensitive if privacy.get("joint") else (), null_is_value=null_is_value)
    for each in settings:
        kind, attribute = each.pop("kind"), each.pop("attribute")
        parameters = {name: Fraction(str(value)) if isinstance(value, float) else value for name, value in each.items()}
        tree = policy["columns"][attribute].get("taxonomy")
        asked = Asked(kind, attribute, parameters, taxonomy_rows(folder / tree) if tree else ())
        some = [numbers(counting.counts(part, attribute)) for part in counting.parts(rows, parts_by, attribute)]
        everything = numbers(counting.counts(rows, attribute))
        holds = all(asked.holds(part, everything) for part in some)
        lines.append({"requirement": kind, "holds": holds, "value": reached(asked, some, everything)})
    if others:
        for text in ("the two tables", "the first table", "the second table"):
            lines.append({"requirement": text, "holds": True, "value": 0})
    if privacy.get("person") is not None:
        lines = [{"requirement": line["requirement"], "holds": True} for line in lines]
    return lines


def numbers(counts: Counts) -> Counts:
    """The same counts, with values as numbers if all of them are: a CSV file holds text."""
    try:
        return Counts({Fraction(value): count for value, count in counts.of.items()}, counts.known)
    except (TypeError, ValueError):
        return counts


def reached(asked: Asked, some: Sequence[Counts], everything: Counts) -> float | None:
    """The value that the worst class reaches; None if it has no bound."""
    by_kind: dict[str, Callable[[Counts], float]] = {
        "frequency": lambda part: part.known / part.largest,
        "distinct": lambda part: len(part.of),
        "entropy": lambda part: math.exp(-sum(float(p) * math.log(p) for p in part.shares.values())),
        "recursive": lambda part: _ratio(part, asked.parameters["l"]),
        "variance": lambda part: float(Asked.variance(part)),
        "t-closeness": lambda part: float(asked.distance(part, everything, asked.parameters.get("distance", "equal"))),
        "alpha-k": lambda part: part.largest / part.known,
        "beta-likeness": lambda part: max(float(p / everything.shares[v]) - 1 for v, p in part.shares.items()),
        "delta-disclosure": lambda part: (
            max(abs(math.log(p / everything.shares[v])) for v, p in part.shares.items())
            if set(part.of) == set(everything.of)
            else math.inf
        ),
    }
    values = [by_kind[asked.kind](part) for part in some if part.of]
    worst = min(values) if asked.kind in ("frequency", "distinct", "entropy", "variance") else max(values)
    return worst if math.isfinite(worst) else None


def _ratio(part: Counts, l: int) -> float:
    rest = sum(sorted(part.of.values(), reverse=True)[l - 1 :])
    return part.largest / rest if rest else math.inf


# ---- statistics and workload ----


def grid_of(rows: Sequence[Row], name: str, column: Mapping[str, Any]) -> dict[str, Any]:
    """What means and medians are rounded to: as the policy says, or a power of ten by the range that is shown."""
    if f"{name}_min" in rows[0]:
        shown = {row[f"{name}_{end}"] for row in rows for end in ("min", "max")} - {None}
    else:
        shown = {row[name] for row in rows} - {None, "*"}
    bounds = [end for text in shown for end in oracle.bounds(str(text))]
    number = next(
        str(row[f"{name}_{kind}"]) for kind in ("mean", "median") for row in rows if row.get(f"{name}_{kind}")
    )
    dated = "-" in number[1:]
    grid = column.get("statistic_round", column.get("round"))
    if grid is None and f"{name}_median" in rows[0] and isinstance(column.get("taxonomy"), Mapping):
        (rule, (narrowest, *_)) = next(iter(column["taxonomy"].items()))
        grid = narrowest if rule == "intervals" else {"week": 7, "month": 28, "quarter": 90, "year": 365}[narrowest]
    if grid is None:
        extent = max(bounds) - min(bounds)
        power = Fraction(10**12)
        while power > extent / 100 and not (dated and power == 1):
            power /= 10
        grid = int(power) if power.denominator == 1 else float(power)
    return {"grid": grid, **({"unit": "days"} if dated else {})}


def tasks_of(rows: Sequence[Row], key: Sequence[str], policy: Mapping[str, Any], left_out: int) -> list[dict[str, Any]]:
    """How well the classes predict the targets of the workload."""
    workload = policy.get("workload", {})
    tasks = [("classification", each["target"], {}) for each in workload.get("classification", ())]
    tasks += [("regression", each["target"], {}) for each in workload.get("regression", ())]
    for target in workload.get("targets", ()):
        values = {row[target] for row in rows if row[target] is not None}
        many = len(values) > FEW_NUMBERS and all(map(_is_number, values))
        tasks.append(("regression" if many else "classification", target, {"inferred": True}))
    return [
        {"task": kind, "target": target, **more, **_predicted(kind, target, rows, key, left_out)}
        for kind, target, more in sorted(tasks, key=lambda task: task[0])
    ]


def _predicted(kind: str, target: str, rows: Sequence[Row], key: Sequence[str], left_out: int) -> dict[str, float]:
    classes = list(oracle.classes(rows, key).values())
    if kind == "classification":
        majority = sum(max(Counter(row[target] for row in part).values()) for part in classes)
        records = len(rows) + left_out
        known = [[row[target] for row in part if row[target] is not None] for part in classes]
        return {
            "entropy": sum(map(_bits, known)) / sum(map(len, known)),
            "entropy_of_table": _bits([value for part in known for value in part]) / sum(map(len, known)),
            "cm": (records - majority) / records,
        }
    parts = [[Fraction(row[target]) for row in part if row[target] is not None] for part in classes]
    everything = [value for part in parts for value in part]
    return {
        "wmse": float(sum(map(_squares, parts)) / len(everything)),
        "variance_of_table": float(_squares(everything) / len(everything)),
    }


def _bits(values: Sequence[Any]) -> float:
    return -sum(count * math.log2(count / len(values)) for count in Counter(values).values())


def _squares(values: Sequence[Fraction]) -> Fraction:
    mean = sum(values, Fraction(0)) / max(len(values), 1)
    return sum(((value - mean) ** 2 for value in values), Fraction(0))


def _is_number(text: Any) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
