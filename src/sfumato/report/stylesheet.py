"""The look of all pages, in one place: colours, type and space as custom properties, and the rules that use them.

A report has this style inside, since it is one file; the local page serves the same text as a file of its own. Light or
dark is what the reader's system asks for; print is light. Text has a contrast of at least 4.5 : 1 with its ground.
"""

from __future__ import annotations

from sfumato.pictures.theme import DARK, FONT, LIGHT, Theme

COLOURS = ("background", "ink", "soft", "line", "grid", "band", "good", "bad", "unsure")
MEASURES = {
    "font": FONT,
    "mono": "ui-monospace, 'Liberation Mono', Menlo, Consolas, monospace",
    "text-small": ".86rem",
    "text": ".95rem",
    "text-large": "1.25rem",
    "text-huge": "clamp(1.55rem, 3.4vw, 2.6rem)",
    "space-small": ".5rem",
    "space": "1rem",
    "space-large": "2.4rem",
    "measure": "44rem",
    "corner": ".5rem",
}

# Reports and the local page have it in common.
SCROLLING = """
/* The edge of a table is shaded where it continues beyond the window. */
.table { overflow-x: auto; background:
  linear-gradient(to right, var(--background) 40%, transparent) 0 0 / 3rem 100% no-repeat local,
  linear-gradient(to left, var(--background) 40%, transparent) 100% 0 / 3rem 100% no-repeat local,
  linear-gradient(to right, var(--edge), transparent) 0 0 / 1rem 100% no-repeat scroll,
  linear-gradient(to left, var(--edge), transparent) 100% 0 / 1rem 100% no-repeat scroll;
  --edge: color-mix(in srgb, var(--line) 45%, transparent); }
"""
RULES = """
*, ::before, ::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-padding-top: var(--space); }
@media (prefers-reduced-motion: no-preference) { html { scroll-behavior: smooth; } }
body { margin: 0 auto; max-width: 96rem; padding: var(--space-large) clamp(1rem, 3vw, 3rem); overflow-wrap: break-word;
  background: var(--background); color: var(--ink); font: var(--text)/1.5 var(--font); }
bdi, code { overflow-wrap: anywhere; }
code, pre { font-family: var(--mono); font-size: .92em; }
h1 { font-size: var(--text-huge); line-height: 1.15; letter-spacing: -.01em; margin: 0 0 var(--space-small);
  max-width: 60rem; hyphens: auto; }
h2 { font-size: var(--text-large); line-height: 1.25; margin: 0 0 .4rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
p { margin: .3rem 0; }
p, li, dd, figcaption { max-width: var(--measure); }
a { color: inherit; text-underline-offset: .2em; text-decoration-color: var(--line); }
a:hover { text-decoration-color: currentColor; text-decoration-thickness: 2px; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; z-index: 2; background: var(--background); padding: .5rem .8rem; }
.soft, footer, figcaption, caption, summary { color: var(--soft); }
footer { margin-top: var(--space-large); font-size: var(--text-small); }
.eyebrow { font-size: var(--text-small); letter-spacing: .04em; color: var(--soft); margin: 0 0 .4rem; }
.purpose { font-size: 1.1rem; }
section { margin-top: var(--space-large); padding-top: 1.5rem; border-top: 1px solid var(--grid); }
main > section:first-child { margin-top: 0; border: 0; padding-top: 0; }

/* Contents: a row of links, and a column at the side where there is room. */
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: 0 1.2rem; padding: 0; margin: var(--space) 0;
  font-size: .92rem; }
nav a { display: inline-block; padding: .25rem 0; }
@media screen and (min-width: 80rem) {
  .beside { display: grid; grid-template-columns: 14rem minmax(0, 1fr); gap: 3rem; margin-top: var(--space-large); }
  .beside nav { position: sticky; top: var(--space); align-self: start; max-height: calc(100vh - 2 * var(--space));
    overflow-y: auto; }
  .beside nav ul { display: block; margin: 0; border-left: 2px solid var(--grid); padding-left: var(--space); }
  .beside nav a { text-decoration: none; }
  .beside nav a:hover { text-decoration: underline; }
}

/* The verdict, to be seen from across the room. */
.verdict { background: var(--good); color: var(--background); border-radius: var(--corner);
  padding: clamp(1rem, 2.5vw, 1.8rem) clamp(1rem, 3vw, 2.2rem); margin: 1.4rem 0; }
.verdict.fails { background: var(--bad); }
.verdict.unchecked { background: var(--unsure); }
.verdict p { max-width: 56rem; font-size: 1.1rem; }
.verdict .word { font-size: clamp(2rem, 6vw, 4rem); font-weight: 700; line-height: 1.1; letter-spacing: -.02em;
  margin: 0 0 .3rem; }
.answer { font-size: clamp(1.2rem, 2.6vw, 1.7rem); line-height: 1.3; max-width: 50rem; margin: var(--space) 0 0; }
.answer strong { font-size: clamp(2.4rem, 7vw, 4rem); line-height: 1.1; display: block; letter-spacing: -.02em; }
.holds::before { content: "\\2713\\00a0"; }
.broken::before { content: "\\2715\\00a0"; }
.undecided::before { content: "?\\00a0"; }
.holds { color: var(--good); }
.broken { color: var(--bad); }
.undecided { color: var(--unsure); }
.broken, .undecided { font-weight: 700; }
.warning, .unsettled { border-left: 4px solid var(--bad); padding: .5rem 0 .5rem .9rem; margin: var(--space) 0; }
.unsettled { border-color: var(--unsure); }
.secret { background: var(--bad); color: var(--background); padding: .9rem 1.2rem; border-radius: var(--corner);
  font-size: 1.1rem; font-weight: 700; margin: 0 0 1.4rem; max-width: none; }

.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(11rem, 100%), 1fr)); gap: .8rem;
  margin: 1.2rem 0; }
.tiles div { background: var(--band); border-radius: var(--corner); padding: .9rem 1.1rem; display: flex;
  flex-direction: column; }
.tiles dt { order: 2; font-weight: 400; font-size: var(--text-small); color: var(--soft); margin: 0; }
.tiles dd { font-size: 1.8rem; font-weight: 600; line-height: 1.2; font-variant-numeric: tabular-nums; }

table { border-collapse: collapse; margin: .8rem 0; font-size: .9rem; }
caption { text-align: left; font-size: var(--text-small); padding-bottom: .2rem; }
th, td { padding: .35rem .9rem .35rem 0; text-align: right; vertical-align: top; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
th { border-bottom: 1px solid var(--line); vertical-align: bottom; white-space: normal; }
th[scope=row] { font-weight: 600; border-bottom-color: var(--grid); vertical-align: top; }
td { border-bottom: 1px solid var(--grid); }
tr.first td { border-top: 2px solid var(--line); }
.text { text-align: left; }
td.text, th.text { white-space: normal; min-width: 7rem; }
td.long { white-space: normal; min-width: 18rem; }
table .words { min-width: 15rem; color: var(--soft); }
.audit { font-size: 1rem; }
.audit :is(th, td) { padding-block: .5rem; }
.least { font-weight: 700; }
.lost { white-space: nowrap; }
svg.bar { display: inline-block; width: clamp(4rem, 14vw, 11rem); height: .8rem; vertical-align: baseline;
  margin-right: .6rem; }

.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(24rem, 100%), 1fr)); gap: 2rem;
  margin: 1.2rem 0 0; align-items: start; }
/* A picture has some room around it; its title starts where the text starts. */
figure { margin: 0; min-width: 0; max-width: 34rem; }
figure:has(.wide) { max-width: 62rem; }
figure svg { width: 104.4%; height: auto; display: block; margin-left: -4.4%; overflow: visible; }
.split { display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: center; }
.split figure { flex: 1 1 24rem; max-width: 34rem; }
.split > div { flex: 1 1 18rem; }
.wide { overflow-x: auto; }
.wide svg { width: 100%; min-width: 44rem; margin-left: 0; }
.pictures { display: flex; flex-wrap: wrap; gap: var(--space); margin: 1.2rem 0 0; }
.pictures > div { flex: 1 1 34rem; min-width: min(34rem, 100%); max-width: 50rem; }
.pictures svg { width: 100%; height: auto; }
.narrowed { display: none; }
@media (max-width: 36rem) {
  .broad { display: none; }
  .narrowed { display: block; }
}
figcaption { font-size: .92rem; }
details { margin: .5rem 0; }
summary { cursor: pointer; font-size: .9rem; padding: .2rem 0; width: fit-content; }
pre { background: var(--band); padding: var(--space); overflow: auto; border-radius: var(--corner); line-height: 1.45;
  max-height: 32rem; white-space: pre-wrap; }
dt { font-weight: 600; margin-top: .5rem; }
dd { margin: 0; }
.risks { padding: 0; list-style: none; display: grid; gap: .2rem 2.4rem;
  grid-template-columns: repeat(auto-fill, minmax(min(26rem, 100%), 1fr)); }
.risks li { padding: .45rem 0; }
.risks strong { display: block; }

@media (max-width: 40rem) {
  section { margin-top: 2rem; }
  .losses thead { position: absolute; left: -99rem; }
  .losses tr { display: grid; grid-template-columns: 1fr auto; border-bottom: 1px solid var(--grid); padding: .3rem 0; }
  .losses :is(th, td) { border: 0; padding: .05rem 0; }
  .losses :is(td:nth-child(3), td:nth-child(4)) { grid-column: 1 / -1; }
  .losses .words { min-width: 0; }
}
@media print {
  body { padding: 0; max-width: none; font-size: 10.5pt; }
  nav, .skip, details:not([open]) { display: none; }
  .beside { margin-top: 1.4rem; }
  figure, tr, .tiles, .verdict, .risks li { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .cards { grid-template-columns: 1fr 1fr; }
  .wide svg { min-width: 0; }
  .wide, .table { overflow: visible; }
  pre { max-height: none; }
  .verdict, .secret, .tiles div, svg { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
"""


def stylesheet() -> str:
    """The whole style: the custom properties, light and dark, and the rules."""
    measures = " ".join(f"--{name}: {value};" for name, value in MEASURES.items())
    return (
        f":root {{ color-scheme: light dark; {measures} {_colours(LIGHT)} --accent: var(--series-0); }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_colours(DARK)} }} }}{SCROLLING}{RULES}"
    )


def colour_names(theme: Theme) -> dict[str, str]:
    """The colours of a theme by the names of the custom properties."""
    names = {name: getattr(theme, name) for name in COLOURS}
    for family in ("series", "amounts", "differences"):
        names |= {f"{family}-{index}": colour for index, colour in enumerate(getattr(theme, family))}
    return names


def _colours(theme: Theme) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colour_names(theme).items())
