"""The HTTP API of a Prometheus server, and of those that answer like it: Thanos Query, Mimir, Cortex."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

import orjson
from yarl import URL

from ..errors import SourceUnreadable
from ..threads import ANSWERS
from ..untrusted import shown
from .budget import COST_OF_JSON, COST_OF_MARK, DECODING
from .fetch import HttpFetch
from .peer import HttpTarget, Peer

Labels: TypeAlias = Mapping[str, str]
_HINT: Final = "its API should be below this address: of Mimir and Cortex it ends in /prometheus"
_NO_API: Final = f"the answer is none of Prometheus's API; {_HINT}"
_LONGEST_REASON: Final = 300


def _reason(body: bytes) -> str | None:
    """Return the error that the body of a refusal names."""
    try:
        decoded = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    error = decoded.get("error") if isinstance(decoded, dict) else None
    return shown(error[:_LONGEST_REASON]) if isinstance(error, str) and error else None


def _text_of(body: bytes) -> str | None:
    """Return the beginning of a refusal's body, which is text; None for an empty body, and for a web page."""
    text = body[:_LONGEST_REASON].decode(errors="replace").strip()
    return shown(text) if text and not text.startswith("<") else None


PROMETHEUS: Final = Peer(
    name="Prometheus",
    silent="it is overloaded{maybe}, or timeout_seconds is too short for this many series",
    unreached="is Prometheus up, and the port open from here?",
    ended="is Prometheus shutting down",
    login="check basic_auth and headers of this source",
    reason=_reason,
)


_READ_HINT: Final = (
    "remote read is of Prometheus, Mimir and Cortex (…/prometheus); of other servers, such as Thanos, dump blocks by "
    "promtool"
)
_OF_READS: Final = replace(PROMETHEUS, reason=_text_of, packed_as="snappy")
"""The server where it answers remote reads, whose refusals are text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A series of an answer."""

    labels: Labels
    samples: Sequence[tuple[float, str]]
    """Unix time in seconds and the number as it stands in the answer; one for an instant query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnswer:
    """The answer to a query."""

    series: Sequence[Series]
    warnings: tuple[str, ...] = ()
    """Reasons for which it may lack series."""


class PrometheusApi:
    """
    Asks one server.

    Queries are sent by POST, which bounds no length. Thanos is asked to refuse instead of to leave out what a part of
    it cannot answer, and VictoriaMetrics for the newest samples, where its answers would be 30 s older than they say
    (`nocache`); other servers ignore that.
    """

    def __init__(self, target: HttpTarget) -> None:
        url = URL(target.url)
        self._base, self._kept_query = url, dict(url.query)
        self._timeout_seconds = target.timeout_seconds
        self.is_victoria_metrics = False
        """True once its clock was a vector, which only VictoriaMetrics returns."""
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        self._target = target
        self._fetch = HttpFetch(replace(target, headers={**form, **target.headers}), _HINT, PROMETHEUS)

    async def query(self, promql: str, at: float | None = None) -> QueryAnswer:
        """Return the answer to an instant query, at a Unix time or now. Raises ``SourceError``."""
        parameters = {
            "query": promql,
            "partial_response": "false",
            "nocache": "1",
            "timeout": f"{self._timeout_seconds * 1000:.0f}ms",
        }
        if at is not None:
            parameters["time"] = f"{at:.3f}"
        data, warnings = await self._ask("query", parameters)
        return QueryAnswer(series=_series(data), warnings=warnings)

    async def now(self) -> float:
        """Return the server's clock: Unix time in seconds. Raises ``SourceError``."""
        data, _ = await self._ask("query", {"query": "time()"})
        try:
            self.is_victoria_metrics = data["resultType"] == "vector"
            sample = data["result"][0]["value"] if self.is_victoria_metrics else data["result"]
            return float(sample[1])  # a sample is a time and a value
        except (KeyError, IndexError, TypeError, ValueError):
            raise SourceUnreadable(_NO_API) from None

    async def names(self, selector: str, start: float, end: float) -> list[str]:
        """Return the names of the metrics of a selector's series in a period. Raises ``SourceError``."""
        parameters = {"start": f"{start:.3f}", "end": f"{end:.3f}", "partial_response": "false"}
        if selector:
            parameters["match[]"] = f"{{{selector}}}"
        data, _ = await self._ask("label/__name__/values", parameters, post=False)
        if not isinstance(data, list):
            raise SourceUnreadable(_NO_API)
        return [name for name in data if isinstance(name, str)]

    async def series(self, selector: str, start: float, end: float) -> list[Series]:
        """Return the series of a selector in braces in a period, without samples. Raises ``SourceError``."""
        parameters = {
            "match[]": selector,
            "start": f"{start:.3f}",
            "end": f"{end:.3f}",
            "partial_response": "false",
        }
        data, _ = await self._ask("series", parameters)
        if not isinstance(data, list) or not all(isinstance(labels, dict) for labels in data):
            raise SourceUnreadable(_NO_API)
        return [Series(labels=labels, samples=()) for labels in data]

    async def metadata(self) -> dict[str, list[Any]]:
        """Return type and help of metrics by their names, as agents gave them. Raises ``SourceError``."""
        data, _ = await self._ask("metadata", {}, post=False)
        return data if isinstance(data, dict) else {}

    async def read(self, request: bytes, headers: Mapping[str, str]) -> bytes:
        """Return the answer to a remote read, a request with headers of its own. Raises ``SourceError``."""
        url = self._base.with_path(f"{self._base.path.rstrip('/')}/api/v1/read").with_query(self._kept_query)
        fetch = HttpFetch(replace(self._target, headers={**headers, **self._target.headers}), _READ_HINT, _OF_READS)
        try:
            return await fetch.read(url, request)
        finally:
            await fetch.close()

    async def close(self) -> None:
        """Release connections."""
        await self._fetch.close()

    async def _ask(self, path: str, parameters: Mapping[str, str], *, post: bool = True) -> tuple[Any, tuple[str, ...]]:
        """
        Return the data and the warnings of an answer. Raises ``SourceError``.

        Args:
            path: The path below ``/api/v1/``.
            parameters: The parameters of the request.
            post: Whether they are sent in the body of a POST; else in the URL of a GET.

        """
        url = self._base.with_path(f"{self._base.path.rstrip('/')}/api/v1/{path}")
        query = self._kept_query if post else {**self._kept_query, **parameters}
        body = urlencode(parameters).encode() if post else None
        async with self._fetch.asked(url.with_query(query), body) as answer:
            cost = COST_OF_JSON * len(answer) + COST_OF_MARK * answer.count(b":")
            async with DECODING.turn(cost):
                decoded = await asyncio.wrap_future(ANSWERS.submit(_decoded, answer))
        warnings = decoded.get("warnings")
        texts = [shown(text) for text in warnings if isinstance(text, str)] if isinstance(warnings, list) else []
        return decoded.get("data"), tuple(texts)


def _decoded(answer: bytes | bytearray) -> dict[str, Any]:
    """Return the object of an answer that reports success. Raises ``SourceUnreadable`` for any other answer."""
    try:
        decoded = orjson.loads(answer)
    except orjson.JSONDecodeError:
        raise SourceUnreadable(_NO_API) from None
    if not isinstance(decoded, dict) or decoded.get("status") != "success":
        raise SourceUnreadable(_reason(bytes(answer)) or _NO_API)
    return decoded


def _series(data: Any) -> list[Series]:  # noqa: ANN401 - of JSON
    """Return the series of a vector or a matrix. Raises ``SourceUnreadable``."""
    try:
        kind, result = data["resultType"], data["result"]
        if kind not in {"vector", "matrix"}:
            raise SourceUnreadable(_NO_API)
        series = []
        for entry in result:
            # a vector has one sample of each series, a matrix has several; a series of native histograms has none
            samples = [entry["value"]] if kind == "vector" and "value" in entry else entry.get("values", [])
            series.append(Series(labels=entry["metric"], samples=samples))
    except (KeyError, TypeError, AttributeError):
        raise SourceUnreadable(_NO_API) from None
    return series
