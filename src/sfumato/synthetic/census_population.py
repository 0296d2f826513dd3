"""The invented population of the census generator: categories, their shares, and the dependencies between them.

Every number here is made up to look like a census of the United States; none is an estimate. Shares need not add up to
anything: each row is normalised when the generator's tables are built. Bands are given by their first values.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

YOUNGEST, OLDEST = 17, 95
AGE_SHARES = {17: 14, 25: 15, 35: 15, 45: 16, 55: 15, 65: 11, 75: 6.5, 85: 2.8, 95: 0.5}
"""Shares at some ages; linear between them."""

GENDERS = ("Male", "Female")
GENDER_BANDS = (17, 45, 65, 75, 85)
GENDER_SHARES = ((51, 49), (49, 51), (47, 53), (43, 57), (35, 65))

# --- country of birth ---------------------------------------------------------------------------------------------

Schooling = Literal["short", "usual", "long"]


class CensusRegion(NamedTuple):
    """Countries with their shares, and the schooling and races of the people born there."""

    name: str
    countries: dict[str, float]
    race: str
    schooling: Schooling
    by_age: tuple[float, float, float, float]
    """A factor for each band of ``COUNTRY_BANDS``: how much more or less often its persons were born here."""


COUNTRY_BANDS = (17, 30, 50, 70)
REGIONS = (
    CensusRegion("North America", {"United States": 640, "Canada": 8}, "American", "usual", (1.05, 0.95, 1.0, 1.05)),
    CensusRegion(
        "Central America",
        {
            "Mexico": 95,
            "Guatemala": 9,
            "El Salvador": 12,
            "Honduras": 6,
            "Nicaragua": 3,
            "Costa Rica": 1,
            "Panama": 1.2,
            "Belize": 0.5,
        },
        "Latin American",
        "short",
        (1.2, 1.3, 0.7, 0.4),
    ),
    CensusRegion(
        "Caribbean",
        {
            "Cuba": 10,
            "Dominican Republic": 9,
            "Haiti": 6,
            "Jamaica": 7,
            "Trinidad and Tobago": 2.5,
            "Barbados": 0.7,
            "Bahamas": 0.5,
        },
        "Caribbean",
        "usual",
        (0.8, 1.0, 1.1, 1.2),
    ),
    CensusRegion(
        "South America",
        {
            "Colombia": 7,
            "Ecuador": 5,
            "Peru": 4.5,
            "Venezuela": 2.2,
            "Brazil": 4,
            "Argentina": 2,
            "Chile": 1.1,
            "Bolivia": 0.9,
            "Uruguay": 0.6,
            "Guyana": 2.8,
        },
        "Latin American",
        "usual",
        (0.9, 1.2, 0.9, 0.7),
    ),
    CensusRegion(
        "Northern Europe",
        {
            "United Kingdom": 8,
            "Ireland": 2,
            "Sweden": 0.8,
            "Norway": 0.7,
            "Denmark": 0.6,
            "Finland": 0.5,
            "Lithuania": 0.7,
        },
        "European",
        "long",
        (0.5, 0.8, 1.2, 2.2),
    ),
    CensusRegion(
        "Western Europe",
        {"Germany": 10, "France": 2.2, "Netherlands": 1.4, "Belgium": 0.6, "Austria": 0.9, "Switzerland": 0.6},
        "European",
        "long",
        (0.6, 0.8, 1.2, 2.2),
    ),
    CensusRegion(
        "Southern Europe",
        {"Italy": 6, "Portugal": 2.6, "Greece": 2.1, "Spain": 1.3, "Albania": 0.7, "Bosnia and Herzegovina": 1.2},
        "European",
        "usual",
        (0.3, 0.7, 1.3, 2.8),
    ),
    CensusRegion(
        "Eastern Europe",
        {
            "Poland": 6,
            "Russia": 4.5,
            "Ukraine": 3.5,
            "Romania": 1.8,
            "Hungary": 1.1,
            "Czechia": 0.8,
            "Bulgaria": 0.7,
            "Belarus": 0.6,
        },
        "European",
        "long",
        (0.7, 0.9, 1.1, 1.9),
    ),
    CensusRegion(
        "Middle East",
        {"Iran": 4, "Iraq": 1.5, "Israel": 1.7, "Lebanon": 1.5, "Syria": 0.8, "Turkey": 1.2, "Jordan": 0.8},
        "Middle Eastern",
        "long",
        (0.8, 1.1, 1.1, 0.8),
    ),
    CensusRegion(
        "South Asia",
        {"India": 17, "Pakistan": 3.5, "Bangladesh": 1.7, "Nepal": 0.8, "Sri Lanka": 0.6},
        "Asian",
        "long",
        (1.0, 1.4, 0.7, 0.4),
    ),
    CensusRegion("East Asia", {"China": 16, "Japan": 4.5, "South Korea": 11}, "Asian", "long", (0.9, 1.1, 1.0, 0.8)),
    CensusRegion(
        "Southeast Asia",
        {"Philippines": 18, "Vietnam": 13, "Thailand": 2.2, "Cambodia": 1.8, "Laos": 2.4, "Indonesia": 1.1},
        "Asian",
        "usual",
        (0.8, 1.2, 1.0, 0.8),
    ),
    CensusRegion(
        "Africa",
        {"Nigeria": 2.4, "Ethiopia": 1.8, "Ghana": 1.5, "Egypt": 1.9, "Kenya": 1.1, "Somalia": 1.0},
        "African",
        "long",
        (1.2, 1.3, 0.6, 0.3),
    ),
    CensusRegion("Oceania", {"Australia": 1.2, "New Zealand": 0.6}, "European", "long", (0.9, 1.2, 0.9, 0.6)),
)

# --- race ---------------------------------------------------------------------------------------------------------

RACES = (
    "White",
    "Black",
    "American Indian or Alaska Native",
    "Chinese",
    "Japanese",
    "Other Asian or Pacific Islander",
    "Some other race",
    "Two major races",
    "Three or more major races",
)
RACE_SHARES = {
    "American": (765, 135, 12, 6, 4, 12, 35, 26, 5),
    "European": (930, 22, 2, 6, 1, 12, 8, 16, 3),
    "Latin American": (520, 15, 15, 3, 3, 6, 400, 33, 5),
    "Caribbean": (250, 620, 3, 4, 1, 8, 80, 30, 4),
    "Middle Eastern": (880, 15, 1, 2, 1, 30, 45, 22, 4),
    "Chinese": (12, 2, 1, 945, 2, 22, 4, 10, 2),
    "Japanese": (55, 4, 1, 6, 905, 12, 3, 12, 2),
    "Asian": (60, 6, 1, 45, 3, 850, 12, 20, 3),
    "African": (140, 800, 1, 3, 1, 15, 15, 22, 3),
}
RACE_OF_COUNTRY = {"Canada": "European", "China": "Chinese", "Japan": "Japanese"}
"""Countries whose races differ from those of their region."""

# --- education ----------------------------------------------------------------------------------------------------

# 1 none, 2 to 4 primary, 5 to 8 some high school, 9 high school, 10 and 11 some college, 12 and 13 associate degree,
# 14 bachelor, 15 master, 16 professional, 17 doctorate.
EDUCATION_LEVELS = 17
HIGH_SCHOOL = 9
EDUCATION_SHARES = (12, 6, 10, 20, 18, 24, 28, 22, 270, 75, 145, 45, 40, 185, 75, 20, 15)
SCHOOLING_TILT: dict[Schooling, float] = {"short": -0.22, "usual": 0.0, "long": 0.12}
"""How much each further level gains or loses, as an exponent, by schooling and, below, by band of age."""
EDUCATION_BANDS = (17, 18, 20, 22, 25, 35, 50, 65, 80)
EDUCATION_TILT = (0.45, 0.35, 0.15, 0.08, 0.05, 0.02, 0.0, -0.08, -0.16)
EDUCATION_CEILING = (9, 10, 13, 15, 17, 17, 17, 17, 17)
"""The highest level that a person of each band can have reached."""

# --- marital status -----------------------------------------------------------------------------------------------

MARITAL_GROUPS = {
    "Married": ("Married with spouse present", "Married with spouse absent", "Separated"),
    "Unmarried": ("Divorced", "Widowed", "Never married"),
}
MARITAL_BANDS = (17, 18, 20, 25, 30, 35, 45, 55, 65, 75, 85)
MARITAL_SHARES = {
    "Male": (
        (4, 1, 1, 1, 1, 992),
        (20, 6, 3, 2, 1, 968),
        (130, 18, 12, 12, 1, 827),
        (380, 25, 25, 50, 2, 518),
        (550, 25, 30, 90, 3, 302),
        (640, 24, 32, 130, 6, 168),
        (680, 20, 30, 165, 14, 91),
        (725, 17, 22, 150, 32, 54),
        (745, 15, 14, 105, 80, 41),
        (700, 18, 9, 60, 175, 38),
        (550, 22, 6, 35, 350, 37),
    ),
    "Female": (
        (10, 2, 2, 1, 1, 984),
        (55, 10, 6, 4, 1, 924),
        (220, 22, 22, 25, 2, 709),
        (470, 22, 35, 80, 4, 389),
        (590, 20, 40, 125, 7, 218),
        (630, 18, 42, 175, 18, 117),
        (640, 15, 36, 205, 45, 59),
        (610, 13, 25, 185, 125, 42),
        (520, 12, 14, 120, 295, 39),
        (310, 14, 7, 65, 565, 39),
        (120, 12, 3, 35, 785, 45),
    ),
}

# --- work -----------------------------------------------------------------------------------------------------------

PRIVATE, PUBLIC, OWN, WITHOUT_WORK = "Private sector", "Public sector", "Own or family business", "Without work"
WORK_CLASS_GROUPS = {
    "Employee": {
        PRIVATE: ("Private company", "Non-profit organization"),
        PUBLIC: ("Local government", "State government", "Federal government"),
    },
    "Not an employee": {
        OWN: (
            "Self-employed incorporated",
            "Self-employed not incorporated",
            "Unpaid family worker",
        ),
        WITHOUT_WORK: ("Looking for work", "Retired or at home"),
    },
}
WORK_CLASS_SCHOOLING = (1, 9, 10, 14)
"""The first education of each row of the shares: below high school, high school, some college, bachelor."""
WORK_CLASS_SHARES = (
    (500, 25, 30, 12, 6, 15, 70, 6, 60, 276),
    (520, 40, 50, 25, 18, 25, 62, 4, 45, 211),
    (500, 60, 70, 42, 30, 32, 60, 3, 38, 165),
    (430, 95, 85, 62, 42, 50, 66, 2, 25, 143),
)
WORK_CLASS_BANDS = (17, 20, 25, 45, 62, 70, 80)
WORK_CLASS_BY_AGE = (
    (1.0, 0.6, 0.4, 0.4, 0.1, 0.05, 0.2, 4.0, 2.5, 1.4),
    (1.3, 0.8, 0.6, 0.9, 0.5, 0.2, 0.4, 2.0, 2.2, 0.7),
    (1.2, 1.0, 1.0, 1.1, 1.0, 0.9, 0.9, 0.8, 1.0, 0.4),
    (1.0, 1.2, 1.3, 1.2, 1.3, 1.5, 1.3, 0.8, 0.8, 0.6),
    (0.5, 0.8, 0.7, 0.6, 0.6, 1.1, 1.3, 1.0, 0.5, 2.4),
    (0.15, 0.3, 0.2, 0.15, 0.1, 0.5, 0.7, 1.0, 0.2, 4.5),
    (0.03, 0.08, 0.04, 0.03, 0.02, 0.15, 0.2, 0.5, 0.05, 5.0),
)


class Occupation(NamedTuple):
    """An occupation; for persons without work, their last one."""

    name: str
    share: float
    schooling: float
    """0 below high school, 1 high school, 2 some college, 3 bachelor, 4 beyond."""
    women: float
    sector: str
    """The sector in which it is most common, a group of ``WORK_CLASS_GROUPS``."""
    pay: float
    """Usual pay in thousands of dollars a year."""


OCCUPATION_GROUPS = {
    "Management and business": (
        Occupation("Chief executives", 12, 3.2, 0.27, OWN, 120),
        Occupation("Operations managers", 28, 2.6, 0.35, PRIVATE, 85),
        Occupation("Sales managers", 18, 2.6, 0.40, PRIVATE, 80),
        Occupation("Accountants", 22, 3.1, 0.60, PRIVATE, 65),
        Occupation("Human resources specialists", 14, 2.9, 0.72, PRIVATE, 58),
    ),
    "Computing and engineering": (
        Occupation("Software developers", 26, 3.2, 0.20, PRIVATE, 100),
        Occupation("Systems analysts", 14, 3.0, 0.35, PRIVATE, 80),
        Occupation("Civil engineers", 10, 3.3, 0.14, PUBLIC, 82),
        Occupation("Mechanical engineers", 9, 3.2, 0.08, PRIVATE, 84),
        Occupation("Engineering technicians", 11, 2.0, 0.18, PRIVATE, 54),
    ),
    "Science and law": (
        Occupation("Lawyers", 12, 4.0, 0.38, OWN, 115),
        Occupation("Natural scientists", 9, 3.8, 0.45, PUBLIC, 75),
        Occupation("Social scientists", 5, 3.8, 0.60, PUBLIC, 62),
        Occupation("Economists and statisticians", 5, 3.7, 0.40, PUBLIC, 85),
        Occupation("Librarians", 6, 3.5, 0.80, PUBLIC, 50),
    ),
    "Education and social service": (
        Occupation("Elementary school teachers", 30, 3.3, 0.80, PUBLIC, 50),
        Occupation("Secondary school teachers", 22, 3.4, 0.58, PUBLIC, 53),
        Occupation("Professors", 14, 4.0, 0.48, PUBLIC, 72),
        Occupation("Social workers", 14, 3.0, 0.81, PUBLIC, 46),
        Occupation("Clergy", 8, 3.2, 0.20, PRIVATE, 42),
    ),
    "Health care": (
        Occupation("Physicians", 10, 4.0, 0.35, PRIVATE, 170),
        Occupation("Pharmacists", 5, 3.9, 0.55, PRIVATE, 115),
        Occupation("Registered nurses", 32, 2.8, 0.89, PRIVATE, 66),
        Occupation("Medical assistants", 22, 1.6, 0.90, PRIVATE, 32),
        Occupation("Home health aides", 36, 0.8, 0.88, PRIVATE, 24),
    ),
    "Office and administration": (
        Occupation("Secretaries", 36, 1.6, 0.94, PUBLIC, 36),
        Occupation("Bookkeeping clerks", 20, 1.7, 0.88, PRIVATE, 38),
        Occupation("Customer service agents", 34, 1.5, 0.66, PRIVATE, 33),
        Occupation("Receptionists", 20, 1.3, 0.91, PRIVATE, 28),
        Occupation("Postal workers", 10, 1.2, 0.40, PUBLIC, 50),
    ),
    "Sales": (
        Occupation("Retail salespersons", 40, 1.2, 0.50, PRIVATE, 28),
        Occupation("Cashiers", 38, 0.8, 0.73, PRIVATE, 21),
        Occupation("Wholesale representatives", 18, 2.2, 0.28, PRIVATE, 62),
        Occupation("Insurance agents", 12, 2.3, 0.48, OWN, 55),
        Occupation("Real estate agents", 12, 2.2, 0.54, OWN, 58),
    ),
    "Services": (
        Occupation("Cooks", 30, 0.5, 0.40, PRIVATE, 23),
        Occupation("Waiters", 26, 1.0, 0.70, PRIVATE, 22),
        Occupation("Janitors", 30, 0.4, 0.33, PUBLIC, 26),
        Occupation("Hairdressers", 14, 1.2, 0.92, OWN, 26),
        Occupation("Police officers", 12, 2.0, 0.15, PUBLIC, 62),
    ),
    "Construction and repair": (
        Occupation("Carpenters", 18, 0.7, 0.03, OWN, 38),
        Occupation("Electricians", 12, 1.3, 0.02, PRIVATE, 52),
        Occupation("Plumbers", 8, 1.0, 0.02, OWN, 50),
        Occupation("Automobile mechanics", 14, 1.0, 0.02, OWN, 38),
        Occupation("Construction laborers", 24, 0.4, 0.04, PRIVATE, 32),
    ),
    "Production and farming": (
        Occupation("Truck drivers", 34, 0.8, 0.06, PRIVATE, 42),
        Occupation("Assemblers", 22, 0.7, 0.38, PRIVATE, 32),
        Occupation("Machinists", 9, 1.1, 0.05, PRIVATE, 43),
        Occupation("Farmers", 10, 1.2, 0.20, OWN, 45),
        Occupation("Farm workers", 14, 0.1, 0.22, PRIVATE, 24),
    ),
}
OCCUPATION_SCHOOLING = (1, 9, 10, 14, 15)
"""The first education of each unit of ``Occupation.schooling``."""
SCHOOLING_MISMATCH = 0.45
"""The factor on an occupation's share for each unit of schooling above or below its own."""
COMMON_SECTOR = 4.0
"""The factor by which an occupation is more common in its sector."""

# --- salary -------------------------------------------------------------------------------------------------------

SALARY_CLASSES = 50
SALARY_CLASS_WIDTH = 4_000
SALARY_SPREAD = 0.5
"""Standard deviation of the logarithm of the salary, all else being equal."""
PAY_BY_AGE = {17: 0.35, 22: 0.6, 30: 0.9, 45: 1.1, 60: 1.05, 70: 0.7, 95: 0.5}
"""Pay at some ages relative to usual pay; linear between them."""
PAY_PER_EDUCATION = 1.02
"""The factor of each level above high school."""
PAY_OF_WOMEN = 0.86
PAY_WITHOUT_WORK = 0.4
