"""The configuration of the alerts: its keys come from the catalog of alerts and thresholds, and its values make a `Site`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, create_model, field_validator

from quotascope.alerts import InvalidSite, Site, thresholds
from quotascope.alerts.book import alerts
from quotascope.alerts.links import check_label, served_runbooks
from quotascope.alerts.settings import AlertSettings, AlertSeverity, Clients, Objective, Owner, duration_seconds
from quotascope.exporter.config import ClientsConfig, OwnerConfig
from quotascope.exporter.config.file import read_document
from quotascope.exporter.config.load import filled
from quotascope.exporter.config.reference import reference
from quotascope.exporter.config.section import Section, matching
from quotascope.quotas import named

_HEAD: Final = """\
The configuration of the alerts: every key, its default, and what it means.

`quotascope alerts write DIR --alerts-config FILE` writes rules and runbooks with it,
`quotascope dashboards write DIR --alerts-config FILE` dashboards with colors that change at its thresholds.
A key that is left out has the default. A key after a # without a space has no default; its value
is an example. Options of the commands override this file.
"""


def _valid(check: Callable[[str], object]) -> AfterValidator:
    """A check of the room of alerts as one of the configuration."""

    def checked(text: str) -> str:
        try:
            check(text)
        except InvalidSite as error:
            problem = str(error).removeprefix(f"{text!r} ")
            raise ValueError(f"{problem}, got {text!r}") from None
        return text

    return AfterValidator(checked)


def _number(value: object) -> object:
    if isinstance(value, bool):  # YAML's yes and no
        raise ValueError(f"is not a number, got {value!r}")  # noqa: TRY004 - pydantic's
    return value


def _text(value: object) -> object:
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


class PromiseConfig(Section):
    """A name, and what is promised."""

    name: str = Field(
        min_length=1,
        description="Value of the label `slo`; each objective needs a different one.",
        examples=["billing"],
    )
    objective_percent: float = Field(
        ge=50,
        le=99.999,  # half a minute in 30 days; rules see one sample a minute
        allow_inf_nan=False,
        description="Share of 30 days in which no broker throttles the entity, in percent. Below 93, KafkaQuotaBudgetBurnsFast cannot fire: 14.4 times the budget is more than all of the time.",
        examples=[99.0],
    )
    tolerated_seconds: Number = Field(default=0.0, description="A longer throttle time counts as throttled.")


class ObjectiveConfig(ClientsConfig, PromiseConfig):  # the name comes first
    """A promise to some entities."""


def _thresholds_section() -> type[Section]:
    every = [*alerts(Site())]
    fields: dict[str, Any] = {}
    for name, one in thresholds():
        users = ", ".join(alert.name.removeprefix("KafkaQuota") for alert in every if one in alert.thresholds)
        text = f"{one.unit}: {one.meaning}. Reason: {one.reason}. Other values: {one.change}. Alerts: {users}."
        kind = Share if one.unit == "ratio" else Number
        fields[name] = (kind, Field(default=one.value, description=text))
    return create_model("ThresholdsConfig", __base__=Section, **fields)


def _alerts_section() -> type[Section]:
    names = {id(one): name for name, one in thresholds()}
    fields: dict[str, Any] = {}
    for alert in alerts(Site()):
        keys: dict[str, Any] = {
            "enabled": (bool, True),
            "severity": (AlertSeverity, alert.severity),
            "for": (Duration, alert.wait),
            "keep_firing_for": (
                Duration | None,
                Field(default=alert.keep, examples=["10m"]),
            ),
            "labels": (Labels, _LABELS),
        }
        section = create_model(alert.name, __base__=Section, **keys)
        used = ", ".join(names[id(one)] for one in alert.thresholds)
        text = f"{alert.summary}{used and f' Thresholds: {used}.'}"
        fields[alert.name] = (section, Field(default=section(), description=text))
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
        description="Address of the exporter, for links to the runbooks that it serves. Instead of runbook_url.",
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
    owners: tuple[OwnerConfig, ...] = Field(
        default=(),
        description="Owners of entities: alerts on an entity have the label `owner`, by which Alertmanager routes them. The first entry that matches applies. The dashboard Overview filters by it.",
    )
    default_owner: str | None = Field(
        default=None,
        min_length=1,
        description="The owner of all other entities. Default: alerts on them have no label `owner`.",
        examples=["platform"],
    )
    objectives: tuple[ObjectiveConfig, ...] = Field(
        default=(),
        description="Service level objectives (SLO) on the share of time that some entities are not throttled. The KafkaQuotaBudgetBurns alerts are written only if there is one.",
    )
    thresholds: ThresholdsConfig = Field(
        default=ThresholdsConfig(), description="The values at which alerts fire, each with its unit."
    )
    alerts: AlertsSection = Field(
        default=AlertsSection(),
        description="Each alert. enabled: false leaves it out. severity: critical, warning or info. for: how long its condition holds before it fires. keep_firing_for: how long it fires after that. labels: additional labels of this alert.",
    )

    @field_validator("runbook_url")
    @classmethod
    def _one_place(cls, url: str | None, info: ValidationInfo) -> str | None:
        if url is not None and info.data.get("exporter_url") is not None:
            raise ValueError("and exporter_url exclude each other")
        return url

    @field_validator("labels", "alerts")
    @classmethod
    def _beside_the_cluster(cls, value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - labels or alerts
        name = info.data.get("cluster_label")
        every = [value] if isinstance(value, dict) else [each.labels for _, each in value]
        if any(name in labels for labels in every):
            raise ValueError(f"must not replace {name!r}, the label of clusters")
        return value

    @field_validator("objectives")
    @classmethod
    def _different(cls, all_of_them: tuple[ObjectiveConfig, ...]) -> tuple[ObjectiveConfig, ...]:
        names = [each.name for each in all_of_them]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"must differ in their names: two are called {name!r}")
        return all_of_them

    def site(self) -> Site:
        """What rules, runbooks and dashboards are written for."""
        values = {one: getattr(self.thresholds, name) for name, one in thresholds()}
        runbook_url = self.runbook_url
        if self.exporter_url is not None:
            runbook_url = served_runbooks(self.exporter_url)
        return Site(
            cluster_label=self.cluster_label,
            grafana_url=self.grafana_url,
            runbook_url=runbook_url,
            system_users=self.system_users,
            thresholds=values,
            alerts={
                name: AlertSettings(
                    enabled=each.enabled,
                    severity=each.severity,
                    wait=getattr(each, "for"),
                    keep=each.keep_firing_for,
                    labels=each.labels,
                )
                for name, each in self.alerts
            },
            labels=self.labels,
            owners=tuple(Owner(team=each.team, clients=_clients(each)) for each in self.owners),
            default_owner=self.default_owner,
            objectives=tuple(
                Objective(
                    name=each.name,
                    clients=_clients(each),
                    percent=each.objective_percent,
                    tolerated_seconds=each.tolerated_seconds,
                )
                for each in self.objectives
            ),
        )


def _clients(section: ClientsConfig) -> Clients:
    return Clients(
        user=section.user,
        user_pattern=section.user_pattern,
        client_id=section.client_id,
        client_id_pattern=section.client_id_pattern,
    )


def alerts_reference() -> str:
    """The configuration with every key, as YAML. Loading it gives the defaults."""
    return reference(AlertsConfig, _HEAD)


def read_alerts_config(path: Path) -> Site:
    """What a configuration of alerts says. Raises ``ConfigError`` with all mistakes at once, each with its line."""
    # without the environment: $ stands in patterns
    document = read_document(path, None)
    return filled(AlertsConfig, document, named(path)).site()
