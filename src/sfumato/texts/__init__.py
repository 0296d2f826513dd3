"""What pages say, in every language: catalogues of texts, plural forms and the formats of numbers and dates."""

from sfumato.texts.catalogue import ENGLISH, LANGUAGES, Texts, texts_in

__all__ = ["ENGLISH", "LANGUAGES", "Texts", "texts_in"]
