"""What a Jolokia agent is asked for."""

import json

from quotascope.exporter.sources.jolokia.request import REQUESTS, bulk_request


def test_one_request_reads_all_quota_types_and_the_node() -> None:
    """A node is asked once, for patterns only, so that every item has the same shape."""
    items = json.loads(bulk_request())
    assert [item["mbean"] for item in items] == [
        "kafka.server:type=Produce,*",
        "kafka.server:type=Fetch,*",
        "kafka.server:type=Request,*",
        "kafka.server:type=ControllerMutation,*",
        "kafka.network:type=RequestMetrics,name=ThrottleTimeMs,*",
        "kafka.network:type=RequestMetrics,name=ErrorsPerSec,error=THROTTLING_QUOTA_EXCEEDED,*",
        "kafka.controller:type=KafkaController,name=ActiveControllerCount,*",
        "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs,*",
        "kafka.server:type=app-info,*",
        "kafka.server:type=socket-server-metrics,*",
        "kafka.server:type=LeaderReplication,*",
        "kafka.server:type=FollowerReplication,*",
        "kafka.server:type=AlterLogDirsReplication,*",
        "kafka.server:type=RLMCopy,*",
        "kafka.server:type=RLMFetch,*",
        "kafka.server:type=RemoteLogManager,*",
    ]
    assert {item["type"] for item in items} == {"read"}


def test_attributes_are_named_where_a_bean_has_others() -> None:
    """A histogram has eleven attributes, of which two are wanted; a quota bean has only wanted ones."""
    named = {request.pattern: request.attributes for request in REQUESTS}
    assert named["kafka.server:type=Produce,*"] == ()
    assert named["kafka.network:type=RequestMetrics,name=ThrottleTimeMs,*"] == (
        "Mean",
        "Count",
    )
    assert named["kafka.server:type=app-info,*"] == ("StartTimeMs",)


def test_no_attribute_is_asked_for_twice() -> None:
    """Listeners and addresses have a rate of the same name."""
    named = {request.pattern: request.attributes for request in REQUESTS}
    assert named["kafka.server:type=socket-server-metrics,*"] == (
        "broker-connection-accept-rate",
        "connection-accept-rate",
        "connection-accept-throttle-time",
        "ip-connection-accept-throttle-time",
    )
