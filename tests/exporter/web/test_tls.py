from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from structlog.testing import capture_logs
from tests.cluster.certificates import Certificates, make_certificates
from tests.exporter.web.serving import ASK, Served, connected, exchange, serving, tls_section, trusting, web_file

MUTUAL = {"client_auth_type": "RequireAndVerifyClientCert", "client_ca_file": "ca.pem"}
IF_GIVEN = {"client_auth_type": "VerifyClientCertIfGiven", "client_ca_file": "ca.pem"}


async def body(url: str, context: ssl.SSLContext) -> str:
    """Return the answer, on a connection of its own."""
    async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as answer:
        assert answer.status == 200
        return await answer.text()


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("others"))


@pytest.fixture(params=["bare", "known", "unknown", "wary", "old"])
def client(
    request: pytest.FixtureRequest, certificates: Certificates, others: Certificates
) -> tuple[str, ssl.SSLContext]:
    """Return a client without a certificate, with a right or wrong one, without trust, or without TLS 1.3."""
    kind = request.param
    if kind == "wary":
        return kind, ssl.create_default_context()
    context = trusting(certificates, with_client=kind == "known")
    if kind == "unknown":
        context.load_cert_chain(others.client, others.client_key)
    if kind == "old":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    return kind, context


@pytest.mark.parametrize(
    ("section", "accepted"),
    [
        ({}, {"bare", "known", "unknown", "old"}),
        ({"min_version": "TLS13"}, {"bare", "known", "unknown"}),
        (MUTUAL, {"known"}),
        (IF_GIVEN, {"bare", "known", "old"}),
        ({**MUTUAL, "client_allowed_sans": ["localhost"]}, {"known"}),
        ({**MUTUAL, "client_allowed_sans": ["another", "127.0.0.1"]}, {"known"}),
        ({**MUTUAL, "client_allowed_sans": ["another", "LOCALHOST."]}, set()),
    ],
    ids=["tls", "tls13", "mutual", "if given", "name", "address", "other names"],
)
async def test_clients(
    tmp_path: Path,
    certificates: Certificates,
    client: tuple[str, ssl.SSLContext],
    section: dict[str, Any],
    accepted: set[str],
) -> None:
    """Version, authority and names of a client's certificate are checked as the file says."""
    (tmp_path / "ca.pem").symlink_to(certificates.ca)
    file = web_file(tmp_path, **tls_section(certificates, **section))
    kind, context = client
    async with serving(web_config_file=file) as served:
        if kind in accepted:
            assert await body(served.url, context) == "hello"
        else:
            with pytest.raises(aiohttp.ClientConnectionError):
                await body(served.url, context)


async def test_plain_http_to_tls(tmp_path: Path, certificates: Certificates) -> None:
    """
    Plain HTTP to a TLS port gets no answer and one line in the log, however often a client tries.

    The authority may be given as text.
    """
    section = {"client_auth_type": IF_GIVEN["client_auth_type"], "client_ca": certificates.ca.read_text()}
    file = web_file(tmp_path, **tls_section(certificates, **section))
    with capture_logs() as lines:
        async with serving(web_config_file=file) as served:
            assert served.url.startswith("https://")
            for _ in range(3):
                assert await exchange(served.url, ASK) == b""
                await served.empty()
            assert await body(served.url, trusting(certificates, with_client=True)) == "hello"
    reported = [(line["times"], line["reason"]) for line in lines if "TLS handshakes failed" in line["event"]]
    assert reported == [(1, "HTTP_REQUEST")]


@pytest.mark.parametrize(
    ("section", "version", "suite"),
    [
        ({}, "TLSv1.3", None),
        (
            {"max_version": "TLS12", "cipher_suites": ["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"]},
            "TLSv1.2",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
        ),
    ]
)  # fmt: skip
async def test_versions_and_suites(
    tmp_path: Path, certificates: Certificates, section: dict[str, Any], version: str, suite: str | None
) -> None:
    """The versions and suites of the file are the ones in use."""
    async with serving(web_config_file=web_file(tmp_path, **tls_section(certificates, **section))) as served:
        spoken = await peer(served, trusting(certificates))
    assert spoken.version() == version
    assert suite in {None, (spoken.cipher() or ("",))[0]}


async def peer(served: Served, context: ssl.SSLContext) -> ssl.SSLObject:
    port = int(served.url.rpartition(":")[2])
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.close()
    tls_object: ssl.SSLObject = writer.get_extra_info("ssl_object")
    return tls_object


async def serial(served: Served, authority: Path) -> str:
    certificate = (await peer(served, ssl.create_default_context(cafile=authority))).getpeercert()
    return str((certificate or {})["serialNumber"])


def swap(link: Path, target: Path) -> None:
    """Point a link elsewhere in one step, as Kubernetes does with secrets."""
    link.with_suffix(".new").symlink_to(target)
    os.replace(link.with_suffix(".new"), link)  # noqa: PTH105 - it is that call


async def test_certificates_are_rotated_without_a_restart(
    tmp_path: Path, certificates: Certificates, others: Certificates
) -> None:
    """The next connection gets a rotated certificate once its key is there; open connections stay."""
    certificate, key = tmp_path / "tls.pem", tmp_path / "tls.key"
    swap(certificate, certificates.server)
    swap(key, certificates.server_key)
    section = {"cert_file": "tls.pem", "key_file": "tls.key"}
    file = web_file(tmp_path, tls_server_config=section)
    async with serving(web_config_file=file) as served, aiohttp.ClientSession() as session:
        context = trusting(certificates)
        async with session.get(served.url, ssl=context) as answer:
            assert await answer.text() == "hello"
        first_serial = await serial(served, certificates.ca)
        swap(certificate, others.server)
        with capture_logs() as lines:
            served.server.look()
        assert await serial(served, certificates.ca) == first_serial
        assert "KEY_VALUES_MISMATCH" in lines[0]["error"]
        swap(key, others.server_key)
        served.server.look()
        assert await serial(served, others.ca) != first_serial
        async with session.get(served.url, ssl=context) as answer:
            assert await answer.text() == "hello"


async def test_a_request_right_behind_the_handshake_is_answered(tmp_path: Path, certificates: Certificates) -> None:
    """A request in the same packet as the end of the handshake is answered."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting(certificates).wrap_bio(incoming, outgoing, server_hostname="localhost")
    file = web_file(tmp_path, **tls_section(certificates))
    async with serving(web_config_file=file) as served, connected(served.url) as (reader, write):

        async def until_done(step: Callable[[], object]) -> object:
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    write.write(outgoing.read())
                    incoming.write(await reader.read(1 << 16))

        await until_done(tls.do_handshake)
        tls.write(ASK)
        answer = b""
        while not answer.endswith(b"hello"):
            answer += cast("bytes", await until_done(tls.read))
