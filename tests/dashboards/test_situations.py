"""Panels in situations that the known data lacks: differing exporters, a short history, a custom callback."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.alerts.promtool import Case, try_case
from tests.dashboards.boards import panels

from quotascope.dashboards.scope import Scope

PLAIN, RECORDED = panels(Scope()), panels(Scope(recorded=True))

STATES = ("exporter", "timeseries Users and client-ids, by state")
_CALLBACK = 'kafka_quota_callback_throttle_time_seconds{cluster="paris",quota_type="fetch"'
OF_CALLBACKS = {
    f'{_CALLBACK},instance="x:{exporter}",broker="{broker}",tenant="{tenant}"}}': "2x10"
    for exporter in (1, 2)
    for broker, tenant in ((1, "a"), (1, "b"), (1, "c"), (2, "a"))
} | {
    'quotascope_build_info{cluster="paris",instance="x:1",version="1"}': "1x10",
    'kafka_quota_throttle_time_seconds{cluster="paris",broker="1",quota_type="produce",user="u",client_id=""}': "1x10",
}
WAITING, DELAYS, REQUESTS, LEFT = (
    ("brokers", f"timeseries {title}")
    for title in (
        "Connections waiting, by broker",
        "Throttle time, by broker",
        "Wait for a request handler",
        "Left over from earlier rules",
    )
)
_QUEUE = 'kafka_quota_delay_queue_size{quota_type="produce",broker'
_PEAK = 'kafka_quota_delay_queue_size_max{quota_type="produce",broker'
_DELAY = "kafka_quota_request_throttled_seconds_total"
BUSY = {("busy", f"user {number}"): 100 + number for number in range(52)}
PRODUCED = "kafka_quota_produce_bytes_per_second"
THREADS = 'kafka_quota_request_threads{broker="1",user="",client_id=""}'
CAPACITY = 'kafka_quota_request_capacity_threads{broker="1"}'
SHARE = ("brokers", "timeseries Share of the request threads that is busy")
SITUATIONS: dict[str, tuple[tuple[str, str], int, dict[str, str], dict[str, float]]] = {
    "Of two exporters with different caps, 100 entities are not 150.": (
        STATES,
        0,
        {
            'quotascope_entities{instance="x:1",state="exported"}': "100x10",
            'quotascope_entities{instance="x:1",state="overflow"}': "0x10",
            'quotascope_entities{instance="x:2",state="exported"}': "50x10",
            'quotascope_entities{instance="x:2",state="overflow"}': "50x10",
        },
        {'{state="exported"}': 75, '{state="overflow"}': 25},
    ),
    "What is known for ten minutes has no trend.": (
        ("overview", "table Closest to the limit, not throttled yet"),
        2,
        {
            'kafka_quota_utilization_ratio{quota_type="fetch",broker="1",user="new",client_id=""}': (
                "0 0.2 0.4 0.6 0.8 0.89x10"
            )
        },
        {},
    ),
    "Three clients of a custom callback are throttled.": (
        ("overview", "stat Throttled"),
        0,
        OF_CALLBACKS,
        {'{cluster="paris"}': 3},
    ),
    "A client that two quotas throttle is one client.": (
        ("overview", "stat Throttled"),
        0,
        {
            f'kafka_quota_throttle_time_seconds{{quota_type="{kind}",broker="1",user="u",client_id=""}}': "1x10"
            for kind in ("produce", "request")
        },
        {"{}": 1},
    ),
    "A client that is near two limits is one client.": (
        ("overview", "stat Above 90% of the limit"),
        0,
        {
            f'kafka_quota_utilization_ratio{{quota_type="{kind}",broker="1",user="u",client_id=""}}': "0.95x10"
            for kind in ("produce", "fetch")
        },
        {"{}": 1},
    ),
    "Kafka allows the next change of a client with exactly no tokens.": (
        ("mutations", "stat Buckets in debt"),
        0,
        {
            f'kafka_quota_controller_mutation_tokens{{broker="1",user="{user}",client_id=""}}': f"{tokens}x10"
            for user, tokens in {"none": 0, "debt": -1}.items()
        },
        {"{}": 1},
    ),
    "A client of a custom callback waits longest.": (
        ("overview", "stat Longest delay"),
        0,
        OF_CALLBACKS,
        {'{cluster="paris"}': 2},
    ),
    "Clients of a custom callback were throttled.": (
        ("overview", "timeseries Throttled users and client-ids"),
        1,
        OF_CALLBACKS,
        {'{cluster="paris",quota_type="fetch"}': 3},
    ),
    "A quiet cluster has its own place beside a busy one with more than fifty clients.": (
        ("overview", "table Produce: most on one broker"),
        0,
        {
            f'{PRODUCED}{{cluster="{cluster}",broker="1",user="{user}"}}': f"{rate}x10"
            for (cluster, user), rate in {**BUSY, ("quiet", "only"): 1}.items()
        },
        {
            f'{{cluster="{cluster}",entity="{user} / ",user="{user}"}}': rate
            for (cluster, user), rate in {**BUSY, ("quiet", "only"): 1}.items()
            if user not in {"user 0", "user 1"}
        },
    ),
    "Where teams are chosen, clients of others are not among those that use most.": (
        ("overview", "table Produce: most on one broker"),
        0,
        {
            f'{family}{{broker="1",user="{user}",client_id=""}}': "1x10"
            for family in (PRODUCED, "kafka_quota_throttle_time_seconds")
            for user in ("alice", "bob")
        },
        {'{entity="bob / ",user="bob"}': 1},
    ),
    "Brokers on which no connection waited have a line of 0, also beside others; one that is not read has none.": (
        WAITING,
        2,
        {
            **{f'{_QUEUE}="{broker}"}}': "0x10" for broker in (1, 2, 3)},
            f'{_QUEUE}="4"}}': "0x3 2x3 0x3",
            f'{_PEAK}="1"}}': "0x10",
            f'{_PEAK}="2"}}': "0x3 7x2 0x5",
        },
        {'{broker="1"}': 0, '{broker="3"}': 0},
    ),
    "Where nothing is known of waiting connections, there is no line of 0.": (
        WAITING,
        2,
        {f'{_PEAK}="1"}}': "0x10"},
        {},
    ),
    "A broker that delayed no request has a line of 0, and one that did has none.": (
        DELAYS,
        1,
        {
            f'{_DELAY}{{broker="1",request="Fetch"}}': "5x10",
            f'{_DELAY}{{broker="1",request="Produce"}}': "0x10",
            f'{_DELAY}{{broker="2",request="Fetch"}}': "5x10",
            f'{_DELAY}{{broker="2",request="Produce"}}': "0+1x10",
        },
        {'{broker="1"}': 0},
    ),
    "A cluster that delayed no request has a line of 0, and one that did has none.": (
        ("overview", "timeseries Throttle time"),
        1,
        {
            f'{_DELAY}{{cluster="calm",broker="1",request="Fetch"}}': "5x10",
            f'{_DELAY}{{cluster="busy",broker="1",request="Fetch"}}': "5x10",
            f'{_DELAY}{{cluster="busy",broker="2",request="Produce"}}': "0+1x10",
        },
        {'{cluster="calm"}': 0},
    ),
    "Where the 99th percentile of waits is 0, a broker has a line of 0.": (
        REQUESTS,
        1,
        {
            f'kafka_quota_request_queue_seconds{{broker="{broker}",request="Fetch",percentile="{part}"}}': f"{wait}x10"
            for broker, part, wait in ((1, 99, 0), (1, 50, 0), (2, 99, 0.1), (3, 50, 0))
        },
        {'{broker="1"}': 0},
    ),
    "A broker without entities of earlier rules has a line of 0.": (
        LEFT,
        1,
        {
            f'kafka_quota_stale_entities{{quota_type="{kind}",broker="{broker}"}}': f"{count}x10"
            for kind, broker, count in (("fetch", 1, 0), ("produce", 1, 0), ("fetch", 2, 0), ("produce", 2, 3))
        },
        {'{broker="1"}': 0},
    ),
    "A job of which no attempt failed has a line of 0, and one with failures has none.": (
        ("spark", "timeseries Failed task attempts, by cause"),
        1,
        {
            f'spark_task_failures_total{{app="{app}",cause="{cause}"}}': f"{count}x10"
            for app, cause, count in (("calm", "other", 0), ("calm", "kafka_quota", 0), ("etl", "other", 0))
        }
        | {'spark_task_failures_total{app="etl",cause="kafka_quota"}': "3x10"},
        {'{app="calm"}': 0},
    ),
    "Without exempt request time it is unknown how busy the threads are.": (
        SHARE,
        0,
        {THREADS: "2x10", CAPACITY: "10x10"},
        {},
    ),
    "Exempt request time counts beside an entity without user and client-id.": (
        SHARE,
        0,
        {THREADS: "2x10", CAPACITY: "10x10", 'kafka_quota_exempt_request_threads{broker="1"}': "3x10"},
        {'{broker="1"}': 0.5},
    ),
}
"""Panel, number of its query, series, and what is shown after ten minutes."""


@pytest.mark.real
@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_panel_shows_what_is_true(situation: str, tmp_path: Path, *, recorded: bool) -> None:
    """Panels show the situation with and without recording rules, for clients without a team."""
    key, query, series, samples = SITUATIONS[situation]
    panel = (RECORDED if recorded else PLAIN)[key]
    of_no_team = panel["targets"][query]["expr"].replace("${team:regex}", "")
    expr = re.sub(r"\$(cluster|\{\w+:regex\})", ".*", of_no_team)
    expr = expr.replace("$__range", "10m").replace("$__rate_interval", "4m")
    look: dict[str, Any] = {
        "expr": f"max without () ({expr})",  # without the name of a recorded series
        "eval_time": "10m",
        "exp_samples": [{"labels": labels, "value": value} for labels, value in samples.items()],
    }
    content = {"case": situation, "series": series, "records": [look]}
    said = try_case(Case(subject="records", content=content), tmp_path)
    assert said == "", said
