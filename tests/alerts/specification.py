"""
What the alerts are meant to be, written down by hand: changed together with them, never taken from them.

A rule whose severity, time or number differs from these tables is a mistake in the rule or a change of the product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_ALERTS: Final = """
ThrottleSpike                  critical cluster       5m  10m * 4; == 0; > 25; >= 5
ManyClientsThrottled           critical cluster       5m  10m * 3; == 0; >= 20
ThrottleStorm                  warning  cluster       15m 10m > 0.5; > 50
ProduceThrottled               warning  entity        15m 10m < 0.5; > 0.5; > 50
FetchThrottled                 warning  entity        15m 10m < 0.5; > 0.5; > 50
RequestThrottled               warning  entity        15m 10m < 0.5; > 0.5; > 50
MutationThrottled              info     entity        15m 10m > 0.5; > 5; > 50
ThrottleBeyondClientTimeout    warning  entity        4m  5m  > 0.5; > 30; > 50; > 60; > 180; > 300; > 480; > 780
CallbackThrottled              warning  broker        15m 10m > 0.5
NearLimit                      warning  entity        15m 10m > 0.9; > 50
ManyNearLimit                  warning  cluster       15m 10m > 0.9; > 50
LimitPredicted                 info     entity        30m 30m > 0.6; > 0.9; > 1
ShadowThrottlesClient          info     entity        15m 10m > 0.5; > 10
ShadowThrottlesMany            info     cluster       15m 10m > 10
MutationTokensExhausted        warning  entity        10m 10m < 0; > 0.8
RefusalsRising               warning  cluster       10m 10m * 3; > 0.2
DelayQueueGrowing              warning  broker        10m 15m * 1.5; > 20
BrokerSaturated                critical broker        5m  10m < 0.1
RequestTimeNearCapacity        warning  broker        15m 15m > 0.6
ExemptRequestTimeHigh          warning  broker        15m 15m > 0; > 0.4
ConnectionsThrottled           warning  broker        10m 10m > 0.5
ConnectionsOfAddressRefused    info     broker        15m 15m > 0
ReplicationThrottleLeftOn      warning  cluster       15m 1h  > 0; >= 91.2
HeavyClientWithoutLimit        info     entity        30m 30m > 0; > 0.2; > 1e+07
SystemUserThrottledByDefault   warning  entity        10m 10m > 0.1
RuleChanged                    info     configuration 1m  -   > 0
ExporterAbsent                 warning  exporter      10m -
ExporterMissing                warning  exporter      15m -
RecordingRulesMissing          warning  exporter      10m -
SourceDown                     warning  exporter      10m -   < 0.75; == 0
SourceEmpty                    warning  exporter      30m -   == 0; > 0
ReadsSlow                      warning  exporter      15m 15m > 8
LimitsStale                    warning  exporter      5m  -   > 0; > 900
UtilizationDisagrees           info     exporter      30m -   > 0
SnapshotStale                  warning  exporter      5m  -   > 300
SeriesDropped                  warning  exporter      15m -   > 0
DiscoveryFailing               warning  exporter      5m  15m > 3
SamplesMissed                  info     exporter      15m 15m > 0; > 0.1
PushFailing                    warning  exporter      5m  -   > 0
ConfigurationRefused           warning  exporter      5m  -   == 0
SparkJobThrottled              warning  job           15m 10m > 0.2
SparkRetries                   warning  job           5m  10m > 3
SparkEventsLost                info     job           5m  10m > 0
SparkQueryStalled              warning  job           5m  10m * 3; > 0; > 600
BudgetBurnsFast                critical entity        1m  10m > 14.4
BudgetBurns                    warning  entity        5m  10m > 6
BudgetBurnsSlowly              warning  entity        15m 10m > 1
"""
"""Alert, severity, scope, `for`, `keep_firing_for`, and the numbers that its expression compares with or multiplies by."""
_WINDOWS: Final = """
ThrottleSpike            [5m]
ManyClientsThrottled     [5m]
ProduceThrottled         [15m]; [14m]
FetchThrottled           [15m]; [14m]
RequestThrottled         [15m]; [14m]
MutationThrottled        [14m]
ThrottleBeyondClientTimeout [2m]; [4m]; [7m]; [12m]; [25m]
NearLimit                [30m]; [14m:2m]
ManyNearLimit            [30m]
SourceDown               [15m]; [3m]
MutationTokensExhausted  [15m:15s]; offset 15m
DelayQueueGrowing        [10m]; [10m] offset 30m
ReplicationThrottleLeftOn [1d:15m]
RuleChanged              [10m]
ExporterAbsent           [1d]
ReadsSlow                [15m]
SamplesMissed            [15m]
SparkEventsLost          [30m]
LimitsStale              [15m]
DiscoveryFailing         [15m]
PushFailing              [15m]
SparkRetries             [30m]
"""
"""Alert, and the times that its expression looks back by itself; the others look at now, or at recorded series."""
_USUAL: Final = {"[1d] offset 30m", "[2h] offset 167h", "[2h] offset 23h", "[1h]", "offset 1w"}
"""The same hour a day and a week ago, the day before, and while an alert fires, for a week, what was usual then."""
_LASTING: Final = {"[1m]", "[2m]", "[4m]", "[8m]", "[16m]"}
"""For as long as throttles last that Kafka does not report any more."""
WINDOWS_OF_RECORDS: Final = {
    "entity:kafka_quota_utilization_ratio:avg30m": {"[30m]", "[5m] offset 25m"},
    "entity:kafka_quota_utilization_ratio:predict3h": {"[6h]", "[10m] offset 4h"},
    "broker:kafka_quota_request_throttled_seconds:rate5m": {"[5m]"},
    "broker:kafka_quota_request_handler_idle:ratio5m": {"[5m]"},
    "cluster:kafka_quota_throttling_errors:rate5m": {"[5m]"},
    "cluster:kafka_quota_request_throttled_seconds:baseline": _USUAL,
    "cluster:kafka_quota_throttled_entities:baseline": _USUAL,
    "cluster:kafka_quota_throttling_errors:baseline": {"[1d] offset 30m", "[1h]", "offset 1w"},
    "cluster:quotascope_exporters:baseline": {"[1d:5m]", "[1h]", "[1w]", "offset 1w"},
    "app:spark_kafka_throttled_seconds:rate10m": {"[10m]", "[1h] offset 10m", "offset 10m"},
    "cluster:kafka_quota_throttled_entities:count": _LASTING,
    "instance:kafka_quota_budget_burn:now": _LASTING,
    **{
        f"entity:kafka_quota_budget_burn:rate{each}": {f"[{seconds}s]"}
        for each, seconds in (("5m", 299), ("30m", 1799), ("1h", 3599), ("6h", 21599), ("3d", 259199))
    },
}
"""Recorded series, and the times that they look back; the others are of now."""
EACH_MINUTE: Final = {"objectives", "budgets-burning"}
"""Groups that are evaluated every minute, whatever Prometheus is set to: sums over samples become times."""
SLOW: Final = {"near-limit", "replication", "trends", "baselines", "budgets"}
"""Groups that are evaluated every two minutes, as they look back far or at every client; the others as often as all of Prometheus' rules."""
ENTITY: Final = ("cluster", "quota_type", "user", "client_id")
BUDGET: Final = ("cluster", "slo", "user", "client_id")
CLUSTER: Final = ("cluster",)
BROKER: Final = ("cluster", "broker")


@dataclass(frozen=True, slots=True)
class Specified:
    severity: str
    scope: str
    wait: str
    keep: str | None
    numbers: frozenset[str]


def _alerts() -> Mapping[str, Specified]:
    made = {}
    for line in _ALERTS.strip().splitlines():
        name, severity, scope, wait, keep, *numbers = line.split(maxsplit=5)
        found = frozenset(numbers[0].split("; ") if numbers else ())
        keeps = None if keep == "-" else keep
        made[f"KafkaQuota{name}"] = Specified(severity, scope, wait, keeps, found)
    return made


SPECIFIED: Final = _alerts()
WINDOWS: Final = {
    f"KafkaQuota{name}": {*windows.split("; ")}
    for name, windows in (line.split(maxsplit=1) for line in _WINDOWS.strip().splitlines())
}


def _of_scope(*scopes: str) -> frozenset[str]:
    return frozenset(name for name, one in SPECIFIED.items() if one.scope in scopes)


_ON_CALL: Final = frozenset({"KafkaQuotaThrottleSpike", "KafkaQuotaManyClientsThrottled"})
_NEAR: Final = frozenset({"KafkaQuotaNearLimit", "KafkaQuotaLimitPredicted"})
_BY_LIMIT: Final = _NEAR | {"KafkaQuotaHeavyClientWithoutLimit", "KafkaQuotaSystemUserThrottledByDefault"}
_THROTTLED: Final = frozenset(f"KafkaQuota{kind}Throttled" for kind in ("Produce", "Fetch", "Request"))
_BEYOND_TIMEOUT: Final = "KafkaQuotaThrottleBeyondClientTimeout"
_OF_CLUSTERS: Final = _of_scope("entity", "broker", "cluster", "configuration")
INHIBITED: Final[Mapping[str, Mapping[tuple[str, ...], frozenset[str]]]] = {
    # the whole cluster suffers: not each client, broker and job is a message
    "KafkaQuotaThrottleSpike": {
        CLUSTER: _of_scope("entity", "broker", "job") | {"KafkaQuotaManyClientsThrottled", "KafkaQuotaThrottleStorm"}
    },
    "KafkaQuotaManyClientsThrottled": {CLUSTER: _of_scope("entity", "broker", "job") | {"KafkaQuotaThrottleStorm"}},
    # too many to name: those that fired before go on for a while
    "KafkaQuotaThrottleStorm": {CLUSTER: _THROTTLED | {"KafkaQuotaMutationThrottled", _BEYOND_TIMEOUT}},
    # a throttled client is at its limit
    **{name: {ENTITY: _NEAR} for name in _THROTTLED},
    _BEYOND_TIMEOUT: {ENTITY: _NEAR | (_THROTTLED - {"KafkaQuotaRequestThrottled"})},
    # busy handlers are most of the capacity
    "KafkaQuotaBrokerSaturated": {BROKER: frozenset({"KafkaQuotaRequestTimeNearCapacity"})},
    # reads that never end are slow, too
    "KafkaQuotaSourceDown": {("cluster", "instance", "source"): frozenset({"KafkaQuotaReadsSlow"})},
    # one budget
    "KafkaQuotaBudgetBurnsFast": {BUDGET: frozenset({"KafkaQuotaBudgetBurns", "KafkaQuotaBudgetBurnsSlowly"})},
    "KafkaQuotaBudgetBurns": {BUDGET: frozenset({"KafkaQuotaBudgetBurnsSlowly"})},
    # without current numbers the rest is out of date, but for jobs, which report their own; an exporter that hangs may have a twin that does not, so pages go out
    "KafkaQuotaExporterAbsent": {CLUSTER: _OF_CLUSTERS},
    "KafkaQuotaSnapshotStale": {
        CLUSTER: _OF_CLUSTERS - _ON_CALL - {"KafkaQuotaBudgetBurnsFast", "KafkaQuotaBrokerSaturated"}
    },
    # limits that are not known
    "KafkaQuotaLimitsStale": {CLUSTER: _BY_LIMIT},
}
"""By alert: which others it keeps back, where these labels of both are equal; all others it keeps back nothing."""
