"""Jolokia and a jmx_exporter, with the rules of kafka-2_0_0.yml or with our own, agree on the same broker."""

from collections.abc import Iterator

import pytest
from tests.cluster.cluster import Cluster
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for
from tests.integration.page import Page
from tests.integration.readings import OWN_PEAK, between

pytestmark = pytest.mark.real

Series = tuple[str, tuple[tuple[str, str], ...]]

MOVING = (
    "kafka_quota_produce_bytes_per_second",
    "kafka_quota_fetch_bytes_per_second",
    "kafka_quota_request_threads",
    "kafka_quota_controller_mutations_per_second",
    "kafka_quota_controller_mutation_tokens",
    "kafka_quota_controller_mutation_burst_used_ratio",
    "kafka_quota_throttle_time_seconds",
    "kafka_quota_utilization_ratio",
    "kafka_quota_throttling_errors_total",
)
STANDING = (
    "kafka_quota_produce_limit_bytes_per_second",
    "kafka_quota_fetch_limit_bytes_per_second",
    "kafka_quota_request_limit_threads",
    "kafka_quota_controller_mutation_limit_per_second",
    "kafka_quota_controller_mutation_burst_tokens",
    "kafka_quota_rule_info",
    "kafka_quota_throttle_cause_info",
)


OWN_RULES = "own_rules"
DIALECTS = {"jmx_exporter": "kafka_2_0_0", OWN_RULES: "quotascope_rules"}


@pytest.fixture(scope="module", params=DIALECTS)
def rules(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def jmx_exporter(kafka: Cluster, rules: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    """Yield an exporter of the shared broker that reads its jmx_exporter, and does not get the node's id."""
    settings = settings_for(kafka.brokers, kafka.admin)
    url = getattr(kafka.brokers[0].agents, rules)
    settings["sources"] = [{"dialect": "jmx_exporter", "url": url}]
    with serving(tmp_path_factory.mktemp("jmx") / "serve", settings) as exporter:
        yield exporter


def test_same_entities_limits_and_rules(scene: Exporter, jmx_exporter: Exporter) -> None:
    """Both sources give the same entities with the same names, limits, rules and causes."""

    def same() -> None:
        jolokia_page, jmx_page = scene.page(), jmx_exporter.page()
        assert _series(jolokia_page, *STANDING) == _series(jmx_page, *STANDING)
        assert _series(jolokia_page, *MOVING).keys() == _series(jmx_page, *MOVING).keys()

    eventually(same)


def test_same_numbers(scene: Exporter, jmx_exporter: Exporter, rules: str) -> None:
    """
    Each number of one source lies between two readings by the other, and is equal where these are.

    Our own rules give all there are.
    """
    page = scene.page()
    ours = sorted(name for name in page.names() if name.startswith("kafka_quota_") and name != OWN_PEAK)
    names = ours if rules == OWN_RULES else MOVING
    open_questions = set(_series(page, *names))

    def same() -> None:
        series_before = _series(scene.page(), *names)
        series_of_jmx = _series(jmx_exporter.page(), *names)
        series_after = _series(scene.page(), *names)
        open_questions.difference_update(
            [
                series
                for series in open_questions
                if between(series_of_jmx.get(series), series_before.get(series), series_after.get(series))
            ]
        )
        assert not open_questions, {
            series: (series_before.get(series), series_of_jmx.get(series), series_after.get(series))
            for series in open_questions
        }

    eventually(same, seconds=60)


def test_the_dialect_is_reported(scene: Exporter, jmx_exporter: Exporter, rules: str) -> None:
    """The dialect is found from the page, where the configuration leaves it open."""
    expected = "quotascope_rules" if rules == OWN_RULES else "kafka_2_0_0"
    for exporter, dialect in ((scene, "jolokia"), (jmx_exporter, expected)):
        (sample,) = exporter.page().series("quotascope_source_dialect_info")
        assert sample.labels["dialect"] == dialect


def _series(page: Page, *names: str) -> dict[Series, float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for name in names
        for sample in page.series(name)
    }
