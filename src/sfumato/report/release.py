"""The report of a release: one offline page for everybody who may have the release.

The page is made from the released rows, the policy, and the public figures of the release
(``evaluation/public_figures.py``). Of the original it knows only how many records were left out: this module never
receives the original, nor anything that was measured against it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from sfumato.errors import InputError, UsageError
from sfumato.methods import method_named
from sfumato.pictures.classes import picture_of
from sfumato.pictures.picture import check_drawing
from sfumato.pictures.theme import LIGHT
from sfumato.policy import Policy
from sfumato.releases.certificate import shareable_policy
from sfumato.report import figures
from sfumato.report.html import Markup, element, folded, joined, name, name_list, preformatted, section, table
from sfumato.report.page import PAGE, page
from sfumato.report.release_facts import NOTHING, ReleaseFacts, facts_of
from sfumato.report.remaining_risks import risks
from sfumato.report.result_files import write_text
from sfumato.report.sentences import degree, guessing, percent, verdict, what_is_shown
from sfumato.report.style import RELEASE_STYLE
from sfumato.requirements import all_hold
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.replacement import check_replaceable
from sfumato.tables.targets.staging import check_target
from sfumato.taxonomies.ready import taxonomy_of_release
from sfumato.taxonomies.taxonomy import Taxonomy

SUFFIXES = (".html", ".htm")
TITLE = "Report of a release"
MARKS = {True: ("Meets its policy", ""), False: ("Do not share", "fails"), None: ("Not fully checked", "unchecked")}
LINKED = ("Links the records of persons", "unchecked")
WORDS = {True: ("holds", "holds"), False: ("fails", "broken"), None: ("not checked", "undecided")}
AUDIT = "What the audit checked, reading the release as anybody can"
AUDIT_WITH_PERSONS = "What the audit checked when the release was made, knowing the person of each record"
MOST_RECTANGLES = 2000  # more would make the page large and slow to draw
MOST_LOSSES = 40  # rows of the table of blur that are not folded away
ELSEWHERE = ("format", "policy")  # entries of a certificate that are no figures; the page shows the policy as TOML


class ReleaseReport:
    """The report of a release. ``write`` saves it as a file, ``summary`` returns its figures for programs."""

    def __init__(
        self,
        facts: ReleaseFacts,
        policy: Policy,
        taxonomies: Mapping[str, Taxonomy],
        summary: Mapping[str, Any],
        *,
        remarks: Sequence[str] = (),
        where: str = "released file",
        persons_counted: bool = False,
    ) -> None:
        self._facts = facts
        self._policy = policy
        self._taxonomies = taxonomies
        self._summary = {key: value for key, value in summary.items() if key not in ELSEWHERE}
        self._remarks = tuple(remarks)
        self._where = where
        self._persons_counted = persons_counted
        self._separated = method_named(policy.method.name).separates
        self._group = "group" if self._separated else "class"

    @property
    def verdict(self) -> str:
        """The verdict in one sentence."""
        return verdict(
            self._summary, self._policy, self._where, separated=self._separated, persons=self._persons_counted
        )

    @property
    def holds(self) -> bool | None:
        """Whether every line of the audit holds; None if none fails, but some could not be checked."""
        return all_hold(line["holds"] for line in self._summary["audit"])

    def summary(self) -> dict[str, Any]:
        """The figures that ``sfumato report --json`` prints."""
        return {**self._summary, **self._facts.as_dict(), "remarks": list(self._remarks)}

    def page(self) -> str:
        """The report as one offline HTML page."""
        sections = (
            ("verdict", "Verdict", self._verdict),
            ("risks", "What could still go wrong", self._risks),
            ("class-sizes", f"Sizes of the {self._plural}", self._class_sizes),
            ("loss", "How much is blurred, by column", self._loss),
            ("columns", "What the release shows, by column", self._columns),
            ("taxonomies", "Where taxonomies were cut", self._taxonomy_cuts),
            ("classes", "The classes in two columns", self._classes),
            ("pairs", "Pairs of columns", self._pairs),
            ("diversity", "Diversity of sensitive columns", self._diversity),
            ("policy", "The policy", self._policy_text),
            ("certificate", "The certificate", self._certificate),
        )
        links = [element("li", element("a", title, href=f"#{anchor}")) for anchor, title, _ in sections]
        summary = self._summary
        mark, look = self._mark
        made_from = "Made from the release alone"
        if self._persons_counted:
            made_from = "Made from the release; its persons were counted when it was made"
        head = element(
            "header",
            element("p", element("span", mark, class_=f"mark {look}".strip()), f" {made_from}", class_="eyebrow"),
            element("h1", f"{summary['released']:,} records released in {summary['classes']:,} {self._plural}"),
            element("nav", element("ul", *links), aria_label="Contents"),
        )
        skip = element("a", "To the verdict", href="#verdict", class_="skip")
        main = element("main", *(section(anchor, title, build()) for anchor, title, build in sections))
        return page(TITLE, joined([skip, head, main]), RELEASE_STYLE)

    def write(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the page, whole or not at all. With ``force`` it replaces any file."""
        target = Path(path)
        check_report(target, force=force)
        write_text(self.page(), target)
        return target

    def __repr__(self) -> str:
        return f"<ReleaseReport of {self._facts.records:,} records in {len(self._facts.sizes):,} {self._plural}>"

    @property
    def _mark(self) -> tuple[str, str]:
        """What the head of the page says, and its look. Linked records meet a policy, but are no reason to share."""
        return LINKED if self.holds and "remarks" in self._summary else MARKS[self.holds]

    @property
    def _plural(self) -> str:
        return "groups" if self._separated else "classes"

    def _verdict(self) -> Markup:
        summary = self._summary
        verdict = element("p", element("strong", self.verdict), class_="verdict")
        _, look = self._mark
        tiles = {
            f"of {summary['records']:,} records released": f"{summary['released']:,}",
            f"{self._plural}; the smallest has {summary['smallest_class']:,} records": f"{summary['classes']:,}",
            "records left out": f"{summary['suppressed']:,}",
        }
        if "blur" in summary:
            tiles["of a column left open on average (blur)"] = percent(summary["blur"])
        listed = [element("div", element("dt", text), element("dd", figure)) for text, figure in tiles.items()]
        rows = [
            (
                line["requirement"],
                element("span", WORDS[line["holds"]][0], class_=WORDS[line["holds"]][1]),
                _reached(line),
            )
            for line in summary["audit"]
        ]
        heads = ("requirement", "verdict", "reached")
        audit = table(AUDIT_WITH_PERSONS if self._persons_counted else AUDIT, heads, rows, text=(0, 1))
        reasons = dict.fromkeys(line["reason"] for line in summary["audit"] if line["holds"] is None)
        unchecked = [element("p", f"Not checked: {reason}.", class_="unchecked") for reason in reasons if reason]
        remarks = [element("p", f"{text[:1].upper()}{text[1:]}.", class_="warning") for text in self._remarks]
        about = (
            "Every figure on this page can be computed from the release and its policy, except how many records were "
            "left out. Blur is the share of the released range, or of the taxonomy, that a released value leaves open, "
            "on average: 0% shows single values, 100% says nothing. A record that was left out counts as 100%."
        )
        return joined(
            [
                element("div", verdict, class_=look) if look else verdict,
                element("dl", *listed, class_="tiles"),
                audit if rows else "",
                *unchecked,
                *remarks,
                element("p", about, class_="soft"),
            ]
        )

    def _risks(self) -> Markup:
        kept = [column.name for column in self._facts.columns if column.role == "other"]
        kept += [column for column in self._facts.further if column not in self._policy.quasi_identifiers]
        remaining = risks(
            self._policy,
            kept,
            self._facts.exact_ends(self._policy),
            suppressed=self._summary["suppressed"],
            separated=self._separated,
            persons_counted=self._persons_counted,
        )
        items = (element("li", element("strong", risk.heading), risk.text) for risk in remaining)
        return element("ul", *items, class_="risks")

    def _class_sizes(self) -> Markup:
        if not self._facts.records:
            return _nothing()
        k = self._policy.k
        text = (
            "No record may be to the left of the line. Records far to its right are blurred more than k requires."
            if k > 1
            else f"Every record counts once, in its {self._group}."
        )
        drawn, sentence = figures.class_sizes(self._facts.sizes, k, self._group)
        return element("div", drawn, element("div", element("p", sentence), element("p", text)), class_="split")

    def _loss(self) -> Markup:
        blur: Mapping[str, float] = self._summary["blur_by_column"]
        values = {column.name: column for column in self._facts.columns}
        rows = []
        for column in self._policy.quasi_identifiers:
            shown = values.get(column)
            words = "" if shown is None else what_is_shown(shown, self._policy, self._taxonomies.get(column))
            figure, word = joined(["not given"]), "its values come from the original"
            if column in blur:
                wide = 100 * min(max(blur[column], 0.0), 1.0)
                bar = element("span", element("span", style=f"width: {wide:.1f}%"), class_="bar")
                figure, word = joined([bar, percent(blur[column])]), degree(blur[column])
            rows.append(
                (name(column), element("span", figure, class_="lost"), word, element("span", words, class_="words"))
            )
        heads = ("column", "left open", "in a word", "what records show")
        caption = "Blur of each quasi-identifier"
        text = (3, 2, 1, 0)
        more = rows[MOST_LOSSES:]
        return joined(
            [
                table(caption, heads, rows[:MOST_LOSSES], text=text, look="losses"),
                folded(f"{len(more):,} more", table(caption, heads, more, text=text, look="losses")) if more else "",
            ]
        )

    def _columns(self) -> Markup:
        cards = []
        for column in self._facts.columns:
            how = "" if column.role == "pseudonym" else ", kept unchanged"
            about: object = f"{column.role}{how}; {len(column.texts):,} different values"
            if column.role == "quasi-identifier":
                about = f"{what_is_shown(column, self._policy, self._taxonomies.get(column.name))}."
            cards.append(figures.column(column, about))
        further = self._facts.further
        more = (
            folded(f"{len(further):,} more columns are released but not drawn", element("p", name_list(further, 1000)))
            if further
            else ""
        )
        return joined([element("div", *cards, class_="cards") if cards else _nothing(), more])

    def _taxonomy_cuts(self) -> Markup:
        quasi = [column for column in self._facts.columns if column.role == "quasi-identifier"]
        cuts = (figures.taxonomy_cut(column, self._policy, self._taxonomies.get(column.name)) for column in quasi)
        drawn = [cut for cut in cuts if cut is not None]
        if not drawn:
            return element("p", "No column of the release has a taxonomy with groups to draw.", class_="soft")
        text = (
            "Bold names are released, each with the number of records that show it; the others are groups above them. "
            "Values that are hidden in a group do not appear here."
        )
        return joined([element("p", text), element("div", *drawn, class_="cards")])

    def _classes(self) -> Markup:
        quasi = self._policy.quasi_identifiers
        if self._separated:
            return element(
                "p", "Quasi-identifiers are released unchanged, so groups are not rectangles.", class_="soft"
            )
        if self._facts.classes is None or len(quasi) < 2:
            reason = (
                "The release has a single quasi-identifier." if self._facts.records else "The release has no records."
            )
            return element("p", f"{reason} There is nothing to draw.", class_="soft")
        try:
            picture = picture_of(
                self._facts.classes, self._policy, self._taxonomies, None, None, LIGHT, most=MOST_RECTANGLES
            )
        except InputError:
            return element("p", "The range of these columns is too wide to draw.", class_="soft")
        text = (
            "The two quasi-identifiers with the most different released values. Each rectangle is the range that a "
            "class leaves open; the stronger its colour, the more records it has."
        )
        return joined([element("p", text), figures.figure(picture, wide=True)])

    def _pairs(self) -> Markup:
        if not self._facts.pairs:
            return element("p", "There are no two columns to compare.", class_="soft")
        text = "The pairs of columns that say most about each other. Records that show a range are spread over it."
        return joined([element("p", text), element("div", *map(figures.pair, self._facts.pairs), class_="cards")])

    def _diversity(self) -> Markup:
        if not self._facts.diversity:
            return element("p", "The release has no sensitive column.", class_="soft")
        cards = [figures.diversity(each, guessing(each, self._group), self._group) for each in self._facts.diversity]
        text = f"The further to the left, the less a {self._group} reveals about its records."
        return joined([element("p", text), element("div", *cards, class_="cards")])

    def _policy_text(self) -> Markup:
        text = "All settings, as a policy file that can be used again. Taxonomy files are given by name only."
        return joined([element("p", text), preformatted(tomli_w.dumps(shareable_policy(self._policy)), "The policy")])

    def _certificate(self) -> Markup:
        files = self._summary.get("files") or []
        rows = [
            (element("code", file["name"]), f"{file['bytes']:,}", element("code", file["sha256"])) for file in files
        ]
        listed = (
            table("Files of the release", ("file", "bytes", "SHA-256"), rows, text=(0, 2))
            if rows
            else element("p", "The release has no certificate, so no file is listed here.", class_="soft")
        )
        text = "A file with a hash that is not listed here was not checked."
        content = json.dumps(self._summary, indent=2, ensure_ascii=False)
        return joined([listed, element("p", text), folded("All figures", preformatted(content, "All figures"))])


def refuse_trial(trial: bool) -> None:
    """Refuse the report of a trial: whoever gets such a page takes the trial for a release."""
    if trial:
        raise UsageError(
            "a trial has no report, since that is a page to share, and a trial is not to be published. Ask for the "
            "private page instead, or make the release without trial."
        )


def release_report(
    source: Source,
    second: Source | None,
    policy: Policy,
    taxonomies: Mapping[str, Taxonomy],
    summary: Mapping[str, Any],
    *,
    remarks: Sequence[str] = (),
    where: str = "released file",
    persons_counted: bool = False,
) -> ReleaseReport:
    """The report of a finished release. ``summary`` holds its public figures, or is its certificate.

    ``where`` says what the audit read. ``persons_counted``: it knew the person of each record, as only the run does.
    """
    facts = facts_of(source, second, policy, taxonomies)
    known = {**taxonomies, **_ready_made(facts, policy)}
    return ReleaseReport(facts, policy, known, summary, remarks=remarks, where=where, persons_counted=persons_counted)


def _ready_made(facts: ReleaseFacts, policy: Policy) -> dict[str, Taxonomy]:
    """The ready-made taxonomies of quasi-identifiers, as far as the release alone tells their leaves."""
    found = {}
    for column in facts.columns:
        settings = policy.columns.get(column.name)
        if column.role == "quasi-identifier" and settings is not None:
            labels = [text for text in column.texts if text is not None]
            found[column.name] = taxonomy_of_release(settings.ready_name, labels, column.name)
    return {name: taxonomy for name, taxonomy in found.items() if taxonomy is not None}


def empty_report(policy: Policy, summary: Mapping[str, Any]) -> ReleaseReport:
    """The report of a release without records."""
    return ReleaseReport(NOTHING, policy, {}, summary)


def check_report(target: Path, *, force: bool = False) -> None:
    """Refuse a target that cannot hold a report, or a machine that cannot draw one, before any work is done.

    Only with ``force`` may it be a file that is no page of Sfumato.
    """
    if target.suffix.lower() not in SUFFIXES:
        raise UsageError(f"the report {target.name!r} is an HTML page. Give it a name that ends in .html.")
    check_target(target)
    check_replaceable(target, "page", PAGE, force=force)
    check_drawing()


def _nothing() -> Markup:
    return element("p", "The release has no records.", class_="soft")


def _reached(line: Mapping[str, Any]) -> str:
    """The value that the release reaches for a requirement with a bound."""
    if "=" not in line["requirement"] or "value" not in line:  # of persons there is the verdict alone
        return ""
    value = line["value"]
    reached = "no bound" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return f"{reached} in {line['counted']}" if "counted" in line else reached
