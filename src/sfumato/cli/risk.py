"""``sfumato risk``: what could be found out about the records of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from sfumato._version import __version__
from sfumato.cli.flags import LARGEST_DIGITS, Json, PolicyFile, with_flags
from sfumato.cli.output import People, print_json
from sfumato.cli.progress_bar import progress_for_people
from sfumato.cli.summaries import BAR
from sfumato.errors import UsageError

if TYPE_CHECKING:
    from sfumato.evaluation.risk.exposure import Exposure
    from sfumato.evaluation.risk.reidentification import Risk

MOST_SHOWN = 5  # sets of each size


@with_flags("quasi_identifiers", "person", "form", "separator", "encoding", "nulls", "sheet")
def risk(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table, original or released, also elsewhere.")],
    population: Annotated[
        str | None,
        typer.Option(
            "--population",
            metavar="N|FILE",
            help="How many persons the records were drawn from, or a table with their quasi-identifiers.",
        ),
    ] = None,
    sampling_fraction: Annotated[
        float | None,
        typer.Option("--sampling-fraction", metavar="F", help="The share of the population that is in the table."),
    ] = None,
    largest_set: Annotated[
        int, typer.Option("--largest-set", metavar="D", help="Look at sets of up to so many quasi-identifiers.")
    ] = 3,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    json: Json = False,
) -> None:
    """Say how many records could be singled out, by which columns, and how likely a guess is right.

    For an original or a release. Without a policy the certificate beside a release says which columns count.

    Example: sfumato risk patients.csv --quasi-identifiers age,zip,sex --population 83000000
    """
    with progress_for_people() as progress, progress.phase("risk"):
        from sfumato.policy import Policy
        from sfumato.studies.risk import risk as risk_of

        found = risk_of(
            table,
            None if policy is None else Policy.load(policy),
            population=None if population is None else _population(population),
            sampling_fraction=sampling_fraction,
            largest_set=largest_set,
            **flags,
        )
    if json:
        seconds = {name: round(value, 4) for name, value in progress.seconds.items()}
        print_json({**found.as_dict(), "version": __version__, "seconds": seconds})
    else:
        _show(People(), found)


def _population(text: str) -> int | str:
    if not text.isdecimal():
        return text
    if len(text) > LARGEST_DIGITS:
        raise UsageError("--population has too many digits. Give the number of persons.")
    return int(text)


def _show(console: People, found: Risk) -> None:
    whole = found.whole
    persons = "" if found.counted == "records" else " person" if found.smallest_class == 1 else " persons"
    console.heading(
        f"{whole.records:,} records in {whole.classes:,} classes by {len(whole.columns):,} quasi-identifiers, the "
        f"smallest of {found.smallest_class:,}{persons}"
    )
    _show_small_classes(console, whole, found.counted)
    _show_attacks(console, found)
    if len(whole.columns) > 1:
        _show_dangerous(console, found.sets)
    for text in found.left_out:
        console.print(f"not all {text}")
    for text in found.remarks:
        console.print(f"remark  {text}")


def _show_small_classes(console: People, whole: Exposure, counted: str) -> None:
    full, empty = ("█", "░") if console.draws_blocks else ("#", ".")
    one = "one person" if counted == "persons" else "alone: unique"
    words = [f"{one}", *(f"in classes below {bound}" for bound in _thresholds())]
    lines = Table.grid(padding=(0, 2))
    for text, count in zip(words, (whole.unique, *whole.below), strict=True):
        length = round(BAR * count / whole.records)
        bar = Text(full * length, style="cyan").append(empty * (BAR - length), style="dim")
        share = Text(percent(count, whole.records), justify="right")
        lines.add_row(Text(f"  {text}"), bar, share, Text(f"{count:,}", justify="right"))
    console.print(lines)


def _show_attacks(console: People, found: Risk) -> None:
    console.print("\nhow likely a guess who somebody is would be right")
    lines = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    lines.add_column("risk")
    lines.add_column("highest", justify="right")
    lines.add_column("mean", justify="right")
    lines.add_column("of somebody who")
    lines.add_row("prosecutor", *_shares(found.prosecutor.highest, found.prosecutor.mean), "knows who is in the table")
    if found.journalist is None:
        lines.add_row("journalist", "", "", "does not know it: give --population or --sampling-fraction")
    else:
        shares = _shares(found.journalist.highest, found.journalist.mean)
        lines.add_row("journalist", *shares, "knows only the population it was drawn from")
    lines.add_row("marketer", "", *_shares(found.marketer), "guesses for every record: the share of right guesses")
    console.print(lines)


def _show_dangerous(console: People, sets: Sequence[Exposure]) -> None:
    from sfumato.evaluation.risk.exposure import first_of_each_size, telling_more

    largest = max(len(one.columns) for one in sets)
    telling = [one for one in sets if any(one.below)]
    if not telling:
        bound = _thresholds()[-1]
        console.print(f"\nno set of up to {largest} quasi-identifiers leaves a record in a class below {bound}")
        return
    console.print("\nby those who know only some of the quasi-identifiers; the most dangerous sets first")
    shown = first_of_each_size(telling_more(telling), MOST_SHOWN)
    show_sets(console, shown)
    if len(shown) < len(sets):
        console.print(
            f"these are {len(shown):,} of {len(sets):,} sets, without those that tell little more than a smaller one; "
            "--json has all"
        )


def show_sets(console: People, sets: Sequence[Exposure]) -> None:
    """Sets of columns with the share of the records that they leave in small classes."""
    lines = Table(box=SIMPLE, show_edge=False, pad_edge=False)
    lines.add_column("columns", overflow="fold")
    for heading in ("unique", *(f"below {bound}" for bound in _thresholds())):
        lines.add_column(heading, justify="right", no_wrap=True)
    for one in sets:
        counts = (percent(count, one.records) for count in (one.unique, *one.below))
        lines.add_row(Text(" + ".join(one.columns)), *counts)
    console.print(lines)


def percent(count: int, records: int) -> str:
    """A share that is 0% or 100% only where it is exactly that."""
    share = count / records
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 <= share < 1:
        return ">99.9%"
    return f"{share:.1%}"


def _shares(*values: float) -> list[str]:
    return [f"{value:.1%}" if value >= 0.001 else f"1 in {round(1 / value):,}" for value in values]


def _thresholds() -> tuple[int, ...]:
    from sfumato.evaluation.risk.exposure import THRESHOLDS

    return THRESHOLDS
