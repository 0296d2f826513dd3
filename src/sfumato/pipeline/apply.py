"""A learnt recoding on further records: what fails in this batch is left out, and what is left is a release."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.engines.engine import Draft, Outcome
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.engines.memory.released_rows import RowsInMemory, arrange, recode
from sfumato.errors import UnmetError
from sfumato.kernels.decorator import on_compilation
from sfumato.methods.class_counting import Counting
from sfumato.pipeline.prepare import read_table
from sfumato.pipeline.recognition import recognised
from sfumato.policy import Policy, WorkloadSettings
from sfumato.progress import Progress
from sfumato.releases.local_recoding import shown_classes
from sfumato.releases.recoding import Recoding
from sfumato.releases.regions import OUTSIDE
from sfumato.releases.run_record import ClassRecipe

TWICE = (
    "whoever is in this table and in another release has a region in both, also under the same rules: what changed "
    "between them, and who came or went, can be told by comparing the two"
)


def draft_applied(recoding: Recoding, data: object, progress: Progress, *, trial: bool = False) -> Draft:
    """Recode a table by the rules of a recoding. The rows are not audited yet.

    Records with a value outside the domain are left out, and so are those of regions that do not meet the policy in
    this table. Raises UnmetError if they are more than the policy allows. trial: whether the release is a trial.
    """
    policy, engine = recoding.policy, MemoryEngine()
    with on_compilation(progress.compiling):
        table = read_table(data, _open_policy(recoding, data), progress, recoding.taxonomies)
        encoded = table.encoded
        with progress.phase("partition", encoded.count):
            learnt, recoding = recoding, recoding.for_table(encoded.codes, encoded.domains)
            regions = recoding.regions.regions_of(encoded.codes, encoded.domains)
            outside = int(np.count_nonzero(regions == OUTSIDE))
            regions = _without_failing(recoding, table, regions)
        left_out = int(np.count_nonzero(regions == OUTSIDE))
        strange = recoding.regions.columns_outside(encoded.codes, encoded.domains) if outside else []
        _check_left_out(policy, encoded.count, outside, left_out, strange)
        domains, batches = list(recoding.domains), iter([recoding.regions.classes(regions)])
        recoded = recode(encoded.count, batches, domains, progress, numbered=policy.numbered)
        released, rows = arrange(replace(encoded, domains=domains), recoded, table.job.kept, policy, progress)
        persons = None if table.records.persons is None else table.records.persons[rows]
    rules = hashlib.sha256(learnt.to_json().encode()).hexdigest()
    job = replace(
        table.job,
        policy=policy,
        taxonomies=recoding.all_taxonomies(),
        warnings=[*table.job.warnings, TWICE],
    )
    recipe = ClassRecipe(policy, rules=rules)
    return Draft(
        engine=engine,
        job=job,
        rows=RowsInMemory(released, Outcome(recoding.method), persons),
        records=encoded.count,
        domains=domains,
        fingerprints=None if trial else recognised(engine, job, table, recipe),
        recipe=recipe,
        trial=trial,
        facts={"regions": len(recoding), "outside": outside, "failing": left_out - outside},
    )


def _open_policy(recoding: Recoding, data: object) -> Policy:
    """The policy for a table of any values, whatever it is for.

    It has to have the quasi-identifiers, and what requirements count; of other columns it may lack some.
    """
    policy = recoding.policy
    requirements = policy.requirements()
    names = {*recoding.open_source(data).names, *policy.quasi_identifiers, *requirements.columns, requirements.person}
    columns = {
        name: recoding.open_column(name) if column.role == "quasi-identifier" else column
        for name, column in policy.columns.items()
        if name in names
    }
    accepted = tuple(name for name in policy.accept_linkable if name in names)
    return policy.model_copy(update={"columns": columns, "accept_linkable": accepted, "workload": WorkloadSettings()})


def _without_failing(recoding: Recoding, table: TableInMemory, regions: NDArray[np.int64]) -> NDArray[np.int64]:
    """The regions with OUTSIDE for those that do not meet the policy; regions that show the same are one class.

    What is left is counted anew, since some requirements compare a class with the whole release.
    """
    own, requirements = recoding.regions, table.job.requirements
    numbered = recoding.policy.numbered
    shown = shown_classes(recoding.domains, own.region_low, own.region_high, numbered=numbered)
    regions = regions.copy()
    while True:
        here = np.flatnonzero(regions != OUTSIDE).astype(np.uint32)
        if not len(here):
            return regions
        gone = np.flatnonzero(regions == OUTSIDE).astype(np.uint32)
        there, owner = np.unique(shown[regions[here]], return_inverse=True)
        counting = Counting(table.records.without(gone), requirements)
        failing = ~requirements.holds(counting.classes(here, owner, len(there)))[owner]
        if not failing.any():
            return regions
        regions[here[failing]] = OUTSIDE


def _check_left_out(policy: Policy, records: int, outside: int, left_out: int, strange: Sequence[str]) -> None:
    """Refuse to leave out more than the policy allows. strange: the columns of the records outside the domain."""
    allowed = policy.most_suppressed(records)
    if left_out <= allowed and left_out < records:
        return
    limit = policy.release.max_suppressed_fraction
    failing = left_out - outside
    where = f" ({', '.join(map(repr, strange))})" if strange else ""
    raise UnmetError(
        f"{left_out:,} of the {records:,} records ({left_out / records:.2%}) cannot be released under these rules. "
        f"With a value outside the domain: {outside:,}{where}. In regions that do not meet the policy in this table: "
        f"{failing:,}. max_suppressed_fraction allows {limit:.2%}. Nothing was written. Wait until there are more "
        "records, allow more with --max-suppressed, or learn the rules with a larger k than the release needs."
    )
