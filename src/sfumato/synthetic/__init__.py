"""Synthetic microdata: tables of any size about invented persons, with taxonomies and a policy."""

from sfumato.synthetic.agrawal import Agrawal
from sfumato.synthetic.census import Census
from sfumato.synthetic.generate import GENERATORS, generate, make_generator
from sfumato.synthetic.generator import GeneratedColumn, Generator
from sfumato.synthetic.hospital import Hospital
from sfumato.synthetic.hospital_export import HospitalExport
from sfumato.synthetic.normal import Normal

__all__ = [
    "GENERATORS",
    "Agrawal",
    "Census",
    "GeneratedColumn",
    "Generator",
    "Hospital",
    "HospitalExport",
    "Normal",
    "generate",
    "make_generator",
]
