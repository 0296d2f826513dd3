"""What a policy may hold. Only what is enforced is accepted; anything else is an error, never ignored."""

from __future__ import annotations

import numbers
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Self, get_args

import tomli_w
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    StrictBool,
    Tag,
    ValidationError,
    model_validator,
)

from sfumato.errors import InputError, OutputError, PolicyError, UsageError
from sfumato.parameters import byte_size, is_positive, positive_number, whole_number
from sfumato.policy.error_text import (
    FILE_TAG,
    GROUPING_TAG,
    explain,
    instead,
    listed,
    unknown_choice,
    unknown_key,
    unknown_key_sentence,
    wrong,
)
from sfumato.policy.input_options import InputOptions
from sfumato.policy.section import PolicySection, given_name, table_list, text_list
from sfumato.policy.toml_lines import Origin, key_lines
from sfumato.policy.workload import LeastGain, WorkloadSettings, check_roles

if TYPE_CHECKING:
    from sfumato.requirements import Requirement, Requirements

Role = Literal["identifier", "quasi-identifier", "sensitive", "other", "decide"]
ColumnType = Literal["numeric", "categorical", "date"]
CalendarUnit = Literal["week", "month", "quarter", "year", "decade"]
NullSensitive = Literal["missing", "value"]
EffortName = Literal["fast", "balanced", "best"]
EngineName = Literal["auto", "memory", "disk", "spark"]
ReleaseForm = Literal["labels", "bounds", "statistics"]
BoxKind = Literal["smallest", "regions"]

FLAT = "flat"
FEWEST_FOR_STATISTICS = 5  # records of a class whose mean is released
LARGEST_SEED = 2**63 - 1  # the largest integer that every reader of TOML accepts
_DIRECTIVES = frozenset("aAwdbBmyYHIMpfzZjUWcxXGuV")


def _grid(value: Any) -> int | float:
    """Whole numbers stay whole: a grid of 5 is exact."""
    number = positive_number(value)
    return int(value) if isinstance(value, numbers.Integral) else number


def _is_ascending(items: Sequence[Any]) -> bool:
    return len(items) > 0 and all(low < high for low, high in pairwise(items))


def _interval_widths(value: Any) -> tuple[int | float, ...]:
    if not isinstance(value, list | tuple) or not all(map(is_positive, value)) or not _is_ascending(value):
        raise wrong("must be a list of finite numbers above 0, each larger than the one before")
    return tuple(map(_grid, value))


def _prefix_lengths(value: Any) -> tuple[int, ...]:
    is_list = isinstance(value, list | tuple)
    if not is_list or not all(isinstance(item, numbers.Integral) and is_positive(item) for item in value):
        raise wrong("must be a list of whole numbers of at least 1")
    if not _is_ascending(value):
        raise wrong("must be a list of whole numbers, each larger than the one before")
    return tuple(map(int, value))


def _calendar_units(value: Any) -> tuple[str, ...]:
    units = get_args(CalendarUnit)
    if (
        not isinstance(value, list | tuple)
        or not all(isinstance(item, str) and item in units for item in value)
        or not _is_ascending([units.index(item) for item in value])
    ):
        raise wrong(f"must be a list of units out of {listed(units)}, from fine to coarse")
    return tuple(value)


def _separator(value: Any) -> str:
    if not isinstance(value, str) or len(value) != 1 or not value.isascii() or value in '"\r\n\0':
        raise wrong("must be one ASCII character other than a quotation mark or a line break")
    return value


def _encoding(value: Any) -> str:
    try:
        "a".encode(value)
    except (LookupError, TypeError, ValueError):
        raise wrong('must be an encoding that Python knows, such as "utf-8" or "cp1252"') from None
    return str(value)


def _date_format(value: Any) -> str | None:
    if value is None:
        return None
    directives = re.findall(r"%(.?)", value, re.DOTALL) if isinstance(value, str) else []
    if not _DIRECTIVES.intersection(directives) or not _DIRECTIVES.union("%").issuperset(directives):
        raise wrong('must be made of the directives of strptime, such as "%d.%m.%Y"')
    return str(value)


def _column_name(value: Any) -> str:
    """Half a surrogate pair, which Python allows in a string, would be lost on the way to a file."""
    if not isinstance(value, str) or any("\ud800" <= character <= "\udfff" for character in value):
        raise wrong("must be text that UTF-8 can hold")
    return value


def _optional_name(value: Any) -> str | None:
    return None if value is None else given_name(value)


def _fraction(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= float(value) < 1:
        raise wrong("must be a number of at least 0 and below 1")
    return float(value)


def _taxonomy_file(value: Any) -> str:
    path = path_text(value) if isinstance(value, str | os.PathLike) else ""
    if not path or "\0" in path:
        raise wrong('must be the path of a file, "flat" or a table')
    return path


def _taxonomy_form(value: Any) -> str:
    return GROUPING_TAG if isinstance(value, dict | Grouping) else FILE_TAG


class InputSettings(PolicySection):
    """How text is read: CSV files, and numbers and dates that are written as text."""

    separator: Annotated[str, BeforeValidator(_separator)] = ","
    encoding: Annotated[str, BeforeValidator(_encoding)] = "utf-8"
    decimal: Literal[".", ","] = "."
    nulls: Annotated[tuple[str, ...], BeforeValidator(text_list)] = ("",)
    date_format: Annotated[str | None, BeforeValidator(_date_format)] = None
    sheet: Annotated[str | None, BeforeValidator(_optional_name)] = None

    @model_validator(mode="after")
    def _check_decimal(self) -> Self:
        if self.decimal == self.separator:
            key, other = ("decimal", "separator") if "decimal" in self.model_fields_set else ("separator", "decimal")
            raise wrong(f"is {self.decimal!r} and so is the {other}. Set the two to different characters", key)
        return self


class Grouping(PolicySection):
    """A taxonomy written as a rule: exactly one of the three."""

    intervals: Annotated[tuple[int | float, ...] | None, BeforeValidator(_interval_widths)] = None
    calendar: Annotated[tuple[CalendarUnit, ...] | None, BeforeValidator(_calendar_units)] = None
    prefix: Annotated[tuple[int, ...] | None, BeforeValidator(_prefix_lengths)] = None

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise wrong("must have exactly one of the keys intervals, calendar and prefix", show=False)
        return self


Taxonomy = Annotated[
    Annotated[str, BeforeValidator(_taxonomy_file), Tag(FILE_TAG)] | Annotated[Grouping, Tag(GROUPING_TAG)],
    Discriminator(_taxonomy_form),
]


class ColumnSettings(PolicySection):
    """What a column is. All keys but the role describe quasi-identifiers; a sensitive column may have a taxonomy."""

    role: Role
    type: ColumnType | None = None
    round: Annotated[int | float, BeforeValidator(_grid)] | None = None
    taxonomy: Taxonomy | None = None
    weight: Annotated[float, BeforeValidator(positive_number)] = 1.0
    mean_round: Annotated[int | float, BeforeValidator(_grid)] | None = None
    """What means are multiples of, where a release has them."""

    @property
    def taxonomy_file(self) -> str | None:
        """The path of the taxonomy as it was given, if the taxonomy is a file."""
        return self.taxonomy if isinstance(self.taxonomy, str) and self.taxonomy != FLAT else None

    @property
    def implied_type(self) -> ColumnType | None:
        """The type, said outright or by the taxonomy; None when the data decide."""
        if self.taxonomy is None:
            return self.type
        if isinstance(self.taxonomy, Grouping) and self.taxonomy.intervals is not None:
            return "numeric"
        if isinstance(self.taxonomy, Grouping) and self.taxonomy.calendar is not None:
            return "date"
        return "categorical"

    @model_validator(mode="after")
    def _check_keys_fit(self) -> Self:
        if self.role != "quasi-identifier":
            for key in type(self).model_fields:
                given = key in self.model_fields_set and getattr(self, key) is not None
                if key == "taxonomy" and given and self.role == "sensitive":
                    if self.taxonomy_file is None:
                        raise wrong("of a sensitive column must be a file", key)
                elif key != "role" and given:
                    raise wrong("is only for quasi-identifiers. Remove it, or change the role", key)
        if self.type is not None and self.type != self.implied_type:
            made = self.implied_type
            raise wrong(f"is {self.type!r}, but the taxonomy makes the column {made}. Remove one of the two", "type")
        if self.round is not None and self.taxonomy is not None:
            raise wrong("does not go with a taxonomy. Remove one of the two", "round")
        if self.round is not None and self.type not in {None, "numeric"}:
            raise wrong(f"is only for numbers, but the type is {self.type!r}. Remove one of the two", "round")
        if self.mean_round is not None and self.implied_type == "categorical":
            raise wrong(
                "is only for numbers and dates, and the column is categorical. Remove one of the two", "mean_round"
            )
        return self


def _kinds() -> dict[str, type[Requirement]]:
    # Only a policy that names a requirement loads what requirements need.
    from sfumato.requirements import kinds

    return kinds()


class SensitiveRequirement(PolicySection):
    """What every class must meet in one sensitive column; the other keys are the parameters that its kind declares."""

    model_config = ConfigDict(extra="allow", frozen=True)

    attribute: Annotated[str, BeforeValidator(given_name)]
    kind: str

    def parameters(self) -> dict[str, Any]:
        """The parameters of the kind that were given."""
        return dict(self.model_extra or {})

    def requirement(self) -> Requirement:
        """What is asked for, as methods and audit take it."""
        return _kinds()[self.kind](self.attribute, **self.parameters())  # type: ignore[call-arg]

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = _kinds()
        for name in ("attribute", "kind"):
            if name not in data:
                raise wrong(f"is missing. Choose one of {listed(known)}" if name == "kind" else "is missing", name)
        kind = data["kind"]
        if kind not in known:
            raise unknown_choice("kind", kind, list(known))
        declared = known[kind].parameters
        every = {name for one in known.values() for name in one.parameters}
        checked = {}
        for key, value in data.items():
            if key in declared:
                try:
                    checked[key] = declared[key].check(value)
                except ValueError as error:
                    raise wrong(f"{error}{instead(value)}", key) from None
            elif key in every:
                has = listed(declared) if declared else "no parameters"
                raise wrong(f"does not belong to the kind {kind!r}, which has {has}. Remove it", key)
            elif key not in ("attribute", "kind"):
                raise unknown_key(key, ["attribute", "kind", *declared])
            else:
                checked[key] = value
        for key, parameter in declared.items():
            if parameter.required and key not in data:
                shown = known[kind].example.get(key)
                example = "" if shown is None else f", such as {key} = {shown}"
                raise wrong(f"is missing: the kind {kind!r} needs it{example}", key)
        return checked


class PrivacySettings(PolicySection):
    """What every class of the release must meet."""

    k: Annotated[int, BeforeValidator(whole_number(1))] | None = None
    person: Annotated[str | None, BeforeValidator(_optional_name)] = None
    """The column that says whose a record is: persons are then counted, not records."""
    sensitive: Annotated[tuple[SensitiveRequirement, ...], BeforeValidator(table_list("privacy.sensitive"))] = ()
    joint: StrictBool = False
    """Each sensitive column must hold with the others as quasi-identifiers."""
    null_sensitive: NullSensitive = "missing"
    """What a null in a sensitive column is: no value, so that it protects nobody, or a value like another."""


class MethodSettings(PolicySection):
    """How classes are found. Which names there are, the methods know."""

    name: Annotated[str, BeforeValidator(given_name)] = "auto"
    effort: EffortName = "fast"
    """How long a search for less loss goes on, where the method has one."""
    seconds: Annotated[float, BeforeValidator(positive_number)] | None = None
    """So long instead; the same seed then no longer gives the same bytes."""
    least_gain: LeastGain = 0.01
    """Where a split gains less for the workload, regions are divided at the median."""


class EngineSettings(PolicySection):
    """What the computation runs on."""

    name: EngineName = "auto"
    memory: Annotated[int, BeforeValidator(byte_size)] | None = None
    """How much memory a run may take, in bytes; what is written as 2GB is read as such."""
    sampled: StrictBool = False
    """On disk, does mondrian find its first splits on a sample? It reads less, and its classes are others."""


class ReleaseSettings(PolicySection):
    """How the release is written."""

    seed: Annotated[int, BeforeValidator(whole_number(0, LARGEST_SEED))] | None = None
    keep_order: StrictBool = False
    max_suppressed_fraction: Annotated[float, BeforeValidator(_fraction)] = 0.0
    """The share of the records that may be left out."""
    form: ReleaseForm = "labels"
    """What is told of a class: labels, also typed bounds, or bounds and the mean of each number."""
    boxes: BoxKind = "smallest"
    """What a class shows: the smallest box around its records, or its region, which holds for further records too."""

    @property
    def bounds(self) -> bool:
        """Are there typed columns of bounds?"""
        return self.form != "labels"

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        if self.form == "statistics" and self.boxes == "regions":
            raise wrong(
                "is 'regions', which hold for further records, but statistics are those of one table. Choose another "
                "form, or the smallest boxes",
                "boxes",
                show=False,
            )
        return self


class NamedDomain(Protocol):
    """The values that one column can take; only its name counts here."""

    @property
    def name(self) -> str: ...


class Policy(PolicySection):
    """All that the user decides about a release."""

    other: Literal["keep", "drop"] | None = None
    accept_linkable: Annotated[tuple[str, ...], BeforeValidator(text_list)] = ()
    input: InputSettings = InputSettings()
    columns: dict[Annotated[str, BeforeValidator(_column_name)], ColumnSettings] = Field(default_factory=dict)
    privacy: PrivacySettings = PrivacySettings()
    workload: WorkloadSettings = WorkloadSettings()
    method: MethodSettings = MethodSettings()
    engine: EngineSettings = EngineSettings()
    release: ReleaseSettings = ReleaseSettings()
    base: Path | None = Field(default=None, exclude=True)
    """Where relative paths of taxonomies start: the policy file's directory; None is the working directory."""

    _origin: Origin = PrivateAttr(default_factory=Origin)

    @classmethod
    def of(cls, policy: PolicyLike | None) -> Policy:
        """A policy from any of the forms in which it may be given; None is the policy that asks for nothing.

        A mapping holds what a policy file holds; relative paths in it start from the working directory.
        """
        match policy:
            case None:
                return cls()
            case Policy():
                return policy
            case str() | os.PathLike():
                return cls.load(policy)
            case Mapping():
                return cls.from_dict(policy)
        raise UsageError(
            f"a policy cannot be a value of type {type(policy).__name__}. Give a Policy, the path of a policy file or "
            "a dict of what such a file holds."
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy file."""
        file = os.fspath(path)
        text = _read(file)
        try:
            data = tomllib.loads(text)
        except RecursionError:
            raise PolicyError(f"{file}: not valid TOML: it is nested too deeply.") from None
        except tomllib.TOMLDecodeError as error:
            raise PolicyError(_syntax_sentence(file, text, str(error))) from None
        except ValueError:  # Python refuses to convert it, and tomllib passes that on
            raise PolicyError(f"{file}: a number has too many digits. Shorten it.") from None
        return cls.from_dict(data, Path(file).absolute().parent, origin=Origin(file, key_lines(text)))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], base: Path | None = None, *, origin: Origin | None = None) -> Policy:
        """A policy from what a policy file holds. ``origin`` says where its keys stand, for messages."""
        origin = origin or Origin()
        if "base" in data:
            raise PolicyError(origin.say(unknown_key_sentence(("base",), cls._keys()), ("base",)))
        try:
            policy = cls.model_validate({**data, "base": base})
        except ValidationError as error:
            raise explain(error, origin) from None
        policy._origin = origin
        return policy

    def to_dict(self) -> dict[str, Any]:
        """What a policy file holds: plain values, and nothing that is a default."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a policy file. Relative paths of taxonomies are rewritten so that they lead to the same files."""
        file = Path(path)
        directory = file.absolute().parent
        data = self.to_dict()
        for name, column in self.columns.items():
            if column.taxonomy_file is not None:
                data["columns"][name]["taxonomy"] = moved(column.taxonomy_file, self._directory(), directory)
        try:
            file.write_bytes(tomli_w.dumps(data).encode())
        except UnicodeEncodeError:
            raise PolicyError(
                "the policy has text that UTF-8 cannot hold, such as a file name in another encoding. Rename the file."
            ) from None
        except OSError as error:
            raise OutputError(
                f"the policy cannot be written to {file}: {_reason(error)}. Choose another place, or make it writable."
            ) from None

    @property
    def origin(self) -> Origin:
        """Where the policy was read from, for messages."""
        return self._origin

    @property
    def k(self) -> int:
        """The records that every class must have at least; 1 where only other requirements are named."""
        least = FEWEST_FOR_STATISTICS if self.release.form == "statistics" else 1
        return max(self.privacy.k or 1, least)

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        return self._with_role("quasi-identifier")

    @property
    def sensitive(self) -> tuple[str, ...]:
        return self._with_role("sensitive")

    @property
    def identifiers(self) -> tuple[str, ...]:
        return self._with_role("identifier")

    @property
    def others(self) -> tuple[str, ...]:
        """The columns with the role ``other``; those that have no role at all are not among them."""
        return self._with_role("other")

    @property
    def input_options(self) -> InputOptions:
        """How the input is read."""
        return InputOptions(**self.input.model_dump())

    @property
    def release_input_options(self) -> InputOptions:
        """How a release that Sfumato wrote is read again: it is always UTF-8, and its nulls are empty."""
        return InputOptions(separator=self.input.separator)

    def requirements(self) -> Requirements:
        """What every class must meet. Raises PolicyError where the policy is incomplete (see ``check_complete``)."""
        # Imported here, since requirements load numba, and reading a policy must not.
        from sfumato.requirements import Joint, KAnonymity, Requirements

        self.check_complete()
        person, joint = self.privacy.person, self.sensitive if self.privacy.joint else ()
        parts: list[Requirement] = [KAnonymity(self.k, "records" if person is None else "persons")]
        for settings in self.privacy.sensitive:
            part = settings.requirement()
            parts.append(Joint(part) if joint else part)
        return Requirements(tuple(parts), person, joint)

    def requirements_without_persons(self) -> Requirements:
        """What can be checked in a released file, which does not say whose the records are.

        A policy that counts persons is then checked for k records in every class only.
        """
        from sfumato.requirements import KAnonymity, Requirements

        requirements = self.requirements()
        return requirements if requirements.person is None else Requirements((KAnonymity(self.k),))

    def kept_columns(self, names: Iterable[str]) -> list[str]:
        """Those of a table's columns that are released, in the order of the table."""
        identifiers = set(self.identifiers)
        return [name for name in names if name not in identifiers and (name in self.columns or self.other == "keep")]

    def weights(self, domains: Iterable[NamedDomain]) -> list[float]:
        """How much each of these quasi-identifiers counts in losses and costs."""
        return [self.columns[domain.name].weight for domain in domains]

    def most_suppressed(self, records: int) -> int:
        """How many of ``records`` records the release may leave out."""
        return int(self.release.max_suppressed_fraction * records * (1 + 1e-12))  # 0.07 * 100 is less than 7

    def taxonomy_path(self, column: str) -> Path:
        """The taxonomy file of a column that has one."""
        taxonomy = self.columns[column].taxonomy_file
        if taxonomy is None:
            raise ValueError(f"the column {column!r} has no taxonomy file")
        return self._directory() / taxonomy

    def check_complete(self) -> None:
        """Refuse a policy that still leaves open what it asks for."""
        undecided = self._with_role("decide")
        if undecided:
            lines = (self._origin.line(("columns", name, "role")) for name in undecided)
            named = ", ".join(
                repr(name) + (f" (line {line})" if line is not None else "")
                for name, line in zip(undecided, lines, strict=True)
            )
            choices = listed(role for role in get_args(Role) if role != "decide")
            raise PolicyError(self._origin.say(f"the role is still to decide for {named}. Choose one of {choices}."))
        if not self.quasi_identifiers:
            raise PolicyError(
                self._origin.say(
                    "no column is a quasi-identifier. Name the columns by which somebody could be recognised."
                )
            )
        for place, asked in enumerate(self.privacy.sensitive):
            if asked.attribute not in self.sensitive:
                raise PolicyError(
                    self._origin.say(
                        f"a requirement is named for the column {asked.attribute!r}, which is not sensitive. Give it "
                        "the role sensitive, or remove the requirement.",
                        ("privacy", "sensitive", place, "attribute"),
                    )
                )
            part = asked.requirement()
            if "hierarchy" in part.counters and self.columns[asked.attribute].taxonomy is None:
                raise PolicyError(
                    self._origin.say(
                        f"the hierarchical distance needs a taxonomy of the column {asked.attribute!r}. Give it one, "
                        "or choose another distance.",
                        ("privacy", "sensitive", place, "distance"),
                    )
                )
            if "numbers" in part.counters and self.privacy.null_sensitive == "value":
                raise PolicyError(
                    self._origin.say(
                        f"null_sensitive is 'value', but {asked.kind} needs numbers, and null is none. Remove one.",
                        ("privacy", "null_sensitive"),
                    )
                )
        if self.privacy.person is not None and self.privacy.person not in self.identifiers:
            raise PolicyError(
                self._origin.say(
                    f"the person key {self.privacy.person!r} is not an identifier, so it would be released. Give it "
                    "the role identifier.",
                    ("privacy", "person"),
                )
            )
        if self.privacy.joint and (len(self.sensitive) < 2 or not self.privacy.sensitive):
            raise PolicyError(
                self._origin.say(
                    "joint asks for several sensitive columns to hold together, which needs at least two of them and "
                    "a requirement. Remove it, or name them.",
                    ("privacy", "joint"),
                )
            )
        if self.privacy.k is None and not self.privacy.sensitive:
            raise PolicyError(
                self._origin.say("k is absent, so nothing is asked for. Set k; in a policy file, under [privacy].")
            )
        roles = {name: column.role for name, column in self.columns.items()}
        check_roles(self.workload, roles, self._origin, undeclared_kept=self.other != "drop")

    def check_columns(self, names: Sequence[str]) -> None:
        """Refuse a policy that does not fit the columns of the table."""
        for name in self.columns:
            if name not in names:
                where = self._origin.place(("columns", name)) or "the policy"
                raise PolicyError.unknown_column(name, where, names)
        for name in self.accept_linkable:
            if name not in names:
                where = self._origin.say("accept_linkable", ("accept_linkable",))
                raise PolicyError.unknown_column(name, where, names)
        for name in (*self.workload.predicted, *self.workload.features):
            if name not in names:
                where = self._origin.say("the workload", ("workload",))
                raise PolicyError.unknown_column(name, where, names)
        unnamed = [name for name in names if name not in self.columns]
        if unnamed and self.other is None:
            raise PolicyError(
                self._origin.say(
                    f"no role is given for {listed(unnamed)}. Give each a role, or say what happens to columns without "
                    'one: other = "keep" or other = "drop".'
                )
            )

    def __eq__(self, other: object) -> bool:
        """Whether both ask for the same. The same taxonomy file may be written as different paths."""
        if not isinstance(other, Policy):
            return NotImplemented
        return self._settled() == other._settled()

    __hash__ = None  # type: ignore[assignment]

    def _settled(self) -> dict[str, Any]:
        data = self.to_dict()
        for name, column in self.columns.items():
            if column.taxonomy_file is not None:
                data["columns"][name]["taxonomy"] = _real(self._directory() / column.taxonomy_file)
        return data

    def _directory(self) -> Path:
        return Path.cwd() if self.base is None else self.base

    def _with_role(self, role: Role) -> tuple[str, ...]:
        return tuple(name for name, column in self.columns.items() if column.role == role)


PolicyLike = Policy | str | os.PathLike[str] | Mapping[str, Any]
"""Whatever says what the user asks for: a policy, the path of its file, or what the file holds."""


def path_text(path: str | os.PathLike[str]) -> str:
    """A path as a policy holds it. A path object named flat is a file; only the word asks for a flat taxonomy."""
    return f"./{FLAT}" if not isinstance(path, str) and os.fspath(path) == FLAT else os.fspath(path)


def moved(path: str, source: Path, target: Path) -> str:
    """The path of a file, relative to ``source``, as seen from ``target``; absolute when there is no way between."""
    if os.path.isabs(path) or os.path.realpath(source) == os.path.realpath(target):
        return path
    file = _real(source / path)
    try:
        relative = Path(os.path.relpath(file, os.path.realpath(target))).as_posix()
    except ValueError:  # on another drive
        return file.as_posix()
    return f"./{FLAT}" if relative == FLAT else relative


def _real(file: Path) -> Path:
    """Without links on the way, since `..` after a link leads elsewhere; the file itself may be a link."""
    return Path(os.path.realpath(file.parent), file.name)


def _read(file: str) -> str:
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"the policy {file} cannot be read: {_reason(error)}. Check the path.") from None
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"the policy {file} cannot be read: line {line} is not UTF-8. Save it in that encoding."
        ) from None


def _reason(error: OSError) -> str:
    """What the system says, without the path that it repeats."""
    return (error.strerror or type(error).__name__).lower()


def _syntax_sentence(file: str, text: str, message: str) -> str:
    """tomllib ends its messages with the place; we begin with it."""
    reason, _, place = message.partition(" (at ")
    number = re.match(r"line (\d+)", place)
    line = int(number[1]) if number else text.count("\n", 0, len(text.rstrip())) + 1
    return f"{file}, line {line}: not valid TOML: {reason[:1].lower()}{reason[1:]}."
