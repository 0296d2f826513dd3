"""What happens before classes are formed: everything that can be wrong with policy, files, schema and data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sfumato.engines.engine import Input, Job
from sfumato.engines.memory.classes import check_policy
from sfumato.engines.memory.coded_table import TableInMemory
from sfumato.engines.memory.engine import MemoryEngine
from sfumato.engines.memory.linkability import linkable_in_memory
from sfumato.errors import InfeasibleError, PolicyError, UsageError
from sfumato.evaluation.audit.audit import pseudonym_remark
from sfumato.evaluation.linkability.refusal import refuse_linkable
from sfumato.kernels.decorator import on_compilation
from sfumato.methods import method_named
from sfumato.pipeline.capabilities import check_method_of, refuse_unsupported
from sfumato.policy import Policy
from sfumato.progress import Progress
from sfumato.releases.statistics import WARNINGS
from sfumato.tables.sources.input_table import open_input
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.taxonomies.taxonomy_file import read_taxonomy

CLEARED = ("sensitive", "other")  # roles of columns that are released as they are
STOPPED = (
    "a clock or an interruption ends the search, so the same table may be released in other classes the next time, and "
    "whoever has both releases can intersect them"
)


def open_job(
    data: object,
    source: Input,
    policy: Policy,
    progress: Progress,
    taxonomies: Mapping[str, Taxonomy] | None = None,
) -> Job:
    """Check the policy against the columns of an open table. Taxonomies are read from files unless they are given."""
    requirements = policy.requirements()
    taxonomies = load_taxonomies(policy) if taxonomies is None else taxonomies
    policy.check_columns(source.names)
    kept = policy.kept_columns(source.names)
    check_added_names(policy, kept)
    if method_named(policy.method.name).separates:
        _check_separable(policy, kept)
    return Job(data, source, policy, requirements, taxonomies, kept, progress, policy_warnings(policy))


def read_table(
    data: object, policy: Policy, progress: Progress, taxonomies: Mapping[str, Taxonomy] | None = None
) -> TableInMemory:
    """Read a table into memory. It serves any policy that differs from this one in method, k and l alone."""
    engine = MemoryEngine()
    job = open_job(data, open_input(data, policy), policy, progress, taxonomies)
    scan = engine.read(job)
    table = engine.encode(scan, engine.profile(scan))
    with progress.phase("check"):
        refuse_linkable(linkable_in_memory(table))
    return table


def table_for(table: TableInMemory, policy: Policy) -> TableInMemory:
    """Return a table that was read for another policy, once it is clear that this one can be met."""
    table = replace(table, job=table.job.under(policy, policy_warnings(policy)))
    if method_named(policy.method.name).separates:
        _check_separable(policy, table.job.kept)
    check_policy(table)
    return table


def prepare(data: object, policy: Policy, progress: Progress) -> TableInMemory:
    """Read a table into memory and make every check of a release, in the order of the exit codes."""
    table, error = prepare_as_far_as_feasible(data, policy, progress)
    if error is not None:
        raise error
    return table


def prepare_as_far_as_feasible(
    data: object, policy: Policy, progress: Progress
) -> tuple[TableInMemory, InfeasibleError | None]:
    """Do what ``prepare`` does, but return a table that cannot meet the policy too, with the error that says so."""
    check_method_of(policy)
    refuse_unsupported(policy.engine.name, policy)
    with on_compilation(progress.compiling):
        table = read_table(data, policy, progress)
        try:
            return table_for(table, policy), None
        except InfeasibleError as error:
            return table, error


def load_taxonomies(policy: Policy) -> dict[str, Taxonomy]:
    """Read the taxonomies that are files, by column; before the data, so that their mistakes are found at once."""
    return {
        name: read_taxonomy(policy.taxonomy_path(name), name)
        for name, column in policy.columns.items()
        if column.taxonomy_file is not None
    }


def check_added_names(policy: Policy, names: Sequence[str]) -> None:
    """Refuse columns that a release with bounds, means or medians would add a second time."""
    for name in policy.quasi_identifiers:
        for column in (f"{name}_{added}" for added in policy.added(name)):
            if column in names:
                raise PolicyError(
                    f'form = "{policy.form_of(name)}" adds the column {column!r}, which the table already has. '
                    "Rename or drop it."
                )


def _check_separable(policy: Policy, kept: Sequence[str]) -> None:
    """Refuse columns that would tie the two tables together, or that have no place in them."""
    from sfumato.methods.anatomy import COUNT, GROUP

    required = {settings.attribute for settings in policy.privacy.sensitive}
    for name in kept:
        role = policy.columns[name].role if name in policy.columns else "other"
        if role not in ("quasi-identifier", "sensitive") or (role == "sensitive" and name not in required):
            raise UsageError(
                f"{policy.method.name} releases quasi-identifiers and one sensitive column, so the column {name!r} "
                "cannot be kept. Give it the role drop, or choose another method."
            )
        if name in (GROUP, COUNT):
            raise UsageError(
                f"{policy.method.name} adds the columns {GROUP!r} and {COUNT!r}, and the table has a column {name!r}. "
                "Rename it."
            )


def policy_warnings(policy: Policy) -> list[str]:
    """Return what a data steward should know about any release under this policy."""
    warnings = [pseudonym_remark(policy.pseudonyms)] if policy.pseudonyms else []
    required = {settings.attribute for settings in policy.privacy.sensitive}
    unprotected = [name for name in policy.sensitive if name not in required]
    if unprotected:
        names = ", ".join(repr(name) for name in unprotected)
        warnings.append(
            f"the sensitive column {names} is released as it is: k-anonymity hides who a record is, not what it says; "
            "a class whose records all share one value reveals it"
        )
    if outside := policy.taxonomies_outside:
        files = ", ".join(f"{str(path)!r} for column {name!r}" for name, path in outside)
        warnings.append(
            f"the policy takes taxonomies from outside its own folder: {files}; make sure that you know these files"
        )
    if cleared := [name for name, column in policy.columns.items() if column.nulls and column.role in CLEARED]:
        names = ", ".join(map(repr, cleared))
        warnings.append(
            f"cells that hold one of the nulls of their column are released empty: {names}; other cells are released "
            "as they are"
        )
    warnings += [text for form, text in WARNINGS.items() if policy.asks_for(form)]
    if (policy.privacy.k or 1) < policy.k:
        warnings.append(f"means and medians need classes of at least {policy.k} records, so k = {policy.k} is used")
    if policy.release.keep_order:
        warnings.append("rows keep the order of the input, which can tell who they are when that order is known")
    if policy.method.seconds is not None:
        warnings.append(STOPPED)
    return warnings
