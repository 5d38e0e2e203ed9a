"""What `quotascope shadow status` shows, and how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.cli.usages import rendered
from tests.exporter.examples import health, limits, snapshot, usage

from quotascope.cli.status_view import view
from quotascope.cli.top.choices import Choices
from quotascope.cli.top.screen import screen
from quotascope.exporter.api.client import observed
from quotascope.exporter.api.documents import encoded, snapshot_document
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.shadow import UnevaluatedReason
from quotascope.exporter.snapshot import Shadow, Snapshot
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType

Run = Callable[..., tuple[int, str, str]]
PRODUCE, FETCH, REQUEST, MUTATION = QuotaType
HOSTILE = "<b>[/b]\x1b[2J\n" + "x" * 300
QUIET = Shadow(name="quiet", evaluated={(PRODUCE, "1"): 7}, throttled={(PRODUCE, "1"): 0})
BUSY = Shadow(
    name="half",
    entities=(usage(user="alice", limit=10.0, usage=20.0, throttle_time_seconds=11.0), usage(user=HOSTILE, limit=10.0, usage=1.0)),
    evaluated={(PRODUCE, "1"): 1, (PRODUCE, "2"): 1},
    throttled={(PRODUCE, "1"): 1, (PRODUCE, "2"): 0},
    unevaluated={(FETCH, "1", UnevaluatedReason.FINER): 3}
)  # fmt: skip


def unknown(*reasons: UnevaluatedReason) -> Shadow:
    """One of which nothing is known, for these reasons."""
    return Shadow(name="dark", unevaluated={(PRODUCE, "1", each): 2 for each in reasons})


@pytest.fixture
def shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs the command on a snapshot that an exporter has sent."""

    def shown(answer: Snapshot, *more: str) -> tuple[int, str, str]:
        async def observe(*_: object) -> Any:
            return observed(encoded(snapshot_document(answer)))

        monkeypatch.setattr("quotascope.cli.cluster.observe", observe)
        return run("shadow", "status", "--exporter", "http://x:9749", *more)

    return shown


@pytest.mark.parametrize(
    ("shadows", "changes", "code"),
    [
        ((QUIET,), {}, 0),
        ((QUIET, BUSY), {}, 3),
        ((QUIET, unknown(UnevaluatedReason.CENSORED)), {}, 4),
        ((unknown(UnevaluatedReason.ABSENT), BUSY), {}, 3),
        ((Shadow(name="of nothing"),), {}, 4),
        ((QUIET,), {"sources": (health(up=False),)}, 4),
        ((QUIET,), {"sources": (health(up=False, stand_by_of="1"),)}, 0),
        ((), {}, 2),
    ],
)
def test_a_pipeline_learns_it_from_the_exit_code(
    shown: Run, shadows: tuple[Shadow, ...], changes: dict[str, Any], code: int
) -> None:
    """Quiet is only what is known to be quiet, with all sources read."""
    assert shown(snapshot(shadows=shadows, **changes))[0] == code


def test_entities_stand_beside_what_is_enforced(shown: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are untrusted; JSON has the same."""
    monkeypatch.setenv("COLUMNS", "200")
    given = snapshot(usage(user="alice", limit=1000.0, usage=20.0), shadows=(BUSY,))
    _, text, _ = shown(given)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "half produce 2 1 none" in lines
    assert "half fetch ? ? 3 finer" in lines
    assert "1 user alice produce 20.0 / 10.0 B/s 200% 11.0 s 1.00 kB/s 0 s" in lines
    assert "\x1b[2J" not in text
    _, text, _ = shown(replace(given, shadows=(replace(BUSY, name="[/b]"),)))
    assert [" ".join(line.split()) for line in text.splitlines()][1].startswith("[/b] produce 2 1")
    document = json.loads(shown(given, "--json")[1])["shadows"][0]
    assert document["entities"][1]["user"] == HOSTILE
    assert document["unevaluated"] == [{"quota_type": "fetch", "broker": "1", "reason": "finer", "entities": 3}]


@pytest.mark.parametrize(
    ("rules", "advice"),
    [
        ({QuotaEntity("alice"): 1.0}, "quotascope quotas set --measure-only producer_byte_rate --default-user --default-client-id --apply"),
        ({QuotaEntity(DEFAULT): 1.0}, "would overrule limits that are set"),
        ({QuotaEntity(None, "app"): 1.0}, "would overrule limits that are set"),
        ({QuotaEntity(None, DEFAULT): 1.0}, "would overrule limits that are set"),
        ({QuotaEntity(DEFAULT, DEFAULT): 1.0, QuotaEntity("alice"): 1.0}, "would overrule limits that are set"),
    ]
)  # fmt: skip
def test_it_says_how_to_measure_without_a_limit(shown: Run, rules: dict[QuotaEntity, float], advice: str) -> None:
    """Not where such a rule would leave clients of levels 6 to 8 unlimited, or where it is there already."""
    given = limits(rules={PRODUCE: QuotaRules(rules)})
    text = shown(snapshot(shadows=(unknown(UnevaluatedReason.FINER),), limits=given))[1]
    assert f"producer_byte_rate: {'to measure' if 'quotascope' in advice else 'a rule'}" in text.replace("\n", " ")
    assert advice in " ".join(text.split())


def test_top_and_status_have_a_column_for_shadows() -> None:
    """The longest throttle in any of them, else the highest utilization; no column without shadows."""
    closest = tuple(usage(user=user, limit=10.0, usage=used) for user, used in (("alice", 9.0), ("bob", 4.5)))
    throttles = {"alice": 1.0, "bob": 0.0, "carol": 0.0}
    rows = [
        usage(user=user, limit=1000.0, usage=900.0, throttle_time_seconds=seconds)
        for user, seconds in throttles.items()
    ]
    shadows = (BUSY, replace(BUSY, name="near", entities=closest))
    for given in (snapshot(*rows, shadows=shadows), snapshot(*rows)):
        for shown in (view(given, [], 10), screen(given, Trails(), Choices(), 160, 40)):
            text = rendered(shown, 160)
            assert ("shadow" in text) is bool(given.shadows)
            if given.shadows:
                assert re.search(r"alice.*1.00 s +11.0 s", text)
                assert re.search(r"bob.*0 s +45%", text)
                assert re.search(r"carol.*0 s +- ", text)
