"""How the page looks: lanes, shares and their keys."""

from __future__ import annotations

from typing import Final

from quotascope.pages.style import REPORT

STYLE: Final = f"""{REPORT}
h2 {{ margin: 32px 0 8px; font-size: 18px; }}
.legend span {{ display: inline-block; margin-right: 18px; white-space: nowrap; }}
svg.key {{ display: inline-block; width: 12px; height: 12px; }}
svg.share {{ width: 140px; height: 10px; }}
text.lane {{ text-anchor: end; }}
svg text.tick {{ text-anchor: middle; }}
line.tick {{ stroke: var(--line); }}
"""
