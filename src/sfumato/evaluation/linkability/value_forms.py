"""What the values of a column look like: forms that only identifiers have, and words that demographic columns have."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MOST = 0.9  # the share of the values that must have a form
FEWEST = 3  # values
FEWEST_CHECKED = 20  # values of a form recognised by a check digit, which one number in ten has by chance

EMAIL = re.compile(r"[^@\s,;]+@[^@\s,;]+\.[^\W\d_]{2,}")
_GROUPED_PHONE = re.compile(r"(\+|00|\(?0)?[\d()]{1,6}([\s./()-]{1,3}\d{1,8}){1,6}")
_PLAIN_PHONE = re.compile(r"(\+|00)[1-9]\d{6,14}")
_STREET = re.compile(r"[^\W\d_][^\d]{2,40}\s\d{1,5}\s?[a-zA-Z]?|\d{1,5}[a-zA-Z]?,?\s[^\W\d_][^\d]{3,40}")
_PERSON = re.compile(r"[^\W\d_][\w'\u2019.-]+,?(\s[^\W\d_][\w'\u2019.-]*){1,3}")


@dataclass(frozen=True)
class ValueForm:
    """A way in which values are written. ``description`` completes the phrase "its values look like"."""

    description: str
    matches: Callable[[str], bool]
    fewest: int = FEWEST
    varied: bool = False  # other columns may have this form too, but with few distinct values


def form_of(texts: Sequence[str], *, varied: bool) -> ValueForm | None:
    """Return the form of identifiers that nearly all of these distinct values have; ``varied``: there are many."""
    for form in FORMS:
        if len(texts) >= form.fewest and (varied or not form.varied) and share(texts, form.matches) >= MOST:
            return form
    return None


def is_identifier(text: str) -> bool:
    """Return whether a single text has a form that only identifiers have."""
    return any(form.matches(text) for form in FORMS if form.fewest == FEWEST and not form.varied)


def share(texts: Sequence[str], matches: Callable[[str], bool]) -> float:
    """Return the share of the texts that match."""
    return sum(map(matches, texts)) / len(texts) if texts else 0.0


def looks_like_persons(texts: Sequence[str]) -> bool:
    """Return whether nearly all texts are two to four words that begin with a capital letter."""
    return share(texts, lambda text: bool(_PERSON.fullmatch(text)) and text[0].isupper()) >= MOST


def looks_like_streets(texts: Sequence[str]) -> bool:
    return share(texts, lambda text: bool(_STREET.fullmatch(text))) >= MOST


def holds_email(texts: Sequence[str]) -> bool:
    """Return whether any text contains an e-mail address."""
    return any(EMAIL.search(text) for text in texts)


def postal_form(texts: Sequence[str]) -> bool:
    """Return whether the values are postal codes of a country with an unmistakable format."""
    return any(len(texts) >= FEWEST_CHECKED and share(texts, _matches(code)) >= MOST for code in _POSTAL_CODES)


_POSTAL_CODES = (
    r"[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}",  # United Kingdom
    r"[A-CEGHJ-NPR-TVXY]\d[A-Z] ?\d[A-Z]\d",  # Canada
    r"[1-9]\d{3} [A-Z]{2}",  # Netherlands
    r"\d{5}-\d{4}",  # United States, nine digits
)


def _matches(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


def _is_phone(text: str) -> bool:
    digits = sum(map(str.isdecimal, text))
    return (
        not _is_range(text)
        and 7 <= digits <= 15
        and (_PLAIN_PHONE.fullmatch(text) or _GROUPED_PHONE.fullmatch(text)) is not None
    )


def _is_range(text: str) -> bool:
    """Return whether a text is a range of whole numbers, such as 20000-23999."""
    found = re.fullmatch(r"([1-9]\d*)-([1-9]\d*)", text)
    if found is None:
        return False
    low, high = found.groups()
    return len(high) - len(low) in (0, 1) and int(low) < int(high)


def _is_iban(text: str) -> bool:
    plain = text.replace(" ", "").upper()
    if not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z\d]{11,30}", plain):
        return False
    return int("".join(str(int(character, 36)) for character in plain[4:] + plain[:4])) % 97 == 1


def _is_card(text: str) -> bool:
    plain = re.sub(r"[ -]", "", text)
    if not re.fullmatch(r"\d{13,19}", plain):
        return False
    doubled = (int(digit) * (2 if position % 2 else 1) for position, digit in enumerate(reversed(plain)))
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


def _is_french_number(text: str) -> bool:
    plain = text.replace(" ", "").upper().replace("2A", "19").replace("2B", "18")
    return re.fullmatch(r"[12]\d{14}", plain) is not None and int(plain[:13]) % 97 == 97 - int(plain[13:])


def _is_spanish_number(text: str) -> bool:
    plain = text.replace("-", "").upper()
    if not re.fullmatch(r"[XYZ\d]\d{7}[A-Z]", plain):
        return False
    number = int(plain[:-1].translate(str.maketrans("XYZ", "012")))
    return plain[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23]


def _is_german_tax_number(text: str) -> bool:
    plain = text.replace(" ", "")
    if not re.fullmatch(r"[1-9]\d{10}", plain):
        return False
    product = 10
    for digit in plain[:10]:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == int(plain[10])


def _is_nhs_number(text: str) -> bool:
    plain = text.replace(" ", "")
    if not re.fullmatch(r"\d{10}", plain):
        return False
    total = sum(int(digit) * (10 - position) for position, digit in enumerate(plain[:9]))
    return (11 - total % 11) % 11 == int(plain[9])


FORMS = (
    ValueForm("e-mail addresses", lambda text: EMAIL.fullmatch(text) is not None),
    ValueForm("UUIDs", _matches(r"\{?[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\}?", re.IGNORECASE)),
    ValueForm("hashes", _matches(r"[0-9a-f]{40}|[0-9a-f]{64}", re.IGNORECASE)),
    ValueForm("web addresses", _matches(r"(https?://|www\.)\S+", re.IGNORECASE)),
    ValueForm("network addresses", _matches(r"\d{1,3}(\.\d{1,3}){3}|([0-9a-f]{2}[:-]){5}[0-9a-f]{2}", re.IGNORECASE)),
    ValueForm("bank accounts (IBAN)", _is_iban),
    ValueForm("social security numbers of the United States", _matches(r"\d{3}-\d{2}-\d{4}")),
    ValueForm("French social security numbers", _is_french_number),
    ValueForm("Spanish identity numbers", _is_spanish_number),
    ValueForm("Italian tax codes", _matches(r"[A-Z]{6}\d\d[A-Z]\d\d[A-Z]\d{3}[A-Z]", re.IGNORECASE)),
    ValueForm("British national insurance numbers", _matches(r"[A-Z]{2} ?\d\d ?\d\d ?\d\d ?[A-D]")),
    ValueForm("German pension insurance numbers", _matches(r"\d{2} ?\d{6} ?[A-Z] ?\d{3}")),
    ValueForm("German health insurance numbers", _matches(r"[A-Z]\d{9}"), FEWEST_CHECKED),
    ValueForm("German tax numbers", _is_german_tax_number, FEWEST_CHECKED),
    ValueForm("NHS numbers", _is_nhs_number, FEWEST_CHECKED),
    ValueForm("card numbers", _is_card, FEWEST_CHECKED),
    ValueForm("telephone numbers", _is_phone, varied=True),
)

# Words that show what a column is about, in the four languages and without accents.
_SEX = (
    "male female man woman m f w d x mannlich weiblich divers mann frau homme femme hombre mujer masculino "
    "femenino masculin feminin masculine feminine other unknown unbekannt inconnu desconocido andere autre otro"
)
_ETHNICITY = (
    "white black asian caucasian hispanic nonhispanic latino africanamerican americanindian alaskanative "
    "pacificislander nativehawaiian asianpacislander amerindianeskimo mixed chinese japanese filipino asianindian "
    "korean vietnamese hawaiian mexican puertorican cuban"
)
_MONTHS = (
    "january february march april may june july august september october november december januar februar marz "
    "mai juni juli oktober dezember janvier fevrier mars avril juin juillet aout septembre octobre novembre "
    "decembre enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre jan feb "
    "mar apr jun jul aug sep sept oct nov dec okt dez"
)
_WEEKDAYS = (
    "monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag sabado "
    "domingo mon tue wed thu fri sat sun"
)
_STATES = (
    "alabama alaska arizona arkansas california colorado connecticut delaware florida georgia hawaii idaho "
    "missouri montana nebraska nevada newhampshire newjersey newmexico newyork northcarolina northdakota ohio "
    "oklahoma oregon pennsylvania rhodeisland southcarolina southdakota tennessee texas utah vermont virginia "
    "washington westvirginia wisconsin wyoming badenwurttemberg bayern berlin brandenburg bremen hamburg hessen "
    "mecklenburgvorpommern niedersachsen nordrheinwestfalen rheinlandpfalz saarland sachsen sachsenanhalt "
    "schleswigholstein thuringen"
)
_COUNTRIES = (
    "unitedstates canada mexico cuba jamaica haiti guatemala honduras nicaragua elsalvador colombia ecuador peru "
    "brazil argentina chile venezuela bolivia uruguay paraguay england scotland ireland unitedkingdom france "
    "germany italy spain portugal netherlands belgium luxembourg switzerland austria poland hungary china japan "
    "korea vietnam thailand cambodia laos philippines taiwan indonesia pakistan iran iraq israel egypt morocco "
    "algeria tunisia nigeria kenya ethiopia southafrica australia newzealand deutschland frankreich italien "
    "spanien schweiz osterreich polen turkei allemagne espagne italie suisse autriche belgique pologne turquie "
    "alemania francia italia suiza espana belgica polonia"
)
_CERTAIN_SEXES = "male female man woman mannlich weiblich mann frau homme femme hombre mujer m f w"


@dataclass(frozen=True)
class Vocabulary:
    """Words that the values of a column may be. ``description`` completes the phrase "its values are"."""

    kind: str
    description: str
    words: frozenset[str]
    least: float  # the share of the values that must be among them


VOCABULARIES = (
    Vocabulary("sex", "sexes or genders", frozenset(_SEX.split()), 1.0),
    Vocabulary("ethnicity", "ethnicities", frozenset(_ETHNICITY.split()), 0.5),
    Vocabulary("month", "months", frozenset(_MONTHS.split()), 0.7),
    Vocabulary("weekday", "days of the week", frozenset(_WEEKDAYS.split()), 0.7),
    Vocabulary("place", "states", frozenset(_STATES.split()), 0.5),
    Vocabulary("place", "countries", frozenset(_COUNTRIES.split()), 0.5),
)


def vocabulary_of(texts: Sequence[str]) -> Vocabulary | None:
    """Return the vocabulary of the values, if there are at least two and no other meaning is likely."""
    words = {_letters(text) for text in texts} - {""}
    if not 2 <= len(words) <= 500:
        return None
    for vocabulary in VOCABULARIES:
        hits = len(words & vocabulary.words)
        if hits >= max(2, vocabulary.least * len(words)) and (
            vocabulary.kind != "sex" or len(words.intersection(_CERTAIN_SEXES.split())) >= 2
        ):
            return vocabulary
    return None


def _letters(text: str) -> str:
    lower = text.lower().replace("ß", "ss")
    plain = unicodedata.normalize("NFKD", lower)
    return "".join(letter for letter in plain if letter.isalpha() and not unicodedata.combining(letter))
