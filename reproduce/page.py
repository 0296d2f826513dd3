"""``docs/papers.md``: every figure beside its claims, made from the recorded results alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.markdown import table
from reproduce.figure import RECORDED, Claim, Figure, Judgement, Paper, Profile, Result, Verdict
from reproduce.papers import PAPERS
from reproduce.recording import FOLDER, Recording, path_of, pictures_of, recorded

PAGE = FOLDER.parent / "docs" / "papers.md"
VERDICTS: tuple[Verdict, ...] = ("holds", "depends", "fails")
NAMES: Mapping[Profile, str] = {"quick": "quick run", "full": "full run"}
INTRODUCTION = FOLDER / "introduction.md"


def write_page() -> Path:
    PAGE.write_text(page_text(), "utf-8")
    return PAGE


def page_text() -> str:
    """Return the page as the recorded results make it."""
    parts = [INTRODUCTION.read_text("utf-8"), *_summary()]
    for paper in PAPERS:
        parts += [f"## {paper.citation}\n", *(f"{remark}\n" for remark in paper.remarks)]
        for figure in paper.figures:
            parts += _figure(figure)
    return "\n".join(parts)


def judgements(figure: Figure, profile: Profile) -> dict[Claim, Judgement]:
    """Judge the claims of a figure by its recorded result; there are none if it is not recorded."""
    recording = recorded(figure, profile)
    return {} if recording is None else {claim: claim.judge(recording.result) for claim in figure.claims}


def _summary() -> Iterator[str]:
    """Yield how many claims of each paper hold."""
    yield "## In short\n"
    rows = [
        {
            "paper": paper.citation,
            "run": NAMES[profile],
            "figures": len(counted),
            **_counts(counted, against_ours=False),
            **{f"{verdict} against ours": count for verdict, count in _counts(counted, against_ours=True).items()},
        }
        for paper in PAPERS
        for profile in RECORDED
        if (counted := [found for figure in paper.figures if (found := judgements(figure, profile))])
    ]
    yield (table(rows) if rows else "Nothing is recorded yet.") + "\n"
    yield (
        "A claim counts once for each method and each reading of a published baseline that it is judged for. The last "
        "columns count the same claims against our own, stronger forms of the baselines, of which the papers say "
        "nothing.\n"
    )
    if environments := _environments():
        yield f"Recorded on {' and on '.join(environments)}.\n"


def _counts(found: list[dict[Claim, Judgement]], *, against_ours: bool) -> dict[str, int]:
    counts = Counter(
        judgement.verdict for one in found for claim, judgement in one.items() if claim.against_ours == against_ours
    )
    return {verdict: counts[verdict] for verdict in VERDICTS}


def _environments() -> list[str]:
    recordings = [
        recording
        for paper in PAPERS
        for figure in paper.figures
        for profile in RECORDED
        if (recording := recorded(figure, profile)) is not None
    ]
    texts = (_environment(recording) for recording in recordings)
    return list(dict.fromkeys(texts))


def _environment(recording: Recording) -> str:
    about = recording.environment
    return (
        f"{about['cores']} cores ({about['processor']}), Python {about['python']}, "
        f"numba {about['numba']}, numpy {about['numpy']}"
    )


def _figure(figure: Figure) -> Iterator[str]:
    paper = _paper_of(figure)
    yield f"### {paper.author}, {figure.label}: {figure.title}\n"
    yield f"The paper: {figure.published}\n"
    yield from (f"{remark}\n" for remark in figure.remarks)
    for profile in RECORDED:
        recording = recorded(figure, profile)
        if recording is None:
            continue
        source = _relative(path_of(figure, profile))
        seconds = f"{recording.cpu_seconds:,.0f} CPU seconds in all"
        settings = _settings(recording.result)
        yield f"The {NAMES[profile]}: {recording.result.sizes}; {settings} ([figures]({source}); {seconds}).\n"
        yield "\n".join(_image(figure, profile, picture) for picture in pictures_of(figure, profile)) + "\n"
    yield from _claims(figure)


def _settings(result: Result) -> str:
    """Return the parameters of a run in words."""
    return "; ".join(
        f"{name} = {', '.join(map(_in_words, value)) if isinstance(value, list) else _in_words(value)}"
        for name, value in result.settings.items()
    )


def _in_words(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _image(figure: Figure, profile: Profile, picture: Path) -> str:
    """Return a picture. Two stand side by side, as in the papers."""
    panel = picture.stem.removeprefix(figure.name)
    text = f"{_paper_of(figure).author}, {figure.label}{f' ({panel})' if panel else ''}, {NAMES[profile]}"
    return f'<img src="{_relative(picture)}" alt="{text}" width="{49 if panel else 98}%">'


def _claims(figure: Figure) -> Iterator[str]:
    found = {profile: judgements(figure, profile) for profile in RECORDED}
    if not any(found.values()):
        yield f"Not recorded yet: `python -m reproduce {figure.name}`\n"
        return
    rows = [
        {
            "the paper's claim": claim.text,
            "baseline": claim.baseline,
            **{
                NAMES[profile]: f"**{judged[claim].verdict}**: {judged[claim].found}"
                for profile, judged in found.items()
                if judged
            },
        }
        for claim in figure.claims
    ]
    yield table(rows) + "\n"


def _paper_of(figure: Figure) -> Paper:
    return next(paper for paper in PAPERS if paper.key == figure.paper)


def _relative(path: Path) -> str:
    return f"../{path.relative_to(FOLDER.parent).as_posix()}"
