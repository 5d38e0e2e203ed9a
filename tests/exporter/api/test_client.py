"""The snapshot that the command line reads of an exporter says what the exporter's own said."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.exporter.examples import ALICE, NOW, changes, health, in_shadow, limits, snapshot, usage
from tests.exporter.nodes import idle
from tests.exporter.sources.http.misbehaving import answering, serving
from tests.strategies import texts

from quotascope.cli.status_view import as_json as status
from quotascope.cli.top.screen import summary
from quotascope.exporter.api import answers
from quotascope.exporter.api.answers import snapshot_document
from quotascope.exporter.api.client import Observed, exporter_target, observed, read_exporter, snapshot_url
from quotascope.exporter.api.documents import encoded
from quotascope.exporter.diagnosis.findings import diagnose
from quotascope.exporter.diagnosis.rule_usage import rule_usage
from quotascope.exporter.errors import ConfigError, SourceUnreadable
from quotascope.exporter.limits import Limits, LimitsHealth, NodeSettings
from quotascope.exporter.snapshot import EntityUsage, LimitState, NodeUsage, Shadow, Snapshot
from quotascope.exporter.snapshot.entity import finite
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.pages.baseline import ThrottleChange


def parts(state: Snapshot) -> list[object]:
    """Return all of a snapshot that an exporter sends, in a form that can be compared."""
    configured, usages = (
        state.limits,
        ((entity_usage, entity_usage.entity.resolution) for entity_usage in state.measured),
    )
    return [
        (state.taken_at, state.sources, state.limits_health, state.shadows),
        [
            replace(
                entity_usage,
                entity=replace(entity_usage.entity, resolution=rule and replace(rule, bound=finite(rule.bound))),
            )
            for entity_usage, rule in usages
        ],
        [
            (node.broker, node.quota_callback, node.static_limits, node.delay_queue_size, node.handlers_idle)
            for node in state.nodes
        ],
        [(node.connections_by_ip, node.started_at) for node in state.nodes],
        configured and [configured.rules.get(kind, QuotaRules()) for kind in QuotaType],
        configured and (configured.connection_limits, configured.nodes),
    ]


def sent(state: Snapshot, configured: Limits | None = None) -> Observed:
    """Return what the command line reads from an exporter that has this snapshot."""
    return observed(encoded(snapshot_document(state)), configured)


@pytest.mark.parametrize(
    "name", ["combined_throttled", "split_throttled", "split_removed", "split_forwarded", "pair_throttled"]
)
def test_real_nodes_are_read_back(name: str, request: pytest.FixtureRequest) -> None:
    """Entities, nodes, sources, limits and findings are read back as they were sent."""
    state: Snapshot = request.getfixturevalue(name)
    received, findings = sent(state)
    assert parts(received) == parts(state)
    assert findings == diagnose(state)


BUCKET = usage(QuotaType.CONTROLLER_MUTATION, tokens=-1.0, limit=1.0, burst_tokens=10.0)
KNOWN = limits(
    rules={QuotaType.PRODUCE: QuotaRules({ALICE: 9.0}), QuotaType.REQUEST: QuotaRules({ALICE: inf})},
    connection_limits={"10.0.0.1": inf},
)
SHADOW = Shadow(
    name="half",
    entities=(
        in_shadow(
            usage(usage=9.0, limit=9.0, throttle_time_seconds=2.0, configured=KNOWN),
            ThrottleChange.LONGER,
            change_seconds=1.5,
        ),
        in_shadow(
            usage(usage=4.0, limit=9.0, throttle_time_seconds=None),
            ThrottleChange.SHORTER,
            held_back=True,
            unchanged=True,
        ),
    ),
    evaluated={(QuotaType.PRODUCE, "1"): 5},
    changes={(QuotaType.PRODUCE, "1"): changes(new=2, ended=1)},
    unevaluated={(QuotaType.FETCH, "1", "no_usage"): 3},
)
EVERYTHING = snapshot(
    usage(usage=0.0, limit=9.0, configured=KNOWN),
    usage(QuotaType.FETCH, configured=KNOWN, throttle_time_seconds=None),
    usage(QuotaType.REQUEST, configured=KNOWN),
    BUCKET,
    usage(user="a\ud800"),
    nodes=(
        NodeUsage(
            broker="1",
            static_limits={QuotaType.PRODUCE: 50_000.0, QuotaType.REQUEST: inf},
            numbers=idle(broker=0.3, controller=0.9),
            started_at=1_700_000_000.5,
        ),
        NodeUsage(broker="2"),
    ),
    sources=(health(up=False, error="refused"),),
    limits=KNOWN,
    limits_health=LimitsHealth(error="needs DESCRIBE", denied=True),
    shadows=(SHADOW,),
)


@pytest.mark.parametrize(
    "state",
    [
        EVERYTHING,
        snapshot(usage(usage=1.0), limits=None),
        snapshot(usage(usage=1.0), nodes=(NodeUsage(broker="1", quota_callback=True),)),
    ],
    ids=["everything", "no Admin API", "a callback decides"],
)
def test_unknown_stays_unknown(state: Snapshot) -> None:
    """
    Zero, unlimited (also by an infinite quota) and unknown are three.

    Errors keep their reason, and half a surrogate pair hides no other name.
    """
    received, _ = sent(state)
    assert parts(received) == parts(state)


@given(user=texts, client_id=texts)
def test_hostile_names_are_read_back(user: str, client_id: str) -> None:
    """Hostile names are read back, and one that looks like the default stays a name by its level."""
    name = user or "x"
    rules = QuotaRules({QuotaEntity(name, DEFAULT): 5.0, QuotaEntity(name): 6.0})
    configured = limits(rules={QuotaType.PRODUCE: rules})
    state = snapshot(
        usage(user=name, client_id=client_id, limit=5.0 if client_id else 6.0, configured=configured), limits=configured
    )
    received, _ = sent(state)
    assert parts(received) == parts(state)


@pytest.mark.parametrize(
    ("entity_usage", "bound", "callback", "state", "numbers"),
    [
        (usage(limit=5.0, configured=limits()), 9.0, None, LimitState.LIMITED, [9.0, None]),
        (usage(limit=5.0, configured=limits()), 9.0, "org.acme.Q", LimitState.UNKNOWN, [None, None]),
        (BUCKET, 2.0, None, LimitState.LIMITED, [2.0, 22.0]),
        (usage(QuotaType.REQUEST), inf, None, LimitState.UNLIMITED, [None, None]),
    ],
)
def test_better_known_limits_replace_those_of_the_exporter(
    entity_usage: EntityUsage, bound: float, callback: str | None, state: LimitState, numbers: list[float | None]
) -> None:
    """Kafka may have answered a moment ago, with the size of buckets, or the callback that decides instead."""
    rules = {entity_usage.entity.quota_type: QuotaRules({ALICE: bound})}
    configured = limits(rules=rules, nodes={"1": NodeSettings(quota_callback_class=callback)})
    received, _ = sent(snapshot(entity_usage), configured)
    assert received.limits is configured
    (entity,) = (read_usage.entity for read_usage in received.measured)
    assert (entity.limit_state, [entity.limit, entity.burst_tokens]) == (state, numbers)
    assert (entity.resolution and entity.resolution.entity) == (None if callback else ALICE)


def test_an_exporter_that_sends_a_part_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Limits are unknown when rules are missing.

    Missing entities are counted, and a rule without entities may have some of those.
    """
    monkeypatch.setattr(answers, "MOST_CHARACTERS", 800)
    rules = QuotaRules({QuotaEntity(f"u{n}"): 1.0 for n in range(9)})
    configured = limits(rules={QuotaType.PRODUCE: rules})
    many = (usage(user=f"u{n}", usage=float(n), configured=configured, limit=1.0) for n in range(9))
    received, findings = sent(snapshot(*many, limits=configured))
    assert [finding.code for finding in findings] == ["api_entities_cut", "api_rules_cut"]
    assert "2 of its 9 entities" in findings[0].text
    assert received.limits is None
    assert {entity_usage.entity.user for entity_usage in received.measured} == {"u7", "u8"}
    assert received.measured[0].entity.limit == 1.0
    assert (received.unsent, received.incomplete) == (7, True)
    assert {
        usage_of_rule.hits
        for usage_of_rule in rule_usage(configured, received)
        if usage_of_rule.entity == QuotaEntity("u1")
    } == {None}
    assert status(received, findings, 9)["entities_total"] == 9
    assert summary(received, received.measured).endswith("; 7 more, which the exporter did not send, unknown")


def changed(**changes: Any) -> bytes:
    """Return a snapshot with other values for some fields of its only entity."""
    answer = json.loads(encoded(snapshot_document(snapshot(usage(usage=1.0)))))
    answer["entities"][0].update(changes)
    return json.dumps(answer).encode()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "Expecting value"),
        (b"up 1\n", "Expecting value"),
        (b"\xff", "decode"),
        (b"[" * 100_000, "not a snapshot"),
        (b"{}", "health"),
        (b"[]", "not a snapshot"),
        (changed(usage="much"), "entities.0.usage"),
        (changed(quota_type="magic"), "magic"),
        (changed(cause="magic"), "magic"),
        (changed(limit_state="magic"), "magic"),
        (changed(rule={"level": "magic"}), "magic"),
        (changed(rule={"level": "user"}), "user"),
    ],
)
def test_another_answer_is_refused(answer: bytes, reason: str) -> None:
    """An answer in another form is refused with its place and what to do, without a traceback."""
    with pytest.raises(SourceUnreadable, match=reason) as caught:
        observed(answer)
    assert "has to be upgraded" in str(caught.value)


def test_a_newer_exporter_can_send_more() -> None:
    """Fields that this release does not know are left out."""
    received, _ = observed(changed(novelty=1))
    assert [entity_usage.usage for entity_usage in received.measured] == [1.0]


@pytest.mark.parametrize(("status", "reason"), [("404 Not Found", "has to be upgraded"), ("200 OK", "")])
async def test_an_exporter_is_asked_over_http(status: str, reason: str) -> None:
    """A snapshot is read over HTTP; an exporter of an older release, without this path, is an error."""
    body = encoded(snapshot_document(snapshot(usage(usage=1.0))))
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
    async with serving(answering(head.encode(), body)) as url:
        if reason:
            with pytest.raises(SourceUnreadable, match=reason):
                await read_exporter(exporter_target(url))
        else:
            received, _ = await read_exporter(exporter_target(url))
            assert (received.taken_at, len(received.measured)) == (NOW, 1)


@pytest.mark.parametrize(
    ("given_url", "url"),
    [
        ("http://q:9749", "http://q:9749/api/v1/snapshot"),
        ("https://q/", "https://q/api/v1/snapshot"),
        ("http://q/scope/", "http://q/scope/api/v1/snapshot"),
        ("http://q/scope/metrics?x=1#x", "http://q/scope/api/v1/snapshot"),
        ("http://q/api/v1/snapshot", "http://q/api/v1/snapshot"),
    ],
)
def test_the_path_may_be_left_out(given_url: str, url: str) -> None:
    """Behind a proxy, its prefix stays."""
    assert snapshot_url(given_url) == url


@pytest.mark.parametrize(
    ("url", "login", "problem"),
    [
        *((url, {}, "--exporter: expected an address") for url in ("", "q:9749", "ftp://q", "http://", "http://[")),
        ("http://u:s3cret@q", {}, "--exporter: takes no user or password in the address"),
        ("http://u@q", {}, "--exporter: takes no user or password in the address"),
        ("http://q", {"user": "a:b", "password": "s3cret"}, "--exporter-user: must not contain a colon"),
        ("http://q", {"user": "a"}, "--exporter-user: needs --exporter-password-file"),
        (
            "http://q",
            {"user": "a", "password": "s3cret", "password_file": Path("/nowhere")},
            "--exporter-password-file: the file cannot be read: No such file",
        ),
    ],
)
def test_mistakes_in_address_and_login_name_their_option(url: str, login: dict[str, Any], problem: str) -> None:
    """A mistake in address or login names its option, without the password."""
    with pytest.raises(ConfigError, match=problem) as caught:
        exporter_target(url, **login)
    assert "s3cret" not in str(caught.value)


def test_a_password_is_in_the_request_and_shows_nowhere(tmp_path: Path) -> None:
    """A password is sent and never shown; one in a file takes precedence over the environment's."""
    file = tmp_path / "password"
    file.write_text("s3cret\n")
    for login in ({"password": "s3cret"}, {"password": "other", "password_file": file}):
        target = exporter_target("http://q", user="a", **login)
        assert (target.username, target.password) == ("a", "s3cret")
        assert "s3cret" not in repr(target)
