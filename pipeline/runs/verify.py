"""Comparison of a shadow's predicted throttles with the real throttles since its limits were set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.catalog.family import OVERFLOW
from quotascope.metrics.kafka.entities import spelled
from quotascope.pages.baseline import HELD_BACK_LOGGED, legend_of_bounds, lower_bound
from quotascope.pages.report import Cell, Mark, Report, Rows, csv_of
from quotascope.pages.words import moment, period, seconds, shown

from ..errors import NoTable, PipelineError
from ..history.store import History
from ..rates import span_ms
from ..table import Table
from .shadow import SHADOW

EntityKey = tuple[str, str, str]
"""User, client-id and cluster. The cluster is empty for a log, which has only one."""
_NEEDED: Final = ("timestamp", "user", "client_id", "throttle_ms", "refused")
_MOST: Final = 50
"""Number of entities that a terminal shows."""
_FIGURES: Final = ("throttled", "seconds", "refused")
_COLUMNS: Final = (
    *("user", "client_id", "cluster"),
    *(f"{when}_{figure}" for when in ("predicted", "happened") for figure in _FIGURES),
    *("held_back", "agrees"),
)


class NotVerified(PipelineError):
    """There is nothing to compare."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Throttles of an entity in a period."""

    throttled: int = 0
    """Number of throttled requests, or of steps at which a throttle time in Prometheus is above 0."""
    seconds: float = 0.0
    """Sum of the throttle times of requests, or of those in Prometheus at all steps."""
    refused: int = 0
    """Number of refused requests."""

    def scaled(self, scale: float) -> Figures:
        """Return the figures multiplied by a number, such as the ratio of the lengths of two periods."""
        return Figures(round(self.throttled * scale), self.seconds * scale, round(self.refused * scale))


ByEntity = Mapping[EntityKey, Figures]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Comparison of one entity that the shadow limits."""

    user: str
    client_id: str
    cluster: str = ""
    predicted: Figures
    happened: Figures
    held_back: bool = False
    """
    True if a quota throttled the entity in the period of the prediction.

    It would have used more, so that the predicted figures are lower bounds.
    """

    @property
    def agrees(self) -> bool:
        """
        True if the prediction that the entity is throttled or refused, or is not, came true.

        If the prediction is a lower bound, a throttle that was not predicted agrees, too.
        """
        predicted, happened = (
            figures.throttled > 0 or figures.refused > 0 for figures in (self.predicted, self.happened)
        )
        return predicted == happened or (self.held_back and happened)

    @property
    def within_bound(self) -> bool:
        """True if the throttle time is above a predicted lower bound, so that the prediction has no known error."""
        return self.held_back and self.happened.seconds >= self.predicted.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Times of a comparison, epoch ms."""

    begin: int
    """Begin of the period of the prediction."""
    since: int
    """Time when the limits were set."""
    until: int
    """End of the period with the limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """All entities, those with the largest difference of throttle times first."""

    shadow: str
    times: Times
    entities: tuple[Verified, ...]

    def off(self) -> float:
        """
        Return the error of the total throttle time, as a share of the larger one; 0 if both are 0.

        Entities above a lower bound are left out.
        """
        comparable = [entity for entity in self.entities if not entity.within_bound]
        predicted_s = sum(entity.predicted.seconds for entity in comparable)
        happened_s = sum(entity.happened.seconds for entity in comparable)
        return abs(predicted_s - happened_s) / max(predicted_s, happened_s, 1e-9)

    def agrees(self, tolerance: float) -> bool:
        """Return whether the same entities are throttled, and the total throttle time is off by at most `tolerance`."""
        return self.off() <= tolerance and all(entity.agrees for entity in self.entities)


def report(verification: Verification, source: str, tolerance: float) -> Report:
    """
    Report the figures of the prediction beside those since the limits are set, the entities first that differ most.

    Args:
        verification: the comparison.
        source: the folder or address that was read.
        tolerance: greatest error of the total throttle time, in percent.

    """
    rows = []
    for entity in verification.entities:
        predicted, happened = entity.predicted, entity.happened
        name = spelled(entity.user, entity.client_id)
        figures = (
            (f"{predicted.throttled:,}", f"{happened.throttled:,}"),
            (seconds(predicted.seconds), seconds(happened.seconds)),
            (f"{predicted.refused:,}", f"{happened.refused:,}"),
        )
        rows.append([
            f"{name} on {shown(entity.cluster)}" if entity.cluster else name,
            *((
                f"{lower_bound(predicted_text, held_back=entity.held_back, short=True)} → "
                f"{happened_text}") for predicted_text, happened_text in figures),
            "" if entity.agrees else Cell("differs", Mark.WORSE),
        ])  # fmt: skip
    differing = sum(not entity.agrees for entity in verification.entities)
    summary = (
        f"the throttle time is off by {100 * verification.off():.1f} %, {differing} of {len(rows)} entities differ"
    )
    return Report(
        title=f"Shadow {shown(verification.shadow)}: predicted → since it is set",
        where=(
            f"{period(source, verification.times.begin, verification.times.until)}; set "
            f"{moment(verification.times.since)}"
        ),
        headline=(f"{'agrees' if verification.agrees(tolerance / 100) else 'differs'}: {summary}",),
        blocks=(
            Rows(heads=("entity", "#throttled", "#throttle time", "#refused", "="), rows=rows, terminal_rows=_MOST),
        ),
        notes=legend_of_bounds([HELD_BACK_LOGGED] if any(entity.held_back for entity in verification.entities) else []),
    )


def document(verification: Verification, tolerance: float) -> dict[str, Any]:
    """Return the comparison for programs; times are ms since 1970, throttle times seconds."""
    return {
        "agrees": verification.agrees(tolerance / 100),
        "off_percent": round(100 * verification.off(), 3),
        "tolerance_percent": tolerance,
        **asdict(verification),
    }


def as_csv(verification: Verification) -> str:
    """Write a row for each entity."""
    return csv_of(_COLUMNS, map(_record, verification.entities))


def _record(entity: Verified) -> dict[str, Any]:
    """Return an entity by the names of `_COLUMNS`."""
    figures = {
        f"{when}_{name}": value
        for when, values in (("predicted", entity.predicted), ("happened", entity.happened))
        for name, value in asdict(values).items()
    }
    return {
        "user": entity.user,
        "client_id": entity.client_id,
        "cluster": entity.cluster,
        **figures,
        "held_back": entity.held_back,
        "agrees": entity.agrees,
    }


def times_of(since_ms: int, until_ms: int, begin_ms: int | None) -> Times:
    """Return the times of a comparison; by default both periods are equally long. Raises `NotVerified`."""
    if begin_ms is None:
        begin_ms = since_ms - (until_ms - since_ms)
    if not begin_ms < since_ms < until_ms:
        about = "the limits must be set after the prediction began, and before now"
        raise NotVerified(f"{about}: check --since, --until and --from")
    return Times(begin=begin_ms, since=since_ms, until=until_ms)


def verify_log(folder: str, shadow: str, since_ms: int, until_ms: int | None, begin_ms: int | None) -> Verification:
    """
    Compare the predictions in the table `shadow` of a folder with the throttles that were logged after limits were set.

    The period of the prediction ends with the last request that the stream decided before. Without `begin_ms`, it does
    not begin before the stream: after its first step, or with the first request of the history if there is one step.

    Raises:
        NotVerified: there is no prediction, or no request since.
        NoHistory: there is no history.
        PipelineError: a table cannot be read.

    """
    history, timestamp = History.open(folder), pc.field("timestamp")
    files = [file for file in history.detail.files() if file.last_ms is None or file.last_ms >= since_ms]
    requests = history.detail.read(_NEEDED, files=files).filter(timestamp > since_ms)
    if not len(requests):
        raise NotVerified(f"{folder}: no request was read since the limits were set")
    times = times_of(since_ms, until_ms or pc.max(requests["timestamp"]).as_py(), begin_ms)
    try:
        rows = Table.open(f"{folder.rstrip('/')}/shadow", schema=SHADOW).read()
    except NoTable as error:
        raise NotVerified(
            f"{folder}: no shadow was decided in it; `quotascope shadow stream --into` does that"
        ) from error
    rows = rows.filter((pc.field("candidate") == shadow) & (timestamp <= times.since))
    if len(rows):  # only the decisions under the last rules
        rows = rows.filter(pc.field("rules") == rows.sort_by("timestamp")["rules"][-1])
        steps: Any = rows.group_by("step").aggregate([("timestamp", "max")]).sort_by("step")
        stream_begin = steps["timestamp_max"][0].as_py() if len(steps) > 1 else span_ms(history)[0] - 1
        times = times if begin_ms is not None else replace(times, begin=max(times.begin, stream_begin))
        rows = rows.filter((timestamp > times.begin) & (pc.field("requests") > 0))
    if not len(rows):
        raise NotVerified(f"{folder}: shadow {shadow[:60]!r} decided no request in that time")
    predicted_ms = pc.max(rows["timestamp"]).as_py() - times.begin
    predicted = _summed(rows, [rows[name] for name in ("throttled_requests", "throttled_ms", "refused_requests")])
    requests = requests.filter(timestamp <= times.until)
    throttles: Any = pc.max_element_wise(requests["throttle_ms"], pa.scalar(0, pa.int32()))
    logged_sums = _summed(requests, [pc.greater(throttles, pa.scalar(0)), throttles, requests["refused"]])
    held = rows.filter(pc.field("held_back_requests") > 0).select(["user", "client_id"]).to_pylist()
    held_back = {(row["user"], row["client_id"], "") for row in held}
    scales = {"": (times.until - times.since) / predicted_ms}  # a history is of a cluster without a name
    return compared(shadow, times, predicted, logged_sums, scales, held_back)


def _summed(rows: pa.Table, figures: Sequence[Any]) -> ByEntity:
    """Return the sums of throttled requests, throttle times in ms, and refused requests by entity."""
    key, names = ["user", "client_id"], ["throttled", "ms", "refused"]
    table: Any = pa.table([*(rows[name] for name in key), *figures], [*key, *names])
    sums = table.group_by(key).aggregate([(name, "sum") for name in names]).to_pylist()
    return {
        (row["user"], row["client_id"], ""): Figures(row["throttled_sum"], row["ms_sum"] / 1_000, row["refused_sum"])
        for row in sums
    }


def compared(
    shadow: str,
    times: Times,
    predicted: ByEntity,
    happened: ByEntity,
    scales: Mapping[str, float],
    held_back: AbstractSet[EntityKey],
) -> Verification:
    """
    Return the comparison of all entities that the shadow limits.

    Args:
        shadow: name of the shadow.
        times: times of the comparison.
        predicted: predicted figures by entity.
        happened: figures since the limits were set, by entity.
        scales: factor for the predicted figures by cluster: the ratio of the lengths of both periods.
        held_back: entities that a quota throttled in the period of the prediction.

    """
    entities = [
        Verified(
            user=user,
            client_id=client_id,
            cluster=cluster,
            predicted=figures.scaled(scales.get(cluster, 1.0)),
            happened=happened.get((user, client_id, cluster), Figures()),
            held_back=(user, client_id, cluster) in held_back,
        )
        for (user, client_id, cluster), figures in predicted.items()
        if user != OVERFLOW
    ]

    def order(entity: Verified) -> tuple[object, ...]:
        """Return the key by which entities that differ, and large differences, are first."""
        difference_s = abs(entity.predicted.seconds - entity.happened.seconds)
        return entity.agrees, -difference_s, entity.cluster, entity.user, entity.client_id

    return Verification(shadow=shadow, times=times, entities=tuple(sorted(entities, key=order)))
