"""The samples of a jmx_exporter's text that concern quotas."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from ...errors import SourceUnreadable
from ...untrusted import shown
from .kafka_2_0_0 import PREFIXES

Key = tuple[str, tuple[tuple[str, str], ...]]
"""Name and labels of a sample."""

_OTHER_RULES = (
    "kafka_server_produce",
    "kafka_server_fetch",
    "kafka_server_request_",
    "kafka_server_controllermutation",
)


def numbers_in(answer: bytes) -> tuple[list[Key], list[float]]:
    """
    The samples that concern quotas, and their numbers.

    Only their lines are parsed: there are thousands of others. Raises
    ``SourceUnreadable`` when one of them is malformed, or when this is some other text.
    """
    try:
        lines = answer.decode().split("\n")
        text = "".join(f"{line}\n" for line in lines if line.startswith(PREFIXES))
        families = list(text_string_to_metric_families(text))
    except ValueError as error:
        raise SourceUnreadable(
            f"the answer is not Prometheus text ({shown(error)}): is this a jmx_exporter?"
        ) from error
    if not text:
        _check_rules(lines)
    samples = [sample for family in families for sample in family.samples]
    return (
        [(sample.name, tuple(sample.labels.items())) for sample in samples],
        [sample.value for sample in samples],
    )


def _check_rules(lines: list[str]) -> None:
    """Nothing about quotas may well be true, unless other rules or other software say so."""
    if any(line.startswith(_OTHER_RULES) for line in lines):
        raise SourceUnreadable(
            "this jmx_exporter has other rules than kafka-2_0_0.yml, whose quota metrics begin with kafka_server_quota_: "
            "add that file's three quota rules to it, before all others"
        )
    if not any(line.startswith("kafka_") for line in lines):
        raise SourceUnreadable(
            "the answer holds no metric of Kafka: is this the jmx_exporter of a broker, with the rules of kafka-2_0_0.yml?"
        )
