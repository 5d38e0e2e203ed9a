"""What receivers get, and what we make of their answers, over HTTP and gRPC."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import grpc
import pytest
from tests.cluster.certificates import Certificates, make_certificates
from tests.exporter.examples import NOW
from tests.exporter.otlp.messages import pushed, scraped
from tests.exporter.otlp.receivers import Receiver, grpc_receiver, http_receiver
from tests.exporter.otlp.snapshots import many, varied

from quotascope.exporter.config import OtlpProtocol
from quotascope.exporter.otlp.encoding import Encoder, resource_of
from quotascope.exporter.otlp.push import OtlpReceiver, Outcome, PushResult, Starts
from quotascope.exporter.otlp.sender import Sender
from quotascope.exporter.snapshot import Snapshot

HTTP, GRPC = OtlpProtocol.HTTP, OtlpProtocol.GRPC
RESOURCE = resource_of("http://127.0.0.1:9749", None, {})
Listening = Callable[..., AbstractContextManager[Receiver]]
LISTENING: dict[OtlpProtocol, Listening] = {HTTP: http_receiver, GRPC: grpc_receiver}


@pytest.fixture(params=[HTTP, GRPC])
def protocol(request: pytest.FixtureRequest) -> OtlpProtocol:
    """Each test runs over both."""
    chosen: OtlpProtocol = request.param
    return chosen


@pytest.fixture
def receiver(protocol: OtlpProtocol) -> Iterator[Receiver]:
    """A receiver of this protocol."""
    with LISTENING[protocol]() as receiver:
        yield receiver


def target(protocol: OtlpProtocol, url: str, **changes: object) -> OtlpReceiver:
    """How to reach a receiver; with time for one attempt."""
    path = "/v1/metrics" if protocol is HTTP else ""
    given: dict[str, object] = {"timeout_seconds": 5.0, **changes}
    return OtlpReceiver(protocol=protocol, endpoint=url + path, **given)  # type: ignore[arg-type]


def push(to: OtlpReceiver, shown: Snapshot, max_bytes: int = 10**7) -> PushResult:
    """Push a snapshot."""
    sender = Sender(to, Encoder(RESOURCE, None, max_bytes, Starts(1)))
    try:
        return sender.send(shown, NOW)
    finally:
        sender.close()


@pytest.mark.parametrize("gzip", [True, False])
def test_it_arrives_as_scraped(protocol: OtlpProtocol, receiver: Receiver, *, gzip: bool) -> None:
    """The receiver has the series of the snapshot, compressed on the way or not."""
    report = push(target(protocol, receiver.url, gzip=gzip), varied())
    assert pushed(receiver.requests) == scraped(varied(), NOW)
    assert report.outcome is Outcome.SUCCESS
    assert report.accepted == receiver.points
    if protocol is HTTP:
        assert receiver.paths == ["/v1/metrics"]
        assert ("content-encoding" in receiver.headers[0]) == gzip
        assert (receiver.sizes[0] < receiver.requests[0].ByteSize()) == gzip


def test_headers_are_sent(protocol: OtlpProtocol, receiver: Receiver) -> None:
    """A token reaches the receiver, and no .netrc replaces it."""
    push(target(protocol, receiver.url, headers={"Authorization": "Bearer t"}), varied())
    assert receiver.headers[0]["authorization"] == "Bearer t"


@pytest.mark.slow
def test_several_requests_are_one_push(protocol: OtlpProtocol, receiver: Receiver) -> None:
    """A push that is cut is complete, and under gRPC's limit of a message."""
    shown = many(12_000)
    report = push(target(protocol, receiver.url), shown, 3_000_000)
    assert len(receiver.requests) > 1
    assert pushed(receiver.requests) == scraped(shown, NOW)
    assert (report.outcome, report.accepted) == (Outcome.SUCCESS, receiver.points)


def test_rejected_points_are_counted(protocol: OtlpProtocol, receiver: Receiver) -> None:
    """A partial success reports how many and why; it is no failure."""
    receiver.rejected, receiver.remark = 3, "too\nold"
    report = push(target(protocol, receiver.url), varied())
    assert report.outcome is Outcome.PARTIAL
    assert (report.rejected, report.accepted) == (3, receiver.points - 3)
    assert report.reason == "too old"


def test_a_remark_rejects_nothing(protocol: OtlpProtocol, receiver: Receiver) -> None:
    """A receiver may take all and warn."""
    receiver.remark = "soon to be forbidden"
    assert push(target(protocol, receiver.url), varied()).outcome is Outcome.SUCCESS


def test_after_a_refusal_nothing_more_is_sent(protocol: OtlpProtocol, receiver: Receiver) -> None:
    """A receiver that refuses one request is spared the others; all their points are lost."""
    receiver.status, receiver.code = 401, grpc.StatusCode.UNAUTHENTICATED
    report = push(target(protocol, receiver.url), many(2_000), 200_000)
    assert len(receiver.requests) == 1
    assert report.outcome is Outcome.FAILURE
    assert report.lost == len(scraped(many(2_000), NOW))
    assert "otlp.headers" in report.reason


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "refuses the credentials, check otlp.headers"),
        (403, "refuses the credentials, check otlp.headers"),
        (404, "nothing at this path, check otlp.endpoint"),
        (413, "too long for the receiver, lower otlp.max_request_bytes"),
        (400, "HTTP 400"),
    ],
)
def test_what_a_status_means_is_said(status: int, advice: str) -> None:
    """What to do, by status of HTTP."""
    with http_receiver() as receiver:
        receiver.status = status
        report = push(target(HTTP, receiver.url), varied())
    assert report.outcome is Outcome.FAILURE
    assert f"HTTP {status}" in report.reason
    assert advice in report.reason


@pytest.mark.usefixtures("receiver")
def test_no_one_listens(protocol: OtlpProtocol, caplog: pytest.LogCaptureFixture) -> None:
    """The reason names the place; the SDK's own lines do not reach the log."""
    with LISTENING[protocol]() as gone:
        url = gone.url
    with caplog.at_level(logging.DEBUG, "opentelemetry"):
        report = push(target(protocol, url, timeout_seconds=0.5), varied())
    assert report.outcome is Outcome.FAILURE
    assert report.accepted == 0
    assert url.removeprefix("http://") in report.reason
    assert [line for line in caplog.records if "opentelemetry" in line.name] == []


def test_a_secret_in_a_url_is_not_reported() -> None:
    """Some receivers want their key in the query; no reason shows it."""
    with http_receiver() as gone:
        url = gone.url
    to = OtlpReceiver(protocol=HTTP, endpoint=f"{url}/v1/metrics?key=geheim", timeout_seconds=0.5)
    reason = push(to, varied()).reason
    assert reason.startswith("no connection to 127.0.0.1:")
    assert "geheim" not in reason


def test_a_redirect_is_a_refusal() -> None:
    """Headers are not carried elsewhere, and what was not taken is not called taken."""
    with http_receiver() as receiver, http_receiver() as elsewhere:
        receiver.status, receiver.location = 307, elsewhere.url
        report = push(target(HTTP, receiver.url), varied())
    assert report.outcome is Outcome.FAILURE
    assert report.reason.startswith("HTTP 307")
    assert elsewhere.requests == []


def test_no_answer_in_time(protocol: OtlpProtocol, receiver: Receiver) -> None:
    """A receiver that hangs costs the timeout."""
    receiver.released.clear()
    report = push(target(protocol, receiver.url, timeout_seconds=0.3), varied())
    assert report.outcome is Outcome.FAILURE
    assert report.lost > 0


def files(certificates: Certificates) -> dict[str, str]:
    """What a client needs."""
    return {
        "ca_file": str(certificates.ca),
        "cert_file": str(certificates.client),
        "key_file": str(certificates.client_key),
    }


def test_tls_on_both_sides(protocol: OtlpProtocol, certificates: Certificates) -> None:
    """We check the receiver's certificate and show ours."""
    with LISTENING[protocol](certificates) as receiver:
        report = push(target(protocol, receiver.url, **files(certificates)), varied())
    assert report.outcome is Outcome.SUCCESS, report.reason
    assert pushed(receiver.requests) == scraped(varied(), NOW)


def test_an_unknown_authority_is_refused(protocol: OtlpProtocol, certificates: Certificates, tmp_path: Path) -> None:
    """A receiver that anyone could be gets nothing."""
    other = make_certificates(tmp_path)
    with LISTENING[protocol](certificates) as receiver:
        to = target(protocol, receiver.url, timeout_seconds=0.5, **files(other))
        report = push(to, varied())
    assert report.outcome is Outcome.FAILURE
    assert receiver.requests == []
