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
_MINUTES: Final = re.compile(r"(?<=\()(\d+) \* 60(?=\))")
"""Seconds, in expressions that divide by a duration."""
_DURATION: Final = re.compile(r"(\d+)(ms|[smhdw])")


def hurried(document: Any) -> Any:
    """Rules, or a configuration of Alertmanager, with their durations divided by `FACTOR`."""
    if isinstance(document, Mapping):
        return {key: _by_key(key)(value) for key, value in document.items()}
    if isinstance(document, list):
        return [hurried(each) for each in document]
    return document


def expression(promql: str) -> str:
    """The expression, looking back less far."""
    shortened = _LOOKS_BACK.sub(lambda found: _shortened(found[0]), promql)
    return _MINUTES.sub(lambda found: f"{found[1]} * {60 // FACTOR}", shortened)


def hurried_rules(folder: Path, *options: str | Path) -> list[Path]:
    """The files of rules that `quotascope alerts write` writes into a folder with these options, hurried in their place."""
    done = run("alerts", "write", folder, *options)
    assert done.returncode == 0, done.stderr
    paths = [folder / f"quotascope-{name}.yaml" for name in ("recording", "alerts")]
    for path in paths:
        path.write_text(yaml.safe_dump(hurried(yaml.safe_load(path.read_text()))))
    return paths


def _by_key(key: str) -> Callable[[Any], Any]:
    if key in _WAITS:
        return _shortened
    return expression if key == "expr" else hurried


def _shortened(durations: str) -> str:
    return _DURATION.sub(lambda found: f"{int(found[1]) * _MS[found[2]] // FACTOR}ms", durations)
