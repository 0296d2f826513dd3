"""The whole policy. It accepts only what is enforced; anything else is an error, never ignored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Self

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError, model_validator

from sfumato.errors import PolicyError, TaxonomyError, UsageError
from sfumato.policy.about_settings import AboutSettings
from sfumato.policy.column_forms import ADDED, SUMMARY_FORMS, Added, ColumnForm
from sfumato.policy.column_settings import ColumnSettings, Role, column_name
from sfumato.policy.completeness import check_columns, check_complete
from sfumato.policy.derive_settings import DerivedColumn
from sfumato.policy.error_text import explain, unknown_key_sentence, wrong
from sfumato.policy.input_settings import InputOptions, InputSettings
from sfumato.policy.policy_file import read_policy_file, write_policy_file
from sfumato.policy.privacy_settings import PrivacySettings
from sfumato.policy.release_settings import ReleaseSettings
from sfumato.policy.run_settings import EngineSettings, MethodSettings
from sfumato.policy.section import PolicySection, text_list
from sfumato.policy.taxonomy_paths import is_inside, moved, real_path
from sfumato.policy.toml_lines import Origin
from sfumato.policy.workload import WorkloadSettings
from sfumato.policy.written_text import WrittenText

if TYPE_CHECKING:
    from sfumato.requirements import Requirement, Requirements

FEWEST_FOR_STATISTICS = 5  # the fewest records of a class whose mean or median is released


class NamedDomain(Protocol):
    """The values that one column can take. Only its name matters here."""

    @property
    def name(self) -> str: ...


class Policy(PolicySection):
    """Everything that the user decides about a release."""

    other: Literal["keep", "drop"] | None = None
    accept_linkable: Annotated[tuple[str, ...], BeforeValidator(text_list)] = ()
    about: AboutSettings = AboutSettings()
    input: InputSettings = InputSettings()
    derive: dict[Annotated[str, BeforeValidator(column_name)], DerivedColumn] = Field(default_factory=dict)
    columns: dict[Annotated[str, BeforeValidator(column_name)], ColumnSettings] = Field(default_factory=dict)
    privacy: PrivacySettings = PrivacySettings()
    workload: WorkloadSettings = WorkloadSettings()
    method: MethodSettings = MethodSettings()
    engine: EngineSettings = EngineSettings()
    release: ReleaseSettings = ReleaseSettings()
    base: Path | None = Field(default=None, exclude=True)
    """The directory that relative taxonomy paths start from: that of the policy file. None is the working directory."""

    _origin: Origin = PrivateAttr(default_factory=Origin)
    _places: tuple[Path, ...] = PrivateAttr(default=())

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
        data, origin = read_policy_file(path)
        return cls.from_dict(data, Path(path).absolute().parent, origin=origin)

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        base: Path | None = None,
        *,
        origin: Origin | None = None,
        places: Sequence[Path] = (),
    ) -> Policy:
        """Make a policy from what a policy file holds.

        ``origin`` says where the keys stand in the file, so that error messages can name the line. ``places`` are
        further directories where taxonomy files may lie: a certificate has only their names.
        """
        origin = origin or Origin()
        if "base" in data:
            raise PolicyError(origin.say(unknown_key_sentence(("base",), cls._keys()), ("base",)))
        try:
            policy = cls.model_validate({**data, "base": base})
        except ValidationError as error:
            raise explain(error, origin) from None
        policy._origin = origin
        policy._places = tuple(places)
        return policy

    def to_dict(self) -> dict[str, Any]:
        """Return what a policy file holds: plain values, without defaults."""
        return self.model_dump(mode="json", exclude_defaults=True, by_alias=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a policy file. Relative taxonomy paths are rewritten so that they lead to the same files."""
        file = Path(path)
        write_policy_file(file, self.with_paths_from(file.absolute().parent))

    def with_paths_from(self, directory: Path) -> dict[str, Any]:
        """Return what a policy file in a directory holds."""
        return self.with_files(lambda text: moved(text, self._directory(), directory))

    def with_files(self, change: Callable[[str], Any]) -> dict[str, Any]:
        """Return what a policy file holds, with the path of every file that it names changed."""
        data = self.to_dict()
        for (section, name, key), text in self.taxonomy_files.items():
            data[section][name][key] = change(text)
        if self.input.layout is not None:
            data["input"]["layout"] = change(self.input.layout)
        if self.privacy.pseudonym_key is not None:
            data["privacy"]["pseudonym_key"] = change(self.privacy.pseudonym_key)
        return data

    @property
    def taxonomy_files(self) -> dict[tuple[str, str, str], str]:
        """The paths of taxonomy files as the user wrote them, by the keys under which they stand."""
        of_columns = {("columns", name, "taxonomy"): column.taxonomy_file for name, column in self.columns.items()}
        of_groups = {("derive", name, "groups"): column.groups for name, column in self.derive.items()}
        return {keys: text for keys, text in (of_columns | of_groups).items() if text is not None}

    @model_validator(mode="after")
    def _check_forms(self) -> Self:
        if self.release.boxes == "regions" and self.asks_for(*SUMMARY_FORMS):
            raise wrong(
                "is 'regions', which apply to new records, but statistics describe one table. Choose another form, or "
                "the smallest boxes",
                "release",
                "boxes",
            )
        for name in self.quasi_identifiers:
            column, form = self.columns[name], self.form_of(name)
            if column.finest is not None and column.implied_type != "categorical" and form in SUMMARY_FORMS:
                raise wrong(
                    f"hides what is below that level, but its form is {form!r}, which would tell of it. Choose labels "
                    "or bounds as the form of the column, or remove finest",
                    *("columns", name, "finest"),
                )
        return self

    @property
    def origin(self) -> Origin:
        """The file and lines that the policy was read from, for error messages."""
        return self._origin

    @property
    def places(self) -> tuple[Path, ...]:
        """Further directories where taxonomy files may lie."""
        return self._places

    @property
    def k(self) -> int:
        """The fewest records that a class may have; 1 if the policy names only other requirements."""
        least = FEWEST_FOR_STATISTICS if self.asks_for(*SUMMARY_FORMS) else 1
        return max(self.privacy.k or 1, least)

    def form_of(self, name: str) -> ColumnForm:
        """The form of a quasi-identifier: its own, or that of the release. Categories show labels whatever it is."""
        return self.columns[name].form or self.release.form

    def added(self, name: str) -> tuple[Added, ...]:
        """What the release shows beside the labels of a quasi-identifier, if it holds numbers or dates."""
        return ADDED[self.form_of(name)]

    def asks_for(self, *forms: ColumnForm) -> bool:
        """Whether the form of some quasi-identifier is one of these."""
        return any(self.form_of(name) in forms for name in self.quasi_identifiers)

    @property
    def numbered(self) -> frozenset[str]:
        """The quasi-identifiers beside whose labels the release shows numbers: bounds, means or medians."""
        return frozenset(name for name in self.quasi_identifiers if self.added(name))

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
    def dropped(self) -> tuple[str, ...]:
        """The columns with the role ``drop``: nobody is named by them, and they are not released all the same."""
        return self._with_role("drop")

    @property
    def pseudonyms(self) -> tuple[str, ...]:
        """The columns whose values are released as pseudonyms."""
        return self._with_role("pseudonym")

    @property
    def others(self) -> tuple[str, ...]:
        """The columns with the role ``other``; columns without any role are not included."""
        return self._with_role("other")

    @property
    def input_options(self) -> InputOptions:
        """How the input is read."""
        settings = {**self.input.model_dump(), "layout": self._layout_path()}
        return InputOptions(**settings, column_nulls=self._column_nulls())

    @property
    def foreign_release_options(self) -> InputOptions:
        """How a release that another tool made is read: as the input, but below no title, and labels are no tokens.

        It has other widths than the input.
        """
        return replace(
            self.input_options,
            header_row=None,
            layout=None,
            column_nulls={
                name: tokens
                for name, tokens in self._column_nulls().items()
                if self.columns[name].role != "quasi-identifier"
            },
        )

    def _layout_path(self) -> Path | None:
        """Return the path of the layout: in the folder of the policy, or else where the taxonomies of a release lie."""
        layout = self.input.layout
        if layout is None:
            return None
        candidates = [place / layout for place in (self._directory(), *self._places)]
        return next((path for path in candidates if path.exists()), candidates[0])

    def _column_nulls(self) -> dict[str, tuple[str, ...]]:
        return {name: column.nulls for name, column in self.columns.items() if column.nulls}

    def written_text(self, *, tabs: bool = False) -> WrittenText:
        """How a CSV release is written. tabs: whether the name of its file says that tabs separate its cells.

        Without a separator of its own, it has that of the input; if that is the comma of numbers, a semicolon.
        """
        release = self.release
        separator = release.separator or self.input.separator
        if tabs and separator == ",":
            separator = "\t"
        elif separator == release.decimal == ",":
            separator = ";"
        return WrittenText(separator, release.encoding, release.decimal)

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
        """What every class must meet, as far as a released file shows it: it does not say whose the records are."""
        from sfumato.requirements import Requirements, WithoutPersons

        requirements = self.requirements()
        if requirements.person is None:
            return requirements
        return Requirements(tuple(WithoutPersons(part) for part in requirements.parts), None, requirements.joint)

    def kept_columns(self, names: Iterable[str]) -> list[str]:
        """Those of a table's columns that are released, in the order of the table."""
        withheld = {*self.identifiers, *self.dropped}
        return [name for name in names if name not in withheld and (name in self.columns or self.other == "keep")]

    def weights(self, domains: Iterable[NamedDomain]) -> list[float]:
        """How much each of these quasi-identifiers counts in losses and costs."""
        return [self.columns[domain.name].weight for domain in domains]

    def most_suppressed(self, records: int) -> int:
        """How many of ``records`` records the release may leave out."""
        return int(self.release.max_suppressed_fraction * records * (1 + 1e-12))  # 0.07 * 100 is less than 7

    def taxonomy_path(self, column: str) -> Path:
        """Return the path of the taxonomy file of a column that has one.

        Raises TaxonomyError if a file that may lie in several places is in none of them.
        """
        taxonomy = self.columns[column].taxonomy_file
        if taxonomy is None:
            raise ValueError(f"the column {column!r} has no taxonomy file")
        return self._taxonomy_location(column, taxonomy, f"--taxonomy {column}=FILE")

    @property
    def pseudonym_key_path(self) -> Path | None:
        """The path of the key that pseudonyms are made with, if the policy names one."""
        key = self.privacy.pseudonym_key
        return None if key is None else self._directory() / key

    def groups_path(self, column: str) -> Path:
        """Return the path of the taxonomy file whose groups are a derived column. Raises what taxonomy_path raises."""
        groups = self.derive[column].groups
        if groups is None:
            raise ValueError(f"the derived column {column!r} has no groups")
        return self._taxonomy_location(column, groups, f"--derive '{column}=groups(COLUMN, FILE)'")

    def _taxonomy_location(self, column: str, taxonomy: str, flag: str) -> Path:
        candidates = list(dict.fromkeys(place / taxonomy for place in (self._directory(), *self._places)))
        if len(candidates) == 1:
            return candidates[0]
        for file in candidates:
            if file.exists():
                return file
        folders = ", ".join(str(file.parent) for file in candidates)
        raise TaxonomyError(
            f"column {column!r}: the taxonomy {taxonomy!r} is in none of the folders {folders}. A certificate has only "
            f"the names of taxonomies: copy the file beside the release, or give it with {flag} or with --policy."
        )

    @property
    def taxonomies_outside(self) -> tuple[tuple[str, Path], ...]:
        """The columns and the taxonomies that the policy file, not a flag, takes from outside its own folder."""
        base = self.base
        return tuple(
            (keys[1], base / text)
            for keys, text in self.taxonomy_files.items()
            if base is not None and self.origin.line(keys) is not None and not is_inside(base / text, base)
        )

    def check_complete(self) -> None:
        """Raise PolicyError if the policy leaves open what it asks for."""
        check_complete(self)

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise PolicyError if the policy does not fit a table with the columns ``names``."""
        check_columns(self, names)

    def __eq__(self, other: object) -> bool:
        """Whether both policies ask for the same, even if they write the path of a taxonomy file differently."""
        if not isinstance(other, Policy):
            return NotImplemented
        return self._with_real_paths() == other._with_real_paths()

    __hash__ = None  # type: ignore[assignment]

    def _with_real_paths(self) -> dict[str, Any]:
        return self.with_files(lambda text: real_path(self._directory() / text))

    def _directory(self) -> Path:
        return Path.cwd() if self.base is None else self.base

    def _with_role(self, role: Role) -> tuple[str, ...]:
        return tuple(name for name, column in self.columns.items() if column.role == role)


PolicyLike = Policy | str | os.PathLike[str] | Mapping[str, Any]
"""Every form in which a user may give a policy: the policy, the path of its file, or what the file holds."""
