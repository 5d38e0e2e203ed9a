"""What a recording rule and an alert consist of."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from .links import Dashboard
from .thresholds import Threshold


class Severity(StrEnum):
    """Who is to know."""

    CRITICAL = "critical"
    """Wakes somebody up: many clients suffer now."""
    WARNING = "warning"
    """A ticket: to be looked at during the day."""
    INFO = "info"
    """Good to know; a dashboard or a chat room."""


class Scope(StrEnum):
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
    severity: Severity
    scope: Scope
    wait: str
    """How long the expression must hold (``for``)."""
    keep: str | None = None
    """How long the alert goes on after it no longer does (``keep_firing_for``)."""
    summary: str
    """A headline that is the same for every instance, with a period at the end."""
    description: str
    """What happened to whom, as a template of Prometheus."""
    dashboard: Dashboard
    thresholds: tuple[Threshold, ...] = ()
    spared: str
    """What would be a false alarm, and why this is none: for those who tune it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rules that Prometheus evaluates one after the other."""

    name: str
    rules: tuple[Record | Alert, ...] = field(default=())
    interval: str | None = None
    """How often; None for Prometheus's ``evaluation_interval``."""
