"""What Python users call: anonymize, audit, measure. The command line is a thin layer over the same functions."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.engines.memory import Encoded, MemoryEngine, kept_columns
from sfumato.errors import PolicyError, UsageError
from sfumato.evaluation.audit import AuditReport, audit_classes, class_key, requirements_of
from sfumato.evaluation.linkage import linkable_columns
from sfumato.evaluation.measure import measure_release
from sfumato.evaluation.queries import Measured, QueryAccuracy, Workload, measure_queries, queried_columns
from sfumato.kernels import on_compilation
from sfumato.methods import method_named
from sfumato.methods.method import SensitiveValues
from sfumato.policy import Policy, merge_flags
from sfumato.progress import Progress
from sfumato.release import Draft, Release, publish, refuse_input_as_output
from sfumato.releases.certificate import file_digest, read_certificate
from sfumato.releases.run_record import earlier_releases, fingerprints
from sfumato.requirements import ClassCounts, Histogram, Verdict
from sfumato.tables.columns import CarriedColumn
from sfumato.tables.grouping import ReleasedClasses, find_classes, majorities
from sfumato.tables.source import InputOptions, Source, open_source
from sfumato.tables.staging import check_target
from sfumato.tables.write import check_format
from sfumato.taxonomies.files import read_taxonomy
from sfumato.taxonomies.tree import Taxonomy


class SfumatoWarning(UserWarning):
    """Something that a data steward should know about a release."""


def anonymize(
    data: object,
    policy: Policy | None = None,
    *,
    quasi_identifiers: Sequence[str] = (),
    sensitive: str | Sequence[str] = (),
    identifiers: str | Sequence[str] = (),
    other: str | Sequence[str] | None = None,
    k: int | None = None,
    l: int | None = None,  # noqa: E741 - the name that the field knows it by
    taxonomy: Mapping[str, Any] | None = None,
    method: str | None = None,
    **settings: Any,
) -> Release:
    """Anonymize a frame or a file and audit the result.

    ``data`` is a pandas, Polars, PyArrow or DuckDB object or the path of a file. What is asked for comes from
    ``policy``, from keyword arguments, or from both; arguments override the policy. Further arguments are those of
    ``merge_flags``: engine, seed, keep_order, form, accept_linkable, input, round, weight, type.
    """
    asked = merge_flags(
        policy,
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        identifiers=identifiers,
        other=other,
        k=k,
        l=l,
        taxonomy=taxonomy,
        method=method,
        **settings,
    )
    release = Release.of(draft_release(data, asked, Progress()))
    for text in release.warnings:
        python_warnings.warn(text, SfumatoWarning, stacklevel=2)
    return release


def anonymize_to_file(data: object, policy: Policy, target: Path, progress: Progress) -> Release:
    """Anonymize and write in one go; the finished file is what is audited and measured."""
    check_output(data, policy, target)
    return publish(draft_release(data, policy, progress), target)


def check_output(data: object, policy: Policy, target: Path) -> None:
    """Refuse what can be seen to go wrong with the output before the table is read."""
    policy.check_complete()
    method_named(policy.method.name)
    check_format(target)
    check_target(target)
    refuse_input_as_output(data, target)


@dataclass(frozen=True)
class Prepared:
    """A table that was read and understood, before any class is formed."""

    encoded: Encoded
    sensitive: Mapping[str, SensitiveValues]
    source: Source
    options: InputOptions
    warnings: list[str]


def prepare(data: object, policy: Policy, progress: Progress) -> Prepared:
    """Everything that can be wrong with flags, policy, files, schema, data and feasibility, in that order."""
    requirements = requirements_of(policy)
    method_named(policy.method.name).check(requirements)
    options = InputOptions(**policy.input.model_dump())
    source = open_source(data, options)
    taxonomies = load_taxonomies(policy)
    policy.check_columns(source.names)
    _check_bound_names(policy, kept_columns(policy, source.names))
    engine = MemoryEngine(progress)
    scanned = engine.scan(source, kept_columns(policy, source.names))
    encoders = engine.profile(scanned, policy, options, taxonomies)
    encoded = engine.encode(scanned, encoders)
    with progress.phase("check"):
        _check_linkable(encoded, policy)
        sensitive = engine.sensitive(encoded, requirements.attributes, policy.input.nulls)
        requirements.check_feasible(_as_one_class(encoded.records, sensitive))
    return Prepared(encoded, sensitive, source, options, _warnings(policy))


def draft_release(data: object, policy: Policy, progress: Progress) -> Draft:
    """The released table and all that is known of it, not yet audited."""
    with on_compilation(progress.compiling):
        prepared = prepare(data, policy, progress)
        encoded, source = prepared.encoded, prepared.source
        engine = MemoryEngine(progress)
        method = method_named(policy.method.name)
        requirements = requirements_of(policy)
        bounds = policy.release.form == "bounds"
        warnings = prepared.warnings
        prints = _fingerprints(encoded, policy, warnings, progress)
        weights = [policy.columns[domain.name].weight for domain in encoded.domains]
        records = engine.order(encoded, weights, prepared.sensitive)
        recoded = engine.recode(encoded, engine.assign(records, method, requirements), bounds=bounds)
        released = engine.release(
            encoded,
            recoded,
            kept_columns(policy, source.names),
            bounds=bounds,
            keep_order=policy.release.keep_order,
        )
    return Draft(
        released=released,
        engine=engine,
        policy=policy,
        requirements=requirements,
        domains=encoded.domains,
        records=encoded.records,
        chosen=method.name,
        source=source,
        data=data,
        options=prepared.options,
        fingerprints=prints,
        warnings=warnings,
        progress=progress,
    )


def load_taxonomies(policy: Policy) -> dict[str, Taxonomy]:
    """The taxonomies that are files, by column; read before the data, so that their mistakes are found at once."""
    return {
        name: read_taxonomy(policy.taxonomy_path(name), name)
        for name in policy.quasi_identifiers
        if policy.columns[name].taxonomy_file is not None
    }


def audit(
    release: object, policy: Policy | None = None, *, original: object | None = None, **flags: Any
) -> AuditReport:
    """What holds in a finished release, also one made elsewhere.

    ``release`` is a file or a frame. Without a policy the certificate beside the file says what to check; flags go over
    either. With the ``original`` the columns that were kept are compared as well.
    """
    asked, source, certified = _released(release, policy, flags)
    requirements = requirements_of(asked)
    classes = find_classes(source, class_key(asked, source.names), by_row=bool(requirements.attributes))
    report = audit_classes(source, classes, asked, requirements)
    verdicts, remarks = list(report.verdicts), list(report.remarks)
    if isinstance(release, str | Path):
        if certified is None:
            remarks.append("there is no certificate beside the release: it is incomplete, or was made elsewhere")
        else:
            verdicts.append(_unchanged(Path(release), certified))
    if original is not None:
        verdicts += _kept_columns_hold(source, open_source(original, InputOptions(**asked.input.model_dump())), asked)
    return replace(report, verdicts=tuple(verdicts), remarks=tuple(remarks))


def measure(
    original: object,
    release: object,
    policy: Policy | None = None,
    *,
    target: str | None = None,
    queries: int | None = None,
    bins: Mapping[str, Sequence[object]] | None = None,
    range_queries: int | None = None,
    range_attributes: int | None = None,
    selectivity: float = 0.05,
    seed: int = 0,
    **flags: Any,
) -> Measured:
    """Every loss of a release, measured from the two tables alone. ``target`` names the class column for CM.

    ``queries`` is the level of the datacube to compare, ``bins`` the edges of its cells for columns of many numbers.
    ``range_queries`` is how many random range-count queries to ask, each on ``range_attributes`` quasi-identifiers
    (all when absent) with about the share ``selectivity`` of the records in its answer. Both count the values of every
    sensitive column, or of the target where there is one.
    """
    asked, source, _ = _released(release, policy, flags)
    requirements = requirements_of(asked)
    options = InputOptions(**asked.input.model_dump())
    original_source = open_source(original, options)
    taxonomies = load_taxonomies(asked)
    for name in asked.quasi_identifiers:
        if name not in original_source.names:
            raise UsageError.unknown_column(name, "the policy", original_source.names)
    workload = Workload(
        level=queries,
        ranges=range_queries,
        selectivity=selectivity,
        range_attributes=range_attributes,
        seed=seed,
        bins=bins or {},
    )
    queried = () if workload.empty else queried_columns(asked, target, original_source, source)
    workload.check(asked.quasi_identifiers, queried)
    engine = MemoryEngine(Progress())
    scanned = engine.scan(original_source, [*asked.quasi_identifiers, *queried])
    encoders = engine.profile(scanned, asked, options, taxonomies)
    domains = [encoder.domain for encoder in encoders]
    by_row = target is not None or not workload.empty
    classes = find_classes(source, class_key(asked, source.names), by_row=by_row)
    losses = measure_release(
        classes,
        domains,
        [asked.columns[domain.name].weight for domain in domains],
        records=scanned.records,
        k=requirements.least_class,
        majority=None if target is None else majorities(source, classes, target),
    )
    answered: tuple[QueryAccuracy, ...] = ()
    if not workload.empty:
        quasi = replace(scanned, table=scanned.table.select(asked.quasi_identifiers))
        codes = engine.encode(quasi, encoders).codes
        sensitive = {name: scanned.table.column(name) for name in queried}
        answered = measure_queries(workload, codes, domains, sensitive, source, classes, decimal=options.decimal)
    return Measured(losses.values, losses.columns, losses.suppressed, answered)


def _released(
    release: object, policy: Policy | None, flags: Mapping[str, Any]
) -> tuple[Policy, Source, dict[str, Any] | None]:
    """What to check, the release to read, and its certificate where it has one."""
    certified = read_certificate(Path(release)) if isinstance(release, str | Path) else None
    if policy is None and certified is not None:
        policy = Policy.from_dict(certified["policy"], Path(release).absolute().parent)  # type: ignore[arg-type]
    if policy is None and not flags:
        raise UsageError(
            "nothing says what to check: there is no certificate beside the release. "
            "Give a policy, or the quasi-identifiers and k."
        )
    asked = merge_flags(policy, **flags)
    asked.check_complete()
    # Our own releases are always UTF-8; what was made elsewhere is read as the policy says.
    options = asked.input.model_dump() if certified is None else {"separator": asked.input.separator}
    return asked, open_source(release, InputOptions(**options)), certified


def _unchanged(release: Path, certified: Mapping[str, Any]) -> Verdict:
    expected = [file["sha256"] for file in certified["files"] if file["name"] == release.name]
    return Verdict("the file is the one that was certified", expected == [file_digest(release)], len(expected))


def _kept_columns_hold(source: Source, original: Source, policy: Policy) -> list[Verdict]:
    """Whether every kept column shows no value more often than the original did."""
    recoded = set(class_key(policy, source.names))
    verdicts = []
    for name in source.names:
        if name in recoded:
            continue
        if name not in original.names:
            verdicts.append(Verdict(f"the column {name!r} is in the original", False, 0))
            continue
        released, before = (find_classes(one, [name]) for one in (source, original))
        counts = _counts_by_text(before, name, original.types[name])
        shown = _counts_by_text(released, name, source.types[name])
        surplus = sum(max(count - counts.get(text, 0), 0) for text, count in shown.items())
        verdicts.append(Verdict(f"the kept column {name!r} holds values of the original", surplus == 0, surplus))
    return verdicts


def _counts_by_text(classes: ReleasedClasses, name: str, kind: pa.DataType) -> dict[str | None, int]:
    """How often each value occurs, by the text that a CSV file has for it: the two tables may be of different kinds."""
    values = pa.array(classes.values[name], kind)
    try:
        texts = values.cast(pa.string()).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        texts = [None if value is None else str(value) for value in classes.values[name]]
    counts: dict[str | None, int] = {}
    for shown, size in zip(classes.shown[name].tolist(), classes.sizes.tolist(), strict=True):
        counts[texts[shown]] = counts.get(texts[shown], 0) + size
    return counts


def _as_one_class(records: int, sensitive: Mapping[str, SensitiveValues]) -> ClassCounts:
    """The whole table as a class: what it does not meet, no partition of it can."""
    histograms = {}
    for name, values in sensitive.items():
        counts = values.counts()
        occurring = np.flatnonzero(counts)
        owner = np.zeros(len(occurring), np.int64)
        histograms[name] = Histogram(owner, counts[occurring], occurring, values.reference(), values.numbers)
    return ClassCounts(np.array([records]), histograms)


def _check_bound_names(policy: Policy, names: Sequence[str]) -> None:
    if policy.release.form != "bounds":
        return
    for name in policy.quasi_identifiers:
        for bound in (f"{name}_min", f"{name}_max"):
            if bound in names:
                raise PolicyError(
                    f'form = "bounds" adds the column {bound!r}, which the table has already. Rename or drop it.'
                )


def _check_linkable(encoded: Encoded, policy: Policy) -> None:
    accepted = {*policy.accept_linkable, *policy.sensitive}
    others: list[CarriedColumn] = [column for column in encoded.carried if column.name not in accepted]
    found = linkable_columns(others, encoded.codes, encoded.domains)
    if found:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in found.items())
        raise PolicyError(
            f"kept columns would undo the release: {reasons}. Drop them (role identifier), make them "
            "quasi-identifiers, or list them in accept_linkable if nobody else can know them."
        )


def _warnings(policy: Policy) -> list[str]:
    found = []
    required = {asked.attribute for asked in policy.privacy.sensitive}
    unprotected = [name for name in policy.sensitive if name not in required]
    if unprotected:
        names = ", ".join(repr(name) for name in unprotected)
        found.append(
            f"the sensitive column {names} is released as it is: k-anonymity hides who a record is, not what it says; "
            "a class whose records all share one value reveals it"
        )
    if policy.release.keep_order:
        found.append("rows keep the order of the input, which can tell who they are when that order is known")
    return found


def _fingerprints(encoded: Encoded, policy: Policy, warnings: list[str], progress: Progress) -> dict[str, str]:
    with progress.phase("check"):
        try:
            prints = fingerprints(encoded.codes, encoded.domains)
            earlier = earlier_releases(prints, policy)
        except OSError:
            warnings.append(
                "no run record can be kept (the state directory is not writable), so an earlier release of this table "
                "under another policy would go unnoticed"
            )
            return {}
    if earlier:
        warnings.append(
            f"this table was released {earlier:,} time{'s' if earlier > 1 else ''} before under another policy: "
            "whoever has both releases can intersect their classes, which may be smaller than k"
        )
    return prints
