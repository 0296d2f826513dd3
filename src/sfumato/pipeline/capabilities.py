"""What each engine can do: one table. Runs are refused from it before anything is read, and the docs print it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sfumato.errors import UsageError
from sfumato.methods import AUTO, Kinds, Method, check_method, chosen_name, method_named, methods
from sfumato.methods.auto import Auto
from sfumato.methods.line.optimal_cut import OptimalOneDimensional
from sfumato.methods.trees.gain_tree import GainTree
from sfumato.methods.trees.mondrian import MondrianMethod
from sfumato.policy import Policy
from sfumato.releases.learn_recoding import has_regions, regional

MEMORY, DISK, SPARK = "memory", "disk", "spark"
ENGINES = (MEMORY, DISK, SPARK)


@dataclass(frozen=True)
class Feature:
    """Something that a policy, a flag or a call may ask for.

    name: as users write it. asked: whether a policy asks for it; flags and calls name the feature themselves.
    """

    name: str
    meaning: str
    engines: tuple[str, ...]
    asked: Callable[[Policy], bool] = lambda policy: False

    def refuse_on(self, engine: str) -> None:
        """Raise UsageError if the engine does not have the feature."""
        if engine in ENGINES and engine not in self.engines:
            others = " or ".join(f"--engine {other}" for other in self.engines)
            raise UsageError(f"the {engine} engine does not support {self.name}. Leave it out, or choose {others}.")


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
PLOT = Feature("plot", "pictures by the release object", (MEMORY, DISK))
AGGREGATES = Feature("aggregates", "aggregates by the release object", (MEMORY, DISK))
LEARNING = Feature("fit", "rules learnt for further tables", (MEMORY, DISK))

RELEASE_FEATURES = (
    Feature(
        "max_suppressed",
        "records left out",
        (MEMORY,),
        lambda policy: policy.release.max_suppressed_fraction > 0,
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
    Feature("coarsest", "no class beyond a level of a column", ENGINES, _has_coarsest),
    DERIVE,
    PSEUDONYMS,
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
    PLOT,
    AGGREGATES,
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
    method = method_named(name)
    return method.rule if isinstance(method, MondrianMethod) else None


def takes_method(engine: str, method: Method) -> bool:
    """Whether an engine can form the classes of a method."""
    if engine == MEMORY or isinstance(method, Auto):
        return True
    if isinstance(method, OptimalOneDimensional):
        # An ordering from another package may not say.
        return getattr(method.ordering, "needs_no_table", False)
    if engine == DISK:
        return isinstance(method, MondrianMethod) and method.splits == "strict"
    return isinstance(method, MondrianMethod | GainTree)


def learns_by(engine: str, method: Method) -> bool:
    """Whether an engine can learn rules by a method. Samples and selections need the records in memory."""
    if engine == DISK:
        return isinstance(method, MondrianMethod) and method.splits == "strict" and method.rule != "selection"
    return engine == MEMORY


def check_method_of(policy: Policy) -> None:
    """Refuse a method that cannot meet the requirements, or that has no place for what the release should show."""
    method = method_named(policy.method.name)
    if policy.release.boxes == "regions":
        method = regional(method)
    if _has_coarsest(policy) and (method.separates or policy.release.boxes == "regions"):
        with_what = f"the method {method.name}" if method.separates else "regions that apply to new records"
        raise UsageError(f"coarsest does not go with {with_what}. Remove one of the two.")
    if method.separates and (policy.release.keep_order or policy.numbered):
        key = "keep_order" if policy.release.keep_order else "form"
        raise UsageError(f"{key} does not go with {policy.method.name}. Remove one of the two.")
    check_method(method, policy.requirements(), Kinds.of(policy.workload))


def refuse_unsupported(engine: str, policy: Policy) -> None:
    """Refuse a release that the engine cannot make, before the table is read. ``auto`` chooses one that can."""
    if engine not in ENGINES:
        return
    for feature in RELEASE_FEATURES:
        if feature.asked(policy):
            feature.refuse_on(engine)
    name = policy.method.name
    if not takes_method(engine, method_named(chosen_name(name, None))):
        able = ", ".join(known for known, method in methods().items() if takes_method(engine, method))
        raise UsageError(
            f"the {engine} engine does not support the method {name!r}. Choose one of {able}, or --engine memory."
        )


def refuse_unsupported_learning(engine: str, policy: Policy) -> None:
    """Refuse to learn rules that the engine cannot learn, before the table is read."""
    for feature in LEARNING_FEATURES:
        if feature is LEARNING or feature.asked(policy):
            feature.refuse_on(engine)
    if engine == DISK:
        if policy.engine.sampled:
            raise UsageError("rules are learnt from counts of the whole table, never from samples. Remove --sampled.")
        method = regional(method_named(policy.method.name))
        if not learns_by(engine, method):
            raise UsageError(
                f"the disk engine does not support learning rules by {method.name!r}. Choose mondrian, or --engine "
                "memory."
            )


def as_markdown() -> str:
    """Return the table of engines and features as the docs have it."""
    lines = ["| feature | " + " | ".join(ENGINES) + " |", "|---" * (len(ENGINES) + 1) + "|"]

    def row(text: str, engines: tuple[str, ...]) -> str:
        return f"| {text} | " + " | ".join("yes" if engine in engines else "-" for engine in ENGINES) + " |"

    lines += [row(f"{feature.meaning} (`{feature.name}`)", feature.engines) for feature in RELEASE_FEATURES]
    by_engines: dict[tuple[str, ...], list[str]] = {}
    for name, method in methods().items():
        able = tuple(engine for engine in ENGINES if takes_method(engine, method))
        by_engines.setdefault(able, []).append(f"`{name}`")
    lines += [row("methods: " + ", ".join(names), engines) for engines, names in by_engines.items()]
    lines += [
        row(f"rules by `{name}`", tuple(engine for engine in ENGINES if learns_by(engine, method)))
        for name, method in methods().items()
        if has_regions(method)
    ]
    lines += [row(f"rules with {feature.name}", feature.engines) for feature in LEARNING_FEATURES[1:]]
    return "\n".join(lines) + "\n"
