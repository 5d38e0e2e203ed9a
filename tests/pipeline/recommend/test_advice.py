from __future__ import annotations

import csv
import io
import json

import yaml
from tests.pipeline.recommend.advices import advice, hit, recommendation
from tests.pipeline.report.names import HOSTILE
from tests.pipeline.report.reader import HARMLESS, PLAIN, Reader
from tests.pipeline.report.results import result, seconds, table, throttled, usages

from quotascope.metrics import QuotaEntity, QuotaType
from quotascope.pipeline.recommend.advice import NOW, RECOMMENDED, hits
from quotascope.pipeline.recommend.documents import as_csv, as_json
from quotascope.pipeline.recommend.manifest import manifests
from quotascope.pipeline.recommend.script import script_of
from quotascope.pipeline.report.recommend_page import charted, recommend_page
from quotascope.quotas import QuotaSet, kafka_configs

ALICE, BOB = QuotaEntity("alice"), QuotaEntity("bob")
CONFIGURED = QuotaSet(
    {
        ALICE: {"producer_byte_rate": 20_000.0, "request_percentage": 50.0},
        BOB: {"producer_byte_rate": 119_000.0},
    }
)


def test_only_what_differs_is_a_change() -> None:
    """A limit that is set already is none, and what nothing is recommended for stays."""
    made = advice([recommendation("alice"), recommendation("bob")], CONFIGURED)
    (change,) = made.changes
    assert (change.entity, change.old, change.new) == (ALICE, 20_000.0, 119_000.0)
    assert made.target[ALICE] == {"producer_byte_rate": 119_000.0, "request_percentage": 50.0}  # fmt: skip


def test_everything_is_new_where_nobody_asked() -> None:
    """Without the configured quotas each limit is a change."""
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
    found = hits(table(*rows))
    assert [(each.user, each.muted_ms, each.muted_now_ms) for each in found] == [
        ("carol", 10_000, 0),
        ("alice", 9_000, 70_000),
    ]


def test_manifest_holds_all_quotas_of_whose_change() -> None:
    """Strimzi's operator removes what is missing; percentages are whole there."""
    made = advice([recommendation("alice"), recommendation("alice", kind=QuotaType.REQUEST, limit=2.07)], CONFIGURED)  # fmt: skip
    (user,) = (each for each in yaml.safe_load_all(manifests(made, "main").text) if each)  # fmt: skip
    assert user["metadata"]["name"] == "alice"
    assert user["spec"]["quotas"] == {"producerByteRate": 119_000, "requestPercentage": 3}  # fmt: skip


def test_manifest_of_a_user_whose_twin_is_configured() -> None:
    """One KafkaUser cannot hold the quotas of two, also where those of the other stay as they are."""
    now = QuotaSet({QuotaEntity("CN=alice"): {"producer_byte_rate": 1_000.0}})
    found = manifests(advice([recommendation("alice")], now), "main")
    (told,) = found.left_out
    assert "the KafkaUser alice can have the quotas of this user or of" in told
    assert "spec:" not in found.text


def test_script_tells_what_it_leaves_out() -> None:
    """As a comment, on one line whatever the name."""
    made = advice([recommendation("a\0\nrm -rf /"), recommendation("bob")])
    script = script_of(kafka_configs(made.changes, bootstrap_servers="b:9092"))
    told = [line for line in script.splitlines() if line and not line.startswith("#")]
    assert told[0] == "set -euo pipefail"
    assert [line for line in told if "kafka-configs.sh" in line] == told[2:]
    assert len(told) == 3
    assert "--entity-name bob" in told[2]
    assert "# left out: user 'a\\x00\\nrm -rf /'" in script


def test_csv_and_json_hold_all() -> None:
    """For programs: names as they are, and the configured value beside the new one."""
    made = advice([recommendation(HOSTILE), recommendation("alice")], CONFIGURED, [hit()])  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(as_csv(made), newline="")))
    assert [row["user"] for row in rows] == [HOSTILE, "alice"]
    assert (rows[1]["now"], rows[1]["limit"]) == ("20000.0", "119000.0")
    commands = kafka_configs(made.changes, bootstrap_servers="b:9092")
    read = json.loads(as_json(made, commands))
    assert read["recommended"][0]["user"] == HOSTILE
    assert read["hits"][0]["kind"] == "produce"
    assert len(read["commands"]) == 2
    assert read["policy"]["share"] == 0.01


def test_page_tells_all() -> None:
    """Limits beside the configured ones, who would be hit, usage, and the commands."""
    made = advice([recommendation("alice"), recommendation("alice", kind=QuotaType.REQUEST, limit=5.0)], CONFIGURED, [hit()])  # fmt: skip
    groups = [each.group for each in charted(made)]
    drawn = usages(seconds((n, 90_000) for n in range(60)), groups)
    text = Reader(recommend_page(made, drawn, ["kafka-configs.sh --alter"])).text
    for words in (
        "2 limits for at most 1 % of the time throttled, with 20 % of headroom; 1 client would be throttled.",
        "▲ 119 kB/s",
        "▼ 5 %",
        "Sun 19h",
        "119 kB/s: recommended",
        "20 kB/s: as configured",
        "kafka-configs.sh --alter",
        "Nothing was applied.",
    ):
        assert words in text, words


def test_page_holds_nothing_that_runs() -> None:
    """No script, no address, no handler: whatever names are, they are text."""
    made = advice([recommendation(HOSTILE)], None, [hit(HOSTILE, HOSTILE)], HOSTILE)
    groups = [each.group for each in charted(made)]
    drawn = usages(seconds([(0, 5)], user=HOSTILE, broker=HOSTILE), groups)
    commands = kafka_configs(made.changes, bootstrap_servers="b:9092")
    page = recommend_page(made, drawn, commands.lines)
    found = Reader(page)
    assert found.kinds <= PLAIN
    assert found.attributes <= HARMLESS
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "every limit counts as new" in found.text
