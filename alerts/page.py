"""The page about alerts in the documentation, from the rules themselves."""

from __future__ import annotations

from collections.abc import Iterator

from .book import alerts, records
from .gaps import GAPS
from .links import Site
from .rule import Alert
from .thresholds import thresholds

_HEAD = """\
# Alerts

Rules for Prometheus, with a runbook for each alert. This page is written from `alerts/` by `make docs`; do not edit it.

```
quotascope alerts write DIR --exporter-url https://quotascope.corp --grafana-url https://grafana.corp
```

writes `quotascope-recording.yaml` and `quotascope-alerts.yaml` for `rule_files` of Prometheus (2.42 or newer); the alerts need the recording rules. Nothing
else goes into `DIR`, so that `rule_files` may take all of it (`DIR/*.yaml`). All files are replaced or none: a full disk leaves the rules as they were.
Other files are written where an option asks for them:

| option | what it writes |
|---|---|
| `--prometheus-rule FILE` | the same rules for the Prometheus operator: `kubectl apply -f` it, with the labels that your Prometheus selects rules by |
| `--alertmanager FILE` | an example of how the alerts can be sent: grouped by alert and cluster, and kept back where another alert says it all |
| `--runbooks DIR` | the runbooks in Markdown, for a wiki. In this repository: `alerts/runbooks/` |

Earlier versions wrote the first two into `DIR`, where Prometheus refuses them as rules. `alerts write` names such files and leaves them alone, for they may be in use.

## Links

An alert has a link only where you say where it leads; `alerts write` names the options that you left out.

| option | link |
|---|---|
| `--exporter-url URL` | `runbook_url`, to the exporter, which serves the runbooks itself: `URL/runbooks/KafkaQuotaNearLimit`, and all of them at `URL/runbooks/` |
| `--runbook-url URL` | `runbook_url`, to a place of your own; `{alert}` stands for the name of the alert |
| `--grafana-url URL` | `dashboard_url`, to the [dashboard](dashboards.md) about it, for the cluster, client or broker of the alert |

`--exporter-url` is the address at which people reach the exporter, behind the same login and TLS as its [page](page.md). It is not taken from the label `instance`: that is
an address within the network of Prometheus, often of a pod, and does not say whether it is `http` or `https`. `quotascope dashboards` takes `--exporter-url` and
`--runbook-url` as well.

## What they are for

- **critical** wakes somebody up: many clients suffer now. **warning** is a ticket for the day. **info** is good to know.
- A throttled client is no emergency: the quota does what it is for. Only what hits many clients at once, unusually, is critical.
- Several clusters in one Prometheus are told apart by the label `cluster` (`--cluster-label`), which every rule keeps. It can come from the exporter
  (`cluster:` in its configuration) or from Prometheus, and need not exist.
- Two exporters of one cluster, for availability, count once; each has its own alerts about itself, by `instance`. Scrape each by its own address, not through
  a load balancer: counters of two processes in one series look like restarts. Of two Prometheus servers with the same rules, let Alertmanager drop the
  label that tells them apart (`alert_relabel_configs`).
- Scrape and evaluate at least once a minute. Rates are over five minutes. With 10,000 users and client-ids on ten brokers, evaluate once a minute, and not more
  often: [what it costs](benchmarks.md#rules-and-dashboards-in-prometheus).
- What is *usual* needs data: in the first half hour the critical alerts are silent, and in the first week they know less than later. A spike of yesterday is
  part of what is usual at the same time today.
- A scrape each minute is enough for all of them, without [samples in between](scrape-interval.md): they compare averages of many minutes, counters, and
  throttle times, which linger for 30 to 60 s. No alert is about bursts of seconds: what these reach is on the dashboards, where the exporter samples. Of clients that
  are throttled for less than a second at a time, a look at the delay queues each minute may miss all; when five in a row find nobody waiting,
  `KafkaQuotaManyClientsThrottled` is silent. Scrape every 15 s where such clients matter at night.
- What the exporter folds into `__overflow__` ([cardinality](cardinality.md)) is part of sums and counts as one throttled client; no alert is about it by name.
- Clients of a custom quota callback count for `KafkaQuotaThrottleSpike` and `KafkaQuotaManyClientsThrottled`. Alerts on single clients need users and client ids.
- Alerts on Spark jobs get their data from the Spark listener.
"""


def alerts_page() -> str:
    """The whole page."""
    return "\n".join(
        [_HEAD, *_alerts(), "", *_gaps(), "", *_thresholds(), "", *_records(), ""]
    )


def _alerts() -> Iterator[str]:
    yield "## All alerts\n"
    yield "| alert | severity | for | it fires when | no false alarm from |"
    yield "|---|---|---|---|---|"
    for alert in alerts(Site()):
        runbook = f"[{alert.name}](../alerts/runbooks/{alert.name}.md)"
        cells = [runbook, alert.severity.value, _wait(alert)]
        yield _row(*cells, alert.summary, alert.spared)


def _wait(alert: Alert) -> str:
    return (
        alert.wait if alert.keep is None else f"{alert.wait}, goes on for {alert.keep}"
    )


def _gaps() -> Iterator[str]:
    yield "## What agents do not tell\n"
    yield "Some agents leave something out ([dialects](dialects.md)). Alerts that need it never fire then; others know less.\n"
    yield "| missing | with | silent | know less |"
    yield "|---|---|---|---|"
    for gap in GAPS:
        dialects = ", ".join(f"`{name}`" for name in gap.dialects)
        yield _row(gap.what, dialects, ", ".join(gap.silent), ", ".join(gap.weaker))


def _thresholds() -> Iterator[str]:
    yield "## Thresholds\n"
    yield "All of them are in `alerts/thresholds.py`; dashboards draw the same ones.\n"
    yield "| threshold | value | what is compared | why | when to change it | alerts |"
    yield "|---|---|---|---|---|---|"
    for name, threshold in thresholds():
        users = [
            alert.name.removeprefix("KafkaQuota")
            for alert in alerts(Site())
            if threshold in alert.thresholds
        ]
        value = f"{threshold.value:g} {threshold.unit}"
        texts = [threshold.meaning, threshold.reason, threshold.change]
        yield _row(f"`{name}`", value, *texts, ", ".join(users))


def _records() -> Iterator[str]:
    yield "## Recorded series\n"
    yield "| series | meaning |"
    yield "|---|---|"
    for record in records(Site()):
        yield _row(f"`{record.name}`", record.meaning)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
