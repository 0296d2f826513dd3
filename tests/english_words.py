"""Which words of a German text are English: those that the English catalogue uses and the German one does not."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import sfumato

FOLDER = Path(sfumato.__file__).parent / "texts"
WORD = re.compile(r"[^\W\d_]{2,}")
# English words that errors and warnings use, whether or not a page says them.
COMMON = {"the", "of", "and", "is", "are", "was", "with", "this", "that", "not", "has", "have", "be", "to", "or", "it"}


@cache
def words_of(language: str) -> frozenset[str]:
    """Every word of the catalogue of a language, read without the code of the product."""
    files = sorted((FOLDER / language).glob("*.toml"))
    texts = [text for file in files for text in _texts(tomllib.loads(file.read_text("utf-8")))]
    return frozenset(word.lower() for text in texts for word in WORD.findall(re.sub(r"\{[^}]*\}", " ", text)))


def english_words(text: str) -> set[str]:
    """The English words of a text that should be German."""
    english = (words_of("en") | COMMON) - words_of("de")
    return {word for word in WORD.findall(text) if word.lower() in english}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    else:
        for inner in value.values():
            yield from _texts(inner)
