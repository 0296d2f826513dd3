"""Ghinita, Karras, Kalnis, Mamoulis 2007: Fast Data Anonymization with Low Information Loss."""

from reproduce.figure import Paper
from reproduce.ghinita import anonymity, diversity, queries
from reproduce.ghinita.census import KEY

PAPER = Paper(
    KEY,
    "Ghinita, Karras, Kalnis, Mamoulis 2007: Fast Data Anonymization with Low Information Loss",
    (*anonymity.FIGURES, *diversity.FIGURES, *queries.FIGURES),
    remarks=(
        "The census of the paper may not be passed on, so its tables are generated: the same attributes, numbers of "
        "values and depths of taxonomies (`sfumato generate census`). So absolute figures "
        "cannot be compared with the paper's; directions and factors can.",
        "What section 3 claims of one numeric attribute is false: see the [erratum](methods.md#an-erratum).",
    ),
)
