"""The list of methods, and of the requirements that they meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from sfumato.cli.output import People
from sfumato.errors import UsageError
from sfumato.methods import AUTO, Method, methods
from sfumato.requirements import KAnonymity, Requirement, Requirements, kinds

JOINED = "by joining"
REFUSED = "refused"
ITSELF = "itself"


def listed_methods() -> list[dict[str, Any]]:
    """What ``sfumato methods --json`` prints of each method."""
    return [
        {
            "name": name,
            "default": name == AUTO,
            "summary": method.summary,
            "use": method.use,
            "requirements": _support(method),
            "paper": method.paper,
        }
        for name, method in methods().items()
    ]


def listed_kinds() -> list[dict[str, Any]]:
    """What ``sfumato methods --json`` prints of each kind of requirement."""
    found = []
    for name, kind in kinds().items():
        written = ", ".join(f"{key}={value}" for key, value in kind.example.items())
        found.append(
            {
                "name": name,
                "parameters": list(kind.parameters),
                "example": f"{name}(COLUMN, {written})",
                "meaning": (kind.__doc__ or "")
                .strip()
                .splitlines()[0]
                .replace("``attribute``", "the column")
                .replace("``", ""),
            }
        )
    return found


def _support(method: Method) -> dict[str, str]:
    """How a method comes to meet each kind: itself, by joining its classes, or not at all."""
    asked: dict[str, Requirement] = {"k": KAnonymity(2)}
    asked |= {name: kind("column", **kind.example) for name, kind in kinds().items()}  # type: ignore[call-arg]
    return {name: _way(method, Requirements((part,))) for name, part in asked.items()}


def _way(method: Method, requirements: Requirements) -> str:
    try:
        method.check(requirements)
    except UsageError:
        return REFUSED
    return ITSELF if method.meets(requirements) else JOINED


def show_methods(console: People, found: Sequence[Mapping[str, Any]], known: Sequence[Mapping[str, Any]]) -> None:
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    longest = max(len(method["name"]) for method in found)  # a name that is cut cannot be asked for
    for heading in ("method", "what it does", "when to use it", "meets", "paper"):
        table.add_column(heading, min_width=longest if heading == "method" else None)
    for method in found:
        name = f"{method['name']} (default)" if method["default"] else str(method["name"])
        cells = (method["summary"], method["use"], _in_words(method["requirements"]), method["paper"])
        table.add_row(Text(name, "bold"), *(Text(cell) for cell in cells))
    console.print(table)
    console.print("\nrequirements on sensitive columns, with --require or in a policy")
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    for heading in ("written as", "what every class has"):
        table.add_column(heading)
    for kind in known:
        table.add_row(Text(kind["example"], "bold"), Text(kind["meaning"]))
    console.print(table)
    console.print(
        "a requirement that a method does not meet itself is met by joining neighbouring classes, at more loss; "
        "for frequency l (-l) use hilbert: a partition into runs alone is poor at it"
    )
    console.print("next    sfumato anonymize INPUT -o OUTPUT --method NAME")


def _in_words(support: Mapping[str, str]) -> str:
    ways: dict[str, list[str]] = {}
    for name, way in support.items():
        ways.setdefault(way, []).append(name)
    if set(ways) == {ITSELF}:
        return "all requirements"
    parts = []
    if ITSELF in ways:
        parts.append(", ".join(ways[ITSELF]))
    if JOINED in ways:
        parts.append("others by joining classes")
    if REFUSED in ways:
        parts.append("no others" if JOINED not in ways else f"refuses {', '.join(ways[REFUSED])}")
    return "; ".join(parts)
