"""Whether reads come often enough for the windows in which brokers measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quotascope.clients.quota_admin import BrokerSettings

from ..config import CollectionConfig
from .cluster import ClusterAnswers
from .result import Result, Verdict

_ADVICE: Final = "Set collection.sample_every_seconds to 5s, or scrape more often: docs/scrape-interval.md."


def windows(
    answers: ClusterAnswers,
    collection: CollectionConfig,
    scraped_every_seconds: float | None,
) -> Iterator[Result]:
    """
    Compare the brokers' windows with the time from one read to the next.

    A window is ``quota.window.num`` samples of ``quota.window.size.seconds`` each; the last one is not yet full.
    """
    brokers = [e for e in answers.settings.values() if isinstance(e, BrokerSettings)]
    if not brokers:
        return
    shortest = min(map(_full_seconds, brokers))
    if len({(each.quota_samples, each.quota_window_seconds) for each in brokers}) > 1:
        yield _result(
            Verdict.LOOK,
            "Brokers measure in windows of different length, so the same load looks different on them.",
            "Set quota.window.num and quota.window.size.seconds alike on all brokers.",
        )
    yield _compared(shortest, collection.sample_every_seconds, scraped_every_seconds)


def _compared(
    window: float, sampled_every: float | None, scraped_every: float | None
) -> Result:
    known = [each for each in (sampled_every, scraped_every) if each is not None]
    measured = f"Brokers measure over the last {window:g} s"
    if not known:
        text = f"{measured}: reads that are further apart miss bursts, and only scrapes read."
        advice = f"Scrape every {window:g} s or more often, or sample; --scrape-interval lets this check compare."
        return _result(Verdict.NOTE, text, advice)
    every = min(known)
    if every > window:
        text = f"{measured}, but are read every {every:g} s: bursts in between are not seen."
        return _result(Verdict.LOOK, text, _ADVICE)
    return _result(Verdict.FINE, f"{measured}, and are read every {every:g} s.")


def _full_seconds(settings: BrokerSettings) -> float:
    full = max(1, settings.quota_samples - 1)
    return float(full * settings.quota_window_seconds)


def _result(verdict: Verdict, text: str, advice: str = "") -> Result:
    return Result(check="windows", verdict=verdict, text=text, advice=advice)
