"""LeFevre, DeWitt, Ramakrishnan 2008: workload-aware anonymization, and Rothko for tables larger than memory."""

from __future__ import annotations

from reproduce.figure import Paper
from reproduce.lefevre.census_accuracy import FIGURE_7, FIGURE_8, FIGURE_9
from reproduce.lefevre.memory_need import FIGURE_17
from reproduce.lefevre.pruning import FIGURE_24
from reproduce.lefevre.rothko_io import FIGURE_18
from reproduce.lefevre.rothko_time import FIGURE_19, FIGURE_20, FIGURE_21
from reproduce.lefevre.run_settings import TABLES
from reproduce.lefevre.sampling_quality import FIGURE_22, FIGURE_23
from reproduce.lefevre.selections import FIGURE_12, FIGURE_13
from reproduce.lefevre.sensitive_class import FIGURE_11
from reproduce.lefevre.several_targets import FIGURE_10
from reproduce.lefevre.synthetic_accuracy import FIGURE_6

PAPER = Paper(
    "lefevre",
    "LeFevre, DeWitt, Ramakrishnan 2008: Workload-Aware Anonymization Techniques for Large-Scale Datasets",
    (
        TABLES,
        FIGURE_6,
        FIGURE_7,
        FIGURE_8,
        FIGURE_9,
        FIGURE_10,
        FIGURE_11,
        FIGURE_12,
        FIGURE_13,
        FIGURE_17,
        FIGURE_18,
        FIGURE_19,
        FIGURE_20,
        FIGURE_21,
        FIGURE_22,
        FIGURE_23,
        FIGURE_24,
    ),
    (
        "Models are those of scikit-learn, where the paper uses Weka; [learning.md](learning.md) says how they differ. "
        "In the figures of section 4, a split for a target is made as long as anything is gained.",
    ),
)
