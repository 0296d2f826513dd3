"""Recognise a table that was released before: what decides its classes, and warnings of what can be intersected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from sfumato.engines.engine import Draft, Engine, Job
from sfumato.files.key_file import key_mark, read_key
from sfumato.methods import AUTO, method_named
from sfumato.releases.earlier_releases import EarlierReleases, earlier_releases
from sfumato.releases.fingerprints import Fingerprints
from sfumato.releases.run_record import ClassRecipe, record_run
from sfumato.tables.coding.distinct_values import counted_noun

MOST_LISTED = 5  # numbers of earlier releases in a warning


def class_recipe(engine: Engine, job: Job) -> ClassRecipe:
    """Return what decides the classes of a run: the policy, and what else makes a difference."""
    policy = job.policy
    circumstances: dict[str, Any] = {}
    decides = (policy.method.name == AUTO, policy.privacy.sensitive, policy.workload, policy.engine.sampled)
    if engine.name == "spark" or any(decides):
        # Otherwise, with k alone, the memory and disk engines make the same classes.
        circumstances |= {
            "engine": engine.name,
            "memory": engine.facts().get("memory"),
            "sampled": policy.engine.sampled,
        }
        if (asked := policy.engine).asks_for_sampling:
            circumstances["sample"] = [asked.sample_size, asked.sample_alpha, asked.sample_tests]
    if engine.name != "spark":
        # Rows of equal codes are ordered by the texts of their other values, which may differ between kinds of files.
        others = {*job.kept, policy.privacy.person} - set(policy.quasi_identifiers)
        kinds = {
            name: str(kind) for name, kind in job.source.types.items() if name in others and not _has_one_text(kind)
        }
        circumstances |= {"kinds": kinds} if kinds else {}
    if policy.pseudonyms and policy.pseudonym_key_path is not None:
        # Rows of equal codes are ordered by their pseudonyms too. The record gets a digest of all circumstances.
        circumstances["pseudonyms"] = key_mark(read_key(policy.pseudonym_key_path))
    drawn = policy.release.seed is None and method_named(policy.method.name).separates
    return ClassRecipe(policy, circumstances, anew=drawn or policy.method.seconds is not None)


def _has_one_text(kind: pa.DataType) -> bool:
    """Return whether values of this type are written in one way only."""
    kind, types = kind.value_type if pa.types.is_dictionary(kind) else kind, pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind) or types.is_date(kind))


def recognised(engine: Engine, job: Job, table: object, recipe: ClassRecipe) -> Fingerprints | None:
    """Return what the run record recognises the table by; warn of earlier releases that can be intersected with this.

    Without a record there is nothing to recognise it by.
    """
    warnings = job.warnings
    with job.progress.phase("check"):
        try:
            fingerprints = engine.fingerprints(table)
            ordered = partial(engine.ordered_fingerprints, table)
            earlier = earlier_releases(fingerprints, recipe, ordered=ordered)
        except OSError:
            warnings.append(
                "no run record can be kept (the state directory cannot be used), so an earlier release of this table "
                "under another policy would go unnoticed"
            )
            return None
    warnings.extend(_earlier_warnings(earlier, anew=recipe.anew))
    return fingerprints


def _earlier_warnings(earlier: EarlierReleases, *, anew: bool) -> list[str]:
    intersected = "whoever has both releases can intersect their classes, which may be smaller than k"
    warnings = []
    if earlier.same:
        how = ", grouped anew each time" if anew else " under another policy, engine or version"
        warnings.append(
            f"this table was released {counted_noun(len(earlier.same), 'time')} before{how}: {intersected}"
            f"{_where(earlier.same)}"
        )
    if earlier.overlapping:
        several = len(earlier.overlapping) > 1
        what = "whole columns" if earlier.part is None else f"about {earlier.part:.0%} of the smaller one's records"
        tables = f"tables that share up to {what}" if several else f"a table that shares {what}"
        warnings.append(
            f"{tables} with this one {'were' if several else 'was'} released "
            f"{counted_noun(len(earlier.overlapping), 'time')} before: {intersected}, and see who came or went"
            f"{_where(earlier.overlapping)}"
        )
    if earlier.withdrawn:
        several = len(earlier.withdrawn) > 1
        what = f"{len(earlier.withdrawn):,} releases" if several else "a release"
        warnings.append(
            f"{what} of this table, or of one that shares its records, {'were' if several else 'was'} withdrawn "
            f"({_numbers(earlier.withdrawn)} of 'sfumato runs'): whoever still has a copy can intersect its classes "
            "with those of this release"
        )
    return warnings


def _where(runs: Sequence[int]) -> str:
    """Say where the user finds earlier releases, and what to do if nobody has them."""
    return f"; 'sfumato runs' lists what was released ({_numbers(runs)}) and marks what was never published"


def _numbers(runs: Sequence[int]) -> str:
    listed = ", ".join(map(str, runs[-MOST_LISTED:]))
    if len(runs) > MOST_LISTED:
        listed = f"..., {listed}"
    return f"run{'s' if len(runs) > 1 else ''} {listed}"


def record_release(draft: Draft, target: str, released: int, figures: Mapping[str, Any]) -> None:
    """Put a published release into the run record, with those of its private figures that name no column or value.

    released: how many records it has.
    """
    job = draft.job
    figures = {key: value for key, value in figures.items() if key not in ("audit", "columns", "workload")}
    if draft.fingerprints is None:
        return
    run = {
        "records": draft.records,
        "released": released,
        "method": job.policy.method.name,
        "engine": draft.engine.name,
    }
    try:
        record_run(draft.fingerprints, draft.recipe, draft.engine.origin(job), target, run=run, figures=figures)
    except OSError:
        job.warnings.append(
            "the release was written, but the run record was not (the state directory cannot be written), so a later "
            "release of this table under another policy will go unnoticed"
        )
