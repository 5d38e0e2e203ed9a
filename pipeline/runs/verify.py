"""What a shadow predicted, beside what the brokers did since its limits are set."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.catalog.family import OVERFLOW

from ..errors import NoTable, PipelineError
from ..history.store import History
from ..rates import span_ms
from ..table import Table
from .shadow import SHADOW

_Key = tuple[str, str, str]
"""User, client-id and cluster, which is empty for a log: it is of one."""
_TIMEOUT_S: Final = 30.0
_MOST_BYTES: Final = 64 << 20
"""Of an answer: about 400,000 entities."""
_NEEDED: Final = ("timestamp", "user", "client_id", "throttle_ms", "refused")
_ACTED: Final = 'kafka_quota_throttle_time_seconds{user!="__overflow__"}'


class NotVerified(PipelineError):
    """There is nothing to compare."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Throttles of an entity in some time."""

    throttled: int = 0
    """Requests, or of Prometheus samples."""
    seconds: float = 0.0
    """Throttle time, or of Prometheus its sum over samples."""
    refused: int = 0
    """Requests."""

    def scaled(self, scale: float) -> Figures:
        """The same over another time."""
        return Figures(round(self.throttled * scale), self.seconds * scale, round(self.refused * scale))


_ByEntity = Mapping[_Key, Figures]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """An entity that the shadow limits."""

    user: str
    client_id: str
    cluster: str = ""
    predicted: Figures
    happened: Figures

    @property
    def agrees(self) -> bool:
        """Whether it was throttled or refused as predicted, or was not."""
        predicted, happened = (each.throttled > 0 or each.refused > 0 for each in (self.predicted, self.happened))
        return predicted == happened


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When the limits were set, and from when and until when figures count; epoch ms."""

    begin: int
    since: int
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """All entities, those with the largest difference of throttle times first."""

    shadow: str
    times: Times
    entities: tuple[Verified, ...]

    def off(self) -> float:
        """How far the total throttle time is off, as a share of the larger one; 0 where both are 0."""
        before = sum(each.predicted.seconds for each in self.entities)
        after = sum(each.happened.seconds for each in self.entities)
        return abs(before - after) / max(before, after, 1e-9)

    def agrees(self, tolerance: float) -> bool:
        """Whether the same entities are throttled, and the total throttle time is off by no more than that share."""
        return self.off() <= tolerance and all(each.agrees for each in self.entities)


def times_of(since_ms: int, until_ms: int, begin_ms: int | None) -> Times:
    """The times; as much before as after unless the begin is given. Raises `NotVerified`."""
    begin_ms = 2 * since_ms - until_ms if begin_ms is None else begin_ms
    if not begin_ms < since_ms < until_ms:
        about = "the limits must be set after the prediction began, and before now"
        raise NotVerified(f"{about}: check --since, --until and --from")
    return Times(begin=begin_ms, since=since_ms, until=until_ms)


def verify_log(folder: str, shadow: str, since_ms: int, until_ms: int | None, begin_ms: int | None) -> Verification:
    """
    Compare the table `shadow` of a folder before the limits were set with the logged throttles after that.

    The prediction ends with the last request that the stream decided. Unless its begin is given, it begins no earlier than with the stream:
    after the first step, or where there is only one with the first request of the history.

    Raises:
        NotVerified: there is no prediction, or no request since.
        NoHistory: there is no history.
        PipelineError: a table cannot be read.

    """
    history, at = History.open(folder), pc.field("timestamp")
    files = [each for each in history.detail.files() if each.last is None or each.last >= since_ms]
    requests = history.detail.read(_NEEDED, files=files).filter(at > since_ms)
    if not len(requests):
        raise NotVerified(f"{folder}: no request was read since the limits were set")
    times = times_of(since_ms, until_ms or pc.max(requests["timestamp"]).as_py(), begin_ms)
    try:
        rows = Table.open(f"{folder.rstrip('/')}/shadow", schema=SHADOW).read()
    except NoTable as error:
        raise NotVerified(
            f"{folder}: no shadow was decided in it; `quotascope shadow stream --into` does that"
        ) from error
    rows = rows.filter((pc.field("candidate") == shadow) & (at <= times.since))
    if len(rows):  # those of the last rules only
        rows = rows.filter(pc.field("rules") == rows.sort_by("timestamp")["rules"][-1])
        steps: Any = rows.group_by("step").aggregate([("timestamp", "max")]).sort_by("step")
        known = steps["timestamp_max"][0].as_py() if len(steps) > 1 else span_ms(history)[0] - 1
        times = times if begin_ms is not None else replace(times, begin=max(times.begin, known))
        rows = rows.filter((at > times.begin) & (pc.field("requests") > 0))
    if not len(rows):
        raise NotVerified(f"{folder}: shadow {shadow[:60]!r} decided no request in that time")
    predicted_ms = pc.max(rows["timestamp"]).as_py() - times.begin
    before = _summed(rows, [rows[name] for name in ("throttled_requests", "throttled_ms", "refused_requests")])
    requests = requests.filter(at <= times.until)
    throttles: Any = pc.max_element_wise(requests["throttle_ms"], pa.scalar(0, pa.int32()))
    after = _summed(requests, [pc.greater(throttles, pa.scalar(0)), throttles, requests["refused"]])
    return _compared(shadow, times, before, after, {"": (times.until - times.since) / predicted_ms})


def _summed(rows: pa.Table, figures: Sequence[Any]) -> _ByEntity:
    """By entity the sums of throttled requests, throttle times in ms, and refused requests."""
    key, names = ["user", "client_id"], ["throttled", "ms", "refused"]
    table: Any = pa.table([*(rows[name] for name in key), *figures], [*key, *names])
    sums = table.group_by(key).aggregate([(name, "sum") for name in names]).to_pylist()
    return {
        (row["user"], row["client_id"], ""): Figures(row["throttled_sum"], row["ms_sum"] / 1_000, row["refused_sum"])
        for row in sums
    }


def verify_prometheus(url: str, shadow: str, since_ms: int, until_ms: int | None, begin_ms: int | None) -> Verification:
    """
    Compare the throttle times of a shadow before its limits were set with those of the brokers after that, both as a Prometheus has them.

    Raises:
        NotVerified: there is no prediction, or Prometheus does not answer.

    """
    times = times_of(since_ms, until_ms or time.time_ns() // 1_000_000, begin_ms)
    # strings of PromQL, as of Go, may be written as those of JSON
    name = json.dumps(shadow, ensure_ascii=False)
    wanted = f"kafka_quota_shadow_throttle_time_seconds{{shadow={name}}}"
    before = _sampled(url, wanted, times.begin, times.since)
    if not before:
        raise NotVerified(f"{url}: it has no prediction of shadow {shadow[:60]!r} in that time")
    after = _sampled(url, _ACTED, times.since, times.until)
    samples, acted = (
        _query(url, f"max by (cluster) (count_over_time({of}[{_span(begin, end)}]))", end)
        for of, begin, end in ((wanted, times.begin, times.since), (_ACTED, times.since, times.until))
    )
    scales = {cluster: acted.get(key, 0.0) / count for key, count in samples.items() for cluster in key[2:]}
    return _compared(shadow, times, before, after, scales)


def _sampled(url: str, wanted: str, begin_ms: int, end_ms: int) -> _ByEntity:
    """By entity of a cluster the samples above 0, as far as Prometheus's evaluation interval shows them and at least one of a sum above 0, and their sum."""
    span = _span(begin_ms, end_ms)
    by = "sum by (user, client_id, cluster)"
    sums = _query(url, f"{by} (sum_over_time({wanted}[{span}]))", end_ms)
    above = _query(url, f"{by} (count_over_time(({wanted} > 0)[{span}:]))", end_ms)
    return {key: Figures(max(int(above.get(key, 0)), int(value > 0)), value) for key, value in sums.items()}


def _span(begin_ms: int, end_ms: int) -> str:
    """A range without its begin, which Prometheus before 3.0 counts in."""
    return f"{max(1, (end_ms - begin_ms - 1) // 1_000)}s"


def _query(url: str, expression: str, time_ms: int) -> dict[_Key, float]:
    """By entity of a cluster what a Prometheus answers. Raises `NotVerified`."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.username is not None:  # before any message has the address
        raise NotVerified("the URL of a Prometheus must not contain a user or password")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise NotVerified(f"{url[:60]!r} is no URL of a Prometheus")
    query = urlencode({"query": expression, "time": time_ms / 1_000})
    try:
        with urlopen(f"{url.rstrip('/')}/api/v1/query?{query}", timeout=_TIMEOUT_S) as answer:  # noqa: S310 - checked above
            content = answer.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise NotVerified(f"{url}: the answer has more than {_MOST_BYTES >> 20} MiB: compare with --folder")
        found = ((each["metric"], each["value"][1]) for each in json.loads(content)["data"]["result"])
        return {
            (labels.get("user", ""), labels.get("client_id", ""), labels.get("cluster", "")): float(value)
            for labels, value in found
        }
    except HTTPError as error:
        raise NotVerified(f"{url}: HTTP {error.code}: {_refusal(error)}") from error
    except OSError as error:
        reason = getattr(error, "reason", error)
        text = getattr(reason, "strerror", None) or reason
        raise NotVerified(f"{url}: Prometheus does not answer: {text}") from error
    except (HTTPException, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotVerified(f"{url[:200]!r}: this is not an answer of Prometheus") from error


def _refusal(error: HTTPError) -> str:
    """What Prometheus says of a query that it gives up, and what to do; a question where another server may have answered."""
    try:
        reason = str(json.loads(error.read(_MOST_BYTES))["error"])
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return "is this a Prometheus, and open to you?"
    return f"{reason[:200]!r}: take a shorter time with --from and --until, or compare by --folder"


def _compared(
    shadow: str, times: Times, before: _ByEntity, after: _ByEntity, scales: Mapping[str, float]
) -> Verification:
    """Of the entities that the shadow limits; predictions, scaled by cluster, are those of a time as long as what is known of the time after."""
    found = [
        Verified(
            user=user,
            client_id=client_id,
            cluster=cluster,
            predicted=each.scaled(scales[cluster]),
            happened=after.get((user, client_id, cluster), Figures()),
        )
        for (user, client_id, cluster), each in before.items()
        if user != OVERFLOW
    ]

    def order(each: Verified) -> tuple[object, ...]:
        difference_s = abs(each.predicted.seconds - each.happened.seconds)
        return each.agrees, -difference_s, each.cluster, each.user, each.client_id

    return Verification(shadow=shadow, times=times, entities=tuple(sorted(found, key=order)))
