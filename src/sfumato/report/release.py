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
from sfumato.report.audit_texts import audit_text
from sfumato.report.html import (
    Markup,
    capitalised,
    element,
    folded,
    joined,
    meter,
    name,
    name_list,
    preformatted,
    table,
)
from sfumato.report.page import PAGE, page, with_contents
from sfumato.report.release_facts import NOTHING, ReleaseFacts, facts_of
from sfumato.report.remaining_risks import risks
from sfumato.report.requirement_rows import requirement_rows
from sfumato.report.result_files import write_text
from sfumato.report.sentences import degree, guessing, verdict, what_is_shown
from sfumato.report.value_cells import ReleasedValuesOfColumn
from sfumato.requirements import all_hold
from sfumato.tables.sources.source import Source
from sfumato.tables.targets.replacement import check_replaceable
from sfumato.tables.targets.staging import check_target
from sfumato.taxonomies.ready import taxonomy_of_release
from sfumato.taxonomies.taxonomy import Taxonomy
from sfumato.texts import ENGLISH, Texts, texts_in

SUFFIXES = (".html", ".htm")
MARKS = {
    True: ("report.mark.holds", "holding"),
    False: ("report.mark.fails", "fails"),
    None: ("report.mark.unchecked", "unchecked"),
}
LINKED = ("report.mark.linked", "unchecked")
ROLES = {
    "quasi-identifier": "report.role.quasi_identifier",
    "sensitive": "report.role.sensitive",
    "other": "report.role.other",
    "pseudonym": "report.role.pseudonym",
}
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
        self._say = texts_in(policy.about.language)
        self._words = figures.group_words(self._say, separated=self._separated)

    @property
    def verdict(self) -> str:
        """The verdict in one sentence, in English; the page has it in its own language."""
        return self._verdict_in(ENGLISH)

    @property
    def holds(self) -> bool | None:
        """Whether every line of the audit holds; None if none fails, but some could not be checked."""
        return all_hold(line["holds"] for line in self._summary["audit"])

    def summary(self) -> dict[str, Any]:
        """The figures that ``sfumato report --json`` prints."""
        return {**self._summary, **self._facts.as_dict(), "remarks": list(self._remarks)}

    def page(self) -> str:
        """The report as one offline HTML page."""
        say = self._say
        sections = (
            ("verdict", say("report.section.verdict"), self._requirements()),
            ("risks", say("report.section.risks"), self._risks()),
            ("class-sizes", say("report.section.class_sizes", groups=self._words.plural), self._class_sizes()),
            ("loss", say("report.section.loss"), self._loss()),
            ("columns", say("report.section.columns"), self._columns()),
            ("taxonomies", say("report.section.taxonomies"), self._taxonomy_cuts()),
            ("classes", say("report.section.classes"), self._classes()),
            ("pairs", say("report.section.pairs"), self._pairs()),
            ("diversity", say("report.section.diversity"), self._diversity()),
            ("policy", say("report.section.policy"), self._policy_text()),
            ("certificate", say("report.section.certificate"), self._certificate()),
        )
        skip = element("a", say("report.skip"), href="#in-short", class_="skip")
        title = self._policy.about.title or say("report.title")
        return page(title, joined([skip, self._head(), with_contents(sections, say)]), say)

    def write(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the page, whole or not at all. With ``force`` it replaces any file."""
        target = Path(path)
        check_report(target, force=force)
        write_text(self.page(), target)
        return target

    def __repr__(self) -> str:
        plural = "groups" if self._separated else "classes"
        return f"<ReleaseReport of {self._facts.records:,} records in {len(self._facts.sizes):,} {plural}>"

    @property
    def _mark(self) -> tuple[str, str]:
        """What the head of the page says, and its look. Linked records meet a policy, but are no reason to share."""
        return LINKED if self.holds and "remarks" in self._summary else MARKS[self.holds]

    def _verdict_in(self, say: Texts) -> str:
        return verdict(
            self._summary, self._policy, self._where, say, separated=self._separated, persons=self._persons_counted
        )

    def _head(self) -> Markup:
        """What the release is, who made it, what for and when; and the verdict, which can be seen from afar."""
        say, summary, about = self._say, self._summary, self._policy.about
        counted = say(
            "report.heading",
            records=say("report.records.counted", count=summary["released"]),
            classes=say(self._words.counted, count=summary["classes"]),
        )
        made_from = "report.from_persons" if self._persons_counted else "report.from_release"
        byline = [about.author, None if about.date is None else say.date(about.date)]
        mark, look = self._mark
        return element(
            "header",
            element("p", say("report.title"), class_="eyebrow"),
            element("h1", about.title or counted),
            element("p", about.purpose, class_="purpose") if about.purpose else "",
            element("p", " \N{MIDDLE DOT} ".join(filter(None, byline)), class_="soft") if any(byline) else "",
            element(
                "div",
                element("p", say(mark), class_="word"),
                element("p", self._verdict_in(say)),
                id="in-short",
                class_=f"verdict {look}",
            ),
            element("p", *([counted, ". "] if about.title else []), say(made_from), ".", class_="soft"),
        )

    def _requirements(self) -> Markup:
        say, summary = self._say, self._summary
        smallest = summary["smallest_class"]
        tiles = {
            say("report.tiles.released", count=summary["records"]): say.number(summary["released"]),
            say("report.tiles.classes", groups=self._words.plural, records=smallest): say.number(summary["classes"]),
            say("report.tiles.left_out"): say.number(summary["suppressed"]),
        }
        if "blur" in summary:
            tiles[say("report.tiles.blur")] = say.percent(summary["blur"])
        listed = [element("div", element("dt", text), element("dd", figure)) for text, figure in tiles.items()]
        return joined(
            [
                requirement_rows(summary["audit"], say, persons_counted=self._persons_counted),
                *(element("p", capitalised(audit_text(text, say)), ".", class_="warning") for text in self._remarks),
                element("dl", *listed, class_="tiles"),
                element("p", say("report.audit.about"), class_="soft"),
            ]
        )

    def _risks(self) -> Markup:
        kept = [column.name for column in self._facts.columns if column.role == "other"]
        kept += [column for column in self._facts.further if column not in self._policy.quasi_identifiers]
        remaining = risks(
            self._policy,
            kept,
            self._facts.exact_ends(self._policy),
            self._say,
            suppressed=self._summary["suppressed"],
            separated=self._separated,
            persons_counted=self._persons_counted,
        )
        items = (element("li", element("strong", risk.heading), risk.text) for risk in remaining)
        return element("ul", *items, class_="risks")

    def _class_sizes(self) -> Markup:
        if not self._facts.records:
            return self._soft("report.nothing_released")
        say, k = self._say, self._policy.k
        text = say("report.sizes.line") if k > 1 else say("report.sizes.no_line", group=self._words.singular)
        drawn, sentence = figures.class_sizes(self._facts.sizes, k, self._words, say)
        return element("div", drawn, element("div", element("p", sentence), element("p", text)), class_="split")

    def _loss(self) -> Markup:
        say = self._say
        blur: Mapping[str, float] = self._summary["blur_by_column"]
        values = {column.name: column for column in self._facts.columns}
        rows = []
        for column in self._policy.quasi_identifiers:
            shown = values.get(column)
            words = "" if shown is None else self._shown(shown)
            figure, word = joined([say("report.loss.not_given")]), say("report.loss.from_original")
            if column in blur:
                figure = joined([meter(blur[column]), say.percent(blur[column])])
                word = degree(blur[column], say)
            rows.append(
                (name(column), element("span", figure, class_="lost"), word, element("span", words, class_="words"))
            )
        heads = (
            say("report.loss.column"),
            say("report.loss.left_open"),
            say("report.loss.in_a_word"),
            say("report.loss.shown"),
        )
        caption, text, more = say("report.loss.caption"), (3, 2, 1, 0), rows[MOST_LOSSES:]
        folded_rows = (
            folded(say("report.loss.more", count=len(more)), table(caption, heads, more, text=text, look="losses"))
            if more
            else ""
        )
        return joined([table(caption, heads, rows[:MOST_LOSSES], text=text, look="losses"), folded_rows])

    def _shown(self, column: ReleasedValuesOfColumn) -> str:
        return what_is_shown(column, self._policy, self._taxonomies.get(column.name), self._say)

    def _columns(self) -> Markup:
        say, cards = self._say, []
        for column in self._facts.columns:
            different = say("report.columns.different", count=len(column.texts))
            key = "report.columns.replaced" if column.role == "pseudonym" else "report.columns.unchanged"
            about = say(key, role=say(ROLES[column.role]), values=different)
            if column.role == "quasi-identifier":
                about = f"{self._shown(column)}."
            cards.append(figures.column(column, about, say))
        further = self._facts.further
        more = (
            folded(say("report.columns.further", count=len(further)), element("p", name_list(further, say, 1000)))
            if further
            else ""
        )
        drawn = element("div", *cards, class_="cards") if cards else self._soft("report.nothing_released")
        return joined([drawn, more])

    def _taxonomy_cuts(self) -> Markup:
        say = self._say
        quasi = [column for column in self._facts.columns if column.role == "quasi-identifier"]
        cuts = (figures.taxonomy_cut(column, self._policy, self._taxonomies.get(column.name), say) for column in quasi)
        drawn = [cut for cut in cuts if cut is not None]
        if not drawn:
            return self._soft("report.taxonomies.none")
        return joined([element("p", say("report.taxonomies.about")), element("div", *drawn, class_="cards")])

    def _classes(self) -> Markup:
        if self._separated:
            return self._soft("report.classes.separated")
        if self._facts.classes is None or len(self._policy.quasi_identifiers) < 2:
            return self._soft("report.classes.single" if self._facts.records else "report.classes.empty")
        try:
            picture = picture_of(
                self._facts.classes,
                self._policy,
                self._taxonomies,
                None,
                None,
                LIGHT,
                most=MOST_RECTANGLES,
                say=self._say,
            )
        except InputError:
            return self._soft("report.classes.too_wide")
        return joined([element("p", self._say("report.classes.about")), figures.figure(picture, wide=True)])

    def _pairs(self) -> Markup:
        if not self._facts.pairs:
            return self._soft("report.pairs.none")
        cards = [figures.pair(pair, self._say) for pair in self._facts.pairs]
        return joined([element("p", self._say("report.pairs.about")), element("div", *cards, class_="cards")])

    def _diversity(self) -> Markup:
        if not self._facts.diversity:
            return self._soft("report.diversity.none")
        say, words = self._say, self._words
        cards = [
            figures.diversity(each, guessing(each, say, words.singular, words.plural), words, say)
            for each in self._facts.diversity
        ]
        text = say("report.diversity.about", group=words.singular)
        return joined([element("p", text), element("div", *cards, class_="cards")])

    def _policy_text(self) -> Markup:
        text = tomli_w.dumps(shareable_policy(self._policy))
        say = self._say
        return joined([element("p", say("report.policy.about")), preformatted(text, say("report.policy.label"))])

    def _certificate(self) -> Markup:
        say, files = self._say, self._summary.get("files") or []
        rows = [
            (element("code", file["name"]), say.number(file["bytes"]), element("code", file["sha256"]))
            for file in files
        ]
        heads = (say("report.certificate.file"), say("report.certificate.bytes"), "SHA-256")
        listed = (
            table(say("report.certificate.caption"), heads, rows, text=(0, 2))
            if rows
            else self._soft("report.certificate.none")
        )
        content, title = json.dumps(self._summary, indent=2, ensure_ascii=False), say("report.certificate.figures")
        about = element("p", say("report.certificate.about"))
        return joined([listed, about, folded(title, preformatted(content, title))])

    def _soft(self, key: str) -> Markup:
        """A sentence in the place of a picture."""
        return element("p", self._say(key), class_="soft")


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
