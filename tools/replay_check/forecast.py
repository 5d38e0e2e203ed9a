"""What a change of quotas would do to the clients of a log: the replay that is compared with a measurement afterwards."""

from collections.abc import Mapping

from quotascope.metrics import QuotaType
from quotascope.pipeline.candidates import Candidate
from quotascope.pipeline.followed import followed
from quotascope.pipeline.history import history_of
from quotascope.pipeline.request_log.mutations import MutationLedger
from quotascope.pipeline.whatif import Mode, Settings, replay

from .log import RequestLog

Key = tuple[str, str, QuotaType]
"""User, client id and quota."""


def forecast(log: RequestLog, candidate: Candidate) -> Mapping[Key, float]:
    """Throttled seconds by client and quota under a candidate, in a closed loop: clients that are held back send later."""
    requests = MutationLedger().resolve(log.requests).requests
    settings = Settings(release=followed(None, log=log.release).release)
    results = replay(history_of(requests), [candidate], Mode.CLOSED_LOOP, settings)
    kinds = {kind.label: kind for kind in QuotaType}
    return {
        (row["user"], row["client_id"], kinds[row["quota_type"]]): row["throttled_ms"]
        / 1000
        for row in results.to_pylist()
    }
