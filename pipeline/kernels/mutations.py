"""What mutation quotas decide, under every candidate: token buckets, and the burst-spreading rate for comparison."""

from typing import NamedTuple

from .bucket import Buckets, take
from .compiled import Codes, Flags, Ints, kernel
from .requests import Outcomes
from .rounding import low_bits
from .spreading import Spreads, spread

TOKEN_BUCKET = 0
BURST_SPREADING = 1


class Mutations(NamedTuple):
    """Mutations in order of their charge."""

    times: Ints
    """When the controller charged them, epoch ms."""
    waits: Ints
    """How much later the broker decided on the throttle, ms: it counts as served."""
    permits: Ints
    treatments: Flags
    """`STRICT`, `PERMISSIVE` or `PROBE`."""
    entities: Codes


class MutationReplay(NamedTuple):
    """All that the decisions need; no two candidates have a bucket in common."""

    mutations: Mutations
    numbers: Codes
    """By candidate and entity: number of the bucket or rate, negative without a limit."""
    policies: Flags
    """By candidate: `TOKEN_BUCKET` or `BURST_SPREADING`."""
    buckets: Buckets
    spreads: Spreads
    outcomes: Outcomes
    entities: int


@kernel
def decide_mutations(replay: MutationReplay) -> None:
    """Decide on every mutation under every candidate."""
    count = len(replay.mutations.times)
    for candidate in range(len(replay.policies)):
        for number in range(count):
            entity = replay.mutations.entities[number]
            bucket = replay.numbers[candidate * replay.entities + entity]
            if bucket >= 0:
                _decide(replay, candidate, number, bucket)


@kernel
def _decide(replay: MutationReplay, candidate: int, number: int, bucket: int) -> None:
    mutations, outcomes = replay.mutations, replay.outcomes
    now_ms, permits = mutations.times[number], float(mutations.permits[number])
    treatment = mutations.treatments[number]
    if replay.policies[candidate] == BURST_SPREADING:
        throttle_ms, refused = spread(
            replay.spreads, bucket, permits, now_ms, treatment
        )
    else:
        throttle_ms, refused = take(replay.buckets, bucket, permits, now_ms, treatment)
    if throttle_ms == 0 and not refused:
        return
    left_ms = throttle_ms - max(0, mutations.waits[number])
    place = candidate * len(mutations.times) + number
    if throttle_ms != 0:
        outcomes.throttles[place] = max(0, low_bits(left_ms))
    outcomes.refused[place] = refused
    outcomes.noted[number] = 1
