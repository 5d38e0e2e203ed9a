"""Runbooks, one for each alert."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from importlib.resources import files
from typing import Final

from .links import Site
from .render import alert_texts, alerts, is_enabled, profiles_of, short
from .settings import Profile
from .thresholds import thresholds

NUMBER: Final = re.compile(r"`(\w+)` \(default ([^)]*)\)")
"""A number in a runbook: the name of a threshold or time, and its default, which a test compares."""
COMPARED: Final = re.compile(r"([\d.]+)(?=\)* # ([A-Z_]+)$)", re.MULTILINE)
"""A number in a query of a runbook: the line ends with the name of its threshold, as a comment."""
_ALERT: Final = re.compile(r"(?<!# )`?\bKafkaQuota[A-Z]\w+`?")


def runbooks(site: Site | None = None) -> Iterator[tuple[str, str]]:
    """
    Yield the names and runbooks, in Markdown, of the alerts that a site enables; without a site, of all alerts.

    A runbook has the numbers of the site if they differ from the defaults. It marks alerts that the site does not
    write, or, without a site, names the profile that has them.
    """
    folder = files(__package__).joinpath("runbooks")
    for path in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if path.name.endswith(".md"):
            name = path.name.removesuffix(".md")
            text = path.read_text(encoding="utf-8")
            if site is None:
                yield name, _with_profiles(text, name)
            elif is_enabled(site, name):
                text = _ALERT.sub(partial(_with_absence, site), text)
                yield name, _with_numbers(text, numbers(site, name))


def summaries() -> dict[str, tuple[str, str]]:
    """Return the severity and the summary of each alert, by name; the severity has the profile if only one has it."""
    by_alert = {}
    for name, rule in alert_texts().items():
        only = _only_profile(name)
        severity = rule["labels"]["severity"] + (f", profile {only}" if only else "")
        by_alert[name] = (severity, rule["annotations"]["summary"])
    return by_alert


def numbers(site: Site, alert: str) -> dict[str, str]:
    """Return the numbers that a runbook may name, as people read them: thresholds by name, and times of the alert."""
    values = {name: f"{short(site.value(threshold))} {threshold.unit}" for name, threshold in thresholds()}
    times = next(rule for rule in alerts(site) if rule["alert"] == alert)
    return values | {"for": times["for"], "keep_firing_for": times.get("keep_firing_for", "0s")}


def _only_profile(alert: str) -> Profile | None:
    """Return the only profile that has an alert; None for an alert of all profiles."""
    profiles = profiles_of(alert)
    return profiles[0] if len(profiles) == 1 else None


def _with_profiles(text: str, alert: str) -> str:
    """Return a runbook with the profile of each alert that only one profile has."""

    def with_profile(mention: re.Match[str]) -> str:
        only = _only_profile(mention[0].strip("`"))
        return f"{mention[0]} (profile `{only}`)" if only else mention[0]

    text = _ALERT.sub(with_profile, text)
    only = _only_profile(alert)
    if only is None:
        return text
    title, _, body = text.partition("\n")
    note = f"Rules have this alert with `quotascope alerts write --profile {only}`, or where it is enabled."
    return f"{title}\n\n{note}\n{body}"


def _with_absence(site: Site, mention: re.Match[str]) -> str:
    return mention[0] if is_enabled(site, mention[0].strip("`")) else f"{mention[0]} (not written)"


def with_defaults(text: str, alert: str) -> str:
    """Return the text of a runbook with the defaults that thresholds and times have now."""
    defaults = numbers(Site(), alert)
    text = NUMBER.sub(lambda match: f"`{match[1]}` (default {defaults.get(match[1], match[2])})", text)
    return _with_compared(text, defaults)


def _with_compared(text: str, numbers: dict[str, str]) -> str:
    """Return the text with these numbers, without their units, in queries."""
    return COMPARED.sub(lambda match: numbers.get(match[2], match[1]).partition(" ")[0], text)


def _with_numbers(text: str, numbers: dict[str, str]) -> str:
    """Return the text with the site's number before each default that differs."""

    def with_number(match: re.Match[str]) -> str:
        name, default = match.groups()
        if numbers[name] == default:
            return match[0]
        return f"`{name}` ({numbers[name]}, default {default})"

    return _with_compared(NUMBER.sub(with_number, text), numbers)
