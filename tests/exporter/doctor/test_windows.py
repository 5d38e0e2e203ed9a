from __future__ import annotations

from dataclasses import replace

import pytest
from tests.exporter.limits.test_admin import ScriptedAdmin

from quotascope.exporter.config import CollectionConfig
from quotascope.exporter.doctor import Verdict
from quotascope.exporter.doctor.cluster import ClusterAnswers, ask
from quotascope.exporter.doctor.windows import windows


@pytest.mark.parametrize(
    ("sampled", "scraped", "verdict"),
    [
        (None, None, Verdict.NOTE),
        (None, 10.0, Verdict.FINE),
        (None, 11.0, Verdict.LOOK),
        (5.0, 60.0, Verdict.FINE),
        (20.0, None, Verdict.LOOK),
    ],
)
def test_reads_are_compared_with_the_window(
    sampled: float | None, scraped: float | None, verdict: Verdict
) -> None:
    """By default eleven samples of a second, the last of which is not full: ten seconds for certain."""
    collection = CollectionConfig(sample_every_seconds=sampled)
    (result,) = windows(ask(ScriptedAdmin()), collection, scraped)
    assert result.verdict is verdict
    assert "over the last 10 s" in result.text


def test_the_shortest_window_counts() -> None:
    """Brokers that differ are worth a look of their own."""
    answers = ask(ScriptedAdmin())
    one, other = answers.settings.values()
    assert not isinstance(other, Exception)
    short = replace(other, quota_samples=3, quota_window_seconds=2)
    differing = replace(answers, settings={1: one, 2: short})
    look, compared = windows(differing, CollectionConfig(), 5.0)
    assert look.verdict is Verdict.LOOK
    assert "different length" in look.text
    assert "over the last 4 s, but are read every 5 s" in compared.text


def test_without_settings_nothing_is_compared() -> None:
    """Why they are missing is told by the permissions."""
    answers = ClusterAnswers(description=ask(ScriptedAdmin()).description)
    assert list(windows(answers, CollectionConfig(), 5.0)) == []
