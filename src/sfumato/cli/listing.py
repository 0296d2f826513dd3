"""The list of methods."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from sfumato.cli.output import People
from sfumato.methods import AUTO, methods

WHEN = {
    "hilbert": "the default: the least loss",
    "hilbert-fast": "when time matters more than loss, at large k above all",
}


def listed_methods() -> list[dict[str, str | bool | None]]:
    """What ``sfumato methods --json`` prints of each method."""
    return [
        {
            "name": name,
            "auto": name == AUTO,
            "summary": method.summary,
            "use": WHEN.get(name),
            "paper": method.paper,
        }
        for name, method in methods().items()
    ]


def show_methods(console: People, found: Sequence[dict[str, str | bool | None]]) -> None:
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    for heading in ("method", "what it does", "when to use it", "paper"):
        table.add_column(heading)
    for method in found:
        name = f"{method['name']} (auto)" if method["auto"] else str(method["name"])
        table.add_row(Text(name, "bold"), *(Text(str(method[key] or "")) for key in ("summary", "use", "paper")))
    console.print(table)
    console.print("next    sfumato anonymize INPUT -o OUTPUT --method NAME; auto is the default")
