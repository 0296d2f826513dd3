"""The invented patients of the hospital generator: names, districts and diagnoses, and how they depend on each other.

Every number here is made up to look plausible; none is an estimate. Names are frequent ones, combined at random. Shares
need not add up to anything: each row is normalised when the generator's tables are built. Bands are given by their
first values.
"""

from __future__ import annotations

from typing import NamedTuple

YEAR = 2024
"""The year of the first stay of every patient."""

YOUNGEST, OLDEST = 18, 99
AGE_SHARES = {18: 6, 25: 8, 32: 9, 45: 8, 55: 11, 65: 15, 75: 16, 85: 9, 99: 0.6}
"""Shares at some ages; linear between them."""
AGE_BANDS = (18, 35, 50, 65, 80)

SEXES = ("female", "male")
SEX_SHARES = ((62, 38), (51, 49), (47, 53), (50, 50), (61, 39))

# fmt: off
FIRST_NAMES = {
    "female": (
        "Ada", "Alice", "Amelia", "Anna", "Barbara", "Beatrice", "Carla", "Carmen", "Charlotte", "Clara", "Diana",
        "Dorothy", "Elena", "Elizabeth", "Emma", "Esther", "Fatima", "Florence", "Grace", "Hannah", "Helen", "Ida",
        "Irene", "Jane", "Julia", "Karen", "Laura", "Linda", "Lucy", "Maria", "Martha", "Mei", "Nina", "Olga",
        "Patricia", "Priya", "Rosa", "Ruth", "Sara", "Sofia", "Susan", "Teresa", "Vera", "Yuki",
    ),
    "male": (
        "Adam", "Ahmed", "Albert", "Andrew", "Anton", "Arthur", "Bruno", "Carlos", "Charles", "Daniel", "David",
        "Edward", "Emil", "Felix", "Frank", "George", "Hassan", "Henry", "Hugo", "Ivan", "Jack", "James", "Jorge",
        "Joseph", "Karl", "Kenji", "Leo", "Louis", "Luca", "Mark", "Martin", "Michael", "Noah", "Oscar", "Paul",
        "Peter", "Rafael", "Ravi", "Robert", "Samuel", "Thomas", "Victor", "Walter", "Wei",
    ),
}
LAST_NAMES = (
    "Adams", "Ali", "Allen", "Baker", "Bauer", "Bell", "Bianchi", "Brown", "Carter", "Chen", "Clark", "Cohen", "Cook",
    "Cooper", "Costa", "Davis", "Diaz", "Evans", "Fischer", "Fisher", "Flores", "Foster", "Garcia", "Gomez", "Gray",
    "Green", "Hall", "Harris", "Hill", "Hughes", "Jackson", "James", "Johnson", "Jones", "Kelly", "Khan", "Kim",
    "King", "Kowalski", "Lee", "Lewis", "Li", "Lopez", "Martin", "Martinez", "Meyer", "Miller", "Moore", "Morris",
    "Murphy", "Nguyen", "Novak", "Parker", "Patel", "Perez", "Petrov", "Phillips", "Price", "Reed", "Reyes", "Rivera",
    "Roberts", "Rossi", "Russell", "Sanchez", "Santos", "Schmidt", "Scott", "Silva", "Singh", "Smith", "Stewart",
    "Tanaka", "Taylor", "Thomas", "Torres", "Turner", "Walker", "Wang", "Ward", "Watson", "Weber", "White", "Williams",
    "Wilson", "Wood", "Wright", "Young",
)
# fmt: on


class District(NamedTuple):
    """The postal codes that begin with the same three digits."""

    prefix: str
    codes: int
    """How many there are, numbered from 01."""
    by_age: tuple[float, float, float, float, float]
    """The share of the district in each band of ``AGE_BANDS``."""


DISTRICTS = (
    District("101", 14, (20, 16, 12, 9, 7)),
    District("102", 10, (14, 12, 9, 7, 5)),
    District("103", 8, (5, 7, 9, 11, 13)),
    District("108", 6, (3, 5, 6, 7, 8)),
    District("112", 12, (12, 12, 11, 10, 9)),
    District("113", 9, (7, 8, 9, 10, 10)),
    District("117", 5, (2, 3, 4, 6, 8)),
    District("120", 7, (4, 5, 6, 7, 7)),
    District("125", 4, (1, 2, 3, 4, 5)),
)


class Diagnosis(NamedTuple):
    """The main diagnosis of a stay."""

    name: str
    women: float
    """Its share among women, beside 1 - ``women`` among men."""
    by_age: tuple[float, float, float, float, float]
    """How frequent it is in each band of ``AGE_BANDS``."""
    days: int
    """The usual length of a stay, one of ``USUAL_DAYS``."""
    readmission: float
    """The chance that the patient is back within 30 days, all else being equal."""


DIAGNOSIS_GROUPS = {
    "heart and circulation": (
        Diagnosis("hypertension", 0.50, (2, 8, 14, 16, 15), 2, 0.10),
        Diagnosis("heart failure", 0.45, (0.3, 2, 9, 20, 30), 7, 0.34),
        Diagnosis("heart attack", 0.33, (0.5, 6, 15, 17, 14), 5, 0.22),
        Diagnosis("stroke", 0.50, (0.6, 3, 9, 17, 24), 10, 0.24),
    ),
    "lungs": (
        Diagnosis("asthma", 0.58, (12, 8, 5, 4, 3), 3, 0.14),
        Diagnosis("pneumonia", 0.46, (5, 6, 10, 16, 26), 5, 0.20),
        Diagnosis("COPD", 0.45, (0.3, 3, 12, 16, 11), 5, 0.30),
        Diagnosis("flu", 0.52, (9, 7, 6, 8, 10), 3, 0.08),
    ),
    "cancer": (
        Diagnosis("breast cancer", 0.99, (1, 7, 10, 9, 5), 3, 0.16),
        Diagnosis("prostate cancer", 0.0, (0, 1, 9, 15, 9), 3, 0.12),
        Diagnosis("colon cancer", 0.47, (0.5, 3, 9, 12, 9), 7, 0.22),
        Diagnosis("lung cancer", 0.42, (0.2, 2, 9, 12, 6), 5, 0.32),
    ),
    "digestion": (
        Diagnosis("appendicitis", 0.47, (14, 7, 3, 2, 1), 3, 0.06),
        Diagnosis("gallstones", 0.66, (8, 10, 8, 6, 4), 3, 0.07),
        Diagnosis("hernia", 0.25, (5, 9, 11, 10, 6), 2, 0.04),
        Diagnosis("gastritis", 0.53, (8, 8, 7, 6, 6), 2, 0.10),
    ),
    "bones and joints": (
        Diagnosis("arthritis", 0.60, (1, 5, 14, 18, 12), 5, 0.06),
        Diagnosis("hip fracture", 0.70, (0.3, 0.6, 3, 9, 30), 10, 0.18),
        Diagnosis("back pain", 0.53, (8, 13, 11, 7, 4), 3, 0.09),
        Diagnosis("gout", 0.22, (1, 4, 6, 6, 4), 2, 0.08),
    ),
    "mind and nerves": (
        Diagnosis("depression", 0.62, (17, 15, 9, 5, 4), 10, 0.26),
        Diagnosis("anxiety disorder", 0.63, (13, 9, 5, 3, 2), 7, 0.18),
        Diagnosis("migraine", 0.75, (10, 8, 4, 2, 1), 2, 0.07),
        Diagnosis("epilepsy", 0.48, (6, 5, 4, 4, 4), 3, 0.15),
    ),
    "pregnancy": (
        Diagnosis("childbirth", 1.0, (70, 10, 0, 0, 0), 3, 0.03),
        Diagnosis("pregnancy complication", 1.0, (16, 3, 0, 0, 0), 2, 0.14),
    ),
    "metabolism and kidneys": (
        Diagnosis("diabetes", 0.47, (6, 9, 13, 14, 10), 5, 0.20),
        Diagnosis("kidney stones", 0.38, (7, 10, 8, 5, 2), 2, 0.09),
        Diagnosis("kidney failure", 0.46, (1, 3, 7, 12, 15), 7, 0.32),
    ),
}

USUAL_DAYS = (2, 3, 5, 7, 10)
LONGEST_STAY = 60
DAYS_SPREAD = 0.55
"""Standard deviation of the logarithm of the length of a stay, all else being equal."""
DAYS_BY_AGE = (0.8, 0.9, 1.0, 1.2, 1.5)

READMISSION_BY_AGE = (0.4, 0.6, 1.0, 1.6, 2.4)
LONG_STAY = 7
READMISSION_AFTER_LONG_STAY = 1.6
READMISSION_DAYS = 30
LONGEST_PAUSE = 240
"""Further stays begin at most this many days after the patient left."""
FURTHER_STAY = 0.45
"""The chance of one more stay after each, where patients may have several."""
