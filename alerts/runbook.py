"""The runbooks, one for each alert."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from .book import alerts
from .links import Site
from .thresholds import thresholds

NUMBER: Final = re.compile(r"`(\w+)` \(default ([^)]*)\)")
"""A number in a runbook: the name of a threshold or time, and its default, which a test keeps true."""


def runbooks(site: Site | None = None) -> Iterator[tuple[str, str]]:
    """The name of each alert that is written, and its runbook in Markdown, with the numbers of the site where these are other than the default."""
    folder = files(__package__).joinpath("runbooks")
    for path in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if path.name.endswith(".md"):
            name = path.name.removesuffix(".md")
            text = path.read_text(encoding="utf-8")
            if site is None:
                yield name, text
            elif site.enabled(name):
                yield name, _with_numbers(text, numbers(site, name))


def numbers(site: Site, alert: str) -> dict[str, str]:
    """What a runbook may name: thresholds by name, and the times of the alert, as they are shown."""
    shown = {name: f"{site.value(each):.15g} {each.unit}" for name, each in thresholds()}
    times = next(each for each in alerts(site) if each.name == alert)
    return shown | {"for": times.wait, "keep_firing_for": times.keep or "0s"}


def _with_numbers(text: str, numbers: dict[str, str]) -> str:
    """The text with the site's number before each default that differs from it."""

    def with_number(found: re.Match[str]) -> str:
        name, default = found.groups()
        if numbers[name] == default:
            return found[0]
        return f"`{name}` ({numbers[name]}, default {default})"

    return NUMBER.sub(with_number, text)
