"""What the export of a hospital says beside the stays: names, postal codes, codes of ICD-10, notes, tokens.

Every number here is made up to look plausible; none is an estimate. Names are frequent ones, combined at random. Shares
need not add up to anything.
"""

from __future__ import annotations

# fmt: off
FIRST_NAMES = {
    "female": (
        "Anna", "Bärbel", "Christine", "Dörte", "Elif", "Franziska", "Gülay", "Hannelore", "Ingrid", "Jana", "Käthe",
        "Lena", "Margarete", "Nadja", "Ottilie", "Petra", "Renée", "Sabine", "Ulrike", "Zoë",
    ),
    "male": (
        "Ahmet", "Björn", "Carsten", "Dieter", "Emil", "François", "Günther", "Hans-Jürgen", "Igor", "Jörg", "Klaus",
        "Lukas", "Müslüm", "Norbert", "Olaf", "Pavel", "Rüdiger", "Stefan", "Uwe", "Wolfgang",
    ),
}
LAST_NAMES = (
    "Albrecht", "Bäcker", "Böhm", "Çelik", "Dietrich", "Döring", "Engel", "Fuchs", "Gärtner", "Große", "Haas",
    "Jäger", "Jansen", "Keller", "König", "Köhler", "Krüger", "Lange", "Lévy", "Lüdtke", "Möller", "Müller", "Nowak",
    "Öztürk", "Peters", "Pohl", "Richter", "Roth", "Schäfer", "Schröder", "Schütte", "Simon", "Süß", "Thiele", "Vogt",
    "Walther", "Weiß", "Yilmaz", "Zöllner",
)
# fmt: on

SEXES = {"female": "w", "male": "m"}
READMITTED = {"no": "nein", "yes": "ja"}
INSURANCES = {"gesetzlich": 86, "privat": 12, "selbst": 2}

DISTRICTS = {
    "101": "010",
    "102": "011",
    "103": "012",
    "108": "013",
    "112": "014",
    "113": "015",
    "117": "016",
    "120": "017",
    "125": "018",
}
"""The beginning of a postal code in the table of stays, and in the export, where codes begin with a zero."""

CODES = {
    "hypertension": ("I10.00", "I10.90"),
    "heart failure": ("I50.01", "I50.14", "I50.9"),
    "heart attack": ("I21.0", "I21.4"),
    "stroke": ("I61.0", "I63.3", "I63.4"),
    "asthma": ("J45.0", "J45.9"),
    "pneumonia": ("J15.9", "J18.0", "J18.9"),
    "COPD": ("J44.00", "J44.19"),
    "flu": ("J10.1", "J11.1"),
    "breast cancer": ("C50.4", "C50.9"),
    "prostate cancer": ("C61",),
    "colon cancer": ("C18.2", "C18.7"),
    "lung cancer": ("C34.1", "C34.3"),
    "appendicitis": ("K35.30", "K35.8"),
    "gallstones": ("K80.10", "K80.20"),
    "hernia": ("K40.90", "K42.9"),
    "gastritis": ("K29.1", "K29.7"),
    "arthritis": ("M16.1", "M17.1"),
    "hip fracture": ("S72.00", "S72.10"),
    "back pain": ("M54.4", "M54.5"),
    "gout": ("M10.00", "M10.97"),
    "depression": ("F32.1", "F33.2"),
    "anxiety disorder": ("F41.0", "F41.1"),
    "migraine": ("G43.0", "G43.1"),
    "epilepsy": ("G40.2", "G40.3"),
    "childbirth": ("O80",),
    "pregnancy complication": ("O14.0", "O21.0"),
    "diabetes": ("E10.90", "E11.90", "E11.91"),
    "kidney stones": ("N20.0", "N20.1"),
    "kidney failure": ("N17.9", "N18.5"),
}
"""The codes of ICD-10 of each diagnosis."""

NOTES = (
    "kam über die Notaufnahme, Zimmer {room}",
    "Frau {last} anrufen, Durchwahl {room}",
    "Rückruf an {first} {last} erbeten; Tochter \N{EN DASH} nach 16 Uhr",
    'verlegt von Station "{room}"; Unterlagen bei Dr. {last}',
    "Entlassung geplant, Zimmer {room};\nTransport bestellt für {first} {last}",
)
"""Some hold separators, quotation marks or a line break."""

HEIGHTS = {"female": 166.0, "male": 179.0}
"""Means in centimetres."""
HEIGHT_SPREAD = 7.0
SHRINKING_FROM, SHRINKING = 50, 0.12
"""The age from which people are smaller, and by how many centimetres a year."""
BODY_MASS, BODY_MASS_SPREAD, BODY_MASS_CHANGE = 26.0, 0.17, 0.02
"""The median of weight over the square of height, and the standard deviations of its logarithm: between patients, and
between the stays of one."""
LIGHTEST, HEAVIEST = 38.0, 190.0
COST_OF_STAY, COST_OF_DAY, COST_SPREAD = 900.0, 560.0, 0.35
"""In euros, and the standard deviation of the logarithm."""

UNKNOWN, NOT_GIVEN, NO_NUMBER = "?", "NA", -999
"""The tokens for a missing value: in categories and dates, in heights, and in weights."""
UNKNOWN_SEX, UNKNOWN_BIRTH, UNKNOWN_INSURANCE, UNKNOWN_DIAGNOSIS = 0.003, 0.004, 0.02, 0.004
NO_HEIGHT, NO_WEIGHT, NO_NOTE = 0.06, 0.05, 0.2
"""How many records have such a token; of heights, sexes and dates of birth, how many patients."""

TITLE = "Fälle der Klinik, Auszug aus dem Krankenhausinformationssystem"
SHEET = "Fälle"
