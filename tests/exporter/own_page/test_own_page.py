"""An exporter's page says what its snapshot said."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.exporter.examples import NOW, limits, snapshot, usage
from tests.exporter.sources.http.misbehaving import answering, serving
from tests.strategies import texts

from quotascope.exporter.diagnosis import Severity, diagnose
from quotascope.exporter.errors import ConfigError, SourceUnreadable
from quotascope.exporter.exposition import exposition
from quotascope.exporter.own_page import (
    exporter_target,
    exporter_url,
    read_exporter,
    snapshot_of_page,
)
from quotascope.exporter.snapshot import (
    EntityUsage,
    Folds,
    LimitedRate,
    LimitState,
    NodeUsage,
    Snapshot,
)
from quotascope.metrics import DEFAULT, QuotaEntity, QuotaRules, QuotaType
from quotascope.metrics.catalog import OVERFLOW

RECORDED = (
    "combined_throttled",
    "split_throttled",
    "split_removed",
    "split_forwarded",
    "pair_throttled",
)


def read_back(shown: Snapshot) -> Snapshot:
    """By way of the text format."""
    return snapshot_of_page(exposition(shown, NOW), NOW)


def by_entity(shown: Snapshot) -> dict[tuple[object, ...], EntityUsage]:
    """Its entities that have a usage: only those have a series."""
    return {
        (
            each.entity.quota_type,
            each.entity.broker,
            each.entity.user,
            each.entity.client_id,
        ): each
        for each in shown.entities
        if each.usage is not None
    }


@pytest.mark.parametrize("name", RECORDED)
def test_the_entities_of_real_nodes_are_read_back(
    name: str, request: pytest.FixtureRequest
) -> None:
    """Usage, limit, rule, throttle, tokens and cause of every entity."""
    shown: Snapshot = request.getfixturevalue(name)
    expected, found = by_entity(shown), by_entity(read_back(shown))
    assert found.keys() == expected.keys()
    for key, ours in found.items():
        theirs = expected[key]
        assert ours.usage == theirs.usage
        assert ours.entity.limit == pytest.approx(theirs.entity.limit)
        assert ours.throttle_time_seconds == theirs.throttle_time_seconds
        assert (ours.tokens, ours.cause) == (theirs.tokens, theirs.cause)
        assert ours.entity.burst_tokens == theirs.entity.burst_tokens
        rule = theirs.entity.resolution
        assert (ours.entity.resolution is None) == (rule is None)
        if rule is not None and ours.entity.resolution is not None:
            assert ours.entity.resolution.entity == rule.entity


@pytest.mark.parametrize("name", RECORDED)
def test_the_rules_of_a_cluster_are_read_back(
    name: str, request: pytest.FixtureRequest
) -> None:
    """In Kafka's units, so that Kafka need not be asked."""
    shown: Snapshot = request.getfixturevalue(name)
    limits_there, limits_here = shown.limits, read_back(shown).limits
    assert limits_there is not None
    assert limits_here is not None
    for kind in QuotaType:
        expected = dict(limits_there.rules.get(kind, {}))
        assert dict(limits_here.rules[kind]) == pytest.approx(expected)
    assert limits_here.connection_limits == limits_there.connection_limits


def test_addresses_and_sources_are_read_back(pair_throttled: Snapshot) -> None:
    """New connections by address, delay queues, and which sources are up."""
    found = read_back(pair_throttled)
    for ours in found.nodes:
        (theirs,) = (
            node for node in pair_throttled.nodes if node.broker == ours.broker
        )
        rates = {
            ip: LimitedRate(rate=of.rate) for ip, of in theirs.connections.ips.items()
        }
        assert ours.connections.ips == rates
        assert ours.delay_queue_size == theirs.delay_queue_size
    assert {source.name: source.up for source in found.sources} == {
        source.name: source.up for source in pair_throttled.sources
    }


@pytest.mark.parametrize("name", RECORDED)
def test_a_page_of_an_exporter_that_is_well_has_no_error(
    name: str, request: pytest.FixtureRequest
) -> None:
    """What a snapshot of the brokers has beside it need not be on the page."""
    shown: Snapshot = request.getfixturevalue(name)
    errors = [
        finding.text
        for finding in diagnose(read_back(shown))
        if finding.severity is Severity.ERROR
    ]
    assert errors == []


@given(user=texts, client_id=texts)
def test_hostile_names_are_read_back(user: str, client_id: str) -> None:
    """A name that looks like the default stays a name: the level tells them apart."""
    name = user or "x"
    rules = QuotaRules({QuotaEntity(name, DEFAULT): 5.0, QuotaEntity(name): 6.0})
    known = limits(rules={QuotaType.PRODUCE: rules})
    shown = snapshot(usage(user=name, client_id=client_id, usage=1.0), limits=known)
    found = read_back(shown)
    (entity,) = (each.entity for each in found.entities)
    assert (entity.user, entity.client_id) == (name, client_id)
    assert found.limits is not None
    assert dict(found.limits.rules[QuotaType.PRODUCE]) == dict(rules)


def test_what_stands_for_folded_entities_is_no_entity() -> None:
    """Its sum is nobody's usage."""
    folded = usage(user=OVERFLOW, client_id=OVERFLOW, usage=1e9, stands_in=True)
    shown = snapshot(usage(usage=1.0), folded, folds=Folds(overflow=9))
    assert [each.entity.user for each in read_back(shown).entities] == ["alice"]


def test_an_exporter_that_knows_no_limits_tells_none() -> None:
    """None is not the same as no rules."""
    assert read_back(snapshot(usage(usage=1.0), limits=None)).limits is None


def test_better_known_limits_replace_those_of_the_page() -> None:
    """Such as those that Kafka has told a moment ago."""
    known = limits(rules={QuotaType.PRODUCE: QuotaRules({QuotaEntity("alice"): 9.0})})
    page = exposition(snapshot(usage(usage=1.0)), NOW)
    (found,) = snapshot_of_page(page, NOW, known).entities
    assert found.entity.limit == 9.0


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (b"", "no page of quotascope"),
        (b"up 1\n", "no page of quotascope"),
        (b"kafka_quota_x{\xff", "not Prometheus text"),
        (b'quotascope_build_info{version="1" 1\n', "not Prometheus text"),
        (
            b'quotascope_build_info{version="1"} 1\nkafka_quota_produce_bytes_per_second{user="a"} 1\n',
            "not one of this version",
        ),
        (
            b'quotascope_build_info{version="1"} 1\nkafka_quota_throttle_cause_info{quota_type="produce",broker="1",user="a",client_id="",cause="magic"} 1\n',
            "not one of this version",
        ),
    ],
)
def test_another_page_is_refused(page: bytes, reason: str) -> None:
    """With what to do, and no traceback."""
    with pytest.raises(SourceUnreadable, match=reason):
        snapshot_of_page(page, NOW)


async def test_an_exporter_is_asked_over_http() -> None:
    """At the address as it was given."""
    page = exposition(snapshot(usage(usage=1.0)), NOW)
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(page)}\r\n\r\n"
    async with serving(answering(head.encode(), page)) as url:
        found = await read_exporter(exporter_target(url))
    assert [each.usage for each in found.entities] == [1.0]


@pytest.mark.parametrize(
    ("given_url", "url"),
    [
        ("http://q:9749", "http://q:9749/metrics"),
        ("https://q/", "https://q/metrics"),
        ("http://q/scope/metrics?scraper=me#x", "http://q/scope/metrics?scraper=me"),
    ],
)
def test_the_path_may_be_left_out(given_url: str, url: str) -> None:
    """As in `quotascope serve`'s own log."""
    assert exporter_url(given_url) == url


@pytest.mark.parametrize(
    "url", ["", "q:9749", "ftp://q", "http://", "http://[", "http://u:p@q"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    """And a password in one, which others could see; it is not repeated."""
    with pytest.raises(ConfigError) as caught:
        exporter_url(url)
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        (snapshot(usage(usage=1.0, limit=1000.0, of=limits())), LimitState.LIMITED),
        (
            snapshot(usage(QuotaType.FETCH, usage=1.0, of=limits())),
            LimitState.UNLIMITED,
        ),
        (snapshot(usage(usage=1.0), limits=None), LimitState.UNKNOWN),
        (
            snapshot(
                usage(usage=1.0), nodes=(NodeUsage(broker="1", quota_callback=True),)
            ),
            LimitState.UNKNOWN,
        ),
    ],
    ids=["limited", "unlimited", "no Admin API", "a callback decides"],
)
def test_what_is_unknown_there_is_unknown_here(
    shown: Snapshot, state: LimitState
) -> None:
    """The rules on a page mean nothing where a callback decides; a missing limit is not taken for one that is none."""
    (entity,) = read_back(shown).entities
    assert entity.entity.limit_state is state
