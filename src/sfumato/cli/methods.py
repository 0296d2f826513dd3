"""``sfumato methods``: the methods, and the requirements that they meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from sfumato._version import __version__
from sfumato.cli.flags import Json
from sfumato.cli.output import TextConsole, plain_table, print_json
from sfumato.errors import UsageError

if TYPE_CHECKING:
    from sfumato.methods import Method
    from sfumato.requirements import Requirement, Requirements

JOINED = "by joining"
REFUSED = "refused"
ITSELF = "itself"


def methods(json: Json = False) -> None:
    """List the methods with their papers, and say when to use which.

    Example: sfumato methods
    """
    listed, kinds = listed_methods(), listed_kinds()
    if json:
        print_json({"methods": listed, "requirements": kinds, "version": __version__})
    else:
        _show(TextConsole(), listed, kinds)


def listed_methods() -> list[dict[str, Any]]:
    """Describe each method as ``sfumato methods --json`` prints it."""
    from sfumato.methods import AUTO, methods

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
    """Describe each kind of requirement as ``sfumato methods --json`` prints it."""
    from sfumato.requirements import kinds

    listed = []
    for name, kind in kinds().items():
        parameters = ", ".join(f"{key}={value}" for key, value in kind.example.items())
        summary = (kind.__doc__ or "").strip().splitlines()[0]
        listed.append(
            {
                "name": name,
                "parameters": list(kind.parameters),
                "example": f"{name}(COLUMN, {parameters})",
                "meaning": summary.replace("``attribute``", "the column").replace("``", ""),
            }
        )
    return listed


def _support(method: Method) -> dict[str, str]:
    """Say for each kind of requirement whether the method meets it itself, by joining its classes, or not at all."""
    from sfumato.requirements import KAnonymity, Requirements, kinds

    examples: dict[str, Requirement] = {"k": KAnonymity(2)}
    examples |= {name: kind("column", **kind.example) for name, kind in kinds().items()}  # type: ignore[call-arg]
    return {name: _way(method, Requirements((requirement,))) for name, requirement in examples.items()}


def _way(method: Method, requirements: Requirements) -> str:
    try:
        method.check(requirements)
    except UsageError:
        return REFUSED
    return ITSELF if method.meets(requirements) else JOINED


def _show(console: TextConsole, listed: Sequence[Mapping[str, Any]], kinds: Sequence[Mapping[str, Any]]) -> None:
    table = plain_table()
    longest = max(len(method["name"]) for method in listed)  # a truncated name is of no use
    for heading in ("method", "what it does", "when to use it", "meets", "paper"):
        table.add_column(heading, min_width=longest if heading == "method" else None)
    for method in listed:
        name = f"{method['name']} (default)" if method["default"] else str(method["name"])
        cells = (method["summary"], method["use"], _in_words(method["requirements"]), method["paper"])
        table.add_row(Text(name, "bold"), *(Text(cell) for cell in cells))
    console.print(table)
    console.print("\nrequirements on sensitive columns, with --require or in a policy")
    table = plain_table("written as", "meaning")
    for kind in kinds:
        table.add_row(Text(kind["example"], "bold"), Text(kind["meaning"]))
    console.print(table)
    console.print(
        "A method that does not meet a requirement itself joins neighbouring classes until they do, which costs more. "
        "For frequency l (-l) use hilbert: methods that only cut a line into runs lose more."
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
