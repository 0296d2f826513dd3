"""``sfumato bound``: the least possible loss."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato._version import __version__
from sfumato.cli.flags import EVERY_FLAG, InputTable, Json, PolicyFile, with_flags
from sfumato.cli.output import People, print_json
from sfumato.cli.progress_bar import progress_for_people
from sfumato.tables.locations import shown_name

if TYPE_CHECKING:
    from sfumato.bounds.bound import Bound

# What a policy says of the making of a release plays no part in what any release can reach.
FLAGS = tuple(name for name in EVERY_FLAG if name not in ("method", "effort", "seconds", "seed", "keep_order"))


@with_flags(*FLAGS)
def bound(
    table: InputTable,
    release: Annotated[
        str | None,
        typer.Option(
            "--release",
            metavar="RELEASE",
            help="Say how far from the best possible this release of the table is at most.",
        ),
    ] = None,
    effort: Annotated[
        str,
        typer.Option("--effort", metavar="fast|balanced|best", help="How long to search; more proves a higher bound."),
    ] = "balanced",
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="S", help="Stop searching after so long, and tell what is proven by then."),
    ] = None,
    policy: PolicyFile = None,
    *,
    flags: Mapping[str, Any],
    json: Json = False,
) -> None:
    """Prove how much information every release loses at least, whatever the method. Makes no release.

    When it is interrupted, it tells what is proven by then. With a release and no policy, the certificate beside the
    release says what is asked for.

    Example: sfumato bound patients.csv --policy policy.toml -k 10 --release release.csv
    """
    found: Bound | None = None
    ended = False
    try:
        with progress_for_people() as progress:
            from sfumato.api import proven_bounds
            from sfumato.policy import Policy

            given = None if policy is None else Policy.load(policy)
            bounds = proven_bounds(
                table, given, release=release, effort=effort, seconds=seconds, progress=progress, **flags
            )
            for found in bounds:  # noqa: B007 - the last one counts, also when it was interrupted
                pass
        ended = True
    finally:
        if found is not None and json:
            print_json(_summary(found, progress.seconds))
        elif found is not None:
            _show(People(), found, ended, shlex.quote(shown_name(table)))


def _summary(found: Bound, seconds: Mapping[str, float]) -> dict[str, Any]:
    ratio = found.release_ratio
    release = None
    if found.release is not None:
        finite = ratio is not None and math.isfinite(ratio)
        release = {"gcp": found.release.gcp, "holds": found.release.holds, "ratio": ratio if finite else None}
    return {
        "records": found.records,
        "distinct": found.distinct,
        "k": found.k,
        "gcp": found.gcp,
        "simple": found.simple,
        "kind": found.kind,
        "method": found.method,
        "exact": found.exact,
        "complete": found.complete,
        "rounds": found.rounds,
        "release": release,
        "version": __version__,
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
    }


def _percent(bound: float) -> str:
    """A bound in percent, never more than it is."""
    return f"{math.floor(bound * 10_000) / 100:.2f}%"


def _show(console: People, found: Bound, ended: bool, table: str) -> None:
    console.heading(
        f"no release of these {found.records:,} records has an information loss (GCP) below {_percent(found.gcp)}"
    )
    console.print(f"proven by {found.method}")
    if found.kind == "prices":
        console.print(f"the cheapest box around every record alone proves {_percent(found.simple)}")
    if found.release is not None:
        ratio = found.release_ratio
        if ratio is None:
            told = "but it does not meet the policy, so the bound says nothing of it"
        elif math.isinf(ratio):
            told = "and the bound is 0, so nothing is known of how far that is from the best possible"
        else:
            told = f"at most {math.ceil(ratio * 1000) / 1000:.3f} times the best possible"
        console.print(f"the release has {found.release.gcp:.2%}: {told}")
    if not found.complete:
        console.print(f"{'stopped early' if ended else 'interrupted'}: a longer search may prove more")
    if found.release is None:
        console.print(f"next    sfumato bound {table} --release RELEASE, to see how far a release is from it")
