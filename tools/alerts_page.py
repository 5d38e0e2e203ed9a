"""The page about alerts in the documentation, from the rules themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from quotascope.alerts import Site
from quotascope.alerts.book import alerts, records
from quotascope.alerts.settings import Clients, Objective, Owner
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A value that not every agent reports."""

    what: str
    """As in the table of ``docs/dialects.md``."""
    families: Sequence[Family]
    dialects: Sequence[str]
    """Of the agents that do not report it."""
    silent: Sequence[str]
    """Alerts that never fire without it, the common beginning of their names left out."""
    weaker: Sequence[str] = ()
    """Alerts that are less exact without it."""


GAPS: Final = (
    Gap(
        what="controller mutation quotas: rate, tokens, throttle time",
        families=(catalog.CONTROLLER_MUTATION_TOKENS,),
        dialects=("confluent",),
        silent=("MutationTokensExhausted",),
        weaker=("MutationThrottled", "RequestThrottled"),
    ),
    Gap(
        what="delay queues",
        families=(catalog.DELAY_QUEUE_SIZE,),
        dialects=("kafka_2_0_0", "confluent"),
        silent=("DelayQueueGrowing",),
        weaker=("ThrottleSpike", "ManyClientsThrottled"),
    ),
    Gap(
        what="exempt request time",
        families=(catalog.EXEMPT_REQUEST_THREADS,),
        dialects=("kafka_2_0_0", "confluent"),
        silent=("RequestTimeNearCapacity", "ExemptRequestTimeHigh"),
    ),
    Gap(
        what="throttled time by request",
        families=(catalog.REQUEST_THROTTLED_SECONDS,),
        dialects=("kafka_2_0_0", "confluent", "strimzi"),
        silent=("ThrottleSpike",),
    ),
    Gap(
        what="new connections, replication, tiered storage",
        families=(
            catalog.LISTENER_CONNECTION_THROTTLE_SECONDS,
            catalog.IP_CONNECTION_THROTTLE_SECONDS,
            catalog.REPLICATION_LIMIT,
        ),
        dialects=("kafka_2_0_0", "confluent"),
        silent=(
            "ConnectionsThrottled",
            "ConnectionsOfAddressRefused",
            "ReplicationThrottleLeftOn",
        ),
    ),
)

_ANY = Clients(user="alice")
_EVERYTHING = Site(
    owners=(Owner(team="payments", clients=_ANY),), objectives=(Objective(name="billing", clients=_ANY, percent=99.0),)
)
"""A site with all recorded series."""
_HEAD = """\
# Alerts

Alerting and recording rules for Prometheus 2.42 or newer, with a runbook for each alert.

```
quotascope alerts write DIR --exporter-url https://quotascope.corp --grafana-url https://grafana.corp
```

This writes `quotascope-recording.yaml` and `quotascope-alerts.yaml`. Load both with `rule_files` (`DIR/*.yaml`).

- `--prometheus-rule FILE` writes the rules for the Prometheus operator; add the labels by which it selects rules.
- `--alertmanager FILE` writes example routes and inhibition rules for Alertmanager, `--runbooks DIR` the runbooks in Markdown.
- `--exporter-url URL` sets `runbook_url` to the exporter's `URL/runbooks/`, which needs its login; `--runbook-url URL` to another place, with `{alert}` for the name of the alert. Without
  either, alerts have no links.
- `--grafana-url URL` adds `dashboard_url`: the [dashboard](dashboards.md) of the cluster, client or broker.

## Configuration

```
quotascope alerts config > alerts.yaml
quotascope alerts write DIR --alerts-config alerts.yaml
```

[The file](alerts.yaml) explains each key: thresholds, severities, times, labels, owners and objectives. Delete what you do not change.
`quotascope dashboards write --alerts-config alerts.yaml` takes its colors from the thresholds. Runbooks that the exporter serves have the default thresholds.

**Owners**: alerts on an entity get the label `owner` of the first entry that matches. The dashboard *Overview* and Alertmanager's example use it.

**Objectives** promise a client a share of 30 days without throttles. The rest is its budget; `KafkaQuotaBudgetBurns` alerts fire when it is spent too
fast on the client's worst broker.

**Jsonnet**: `quotascope alerts mixin > mixin.libsonnet` prints a monitoring mixin with [`_config`](../alerts/generated/mixin). Owners and objectives are read from
`--alerts-config` instead.

## Before you use them

- **Severity**: *critical*: many clients suffer now, or one with an objective; *warning*: act today; *info*: good to know.
- **Interval**: scrape and evaluate at least once a minute. Scrape every 15 s to see throttles shorter than a second, and clients that create topics each minute
  ([the cost](benchmarks.md#rules-and-dashboards-in-prometheus)).
- **Baselines**: alerts on them are silent in the first half hour and less exact in the first week. A baseline stays while its alert fires, for a week at most.
- **Clusters** in one Prometheus differ in the label `cluster` (`--cluster-label`), from the exporter's configuration or from Prometheus.
- **Two exporters** of a cluster count once. Scrape each by its own address. With two Prometheus servers, drop the label that separates them
  (`alert_relabel_configs`).
- **Overflow** ([cardinality](cardinality.md)) counts as one client. Clients of a custom quota callback count only for alerts on a cluster
  and `KafkaQuotaCallbackThrottled`.
"""


def alerts_page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *_alerts(), "", *_gaps(), "", *_records(), ""])


def _alerts() -> Iterator[str]:
    yield "## All alerts\n"
    yield "Conditions are in the runbooks, durations and thresholds in [alerts.yaml](alerts.yaml).\n"
    for alert in alerts(Site()):
        link = f"[{alert.name}](../alerts/runbooks/{alert.name}.md)"
        yield f"- {link} ({alert.severity.value}): {alert.summary}"


def _gaps() -> Iterator[str]:
    yield "## What agents leave out\n"
    yield "Some alerts need values that not every [agent](dialects.md) reports.\n"
    yield "| missing | agents | never fire | less exact |"
    yield "|---|---|---|---|"
    for gap in GAPS:
        dialects = ", ".join(f"`{name}`" for name in gap.dialects)
        yield _row(gap.what, dialects, ", ".join(gap.silent), ", ".join(gap.weaker))


def _records() -> Iterator[str]:
    yield "## Recorded series\n"
    yield "The name begins with the level; `entity` is an entity on all brokers.\n"
    for meaning, same in groupby(records(_EVERYTHING), key=lambda record: record.meaning):
        yield f"- {', '.join(f'`{record.name}`' for record in same)}: {meaning}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
