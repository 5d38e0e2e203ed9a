"""Both reporters show the numbers of one account, under names that Prometheus makes equal."""

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint, Sum
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.exporter.otlp.messages import translated

from quotascope.clients.accounting import ThrottleAccount
from quotascope.clients.reporting.opentelemetry import observe
from quotascope.clients.reporting.prometheus import ThrottleCollector
from quotascope.clients.reporting.rows import READINGS
from quotascope.metrics.catalog import client_families

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]
"""Numbers by name and labels."""


@pytest.fixture
def account() -> ThrottleAccount:
    """A reader that was throttled, an admin client that was refused, and a hostile name."""
    account = ThrottleAccount()
    reader = account.client("alice", "etl", "read")
    reader.throttled(250)
    reader.throttled(1_001)
    account.client("", "topics", "admin").retried()
    account.client("", 'a"b\n\udc80é', "write").throttled(1)
    return account


def shown(account: ThrottleAccount) -> Series:
    registry = CollectorRegistry()
    registry.register(ThrottleCollector(account))
    text = generate_latest(registry).decode()
    return {
        (sample.name, labels(sample.labels)): sample.value
        for metric in text_string_to_metric_families(text)
        for sample in metric.samples
    }


def labels(attributes: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the labels sorted, without empty ones."""
    return tuple(sorted((name, text) for name, text in attributes.items() if text))


def observed(account: ThrottleAccount) -> Series:
    """Return the series that a Prometheus makes of the readings of OpenTelemetry's SDK."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    observe(account, provider.get_meter("tests"))
    data = reader.get_metrics_data()
    assert data is not None
    metrics = data.resource_metrics[0].scope_metrics[0].metrics
    series: Series = {}
    for metric in metrics:
        counts = isinstance(metric.data, Sum) and metric.data.is_monotonic
        name = translated(metric.name, metric.unit or "", counts=counts)
        for point in metric.data.data_points:
            texts = {key: str(text) for key, text in (point.attributes or {}).items()}
            assert isinstance(point, NumberDataPoint)
            series[name, labels(texts)] = point.value
    provider.shutdown()
    return series


def test_numbers_are_in_base_units(account: ThrottleAccount) -> None:
    """Times are in seconds; retries are of admin clients only."""
    reader = (("client_id", "etl"), ("side", "read"), ("user", "alice"))
    series = shown(account)
    assert series["kafka_client_throttled_seconds_total", reader] == 1.251
    assert series["kafka_client_throttled_responses_total", reader] == 2
    assert series["kafka_client_throttle_max_seconds", reader] == 1.001
    retries = {key: value for key, value in series.items() if "retries" in key[0]}
    name = "kafka_client_admin_quota_retries_total"
    assert retries == {(name, (("client_id", "topics"),)): 1}


def test_both_show_the_same(account: ThrottleAccount) -> None:
    """Names, labels and numbers are equal, also for hostile names."""
    assert shown(account) == observed(account)


def test_every_family_is_shown() -> None:
    """The families come in the order of the catalog, even without series, so that a registry takes one account."""
    families = [reading.family for reading in READINGS]
    assert families == list(client_families())
    described = list(ThrottleCollector(ThrottleAccount()).describe())
    names = [family.name.removesuffix("_total") for family in families]
    assert [metric.name for metric in described] == names
