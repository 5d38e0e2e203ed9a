import pytest

from quotascope.clients import AdminUnreachable
from quotascope.clients.accounting import ThrottleAccount
from quotascope.clients.throttled_admin.counted import counted
from quotascope.clients.throttling import ApiError, MutationAnswer

REFUSED = ApiError(89)


def test_only_what_follows_a_refusal_is_a_retry() -> None:
    """A request that is repeated because the connection was lost is not counted once more."""
    client = ThrottleAccount().client("", "topics", "admin")
    events: list[ApiError | Exception | None] = [
        AdminUnreachable(["broker:9092"], "gone"),
        REFUSED,
        AdminUnreachable(["broker:9092"], "gone"),
        REFUSED,
        None,
    ]

    def send(topics: tuple[str, ...], _: int) -> MutationAnswer[str]:
        event = events.pop(0)
        if isinstance(event, Exception):
            raise event
        return MutationAnswer(version=7, throttle_time_ms=0, results={topics[0]: event})

    sending = counted(send, client)
    retries = []
    for lost in (True, False, True, False, False):
        if lost:
            with pytest.raises(AdminUnreachable):
                sending(("a",), 100)
        else:
            sending(("a",), 100)
        retries.append(client.totals.quota_retries)
    assert retries == [0, 0, 1, 1, 2]
