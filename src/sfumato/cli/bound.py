"""``sfumato bound``: the least possible loss."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.flag_values import load_policy
from sfumato.cli.flags import InputTable, Json, PolicyFile
from sfumato.cli.output import TextConsole, print_json, version_and_seconds
from sfumato.cli.policy_flags import EVERY_FLAG, with_flags
from sfumato.cli.progress_bar import terminal_progress
from sfumato.tables.locations import shown_name

if TYPE_CHECKING:
    from sfumato.bounds.bound import Bound
    from sfumato.bounds.squared_error_bound import SquaredErrorBound

# The bound holds for every release, so the flags that say how to make one do not matter.
FLAGS = tuple(name for name in EVERY_FLAG if name not in ("method", "effort", "seconds", "seed", "keep_order"))


@with_flags(*FLAGS)
def bound(
    table: InputTable,
    release: Annotated[
        str | None,
        typer.Option(
            "--release",
            metavar="RELEASE",
            help="A release of the table: say how far it is at most from the best possible.",
        ),
    ] = None,
    effort: Annotated[
        str,
        typer.Option(
            "--effort",
            metavar="fast|normal|balanced|best",
            help="How long to search. A longer search proves a higher bound.",
        ),
    ] = "balanced",
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="S", help="Stop searching after S seconds and print what is proven by then."),
    ] = None,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    json: Json = False,
) -> None:
    """Prove how much information every release loses at least, whatever the method. Makes no release.

    If you interrupt it, it prints what is proven by then. With a release and no policy, the certificate beside the
    release says what is required.

    Example: sfumato bound patients.csv --policy policy.toml -k 10 --release release.csv
    """
    best: Bound | SquaredErrorBound | None = None
    ended = False
    try:
        with terminal_progress() as progress:
            from sfumato.api import proven_bounds
            from sfumato.bounds.squared_error_bound import SquaredErrorBound

            bounds = proven_bounds(
                table, load_policy(policy), release=release, effort=effort, seconds=seconds, progress=progress, **flags
            )
            for best in bounds:  # noqa: B007 - the last one counts, also after an interruption
                pass
        ended = True
    finally:
        name = shlex.quote(shown_name(table))
        if isinstance(best, SquaredErrorBound):
            if json:
                print_json({**_squared_error_summary(best), **version_and_seconds(progress)})
            else:
                _show_squared_errors(TextConsole(), best, ended, name)
        elif best is not None:
            if json:
                print_json({**_summary(best), **version_and_seconds(progress)})
            else:
                _show(TextConsole(), best, ended, name)


def _squared_error_summary(bound: SquaredErrorBound) -> dict[str, Any]:
    ratio, release = bound.release_ratio, None
    if bound.release_il is not None:
        finite = ratio is not None and math.isfinite(ratio)
        release = {"il": bound.release_il, "holds": bound.release_holds, "ratio": ratio if finite else None}
    return {
        "records": bound.records,
        "k": bound.k,
        "il": bound.il,
        "simple": bound.simple,
        "kind": bound.kind,
        "method": bound.method,
        "complete": bound.complete,
        "rounds": bound.rounds,
        "release": release,
    }


def _show_squared_errors(console: TextConsole, bound: SquaredErrorBound, ended: bool, table: str) -> None:
    console.heading(
        f"no release of these {bound.records:,} records has an information loss (IL, 100 SSE / SST) below "
        f"{math.floor(bound.il * 100) / 100:.2f}"
    )
    console.print(f"proven by {bound.method}")
    if bound.kind == "prices":
        console.print(f"the nearest neighbours of each single record prove {math.floor(bound.simple * 100) / 100:.2f}")
    if bound.release_il is not None:
        comparison = _comparison(bound.release_ratio, bound.release_holds)
        console.print(f"the release has {bound.release_il:.2f}: {comparison}")
    _show_end(console, ended, table, complete=bound.complete, alone=bound.release_il is None)


def _comparison(ratio: float | None, holds: bool | None) -> str:
    """Say how far a release is from the best possible at most."""
    if ratio is None:
        return "but it does not meet the policy, so the bound does not apply to it"
    if math.isinf(ratio):
        comparison = "and the bound is 0, so nothing is known of how far that is from the best possible"
    else:
        comparison = f"at most {math.ceil(ratio * 1000) / 1000:.3f} times the best possible"
    if holds is None:
        comparison += ", if it meets the policy: not all of that can be checked from the release"
    return comparison


def _show_end(console: TextConsole, ended: bool, table: str, *, complete: bool, alone: bool) -> None:
    if not complete:
        console.print(f"{'stopped early' if ended else 'interrupted'}: a longer search may prove more")
    if alone:
        console.print(f"next    sfumato bound {table} --release RELEASE, to see how far a release is from it")


def _summary(bound: Bound) -> dict[str, Any]:
    ratio = bound.release_ratio
    release = None
    if bound.release is not None:
        finite = ratio is not None and math.isfinite(ratio)
        measured = bound.release
        release = {
            "gcp": measured.gcp,
            "cost": measured.cost,
            "holds": measured.holds,
            "ratio": ratio if finite else None,
        }
    return {
        "records": bound.records,
        "distinct": bound.distinct,
        "k": bound.k,
        "suppression_cost": bound.suppression_cost,
        "gcp": bound.gcp,
        "cost": bound.cost,
        "simple": bound.simple,
        "kind": bound.kind,
        "method": bound.method,
        "exact": bound.exact,
        "complete": bound.complete,
        "rounds": bound.rounds,
        "relaxation": bound.relaxation,
        "release": release,
    }


def _percent(loss: float) -> str:
    """Write a proven loss in percent, rounded down so that it stays proven."""
    return f"{math.floor(loss * 10_000) / 100:.2f}%"


def _show(console: TextConsole, bound: Bound, ended: bool, table: str) -> None:
    console.heading(
        f"no release of these {bound.records:,} records has an information loss (GCP) below {_percent(bound.gcp)}"
    )
    if bound.cost < bound.gcp:
        counted = f"{bound.suppression_cost:g} instead of 1"
        console.print(f"with a record that is left out counted as {counted}, none is below {_percent(bound.cost)}")
    console.print(f"proven by {bound.method}")
    if bound.kind in ("prices", "triples"):
        console.print(f"the cheapest box around each single record proves {_percent(bound.simple)}")
    if bound.relaxation is not None:
        prices = "prices alone" if bound.kind == "triples" else "prices"
        console.print(f"no {prices} prove more than {math.ceil(bound.relaxation * 10_000) / 100:.2f}%")
    if bound.release is not None:
        comparison = _comparison(bound.release_ratio, bound.release.holds)
        console.print(f"the release has {bound.release.cost:.2%}: {comparison}")
    _show_end(console, ended, table, complete=bound.complete, alone=bound.release is None)
