"""``sfumato risk``: how many records of a table could be singled out, and by which columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from sfumato.cli.flag_values import LARGEST_DIGITS, load_policy
from sfumato.cli.flags import Json, PolicyFile
from sfumato.cli.output import TextConsole, plain_table, print_json, version_and_seconds
from sfumato.cli.policy_flags import READ_WITH, with_flags
from sfumato.cli.progress_bar import terminal_progress
from sfumato.errors import UsageError

if TYPE_CHECKING:
    from sfumato.evaluation.risk.exposure import Exposure
    from sfumato.evaluation.risk.reidentification import Risk

MOST_SHOWN = 5  # sets of columns of each size


@with_flags("quasi_identifiers", "derive", "person", "form", "column_nulls", *READ_WITH)
def risk(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="An original or released table. Any tool may have made it.")
    ],
    population: Annotated[
        str | None,
        typer.Option(
            "--population",
            metavar="N|FILE",
            help="The size of the population that the records come from, or a table of its quasi-identifiers.",
        ),
    ] = None,
    sampling_fraction: Annotated[
        float | None,
        typer.Option("--sampling-fraction", metavar="F", help="The share of the population that is in the table."),
    ] = None,
    largest_set: Annotated[
        int, typer.Option("--largest-set", metavar="D", help="Examine sets of up to D quasi-identifiers.")
    ] = 3,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    json: Json = False,
) -> None:
    """Show how many records could be singled out, by which columns, and how likely a guess is right.

    Works on an original or a release. Without a policy, the certificate beside a release names the quasi-identifiers.

    Example: sfumato risk patients.csv --quasi-identifiers age,zip,sex --population 83000000
    """
    with terminal_progress() as progress, progress.phase("risk"):
        from sfumato.studies.risk import risk as risk_of

        result = risk_of(
            table,
            load_policy(policy),
            population=None if population is None else _population(population),
            sampling_fraction=sampling_fraction,
            largest_set=largest_set,
            **flags,
        )
    if json:
        print_json({**result.as_dict(), **version_and_seconds(progress)})
    else:
        _show(TextConsole(), result)


def _population(text: str) -> int | str:
    """Return the number of persons, or the name of a table."""
    if not text.isdecimal():
        return text
    if len(text) > LARGEST_DIGITS:
        raise UsageError("--population has too many digits. Give the number of persons.")
    return int(text)


def _show(console: TextConsole, risk: Risk) -> None:
    whole = risk.whole
    persons = "" if risk.counted == "records" else " person" if risk.smallest_class == 1 else " persons"
    console.heading(
        f"{whole.records:,} records in {whole.classes:,} classes by {len(whole.columns):,} quasi-identifiers, the "
        f"smallest of {risk.smallest_class:,}{persons}"
    )
    _show_small_classes(console, whole, risk.counted)
    _show_attackers(console, risk)
    if len(whole.columns) > 1:
        _show_dangerous(console, risk.sets)
    for text in risk.left_out:
        console.print(f"not all {text}")
    for text in risk.remarks:
        console.print(f"remark  {text}")


def _show_small_classes(console: TextConsole, whole: Exposure, counted: str) -> None:
    unique = "one person" if counted == "persons" else "alone: unique"
    labels = [unique, *(f"in classes below {bound}" for bound in _thresholds())]
    table = Table.grid(padding=(0, 2))
    for label, count in zip(labels, (whole.unique, *whole.below), strict=True):
        share = Text(percent(count, whole.records), justify="right")
        number = Text(f"{count:,}", justify="right")
        table.add_row(Text(f"  {label}"), console.bar(count / whole.records), share, number)
    console.print(table)


def _show_attackers(console: TextConsole, risk: Risk) -> None:
    console.print("\nhow likely an attacker's guess of who a record belongs to is right")
    table = plain_table("attacker")
    table.add_column("highest", justify="right")
    table.add_column("mean", justify="right")
    table.add_column("what the attacker knows or does")
    table.add_row("prosecutor", *_shares(risk.prosecutor.highest, risk.prosecutor.mean), "knows who is in the table")
    if risk.journalist is None:
        table.add_row("journalist", "", "", "does not know it: give --population or --sampling-fraction")
    else:
        shares = _shares(risk.journalist.highest, risk.journalist.mean)
        knows = "knows only the population that the table was drawn from"
        table.add_row("journalist", *shares, knows if risk.caveat is None else f"{knows} (see caveat)")
    table.add_row("marketer", "", *_shares(risk.marketer), "guesses for every record: the share of right guesses")
    console.print(table)
    if risk.caveat is not None:
        console.print(f"caveat  {risk.caveat}")


def _show_dangerous(console: TextConsole, sets: Sequence[Exposure]) -> None:
    from sfumato.evaluation.risk.exposure import first_of_each_size, more_revealing_sets

    largest = max(len(exposure.columns) for exposure in sets)
    dangerous = [exposure for exposure in sets if any(exposure.below)]
    if not dangerous:
        bound = _thresholds()[-1]
        console.print(f"\nno set of up to {largest} quasi-identifiers leaves a record in a class below {bound}")
        return
    console.print("\nattackers who know only some of the quasi-identifiers; the most dangerous sets first")
    shown = first_of_each_size(more_revealing_sets(dangerous), MOST_SHOWN)
    show_sets(console, shown)
    if len(shown) < len(sets):
        console.print(
            f"these are {len(shown):,} of {len(sets):,} sets, without those that reveal little more than a "
            "smaller one; --json has all"
        )


def show_sets(console: TextConsole, sets: Sequence[Exposure]) -> None:
    """Print sets of columns with the share of the records that they leave in small classes."""
    table = plain_table()
    table.add_column("columns", overflow="fold")
    for heading in ("unique", *(f"below {bound}" for bound in _thresholds())):
        table.add_column(heading, justify="right", no_wrap=True)
    for exposure in sets:
        shares = (percent(count, exposure.records) for count in (exposure.unique, *exposure.below))
        table.add_row(Text(" + ".join(exposure.columns)), *shares)
    console.print(table)


def percent(count: int, records: int) -> str:
    """Write a share in percent; 0% and 100% stand for exactly that."""
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
