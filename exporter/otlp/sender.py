"""One push from beginning to end, in a thread of its own: encode, send with the SDK's exporters, and count what was answered."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import requests
from google.protobuf.message import DecodeError
from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as grpc_exporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http import metric_exporter as http_exporter
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service

from ..config import OtlpProtocol
from ..exposition.compression import gzipped
from ..snapshot import Snapshot
from ..untrusted import shown
from .encoding import Encoder, Request, unix_ns
from .ledger import Answer, Report
from .settings import Target

_NOT_SENT = Answer(taken=False, reason="the request was not sent")
_LONGEST_ANSWER = 1 << 16
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
    """
    Sends one snapshot after the other through an exporter of the SDK.

    Args:
        target: The receiver.
        encoder: Makes the requests.

    """

    def __init__(self, target: Target, encoder: Encoder) -> None:
        # What they would log is in the answers; and they quote whatever a server says.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL + 1)
        over_grpc = target.protocol is OtlpProtocol.GRPC
        self._exporter = _GrpcExporter(target) if over_grpc else _HttpExporter(target)
        self._encoder = encoder

    def send(self, snapshot: Snapshot, now: float) -> Report:
        """
        Push a snapshot; after a request that failed the others are not tried.

        ``now`` is the Unix time in seconds that ages refer to.
        """
        points = self._encoder.points(snapshot, now)
        lost = sum(len(family.heads) for family in points)
        accepted = rejected = 0
        reason = ""
        for request in self._encoder.requests(points, unix_ns(snapshot.taken_at)):
            answer = self._exporter.send(request)
            reason = answer.reason or reason
            if not answer.taken:
                break
            refused = min(answer.rejected_points, request.points)
            accepted += request.points - refused
            rejected += refused
            lost -= request.points
        return Report(accepted=accepted, rejected=rejected, lost=lost, reason=reason)

    def close(self) -> None:
        """End what is under way and close the connections."""
        self._exporter.shutdown()


class _HttpExporter(http_exporter.OTLPMetricExporter):
    def __init__(self, target: Target) -> None:
        self._session = _Session(gzip=target.gzip)
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
            session=self._session,
        )

    def send(self, request: Request) -> Answer:
        self._session.answer = _NOT_SENT
        self._export_batch(request.message)
        return self._session.answer


class _Session(requests.Session):
    """Compresses, and keeps the last answer, of which the SDK returns success or failure only."""

    def __init__(self, *, gzip: bool) -> None:
        super().__init__()
        self.answer = _NOT_SENT
        self._gzip = gzip
        self.auth = lambda request: (
            request
        )  # or else a .netrc file would replace our headers

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
            self.answer = Answer(taken=False, reason=_no_answer(error, kwargs))
            raise
        response.close()
        status = response.status_code
        if status in _OK:
            self.answer = Answer(taken=True)  # also where the body cannot be read
            with contextlib.suppress(DecodeError):
                self.answer = _taken(
                    service.ExportMetricsServiceResponse.FromString(body)
                )
        else:
            advice = _ADVICE.get(status, shown(response.reason or ""))
            reason = f"HTTP {status}: {advice}".rstrip(": ")
            self.answer = Answer(taken=False, reason=reason)
        return response


class _GrpcExporter(grpc_exporter.OTLPMetricExporter):
    def __init__(self, target: Target) -> None:
        self._answer = _NOT_SENT
        secure = target.endpoint.startswith("https://")
        super().__init__(
            endpoint=target.endpoint,
            insecure=not secure,
            credentials=_credentials(target) if secure else None,
            headers=[(name.lower(), value) for name, value in target.headers.items()],
            timeout=target.timeout_seconds,
            compression=(
                grpc.Compression.Gzip if target.gzip else grpc.Compression.NoCompression
            ),
        )

    def send(self, request: Request) -> Answer:
        self._answer = _NOT_SENT
        self._export(request)  # type: ignore[arg-type] # what only the next two look at
        return self._answer

    def _translate_data(self, data: Request) -> service.ExportMetricsServiceRequest:  # type: ignore[override]
        return data.message

    def _count_data(self, data: Request) -> int:  # type: ignore[override]
        return data.points

    def _initialize_channel_and_stub(self) -> None:
        super()._initialize_channel_and_stub()  # type: ignore[no-untyped-call]
        self._client: Any = _Stub(self._client, self._note)

    def _note(self, answer: Answer) -> None:
        self._answer = answer


class _Stub:
    """A stub that notes every answer, which the SDK drops."""

    def __init__(self, stub: Any, note: Callable[[Answer], None]) -> None:  # noqa: ANN401 - generated code has no types
        self._stub = stub
        self._note = note

    def Export(self, **call: object) -> service.ExportMetricsServiceResponse:  # noqa: N802 - the name in the service's definition
        try:
            response: service.ExportMetricsServiceResponse = self._stub.Export(**call)
        except grpc.RpcError as error:
            code, details = error.code(), error.details()
            parts = [code.name, shown(details or ""), _ADVICE.get(code, "")]
            self._note(Answer(taken=False, reason=": ".join(filter(None, parts))))
            raise
        self._note(_taken(response))
        return response


def _taken(response: service.ExportMetricsServiceResponse) -> Answer:
    """The answer of a receiver that took all, or in part."""
    partial = response.partial_success
    return Answer(
        taken=True,
        rejected_points=max(0, partial.rejected_data_points),
        reason=shown(partial.error_message),
    )


def _no_answer(error: Exception, asked: dict[str, Any]) -> str:
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


def _credentials(target: Target) -> grpc.ChannelCredentials:
    tls = target.tls
    ca, key, chain = (
        None if file is None else Path(file).read_bytes()
        for file in (tls.ca_file, tls.key_file, tls.cert_file)
    )
    return grpc.ssl_channel_credentials(ca, key, chain)
