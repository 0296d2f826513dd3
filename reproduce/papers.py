"""The papers, each with its figures in the paper's order."""

from __future__ import annotations

from collections.abc import Sequence

from reproduce import du, ghinita, lefevre, wang
from reproduce.figure import Figure, Paper

PAPERS: tuple[Paper, ...] = (ghinita.PAPER, wang.PAPER, du.PAPER, lefevre.PAPER)
FIGURES: dict[str, Figure] = {figure.name: figure for paper in PAPERS for figure in paper.figures}


def chosen(names: Sequence[str]) -> list[Figure]:
    """Return the figures of these names, or those of the papers of these names; without names, all figures."""
    known = {*FIGURES, *(paper.key for paper in PAPERS)}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"there is no figure or paper {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return [figure for figure in FIGURES.values() if not names or {figure.name, figure.paper} & set(names)]
