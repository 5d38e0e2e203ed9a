"""What a shadow predicted, beside what the brokers did since its limits are set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, urlencode, urlsplit
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics.catalog.family import OVERFLOW

from ..errors import PipelineError
from ..history.store import History
from ..table import Table
from .shadow import SHADOW, results_since

_Key = tuple[str, ...]
"""User, client-id and, of Prometheus, cluster."""
_TIMEOUT_S: Final = 30.0
_MOST_BYTES: Final = 64 << 20
"""Of an answer: about 400,000 entities."""
_NEEDED: Final = ("timestamp", "user", "client_id", "throttle_ms", "refused")
_ACTED: Final = 'kafka_quota_throttle_time_seconds{user!="__overflow__"}'


class NotVerified(PipelineError):
    """There is nothing to compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Throttles of an entity in some time."""

    throttled: int
    """Requests, or of Prometheus samples."""
    seconds: float
    """Throttle time, or of Prometheus its sum over samples."""
    refused: int
    """Requests."""


_NOTHING: Final = Figures(throttled=0, seconds=0.0, refused=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """An entity that the shadow limits."""

    user: str
    client_id: str
    cluster: str = ""
    """Of Prometheus's series; a log is of one cluster."""
    predicted: Figures
    happened: Figures

    @property
    def agrees(self) -> bool:
        """Whether it was throttled or refused as predicted, or was not."""
        return _hit(self.predicted) == _hit(self.happened)


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When the limits were set, and how long before and after that counts; epoch ms."""

    begin: int
    since: int
    until: int

    @property
    def scale(self) -> float:
        """How much longer the time after is than the time before."""
        return (self.until - self.since) / (self.since - self.begin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """All entities, those first whose throttle times differ most."""

    shadow: str
    times: Times
    entities: tuple[Verified, ...]

    def off(self) -> float:
        """How far the total throttle time is off, as a share of the larger one; 0 where both are 0."""
        before, after = (sum(figures.seconds for figures in side) for side in ([each.predicted for each in self.entities], [each.happened for each in self.entities]))  # fmt: skip
        return abs(before - after) / max(before, after, 1e-9)

    def agrees(self, tolerance: float) -> bool:
        """Whether the same entities are throttled, and the total throttle time is off by no more than that share."""
        return self.off() <= tolerance and all(each.agrees for each in self.entities)


def times_of(since_ms: int, until_ms: int, begin_ms: int | None) -> Times:
    """The times; as much before as after unless the begin is given. Raises `NotVerified`."""
    begin_ms = 2 * since_ms - until_ms if begin_ms is None else begin_ms
    if not begin_ms < since_ms < until_ms:
        raise NotVerified("the limits must be set after the prediction began, and before now: check --since, --until and --from")  # fmt: skip
    return Times(begin=begin_ms, since=since_ms, until=until_ms)


def verify_log(folder: str, shadow: str, since_ms: int, until_ms: int | None, begin_ms: int | None) -> Verification:  # fmt: skip
    """
    Compare the table `shadow` of a folder before the limits were set with the logged throttles after that.

    Raises:
        NotVerified: there is no prediction, or no request since.
        PipelineError: a table cannot be read.

    """
    at = folder.rstrip("/")
    history = History.open(folder).detail
    files = [file for file in history.files() if file.last is None or file.last >= since_ms]  # fmt: skip
    requests: Any = history.read(_NEEDED, files=files)
    newest = pc.max(requests["timestamp"]).as_py()
    if newest is None or newest <= since_ms:
        raise NotVerified(f"{folder}: no request was read since the limits were set")
    times = times_of(since_ms, until_ms or newest, begin_ms)
    rows: Any = Table.open(f"{at}/shadow", None, SHADOW).read()
    before_it = pc.less_equal(rows["timestamp"], pa.scalar(times.since))
    rows = rows.filter(pc.and_(pc.equal(rows["candidate"], pa.scalar(shadow)), before_it))  # fmt: skip
    if len(rows):  # those of the last rules only
        last = rows.sort_by([("timestamp", "descending")])["rules"][0]
        rows = rows.filter(pc.equal(rows["rules"], last))
    predicted = results_since(rows, times.begin)
    if not len(predicted):
        raise NotVerified(f"{folder}: shadow {shadow[:60]!r} decided no request in that time")  # fmt: skip
    sums = predicted.group_by(["user", "client_id"]).aggregate([(name, "sum") for name in ("throttled_requests", "throttled_ms", "rejected_requests")])  # fmt: skip
    before: dict[_Key, Figures] = {
        (row["user"], row["client_id"]): Figures(
            throttled=round(row["throttled_requests_sum"] * times.scale),
            seconds=row["throttled_ms_sum"] / 1_000 * times.scale,
            refused=round(row["rejected_requests_sum"] * times.scale),
        )
        for row in sums.to_pylist()
    }
    in_time = pc.and_(pc.greater(requests["timestamp"], pa.scalar(since_ms)), pc.less_equal(requests["timestamp"], pa.scalar(times.until)))  # fmt: skip
    requests = requests.filter(in_time)
    throttles: Any = pc.max_element_wise(
        requests["throttle_ms"], pa.scalar(0, pa.int32())
    )
    requests = requests.append_column("hit", pc.cast(pc.greater(throttles, pa.scalar(0)), pa.int64())).append_column("ms", pc.cast(throttles, pa.int64()))  # fmt: skip
    requests = requests.set_column(requests.column_names.index("refused"), "refused", pc.cast(requests["refused"], pa.int64()))  # fmt: skip
    done = requests.group_by(["user", "client_id"]).aggregate([(name, "sum") for name in ("hit", "ms", "refused")])  # fmt: skip
    after: dict[_Key, Figures] = {
        (row["user"], row["client_id"]): Figures(
            throttled=row["hit_sum"],
            seconds=row["ms_sum"] / 1_000,
            refused=row["refused_sum"],
        )
        for row in done.to_pylist()
    }
    return _compared(shadow, times, before, after)


def verify_prometheus(url: str, shadow: str, since_ms: int, until_ms: int, begin_ms: int | None) -> Verification:  # fmt: skip
    """
    Compare the throttle times of a shadow before its limits were set with those of the brokers after that, both as a Prometheus has them.

    Raises:
        NotVerified: there is no prediction, or Prometheus does not answer.

    """
    times = times_of(since_ms, until_ms, begin_ms)
    # strings of PromQL, as of Go, may be written as those of JSON
    name = json.dumps(shadow, ensure_ascii=False)
    wanted = f"kafka_quota_shadow_throttle_time_seconds{{shadow={name}}}"
    before = _sampled(url, wanted, times.begin, times.since)
    if not before:
        raise NotVerified(f"{url}: it has no prediction of shadow {shadow[:60]!r} in that time")  # fmt: skip
    scaled = {key: Figures(throttled=round(each.throttled * times.scale), seconds=each.seconds * times.scale, refused=0) for key, each in before.items()}  # fmt: skip
    return _compared(shadow, times, scaled, _sampled(url, _ACTED, times.since, times.until))  # fmt: skip


def _sampled(url: str, wanted: str, begin_ms: int, end_ms: int) -> dict[_Key, Figures]:  # fmt: skip
    """By entity of a cluster the samples above 0, and their sum."""
    span = f"[{max(1, (end_ms - begin_ms) // 1_000)}s]"
    sums = _query(url, f"sum by (user, client_id, cluster) (sum_over_time({wanted}{span}))", end_ms)  # fmt: skip
    above = _query(url, f"sum by (user, client_id, cluster) (count_over_time(({wanted} > 0){span[:-1]}:]))", end_ms)  # fmt: skip
    return {key: Figures(throttled=int(above.get(key, 0)), seconds=value, refused=0) for key, value in sums.items()}  # fmt: skip


def _query(url: str, expression: str, time_ms: int) -> dict[_Key, float]:
    asked = urlencode({"query": expression, "time": time_ms / 1_000})
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    if parts.username is not None:  # before any message has the address
        raise NotVerified("the URL of a Prometheus must not hold a user or password")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise NotVerified(f"{url[:60]!r} is no URL of a Prometheus")
    try:
        with urlopen(f"{url.rstrip('/')}/api/v1/query?{asked}", timeout=_TIMEOUT_S) as answer:  # noqa: S310 - checked above # fmt: skip
            content = answer.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise NotVerified(f"{url}: the answer has more than {_MOST_BYTES >> 20} MiB: compare by --folder")  # fmt: skip
        found: list[dict[str, Any]] = json.loads(content)["data"]["result"]
        labels = ("user", "client_id", "cluster")
        return {
            tuple(each["metric"].get(label, "") for label in labels): float(
                each["value"][1]
            )
            for each in found
        }
    except HTTPError as error:
        raise NotVerified(f"{url}: HTTP {error.code}: is this a Prometheus, and open to you?") from error  # fmt: skip
    except OSError as error:
        reason = error.reason if isinstance(error, URLError) else error
        text = getattr(reason, "strerror", None) or str(reason)
        raise NotVerified(f"{url}: Prometheus does not answer: {text}") from error
    except (HTTPException, ValueError, KeyError, TypeError) as error:
        raise NotVerified(f"{url[:200]!r}: this is no answer of Prometheus") from error


def _compared(
    shadow: str,
    times: Times,
    before: Mapping[_Key, Figures],
    after: Mapping[_Key, Figures],
) -> Verification:
    """Of the entities that the shadow limits."""
    found = [
        Verified(user=user, client_id=client_id, cluster="".join(cluster), predicted=figures, happened=after.get((user, client_id, *cluster), _NOTHING))
        for (user, client_id, *cluster), figures in before.items()
        if user != OVERFLOW
    ]  # fmt: skip
    return Verification(shadow=shadow, times=times, entities=tuple(_by_difference(found)))  # fmt: skip


def _by_difference(found: Iterable[Verified]) -> list[Verified]:
    def difference(each: Verified) -> tuple[bool, float, str, str, str]:
        off = abs(each.predicted.seconds - each.happened.seconds)
        return each.agrees, -off, each.cluster, each.user, each.client_id

    return sorted(found, key=difference)


def _hit(figures: Figures) -> bool:
    return figures.throttled > 0 or figures.refused > 0
