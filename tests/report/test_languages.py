"""Pages in another language: everything that Sfumato says is translated, and nothing of the release changes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato
from sfumato.evaluation.audit import anatomy_audit
from sfumato.evaluation.audit.audit import pseudonym_remark
from sfumato.policy import Policy
from sfumato.policy.levels import READY_LEVELS
from sfumato.releases.linked_certificate import ACCEPTED
from sfumato.report.audit_texts import audit_text
from sfumato.requirements import kinds
from sfumato.requirements.without_persons import REASONS
from sfumato.texts import ENGLISH, texts_in

GERMAN = texts_in("de")
# English words that no German page may have outside of the policy and the figures for programs.
ENGLISH_WORDS = re.compile(
    r"\b(the|records?|release|released|class|classes|column|holds|blur|left|open|value|values|nothing|share)\b"
)


def policy(**more: Any) -> Policy:
    columns: dict[str, Any] = {name: {"role": "quasi-identifier"} for name in ("alter", "ort", "tag")}
    columns["tag"]["taxonomy"] = {"calendar": ["month", "year"]}
    columns["tag"]["finest"] = "month"
    columns |= {"diagnose": {"role": "sensitive"}, "kosten": {"role": "other"}}
    frequency = {"attribute": "diagnose", "kind": "frequency", "l": 2}
    about = {"title": "Fälle", "author": "Amt", "purpose": "Forschung", "date": "2026-03-31", "language": "de"}
    return Policy.from_dict({"about": about, "columns": columns, "privacy": {"k": 4, "sensitive": [frequency]}, **more})


def table(count: int = 240) -> pa.Table:
    return pa.table(
        {
            "alter": [20 + (7 * row) % 50 for row in range(count)],
            "ort": [f"Ort {row % 3}" if row % 11 else None for row in range(count)],
            "tag": [f"202{row % 3}-{1 + row % 12:02}-15" for row in range(count)],
            "diagnose": [("Grippe", "Husten", "Ulkus")[row % 3] for row in range(count)],
            "kosten": [f"{1000 + 37 * row},5" for row in range(count)],
        }
    )


def said(page: str) -> str:
    """What the page says, without its style, the policy, the figures for programs, and warnings of the run."""
    body = page[page.index("</style>") :]
    body = re.sub(
        r"<pre.*?</pre>|<p class=\"warning\" lang=\"en\">.*?</p>|<footer>.*?</footer>", "", body, flags=re.DOTALL
    )
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("german")
    asked = policy(accept_linkable=["kosten"], input={"decimal": ",", "separator": ";"})
    pa.csv.write_csv(table(), folder / "original.csv", pa.csv.WriteOptions(delimiter=";"))
    release = sfumato.anonymize(folder / "original.csv", asked)
    release.write(folder / "neu.csv")
    release.report(folder / "report.html")
    release.report_private(folder / "private.html")
    release.codebook().write(folder / "codebook.html")
    return folder


@pytest.mark.parametrize("name", ["report", "private", "codebook"])
def test_a_german_page_says_nothing_in_english(pages: Path, name: str) -> None:
    page = (pages / f"{name}.html").read_text("utf-8")
    assert '<html lang="de">' in page
    assert ENGLISH_WORDS.findall(said(page)) == []


def test_the_codebook_names_levels_in_german(pages: Path) -> None:
    text = said((pages / "codebook.html").read_text("utf-8"))
    assert "Zeiträume des Kalenders: Monate oder Jahre" in text


def test_the_report_says_what_the_release_is_called_who_made_it_what_for_and_when(pages: Path) -> None:
    text = said((pages / "report.html").read_text("utf-8"))
    assert "Bericht über eine Veröffentlichung Fälle Forschung Amt · 31. März 2026 Erfüllt die Vorgaben" in text
    assert "k = 4 und die Anforderung an sensible Spalten sind erfüllt" in text
    assert "k-Anonymität, k = 4 erfüllt" in text
    assert "240 Datensätze in " in text


def test_the_verdict_for_the_terminal_and_figures_for_programs_stay_english(pages: Path) -> None:
    release = sfumato.report_release(pages / "original.csv", pages / "neu.csv")
    assert release.verdict.startswith("k = 4 and the requirement on sensitive columns hold")
    shown = {each["value"] for column in release.summary()["released_columns"] for each in column["values"]}
    assert "null" in shown
    assert "keine Angabe" not in shown
    book = sfumato.codebook(pages / "neu.csv")
    assert book.title == "240 records in 5 columns"
    assert {column["role"] for column in book.as_dict()["columns"]} == {"quasi-identifier", "sensitive", "other"}


def test_a_flag_gives_the_report_another_language(pages: Path) -> None:
    made = sfumato.report_release(pages / "original.csv", pages / "neu.csv", language="en")
    assert "Meets its policy" in made.page()
    assert '<html lang="en">' in made.page()


def test_kept_numbers_with_decimal_commas_have_a_histogram(pages: Path) -> None:
    text = said((pages / "report.html").read_text("utf-8"))
    costs = text[text.index("kosten Datensätze nach Ausprägung.") :]
    assert re.match("kosten Datensätze nach Ausprägung[.] 1000 \N{EN DASH} 1500: [0-9]+[.]", costs) is not None


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_every_kind_of_requirement_is_translated(kind: str) -> None:
    entry = {"attribute": "diagnose", "kind": kind, **kinds()[kind].example}
    asked = Policy.from_dict(
        {
            "columns": {"alter": {"role": "quasi-identifier"}, "diagnose": {"role": "sensitive"}},
            "privacy": {"k": 2, "sensitive": [entry]},
        }
    )
    rows = pa.table({"alter": [20, 20, 30, 30], "diagnose": [1, 2, 1, 2]})
    lines = [line.requirement for line in sfumato.audit(rows, policy=asked).verdicts]
    assert len(lines) == 2
    for line in lines:
        for text in (line, f"{line}, jointly"):
            assert audit_text(text, ENGLISH) == text
            assert audit_text(text, GERMAN) != text


@pytest.mark.parametrize(
    "text",
    [
        *(f"'tag' shows nothing finer than the {name}" for names in READY_LEVELS.values() for name in names),
        "'alter' shows nothing coarser than intervals of 10",
        "'ort' shows nothing finer than 3 characters",
        "'ort' shows nothing finer than level 2 of its taxonomy",
        REASONS[None],
        pseudonym_remark(["nummer"]),
        anatomy_audit.NOT_HIDDEN,
        anatomy_audit.SEEDED,
        anatomy_audit.NULL_IS_VALUE,
        "the file is the one that was certified",
        "there is no certificate beside the release: it is incomplete, or was made elsewhere",
        *ACCEPTED.values(),
    ],
)
def test_every_sentence_of_an_audit_is_translated(text: str) -> None:
    assert ENGLISH_WORDS.findall(audit_text(text, GERMAN)) == []
    assert " the " not in audit_text(text, GERMAN)
    assert audit_text(text, GERMAN) != text
