"""Synthetic microdata: tables of any size, with taxonomies and a policy, in which nobody is."""

from sfumato.synthetic.agrawal import Agrawal
from sfumato.synthetic.census import Census
from sfumato.synthetic.generate import GENERATORS, generate, make_generator
from sfumato.synthetic.generator import Generated, Generator
from sfumato.synthetic.normal import Normal

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
