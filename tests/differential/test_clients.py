"""Every API of Kafka, and every version of its response, against our throttled clients."""

import pytest
from tests.differential.kafka import Kafka
from tests.differential.operation import Operation
from tests.differential.wire import flag

from quotascope.clients.throttling import client_waits, has_throttle_time
from quotascope.metrics import KAFKA_4_4
from quotascope.metrics.protocol import ApiKey

pytestmark = pytest.mark.java
BEYOND = 200
"""No API has a number as high."""


def asked(kafka: Kafka, operations: list[Operation]) -> list[str]:
    """Kafka's answers about its responses."""
    kafka.send(["new responses", *(each.line() for each in operations)])
    return kafka.receive()[1:]


def known(kafka: Kafka) -> dict[str, int]:
    """Number of every API that a release has, by its name."""
    names = asked(kafka, [Operation("name", 0, (number,)) for number in range(BEYOND)])
    return {name: number for number, name in enumerate(names) if name != "none"}


def test_no_api_is_missing(kafka: Kafka) -> None:
    """Every API of Kafka is known by its name and number, and no other but those that came with 4.4."""
    ours = {api.name: api.value for api in ApiKey}
    if kafka.release < KAFKA_4_4:
        del ours["STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE"]
        del ours["UNREGISTER_CONTROLLER"]
    assert ours == known(kafka)


def test_every_version_of_every_response(kafka: Kafka) -> None:
    """For all APIs, the same versions make the client wait, and those without a throttle time in any version have none."""
    apis = [ApiKey(number) for number in known(kafka).values()]
    ranges = asked(kafka, [Operation("versions", 0, (int(api),)) for api in apis])
    responses = [
        (api, version)
        for api, (low, high) in zip(apis, map(str.split, ranges), strict=True)
        for version in range(int(low), int(high) + 1)
    ]
    answers = asked(
        kafka, [Operation("response", 0, (int(api), version)) for api, version in responses]
    )  # fmt: skip
    fields = dict.fromkeys(apis, False)
    for (api, version), answer in zip(responses, answers, strict=True):
        field, waits = answer.split()
        fields[api] |= field == "1"
        ours = flag(client_waits(api, version, kafka.release))
        assert (api, version, waits) == (api, version, ours)
    assert fields == {api: has_throttle_time(api) for api in apis}
    assert len(responses) > len(apis)
