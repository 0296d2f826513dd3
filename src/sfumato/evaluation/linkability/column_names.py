"""What the name of a column suggests, in English, German, French and Spanish.

A name is split into words. It has a meaning if some of its consecutive words are one of the phrases below. The longest
phrase wins: "birth country" is a country of birth, neither a birth nor a country. ``identifiers`` checks whether the
values agree: a name alone decides nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.policy.column_settings import Role

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+")
LONGEST_PHRASE = 5  # words
FEWEST_WITH_PREFIX = 4  # columns


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True)
class ColumnMeaning:
    """A possible meaning of a column. ``description`` completes the phrase "its name suggests"."""

    kind: str
    role: Role
    description: str
    phrases: str


MEANINGS = (
    ColumnMeaning(
        "name",
        "identifier",
        "the name of a person",
        "firstname forename givenname lastname surname familyname fullname middlename maidenname nickname birthname "
        "vorname vornamen nachname familienname geburtsname rufname zuname "
        "prenom prenoms nomdefamille nomcomplet nomdenaissance nompatient "
        "apellido apellidos primerapellido segundoapellido nombrecompleto nombredepila nombreyapellidos nombrepaciente "
        "cognome",
    ),
    ColumnMeaning(
        "email",
        "identifier",
        "an e-mail address",
        "email emailaddress mail mailaddress mailadresse courriel adresseemail correo correoelectronico",
    ),
    ColumnMeaning(
        "phone",
        "identifier",
        "a telephone number",
        "phone phonenumber telephone telephonenumber tel mobile mobilenumber cellphone fax faxnumber "
        "telefon telefonnummer handy handynummer mobilnummer rufnummer "
        "numerodetelephone telefono movil numerodetelefono",
    ),
    ColumnMeaning(
        "address",
        "identifier",
        "an address",
        "address streetaddress homeaddress addressline street streetname housenumber "
        "strasse hausnummer adresse anschrift wohnadresse rue direccion calle domicilio indirizzo",
    ),
    ColumnMeaning(
        "number",
        "identifier",
        "an official number",
        "ssn socialsecurity socialsecuritynumber nationalid nationalnumber passport passportnumber taxid taxnumber "
        "insurancenumber driverlicense driverslicense licensenumber nhsnumber nino mrn medicalrecordnumber "
        "ausweisnummer passnummer personalausweis steuernummer steuerid sozialversicherungsnummer svnr "
        "versichertennummer krankenversichertennummer fuhrerschein fuhrerscheinnummer "
        "nir numerodesecuritesociale numsecu numerosecu passeport dni nie nif curp cpf pasaporte codicefiscale "
        "personnummer bsn pesel",
    ),
    ColumnMeaning(
        "account",
        "identifier",
        "an account or a card",
        "iban account accountnumber accountno creditcard creditcardnumber cardnumber konto kontonummer kreditkarte "
        "kreditkartennummer numerodecompte cartebancaire cuenta numerodecuenta tarjeta",
    ),
    ColumnMeaning(
        "online",
        "identifier",
        "an account or a device online",
        "username login loginname userid ip ipaddress mac macaddress url website homepage cookie cookieid deviceid "
        "imei benutzername nomutilisateur usuario nombredeusuario",
    ),
    ColumnMeaning(
        "vehicle",
        "identifier",
        "a vehicle",
        "licenseplate licenceplate numberplate plate vin kennzeichen plaque plaqueimmatriculation matricula",
    ),
    ColumnMeaning(
        "postal",
        "quasi-identifier",
        "a postal code",
        "zip zipcode zip5 postcode postalcode postal plz postleitzahl codepostal cp codigopostal",
    ),
    ColumnMeaning(
        "age",
        "quasi-identifier",
        "age",
        "age ageyears agegroup ageband agerange alter altersjahre altersgruppe lebensalter trancheage edad grupoedad",
    ),
    ColumnMeaning(
        "birth",
        "quasi-identifier",
        "birth",
        "birthdate dateofbirth birthday dayofbirth dob birthyear yearofbirth yob birthmonth monthofbirth "
        "geburtsdatum geburtstag geburtsjahr gebdat gebdatum datenaissance datedenaissance anneenaissance "
        "anneedenaissance fechanacimiento fechadenacimiento anonacimiento anodenacimiento",
    ),
    ColumnMeaning(
        "death",
        "quasi-identifier",
        "death",
        "deathdate dateofdeath deathyear deathmonth deathday todesdatum sterbedatum datededeces datedeces "
        "fechadefuncion fechadedefuncion",
    ),
    ColumnMeaning("sex", "quasi-identifier", "sex or gender", "sex gender geschlecht sexe genre sexo genero"),
    ColumnMeaning(
        "ethnicity",
        "quasi-identifier",
        "ethnicity",
        "race ethnicity ethnicgroup ethnic ethnicorigin hispanic hispanicorigin ethnie origineethnique raza etnia "
        "origenetnico",
    ),
    ColumnMeaning(
        "origin",
        "quasi-identifier",
        "nationality or country of birth",
        "nationality citizenship birthcountry nativecountry countryofbirth birthplace placeofbirth countryoforigin "
        "nationalitat staatsangehorigkeit staatsburgerschaft geburtsland geburtsort herkunftsland "
        "nationalite citoyennete paysnaissance paysdenaissance lieunaissance lieudenaissance "
        "nacionalidad ciudadania paisnacimiento paisdenacimiento lugarnacimiento lugardenacimiento",
    ),
    ColumnMeaning(
        "language",
        "quasi-identifier",
        "language",
        "language mothertongue nativelanguage sprache muttersprache langue languematernelle idioma lenguamaterna",
    ),
    ColumnMeaning(
        "marital",
        "quasi-identifier",
        "marital status",
        "marital maritalstatus civilstatus familienstand zivilstand etatcivil situationfamiliale estadocivil",
    ),
    ColumnMeaning(
        "household",
        "quasi-identifier",
        "family or household",
        "relationship household householdsize familysize children numberofchildren numchildren "
        "kinder kinderzahl anzahlkinder haushalt haushaltsgrosse enfants nombreenfants nombredenfants menage "
        "hijos numerohijos numerodehijos hogar",
    ),
    ColumnMeaning(
        "education",
        "quasi-identifier",
        "education",
        "education educationlevel educationnum schooling highestdegree bildung bildungsabschluss bildungsstand "
        "schulabschluss schulbildung diplome niveauetudes niveaudetudes educacion niveleducativo estudios "
        "niveldeestudios",
    ),
    ColumnMeaning(
        "work",
        "quasi-identifier",
        "employment",
        "workclass classofworker employmentstatus employment working erwerbsstatus beschaftigung "
        "beschaftigungsstatus statutemploi situacionlaboral",
    ),
    ColumnMeaning(
        "place",
        "quasi-identifier",
        "a place",
        "country countryname city cityname town village county province region district municipality community "
        "residence placeofresidence neighborhood neighbourhood statename "
        "stadt ort wohnort gemeinde kreis landkreis bundesland bezirk kanton wohnland "
        "pays ville commune departement canton lieuderesidence "
        "pais ciudad municipio provincia localidad",
    ),
    ColumnMeaning(
        "coordinate",
        "quasi-identifier",
        "a coordinate on the map",
        "latitude longitude lat lon lng breitengrad langengrad latitud longitud",
    ),
    ColumnMeaning("month", "quasi-identifier", "a month", "month monat mois mes"),
    ColumnMeaning("year", "quasi-identifier", "a year", "year jahr annee ano"),
    ColumnMeaning(
        "occupation",
        "decide",
        "occupation: others may know it (quasi-identifier), or it is what to protect (sensitive)",
        "occupation job jobtitle profession beruf berufsbezeichnung metier profesion ocupacion",
    ),
    ColumnMeaning(
        "money",
        "decide",
        "money, which is usually sensitive",
        "income salary salaryclass wage wages earnings pay capitalgain capitalloss balance debt "
        "gehalt einkommen lohn verdienst schulden salaire revenu revenus salario ingresos sueldo renta",
    ),
    ColumnMeaning(
        "health",
        "decide",
        "health, which is usually sensitive",
        "diagnosis diagnosisgroup disease illness icd icd10 treatment medication drug symptom symptoms injury "
        "disability bloodtype bloodgroup hiv causeofdeath contraceptive contraceptivemethod pregnancy "
        "diagnose hauptdiagnose krankheit befund therapie medikament behinderung blutgruppe todesursache "
        "diagnostic maladie traitement medicament groupesanguin diagnostico enfermedad tratamiento medicamento",
    ),
    ColumnMeaning(
        "belief",
        "decide",
        "belief or private life, which is sensitive and may be known to others as well",
        "religion faith denomination political politicalparty unionmember sexualorientation conviction criminalrecord "
        "konfession partei gewerkschaft sexuelleorientierung vorstrafen croyance partipolitique syndicat "
        "orientationsexuelle creencia partidopolitico sindicato orientacionsexual",
    ),
    ColumnMeaning(
        "body",
        "decide",
        "a measure or feature of the body, which others may see",
        "height bodyheight weight bodyweight bmi eyecolor eyecolour haircolor haircolour korpergrosse grosse gewicht "
        "korpergewicht augenfarbe haarfarbe taille poids estatura peso",
    ),
    ColumnMeaning(
        "state",
        "decide",
        "a state, which may be a region (quasi-identifier) or a condition",
        "state staat etat estado land location area",
    ),
    ColumnMeaning(
        "text",
        "decide",
        "free text, which may name persons",
        "note notes comment comments remark remarks freetext description bemerkung bemerkungen kommentar anmerkung "
        "freitext commentaire commentaires remarque observaciones comentario comentarios notas",
    ),
)
NAMES = frozenset({"name", "names", "namen", "nom", "noms", "nombre", "nombres"})
PERSONS = _words(
    "patient patients person persons people customer client member user employee student subject participant "
    "respondent resident citizen contact holder owner insured first last full family given middle mother father spouse "
    "husband wife child patientin patienten kunde kunden mitarbeiter personal personen versicherten versicherter "
    "teilnehmer proband probanden schuler studenten bewohner mutter vater kind personne citoyen salarie eleve assure "
    "mere pere paciente cliente empleado alumno persona asegurado madre padre"
)
RECORDS = _words(
    "record row case encounter visit admission stay sample observation entry transaction order ticket response "
    "interview fall zeile datensatz aufnahme besuch cas visite sejour enregistrement caso visita registro ingreso"
)
NUMBERED = _words(
    "id ids uid guid uuid nr no num number nbr nummer numero code key ref reference kennung schlussel identifier "
    "identifiant identificador clave index pid"
)
COMPOUND = ("nummer", "number", "kennung", "nr", "id")  # endings of compounds with PERSONS and RECORDS
# Things that have an age, a name or a size without being a person.
THINGS = _words(
    "vehicle car building machine product page company firm hospital store shop school drug file column table brand "
    "model event fahrzeug gebaude produkt firma krankenhaus laden schule datei veranstaltung vehicule produit "
    "entreprise hopital magasin ecole fichier vehiculo producto empresa escuela archivo"
)
OF_PERSONS = ("name", "age", "body")


@dataclass(frozen=True)
class NameHints:
    """What the words of a name suggest: its meaning, and whether the column numbers persons or records."""

    meaning: ColumnMeaning | None
    numbers_persons: bool
    numbers_records: bool


def hints_of(names: Sequence[str]) -> dict[str, NameHints]:
    """Return the hints of every name. A prefix that all names of a table share is ignored."""
    start = _common_start(names) if len(names) >= FEWEST_WITH_PREFIX else 0
    return {name: _hints(name, name[start:]) for name in names}


def words_of(name: str) -> list[str]:
    """Split a name into words, in lower case and without accents."""
    return [_plain(word) for word in _WORD.findall(unicodedata.normalize("NFKC", name))]


def _common_start(names: Sequence[str]) -> int:
    """Return the number of characters that all names share at the start."""
    first, last = min(names), max(names)
    return next((index for index, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


def _parts(word: str) -> list[str]:
    """Split a compound such as "patientid" into its two parts; return any other word as it is."""
    for end in COMPOUND:
        start = word.removesuffix(end)
        if start != word and start in PERSONS | RECORDS:
            return [start, end]
    return [word]


def _plain(word: str) -> str:
    lower = word.lower().replace("ß", "ss")
    letters = "".join(letter for letter in unicodedata.normalize("NFKD", lower) if not unicodedata.combining(letter))
    # Without umlauts on the keyboard, Germans write two letters.
    return letters.replace("ae", "a").replace("oe", "o").replace("ue", "u")


_BY_PHRASE = {_plain(phrase): meaning for meaning in MEANINGS for phrase in meaning.phrases.split()}


def _hints(name: str, rest: str) -> NameHints:
    whole, words = words_of(name), words_of(rest)
    known = {part for word in (*whole, *words) for part in _parts(word)}
    counts = "of" in known and bool(known & {"number", "no", "num"})  # "number of visits" counts, it does not identify
    numbered = bool(known & NUMBERED) and not counts
    return NameHints(
        _meaning(words) or _meaning(whole),
        numbered and bool(known & PERSONS),
        numbered and (bool(known & RECORDS) or len(words) == 1),
    )


def _meaning(words: Sequence[str]) -> ColumnMeaning | None:
    known = set(words)
    runs = {
        "".join(words[start:end])
        for start in range(len(words))
        for end in range(start + 1, min(start + LONGEST_PHRASE, len(words)) + 1)
    }
    longest = max(runs & _BY_PHRASE.keys(), key=lambda phrase: (len(phrase), phrase), default=None)
    if longest is not None:
        meaning = _BY_PHRASE[longest]
        return None if meaning.kind in OF_PERSONS and known & THINGS else meaning
    return MEANINGS[0] if known & NAMES and (known & PERSONS or len(known) == 1) else None
