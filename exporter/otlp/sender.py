"""
One push from beginning to end, in a thread of its own.

Encode, send with the SDK's exporters, and count what was answered.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from http.client import responses
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import grpc
import requests
from google.protobuf.message import DecodeError
from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as grpc_exporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http import metric_exporter as http_exporter
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service

from quotascope.clients.reading import content_of

from ..config import OtlpProtocol
from ..config.section import MOST_BYTES
from ..exposition import gzipped
from ..snapshot import Snapshot
from ..untrusted import shown
from .encoding import Encoder, PushRequest, unix_ns
from .push import OtlpReceiver, PushResult

_Answer: TypeAlias = service.ExportMetricsServiceResponse | str
"""The answer of a receiver that took the request, at least in part; or else the reason why it did not."""

_NOT_SENT = "the request was not sent"
_LONGEST_ANSWER = 1 << 16
_SHORTEST_SECRET = 4
"""Fewest characters of a secret that messages leave out; a shorter one may occur in any text."""
_OK = range(200, 300)
_ADVICE = {
    401: "the receiver refuses the credentials, check otlp.headers",
    403: "the receiver refuses the credentials, check otlp.headers",
    404: "there is nothing at this path, check otlp.endpoint",
    413: "the request is too long for the receiver, lower otlp.max_request_bytes",
    grpc.StatusCode.UNAUTHENTICATED: "check otlp.headers",
    grpc.StatusCode.PERMISSION_DENIED: "check otlp.headers",
    grpc.StatusCode.UNIMPLEMENTED: "is this a receiver of OTLP over gRPC? Check otlp.endpoint and otlp.protocol",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "if the request is too long for the receiver, lower otlp.max_request_bytes",
}


class Sender:
    """Sends one snapshot after the other through an exporter of the SDK."""

    def __init__(self, receiver: OtlpReceiver, encoder: Encoder) -> None:
        # what the SDK's exporters would log is in the answers, and may quote any text of a server
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL + 1)
        over_grpc = receiver.protocol is OtlpProtocol.GRPC
        self._exporter = (_GrpcExporter if over_grpc else _HttpExporter)(receiver)
        self._encoder = encoder
        self._secrets = _secrets(receiver)

    def send(self, snapshot: Snapshot, now_seconds: float) -> PushResult:
        """
        Push a snapshot; after a request that failed the others are not tried.

        ``now_seconds`` is the Unix time that ages refer to.
        """
        points = self._encoder.points(snapshot, now_seconds)
        lost_points = sum(len(family.heads) for family in points)
        accepted = rejected = 0
        reason = ""
        for request in self._encoder.requests(points, unix_ns(snapshot.taken_at)):
            answer = self._exporter.send(request)
            if isinstance(answer, str):
                reason = answer
                break
            partial = answer.partial_success
            reason = _quoted(partial.error_message, self._secrets) or reason
            refused = min(max(0, partial.rejected_data_points), request.points)
            accepted += request.points - refused
            rejected += refused
            lost_points -= request.points
        return PushResult(
            accepted=accepted,
            rejected=rejected,
            lost=lost_points,
            reason=reason,
            pause_seconds=self._exporter.pause_seconds,
        )

    def close(self) -> None:
        """End the request that is under way, and close the connections."""
        self._exporter.shutdown()


def _secrets(receiver: OtlpReceiver) -> list[str]:
    """
    Return the texts that a message must not quote, the longest first.

    They are the values of headers, with and without their scheme, and the query of the endpoint.
    """
    query = urlsplit(receiver.endpoint).query
    texts = {query, *(value for _, value in parse_qsl(query)), *receiver.headers.values()}
    texts |= {value.rpartition(" ")[2] for value in receiver.headers.values()}
    return sorted((text for text in texts if len(text) >= _SHORTEST_SECRET), key=len, reverse=True)


def _quoted(text: str, secrets: Iterable[str]) -> str:
    """
    Return the words of a receiver, fit to be shown and without secrets.

    A receiver, or a proxy before it, may quote secrets from the request.
    """
    for secret in secrets:  # before the text is cut, which may leave a part of one
        text = text.replace(secret, "…")
    return shown(text)


class _HttpExporter(http_exporter.OTLPMetricExporter):
    """Sends requests over HTTP."""

    def __init__(self, receiver: OtlpReceiver) -> None:
        self._session = _HttpSession(gzip=receiver.gzip)
        super().__init__(
            endpoint=receiver.endpoint,
            headers=dict(receiver.headers),
            timeout=receiver.timeout_seconds,
            compression=Compression.NoCompression,  # the session compresses faster
            certificate_file=receiver.ca_file,
            client_certificate_file=receiver.cert_file,
            client_key_file=receiver.key_file,
            max_request_size=0,  # requests are cut to size already
            session=self._session,
        )

    def send(self, request: PushRequest) -> _Answer:
        """Send a request, and return the answer, which the session keeps."""
        self._session.answer, self._session.pause_seconds = _NOT_SENT, 0.0
        self._export_batch(request.message)
        return self._session.answer

    @property
    def pause_seconds(self) -> float:
        """The time that the last answer asks to wait."""
        return self._session.pause_seconds


class _HttpSession(requests.Session):
    """Compresses, and keeps the last answer, of which the SDK returns success or failure only."""

    def __init__(self, *, gzip: bool) -> None:
        super().__init__()
        self.answer: _Answer = _NOT_SENT
        self.pause_seconds = 0.0
        self._gzip = gzip
        self.auth = lambda request: request  # or else a .netrc file would replace our headers

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:  # noqa: ANN401 - as requests declares it
        """Send a request with our settings, and keep the answer or the reason why there is none."""
        kwargs["stream"] = True
        kwargs["verify"] = self.verify  # or else REQUESTS_CA_BUNDLE would take precedence
        if self._gzip:
            kwargs["data"] = gzipped(kwargs["data"])
            kwargs["headers"] = {**kwargs["headers"], "Content-Encoding": "gzip"}
        try:
            response = super().request(*args, **kwargs)
            body = response.raw.read(_LONGEST_ANSWER, decode_content=True)
        except Exception as error:
            self.answer = _failure_reason(error, kwargs)
            raise
        response.close()
        status = response.status_code
        if status in _OK:
            self.answer = service.ExportMetricsServiceResponse()
            with contextlib.suppress(DecodeError):  # it took the request all the same
                self.answer = service.ExportMetricsServiceResponse.FromString(body)
        else:
            # the server's own words for its status may quote anything
            advice = _ADVICE.get(status, responses.get(status, ""))
            self.pause_seconds = _pause(response.headers.get("Retry-After", ""))
            self.answer = f"HTTP {status}: {advice}".rstrip(": ")
        return response


def _pause(retry_after: str) -> float:
    """Return the seconds that the header names, as a number or as the time of an end; 0 for anything else."""
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0


class _GrpcExporter(grpc_exporter.OTLPMetricExporter):
    pause_seconds = 0.0
    """The SDK itself heeds a receiver's `RetryInfo` within a push."""

    def __init__(self, receiver: OtlpReceiver) -> None:
        self._answer: _Answer = _NOT_SENT
        self._secrets = _secrets(receiver)
        secure, credentials = receiver.endpoint.startswith("https://"), None
        if secure:
            files = receiver.ca_file, receiver.key_file, receiver.cert_file
            ca, key, chain = (None if file is None else content_of(Path(file), MOST_BYTES) for file in files)
            credentials = grpc.ssl_channel_credentials(ca, key, chain)
        gzip, none = grpc.Compression.Gzip, grpc.Compression.NoCompression
        super().__init__(
            endpoint=receiver.endpoint,
            insecure=not secure,
            credentials=credentials,
            headers=[(name.lower(), value) for name, value in receiver.headers.items()],
            timeout=receiver.timeout_seconds,
            compression=gzip if receiver.gzip else none,
        )

    def send(self, request: PushRequest) -> _Answer:
        """Send a request, and return the answer, which `Export` keeps."""
        self._answer = _NOT_SENT
        self._export(request)  # type: ignore[arg-type] # only the next two methods look at it
        return self._answer

    def _translate_data(self, data: PushRequest) -> service.ExportMetricsServiceRequest:  # type: ignore[override]
        return data.message

    def _count_data(self, data: PushRequest) -> int:  # type: ignore[override]
        return data.points

    def _initialize_channel_and_stub(self) -> None:
        """Put this object in the place of the service's client, whose answers the SDK would drop."""
        super()._initialize_channel_and_stub()  # type: ignore[no-untyped-call]
        self._service_client: Any = self._client
        self._client: Any = self  # the SDK calls our `Export`

    def Export(self, **call: object) -> service.ExportMetricsServiceResponse:  # noqa: N802 - the service's name
        """
        Send a request, and keep the answer.

        The SDK calls this in place of the stub's method, and drops the answer.
        """
        try:
            answer: service.ExportMetricsServiceResponse
            answer = self._service_client.Export(**call)
        except grpc.RpcError as error:
            code, details = error.code(), error.details()
            parts = [code.name, _quoted(details or "", self._secrets), _ADVICE.get(code, "")]
            self._answer = ": ".join(filter(None, parts))
            raise
        self._answer = answer
        return answer


def _failure_reason(error: Exception, request: dict[str, Any]) -> str:
    """Return the reason why there is no answer, without the libraries' own words, which hold the whole URL."""
    parts = urlsplit(str(request.get("url", "")))
    place = f"{parts.hostname}:{parts.port or parts.scheme}"
    texts: dict[type[Exception], str] = {
        requests.exceptions.SSLError: f"TLS with {place} failed: check otlp.tls, and the name in otlp.endpoint",
        requests.exceptions.ProxyError: f"the proxy on the way to {place} cannot be used",
        requests.exceptions.Timeout: f"no answer from {place} in time",
        requests.exceptions.ConnectionError: f"no connection to {place}",
        Exception: f"{place} cannot be asked: {type(error).__name__}",
    }  # subclasses first
    return next(text for kind, text in texts.items() if isinstance(error, kind))
