"""What a Jolokia agent is asked for."""

import json

from quotascope.exporter.sources.jolokia import BY_TYPE, bulk_request


def test_kafkas_own_domain_is_read_at_once() -> None:
    """All beans are looked at once, by the names of attributes that no other beans have."""
    items = json.loads(bulk_request())
    assert [item["mbean"] for item in items] == [
        "kafka.server:*",
        "kafka.network:type=RequestMetrics,name=ThrottleTimeMs,*",
        "kafka.network:type=RequestMetrics,name=ErrorsPerSec,error=THROTTLING_QUOTA_EXCEEDED,*",
        "kafka.controller:type=KafkaController,name=ActiveControllerCount,*",
        "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs,*",
    ]
    wanted = items[0]["attribute"]
    assert {"byte-rate", "throttle-time", "request-time", "StartTimeMs"} <= {*wanted}
    assert not {"Count", "Mean", "Value"} & {*wanted}
    assert len({*wanted}) == len(wanted)


def test_one_request_reads_all_quota_types_and_the_node() -> None:
    """An agent that cannot do that is asked once, for patterns only, so that every item has the same shape."""
    items = json.loads(bulk_request(BY_TYPE))
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
    named = {request.pattern: request.attributes for request in BY_TYPE}
    assert named["kafka.server:type=Produce,*"] == ()
    assert named["kafka.network:type=RequestMetrics,name=ThrottleTimeMs,*"] == (
        "Mean",
        "Count",
    )
    assert named["kafka.server:type=app-info,*"] == ("StartTimeMs",)


def test_no_attribute_is_asked_for_twice() -> None:
    """Listeners and addresses have a rate of the same name."""
    named = {request.pattern: request.attributes for request in BY_TYPE}
    assert named["kafka.server:type=socket-server-metrics,*"] == (
        "broker-connection-accept-rate",
        "connection-accept-rate",
        "connection-accept-throttle-time",
        "ip-connection-accept-throttle-time",
    )
