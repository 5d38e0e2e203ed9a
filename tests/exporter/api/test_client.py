"""What the command line reads of an exporter says what the exporter's snapshot said."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from tests.exporter.examples import NOW, health, limits, snapshot, usage
from tests.exporter.sources.http.misbehaving import answering, serving
from tests.strategies import texts

from quotascope.cli.status_view import as_json as status
from quotascope.cli.top.screen import summary
from quotascope.exporter.api import documents
from quotascope.exporter.api.client import exporter_target, observed, read_exporter, snapshot_url
from quotascope.exporter.api.documents import encoded, snapshot_document
from quotascope.exporter.diagnosis import diagnose
from quotascope.exporter.diagnosis.rule_usage import rule_usage
from quotascope.exporter.errors import ConfigError, SourceUnreadable
from quotascope.exporter.limits import Limits, LimitsHealth, NodeSettings
from quotascope.exporter.snapshot import LimitedRate, LimitState, NodeLoad, NodeUsage, Snapshot
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType

RECORDED = ("combined_throttled", "split_throttled", "split_removed", "split_forwarded", "pair_throttled")


NOT_SENT: Final[dict[str, Any]] = dict.fromkeys(
    ("throttled_seconds_total", "throttled_requests_total", "refused_mutations_total", "reported_utilization")
)


def read_back(shown: Snapshot, known: Limits | None = None) -> Snapshot:
    return observed(encoded(snapshot_document(shown)), known)[0]


@pytest.mark.parametrize("name", RECORDED)
def test_real_nodes_are_read_back(name: str, request: pytest.FixtureRequest) -> None:
    """Entities, nodes, sources and limits, and with them the findings."""
    shown: Snapshot = request.getfixturevalue(name)
    found, findings = observed(encoded(snapshot_document(shown)))
    assert findings == diagnose(shown)
    assert found.sources == shown.sources
    assert found.limits_health == shown.limits_health
    assert len(found.measured) == len(shown.measured)
    for ours, theirs in zip(found.measured, shown.measured, strict=True):
        assert ours.entity.limit == theirs.entity.limit
        assert ours.entity.limit_state is theirs.entity.limit_state
        rule, expected = ours.entity.resolution, theirs.entity.resolution
        assert (rule is None) == (expected is None)
        if rule is not None and expected is not None:
            assert (rule.level, rule.entity) == (expected.level, expected.entity)
            assert rule.bound == pytest.approx(expected.bound)
        assert replace(ours.entity, resolution=expected) == theirs.entity
        assert replace(ours, entity=theirs.entity) == replace(theirs, **NOT_SENT, detailed=True)
    for node, real in zip(found.nodes, shown.nodes, strict=True):
        assert (node.broker, node.quota_callback) == (real.broker, real.quota_callback)
        assert node.delay_queue_size == real.delay_queue_size
        assert node.connections.ips == {ip: LimitedRate(rate=of.rate) for ip, of in real.connections.ips.items()}
    there, here = shown.limits, found.limits
    assert there is not None
    assert here is not None
    for kind in QuotaType:
        assert dict(here.rules[kind]) == dict(there.rules.get(kind, {}))
    assert here.connection_limits == there.connection_limits
    assert here.nodes == there.nodes


def test_errors_of_sources_and_of_kafka_are_read_back() -> None:
    """With their reason."""
    refused = LimitsHealth(error="needs DESCRIBE", denied=True)
    shown = snapshot(usage(), sources=(health(up=False, error="refused"),), limits_health=refused)
    found = read_back(shown)
    assert (found.sources, found.limits_health) == (shown.sources, refused)


@given(user=texts, client_id=texts)
def test_hostile_names_are_read_back(user: str, client_id: str) -> None:
    """A name that looks like the default stays a name: the level separates them."""
    name = user or "x"
    rules = QuotaRules({QuotaEntity(name, DEFAULT): 5.0, QuotaEntity(name): 6.0})
    known = limits(rules={QuotaType.PRODUCE: rules})
    shown = snapshot(usage(user=name, client_id=client_id, of=known), limits=known)
    found = read_back(shown)
    (entity,) = (each.entity for each in found.measured)
    assert (entity.user, entity.client_id) == (name, client_id)
    assert found.limits is not None
    assert dict(found.limits.rules[QuotaType.PRODUCE]) == dict(rules)


def test_a_half_of_a_surrogate_pair_hides_no_other_name() -> None:
    """One hostile client does not make the whole answer unreadable."""
    found = read_back(snapshot(usage(user="a\ud800"), usage(user="b")))
    assert {each.entity.user for each in found.measured} == {"a\ud800", "b"}


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        (snapshot(usage(usage=1.0, limit=1000.0, of=limits())), LimitState.LIMITED),
        (snapshot(usage(QuotaType.FETCH, usage=1.0, of=limits())), LimitState.UNLIMITED),
        (snapshot(usage(usage=1.0), limits=None), LimitState.UNKNOWN),
        (snapshot(usage(usage=1.0), nodes=(NodeUsage(broker="1", quota_callback=True),)), LimitState.UNKNOWN),
    ],
    ids=["limited", "unlimited", "no Admin API", "a callback decides"]
)  # fmt: skip
def test_unknown_stays_unknown(shown: Snapshot, state: LimitState) -> None:
    """Also where rules are configured, but a callback decides."""
    found = read_back(shown)
    assert found.measured[0].entity.limit_state is state
    assert (found.limits is None) == (shown.limits is None)


def test_zero_and_unknown_differ() -> None:
    """For usage and throttle times, limits of Strimzi's plugin and load alike."""
    static = {QuotaType.PRODUCE: 50_000.0, QuotaType.REQUEST: inf}
    load = NodeLoad(pools_idle={"broker": 0.3, "controller": 0.9})
    nodes = NodeUsage(broker="1", static_limits=static, load=load), NodeUsage(broker="2")
    blind = usage(user="blind", throttle_time_seconds=None)
    found = read_back(snapshot(usage(user="zero", usage=0.0), blind, nodes=nodes))
    assert [(each.usage, each.throttle_time_seconds) for each in found.measured] == [(None, None), (0.0, 0.0)]
    assert [node.load.idle for node in found.nodes] == [0.3, None]
    assert [node.static_limits for node in found.nodes] == [static, {}]


@pytest.mark.parametrize(
    ("callback", "limit", "state"), [(None, 9.0, LimitState.LIMITED), ("org.acme.Q", None, LimitState.UNKNOWN)]
)
def test_better_known_limits_replace_those_of_the_exporter(
    callback: str | None, limit: float | None, state: LimitState
) -> None:
    """Such as those that Kafka has answered a moment ago, and the callback that decides instead."""
    nodes = {"1": NodeSettings(quota_callback_class=callback)}
    known = limits(rules={QuotaType.PRODUCE: QuotaRules({QuotaEntity("alice"): 9.0})}, nodes=nodes)
    found = read_back(snapshot(usage(usage=1.0, limit=5.0, of=limits())), known)
    assert found.limits is known
    (entity,) = (each.entity for each in found.measured)
    assert (entity.limit, entity.limit_state) == (limit, state)


def test_a_burst_is_that_of_the_better_known_limit() -> None:
    """Else the tokens of a bucket would be compared with the size that it had under another limit."""
    mutation = QuotaType.CONTROLLER_MUTATION
    known = limits(rules={mutation: QuotaRules({QuotaEntity("alice"): 2.0})}, nodes={"1": NodeSettings()})
    shown = snapshot(usage(quota_type=mutation, tokens=11.0, limit=5.0, burst_tokens=55.0, of=limits()))
    (found,) = read_back(shown, known).measured
    assert (found.entity.burst_tokens, found.burst_used) == (22.0, 0.5)


def test_an_infinite_quota_is_read_back() -> None:
    """Kafka stores it up to 4.3: an entity under it has a rule and no limit, and the other quotas are readable."""
    known = limits(
        rules={QuotaType.REQUEST: QuotaRules({QuotaEntity("alice"): inf})}, connection_limits={"10.0.0.1": inf}
    )
    shown = snapshot(usage(QuotaType.REQUEST, of=known), limits=known)
    for found in read_back(shown), read_back(shown, known):
        assert found.limits is not None
        assert found.limits.connection_limits == known.connection_limits
        assert found.limits.rules[QuotaType.REQUEST] == known.rules[QuotaType.REQUEST]
        (each,) = found.measured
        assert each.entity.limit_state is LimitState.UNLIMITED
        assert each.entity.resolution is not None
        assert each.entity.resolution.entity == QuotaEntity("alice")


def test_an_exporter_that_sends_a_part_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits are unknown when rules are missing; entities that are missing are counted, and a rule that has none of the others may have them."""
    monkeypatch.setattr(documents, "MOST_CHARACTERS", 800)
    rules = QuotaRules({QuotaEntity(f"u{n}"): 1.0 for n in range(9)})
    known = limits(rules={QuotaType.PRODUCE: rules})
    many = (usage(user=f"u{n}", usage=float(n), of=known, limit=1.0) for n in range(9))
    found, findings = observed(
        encoded(snapshot_document(snapshot(*many, limits=known, nodes=(NodeUsage(broker="1"),))))
    )
    assert [each.code for each in findings] == ["api_entities_cut", "api_rules_cut"]
    assert "2 of its 9 entities" in findings[0].text
    assert found.limits is None
    assert {each.entity.user for each in found.measured} == {"u7", "u8"}
    assert found.measured[0].entity.limit == 1.0
    assert (found.unsent, found.incomplete) == (7, True)
    assert {each.hits for each in rule_usage(known, found) if each.entity == QuotaEntity("u1")} == {None}
    assert status(found, findings, 9)["entities_total"] == 9
    assert summary(found, found.measured).endswith("; 7 more, which the exporter did not send, unknown")


def changed(**changes: Any) -> bytes:
    """A snapshot with other values for some fields of its only entity."""
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
    """With the place, what to do, and no traceback."""
    with pytest.raises(SourceUnreadable, match=reason) as caught:
        observed(answer)
    assert "has to be upgraded" in str(caught.value)


def test_a_newer_exporter_can_send_more() -> None:
    """Fields that this release does not know are left out."""
    found, _ = observed(changed(novelty=1))
    assert [each.usage for each in found.measured] == [1.0]


@pytest.mark.parametrize(("status", "reason"), [("404 Not Found", "has to be upgraded"), ("200 OK", "")])
async def test_an_exporter_is_asked_over_http(status: str, reason: str) -> None:
    """One of an older release has nothing at this path."""
    body = encoded(snapshot_document(snapshot(usage(usage=1.0))))
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
    async with serving(answering(head.encode(), body)) as url:
        if reason:
            with pytest.raises(SourceUnreadable, match=reason):
                await read_exporter(exporter_target(url))
        else:
            found, _ = await read_exporter(exporter_target(url))
            assert (found.taken_at, len(found.measured)) == (NOW, 1)


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


@pytest.mark.parametrize("url", ["", "q:9749", "ftp://q", "http://", "http://[", "http://u:p@q"])
def test_what_is_no_address_is_refused(url: str) -> None:
    """And a password in one, which others could see; it is not repeated."""
    with pytest.raises(ConfigError) as caught:
        snapshot_url(url)
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize(
    ("login", "problem"),
    [
        ({"user": "a:b", "password": "s3cret"}, "colon"),
        ({"user": "a"}, "needs --exporter-password-file"),
        (
            {"user": "a", "password": "s3cret", "password_file": Path("/nowhere")},
            "/nowhere cannot be read: No such file",
        ),
    ],
)
def test_mistakes_in_a_login_name_their_option(login: dict[str, Any], problem: str) -> None:
    """And show no password."""
    with pytest.raises(ConfigError, match=problem) as caught:
        exporter_target("http://q", **login)
    assert "--exporter-" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_password_is_in_the_request_and_shows_nowhere(tmp_path: Path) -> None:
    """One in a file takes precedence over one of the environment."""
    file = tmp_path / "password"
    file.write_text("s3cret\n")
    for login in ({"password": "s3cret"}, {"password": "other", "password_file": file}):
        target = exporter_target("http://q", user="a", **login)
        assert (target.username, target.password) == ("a", "s3cret")
        assert "s3cret" not in repr(target)
