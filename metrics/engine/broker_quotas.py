"""A broker's handling of quotas for each response (Kafka: `KafkaApis`, `RequestHandlerHelper`)."""

from dataclasses import dataclass

from ..kafka.numbers import trunc_i32
from ..kafka.principal import Principal
from .combination import (
    Decision,
    combine_controller,
    combine_fetch,
    combine_forwarded_response,
    combine_produce,
    combine_request,
)
from .mutation_quota import MutationQuota
from .quota_factory import QuotaManagers
from .throttle_callback import ThrottleCallback


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """A request as far as quotas are concerned."""

    principal: Principal
    """Who sent it; behind an envelope the original sender."""

    client_id: str
    """As in its header, "" for null; behind an envelope the original one."""

    channel: ThrottleCallback
    """Mutes and unmutes the connection it came over."""

    thread_time_ns: int = 0
    """Time of the handler threads up to now, in ns; waiting does not count."""

    forwarded: bool = False
    """Whether another broker forwarded it, which then does the muting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """One moment on the two clocks of a broker."""

    ms: int
    """Epoch ms, for what is measured."""

    ns: int
    """Monotonic ns, for deadlines."""


class BrokerQuotas:
    """
    Records what a response costs, mutes the channel if need be, and says what to answer.

    Call it when a response is ready and before it is sent: the data has been written or read by then, and only later
    requests of the client suffer (KIP-219).
    """

    def __init__(self, managers: QuotaManagers) -> None:
        self._managers = managers

    def produce(self, request: ClientRequest, size: int, now: Instant, *, acks: int, failed: bool = False) -> Decision:
        """
        Account for a Produce.

        With `acks=0` there is no response: the thread time counts as exempt, unless the request `failed` and the
        connection is closed for it.

        Args:
            request: of the client.
            size: bytes of header and body, without the 4 of the frame's length.
            now: when the response is ready.
            acks: as in the request.
            failed: whether a partition was not written.

        """
        bandwidth_ms = self._managers.produce.maybe_record_and_get_throttle_time(
            request.principal, request.client_id, size, now.ms
        )
        request_ms = self._record_request(request, now) if acks else 0
        decision = combine_produce(bandwidth_ms, request_ms, acks=acks)
        self._mute(request, decision, now)
        if not acks and not failed:
            self.exempt(request, now)
        return decision

    def fetch(self, request: ClientRequest, size: int, now: Instant) -> Decision:
        """
        Account for a consumer's Fetch or ShareFetch with `size` bytes of response, before any down-conversion.

        With `Decision.unrecord_fetch` the response must be sent empty. Its size was taken back already, also if no
        Fetch quota exists: then the client's Fetch rate turns negative, as in Kafka.
        """
        fetch = self._managers.fetch
        who = request.principal, request.client_id
        request_ms = self._record_request(request, now)
        bandwidth_ms = fetch.maybe_record_and_get_throttle_time(*who, size, now.ms)
        decision = combine_fetch(bandwidth_ms, request_ms)
        if decision.unrecord_fetch:
            fetch.unrecord(*who, size, now.ms)
        self._mute(request, decision, now)
        return decision

    def max_fetch_bytes(self, request: ClientRequest, wanted: int, now: Instant) -> int:
        """
        Return how many bytes a Fetch may read at most, so that it alone does not exceed a whole window.

        `wanted` is the smaller of the request's and the broker's `fetch.max.bytes`. The answer is 0 if
        `quota.window.num` is 1.
        """
        max_bytes = self._managers.fetch.max_value_in_quota_window(request.principal, request.client_id, now.ms)
        return min(wanted, trunc_i32(max_bytes))

    def other(self, request: ClientRequest, now: Instant, *, cluster_authorization_failed: bool = False) -> Decision:
        """Account for any other response of a client's API, errors included."""
        request_ms = self._record_request(request, now)
        decision = combine_request(
            request_ms, forwarded=request.forwarded, cluster_authorization_failed=cluster_authorization_failed
        )
        self._mute(request, decision, now)
        return decision

    def controller(self, request: ClientRequest, quota: MutationQuota, now: Instant) -> Decision:
        """Account for a controller mutation that was charged to `quota`, on the node that ran it."""
        decision = combine_controller(
            quota.throttle_time_ms(now.ms), self._record_request(request, now), forwarded=request.forwarded
        )
        self._mute(request, decision, now)
        return decision

    def forwarded_response(self, request: ClientRequest, controller_ms: int, now: Instant) -> Decision:
        """Account for a response that came back from the controller with the throttle time `controller_ms`."""
        request_ms = self._record_request(request, now)
        decision = combine_forwarded_response(controller_ms, request_ms)
        self._mute(request, decision, now)
        return decision

    def exempt(self, request: ClientRequest, now: Instant) -> None:
        """
        Account for a request that no quota applies to.

        Those are successful ones among brokers: a follower's Fetch, WriteTxnMarkers, AlterPartition, the Raft APIs and
        the like; and their errors, unless the cluster authorization failed.
        """
        self._managers.request.maybe_record_exempt(request.thread_time_ns, now.ms)

    def _record_request(self, request: ClientRequest, now: Instant) -> int:
        return self._managers.request.maybe_record_request(
            request.principal, request.client_id, request.thread_time_ns, now.ms
        )

    def _mute(self, request: ClientRequest, decision: Decision, now: Instant) -> None:
        if decision.throttled_by is None:
            return
        self._managers.of(decision.throttled_by).throttle(
            request.principal,
            request.client_id,
            decision.throttle_time_ms,
            request.channel,
            now_ms=now.ms,
            now_ns=now.ns,
        )
