"""Receivers made of OpenTelemetry's own protocol definition: what they got, and what they are set to answer."""

from __future__ import annotations

import gzip
import ssl
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer

import grpc
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)
from tests.cluster.certificates import Certificates
from tests.servers import Handler, served


@dataclass
class Receiver:
    url: str = ""
    requests: list[ExportMetricsServiceRequest] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Bytes of each as it came, compressed if so."""
    headers: list[Mapping[str, str]] = field(default_factory=list)
    """With names in small letters."""
    paths: list[str] = field(default_factory=list)
    rejected: int = 0
    """Points to reject of each request."""
    remark: str = ""
    status: int = 200
    """Of HTTP."""
    code: grpc.StatusCode = grpc.StatusCode.OK
    location: str = ""
    retry_after: str = ""
    released: threading.Event = field(default_factory=threading.Event)
    """No one is answered before it is set."""

    def __post_init__(self) -> None:
        self.released.set()

    @property
    def points(self) -> int:
        return sum(
            len(metric.gauge.data_points) + len(metric.sum.data_points)
            for request in self.requests
            for metric in request.resource_metrics[0].scope_metrics[0].metrics
        )

    def response(self) -> ExportMetricsServiceResponse:
        response = ExportMetricsServiceResponse()
        if self.rejected or self.remark:
            response.partial_success.rejected_data_points = self.rejected
            response.partial_success.error_message = self.remark
        return response


@contextmanager
def http_receiver(certificates: Certificates | None = None) -> Iterator[Receiver]:
    """A receiver over HTTP; with certificates on https, for clients that show theirs."""
    receiver = Receiver()

    class Receives(Handler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # noqa: N802 - the library's name
            body = self.body()
            receiver.released.wait(20)
            receiver.sizes.append(len(body))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            receiver.requests.append(ExportMetricsServiceRequest.FromString(body))
            receiver.headers.append({k.lower(): v for k, v in self.headers.items()})
            receiver.paths.append(self.path)
            headers = {"Location": receiver.location, "Retry-After": receiver.retry_after}
            present = {name: value for name, value in headers.items() if value}
            self.answer(receiver.status, receiver.response().SerializeToString(), **present)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receives)
    server.daemon_threads = True
    if certificates is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.server, certificates.server_key)
        context.load_verify_locations(certificates.ca)
        context.verify_mode = ssl.CERT_REQUIRED
        server.socket = context.wrap_socket(server.socket, server_side=True)
    receiver.url = f"{'https' if certificates else 'http'}://127.0.0.1:{server.server_port}"
    with served(server):
        try:
            yield receiver
        finally:
            receiver.released.set()


@contextmanager
def grpc_receiver(certificates: Certificates | None = None) -> Iterator[Receiver]:
    """A receiver over gRPC, with gRPC's own limit of 4 MiB for a message."""
    receiver = Receiver()

    class Service(MetricsServiceServicer):
        def Export(  # noqa: N802 - the name in the service's definition
            self, request: ExportMetricsServiceRequest, context: grpc.ServicerContext
        ) -> ExportMetricsServiceResponse:
            receiver.released.wait(20)
            receiver.requests.append(request)
            receiver.sizes.append(request.ByteSize())
            receiver.headers.append({key: str(value) for key, value in context.invocation_metadata()})
            if receiver.code is not grpc.StatusCode.OK:
                context.abort(receiver.code, receiver.remark)
            return receiver.response()

    server = grpc.server(ThreadPoolExecutor(2))
    add_MetricsServiceServicer_to_server(Service(), server)  # type: ignore[no-untyped-call] # generated code
    if certificates is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        pair = (certificates.server_key.read_bytes(), certificates.server.read_bytes())
        credentials = grpc.ssl_server_credentials([pair], certificates.ca.read_bytes(), require_client_auth=True)
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    receiver.url = f"{'https' if certificates else 'http'}://127.0.0.1:{port}"
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.stop(None).wait()
