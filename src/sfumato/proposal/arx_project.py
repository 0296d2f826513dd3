"""An ARX project as a policy with its taxonomies, so that people can move.

What a policy cannot say is listed by name. Nothing of the project is left out without a word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from sfumato._version import __version__
from sfumato.errors import InputError, TaxonomyError
from sfumato.policy import Policy
from sfumato.proposal.arx_archive import SUFFIX, ArxArchive
from sfumato.proposal.arx_criteria import ArxCriteria, read_criteria
from sfumato.proposal.arx_definition import TYPES, ArxAttribute, read_attributes, text_of
from sfumato.proposal.toml_document import comment_lines, plain_name, table_header, toml_value
from sfumato.tables.targets.file_operations import new_directories
from sfumato.tables.targets.replacement import check_replaceable
from sfumato.tables.targets.staging import Stage, cannot_write, check_target, write_staged
from sfumato.taxonomies.taxonomy_file import check_taxonomy
from sfumato.taxonomies.taxonomy_rows import taxonomy_text

DATA = "data/input.csv"
FOLDER = "taxonomies"
NULLS = ["", "NULL"]  # how ARX writes a missing value
MOST_SUPPRESSED = 0.99  # where ARX may suppress all records
USUAL_WEIGHT = 0.5  # of every column in ARX, unless somebody changes it
METHOD_COMMENT = (
    "One level for each column in all records, as in ARX. Without this section, Sfumato forms classes record by record."
)


@dataclass(frozen=True, repr=False)
class ArxProject:
    """A project of ARX, read as a policy.

    policy: its taxonomies lie in ``taxonomies/`` beside the file that it is saved to. taxonomies: their texts by path.
    unsupported: what the project asks for and a policy cannot say; the policy promises less than the project. remarks:
    what is said in another way than in ARX.
    """

    path: Path
    name: str
    policy: Policy
    taxonomies: Mapping[str, str]
    unsupported: tuple[str, ...]
    remarks: tuple[str, ...]
    has_data: bool

    def to_toml(self) -> str:
        """Return the text of the policy file, with what it does not say as comments."""
        return _document(self)

    def save(
        self, path: str | os.PathLike[str], *, data: str | os.PathLike[str] | None = None, force: bool = False
    ) -> list[Path]:
        """Write the policy and its taxonomies, and the table of the project to ``data`` if it is given.

        Either all files are written or none. Existing files are replaced only with ``force``. The taxonomies and the
        table hold values of the original data, so only their owner may read them. Return the paths written.
        """
        target = Path(path)
        files = {target.parent / name: text for name, text in self.taxonomies.items()}
        table = None if data is None else Path(data)
        if table is not None and not self.has_data:
            raise InputError(f"the project {str(self.path)!r} holds no table. Save it in ARX with its data.")
        check_target(target)
        for file, what in {target: "policy", **dict.fromkeys(files, "taxonomy")}.items():
            check_replaceable(file, what, force=force)
        if table is not None:
            check_target(table)
            check_replaceable(table, "table", force=force)
        try:
            with new_directories({file.parent for file in files}), Stage() as stage:
                write_staged(stage, target, self.to_toml())
                for file, text in files.items():
                    write_staged(stage, file, text, private=True)
                if table is not None:
                    with ArxArchive(self.path) as archive, stage.path(table, private=True).open("wb") as copy:
                        archive.copy(DATA, copy)
                stage.publish()
        except OSError as error:
            raise cannot_write(target, error) from None
        return [target, *files, *([] if table is None else [table])]

    def as_dict(self) -> dict[str, Any]:
        """Return the policy, and what it does not say, as JSON values."""
        return {
            "project": self.name,
            "policy": self.policy.to_dict(),
            "taxonomies": list(self.taxonomies),
            "unsupported": list(self.unsupported),
            "remarks": list(self.remarks),
        }


def is_arx_project(name: str) -> bool:
    """Return whether a file is named like a project of ARX."""
    return name.lower().endswith(SUFFIX)


def arx_project(path: str | os.PathLike[str]) -> ArxProject:
    """Read a project of ARX (a ``.deid`` file): roles, hierarchies, levels, privacy models and suppression limit.

    The table in the project is not read. ``save`` writes the policy with its taxonomies.
    """
    with ArxArchive(Path(path)) as archive:
        project = archive.xml("project.xml")
        separator = _separator(project)
        attributes = read_attributes(archive, separator)
        config = archive.xml("input/config.xml")
        draft = _Draft(attributes, read_criteria(_texts(config, "criteria/criterion")), separator)
        draft.add_weights(config)
        draft.add_suppression(config)
        has_data = DATA in archive
    return ArxProject(
        path=Path(path),
        name=plain_name(text_of(project, "name") or Path(path).stem),
        policy=Policy.from_dict(draft.content()),
        taxonomies=draft.taxonomies,
        unsupported=tuple(draft.unsupported),
        remarks=tuple(draft.remarks),
        has_data=has_data,
    )


def _separator(project: Element) -> str:
    separator = text_of(project, "separator")
    return separator if separator is not None and re.fullmatch(r'[^"\r\n\0]', separator, re.ASCII) else ";"


def _texts(root: Element, path: str) -> list[str]:
    return [(element.text or "").strip() for element in root.findall(path)]


@dataclass
class _Draft:
    """The contents of the policy, column by column, and what is to be said about it."""

    attributes: list[ArxAttribute]
    criteria: ArxCriteria
    separator: str
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    taxonomies: dict[str, str] = field(default_factory=dict)
    unsupported: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    max_suppressed: float = 0.0

    def __post_init__(self) -> None:
        self.unsupported += [f"the privacy model {model!r}" for model in self.criteria.unsupported]
        self.remarks += self.criteria.remarks
        for attribute in self.attributes:
            self.columns[attribute.name] = {"role": attribute.role}
            if attribute.is_response:
                self.remarks.append(
                    f"column {attribute.name!r} is a response variable in ARX. To make the release for models that "
                    f"predict it, add it to targets in [workload]"
                )
            if attribute.role == "quasi-identifier":
                self._describe(attribute)
        self._keep_requirements_of_sensitive()
        for requirement in self.criteria.requirements:
            if requirement.get("distance") == "hierarchical":
                self._add_sensitive_hierarchy(requirement)

    def _describe(self, attribute: ArxAttribute) -> None:
        column = self.columns[attribute.name]
        if attribute.microaggregation is not None:
            self.unsupported.append(
                f"the microaggregation of {attribute.name!r} by {plain_name(attribute.microaggregation)!r}; it is "
                "generalized instead"
            )
        if not attribute.hierarchy or attribute.microaggregation is not None:
            if attribute.datatype in TYPES:
                column["type"] = TYPES[attribute.datatype]
            return
        lowest, highest = attribute.lowest or 0, attribute.highest
        if highest is None or highest > attribute.last_level:
            highest = attribute.last_level
        if lowest >= highest and attribute.is_rooted and highest == attribute.last_level:
            column["role"] = "drop"
            self.remarks.append(f"column {attribute.name!r} is always '*' in ARX, so it is dropped")
            return
        column["taxonomy"] = self._add_taxonomy(attribute)
        if lowest > highest:
            self.unsupported.append(f"the levels of {attribute.name!r}, of which the least is above the most general")
            return
        if lowest:
            column["finest"] = lowest
        # ARX never shows '*' for a value if the last level of its hierarchy has several groups.
        if highest < attribute.last_level or not attribute.is_rooted:
            column["coarsest"] = highest

    def _add_taxonomy(self, attribute: ArxAttribute) -> str:
        stem = re.sub(r"[^\w-]", "_", attribute.name) or "_"
        taken = {name.casefold() for name in self.taxonomies}
        names = (f"{FOLDER}/{stem}{number}.csv" for number in ("", *(f"-{number}" for number in range(2, 10**6))))
        file = next(name for name in names if name.casefold() not in taken)
        self.taxonomies[file] = taxonomy_text(attribute.rows())
        try:
            check_taxonomy(self.taxonomies[file], file, attribute.name)
        except TaxonomyError:  # which may name values of the table
            self.unsupported.append(
                f"the hierarchy of {attribute.name!r}, which is no tree. The first run names the line to correct in "
                f"{file}"
            )
        return file

    def _keep_requirements_of_sensitive(self) -> None:
        kept = []
        for requirement in self.criteria.requirements:
            if self.columns.get(requirement["attribute"], {}).get("role") == "sensitive":
                kept.append(requirement)
            else:
                name = plain_name(requirement["attribute"])
                self.unsupported.append(f"{requirement['kind']} of {name!r}, which is not a sensitive column")
        self.criteria.requirements = kept

    def _add_sensitive_hierarchy(self, requirement: Mapping[str, Any]) -> None:
        name = requirement["attribute"]
        attribute = next(each for each in self.attributes if each.name == name)
        if attribute.hierarchy:
            self.columns[name]["taxonomy"] = self._add_taxonomy(attribute)
        else:
            self.unsupported.append(f"the hierarchy for the closeness of {name!r}, which is not in the project")

    def add_weights(self, config: Element) -> None:
        """Take over weights of columns, unless all are the same."""
        weights: dict[str, float] = {}
        for element in config.findall("attributeWeights/attributeWeight"):
            name, weight = text_of(element, "attribute"), _share(text_of(element, "weight"))
            if name is not None and weight is not None and self._is_generalized(name):
                weights[name] = weight
        quasi = [name for name in self.columns if self._is_generalized(name)]
        if len({weights.get(name, USUAL_WEIGHT) for name in quasi}) < 2:
            return
        for name, weight in weights.items():
            if weight > 0:
                self.columns[name]["weight"] = weight / USUAL_WEIGHT
            else:
                self.unsupported.append(f"the weight 0 of {name!r}; a weight is above 0")

    def _is_generalized(self, name: str) -> bool:
        return self.columns.get(name, {}).get("role") == "quasi-identifier"

    def add_suppression(self, config: Element) -> None:
        """Take over how many records may be suppressed, and say what suppression is."""
        limit = _share(text_of(config, "relativeMaxOutliers")) or 0.0
        if limit > MOST_SUPPRESSED:
            self.remarks.append(f"ARX may suppress all records; here it is {MOST_SUPPRESSED:.0%} of them")
        self.max_suppressed = min(limit, MOST_SUPPRESSED)
        if limit:
            self.remarks.append("a suppressed record is left out of the release; ARX shows it as '*'")
        metric = text_of(config, "metric")
        if metric is not None:
            self.remarks.append(
                f"the quality model {plain_name(metric)!r} is not taken over: information loss (GCP) is minimized"
            )

    def content(self) -> dict[str, Any]:
        """Return what the policy file holds."""
        privacy: dict[str, Any] = {} if self.criteria.k is None else {"k": self.criteria.k}
        if self.criteria.requirements:
            privacy["sensitive"] = self.criteria.requirements
        release = {"max_suppressed_fraction": self.max_suppressed} if self.max_suppressed else {}
        return {
            "input": {"separator": self.separator, "nulls": NULLS, **self._date_format()},
            "columns": self.columns,
            "privacy": privacy,
            "method": {"name": "global"},
            "release": release,
        }

    def _date_format(self) -> dict[str, str]:
        dated = [each for each in self.attributes if self.columns[each.name].get("type") == "date"]
        formats = {attribute.format: attribute.date_format for attribute in dated}
        if len(formats) == 1 and (known := next(iter(formats.values()))) is not None:
            return {"date_format": known}
        if any(attribute.format is not None for attribute in dated):
            names = ", ".join(repr(attribute.name) for attribute in dated)
            self.unsupported.append(f"the date formats of {names}. Set date_format in [input]")
        return {}


def _share(text: str | None) -> float | None:
    """Return a number from 0 to 1, or None."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None


def _document(project: ArxProject) -> str:
    content = project.policy.to_dict()
    lines = comment_lines(
        f"A policy made from the ARX project {project.name} by Sfumato {__version__}. Read it before you use it."
    )
    lines += _listing("NOT TAKEN OVER, so that this policy promises less than the project:", project.unsupported)
    lines += _listing("Said in another way than in ARX:", project.remarks)
    lines.append("")
    for section, table in content.items():
        if section == "columns":
            for name, settings in table.items():
                lines += [table_header("columns", name), *_pairs(settings), ""]
            continue
        requirements = table.pop("sensitive", []) if section == "privacy" else []
        lines.append(table_header(section))
        if section == "method":
            lines += comment_lines(METHOD_COMMENT)
        lines += [*_pairs(table), ""]
        for requirement in requirements:
            lines += ["[[privacy.sensitive]]", *_pairs(requirement), ""]
    if "privacy" not in content:
        lines += ["[privacy]", "# k = 10  # decide: no privacy model of the project could be taken over", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _listing(title: str, items: Iterable[str]) -> list[str]:
    lines = []
    for item in items:
        first, *others = comment_lines(item)
        lines += [first.replace("# ", "#   - ", 1), *(other.replace("# ", "#     ", 1) for other in others)]
    return ["#", f"# {title}", *lines] if lines else []


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {toml_value(value)}" for key, value in table.items()]
