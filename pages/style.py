"""How a report looks, by day and by night; each adds what is its own."""

from __future__ import annotations

from typing import Final

REPORT: Final = """
:root { color-scheme: light dark; --ink: #1c2733; --faint: #5d6b7a; --line: #d9dfe6; --paper: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ee; --faint: #9aa7b4; --line: #37424e; --paper: #161c22; }
}
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 24px; }
h1 { margin: 0; font-size: 26px; overflow-wrap: anywhere; }
p { margin: 4px 0; }
.where, ul { color: var(--faint); }
.headline { margin-top: 12px; font-size: 17px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
caption { caption-side: bottom; text-align: left; color: var(--faint); }
th, td { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--faint); font-weight: 600; }
td.name { overflow-wrap: anywhere; min-width: 60px; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font-size: 12px; }
svg text.tick { fill: var(--faint); font-size: 11px; }
"""
