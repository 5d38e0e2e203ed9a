"""The SDK's exporter over HTTP, taught to send what is encoded and to hear what is answered."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import requests
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData

from ..exposition.compression import gzipped
from ..untrusted import shown
from .answers import Answer, Answers, answer_in
from .encoded import EncodedMetrics
from .settings import Target

_LONGEST_ANSWER = 1 << 16
_OK = range(200, 300)
_ADVICE = {
    401: "the receiver refuses the credentials, check otlp.headers",
    403: "the receiver refuses the credentials, check otlp.headers",
    404: "there is nothing at this path, check otlp.endpoint",
    413: "the request is too long for the receiver, lower otlp.max_request_bytes",
}


class HttpExporter(OTLPMetricExporter):
    """Sends to a URL. ``answers`` has what was said to the last request."""

    def __init__(self, target: Target) -> None:
        self.answers = Answers()
        tls = target.tls
        super().__init__(
            endpoint=target.endpoint,
            headers=dict(target.headers),
            timeout=target.timeout_seconds,
            compression=Compression.NoCompression,  # the session's is quicker
            certificate_file=tls.ca_file,
            client_certificate_file=tls.cert_file,
            client_key_file=tls.key_file,
            max_request_size=0,  # requests are cut to size already
            session=_Session(self.answers, gzip=target.gzip),
        )

    def export(
        self,
        metrics_data: MetricsData,
        timeout_millis: float | None = 10_000,
        **kwargs: Any,  # noqa: ANN401 - as the SDK declares it
    ) -> MetricExportResult:
        """Send metrics of any kind; those that are encoded as they are."""
        if isinstance(metrics_data, EncodedMetrics):
            return self._export_batch(metrics_data.message)
        return super().export(metrics_data, timeout_millis, **kwargs)


class _Session(requests.Session):
    """Compresses, and notes every answer."""

    def __init__(self, answers: Answers, *, gzip: bool) -> None:
        super().__init__()
        self._answers = answers
        self._gzip = gzip
        self.auth = _as_it_is  # or else a .netrc file would replace our headers

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:  # noqa: ANN401 - as requests declares it
        kwargs["stream"] = True
        kwargs["verify"] = self.verify  # or else REQUESTS_CA_BUNDLE would go before it
        if self._gzip:
            kwargs["data"] = gzipped(kwargs["data"])
            kwargs["headers"] = {**kwargs["headers"], "Content-Encoding": "gzip"}
        try:
            response = super().request(*args, **kwargs)
            body = response.raw.read(_LONGEST_ANSWER, decode_content=True)
        except Exception as error:
            self._answers.note(Answer(taken=False, reason=_explained(error, kwargs)))
            raise
        response.close()
        self._answers.note(_answer(response, body))
        return response


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _answer(response: requests.Response, body: bytes) -> Answer:
    status = response.status_code
    if status in _OK:
        return answer_in(body)
    advice = _ADVICE.get(status, shown(response.reason or ""))
    return Answer(taken=False, reason=f"HTTP {status}: {advice}".rstrip(": "))


def _explained(error: Exception, asked: dict[str, Any]) -> str:
    """Why there is no answer, without what the libraries quote: their texts hold the whole URL."""
    parts = urlsplit(str(asked.get("url", "")))
    place = f"{parts.hostname}:{parts.port or parts.scheme}"
    if isinstance(error, requests.exceptions.SSLError):
        return f"TLS with {place} failed: check otlp.tls, and the name in otlp.endpoint"
    if isinstance(error, requests.exceptions.ProxyError):
        return f"the proxy on the way to {place} cannot be used"
    if isinstance(error, requests.exceptions.Timeout):
        return f"no answer from {place} in time"
    if isinstance(error, requests.exceptions.ConnectionError):
        return f"no connection to {place}"
    return f"{place} cannot be asked: {type(error).__name__}"
