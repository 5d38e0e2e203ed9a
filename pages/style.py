"""The style sheet of reports, light and dark: text, tables and charts."""

from __future__ import annotations

from typing import Final

SERIES: Final = 8
"""Number of colors; they can be distinguished with red-green color blindness."""

_LIGHT = ("#0b62a4", "#c2410c", "#6d3fb0", "#0f7b6c", "#b3135b", "#7a5c00", "#3d5a80", "#4d4d4d")
_DARK = ("#6db3f2", "#ff9a62", "#c3a1f5", "#5fd3bf", "#ff86b4", "#e6c453", "#a3bde0", "#c8c8c8")


def _variables(colors: tuple[str, ...]) -> str:
    return " ".join(f"--c{n}: {color};" for n, color in enumerate(colors))


def _blocks(table: str, width: int) -> str:
    """Return the rules that show rows as blocks, each cell with its head, in a window of at most `width` pixels."""
    return f"""@media (max-width: {width}px) {{
  {table} thead {{ display: none; }}
  {table} table, {table} tbody, {table} caption {{ display: block; }}
  {table} tr {{ display: block; max-width: 480px; padding: 6px 0; border-bottom: 1px solid var(--line); }}
  {table} td {{
    display: flex; gap: 16px; justify-content: space-between; padding: 1px 0; border: 0; text-align: right;
  }}
  {table} td.name {{ min-width: 0; }}
  {table} td:first-child {{ font-weight: 600; }}
  {table} td[data-head=""]::before {{ content: none; }}
  {table} td:first-child[data-head=""] {{ justify-content: flex-start; text-align: left; }}
  {table} td:empty, {table} td.bar {{ display: none; }}
  {table} td::before {{
    content: attr(data-head); flex: none; color: var(--faint); font-weight: 400; text-align: left;
  }}
}}
"""


_SERIES = "\n".join(f".s{n} {{ stroke: var(--c{n}); }} .f{n} {{ fill: var(--c{n}); }}" for n in range(SERIES))

CHARTS: Final = f"""
:root {{
  color-scheme: light dark; --ink: #1c2733; --faint: #5d6b7a; --line: #d9dfe6; --paper: #fff; --used: #8a97a5;
  {_variables(_LIGHT)}
}}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e4e9ee; --faint: #9aa7b4; --line: #37424e; --paper: #161c22; --used: #7c8894; {_variables(_DARK)} }}
}}
svg text {{ fill: var(--ink); font-size: 12px; }}
svg text.tick {{ fill: var(--faint); font-size: 11px; }}
.middle {{ text-anchor: middle; }} .end {{ text-anchor: end; }}
line.grid {{ stroke: var(--line); }}
.mean {{ fill: none; stroke: var(--used); stroke-width: 1.4; }}
.peak {{ fill: var(--used); fill-opacity: .35; }}
.alone {{ fill-opacity: .75; }}
.limit {{ stroke-width: 1.8; fill: none; }}
.cell {{ fill: var(--c0); stroke: var(--paper); }}
.blank {{ fill: var(--line); fill-opacity: .4; stroke: var(--paper); }}
{_SERIES}
"""
"""Colors, and rules for charts; an image needs no others."""

STYLE: Final = (
    CHARTS
    + """
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 24px; }
h1, h2, h3, p, li { overflow-wrap: anywhere; }
h1 { margin: 0; font-size: 26px; }
h2 { margin: 36px 0 8px; font-size: 19px; }
h3 { margin: 24px 0 4px; font-size: 16px; }
p { margin: 4px 0; }
.where, ul { color: var(--faint); }
.above { margin-top: 14px; }
.headline { margin-top: 12px; font-size: 17px; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13px; }
pre { padding: 12px; border: 1px solid var(--line); border-radius: 4px; }
.up { color: var(--c3); } .down { color: var(--c1); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
caption { caption-side: bottom; text-align: left; color: var(--faint); }
th, td { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { color: var(--faint); font-weight: 600; }
td.name { overflow-wrap: anywhere; min-width: 11em; }
.worse { color: var(--c1); } .better { color: var(--c3); }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
th { vertical-align: bottom; }
.many table { font-size: 13px; } .many th, .many td { padding-right: 10px; }
.wide tr > :last-child { padding-right: 0; }
@media (max-width: 1100px) {
  .wide table { font-size: 13px; } .wide th, .wide td { padding-right: 10px; } .wide td.name { min-width: 9em; }
}
@media (max-width: 1200px) { .many th, .many td { padding-right: 6px; } .many td.name { min-width: 6em; } }
svg { display: block; width: 100%; height: auto; max-width: 1150px; }
svg.key { display: inline-block; width: 22px; height: 10px; }
svg.share { width: 140px; height: 10px; margin-top: 6px; }
svg.heat { max-width: var(--width); }
/* A drawing scrolls, as its text would shrink with it; a shadow shows where it goes on. On paper nothing scrolls. */
@media screen and (max-width: 1198px) {
  .drawing {
    overflow-x: auto;
    background: linear-gradient(to right, var(--paper) 40%, transparent) left / 40px 100% local no-repeat,
      linear-gradient(to left, var(--paper) 40%, transparent) right / 40px 100% local no-repeat,
      linear-gradient(to right, var(--used), transparent) left / 14px 100% no-repeat,
      linear-gradient(to left, var(--used), transparent) right / 14px 100% no-repeat;
  }
  .drawing .chart { min-width: 1150px; } .drawing .heat { min-width: var(--width); }
}
/* In a window that is a little narrower, a chart shrinks and its text does not. */
@media screen and (min-width: 1000px) and (max-width: 1198px) {
  .drawing .chart { min-width: 0; overflow: visible; }
  .drawing .chart text, .drawing .chart text.tick { font-size: 13.5px; }
  .drawing:has(.chart) { overflow: visible; background: none; }
}
details { margin-top: 36px; }
details:has(> summary > h3) { margin-top: 16px; }
summary { cursor: pointer; }
summary > h2, summary > h3 { display: inline; }
.legend span { display: inline-block; margin-right: 18px; overflow-wrap: anywhere; }
"""
    + """@media (max-width: 880px) {
  .few td.name { min-width: 0; } .few .bar { display: none; }
}
"""
    + _blocks(".wide:not(.few)", 880)
    + _blocks(".many", 1024)
)
