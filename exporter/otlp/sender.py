"""One push from beginning to end, in a thread of its own: encode, send with the SDK's exporters, and count what was answered."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import grpc
import requests
from google.protobuf.message import DecodeError
from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as grpc_exporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http import metric_exporter as http_exporter
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service

from ..config import OtlpProtocol
from ..exposition import gzipped
from ..snapshot import Snapshot
from ..untrusted import shown
from .encoding import Encoder, PushRequest, unix_ns
from .push import OtlpReceiver, PushResult


class _Reply(NamedTuple):
    """What a receiver answered to one request."""

    taken: bool
    """Whether it took the request, at least in part."""
    reason: str = ""
    """Why not, or not all; or the remark of a receiver that took everything."""
    rejected_points: int = 0


_NOT_SENT = _Reply(taken=False, reason="the request was not sent")
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
    """Sends one snapshot after the other through an exporter of the SDK."""

    def __init__(self, receiver: OtlpReceiver, encoder: Encoder) -> None:
        # What they would log is in the replies; and they quote any text of a server.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL + 1)
        over_grpc = receiver.protocol is OtlpProtocol.GRPC
        self._exporter = (_GrpcExporter if over_grpc else _HttpExporter)(receiver)
        self._encoder = encoder

    def send(self, snapshot: Snapshot, now: float) -> PushResult:
        """
        Push a snapshot; after a request that failed the others are not tried.

        ``now`` is the Unix time in seconds that ages refer to.
        """
        points = self._encoder.points(snapshot, now)
        lost = sum(len(family.heads) for family in points)
        accepted = rejected = 0
        reason = ""
        for request in self._encoder.requests(points, unix_ns(snapshot.taken_at)):
            reply = self._exporter.send(request)
            reason = reply.reason or reason
            if not reply.taken:
                break
            refused = min(reply.rejected_points, request.points)
            accepted += request.points - refused
            rejected += refused
            lost -= request.points
        return PushResult(
            accepted=accepted, rejected=rejected, lost=lost, reason=reason
        )

    def close(self) -> None:
        """End what is under way and close the connections."""
        self._exporter.shutdown()


class _HttpExporter(http_exporter.OTLPMetricExporter):
    def __init__(self, receiver: OtlpReceiver) -> None:
        self._session = _HttpSession(gzip=receiver.gzip)
        super().__init__(
            endpoint=receiver.endpoint,
            headers=dict(receiver.headers),
            timeout=receiver.timeout_seconds,
            compression=Compression.NoCompression,  # the session's is quicker
            certificate_file=receiver.tls.ca_file,
            client_certificate_file=receiver.tls.cert_file,
            client_key_file=receiver.tls.key_file,
            max_request_size=0,  # requests are cut to size already
            session=self._session,
        )

    def send(self, request: PushRequest) -> _Reply:
        self._session.reply = _NOT_SENT
        self._export_batch(request.message)
        return self._session.reply


class _HttpSession(requests.Session):
    """Compresses, and keeps the last reply, of which the SDK returns success or failure only."""

    def __init__(self, *, gzip: bool) -> None:
        super().__init__()
        self.reply = _NOT_SENT
        self._gzip = gzip
        self.auth = lambda each: each  # or else a .netrc file would replace our headers

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
            self.reply = _Reply(taken=False, reason=_no_answer(error, kwargs))
            raise
        response.close()
        status = response.status_code
        if status in _OK:
            self.reply = _Reply(taken=True)  # also where the body cannot be read
            with contextlib.suppress(DecodeError):
                answer = service.ExportMetricsServiceResponse.FromString(body)
                self.reply = _taken(answer)
        else:
            advice = _ADVICE.get(status, shown(response.reason or ""))
            reason = f"HTTP {status}: {advice}".rstrip(": ")
            self.reply = _Reply(taken=False, reason=reason)
        return response


class _GrpcExporter(grpc_exporter.OTLPMetricExporter):
    def __init__(self, receiver: OtlpReceiver) -> None:
        self._reply = _NOT_SENT
        secure, credentials = receiver.endpoint.startswith("https://"), None
        if secure:
            tls = receiver.tls
            ca, key, chain = (
                None if file is None else Path(file).read_bytes()
                for file in (tls.ca_file, tls.key_file, tls.cert_file)
            )
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

    def send(self, request: PushRequest) -> _Reply:
        self._reply = _NOT_SENT
        self._export(request)  # type: ignore[arg-type] # what only the next two look at
        return self._reply

    def _translate_data(self, data: PushRequest) -> service.ExportMetricsServiceRequest:  # type: ignore[override]
        return data.message

    def _count_data(self, data: PushRequest) -> int:  # type: ignore[override]
        return data.points

    def _initialize_channel_and_stub(self) -> None:
        super()._initialize_channel_and_stub()  # type: ignore[no-untyped-call]
        self._of_service: Any = self._client
        self._client: Any = self

    def Export(self, **call: object) -> service.ExportMetricsServiceResponse:  # noqa: N802 - the name in the service's definition
        """The SDK calls this in place of the stub's method, and drops the reply."""
        try:
            answer: service.ExportMetricsServiceResponse
            answer = self._of_service.Export(**call)
        except grpc.RpcError as error:
            code, details = error.code(), error.details()
            parts = [code.name, shown(details or ""), _ADVICE.get(code, "")]
            self._reply = _Reply(taken=False, reason=": ".join(filter(None, parts)))
            raise
        self._reply = _taken(answer)
        return answer


def _taken(answer: service.ExportMetricsServiceResponse) -> _Reply:
    """The reply of a receiver that took all, or in part."""
    partial = answer.partial_success
    reason, rejected = shown(partial.error_message), partial.rejected_data_points
    return _Reply(taken=True, reason=reason, rejected_points=max(0, rejected))


def _no_answer(error: Exception, asked: dict[str, Any]) -> str:
    """Why there is no answer, without what the libraries quote: their texts hold the whole URL."""
    parts = urlsplit(str(asked.get("url", "")))
    place = f"{parts.hostname}:{parts.port or parts.scheme}"
    texts: dict[type[Exception], str] = {
        requests.exceptions.SSLError: f"TLS with {place} failed: check otlp.tls, and the name in otlp.endpoint",
        requests.exceptions.ProxyError: f"the proxy on the way to {place} cannot be used",
        requests.exceptions.Timeout: f"no answer from {place} in time",
        requests.exceptions.ConnectionError: f"no connection to {place}",
        Exception: f"{place} cannot be asked: {type(error).__name__}",
    }  # of a subclass first
    return next(text for kind, text in texts.items() if isinstance(error, kind))
