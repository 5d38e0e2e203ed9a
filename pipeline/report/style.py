"""How a page looks: candidates, usage and their limits."""

from __future__ import annotations

from typing import Final

from quotascope.pages.style import REPORT

SERIES: Final = 8
"""Colours for candidates; told apart by those who see red and green alike."""

_DAY = ("#0b62a4", "#c2410c", "#6d3fb0", "#0f7b6c", "#b3135b", "#7a5c00", "#3d5a80", "#4d4d4d")  # fmt: skip
_NIGHT = ("#6db3f2", "#ff9a62", "#c3a1f5", "#5fd3bf", "#ff86b4", "#e6c453", "#a3bde0", "#c8c8c8")  # fmt: skip


def _colours(colours: tuple[str, ...]) -> str:
    return " ".join(f"--c{n}: {colour};" for n, colour in enumerate(colours))


def _series() -> str:
    strokes = (f".s{n} {{ stroke: var(--c{n}); }} .f{n} {{ fill: var(--c{n}); }}" for n in range(SERIES))  # fmt: skip
    return "\n".join(strokes)


STYLE: Final = f"""{REPORT}
:root {{ --used: #8a97a5; {_colours(_DAY)} }}
@media (prefers-color-scheme: dark) {{
  :root {{ --used: #7c8894; {_colours(_NIGHT)} }}
}}
h2 {{ margin: 36px 0 8px; font-size: 19px; }}
h3 {{ margin: 24px 0 4px; font-size: 16px; overflow-wrap: anywhere; }}
pre {{ overflow-x: auto; padding: 12px; border: 1px solid var(--line); border-radius: 4px; font-size: 13px; }}
.up {{ color: var(--c3); }} .down {{ color: var(--c1); }}
svg {{ max-width: 1150px; }}
svg.heat {{ max-width: 860px; }}
.middle {{ text-anchor: middle; }} .end {{ text-anchor: end; }}
line.grid {{ stroke: var(--line); }}
.mean {{ fill: none; stroke: var(--used); stroke-width: 1.4; }}
.peak {{ fill: var(--used); fill-opacity: .35; }}
.limit {{ stroke-width: 1.8; fill: none; }}
.cell {{ fill: var(--c0); stroke: var(--paper); }}
.blank {{ fill: var(--line); fill-opacity: .4; stroke: var(--paper); }}
.legend span {{ display: inline-block; margin-right: 18px; overflow-wrap: anywhere; }}
.above {{ margin-top: 14px; }}
tr.again td {{ border-bottom-style: dotted; }}
svg.key {{ display: inline-block; width: 22px; height: 10px; }}
{_series()}
"""
