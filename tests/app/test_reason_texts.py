"""Every reason that a proposal can give is said in German too."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.app.reason_texts import reason_text
from sfumato.evaluation.linkability.column_names import MEANINGS
from sfumato.evaluation.linkability.value_forms import FORMS, VOCABULARIES
from sfumato.proposal import propose_policy
from sfumato.synthetic import generate
from sfumato.texts import texts_in

GERMAN = texts_in("de")


@pytest.mark.parametrize("meaning", [meaning.description for meaning in MEANINGS])
def test_every_meaning_of_a_name_is_said_in_german(meaning: str) -> None:
    for reason in (f"its name suggests {meaning}, and its values fit", f"its name suggests {meaning}"):
        said = reason_text(reason, GERMAN)
        assert said.startswith("dem Namen nach ")
        assert meaning not in said


@pytest.mark.parametrize("form", [form.description for form in (*FORMS, *VOCABULARIES)])
def test_every_form_of_values_is_said_in_german(form: str) -> None:
    assert reason_text(f"its values look like {form}", GERMAN).startswith("ihre Werte sehen aus wie ")


def test_parts_of_a_reason_are_said_one_by_one_and_english_stays_as_it_is() -> None:
    reason = "some of its texts contain e-mail addresses; 12% of the records have a value that no other record has"
    german = (
        "einige ihrer Texte enthalten E-Mail-Adressen; 12\N{NO-BREAK SPACE}% der Datensätze haben einen Wert, den kein "
        "anderer hat"
    )
    assert reason_text(reason, GERMAN) == german
    assert reason_text(reason, texts_in("en")) == reason
    assert reason_text("what a later version may say", GERMAN) == "what a later version may say"


@pytest.mark.not_quick
@pytest.mark.compiled
def test_no_reason_for_the_export_of_a_hospital_stays_english(tmp_path: Path) -> None:
    generate("hospital", 300, tmp_path / "export.csv", flaws=True)
    for column in propose_policy(tmp_path / "export.csv").columns:
        assert reason_text(column.reason, GERMAN) != column.reason
