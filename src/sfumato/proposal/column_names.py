"""What the name of a column says, in English, German, French and Spanish.

A name is split into words; a meaning is found when some of its words in a row are one of the phrases below. The longest
phrase wins: "birth country" is a country of birth, not a birth and not a country. Whether the values agree is asked
elsewhere: a name alone decides nothing.
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
class Meaning:
    """What a column may be about. ``says`` goes on from "its name says"."""

    kind: str
    role: Role
    says: str
    phrases: str


MEANINGS = (
    Meaning(
        "name",
        "identifier",
        "the name of a person",
        "firstname forename givenname lastname surname familyname fullname middlename maidenname nickname birthname "
        "vorname vornamen nachname familienname geburtsname rufname zuname "
        "prenom prenoms nomdefamille nomcomplet nomdenaissance nompatient "
        "apellido apellidos primerapellido segundoapellido nombrecompleto nombredepila nombreyapellidos nombrepaciente "
        "cognome",
    ),
    Meaning(
        "email",
        "identifier",
        "an e-mail address",
        "email emailaddress mail mailaddress mailadresse courriel adresseemail correo correoelectronico",
    ),
    Meaning(
        "phone",
        "identifier",
        "a telephone number",
        "phone phonenumber telephone telephonenumber tel mobile mobilenumber cellphone fax faxnumber "
        "telefon telefonnummer handy handynummer mobilnummer rufnummer "
        "numerodetelephone telefono movil numerodetelefono",
    ),
    Meaning(
        "address",
        "identifier",
        "an address",
        "address streetaddress homeaddress addressline street streetname housenumber "
        "strasse hausnummer adresse anschrift wohnadresse rue direccion calle domicilio indirizzo",
    ),
    Meaning(
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
    Meaning(
        "account",
        "identifier",
        "an account or a card",
        "iban account accountnumber accountno creditcard creditcardnumber cardnumber konto kontonummer kreditkarte "
        "kreditkartennummer numerodecompte cartebancaire cuenta numerodecuenta tarjeta",
    ),
    Meaning(
        "online",
        "identifier",
        "an account or a device online",
        "username login loginname userid ip ipaddress mac macaddress url website homepage cookie cookieid deviceid "
        "imei benutzername nomutilisateur usuario nombredeusuario",
    ),
    Meaning(
        "vehicle",
        "identifier",
        "a vehicle",
        "licenseplate licenceplate numberplate plate vin kennzeichen plaque plaqueimmatriculation matricula",
    ),
    Meaning(
        "postal",
        "quasi-identifier",
        "a postal code",
        "zip zipcode zip5 postcode postalcode postal plz postleitzahl codepostal cp codigopostal",
    ),
    Meaning(
        "age",
        "quasi-identifier",
        "age",
        "age ageyears agegroup ageband agerange alter altersjahre altersgruppe lebensalter trancheage edad grupoedad",
    ),
    Meaning(
        "birth",
        "quasi-identifier",
        "birth",
        "birthdate dateofbirth birthday dayofbirth dob birthyear yearofbirth yob birthmonth monthofbirth "
        "geburtsdatum geburtstag geburtsjahr gebdat gebdatum datenaissance datedenaissance anneenaissance "
        "anneedenaissance fechanacimiento fechadenacimiento anonacimiento anodenacimiento",
    ),
    Meaning(
        "death",
        "quasi-identifier",
        "death",
        "deathdate dateofdeath deathyear deathmonth deathday todesdatum sterbedatum datededeces datedeces "
        "fechadefuncion fechadedefuncion",
    ),
    Meaning("sex", "quasi-identifier", "sex or gender", "sex gender geschlecht sexe genre sexo genero"),
    Meaning(
        "ethnicity",
        "quasi-identifier",
        "ethnicity",
        "race ethnicity ethnicgroup ethnic ethnicorigin hispanic hispanicorigin ethnie origineethnique raza etnia "
        "origenetnico",
    ),
    Meaning(
        "origin",
        "quasi-identifier",
        "nationality or country of birth",
        "nationality citizenship birthcountry nativecountry countryofbirth birthplace placeofbirth countryoforigin "
        "nationalitat staatsangehorigkeit staatsburgerschaft geburtsland geburtsort herkunftsland "
        "nationalite citoyennete paysnaissance paysdenaissance lieunaissance lieudenaissance "
        "nacionalidad ciudadania paisnacimiento paisdenacimiento lugarnacimiento lugardenacimiento",
    ),
    Meaning(
        "language",
        "quasi-identifier",
        "language",
        "language mothertongue nativelanguage sprache muttersprache langue languematernelle idioma lenguamaterna",
    ),
    Meaning(
        "marital",
        "quasi-identifier",
        "marital status",
        "marital maritalstatus civilstatus familienstand zivilstand etatcivil situationfamiliale estadocivil",
    ),
    Meaning(
        "household",
        "quasi-identifier",
        "family or household",
        "relationship household householdsize familysize children numberofchildren numchildren "
        "kinder kinderzahl anzahlkinder haushalt haushaltsgrosse enfants nombreenfants nombredenfants menage "
        "hijos numerohijos numerodehijos hogar",
    ),
    Meaning(
        "education",
        "quasi-identifier",
        "education",
        "education educationlevel educationnum schooling highestdegree bildung bildungsabschluss bildungsstand "
        "schulabschluss schulbildung diplome niveauetudes niveaudetudes educacion niveleducativo estudios "
        "niveldeestudios",
    ),
    Meaning(
        "work",
        "quasi-identifier",
        "employment",
        "workclass classofworker employmentstatus employment working erwerbsstatus beschaftigung "
        "beschaftigungsstatus statutemploi situacionlaboral",
    ),
    Meaning(
        "place",
        "quasi-identifier",
        "a place",
        "country countryname city cityname town village county province region district municipality community "
        "residence placeofresidence neighborhood neighbourhood statename "
        "stadt ort wohnort gemeinde kreis landkreis bundesland bezirk kanton wohnland "
        "pays ville commune departement canton lieuderesidence "
        "pais ciudad municipio provincia localidad",
    ),
    Meaning(
        "coordinate",
        "quasi-identifier",
        "a coordinate on the map",
        "latitude longitude lat lon lng breitengrad langengrad latitud longitud",
    ),
    Meaning("month", "quasi-identifier", "a month", "month monat mois mes"),
    Meaning("year", "quasi-identifier", "a year", "year jahr annee ano"),
    Meaning(
        "occupation",
        "decide",
        "occupation: others may know it (quasi-identifier), or it is what to protect (sensitive)",
        "occupation job jobtitle profession beruf berufsbezeichnung metier profesion ocupacion",
    ),
    Meaning(
        "money",
        "decide",
        "money, which is usually sensitive",
        "income salary salaryclass wage wages earnings pay capitalgain capitalloss balance debt "
        "gehalt einkommen lohn verdienst schulden salaire revenu revenus salario ingresos sueldo renta",
    ),
    Meaning(
        "health",
        "decide",
        "health, which is usually sensitive",
        "diagnosis diagnosisgroup disease illness icd icd10 treatment medication drug symptom symptoms injury "
        "disability bloodtype bloodgroup hiv causeofdeath contraceptive contraceptivemethod pregnancy "
        "diagnose hauptdiagnose krankheit befund therapie medikament behinderung blutgruppe todesursache "
        "diagnostic maladie traitement medicament groupesanguin diagnostico enfermedad tratamiento medicamento",
    ),
    Meaning(
        "belief",
        "decide",
        "belief or private life, which is sensitive and may be known to others as well",
        "religion faith denomination political politicalparty unionmember sexualorientation conviction criminalrecord "
        "konfession partei gewerkschaft sexuelleorientierung vorstrafen croyance partipolitique syndicat "
        "orientationsexuelle creencia partidopolitico sindicato orientacionsexual",
    ),
    Meaning(
        "body",
        "decide",
        "a measure or feature of the body, which others may see",
        "height bodyheight weight bodyweight bmi eyecolor eyecolour haircolor haircolour korpergrosse grosse gewicht "
        "korpergewicht augenfarbe haarfarbe taille poids estatura peso",
    ),
    Meaning(
        "state",
        "decide",
        "a state, which may be a region (quasi-identifier) or a condition",
        "state staat etat estado land location area",
    ),
    Meaning(
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
COMPOUND = ("nummer", "number", "kennung", "nr", "id")  # what the words before are written together with
# What has an age, a name or a size without being a person.
THINGS = _words(
    "vehicle car building machine product page company firm hospital store shop school drug file column table brand "
    "model event fahrzeug gebaude produkt firma krankenhaus laden schule datei veranstaltung vehicule produit "
    "entreprise hopital magasin ecole fichier vehiculo producto empresa escuela archivo"
)
OF_PERSONS = ("name", "age", "body")


@dataclass(frozen=True)
class NameHints:
    """What the words of a name say: its meaning, and whether it is one that numbers persons or records."""

    meaning: Meaning | None
    numbers_persons: bool
    numbers_records: bool


def hints_of(names: Sequence[str]) -> dict[str, NameHints]:
    """The hints of every name. Characters that all names of a table begin with say nothing of any of them."""
    start = _common_start(names) if len(names) >= FEWEST_WITH_PREFIX else 0
    return {name: _hints(name, name[start:]) for name in names}


def words_of(name: str) -> list[str]:
    """The words of a name, in lower case and without accents."""
    return [_plain(word) for word in _WORD.findall(unicodedata.normalize("NFKC", name))]


def _common_start(names: Sequence[str]) -> int:
    """How many characters all names begin with."""
    low, high = min(names), max(names)
    return next((place for place, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))


def _parts(word: str) -> list[str]:
    """The word, or its parts where it is a number of somebody in one word."""
    for end in COMPOUND:
        start = word.removesuffix(end)
        if start != word and start in PERSONS | RECORDS:
            return [start, end]
    return [word]


def _plain(word: str) -> str:
    lower = word.lower().replace("ß", "ss")
    letters = "".join(one for one in unicodedata.normalize("NFKD", lower) if not unicodedata.combining(one))
    # Germans without umlauts on their keyboard write two letters.
    return letters.replace("ae", "a").replace("oe", "o").replace("ue", "u")


_BY_PHRASE = {_plain(phrase): meaning for meaning in MEANINGS for phrase in meaning.phrases.split()}


def _hints(name: str, rest: str) -> NameHints:
    whole, words = words_of(name), words_of(rest)
    known = {part for word in (*whole, *words) for part in _parts(word)}
    counts = "of" in known and bool(known & {"number", "no", "num"})  # how many of something, not which of them
    numbered = bool(known & NUMBERED) and not counts
    return NameHints(
        _meaning(words) or _meaning(whole),
        numbered and bool(known & PERSONS),
        numbered and (bool(known & RECORDS) or len(words) == 1),
    )


def _meaning(words: Sequence[str]) -> Meaning | None:
    known = set(words)
    runs = {
        "".join(words[start:end])
        for start in range(len(words))
        for end in range(start + 1, min(start + LONGEST_PHRASE, len(words)) + 1)
    }
    found = max(runs & _BY_PHRASE.keys(), key=lambda phrase: (len(phrase), phrase), default=None)
    if found is not None:
        meaning = _BY_PHRASE[found]
        return None if meaning.kind in OF_PERSONS and known & THINGS else meaning
    return MEANINGS[0] if known & NAMES and (known & PERSONS or len(known) == 1) else None
