"""
The table of docs/start/dialects.md.

Which release of Kafka works with what, by the results that `make kafka-matrix` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

RESULTS: Final = Path(__file__).parents[1] / "tests" / "releases" / "results.json"
FEATURES: Final = {
    "limits_and_rules": "limits, rules",
    "usage_and_throttle_times": "usage, throttle times",
    "agents_with_text": "jmx_exporter 0.16.1, 1.0.1",
    "request_log": "request log",
    "replay": "what-if",
    "release_is_named": "release shown",
    "rules_that_apply": "explain",
}
"""Heading of the column of each test."""
BEGIN: Final = "<!-- written by tools/generate_docs.py from what the tests found -->\n"
END: Final = "<!-- end -->\n"
_CELLS: Final = {"passed": "yes", "failed": "**no**", None: "-"}


def with_table(page: str) -> str:
    """Return the page with the table between its marks."""
    head, _, tail = page.partition(BEGIN)
    _, _, end = tail.partition(END)
    results: Mapping[str, Mapping[str, str]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return "".join((head, BEGIN, *_lines(results), END, end))


def _lines(results: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    yield f"| Kafka | {' | '.join(FEATURES.values())} |\n"
    yield f"|---|{'---|' * len(FEATURES)}\n"
    for name in sorted(results, key=_version):
        version, _, mode = name.partition("-")
        cells = (_CELLS[results[name].get(feature)] for feature in FEATURES)
        yield f"| {version} with {'ZooKeeper' if mode else 'KRaft'} | {' | '.join(cells)} |\n"


def _version(name: str) -> tuple[int, ...]:
    return tuple(map(int, name.partition("-")[0].split(".")))
