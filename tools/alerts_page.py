"""The page about alerts in the documentation, from the rules themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from tools.newest import tested

from quotascope.alerts import Site
from quotascope.alerts.render import alerts, profiles_of, records
from quotascope.alerts.settings import Objective, Profile
from quotascope.exporter.sources.dialects import DIALECTS, Gap
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family
from quotascope.metrics.catalog.teams import Clients, Team


@dataclass(frozen=True, slots=True, kw_only=True)
class GapOfAlerts:
    """A value that not every agent reports, and the alerts that need it."""

    what: str
    """Name of the gap in the table of ``docs/start/dialects.md``."""
    gap: Gap
    families: Sequence[Family]
    silent: Sequence[str]
    """Alerts that never fire without the value; the common beginning of their names is left out."""
    weaker: Sequence[str] = ()
    """Alerts that are less exact without the value."""

    @property
    def dialects(self) -> tuple[str, ...]:
        """Dialects of the agents that do not report the value."""
        return tuple(dialect.name for dialect in DIALECTS if self.gap in dialect.gaps)


GAPS: Final = (
    GapOfAlerts(
        what="controller mutation quotas: rate, tokens, throttle time",
        families=(catalog.CONTROLLER_MUTATION_TOKENS,),
        gap=Gap.MUTATIONS,
        silent=("MutationTokensExhausted",),
        weaker=("MutationThrottled", "RequestThrottled"),
    ),
    GapOfAlerts(
        what="delay queues",
        families=(catalog.DELAY_QUEUE_SIZE,),
        gap=Gap.DELAY_QUEUES,
        silent=("DelayQueueGrowing",),
        weaker=("ThrottleSpike", "ManyClientsThrottled"),
    ),
    GapOfAlerts(
        what="exempt request time",
        families=(catalog.EXEMPT_REQUEST_THREADS,),
        gap=Gap.EXEMPT_TIME,
        silent=("RequestTimeNearCapacity", "ExemptRequestTimeHigh"),
    ),
    GapOfAlerts(
        what="throttled time by request",
        families=(catalog.REQUEST_THROTTLED_SECONDS,),
        gap=Gap.THROTTLED_TIME,
        silent=("ThrottleSpike",),
    ),
    GapOfAlerts(
        what="new connections, replication, tiered storage",
        families=(
            catalog.LISTENER_CONNECTION_THROTTLE_SECONDS,
            catalog.IP_CONNECTION_THROTTLE_SECONDS,
            catalog.REPLICATION_LIMIT,
        ),
        gap=Gap.CONNECTIONS,
        silent=(
            "ConnectionsThrottled",
            "ConnectionsOfAddressRefused",
            "ReplicationThrottleLeftOn",
        ),
    ),
)

_ANY = Clients(user="alice")
_EVERYTHING = Site(
    teams=(Team(name="payments", clients=(_ANY,)),), objectives=(Objective(name="billing", clients=_ANY, percent=99.0),)
)
"""A site with all recorded series."""
_HEAD = """\
# Alerts

Alerting and recording rules for Prometheus, with a runbook for each alert. They are tested with Prometheus @VERSIONS@.

```
quotascope alerts write DIR --exporter-url https://quotascope.corp --grafana-url https://grafana.corp
```

This writes `quotascope-recording.yaml` and `quotascope-alerts.yaml`. Load both with `rule_files` (`DIR/*.yaml`).

- `--prometheus-rule FILE` writes the rules for the Prometheus operator; add the labels by which it selects rules.
- `--alertmanager FILE` writes [templates of notifications](#notifications) for Alertmanager; [an example](alertmanager.yaml) has routes and inhibition rules. `--runbooks DIR` writes the
  runbooks in Markdown.
- `--exporter-url URL` sets `runbook_url` to `URL/runbooks/` of the exporter, which asks for a login if the exporter has one. `--runbook-url URL` sets it to another place, where `{alert}` stands for the name of the alert.
  Without either of them, alerts have no links to runbooks.
- `--grafana-url URL` adds `dashboard_url`: the [dashboard](../guides/dashboards.md) of the cluster, client or broker.
- `--exporter-url URL` also adds `entity_url` to alerts on a client: the page of this client on the exporter.

## Profiles

By default, `alerts write` writes the profile `core`: about ten alerts for a team on call. `--profile all` writes one alert for each cause. Both have the same recording rules, which dashboards
read as well. The configuration (`profile: all`, and `enabled` of each alert) does the same, and can add or leave out single alerts ([decision 38](../decisions/0038-a-core-of-alerts.md)).

@CORE@

Alerts on the budgets of [objectives](#configuration) are in both. Compose and the Helm chart use `core` (`rules.profile` of the chart), the demo stack uses `all`. The exporter does not
know which rules Prometheus has: its runbooks say which profile has an alert.

## Configuration

```
quotascope alerts config > alerts.yaml
quotascope alerts write DIR --alerts-config alerts.yaml
```

[The file](alerts.yaml) explains each key: thresholds, severities, times, labels, links and objectives. Delete what you do not change.
`quotascope dashboards write --alerts-config alerts.yaml` takes its colors from the thresholds. With `alerts_config: alerts.yaml` in the [exporter's configuration](configuration.yaml), pages, API, `top` and findings use its thresholds. Runbooks that the
exporter serves have the default thresholds.

**Teams**: with `teams: FILE`, alerts on an entity get the label `team` of the first [team](../guides/teams.md) that matches. The dashboard *Overview* and [Alertmanager's example](alertmanager.yaml) use it.

**Objectives** promise a client that it is not throttled for a share of 30 days, such as 99 %. The remaining 1 % is its *budget*, 7.2 hours. The alerts `KafkaQuotaBudgetBurns…` fire when the budget is spent too
fast on the client's worst broker.

**Jsonnet**: `quotascope alerts mixin > mixin.libsonnet` prints a monitoring mixin (a library of rules in Jsonnet) with `_config`. Each release has it as a file, and the rules as a `PrometheusRule`. Teams and
objectives are read from `--alerts-config` instead.

## Notifications

Alertmanager's own mails list labels and annotations by name, and its messages for Slack have no description. With `quotascope.tmpl`, the first line says what happened to which client, by which rule, and
since when. Links to the client, the runbook and the dashboard follow, then the alerts that are resolved. Put the file where `templates` in Alertmanager's configuration points to, and use it in receivers:

```yaml
receivers:
- name: tickets
  email_configs:
  - to: kafka@example.com
    headers:
      Subject: '{{ template "quotascope.subject" . }}'
    html: '{{ template "quotascope.html" . }}'
    text: '{{ template "quotascope.text" . }}'
- name: chat
  slack_configs:
  - channel: '#kafka'
    title: '{{ template "quotascope.title" . }}'
    fallback: '{{ template "quotascope.title" . }}'
    text: '{{ template "quotascope.slack" . }}'
```

Names of clients are untrusted: mails escape them as HTML, and for Slack `<!channel>` is text.

## Before you use them

- **Severity**: *critical*: many clients suffer now, or a client with an objective does; *warning*: act today; *info*: good to know.
- **Interval**: scrape and evaluate at least once a minute. Scrape every 15 s to see throttles shorter than a second, and clients that create topics each minute
  ([the cost](../engineering/benchmarks.md#rules-and-dashboards-in-prometheus)).
- **Throttled share**: alerts on a client compare how much of the time it was throttled, not how long each throttle was. For example, a producer with batches of 16 kB and a limit of 1 MB/s
  is throttled by 16 ms each time, but [muted](words.md#muted) for most of its time.
    - The share is measured over the last 15 minutes, on the worst broker. Minutes without a measurement count as not throttled, so the true share is *at least* this high.
    - It is computed from throttle times. Kafka reports each throttle time for 30 to 60 s, and it counts for as long; a longer throttle counts until it has certainly ended.
    - The threshold on utilization (`PERSISTENT`) leaves [bursts](words.md#burst) out.
    - If an agent reports no throttle times, the share is unknown, and these alerts cannot fire.
- **Times in descriptions** are in UTC; *since* is the beginning of a throttle episode without a pause of more than 2 minutes.
- **Ranges** are a second short (`[4m59s]`), because Prometheus 2 counts a sample at the older end of a range and Prometheus 3 does not. With a second less, both give the same result.
- **Usual level**: alerts that compare with the [usual level](words.md#usual-level) are silent for the first half hour, and less exact in the first week. While one of them fires, its usual level is frozen, for a week at most.
- **Clusters** in one Prometheus differ in the label `cluster` (`--cluster-label`), from the exporter's configuration or from Prometheus.
- **Two exporters** of a cluster count once. Scrape each by its own address. With two Prometheus servers, drop the label that separates them
  (`alert_relabel_configs`).
- **Overflow**: all clients in the [overflow](words.md#overflow) count as one. Clients of a custom quota callback count only in alerts on a whole cluster
  and in `KafkaQuotaCallbackThrottled`.
"""


def alerts_page() -> str:
    """Return the whole page."""
    (prometheus,) = (row for row in tested() if row.name == "Prometheus")
    head = _HEAD.replace("@VERSIONS@", " and ".join(prometheus.versions)).replace("@CORE@", "\n".join(_core()))
    return "\n".join([head, *_alerts(), "", *_gaps(), "", *_records(), ""])


CORE_REASONS: Final = {
    "ThrottleSpike": "a page: clients of a cluster wait for far longer than usual",
    "ThrottleStorm": "the count, where an alert for each client would be too many",
    "ClientThrottled": "a client is throttled for most of the time, by a quota of any type; `all` has one alert for each type instead",
    "NearLimit": "what can still be prevented: a client will be throttled next",
    "ManyNearLimit": "the count, where an alert for each client near its limit would be too many",
    "MutationTokensExhausted": "topics can no longer be created or deleted; no throttle time shows it where requests are refused",
    "BrokerSaturated": "a page: the limits are too high for the broker, or quotas are not the cause",
    "ExporterAbsent": "without it, no other alert can fire",
    "RecordingRulesMissing": "without them, most of the others cannot fire",
    "SourceDown": "a broker that cannot be read throttles unseen",
    "LimitsStale": "limits that cannot be read make utilization old or unknown",
}
"""Reasons why alerts are in the core profile, by the name of the alert without the common beginning."""


def _core() -> Iterator[str]:
    for name, reason in CORE_REASONS.items():
        yield f"- `KafkaQuota{name}`: {reason}."


def _alerts() -> Iterator[str]:
    yield "## All alerts\n"
    yield (
        "Conditions are in [the texts](../../alerts/rules) and the runbooks, durations and thresholds in [alerts.yaml](alerts.yaml). *core*: in the profile `core` as well.\n"
    )
    for rule in alerts(Site()):
        name, profiles = rule["alert"], profiles_of(rule["alert"])
        link = f"[{name}](../../alerts/runbooks/{name}.md)"
        core = ", *core*" if Profile.CORE in profiles else ""
        core = core if Profile.ALL in profiles else ", only *core*"
        yield f"- {link} ({rule['labels']['severity']}){core}: {rule['annotations']['summary']}"


def _gaps() -> Iterator[str]:
    yield "## What agents leave out\n"
    yield "Some alerts need values that not every [agent](../start/dialects.md) reports.\n"
    yield "| missing | agents | never fire | less exact |"
    yield "|---|---|---|---|"
    for gap in GAPS:
        dialects = ", ".join(f"`{name}`" for name in gap.dialects)
        yield _row(gap.what, dialects, ", ".join(gap.silent), ", ".join(gap.weaker))


def _records() -> Iterator[str]:
    yield "## Recorded series\n"
    yield "The name begins with the level; `entity` is an entity on all brokers.\n"
    for meaning, group in groupby(records(_EVERYTHING), key=lambda rule: rule["meaning"]):
        names = ", ".join(f"`{rule['record']}`" for rule in group)
        yield f"- {names}: {meaning}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
