"""The style of the report of a release, on top of what all pages share: for screens, phones and print."""

RELEASE_STYLE = """
:root { --accent: var(--series-0); }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { max-width: 76rem; padding: 2.2rem clamp(1rem, 3vw, 2.5rem) 3rem; overflow-wrap: break-word; }
bdi, code { overflow-wrap: anywhere; }
a { color: inherit; text-underline-offset: .2em; text-decoration-color: var(--line); }
a:hover { text-decoration-color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--background); padding: .4rem .8rem; }
.eyebrow { font-size: .82rem; letter-spacing: .04em; color: var(--soft); margin: 0 0 .4rem; }
h1 { font-size: clamp(1.5rem, 3.2vw, 2.1rem); line-height: 1.2; margin: 0 0 .6rem; max-width: 46rem; }
h2 { font-size: 1.25rem; margin: 0 0 .35rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
p, li, dd { max-width: 44rem; }
section { margin-top: 2.6rem; padding-top: 1.5rem; border-top: 1px solid var(--grid); scroll-margin-top: 1rem; }
header + main > section:first-child { margin-top: 1.2rem; border: 0; padding-top: 0; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0; margin: 1.2rem 0 0;
  font-size: .92rem; }
.verdict { font-size: clamp(1.05rem, 2vw, 1.3rem); line-height: 1.45; max-width: 48rem; margin: 0 0 1.2rem; }
.fails, .warning, .unchecked { border-left: 4px solid var(--accent); padding: .5rem 0 .5rem .9rem; margin: 1rem 0; }
.unchecked { border-color: var(--series-1); }
.fails strong { color: var(--accent); }
.unchecked strong { color: var(--series-1); }
.mark { display: inline-block; border: 1px solid var(--line); border-radius: 1rem; padding: .05rem .7rem; margin: 0; }
.mark.fails { border-color: var(--accent); color: var(--ink); font-weight: 600; }
.mark.unchecked { border-color: var(--series-1); color: var(--series-1); font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem; margin: 1.2rem 0; }
.tiles div { background: var(--band); border-radius: .5rem; padding: .8rem 1rem; display: flex;
  flex-direction: column; }
.tiles dt { order: 2; font-weight: 400; font-size: .86rem; color: var(--soft); margin: 0; }
.tiles dd { font-size: 1.5rem; font-weight: 600; line-height: 1.25; font-variant-numeric: tabular-nums; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(22rem, 100%), 1fr)); gap: 1.6rem 1.4rem;
  margin: 1.2rem 0 0; align-items: start; }
figure { margin: 0; min-width: 0; }
figure svg { max-width: 100%; height: auto; display: block; margin-left: -18px; }
figure svg { overflow: visible; }
.split { display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: center; }
.split figure { flex: 0 1 22rem; }
.split > div { flex: 1 1 18rem; }
.lost { white-space: nowrap; }
.wide { overflow-x: auto; }
.wide svg { min-width: 44rem; max-width: 62rem; width: 100%; }
figcaption { font-size: .92rem; color: var(--soft); max-width: 36rem; }
caption { text-align: left; white-space: nowrap; color: var(--soft); font-size: .86rem; padding-bottom: .2rem; }
th[scope=row] { font-weight: 600; border-bottom-color: var(--grid); vertical-align: top; }
td.text, th.text { white-space: normal; min-width: 7rem; }
table .words { min-width: 15rem; color: var(--soft); }
.bar { display: inline-block; width: clamp(4rem, 12vw, 9rem); height: .72rem; background: var(--band);
  vertical-align: baseline; margin-right: .6rem; border-radius: 2px; }
.bar span { display: block; height: 100%; background: var(--accent); border-radius: 2px; }
.bar, .bar span { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
details { margin: .5rem 0; }
summary { cursor: pointer; color: var(--soft); font-size: .9rem; }
pre { background: var(--band); padding: 1rem; overflow-x: auto; border-radius: .5rem; font-size: .82rem;
  line-height: 1.45; max-height: 32rem; overflow-y: auto; white-space: pre-wrap; }
code { font-size: .92em; }
.risks { padding: 0; list-style: none; display: grid; gap: .2rem 2.4rem;
  grid-template-columns: repeat(auto-fill, minmax(min(26rem, 100%), 1fr)); }
.risks li { padding: .45rem 0; }
.risks strong { display: block; }
.holds::before { content: "\\2713\\00a0"; }
.broken::before { content: "\\2715\\00a0"; color: var(--accent); }
.undecided::before { content: "?\\00a0"; }
.undecided { color: var(--series-1); }
.broken, .undecided { font-weight: 700; }
.secret { background: var(--ink); color: var(--background); padding: .8rem 1.1rem; border-radius: .5rem;
  font-weight: 600; margin: 0 0 1.4rem; max-width: none; }
@media (max-width: 40rem) {
  body { font-size: 15px; }
  section { margin-top: 2rem; }
  figure svg { margin-left: -10px; }
  .losses thead { position: absolute; left: -99rem; }
  .losses tr { display: grid; grid-template-columns: 1fr auto; border-bottom: 1px solid var(--grid); padding: .3rem 0; }
  .losses :is(th, td) { border: 0; padding: .05rem 0; }
  .losses :is(td:nth-child(3), td:nth-child(4)) { grid-column: 1 / -1; }
  .losses .words { min-width: 0; }
}
@media print {
  body { padding: 0; max-width: none; font-size: 10.5pt; }
  nav, .skip, details:not([open]) { display: none; }
  section { break-inside: auto; }
  figure, tr, .tiles { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .cards { grid-template-columns: 1fr 1fr; }
  .wide svg { min-width: 0; }
  .wide, .table { overflow: visible; }
  pre { max-height: none; }
}
"""
