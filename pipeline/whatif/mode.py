"""How arrivals react to throttles in a replay."""

from dataclasses import dataclass
from enum import Enum

from quotascope.metrics import NEWEST_RELEASE, KafkaRelease


class Mode(Enum):
    """
    How arrivals react to throttles.

    Both charge what a broker charges, at the time of the decision, and the network thread's time at completion.
    """

    OPEN_LOOP = "open_loop"
    """
    Everything arrives and is answered as logged; only the throttle is the candidate's.

    Clients do not slow down, so the figures are upper bounds: throttles grow while the excess lasts. What a windowed rate measures
    does not depend on the limit. A Fetch that the log shows as answered empty was charged and given back, here as well; one that was
    answered keeps its charge. A mutation that the log shows as refused is checked and not charged, but for what it was granted before: its retry
    is in the log, too.
    """

    CLOSED_LOOP = "closed_loop"
    """
    A throttled connection's next request comes later, as behind a muted channel (KIP-219).

    The gap to the next request of a connection is max(think time, mute + reaction). The think time is the logged gap, less the throttle
    that was reported in the log; the reaction is the shortest time that a connection took after a reported throttle, or 1 ms. Requests keep their size and order, and nothing is dropped: what was held back pushes all that follows. A Fetch
    that is throttled is answered empty, given back, and asked for again when the mute is over; a refused mutation likewise (the Admin
    client's default). Repeated, they are measured, but their thread time is not charged once more: what a repetition takes is not in the
    log, and mostly little. A Fetch above what all whole windows allow is fetched in parts of that size, as brokers cut it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a replay takes beside history and candidates."""

    per_broker: bool = False
    """Whether results are kept apart by broker rather than added up."""

    drain_ms: int = 3_600_000
    """Closed loop: how long after its last logged request on a broker the replay of an entity may go on, in ms."""

    release: KafkaRelease = NEWEST_RELEASE
    """Of the brokers: how long throttles above 24.8 days are."""

    rows_at_once: int = 1 << 20
    """About how many requests are replayed at once, in 0.65 to 1 kB of memory each; more where a group has more."""

    cells_at_once: int = 1 << 18
    """About how many clients times candidates are replayed at once, in 1 kB of memory each; more where a group has more."""
