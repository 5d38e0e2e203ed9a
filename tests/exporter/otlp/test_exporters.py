"""The messages that receivers get, and our reading of their answers, over HTTP and gRPC."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
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
    chosen: OtlpProtocol = request.param
    return chosen


@pytest.fixture
def receiver(protocol: OtlpProtocol) -> Iterator[Receiver]:
    with LISTENING[protocol]() as receiver:
        yield receiver


def target(protocol: OtlpProtocol, url: str, **changes: object) -> OtlpReceiver:
    path = "/v1/metrics" if protocol is HTTP else ""
    settings: dict[str, object] = {"timeout_seconds": 5.0, **changes}
    return OtlpReceiver(protocol=protocol, endpoint=url + path, **settings)  # type: ignore[arg-type]


def push(to: OtlpReceiver, state: Snapshot, max_bytes: int = 10**7) -> PushResult:
    sender = Sender(to, Encoder(RESOURCE, None, max_bytes, Starts(1)))
    try:
        return sender.send(state, NOW)
    finally:
        sender.close()


@pytest.mark.parametrize("gzip", [True, False])
def test_it_arrives_as_scraped(protocol: OtlpProtocol, receiver: Receiver, *, gzip: bool) -> None:
    """The receiver gets the series of the snapshot, compressed or not, and a token, which no .netrc replaces."""
    report = push(target(protocol, receiver.url, gzip=gzip, headers={"Authorization": "Bearer t"}), varied())
    assert pushed(receiver.requests) == scraped(varied(), NOW)
    assert (report.outcome, report.accepted) == (Outcome.SUCCESS, receiver.points)
    assert receiver.headers[0]["authorization"] == "Bearer t"
    if protocol is HTTP:
        assert receiver.paths == ["/v1/metrics"]
        assert ("content-encoding" in receiver.headers[0]) == gzip
        assert (receiver.sizes[0] < receiver.requests[0].ByteSize()) == gzip


def test_several_requests_are_one_push(protocol: OtlpProtocol, receiver: Receiver) -> None:
    """A push that is cut into several requests is one complete push."""
    state = many(2_000)
    report = push(target(protocol, receiver.url), state, 200_000)
    assert len(receiver.requests) > 1
    assert pushed(receiver.requests) == scraped(state, NOW)
    assert (report.outcome, report.accepted) == (Outcome.SUCCESS, receiver.points)


@pytest.mark.parametrize(("rejected", "outcome"), [(3, Outcome.PARTIAL), (0, Outcome.SUCCESS)])
def test_rejected_points_are_counted(
    protocol: OtlpProtocol, receiver: Receiver, rejected: int, outcome: Outcome
) -> None:
    """A partial success counts its rejected points with the reason, and is no failure; it may be a mere warning."""
    receiver.rejected, receiver.remark = rejected, "too\nold"
    report = push(target(protocol, receiver.url), varied())
    assert report.outcome is outcome
    assert (report.rejected, report.accepted) == (rejected, receiver.points - rejected)
    assert report.reason == "too old"


def test_after_a_refusal_nothing_more_is_sent(protocol: OtlpProtocol, receiver: Receiver) -> None:
    """After a refused request no other one is sent, and the points of all of them are lost."""
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
        (400, ""),
    ],
)
def test_what_a_status_means_is_reported(status: int, advice: str) -> None:
    """The reported remedy depends on the status of HTTP."""
    with http_receiver() as receiver:
        receiver.status = status
        report = push(target(HTTP, receiver.url), varied())
    assert report.outcome is Outcome.FAILURE
    assert f"HTTP {status}" in report.reason
    assert advice in report.reason


@pytest.mark.usefixtures("receiver")
def test_no_one_listens(protocol: OtlpProtocol, caplog: pytest.LogCaptureFixture) -> None:
    """
    The reason names the place without the query, in which some receivers want their key.

    The SDK's own lines do not reach the log.
    """
    with LISTENING[protocol]() as receiver:
        url = receiver.url
    to = target(protocol, url, timeout_seconds=0.5)
    if protocol is HTTP:
        to = replace(to, endpoint=f"{to.endpoint}?key=geheim")
    with caplog.at_level(logging.DEBUG, "opentelemetry"):
        report = push(to, varied())
    assert report.outcome is Outcome.FAILURE
    assert report.accepted == 0
    place = url.removeprefix("http://")
    assert (f"no connection to {place}" if protocol is HTTP else place) in report.reason
    assert "geheim" not in report.reason
    assert [line for line in caplog.records if "opentelemetry" in line.name] == []


def test_a_redirect_is_a_refusal() -> None:
    """A redirect is a refusal: headers are not sent elsewhere, and no point counts as accepted."""
    with http_receiver() as receiver, http_receiver() as elsewhere:
        receiver.status, receiver.location = 307, elsewhere.url
        report = push(target(HTTP, receiver.url), varied())
    assert report.outcome is Outcome.FAILURE
    assert report.reason.startswith("HTTP 307")
    assert elsewhere.requests == []


def test_no_answer_in_time(protocol: OtlpProtocol, receiver: Receiver) -> None:
    """A receiver that hangs ends the push after its timeout."""
    receiver.released.clear()
    report = push(target(protocol, receiver.url, timeout_seconds=0.3), varied())
    assert report.outcome is Outcome.FAILURE
    assert report.lost > 0


def test_tls_on_both_sides(protocol: OtlpProtocol, certificates: Certificates, tmp_path: Path) -> None:
    """We check the receiver's certificate and show ours; a receiver of an unknown authority gets nothing."""
    with LISTENING[protocol](certificates) as receiver:
        for certificates_of_server, outcome in (
            (make_certificates(tmp_path), Outcome.FAILURE),
            (certificates, Outcome.SUCCESS),
        ):
            files = {
                "ca_file": str(certificates_of_server.ca),
                "cert_file": str(certificates_of_server.client),
                "key_file": str(certificates_of_server.client_key),
            }
            seconds = 0.5 if outcome is Outcome.FAILURE else 60.0
            report = push(target(protocol, receiver.url, timeout_seconds=seconds, **files), varied())
            assert report.outcome is outcome, report.reason
            assert bool(receiver.requests) == (outcome is Outcome.SUCCESS)
    assert pushed(receiver.requests) == scraped(varied(), NOW)


@pytest.mark.parametrize(
    ("retry_after", "shortest", "longest"),
    [("90", 90, 90), ("Fri, 31 Dec 9999 23:59:59 GMT", 1e9, 1e12), ("soon", 0, 0), ("-3", 0, 0), ("", 0, 0)],
)
def test_a_receiver_may_ask_for_a_pause(retry_after: str, shortest: float, longest: float) -> None:
    """The pause is a number of seconds or a time; anything else is none."""
    with http_receiver() as receiver:
        receiver.status, receiver.retry_after = 429, retry_after
        seconds = 60 if shortest else 0.5  # without a pause it tries again until the time is over
        result = push(target(HTTP, receiver.url, timeout_seconds=seconds), varied())
    assert result.outcome is Outcome.FAILURE
    assert shortest <= result.pause_seconds <= longest


def test_what_a_receiver_quotes_of_its_request_is_not_shown(protocol: OtlpProtocol, receiver: Receiver) -> None:
    """Neither a token nor a key in the endpoint's query is shown, whatever text the receiver sends back."""
    headers, query = {"Authorization": "Bearer hunter2", "X-Key": "abc"}, "?api-key=swordfish"
    receiver.rejected, receiver.remark = 1, "refused Bearer hunter2 with api-key=swordfish for abc"
    to = target(protocol, receiver.url, headers={name.lower(): value for name, value in headers.items()})
    if protocol is HTTP:
        to = replace(to, endpoint=to.endpoint + query)
    reason = push(to, varied()).reason
    assert "hunter2" not in reason
    assert "refused" in reason
    assert protocol is GRPC or "swordfish" not in reason
    receiver.remark = f"{'x' * 190} Bearer hunter2-hunter2"
    to = replace(to, headers={"authorization": "Bearer hunter2-hunter2"})
    assert "Bear" not in push(to, varied()).reason
