"""Synthetic microdata: tables of any size, with taxonomies and a policy, in which nobody is."""

from sfumato.tables.generators.agrawal import Agrawal
from sfumato.tables.generators.census import Census
from sfumato.tables.generators.contract import Generated, Generator
from sfumato.tables.generators.files import GENERATORS, generate, make_generator
from sfumato.tables.generators.normal import Normal

__all__ = [
    "GENERATORS",
    "Agrawal",
    "Census",
    "Generated",
    "Generator",
    "Normal",
    "generate",
    "make_generator",
]
