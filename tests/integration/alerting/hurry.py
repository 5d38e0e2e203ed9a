"""
The generated files with a minute made a second, so that a test need not wait for a quarter of an hour.

Only durations change, all by the same factor: `for`, `keep_firing_for` and `interval` of rules, ranges, subqueries and
offsets in expressions, and the waits of Alertmanager. Thresholds and everything else in an expression stay.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from tests.commands import run

FACTOR: Final = 60
_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_WAITS: Final = frozenset({"for", "keep_firing_for", "interval", "group_wait", "group_interval", "repeat_interval"})
_LOOKS_BACK: Final = re.compile(r"(?<=\[)\w+(?::\w+)?(?=\])|(?<=offset )\w+")
_LENGTH: Final = re.compile(r"(?<=\()(\d+00) - 1(?=\))")
"""Seconds, in expressions that divide by the length of a range: a second less than whole minutes."""
_DURATION: Final = re.compile(r"(?:\d+(?:ms|[smhdw]))+")
_PART: Final = re.compile(r"(\d+)(ms|[smhdw])")


def hurried(document: Any) -> Any:
    """Rules, or a configuration of Alertmanager, with their durations divided by `FACTOR`."""
    if isinstance(document, Mapping):
        return {key: _by_key(key)(value) for key, value in document.items()}
    if isinstance(document, list):
        return [hurried(item) for item in document]
    return document


def expression(promql: str) -> str:
    """Return the expression with shorter ranges."""
    shortened = _LOOKS_BACK.sub(lambda match: _shortened(match[0]), promql)
    return _LENGTH.sub(lambda match: f"{int(match[1]) / FACTOR:g} - {1 / FACTOR:.3g}", shortened)


def hurried_rules(folder: Path, *options: str | Path) -> list[Path]:
    """Write the files of all rules with `quotascope alerts write` and these options, and shorten their times."""
    process = run("alerts", "write", folder, "--profile", "all", *options)
    assert process.returncode == 0, process.stderr
    paths = [folder / f"quotascope-{name}.yaml" for name in ("recording", "alerts")]
    for path in paths:
        path.write_text(yaml.safe_dump(hurried(yaml.safe_load(path.read_text()))))
    return paths


def _by_key(key: str) -> Callable[[Any], Any]:
    if key in _WAITS:
        return _shortened
    return expression if key == "expr" else hurried


def _shortened(durations: str) -> str:
    return _DURATION.sub(lambda duration: f"{_milliseconds(duration[0]) // FACTOR}ms", durations)


def _milliseconds(duration: str) -> int:
    return sum(int(number) * _MS[unit] for number, unit in _PART.findall(duration))
