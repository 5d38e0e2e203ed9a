"""How the page looks, by day and by night; every text stands out by 4.5 to 1 at least."""

from __future__ import annotations

from typing import Final

STYLE: Final = """\
:root { color-scheme: light dark; --ink: #1c2733; --faint: #56636f; --line: #d9dfe6; --paper: #fff; --raised: #f4f6f8;
  --link: #0b5394; --over: #b42318; --near: #8a5a00; --fine: #0b62a4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ee; --faint: #a3afba; --line: #37424e; --paper: #161c22; --raised: #1f272f;
    --link: #8cc4f5; --over: #ff8a7a; --near: #f0b849; --fine: #6db3f2; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
main { max-width: 1440px; margin: 0 auto; padding: 20px 24px; }
h1 { margin: 0; font-size: 24px; overflow-wrap: anywhere; }
h2 { margin: 28px 0 8px; font-size: 18px; }
p { margin: 4px 0; }
a { color: var(--link); }
a:focus-visible, button:focus-visible, input:focus-visible, select:focus-visible, .wide:focus-visible
  { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 8px; top: 8px; padding: 6px 10px; background: var(--paper); z-index: 1; }
#when, caption, dt { color: var(--faint); }
#status { color: var(--over); }
dl { display: flex; flex-wrap: wrap; gap: 10px; margin: 14px 0; }
dl div { padding: 8px 14px; background: var(--raised); border-radius: 6px; display: flex; flex-direction: column-reverse; }
dd { margin: 0; font-size: 21px; font-weight: 600; font-variant-numeric: tabular-nums; }
dt { font-size: 13px; }
form { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; margin: 8px 0 14px; }
input, select, button { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--faint); border-radius: 4px;
  padding: 3px 8px; }
input[name=broker] { width: 5em; }
button { background: var(--raised); cursor: pointer; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
#entities table { width: 100%; }
caption { caption-side: bottom; text-align: left; padding-top: 6px; }
th, td { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { white-space: nowrap; vertical-align: bottom; }
tbody th { font-weight: 600; overflow-wrap: anywhere; }
th[aria-sort] a::after { content: " \\25BC"; }
th[aria-sort=ascending] a::after { content: " \\25B2"; }
.name { overflow-wrap: anywhere; min-width: 13em; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.level { color: var(--faint); white-space: nowrap; }
.used { display: inline-flex; gap: 8px; align-items: center; justify-content: flex-end; }
.used span { min-width: 2.8em; }
.bar { width: 80px; height: 10px; }
.trail { width: 88px; height: 20px; display: block; }
.track { fill: var(--line); }
.over, .error { color: var(--over); } .near, .warning { color: var(--near); } span.fine { color: var(--fine); }
svg .over { fill: var(--over); } svg .near { fill: var(--near); } svg .fine { fill: var(--fine); }
tr.over, tr.near { color: inherit; }
tr.over .used span { color: var(--over); font-weight: 600; } tr.near .used span { color: var(--near); font-weight: 600; }
.at { stroke: var(--ink); stroke-width: .8; stroke-dasharray: 2 2; }
.parts a { display: inline-block; margin: 8px 16px 0 0; }
article { max-width: 80ch; }
article p, article li { margin: 8px 0; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: 10px 14px; background: var(--raised); border-radius: 6px; }
code { font: 13px/1.5 ui-monospace, monospace; }
li { overflow-wrap: anywhere; }
footer { margin-top: 32px; border-top: 1px solid var(--line); color: var(--faint); }
footer ul { display: flex; flex-wrap: wrap; gap: 4px 20px; list-style: none; padding: 0; }
"""
