"""The SDK's exporter over gRPC, taught to send what is encoded and to hear what is answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.sdk.metrics.export import MetricsData

from ..untrusted import shown
from .answers import Answer, Answers, answer_of
from .encoded import EncodedMetrics
from .settings import Target

_ADVICE = {
    grpc.StatusCode.UNAUTHENTICATED: "check otlp.headers",
    grpc.StatusCode.PERMISSION_DENIED: "check otlp.headers",
    grpc.StatusCode.UNIMPLEMENTED: "is this a receiver of OTLP over gRPC? Check otlp.endpoint and otlp.protocol",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "if the request is too long for the receiver, lower otlp.max_request_bytes",
}


class GrpcExporter(OTLPMetricExporter):
    """Sends to an address. ``answers`` has what was said to the last request."""

    def __init__(self, target: Target) -> None:
        self.answers = Answers()
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

    def _initialize_channel_and_stub(self) -> None:
        super()._initialize_channel_and_stub()  # type: ignore[no-untyped-call]
        self._client: Any = _Listening(self._client, self.answers)

    def _translate_data(self, data: MetricsData) -> ExportMetricsServiceRequest:
        if isinstance(data, EncodedMetrics):
            return data.message
        return super()._translate_data(data)

    def _count_data(self, data: MetricsData) -> int:
        if isinstance(data, EncodedMetrics):
            return data.points
        return int(super()._count_data(data))


class _Listening:
    """A stub that notes every answer."""

    def __init__(self, stub: Any, answers: Answers) -> None:  # noqa: ANN401 - generated code has no types
        self._stub = stub
        self._answers = answers

    def Export(  # noqa: N802 - the name in the service's definition
        self, request: ExportMetricsServiceRequest, **kwargs: object
    ) -> ExportMetricsServiceResponse:
        try:
            response: ExportMetricsServiceResponse = self._stub.Export(
                request=request, **kwargs
            )
        except grpc.RpcError as error:
            self._answers.note(Answer(taken=False, reason=_explained(error)))
            raise
        self._answers.note(answer_of(response))
        return response


def _explained(error: Any) -> str:  # noqa: ANN401 - what is raised is a grpc.Call as well
    code = error.code()
    parts = [code.name, shown(error.details() or ""), _ADVICE.get(code, "")]
    return ": ".join(part for part in parts if part)


def _credentials(target: Target) -> grpc.ChannelCredentials:
    tls = target.tls
    return grpc.ssl_channel_credentials(
        root_certificates=_content(tls.ca_file),
        private_key=_content(tls.key_file),
        certificate_chain=_content(tls.cert_file),
    )


def _content(file: str | None) -> bytes | None:
    return None if file is None else Path(file).read_bytes()
