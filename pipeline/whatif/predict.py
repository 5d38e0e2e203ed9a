"""What one candidate would have told every single request, for comparison with what was told."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..candidates import Candidate
from ..kernels.compiled import Ints
from ..kernels.predicted import Predicted, predicted
from ..kernels.requests import KINDS
from .frame import Column, Frame, array
from .mode import Settings
from .open_replay import open_loop
from .plan import plan_of
from .replay import frames, needed
from .resolution import TYPES, Rules
from .results import PREDICTIONS


def predict(
    history: pa.Table, candidate: Candidate, settings: Settings | None = None
) -> pa.Table:
    """
    The predicted throttle of every request, in open loop; rows are those of `PREDICTIONS`, in the order of the history.

    Raises `PipelineError` when a column is missing.
    """
    rules = Rules([candidate])
    chosen = Settings() if settings is None else settings
    parts = [PREDICTIONS.empty_table()]
    for frame, shapes, rows in frames(needed(history), rules, chosen):
        plan = plan_of(rules, shapes, frame)
        verdicts = predicted(open_loop(plan, frame, chosen))
        parts.append(_table(frame, rows, verdicts))
    return pa.concat_tables(parts).sort_by("row").combine_chunks()


def _table(frame: Frame, rows: Ints, verdicts: Predicted) -> pa.Table:
    pairs = frame.requests.pairs
    entities = array(frame.pair_entities[pairs])
    strongest = np.maximum(verdicts.own_ms, verdicts.request_ms)
    columns = {
        "row": rows,
        "user": frame.entities.users.take(entities),
        "client_id": frame.entities.client_ids.take(entities),
        "broker": frame.brokers.take(array(frame.pair_brokers[pairs])),
        "timestamp": frame.requests.times,
        "api_key": frame.api_keys,
        "quota_type": _types(frame.requests.kinds),
        "own_ms": verdicts.own_ms,
        "request_ms": verdicts.request_ms,
        "throttle_ms": np.maximum(0, strongest),
        "throttled_by": _types(verdicts.throttled_by),
        "rejected": verdicts.refused.astype(bool),
        "reported_ms": frame.throttles,
    }
    return pa.table(columns, schema=PREDICTIONS)


def _types(kinds: np.ndarray[tuple[int], np.dtype[np.int8]]) -> Column:
    labels = array([TYPES[kind].label for kind in range(KINDS)])
    return labels.take(pa.array(kinds, mask=kinds < 0))
