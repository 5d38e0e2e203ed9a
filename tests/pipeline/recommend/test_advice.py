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

from quotascope.metrics import QuotaEntity, QuotaType
from quotascope.pipeline.recommend.advice import NOW, RECOMMENDED, Advice, hits, recommendations
from quotascope.pipeline.recommend.coverage import DAY_MS, Coverage, Logged, RequestTally, ShortLog, coverage_of, tally
from quotascope.pipeline.recommend.need import Need
from quotascope.pipeline.recommend.policy import BadPolicy, Policy, RuleShape
from quotascope.pipeline.report.documents import manifests, recommend_csv, recommend_json, script_of
from quotascope.pipeline.report.recommend_page import caveats, charted, recommend_page, verdict
from quotascope.quotas import QuotaSet, kafka_configs

ALICE, BOB = QuotaEntity("alice"), QuotaEntity("bob")
CONFIGURED = QuotaSet(
    {ALICE: {"producer_byte_rate": 20_000.0, "request_percentage": 50.0}, BOB: {"producer_byte_rate": 119_000.0}}
)

ENDLESS = QuotaSet({ALICE: {"producer_byte_rate": inf, "request_percentage": inf}})
"""Kafka up to 4.3 stores infinity, which is no number of JSON."""


def documents(made: Advice) -> tuple[str, dict[str, Any], list[dict[str, str]]]:
    commands = kafka_configs(made.changes, bootstrap_servers="b:9092")
    rows = csv.DictReader(io.StringIO(recommend_csv(made), newline=""))
    text = Reader(recommend_page(made, {}, [])).text
    return text, recommend_json(made, commands), list(rows)


def need(steps: int, broker: str = "1", kind: QuotaType = QuotaType.PRODUCE, user: str = "alice") -> Need:
    return Need(broker=broker, entity=QuotaEntity(user), kind=kind, steps=steps, hour=5, requests=10, unsized=1)


def test_neediest_broker_decides() -> None:
    """All brokers get the same limit: what the neediest one needs, with headroom, rounded up."""
    (made,) = recommendations([need(40_000), need(98_567, "2")], Policy(headroom=0.2))
    assert (made.limit, made.lowest, made.broker) == (119_000.0, 98_567.0, "2")
    assert (made.requests, made.unsized) == (20, 2)


def test_limits_have_a_floor() -> None:
    """The first unusual request of a quiet client must not run into its limit."""
    made = recommendations([need(3), need(3, kind=QuotaType.REQUEST)], Policy())
    assert [each.limit for each in made] == [10_000.0, 1.0]
    assert [each.lowest for each in made] == [3.0, 0.03]
    (own,) = recommendations([need(3)], Policy(floors={QuotaType.PRODUCE: 123_456.0}))
    assert own.limit == 124_000.0


@pytest.mark.parametrize(
    "wrong",
    [{"share": 1.0}, {"share": -0.1}, {"headroom": -1.0}, {"floors": {QuotaType.PRODUCE: 0.0}}, {"share": float("nan")}, {"headroom": 1e306}, {"floors": {QuotaType.PRODUCE: float("inf")}}, {"floors": {QuotaType.PRODUCE: 1e300}}]
)  # fmt: skip
def test_numbers_out_of_range(wrong: dict[str, object]) -> None:
    """They are refused."""
    with pytest.raises(BadPolicy):
        Policy(**wrong)  # type: ignore[arg-type]


def test_only_what_differs_is_a_change() -> None:
    """A limit that is set already is none, and what nothing is recommended for stays; without the configured quotas each limit is a change."""
    made = advice([recommendation("alice"), recommendation("bob")], CONFIGURED)
    (change,) = made.changes
    assert (change.entity, change.old, change.new) == (ALICE, 20_000.0, 119_000.0)
    assert made.target[ALICE] == {"producer_byte_rate": 119_000.0, "request_percentage": 50.0}
    made = advice([recommendation("alice"), recommendation("bob")])
    assert [change.old for change in made.changes] == [None, None]
    assert made.now_of(made.recommended[0]) is None


def test_hits_are_those_of_the_recommended_limits() -> None:
    """Beside them, for how long the configured ones throttled the same client."""
    rows = [
        throttled(9_000, candidate=RECOMMENDED),
        throttled(70_000, candidate=NOW),
        result(candidate=RECOMMENDED, user="bob"),
        throttled(500, candidate=NOW, user="bob"),
        throttled(10_000, candidate=RECOMMENDED, user="carol"),
    ]
    found = [(each.user, each.muted_ms, each.muted_now_ms) for each in hits(table(*rows))]
    assert found == [("carol", 10_000, 0), ("alice", 9_000, 70_000)]


def test_what_is_unknown_is_not_zero() -> None:
    """Without the configured quotas nothing is said of them; with them, an entity without one has no rule, and one that is not throttled 0 s."""
    limits, struck = [recommendation("alice"), recommendation("carol")], table(throttled(9_000, candidate=RECOMMENDED))
    for now, state, muted_ms, said in (
        (CONFIGURED, [(20_000.0, "set"), (None, "no rule")], 0, (False, True)),
        (ENDLESS, [(inf, "unlimited"), (None, "no rule")], 0, (False, True)),
        (None, [(None, "unknown")] * 2, None, (True, False)),
    ):
        text, read, rows = documents(advice(limits, now, hits(struck, now_known=now is not None)))
        assert [(each["now"], each["now_state"]) for each in read["recommended"]] == state
        assert [(each["old"], each["old_state"]) for each in read["changes"]] == state
        assert [row["now_state"] for row in rows] == [each for _, each in state]
        assert read["hits"][0]["muted_now_ms"] == muted_ms
        assert ("unknown" in text, "no rule" in text) == said
        assert ("every limit counts as new" in text) is (now is None)


HELD = Coverage(
    span_ms=(MONDAY, MONDAY + 114_000),
    hours_of_week=1,
    clock_hours=1,
    logged=Logged(1_000, 250),
    entities={ALICE: Logged(400, 250), BOB: Logged(600, 0)},
)
"""Less than two minutes, in which alice was throttled."""


def test_coverage_is_stated_wherever_limits_are() -> None:
    """Period, hours of the week, and what was throttled while the log was written; a limit of a throttled entity is marked, another one is not."""
    made = advice([recommendation("alice"), recommendation("bob")], coverage=HELD)
    page, read, rows = documents(made)
    for text in (page, script_of(kafka_configs(made.changes, bootstrap_servers="b"), caveats(made))):
        assert "The log covers 1 min 54 s (2026-11-23 00:00:00 UTC to 2026-11-23 00:01:54 UTC)" in text
        assert "requests in 1 of the 168 hours of a week" in text
        assert "250 of 1,000 requests (25 %) were throttled while it was written" in text
        assert "less than a day of log" in text
        assert "1 of 2 limits (marked *)" in text
    assert page.count("119 kB/s *") == 1
    assert "has only what clients sent while they were throttled" in page
    assert read["coverage"] == {
        "period_ms": 114_000,
        "hours_of_week_seen": 1,
        "hours_of_week": 168,
        "hours_seen": 1,
        "less_than_a_day": True,
        "requests": 1_000,
        "throttled_requests": 250,
        "requests_without_throttle_time": 0,
        "throttled_share": 0.25,
        "limits_with_demand_held_back": 1,
    }
    marks = ("logged_requests", "logged_throttled", "demand_held_back")
    marked = [tuple(each[name] for name in marks) for each in read["recommended"]]
    assert marked == [(400, 250, True), (600, 0, False)]
    assert [row["demand_held_back"] for row in rows] == ["True", "False"]


def test_a_limit_of_requests_of_unknown_size_is_marked() -> None:
    """It is a lower bound, and the report has what to do."""
    unsized = replace(recommendation("bob", kind=QuotaType.CONTROLLER_MUTATION, limit=3.0), unsized=7)
    page, read, rows = documents(advice([recommendation("alice"), unsized]))
    assert (page.count("≥ 3 mut/s"), page.count("≥ 119"), page.count("--topics")) == (1, 0, 1)
    assert [each["requests_of_unknown_size"] for each in read["recommended"]] == [0, 7]
    assert [row["requests_of_unknown_size"] for row in rows] == ["0", "7"]


def test_nothing_is_marked_where_nothing_was_throttled() -> None:
    """A week of log without a throttle needs no warning; where nothing is recommended, nothing explains a replay."""
    made = advice([recommendation("alice")])
    page = documents(made)[0]
    assert len(caveats(made)) == 1
    assert verdict(made) == "No client would be throttled in the replay."
    assert "kB/s *" not in page
    note = "The throttled clients are those of a replay"
    assert note in page
    assert note not in documents(advice([]))[0]


@pytest.mark.parametrize(
    ("period_ms", "hours", "short"), [(DAY_MS, 24, False), (DAY_MS - 1, 24, True), (2 * DAY_MS, 23, True)]
)
def test_less_than_a_day(period_ms: int, hours: int, *, short: bool) -> None:
    """By the clock, or because there are requests in fewer than 24 hours; the error says what to do."""
    found = replace(HELD, span_ms=(MONDAY, MONDAY + period_ms), clock_hours=hours)
    assert found.short is short
    if short:
        with pytest.raises(ShortLog, match=rf"usage: .* {hours} hours.*--short-log"):
            found.check("usage")
    else:
        found.check("usage")


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
    found = coverage_of(whole, (MONDAY, MONDAY + 901_000), UTC)
    assert (found.hours_of_week, found.clock_hours, found.period_ms) == (1, 1, 901_000)
    later = coverage_of(RequestTally({}, {*whole.quarters, *(each + 7 * 96 for each in whole.quarters)}), (0, 1), UTC)
    assert (later.hours_of_week, later.clock_hours) == (1, 2)


def test_unknown_throttles_are_not_counted_as_none() -> None:
    """Answers without a throttle time are left out of the share, and their number is stated; a refusal is known without."""
    rows = history(
        [
            request(0, throttle_ms=5),
            request(1),
            *(request(2 + at, throttle_ms=-1) for at in range(8)),
            request(10, user="bob", throttle_ms=-1),
            request(11, user="carol", throttle_ms=-1, refused=True),
        ]
    )
    found = tally(rows.to_batches(), RuleShape.USER)
    assert found.entities[ALICE] == Logged(10, 1, 8)
    assert (found.entities[ALICE].share, found.entities[BOB].share) == (0.5, None)
    assert found.entities[QuotaEntity("carol")].share == 1.0
    held = replace(HELD, logged=found.all, entities=found.entities)
    made = advice([recommendation("alice"), recommendation("bob")], coverage=held)
    text, read, _ = documents(made)
    assert "2 of 3 requests (67 %) were throttled while it was written; for 9 more it is unknown" in caveats(made)[0]
    assert "unknown" in text.split("bob", 1)[1].split("Commands")[0]
    assert read["coverage"]["requests_without_throttle_time"] == 9
    assert [each["logged_unknown"] for each in read["recommended"]] == [8, 1]


def test_manifest_holds_all_quotas_of_whose_change() -> None:
    """Strimzi's operator removes what is missing; percentages are whole there."""
    made = advice([recommendation("alice"), recommendation("alice", kind=QuotaType.REQUEST, limit=2.07)], CONFIGURED)
    (user,) = (each for each in yaml.safe_load_all(manifests(made, "main").text) if each)
    assert user["metadata"]["name"] == "alice"
    assert user["spec"]["quotas"] == {"producerByteRate": 119_000, "requestPercentage": 3}


def test_manifest_of_a_user_whose_twin_is_configured() -> None:
    """One KafkaUser cannot hold the quotas of two, also where those of the other stay as they are."""
    now = QuotaSet({QuotaEntity("CN=alice"): {"producer_byte_rate": 1_000.0}})
    found = manifests(advice([recommendation("alice")], now), "main")
    (reported,) = found.left_out
    assert "the KafkaUser alice can have the quotas of this user or of" in reported
    (reported,) = manifests(advice([recommendation("alice")], ENDLESS), "main").left_out
    assert "requestPercentage must be above 0 and finite" in reported
    assert "spec:" not in found.text


def test_script_reports_what_it_leaves_out() -> None:
    """As a comment, on one line whatever the name."""
    made = advice([recommendation("a\0\nrm -rf /"), recommendation("bob")])
    script = script_of(kafka_configs(made.changes, bootstrap_servers="b:9092"))
    reported = [line for line in script.splitlines() if line and not line.startswith("#")]
    assert reported[0] == "set -euo pipefail"
    assert [line for line in reported if "kafka-configs.sh" in line] == reported[2:]
    assert len(reported) == 3
    assert "--entity-name bob" in reported[2]
    assert '# left out: user "a\\x00\\nrm -rf /"' in script


def test_csv_and_json_hold_all() -> None:
    """For programs: names as they are, but for those that break a reader of CSV or begin as a formula, and the configured value beside the new one."""
    names = [HOSTILE, "alice", "=1+1", "'x", "a=b"]
    _, read, rows = documents(advice(list(map(recommendation, names)), CONFIGURED, [hit()]))
    assert [row["user"] for row in rows] == [json.dumps(HOSTILE), "alice", "'=1+1", "''x", "a=b"]
    assert [float(row["limit"]) for row in rows] == [119_000.0] * 5
    assert rows[1]["now"] == "20000.0"
    assert read["recommended"][0]["user"] == HOSTILE
    assert read["hits"][0]["kind"] == "produce"
    assert len(read["commands"]) == 5
    assert read["policy"]["share"] == 0.01


def test_page_reports_all() -> None:
    """Limits beside the configured ones, who would be hit, usage, and the commands."""
    made = advice(
        [recommendation("alice"), recommendation("alice", kind=QuotaType.REQUEST, limit=5.0)], CONFIGURED, [hit()]
    )
    groups = [each.group for each in charted(made)]
    drawn = usages(seconds((n, 90_000) for n in range(60)), groups)
    text = Reader(recommend_page(made, drawn, ["kafka-configs.sh --alter"])).text
    for words in (
        "2 limits, chosen to throttle an entity for at most 1 % of its time, plus 20 % of headroom; the replay throttles 1 client.",
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
    """The table says that it is unlimited."""
    (group,) = charted(advice([recommendation("alice")], ENDLESS))
    assert [*group.limits] == [RECOMMENDED]
