from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics
from prometheus_client.parser import text_string_to_metric_families
from tests.spark_listener.exposition.jobs import hostile, job, scraped

from quotascope.metrics.catalog import job_families
from quotascope.spark_listener.exposition import JobCollector
from quotascope.spark_listener.job import JobSnapshot


def test_families_come_in_the_order_of_the_catalogue() -> None:
    """All of them, with type and help."""
    shown = list(JobCollector(lambda: [job()]).collect())
    told = [(metric.type, metric.documentation) for metric in shown]
    assert told == [(family.type.value, family.help) for family in job_families()]


def test_a_registry_knows_them_before_there_is_a_job() -> None:
    """Another collector cannot take their names."""
    described = {metric.name for metric in JobCollector(list).describe()}
    assert described == {
        family.name.removesuffix("_total") for family in job_families()
    }


def test_the_cluster_is_a_label_of_every_series() -> None:
    """As on the exporter's page, so that both can be joined."""
    for _, labels in scraped(job(), cluster="prod"):
        assert dict(labels)["cluster"] == "prod"


def test_hostile_names_come_back_from_the_page_as_they_were() -> None:
    """Quotes, line ends and markup in names end no line and no label, and the page can be read in both formats."""
    registry = CollectorRegistry()
    registry.register(JobCollector(lambda: [hostile()]))
    text = generate_latest(registry).decode()
    open_text: bytes = open_metrics(registry)  # type: ignore[no-untyped-call]
    assert open_text.endswith(b"# EOF\n")
    read = {
        (
            sample.name,
            tuple(sorted((k, v) for k, v in sample.labels.items() if v)),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert read == scraped(hostile())


def test_a_scrape_is_of_one_moment() -> None:
    """The books are asked once, whatever the number of families."""
    asked = []

    def snapshots() -> list[JobSnapshot]:
        asked.append(1)
        return [job()]

    registry = CollectorRegistry(auto_describe=False)
    registry.register(JobCollector(snapshots))
    generate_latest(registry)
    assert len(asked) == 1
