"""What each engine can do: one table. Runs are refused from it before anything is read, and the docs print it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sfumato.errors import UsageError
from sfumato.methods import (
    AUTO,
    ForNumbers,
    Kinds,
    Method,
    check_loss,
    check_method,
    chosen_name,
    method_named,
    methods,
)
from sfumato.methods.lattice.lattice_method import LatticeMethod
from sfumato.methods.search.exact_programme import check_solver
from sfumato.policy import Policy

MEMORY, DISK, SPARK = "memory", "disk", "spark"
ENGINES = (MEMORY, DISK, SPARK)
EXACT: Final = "exact"


@dataclass(frozen=True)
class Feature:
    """Something that a policy, a flag or a call may ask for.

    name: as users write it. asked: whether a policy asks for it; flags and calls name the feature themselves. engines:
    those that have it with every method. on_levels: those that have it with methods on the lattice of levels alone.
    """

    name: str
    meaning: str
    engines: tuple[str, ...]
    asked: Callable[[Policy], bool] = lambda policy: False
    on_levels: tuple[str, ...] = ()

    def has(self, engine: str, method: Method | None = None) -> bool:
        """Whether an engine has the feature with a method; without one, with every method."""
        return engine in self.engines or (engine in self.on_levels and isinstance(method, LatticeMethod))

    def refuse_on(self, engine: str, method: Method | None = None) -> None:
        """Raise UsageError if the engine does not have the feature with the method."""
        if engine in ENGINES and not self.has(engine, method):
            others = [f"--engine {other}" for other in self.engines]
            others += ["--method global"] if engine in self.on_levels else []
            raise UsageError(
                f"the {engine} engine does not support {self.name}. Leave it out, or choose {' or '.join(others)}."
            )

    def cell(self, engine: str) -> str:
        """Return whether an engine has the feature, as the docs say it."""
        if engine in self.engines:
            return "yes"
        return _names_on_levels() if engine in self.on_levels else "-"


def _names_on_levels() -> str:
    return ", ".join(f"`{name}`" for name, method in methods().items() if isinstance(method, LatticeMethod))


def _from_another_package(policy: Policy) -> bool:
    return not policy.requirements().decided_by_kernel


def _has_coarsest(policy: Policy) -> bool:
    return any(column.coarsest is not None for column in policy.columns.values())


PERSON = Feature("person", "k and l counted in persons", (MEMORY,), lambda policy: policy.privacy.person is not None)
JOINT = Feature("joint", "several sensitive columns jointly", (MEMORY,), lambda policy: policy.privacy.joint)
DERIVE = Feature("derive", "columns that the policy derives", (MEMORY, DISK), lambda policy: bool(policy.derive))
PSEUDONYMS = Feature("pseudonym", "pseudonyms made with a key", (MEMORY, DISK), lambda policy: bool(policy.pseudonyms))
DRY_RUN = Feature("--dry-run", "how the table is understood, without a release", (MEMORY, DISK))
EXPLAIN = Feature("--explain", "passes, bytes and memory, planned and counted", (MEMORY, DISK))
BOUND = Feature("--bound", "the least possible loss beside the release", (MEMORY, DISK))
REPORT = Feature("--report", "the report, made with the release", (MEMORY, DISK))
REPORT_PRIVATE = Feature("--report-private", "the private report, made with the release", (MEMORY, DISK))
SHARED_POLICY = Feature("--shareable-policy", "the policy to share, written with the release", (MEMORY, DISK))
CODEBOOK = Feature(
    "codebook", "a page that explains the release", (MEMORY, DISK), lambda policy: policy.release.codebook
)
PLOT = Feature("plot", "pictures by the release object", (MEMORY, DISK))
AGGREGATES = Feature("aggregates", "aggregates by the release object", (MEMORY, DISK))
STATISTICAL_FILES = Feature("files of SPSS, Stata and SAS", "files of statistical programs", (MEMORY, DISK))
LINKED = Feature("linked", "tables about the same persons, released together", (MEMORY,))
LEARNING = Feature("fit", "rules learnt for further tables", (MEMORY, DISK))

RELEASE_FEATURES = (
    Feature(
        "max_suppressed",
        "records left out",
        (MEMORY,),
        lambda policy: policy.release.max_suppressed_fraction > 0,
        (DISK, SPARK),
    ),
    Feature("keep_order", "rows in the order of the input", (MEMORY, DISK), lambda policy: policy.release.keep_order),
    Feature('form = "bounds"', "typed bounds beside the labels", ENGINES, lambda policy: policy.asks_for("bounds")),
    Feature('form = "mean"', "means of classes", (MEMORY,), lambda policy: policy.asks_for("mean")),
    Feature('form = "median"', "medians of classes", (MEMORY,), lambda policy: policy.asks_for("median")),
    Feature(
        'form = "statistics"', "bounds and means of classes", (MEMORY,), lambda policy: policy.asks_for("statistics")
    ),
    Feature('boxes = "regions"', "regions of the domain", (MEMORY,), lambda policy: policy.release.boxes == "regions"),
    # A Spark task that runs again must do the same, so it cannot stop by the clock.
    Feature("seconds", "a search limited by time", (MEMORY, DISK), lambda policy: policy.method.seconds is not None),
    # Parts of a table are searched with less memory and time than exact solutions take.
    Feature("effort exact", "exact solutions of small parts", (MEMORY,), lambda policy: policy.method.effort == EXACT),
    # Spark reads the files itself.
    Feature("header_row", "names below a title", (MEMORY, DISK), lambda policy: policy.input.header_row is not None),
    Feature("layout", "text in columns of fixed width", (MEMORY, DISK), lambda policy: policy.input.layout is not None),
    Feature(
        "nulls of a column",
        "null tokens of single columns",
        (MEMORY, DISK),
        lambda policy: any(column.nulls for column in policy.columns.values()),
    ),
    # In memory they change nothing. Spark draws and tests samples as its buckets need them.
    Feature(
        "sample_size, sample_alpha or sample_tests",
        "how `sampled` draws and tests samples",
        (MEMORY, DISK),
        lambda policy: policy.engine.asks_for_sampling,
    ),
    Feature(
        "frequency_groups",
        "frequency groups counted at once",
        (MEMORY, DISK),
        lambda policy: policy.engine.frequency_groups is not None,
    ),
    Feature('loss = "sse"', "sums of squares as the loss", (MEMORY,), lambda policy: policy.method.loss == "sse"),
    Feature("coarsest", "no class beyond a level of a column", ENGINES, _has_coarsest),
    DERIVE,
    PSEUDONYMS,
    STATISTICAL_FILES,
    PERSON,
    JOINT,
    Feature("a requirement of another package", "plug-in requirements", (MEMORY, DISK), _from_another_package),
    Feature(
        "a requirement that a union of classes may break",
        "plug-in requirements that unions may break",
        (MEMORY,),
        lambda policy: not policy.requirements().closed_under_union,
    ),
    DRY_RUN,
    EXPLAIN,
    BOUND,
    REPORT,
    REPORT_PRIVATE,
    SHARED_POLICY,
    CODEBOOK,
    PLOT,
    AGGREGATES,
    LINKED,
    LEARNING,
)

# What learning rules asks for beside that. Regions are learnt on disk from counts of the whole table.
LEARNING_FEATURES = (
    LEARNING,
    Feature(
        "regions divided by selections",
        "rules for selections",
        (MEMORY,),
        lambda policy: (
            bool(policy.workload.selection) and (policy.method.name == AUTO or _rule(policy.method.name) == "selection")
        ),
    ),
    PERSON,
    JOINT,
    Feature("a requirement of another package", "plug-in requirements", (MEMORY,), _from_another_package),
)


def _rule(name: str) -> str | None:
    from sfumato.methods.trees.mondrian import MondrianMethod

    method = method_named(name)
    return method.rule if isinstance(method, MondrianMethod) else None


def takes_method(engine: str, method: Method) -> bool:
    """Whether an engine can form the classes of a method."""
    if engine == MEMORY or method.name == AUTO or isinstance(method, LatticeMethod):
        return True
    from sfumato.methods.line.optimal_cut import OptimalOneDimensional
    from sfumato.methods.trees.gain_tree import GainTree
    from sfumato.methods.trees.mondrian import MondrianMethod

    if isinstance(method, OptimalOneDimensional):
        # An ordering from another package may not say.
        return getattr(method.ordering, "needs_no_table", False)
    if isinstance(method, MondrianMethod):
        return not method.baseline and (engine == SPARK or method.splits == "strict")
    return engine == SPARK and isinstance(method, GainTree)


def learns_by(engine: str, method: Method) -> bool:
    """Whether an engine can learn rules by a method. Samples and selections need the records in memory."""
    from sfumato.methods.trees.mondrian import MondrianMethod

    if engine == DISK:
        learnt = isinstance(method, MondrianMethod) and takes_method(DISK, method) and method.rule != "selection"
        return learnt or isinstance(method, LatticeMethod)
    return engine == MEMORY


def check_method_of(policy: Policy) -> None:
    """Refuse a method that cannot meet the requirements, or that has no place for what the release should show."""
    from sfumato.releases.learn_recoding import regional

    method = method_named(chosen_name(policy.method.name, None, policy.method.loss))
    _check_loss(policy, method)
    regions = policy.release.boxes == "regions"
    if regions and policy.method.cells:
        raise UsageError("rules for further tables suppress no single cells. Remove --cells.")
    if regions and not isinstance(method, LatticeMethod):
        method = regional(method)
    if policy.method.cells and not (isinstance(method, LatticeMethod) and method.suppresses_cells):
        raise UsageError(
            f"cells are suppressed by the method global alone, and the policy names {policy.method.name}. Remove "
            "--cells, or choose --method global."
        )
    divides = regions and not isinstance(method, LatticeMethod)
    if _has_coarsest(policy) and (method.separates or divides):
        with_what = f"the method {method.name}" if method.separates else "regions that apply to new records"
        raise UsageError(f"coarsest does not go with {with_what}. Remove one of the two.")
    if method.separates and (policy.release.keep_order or policy.numbered):
        key = "keep_order" if policy.release.keep_order else "form"
        raise UsageError(f"{key} does not go with {policy.method.name}. Remove one of the two.")
    check_method(method, policy.requirements(), Kinds.of(policy.workload))
    if policy.method.effort == EXACT:
        check_solver()


def _check_loss(policy: Policy, method: Method) -> None:
    """Refuse what does not go with sums of squares, as far as the policy says it."""
    check_loss(method, policy.method.loss)
    if not isinstance(method, ForNumbers):
        return
    unfit = {
        "a workload": bool(policy.workload),
        'boxes = "regions"': policy.release.boxes == "regions",
        "max_suppressed": policy.release.max_suppressed_fraction > 0,
    }
    for name, asked in unfit.items():
        if asked:
            raise UsageError(f"{name} does not go with classes by sums of squares. Remove one of the two.")
    for name in policy.quasi_identifiers:
        column = policy.columns[name]
        if column.taxonomy is not None or column.implied_type == "categorical":
            raise UsageError.column_without_mean(name)


def refuse_unsupported(engine: str, policy: Policy) -> None:
    """Refuse a release that the engine cannot make, before the table is read. ``auto`` chooses one that can."""
    if engine not in ENGINES:
        return
    name = policy.method.name
    method = method_named(chosen_name(name, None, policy.method.loss))
    for feature in RELEASE_FEATURES:
        if feature.asked(policy):
            feature.refuse_on(engine, method)
    if not takes_method(engine, method):
        able = ", ".join(known for known, method in methods().items() if takes_method(engine, method))
        raise UsageError(
            f"the {engine} engine does not support the method {name!r}. Choose one of {able}, or --engine memory."
        )


def refuse_unsupported_learning(engine: str, policy: Policy) -> None:
    """Refuse to learn rules that the engine cannot learn, before the table is read."""
    from sfumato.releases.learn_recoding import regional

    asked = method_named(policy.method.name)
    for feature in LEARNING_FEATURES:
        if feature is LEARNING or feature.asked(policy):
            feature.refuse_on(engine, asked)
    if engine == DISK:
        if policy.engine.sampled:
            raise UsageError("rules are learnt from counts of the whole table, never from samples. Remove --sampled.")
        method = asked if isinstance(asked, LatticeMethod) else regional(asked)
        if not learns_by(engine, method):
            raise UsageError(
                f"the disk engine does not support learning rules by {method.name!r}. Choose mondrian, or --engine "
                "memory."
            )


def as_markdown() -> str:
    """Return the table of engines and features as the docs have it."""
    from sfumato.releases.learn_recoding import learns_rules

    lines = ["| feature | " + " | ".join(ENGINES) + " |", "|---" * (len(ENGINES) + 1) + "|"]

    def row(text: str, engines: tuple[str, ...]) -> str:
        return f"| {text} | " + " | ".join("yes" if engine in engines else "-" for engine in ENGINES) + " |"

    for feature in RELEASE_FEATURES:
        cells = " | ".join(feature.cell(engine) for engine in ENGINES)
        lines.append(f"| {feature.meaning} (`{feature.name}`) | {cells} |")
    by_engines: dict[tuple[str, ...], list[str]] = {}
    for name, method in methods().items():
        able = tuple(engine for engine in ENGINES if takes_method(engine, method))
        by_engines.setdefault(able, []).append(f"`{name}`")
    lines += [row("methods: " + ", ".join(names), engines) for engines, names in by_engines.items()]
    lines += [
        row(f"rules by `{name}`", tuple(engine for engine in ENGINES if learns_by(engine, method)))
        for name, method in methods().items()
        if learns_rules(method)
    ]
    lines += [row(f"rules with {feature.name}", feature.engines) for feature in LEARNING_FEATURES[1:]]
    return "\n".join(lines) + "\n"
