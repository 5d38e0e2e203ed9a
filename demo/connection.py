"""A client's connection as the broker keeps it."""

from quotascope.metrics import (
    Channel,
    ChannelThrottle,
    ClientRequest,
    MuteState,
    Principal,
)


class DemoConnection:
    """
    Who is at the other end, and whether the broker reads what comes from there.

    Args:
        user: name of the principal.
        client_id: as in the header of each request.

    """

    __slots__ = ("_principal", "_throttle", "channel", "client_id")

    def __init__(self, user: str, client_id: str) -> None:
        self.channel = Channel()
        self.client_id = client_id
        self._principal = Principal(user)
        self._throttle = ChannelThrottle(self.channel)

    @property
    def is_read(self) -> bool:
        """False while a throttle lasts: what the client sends waits in the socket."""
        return self.channel.state is MuteState.NOT_MUTED

    def charge(self, thread_ms: float) -> ClientRequest:
        """Return what the quotas need to know of a request that kept a thread busy for `thread_ms`."""
        return ClientRequest(
            principal=self._principal,
            client_id=self.client_id,
            channel=self._throttle,
            thread_time_ns=round(thread_ms * 1_000_000),
        )
