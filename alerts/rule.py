"""What a recording rule and an alert consist of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from quotascope.metrics.catalog import REQUEST_THREADS

from .links import Dashboard
from .recorded import ENTITY_THROTTLE
from .settings import AlertSeverity
from .thresholds import Threshold

# Templates that many descriptions share. Client names are untrusted: they are quoted.
_ENTITY: Final = (
    "{{ with LABELS.user }}user {{ printf `%q` . }}{{ end }}"
    "{{ if and LABELS.user LABELS.client_id }} with {{ end }}"
    "{{ with LABELS.client_id }}client-id {{ printf `%q` . }}{{ end }}"
    "{{ if not (or LABELS.user LABELS.client_id) }}the client without a name{{ end }}"
)
ENTITY: Final = _ENTITY.replace("LABELS", "$labels")
"""A quota entity: its user, its client-id, or both."""
WORST: Final = 10


def longest_delays(cluster_label: str) -> str:
    """The entities of the alert's cluster that are throttled for longest, each with its delay."""
    query = f"topk({WORST}, max by (user, client_id) ({ENTITY_THROTTLE}{{{cluster_label}=%q}}))"
    return _listed("Longest delays", query, [cluster_label], "{{ .Value | humanizeDuration }}")


def most_request_time(cluster_label: str) -> str:
    """The clients with most request time on the alert's broker, each with its threads; what to do where that is not measured."""
    query = f"topk({WORST}, max by (user, client_id) ({REQUEST_THREADS.name}{{{cluster_label}=%q,broker=%q}} > 0))"
    unknown = " Which client takes it is unknown: no request quota makes the broker measure request time."
    value = "{{ .Value | printf `%.2g` }} threads"
    return _listed("Most request time", query, [cluster_label, "broker"], value, f"{{{{ else }}}}{unknown}")


def _listed(head: str, query: str, labels: Sequence[str], value: str, otherwise: str = "") -> str:
    """What a query finds for labels of the alert, each entity with its value; Prometheus asks itself when it evaluates the alert."""
    given = " ".join(f"$labels.{label}" for label in labels)
    one = f"{_ENTITY.replace('LABELS', '.Labels')} {value}"
    return (
        f"{{{{ range $number, $_ := query (printf `{query}` {given}) }}}}"
        f"{{{{ if $number }}}}, {{{{ else }}}} {head}: {{{{ end }}}}{one}{otherwise}{{{{ end }}}}"
    )


DURATION: Final = "{{ $value | humanizeDuration }}"
PERCENT: Final = "{{ $value | humanizePercentage }}"
BYTES: Final = "{{ $value | humanize }}B/s"
INTEGER: Final = "{{ $value | printf `%.0f` }}"
THREE_DIGITS: Final = "{{ $value | printf `%.3g` }}"

ENTITY_LABELS: Final = ("user", "client_id")
"""One user, client-id or pair, on all brokers."""
QUOTA_LABELS: Final = ("quota_type", *ENTITY_LABELS)
"""One entity under one type of quota."""


class AlertScope(StrEnum):
    """What an alert is about; Alertmanager groups and silences by it."""

    ENTITY = "entity"
    BROKER = "broker"
    CLUSTER = "cluster"
    CONFIGURATION = "configuration"
    EXPORTER = "exporter"
    JOB = "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A recording rule."""

    name: str
    """``level:metric:operations``."""
    expr: str
    meaning: str
    """One sentence for the documentation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alert; what all alerts have in common is added by `decorate`."""

    name: str
    """CamelCase, beginning with ``KafkaQuota``."""
    expr: str
    labels: tuple[str, ...]
    """The labels that the expression keeps, the cluster's apart."""
    severity: AlertSeverity
    scope: AlertScope
    wait: str
    """How long the expression must hold (``for``)."""
    keep: str | None = None
    """How long the alert keeps firing after that (``keep_firing_for``)."""
    summary: str
    """A headline that is the same for every instance, with a period at the end."""
    description: str
    """What happened, with names and numbers, as a template of Prometheus."""
    dashboard: Dashboard
    thresholds: tuple[Threshold, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleGroup:
    """Rules that Prometheus evaluates one after the other."""

    name: str
    rules: tuple[Record | Alert, ...] = field(default=())
    interval: str | None = None
    """How often; None for Prometheus's ``evaluation_interval``."""
