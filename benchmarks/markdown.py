"""Markdown tables for the terminal and the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def show(title: str, rows: Sequence[Mapping[str, object]], notes: Iterable[str] = ()) -> None:
    """Print a section: its title, a table of the rows, and notes that a reader needs."""
    print("\n\n".join([f"\n## {title}", table(rows), *notes]), flush=True)


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """Return the rows as a Markdown table. All rows have the keys of the first; numbers are right-aligned."""
    names = list(rows[0])
    cells = [[_text(row[name]) for name in names] for row in rows]
    widths = [max(3, len(name), *(len(line[column]) for line in cells)) for column, name in enumerate(names)]
    right = [all(row[name] is None or isinstance(row[name], int | float) for row in rows) for name in names]

    def line(texts: Sequence[str]) -> str:
        padded = (
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(texts, widths, right, strict=True)
        )
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * (width - 1) + (":" if number else "-") for width, number in zip(widths, right, strict=True)]
    return "\n".join([line(names), line(rule), *map(line, cells)])


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.{4 if abs(value) < 1 else 3 if abs(value) < 10 else 1}f}"
    return str(value).replace("|", "\\|")
