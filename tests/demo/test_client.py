"""How a client reacts to what it hears."""

from quotascope.demo.cast import CreateTopics, Fetch, Response, Rhythm, Role
from quotascope.demo.simulation import DemoClient

START_MS = 1_700_000_000_000
ROLE = Role(
    user="dana",
    client_id="notebook",
    request=Fetch(size=1_000),
    thread_ms=1.0,
    rhythm=Rhythm(every_ms=100, jitter=0.0, first_ms=40),
)


def client() -> DemoClient:
    """A client before its first request."""
    return DemoClient(ROLE, START_MS)


def test_first_request() -> None:
    """The first request comes when the rhythm says so."""
    fresh = client()
    assert (fresh.due_ms, fresh.request) == (START_MS + 40, ROLE.request)


def test_pace_is_kept_in_spite_of_small_delays() -> None:
    """A request that went out a little late does not move those after it."""
    one = client()
    one.answered(Response(), START_MS + 60)
    assert one.due_ms == START_MS + 140


def test_waits_as_long_as_it_is_throttled() -> None:
    """The next request comes no earlier than the response asked for (KIP-219)."""
    one = client()
    one.answered(Response(throttle_ms=900), START_MS + 40)
    assert one.due_ms == START_MS + 940


def test_does_not_make_up_for_a_throttle() -> None:
    """What a throttle held up is not sent all at once afterwards."""
    one = client()
    one.answered(Response(throttle_ms=900), START_MS + 40)
    one.answered(Response(), START_MS + 945)
    assert one.due_ms == START_MS + 1_040
    one.answered(Response(), START_MS + 9_000)
    assert one.due_ms == START_MS + 9_100


def test_asks_again_for_what_was_not_done() -> None:
    """Refused topics are tried again right after the throttle, then the usual work goes on."""
    one = client()
    refused = CreateTopics(partitions=(3,))
    one.answered(Response(throttle_ms=10, again=refused), START_MS + 40)
    assert (one.due_ms, one.request) == (START_MS + 50, refused)
    one.answered(Response(), START_MS + 50)
    assert one.request == ROLE.request


def test_same_name_same_randomness() -> None:
    """Two runs of one client are alike."""
    role = Role(
        user="a",
        client_id="b",
        request=ROLE.request,
        thread_ms=1.0,
        rhythm=Rhythm(every_ms=100, jitter=0.5),
    )
    first, second = DemoClient(role, START_MS), DemoClient(role, START_MS)
    for one in (first, second):
        for _ in range(5):
            one.answered(Response(), one.due_ms)
    assert first.due_ms == second.due_ms
