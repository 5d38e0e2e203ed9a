"""What a node says of itself, apart from its entities."""

from tests.exporter.join.world import Numbers, World, leads

from quotascope.exporter.beans import Bean, BeanColumn


def events(mean_ms: float, count: float) -> Numbers:
    """The event queue of a controller, as Kafka's histogram tells it."""
    properties = {"type": "ControllerEventManager", "name": "EventQueueTimeMs"}
    bean = Bean.of("kafka.controller", properties)
    return {BeanColumn(bean, "Mean"): mean_ms, BeanColumn(bean, "Count"): count}


def test_the_active_controller_tells_its_event_queue() -> None:
    """Mean wait times count is the total wait."""
    (node,) = World().collect_one(leads(1), events(12.5, 40)).nodes
    assert node.controller_events == 40
    assert node.controller_event_queue_seconds == 0.5


def test_the_total_wait_never_goes_back() -> None:
    """Mean and count are not read in one instant."""
    world = World()
    world.collect_one(leads(1), events(100.0, 11))
    (node,) = world.collect_one(leads(1), events(1_000 / 11, 11)).nodes
    assert node.controller_event_queue_seconds == 1.1


def test_a_standby_controller_has_no_event_queue_to_watch() -> None:
    """Its events are of no use to whoever chooses a mutation quota."""
    (node,) = World().collect_one(leads(0), events(12.5, 40)).nodes
    assert node.controller_events is None
    assert node.controller_event_queue_seconds is None


def test_a_broker_has_no_event_queue() -> None:
    """Only controllers have the bean."""
    (node,) = World().collect_one(leads(1)).nodes
    assert node.controller_events is None
