from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC
from math import inf
from typing import Any

import pytest
import yaml
from tests.pipeline.recommend.advices import MONDAY, advice, hit, recommendation
from tests.pipeline.recommend.rows import history, produced, request
from tests.pipeline.report.reader import Reader
from tests.pipeline.report.results import HOSTILE, result, seconds, table, throttled, usages

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.pages.baseline import HELD_BACK_LOGGED
from quotascope.pages.report import html
from quotascope.pipeline.recommend.advice import (
    NOW,
    RECOMMENDED,
    Advice,
    hits,
    recommendations,
    without_overruled,
    without_system_users,
)
from quotascope.pipeline.recommend.coverage import DAY_MS, Coverage, Logged, RequestTally, ShortLog, coverage_of, tally
from quotascope.pipeline.recommend.need import Need
from quotascope.pipeline.recommend.policy import BadPolicy, Policy, RuleShape
from quotascope.pipeline.recommend.scripts import manifests, script_of
from quotascope.pipeline.runs.recommend import as_csv, caveats, charted, configured, hit_figures, report, verdict
from quotascope.pipeline.runs.recommend import document as document_of
from quotascope.quotas import Commands, QuotaSet, kafka_configs

ALICE, BOB = QuotaEntity("alice"), QuotaEntity("bob")
CONFIGURED = QuotaSet(
    {ALICE: {"producer_byte_rate": 20_000.0, "request_percentage": 50.0}, BOB: {"producer_byte_rate": 119_000.0}}
)

ENDLESS = QuotaSet({ALICE: {"producer_byte_rate": inf, "request_percentage": inf}})
"""Kafka up to 4.3 stores infinity, which is no number of JSON."""


def documents(result: Advice) -> tuple[str, dict[str, Any], list[dict[str, str]]]:
    commands = kafka_configs(result.changes, bootstrap_servers="b:9092")
    rows = csv.DictReader(io.StringIO(as_csv(result), newline=""))
    text = Reader(html(report(result, commands))).text
    return text, document_of(result, commands), list(rows)


def need(steps: int, broker: str = "1", kind: QuotaType = QuotaType.PRODUCE, user: str = "alice") -> Need:
    return Need(broker=broker, entity=QuotaEntity(user), kind=kind, steps=steps, hour=5, requests=10, unsized=1)


def test_neediest_broker_decides() -> None:
    """All brokers get the limit that the neediest one needs, with headroom, rounded up."""
    (result,) = recommendations([need(40_000), need(98_567, "2")], Policy(headroom=0.2))
    assert (result.limit, result.lowest, result.broker) == (119_000.0, 98_567.0, "2")
    assert (result.requests, result.unsized) == (20, 2)


def test_limits_have_a_floor() -> None:
    """The first unusual request of a quiet client must not run into its limit."""
    result = recommendations([need(3), need(3, kind=QuotaType.REQUEST)], Policy())
    assert [recommended.limit for recommended in result] == [10_000.0, 1.0]
    assert [recommended.lowest for recommended in result] == [3.0, 0.03]
    (limit,) = recommendations([need(3)], Policy(floors={QuotaType.PRODUCE: 123_456.0}))
    assert limit.limit == 124_000.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"share": 1.0},
        {"share": -0.1},
        {"share": float("nan")},
        {"headroom": -1.0},
        {"headroom": 1e306},
        {"floors": {QuotaType.PRODUCE: 0.0}},
        {"floors": {QuotaType.PRODUCE: float("inf")}},
        {"floors": {QuotaType.PRODUCE: 1e300}},
    ],
)
def test_numbers_out_of_range(wrong: dict[str, object]) -> None:
    """A policy with a number out of range is refused."""
    with pytest.raises(BadPolicy):
        Policy(**wrong)  # type: ignore[arg-type]


def test_only_what_differs_is_a_change() -> None:
    """A limit that is set already is no change. Without the configured quotas each limit is one."""
    result = advice([recommendation("alice"), recommendation("bob")], CONFIGURED)
    (change,) = result.changes
    assert (change.entity, change.old, change.new) == (ALICE, 20_000.0, 119_000.0)
    assert result.target[ALICE] == {"producer_byte_rate": 119_000.0, "request_percentage": 50.0}
    result = advice([recommendation("alice"), recommendation("bob")])
    assert [change.old for change in result.changes] == [None, None]
    assert result.configured_of(result.recommended[0]) is None


def test_hits_are_those_of_the_recommended_limits() -> None:
    """Hits have the throttle time under the recommended limits, and that under the configured ones beside it."""
    rows = [
        throttled(9_000, candidate=RECOMMENDED),
        throttled(70_000, candidate=NOW),
        result(candidate=RECOMMENDED, user="bob"),
        throttled(500, candidate=NOW, user="bob"),
        throttled(10_000, candidate=RECOMMENDED, user="carol"),
    ]
    found_figures = [(hit.user, hit.muted_ms, hit.muted_now_ms) for hit in hits(table(*rows))]
    assert found_figures == [("carol", 10_000, 0), ("alice", 9_000, 70_000)]


def test_what_is_unknown_is_not_zero() -> None:
    """
    Without the configured quotas, the rule and throttle time now are unknown.

    With them, an entity without a quota has no rule, and one that is not throttled 0 s.
    """
    limits, struck = [recommendation("alice"), recommendation("carol")], table(throttled(9_000, candidate=RECOMMENDED))
    for quotas_now, state, muted_ms, said in (
        (CONFIGURED, [(20_000.0, "set"), (None, "no rule")], 0, (False, True)),
        (ENDLESS, [(inf, "unlimited"), (None, "no rule")], 0, (False, True)),
        (None, [(None, "unknown")] * 2, None, (True, False)),
    ):
        text, document, rows = documents(
            advice(limits, quotas_now, hits(struck, configured_known=quotas_now is not None))
        )
        assert [(row["now"], row["now_state"]) for row in document["recommended"]] == state
        assert [(change["old"], change["old_state"]) for change in document["changes"]] == state
        assert [row["now_state"] for row in rows] == [now_state for _, now_state in state]
        assert document["hits"][0]["muted_now_ms"] == muted_ms
        assert ("unknown" in text, "no rule" in text) == said
        assert ("every limit counts as new" in text) is (quotas_now is None)


HELD = Coverage(
    span_ms=(MONDAY, MONDAY + 114_000),
    hours_of_week=1,
    clock_hours=1,
    logged=Logged(1_000, 250),
    entities={ALICE: Logged(400, 250), BOB: Logged(600, 0)},
)
"""Less than two minutes, in which alice was throttled."""


def test_coverage_is_stated_wherever_limits_are() -> None:
    """
    Each form states the period, the hours of the week, and throttles while the log was written.

    A limit of a throttled entity is marked, another one is not.
    """
    result = advice([recommendation("alice"), recommendation("bob")], coverage=HELD)
    page, document, rows = documents(result)
    for text in (page, script_of(kafka_configs(result.changes, bootstrap_servers="b"), caveats(result))):
        assert "The log covers 1 min 54 s (2026-11-23 00:00:00 UTC to 2026-11-23 00:01:54 UTC)" in text
        assert "requests in 1 of the 168 hours of a week" in text
        assert "250 of 1,000 requests (25 %) were throttled while it was written" in text
        assert "less than a day of log" in text
        assert "1 of 2 limits are of entities that were throttled while the log was written" in text
        assert HELD_BACK_LOGGED in text
    assert page.count("≥ 119 kB/s") == 1
    assert "has only what clients sent while they were throttled" in page
    assert document["coverage"] == {
        "period_ms": 114_000,
        "hours_of_week_seen": 1,
        "hours_of_week": 168,
        "hours_seen": 1,
        "less_than_a_day": True,
        "requests": 1_000,
        "throttled_requests": 250,
        "requests_without_throttle_time": 0,
        "throttled_share": 0.25,
        "limits_held_back": 1,
    }
    marks = ("logged_requests", "logged_throttled", "held_back")
    marked = [tuple(row[name] for name in marks) for row in document["recommended"]]
    assert marked == [(400, 250, True), (600, 0, False)]
    assert [row["held_back"] for row in rows] == ["True", "False"]


def test_a_limit_of_requests_of_unknown_size_is_marked() -> None:
    """A limit of an entity with unsized requests is a lower bound, and the report has a remedy."""
    unsized = replace(recommendation("bob", kind=QuotaType.CONTROLLER_MUTATION, limit=3.0), unsized=7)
    page, document, rows = documents(advice([recommendation("alice"), unsized]))
    assert (page.count("≥ 3 mut/s"), page.count("≥ 119"), page.count("--topics")) == (1, 0, 1)
    assert [row["requests_of_unknown_size"] for row in document["recommended"]] == [0, 7]
    assert [row["requests_of_unknown_size"] for row in rows] == ["0", "7"]


def test_a_hit_that_was_held_back_is_a_bound() -> None:
    """A client that was throttled while logged would be throttled for at least as long as its replay is."""
    row = throttled(5_000, candidate=RECOMMENDED)
    (free,), (held,) = (hits(table(row | changes)) for changes in ({}, {"held_back_requests": 2}))
    assert (free.held_back, held.held_back) == (False, True)
    assert hit_figures(held) == (*(f"≥ {figure}" for figure in hit_figures(free)[:3]), "0 s")
    assert documents(advice([recommendation("alice")], None, [held]))[1]["hits"][0]["held_back"] is True


def test_nothing_is_marked_where_nothing_was_throttled() -> None:
    """A week of log without a throttle needs no warning; where nothing is recommended, nothing explains a replay."""
    result = advice([recommendation("alice")])
    page = documents(result)[0]
    assert len(caveats(result)) == 1
    assert verdict(result) == "No client would be throttled in the replay."
    assert "≥" not in page
    note = "The throttled clients are those of a replay"
    assert note in page
    assert note not in documents(advice([]))[0]


@pytest.mark.parametrize(
    ("period_ms", "hours", "short"), [(DAY_MS, 24, False), (DAY_MS - 1, 24, True), (2 * DAY_MS, 23, True)]
)
def test_less_than_a_day(period_ms: int, hours: int, *, short: bool) -> None:
    """A log is short by the clock, or because there are requests in fewer than 24 hours; the error has a remedy."""
    found_figures = replace(HELD, span_ms=(MONDAY, MONDAY + period_ms), clock_hours=hours)
    assert found_figures.short is short
    if short:
        with pytest.raises(ShortLog, match=rf"usage: .* {hours} hours.*--short-log"):
            found_figures.check("usage")
    else:
        found_figures.check("usage")


def test_tally_of_parts_is_that_of_the_whole() -> None:
    """Waits and refusals count, by the entity of the shape, whatever the API; each quarter of an hour once."""
    rows = history(
        [
            produced(0, 1, throttle_ms=1),
            produced(1, 1, client_id="app2"),
            request(2, refused=True),
            produced(900_000, 1, user="bob", client_id=""),
        ]
    )
    whole = tally(rows.to_batches(), RuleShape.PAIR)
    parts = tally(rows.to_batches(max_chunksize=1), RuleShape.PAIR)
    assert whole == parts
    assert whole.all == Logged(4, 2)
    assert whole.entities[QuotaEntity("alice", "app1")] == Logged(2, 2)
    assert whole.entities[QuotaEntity("alice", "app2")] == Logged(1, 0)
    assert tally(rows.to_batches(), RuleShape.CLIENT).entities[QuotaEntity(None, "app1")] == Logged(2, 2)
    assert len(whole.quarters) == 2
    found_figures = coverage_of(whole, (MONDAY, MONDAY + 901_000), UTC)
    assert (found_figures.hours_of_week, found_figures.clock_hours, found_figures.period_ms) == (1, 1, 901_000)
    later = coverage_of(
        RequestTally({}, {*whole.quarters, *(quarter + 7 * 96 for quarter in whole.quarters)}), (0, 1), UTC
    )
    assert (later.hours_of_week, later.clock_hours) == (1, 2)


def test_unknown_throttles_are_not_counted_as_none() -> None:
    """
    Answers without a throttle time are left out of the share, and their number is stated.

    A refusal is known without.
    """
    rows = history(
        [
            request(0, throttle_ms=5),
            request(1),
            *(request(2 + offset_ms, throttle_ms=-1) for offset_ms in range(8)),
            request(10, user="bob", throttle_ms=-1),
            request(11, user="carol", throttle_ms=-1, refused=True),
        ]
    )
    found_figures = tally(rows.to_batches(), RuleShape.USER)
    assert found_figures.entities[ALICE] == Logged(10, 1, 8)
    assert (found_figures.entities[ALICE].share, found_figures.entities[BOB].share) == (0.5, None)
    assert found_figures.entities[QuotaEntity("carol")].share == 1.0
    held = replace(HELD, logged=found_figures.all, entities=found_figures.entities)
    result = advice([recommendation("alice"), recommendation("bob")], coverage=held)
    text, document, _ = documents(result)
    assert "2 of 3 requests (67 %) were throttled while it was written; for 9 more it is unknown" in caveats(result)[0]
    assert "unknown" in text.split("bob", 1)[1].split("Commands")[0]
    assert document["coverage"]["requests_without_throttle_time"] == 9
    assert [row["logged_unknown"] for row in document["recommended"]] == [8, 1]


def test_manifest_holds_all_quotas_of_whose_change() -> None:
    """A manifest has all quotas of a user, since Strimzi's operator removes missing ones; percentages are whole."""
    result = advice([recommendation("alice"), recommendation("alice", kind=QuotaType.REQUEST, limit=2.07)], CONFIGURED)
    (user,) = (manifest for manifest in yaml.safe_load_all(manifests(result, "main").text) if manifest)
    assert user["metadata"]["name"] == "alice"
    assert user["spec"]["quotas"] == {"producerByteRate": 119_000, "requestPercentage": 3}


def test_manifest_of_a_user_whose_twin_is_configured() -> None:
    """A user whose twin is configured gets no KafkaUser manifest, which cannot hold quotas of two users."""
    quotas_now = QuotaSet({QuotaEntity("CN=alice"): {"producer_byte_rate": 1_000.0}})
    found_figures = manifests(advice([recommendation("alice")], quotas_now), "main")
    (reported,) = found_figures.left_out
    assert "the KafkaUser alice can have the quotas of this user or of" in reported
    (reported,) = manifests(advice([recommendation("alice")], ENDLESS), "main").left_out
    assert "requestPercentage must be above 0 and finite" in reported
    assert "spec:" not in found_figures.text


def test_script_reports_what_it_leaves_out() -> None:
    """A name that no command can express is a comment, on one line whatever the name."""
    result = advice([recommendation("a\0\nrm -rf /"), recommendation("bob")])
    script = script_of(kafka_configs(result.changes, bootstrap_servers="b:9092"))
    reported = [line for line in script.splitlines() if line and not line.startswith("#")]
    assert reported[0] == "set -euo pipefail"
    assert [line for line in reported if "kafka-configs.sh" in line] == reported[2:]
    assert len(reported) == 3
    assert "--entity-name bob" in reported[2]
    assert '# left out: user "a\\x00\\nrm -rf /"' in script


def test_csv_and_json_hold_all() -> None:
    """CSV and JSON have all names, escaped only where CSV needs it, and the configured value beside the new one."""
    names = [HOSTILE, "alice", "=1+1", "'x", "a=b"]
    _, document, rows = documents(advice(list(map(recommendation, names)), CONFIGURED, [hit()]))
    assert [row["user"] for row in rows] == [json.dumps(HOSTILE), "alice", "'=1+1", "''x", "a=b"]
    assert [float(row["limit"]) for row in rows] == [119_000.0] * 5
    assert rows[1]["now"] == "20000.0"
    assert document["recommended"][0]["user"] == HOSTILE
    assert document["hits"][0]["kind"] == "produce"
    assert len(document["commands"]) == 5
    assert document["policy"]["share"] == 0.01


def test_page_reports_all() -> None:
    """The page has limits beside the configured ones, hits, usage, and commands."""
    result = advice(
        [recommendation("alice"), recommendation("alice", kind=QuotaType.REQUEST, limit=5.0)], CONFIGURED, [hit()]
    )
    groups = list(charted(result))
    drawn = usages(seconds((n, 90_000) for n in range(60)), groups)
    text = Reader(html(report(result, Commands(lines=("kafka-configs.sh --alter",)), drawn))).text
    for words in (
        (
            "2 limits, chosen to throttle an entity for at most 1 % of its time, plus 20 % of headroom; the replay "
            "throttles 1 client."
        ),
        "▲ 119 kB/s",
        "▼ 5 %",
        "Sun\N{NO-BREAK SPACE}19h",
        "119 kB/s: recommended",
        "20 kB/s: as configured",
        "kafka-configs.sh --alter",
        "Nothing was applied.",
        "with requests in 168 of the 168 hours of a week; 0 of 20,000 requests (0 %) were throttled",
    ):
        assert words in text, words


def test_an_infinite_quota_has_no_line() -> None:
    """An infinite quota has no line in a chart, and is unlimited in the table."""
    (limits,) = charted(advice([recommendation("alice")], ENDLESS)).values()
    assert [*limits] == [RECOMMENDED]


def test_limits_that_would_apply_to_no_client_are_left_out() -> None:
    """A limit that another rule overrules for every client is not recommended."""
    pairs = QuotaSet({QuotaEntity(DEFAULT, DEFAULT): {"producer_byte_rate": 1_000.0}})
    result = [recommendation("alice")]
    client = replace(result[0], entity=QuotaEntity(None, "app"))
    remaining, reasons = without_overruled(pairs, [client, *result])
    assert [candidate.names for candidate in remaining] == [("alice", None)]
    assert reasons == ["client-id app, producer_byte_rate: overruled by 5 <default> / <default> for every client"]
    assert without_overruled(None, [client]) == ([client], [])


def test_the_platforms_own_users_get_no_limits() -> None:
    """
    Brokers by the requests that only brokers send, programs of the platform by their names.

    Who comes without authentication may be any client.
    """
    names = ("kafka", "alice", "ANONYMOUS", "strimzi-topic-operator")
    rows = [request(10, user=name, api_key=56) for name in ("kafka", "ANONYMOUS")]
    found_figures = tally(history([*rows, request(11, user="alice")]).to_batches(), RuleShape.USER)
    remaining, reasons = without_system_users(map(recommendation, names), found_figures.brokers)
    assert [candidate.names[0] for candidate in remaining] == ["alice", "ANONYMOUS"]
    assert reasons == [
        "user kafka: brokers send requests to each other as it",
        "user strimzi-topic-operator: the platform's own programs have such names",
    ]


def test_now_names_the_default_that_applies() -> None:
    """An entity without a rule of its own is under the default's."""
    quotas_now = QuotaSet({QuotaEntity(DEFAULT): {"producer_byte_rate": 250_000.0}})
    result = advice([recommendation("alice")], quotas_now)
    assert configured(result, result.recommended[0]) == "250 kB/s by 6 user <default>"
    (row,) = document_of(result, Commands(lines=()))["recommended"]
    assert (row["now"], row["now_state"], row["now_rule"]) == (None, "no rule", "6 user <default>")
    result = advice([recommendation("alice")], QuotaSet())
    assert configured(result, result.recommended[0]) == "no rule"
