"""Earlier releases of the run record that can be intersected with the one that is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sfumato._version import __version__
from sfumato.releases.fingerprints import Fingerprints
from sfumato.releases.keyed_sample import shared_part
from sfumato.releases.run_record import ClassRecipe, recorded_runs


@dataclass(frozen=True)
class EarlierReleases:
    """The numbers of recorded releases that can be intersected with the one that is made.

    same: those of the same table. overlapping: those of other tables that share records with this one. part: the
    largest part of the smaller table's records that one of the latter shares; None if only columns tell. withdrawn:
    those of either kind that the user has marked as withdrawn; they are in neither of the two.
    """

    same: tuple[int, ...] = ()
    overlapping: tuple[int, ...] = ()
    part: float | None = None
    withdrawn: tuple[int, ...] = ()


def earlier_releases(
    table: Fingerprints,
    recipe: ClassRecipe,
    *,
    ordered: Callable[[], Mapping[str, str]] = dict,
) -> EarlierReleases:
    """Find the earlier releases that can be intersected with one of this table by this recipe.

    The same recipe and version give the same table the same classes, unless they are formed anew in each run. Rules
    that were learnt elsewhere are the same for every table. ``ordered`` makes the fingerprints of version 0.1, if the
    record has lines of that version. Nobody has a release that was never published, so those are passed over.
    """
    current = recipe.digest
    same: list[int] = []
    withdrawn: list[int] = []
    parts: dict[int, float] = {}
    # Most runs of a record are of few tables, and a comparison with many random divisions takes long.
    shared_with: dict[bytes, float] = {}
    in_order: Mapping[str, str] | None = None
    for run in recorded_runs():
        same_policy = run.policy == current
        if run.mark == "never-published" or (recipe.rules is not None and same_policy):
            continue
        if run.version is None:
            in_order = ordered() if in_order is None else in_order
            if any(run.columns.get(name) == digest for name, digest in in_order.items()):
                (withdrawn if run.mark == "withdrawn" else same).append(run.number)
            continue
        matches, everywhere = table.matching(run.columns)
        part = 0.0
        if run.sample is not None:
            content = run.sample.hashes.tobytes() + run.sample.counts.tobytes()
            if content not in shared_with:
                shared_with[content] = shared_part(run.sample, table.sample)
            part = shared_with[content]
        if not matches and not part:
            continue
        same_sample = run.sample is None or run.sample.same_as(table.sample)
        overlaps = not everywhere or (same_policy and not same_sample)
        if not overlaps and not (recipe.anew or run.anew or not same_policy or run.version != __version__):
            continue
        if run.mark == "withdrawn":
            withdrawn.append(run.number)
        elif overlaps:
            parts[run.number] = part
        else:
            same.append(run.number)
    return EarlierReleases(tuple(same), tuple(parts), max(parts.values(), default=0.0) or None, tuple(withdrawn))
