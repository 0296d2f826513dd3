"""Figure 20: how well l-diverse releases answer the group-bys of the datacube."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

import sfumato
from reproduce.figure import Claim, Figure, Judgement, Result, Row, Size
from reproduce.ghinita.census import (
    ANATOMY,
    ELIGIBLE_TREE,
    HILBERT,
    IDISTANCE,
    KEY,
    MONDRIAN,
    NAMES,
    ORDERED,
    PAPER_RECORDS,
    PUBLISHED,
    first_columns,
    readings,
    tables,
)
from reproduce.ghinita.claims import falls
from reproduce.judging import below, in_every_case, number, ranges
from reproduce.lines import lines, mean_curves, means
from reproduce.runs import quiet
from sfumato import Policy
from sfumato.pictures.picture import Picture
from sfumato.policy import merge_flags

METHODS = (HILBERT, IDISTANCE, PUBLISHED, ORDERED, MONDRIAN, ELIGIBLE_TREE, ANATOMY)
L, LEVEL = 5, 2
KL = "kl"
PANELS = {
    "a": ("by l", "l", "l"),
    "b": ("by level", "level", "level of the datacube"),
    "c": ("by d", "d", "quasi-identifiers (d)"),
    "d": ("by records", "records", "records"),
}


def figure_20(size: Size) -> Result:
    records = size.of(tenth=1_000, quick=PAPER_RECORDS, full=PAPER_RECORDS)
    seeds = range(size.of(tenth=1, quick=1, full=3))
    many_l = size.of(tenth=(2,), quick=(2, 5, 8, 10, 13), full=range(2, 14))
    levels = size.of(tenth=(1, 2), quick=range(1, 8), full=range(1, 8))
    many_d = size.of(tenth=(3,), quick=range(2, 8), full=range(2, 8))
    many_records = size.of(
        tenth=(1_000, 2_000), quick=(50_000, 100_000, 200_000, 400_000), full=tuple(range(50_000, 400_001, 50_000))
    )
    by_l, by_level, by_d, by_records = [], [], [], []
    for seed, data, policy in tables(size, records, seeds):
        by_l += [row for l in many_l for row in _rows(data, policy, l, [LEVEL], seed)]
        by_level += list(_rows(data, policy, L, levels, seed))
        by_d += [row for d in many_d for row in _rows(data, first_columns(policy, d), L, [LEVEL], seed)]
    for count in many_records:
        for seed, data, policy in tables(size, count, seeds):
            by_records += list(_rows(data, policy, L, [LEVEL], seed))
    return Result(
        f"{records:,} generated records (the paper: 200,000 of a census), {_tables_in_words(len(seeds))}",
        {"by l": by_l, "by level": by_level, "by d": by_d, "by records": by_records},
        {"l": L, "level": LEVEL, "seeds": list(seeds)},
    )


def _tables_in_words(count: int) -> str:
    return f"{count} table{'s' if count > 1 else ''}"


def _rows(data: pa.Table, policy: Policy, l: int, levels: Sequence[int], seed: int) -> Iterator[Row]:
    """Yield the divergence of each method at each level. A method that cannot meet l has no row."""
    for method in METHODS:
        diverse = merge_flags(policy, l=l, method=method)
        with quiet():
            try:
                release = sfumato.anonymize(data, diverse)
            except sfumato.InfeasibleError:
                continue
            released = release.data if release.sensitive is None else (release.data, release.sensitive)
            for level in levels:
                (accuracy,) = sfumato.measure(data, released, diverse, queries=level).queries
                yield {
                    "seed": seed,
                    "method": method,
                    "records": len(data),
                    "d": len(policy.quasi_identifiers),
                    "l": l,
                    "level": level,
                    KL: accuracy.kl,
                }


def draw_20(result: Result) -> Mapping[str, Picture]:
    return {
        panel: mean_curves(
            result,
            result.tables[table],
            x=x,
            y=KL,
            y_title="KL divergence",
            x_title=title,
            y_scale="log",
            title=f"Fig. 20 ({panel}): error of queries {table}",
            names=NAMES,
        )
        for panel, (table, x, title) in PANELS.items()
    }


def _beats(table: str, method: str, other: str, text: str, factor: float = 1.0) -> Claim:
    x = next(x for name, x, _ in PANELS.values() if name == table)

    def judge(result: Result) -> Judgement:
        return below(result.tables[table], (method,), (other,), x=x, y=KL, factor=factor, names=NAMES)

    return Claim(text, readings(other), judge)


def _better(panel: str, others: Sequence[str], words: str) -> Iterator[Claim]:
    """Yield the claim that Hilb, or iDist, answers better than another method, for each form of it."""
    table, x, _ = PANELS[panel]
    for method in (HILBERT, IDISTANCE):
        for other in others:
            yield _beats(
                table, method, other, f"20 ({panel}): {NAMES[method]} answers better than {words} at every {x}"
            )


def _at_small_l(other: str, factor: float, text: str) -> Claim:
    """Claim that at the smallest l the divergence of another method is ``factor`` times that of Hilb."""

    def judge(result: Result) -> Judgement:
        found = means(lines(result.tables["by l"], "l", KL))
        least = min(found[HILBERT])
        ratio = found[other][least] / found[HILBERT][least]
        return in_every_case({"l": ratio >= factor}, f"{NAMES[other]} has {number(ratio)} times the divergence of Hilb")

    return Claim(text, readings(other), judge)


def _rises_then_falls(result: Result) -> Judgement:
    line = means(lines(result.tables["by d"], "d", KL))[HILBERT]
    peak = max(line, key=lambda d: line[d])
    text = f"the divergence of Hilb is largest at d = {peak}: {ranges({'Hilb': line}, ['Hilb'])}"
    return in_every_case({"d": min(line) < peak < max(line)}, text)


def _unaffected(result: Result) -> Judgement:
    line = means(lines(result.tables["by d"], "d", KL))[ANATOMY]
    return in_every_case({"d": max(line.values()) <= 1.5 * min(line.values())}, ranges({"Anatomy": line}, ["Anatomy"]))


FORMS = (PUBLISHED, ORDERED, MONDRIAN)
FALLING = (HILBERT, IDISTANCE, PUBLISHED, ANATOMY)
FIGURE_20 = Figure(
    paper=KEY,
    number="20",
    title="accuracy of queries",
    published="200,000 records of a census, 7 quasi-identifiers, l = 5, level 2, where these do not vary.",
    run=figure_20,
    draw=draw_20,
    claims=(
        *(
            _at_small_l(form, 100, "20 (a): for small l, Hilb is two orders of magnitude better than Mondrian")
            for form in FORMS
        ),
        _at_small_l(ANATOMY, 10, "20 (a): for small l, Hilb is one order of magnitude better than Anatomy"),
        *_better("a", FORMS, "Mondrian"),
        *(
            _beats(
                "by l",
                method,
                ANATOMY,
                f"20 (a): {NAMES[method]} is at most marginally worse than Anatomy (read as: by a quarter)",
                1.25,
            )
            for method in (HILBERT, IDISTANCE)
        ),
        *_better("b", FORMS, "Mondrian"),
        *_better("b", (ANATOMY,), "Anatomy"),
        _beats("by level", ELIGIBLE_TREE, ANATOMY, "not in the paper: our `eligible-tree` answers better than Anatomy"),
        Claim("20 (c): the error of Hilb rises until d = 4 and falls after it", "none", _rises_then_falls),
        *_better("c", FORMS, "Mondrian"),
        *_better("c", (ANATOMY,), "Anatomy"),
        Claim("20 (c): Anatomy does not depend on d (read as: within a half)", "`anatomy`", _unaffected),
        Claim(
            "20 (d): answers are better with more records",
            "`mondrian:published`, `anatomy`",
            falls(FALLING, "records", KL, "by records"),
        ),
    ),
)
FIGURES: Sequence[Figure] = (FIGURE_20,)
