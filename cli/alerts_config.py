"""The configuration of alerts, whose keys are the alerts and thresholds of the catalog; it makes a `Site`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    FilePath,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from quotascope.alerts import InvalidSite, Site, thresholds
from quotascope.alerts.durations import duration_seconds
from quotascope.alerts.links import check_label, served_runbooks
from quotascope.alerts.render import alerts, profiles_of, thresholds_of
from quotascope.alerts.settings import AlertSettings, AlertSeverity, Objective, Profile
from quotascope.exporter.alert_terms import AlertTerms, read_known_teams
from quotascope.exporter.config.file import read_document
from quotascope.exporter.config.load import filled
from quotascope.exporter.config.model import Pattern
from quotascope.exporter.config.reference import reference
from quotascope.exporter.config.section import Section, at_most_one, matching
from quotascope.exporter.names import asked_as
from quotascope.metrics.catalog.teams import Clients
from quotascope.metrics.catalog.thresholds import HANDLERS_IDLE, HEAVY_BYTES, NEAR_LIMIT, SharedThresholds
from quotascope.quotas import named

_HEAD: Final = """\
The configuration of the alerts: every key, its default, and what it means.

`quotascope alerts write DIR --alerts-config FILE` writes rules and runbooks with it,
`quotascope dashboards write DIR --alerts-config FILE` dashboards with colors that change at its thresholds.
A key that is left out has the default. A key after a # without a space has no default; its value
is an example. Options of the commands override this file. A path that is not absolute is relative
to the folder in which quotascope is started.
"""


def _valid(check: Callable[[str], object]) -> AfterValidator:
    """Return a validator that refuses a text for which a check raises ``InvalidSite``, with the reason and the text."""

    def checked(text: str) -> str:
        try:
            check(text)
        except InvalidSite as error:
            problem = str(error).removeprefix(f"{text!r} ")
            raise ValueError(f"{problem}, got {text!r}") from None
        return text

    return AfterValidator(checked)


def _number(value: object) -> object:
    """Return a value. Raises ``ValueError`` for a bool."""
    if isinstance(value, bool):  # YAML's yes and no
        raise ValueError(f"is not a number, got {value!r}")  # noqa: TRY004 - pydantic's
    return value


def _text(value: object) -> object:
    """Return a value. Raises ``ValueError`` if it is no text."""
    if not isinstance(value, str):  # 5 without a unit
        raise ValueError(  # noqa: TRY004 - pydantic's
            f"is not a duration of Prometheus such as 90s, 5m or 1h30m, got {value!r}"
        )
    return value


Number = Annotated[float, BeforeValidator(_number), Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, BeforeValidator(_number), Field(ge=0, le=1, allow_inf_nan=False)]
Duration = Annotated[str, BeforeValidator(_text), _valid(duration_seconds)]
LabelName = Annotated[str, _valid(check_label)]
LabelValue = Annotated[
    str,
    matching(r"(?:(?!\{\{).)*", problem="must not contain {{, which begins a template"),
]
Labels = dict[LabelName, LabelValue]
_LABELS: Final[Any] = Field(default_factory=dict, examples=[{"component": "kafka"}])


class ClientsConfig(Section):
    """Entities by user and client-id: all keys that are given must match."""

    user: str | None = Field(default=None, description="Name of the user.", examples=["alice"])
    user_pattern: Pattern | None = Field(
        default=None,
        description="RE2 expression that matches the user's name as a whole. Needs the extra `patterns`.",
        examples=["payments-.*"],
    )
    client_id: str | None = Field(default=None, description="The client-id.", examples=["billing"])
    client_id_pattern: Pattern | None = Field(
        default=None, description="The same for the client-id.", examples=["etl-.*"]
    )

    @model_validator(mode="after")
    def _consistent(self) -> ClientsConfig:
        at_most_one(self, "user", "user_pattern")
        at_most_one(self, "client_id", "client_id_pattern")
        names = ("user", "user_pattern", "client_id", "client_id_pattern")
        if all(getattr(self, name) is None for name in names):
            raise ValueError(f"needs one of {', '.join(names)}")
        return self


class PromiseConfig(Section):
    """The name and the terms of a promise."""

    name: str = Field(
        min_length=1,
        description="Value of the label `slo`; each objective needs a different one.",
        examples=["billing"],
    )
    objective_percent: float = Field(
        ge=50,
        le=99.999,  # an objective allows at least half a minute in 30 days; rules see one sample a minute
        allow_inf_nan=False,
        description=(
            "Share of 30 days in which no broker throttles the entity, in percent. Below 93, "
            "KafkaQuotaBudgetBurnsFast cannot fire: 14.4 times the budget is more than all of the time."
        ),
        examples=[99.0],
    )
    tolerated_seconds: Number = Field(default=0.0, description="A longer throttle time counts as throttled.")


class ObjectiveConfig(ClientsConfig, PromiseConfig):  # with the bases in this order, the name comes first
    """A promise to some entities."""


def _thresholds_section() -> type[Section]:
    """Return the section with a key for each threshold."""
    alert_names = [rule["alert"] for rule in alerts(Site())]
    fields: dict[str, Any] = {}
    for name, threshold in thresholds():
        users = ", ".join(alert.removeprefix("KafkaQuota") for alert in alert_names if name in thresholds_of(alert))
        text = (
            f"{threshold.unit}: {threshold.meaning}. Reason: {threshold.reason}. "
            f"Other values: {threshold.change}. Alerts: {users}."
        )
        kind = Share if threshold.unit == "ratio" and not threshold.above_one else Number
        fields[name] = (kind, Field(default=threshold.value, description=text))
    return create_model("ThresholdsConfig", __base__=Section, **fields)


def _alerts_section() -> type[Section]:
    """Return the section with a section for each alert."""
    fields: dict[str, Any] = {}
    for rule in alerts(Site()):
        name = rule["alert"]
        keys: dict[str, Any] = {
            "enabled": (bool | None, Field(default=None, examples=[True])),
            "severity": (AlertSeverity, AlertSeverity(rule["labels"]["severity"])),
            "for": (Duration, rule["for"]),
            "keep_firing_for": (Duration | None, Field(default=rule.get("keep_firing_for"), examples=["10m"])),
            "labels": (Labels, _LABELS),
        }
        section = create_model(name, __base__=Section, **keys)
        used = ", ".join(thresholds_of(name))
        profiles = " and ".join(profiles_of(name))
        thresholds_text = f" Thresholds: {used}." if used else ""
        text = f"{rule['annotations']['summary']} Profile: {profiles}.{thresholds_text}"
        fields[name] = (section, Field(default=section(), description=text))
    return create_model("AlertsSection", __base__=Section, **fields)


if TYPE_CHECKING:

    class ThresholdsConfig(Section):
        """A key for each threshold."""

    class AlertsSection(Section):
        """A section for each alert."""

else:
    ThresholdsConfig, AlertsSection = _thresholds_section(), _alerts_section()


class AlertsConfig(Section):
    """Everything that can be configured about alerts."""

    cluster_label: LabelName = Field(
        default=Site().cluster_label,
        description="Label that distinguishes the clusters in one Prometheus; it need not exist.",
    )
    exporter_url: Annotated[str | None, _valid(served_runbooks)] = Field(
        default=None,
        description=(
            "Address of the exporter, for links to its pages of clients and to the runbooks that it serves. Instead "
            "of runbook_url."
        ),
        examples=["https://quotascope.corp"],
    )
    runbook_url: Annotated[str | None, _valid(lambda url: Site(runbook_url=url))] = Field(
        default=None,
        description="Address of the runbooks; {alert} stands for the alert's name.",
        examples=["https://wiki.corp/kafka/{alert}"],
    )
    grafana_url: Annotated[str | None, _valid(lambda url: Site(grafana_url=url))] = Field(
        default=None, description="Address of the Grafana that has the dashboards.", examples=["https://grafana.corp"]
    )
    system_users: Annotated[str, _valid(lambda pattern: Site(system_users=pattern))] = Field(
        default=Site().system_users,
        description="Users and client-ids of the platform's own programs, which a default quota should not throttle.",
    )
    labels: Labels = Field(
        default_factory=dict, description="Additional labels of all alerts.", examples=[{"component": "kafka"}]
    )
    teams: FilePath | None = Field(
        default=None,
        description=(
            "The file of teams (documentation: Teams), the same as in the exporter's configuration: alerts on an "
            "entity have the label `team`, by which Alertmanager routes them; without a team, they have none. The "
            "dashboard Overview filters by it."
        ),
        examples=["/etc/quotascope/teams.yaml"],
    )
    objectives: tuple[ObjectiveConfig, ...] = Field(
        default=(),
        description=(
            "Service level objectives (SLO) on the share of time that some entities are not throttled. The "
            "KafkaQuotaBudgetBurns alerts are written only if there is one."
        ),
    )
    profile: Profile = Field(
        default=Profile.CORE,
        description=(
            "The alerts that are written: core (about ten, for an on-call team) or all (each cause on its own). "
            "`alerts` below adds and leaves out single ones."
        ),
    )
    thresholds: ThresholdsConfig = Field(
        default=ThresholdsConfig(), description="The values at which alerts fire, each with its unit."
    )
    alerts: AlertsSection = Field(
        default=AlertsSection(),
        description=(
            "Each alert. enabled: true adds it to those of the profile, false leaves it out. severity: critical, "
            "warning or info. for: how long its condition holds before it fires. keep_firing_for: how long it fires "
            "after that. labels: additional labels of this alert."
        ),
    )

    @field_validator("runbook_url")
    @classmethod
    def _exclude_exporter_url(cls, url: str | None, info: ValidationInfo) -> str | None:
        if url is not None and info.data.get("exporter_url") is not None:
            raise ValueError("and exporter_url exclude each other")
        return url

    @field_validator("labels", "alerts")
    @classmethod
    def _keep_cluster_label(cls, value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - labels or alerts
        name = info.data.get("cluster_label")
        all_labels = [value] if isinstance(value, dict) else [section.labels for _, section in value]
        if any(name in labels for labels in all_labels):
            raise ValueError(f"must not replace {name!r}, the label of clusters")
        return value

    @field_validator("objectives")
    @classmethod
    def _refuse_same_names(cls, objectives: tuple[ObjectiveConfig, ...]) -> tuple[ObjectiveConfig, ...]:
        names = [objective.name for objective in objectives]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"must differ in their names: two are called {name!r}")
        return objectives

    def site(self) -> Site:
        """
        Return the site for which rules, runbooks and dashboards are written.

        Raises ``ConfigError`` for mistakes in the file of teams.
        """
        values = {threshold: getattr(self.thresholds, name) for name, threshold in thresholds()}
        runbook_url = self.runbook_url
        if self.exporter_url is not None:
            runbook_url = served_runbooks(self.exporter_url)
        return Site(
            cluster_label=self.cluster_label,
            grafana_url=self.grafana_url,
            exporter_url=self.exporter_url,
            runbook_url=runbook_url,
            system_users=self.system_users,
            profile=self.profile,
            thresholds=values,
            alerts={
                name: AlertSettings(
                    enabled=section.enabled,
                    severity=section.severity,
                    wait=getattr(section, "for"),
                    keep=section.keep_firing_for,
                    labels=section.labels,
                )
                for name, section in self.alerts
            },
            labels=self.labels,
            teams=read_known_teams(self.teams) if self.teams else (),
            objectives=tuple(
                Objective(
                    name=objective.name,
                    clients=_clients(objective),
                    percent=objective.objective_percent,
                    tolerated_seconds=objective.tolerated_seconds,
                )
                for objective in self.objectives
            ),
        )


def _clients(section: ClientsConfig) -> Clients:
    """Return the clients of an objective, with long names cut as series have them."""
    return Clients(
        user=None if section.user is None else asked_as(section.user),
        user_pattern=section.user_pattern,
        client_id=None if section.client_id is None else asked_as(section.client_id),
        client_id_pattern=section.client_id_pattern,
    )


def alerts_reference() -> str:
    """Return the configuration with every key, as YAML. Loading it gives the defaults."""
    return reference(AlertsConfig, _HEAD)


def read_alerts_config(path: Path) -> Site:
    """Return the site of a configuration file. Raises ``ConfigError`` with all mistakes, each with its line."""
    # without the environment, as patterns have $
    document = read_document(path, None)
    return filled(AlertsConfig, document, named(path)).site()


def read_alert_terms(path: Path) -> AlertTerms:
    """Return thresholds and teams for the exporter from the same file. Raises as ``read_alerts_config``."""
    site = read_alerts_config(path)
    return AlertTerms(
        thresholds=SharedThresholds(
            near_limit=site.value(NEAR_LIMIT),
            handlers_idle=site.value(HANDLERS_IDLE),
            heavy_bytes=site.value(HEAVY_BYTES),
        ),
        teams=site.teams,
    )
