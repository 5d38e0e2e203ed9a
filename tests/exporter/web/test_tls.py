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
from tests.exporter.web.serving import (
    Served,
    connected,
    serving,
    tls_section,
    trusting,
    web_file,
)

MUTUAL = {"client_auth_type": "RequireAndVerifyClientCert"}


async def get(url: str, context: ssl.SSLContext) -> str:
    """What is answered, on a connection of its own."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, ssl=context) as answer,
    ):
        assert answer.status == 200
        return await answer.text()


async def refused(url: str, context: ssl.SSLContext) -> None:
    """There is no answer at all."""
    with pytest.raises(aiohttp.ClientConnectionError):
        await get(url, context)


async def test_tls(tmp_path: Path, certificates: Certificates) -> None:
    """Who trusts the authority gets an answer; who speaks plain HTTP, none, and the URL says https."""
    file = web_file(tmp_path, **tls_section(certificates))
    async with serving(web_config_file=file) as served:
        assert served.url.startswith("https://")
        assert await get(served.url, trusting(certificates)) == "hello"
        await refused(served.url, ssl.create_default_context())
        async with connected(served.url) as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert await reader.read() == b""


async def test_mutual_tls(tmp_path: Path, certificates: Certificates) -> None:
    """Without a certificate of the right authority nobody gets as far as a page."""
    other = tmp_path / "other"
    other.mkdir()
    stranger = make_certificates(other)
    wrong = trusting(certificates)
    wrong.load_cert_chain(stranger.client, stranger.client_key)
    section = tls_section(certificates, client_ca_file=str(certificates.ca), **MUTUAL)
    async with serving(web_config_file=web_file(tmp_path, **section)) as served:
        assert await get(served.url, trusting(certificates, shown=True)) == "hello"
        await refused(served.url, trusting(certificates))
        await refused(served.url, wrong)


async def test_a_certificate_if_there_is_one(
    tmp_path: Path, certificates: Certificates
) -> None:
    """None will do, the text of the authority as well as its file; one of a stranger will not."""
    other = tmp_path / "other"
    other.mkdir()
    stranger = make_certificates(other)
    wrong = trusting(certificates)
    wrong.load_cert_chain(stranger.client, stranger.client_key)
    section = tls_section(
        certificates,
        client_ca=certificates.ca.read_text(),
        client_auth_type="VerifyClientCertIfGiven",
    )
    async with serving(web_config_file=web_file(tmp_path, **section)) as served:
        assert await get(served.url, trusting(certificates)) == "hello"
        assert await get(served.url, trusting(certificates, shown=True)) == "hello"
        await refused(served.url, wrong)


@pytest.mark.parametrize(
    ("names", "let_in"),
    [
        (["localhost"], True),
        (["somebody.else", "127.0.0.1"], True),
        (["somebody.else", "LOCALHOST."], False),
    ],
)
async def test_only_certificates_of_some_names(
    tmp_path: Path, certificates: Certificates, names: list[str], *, let_in: bool
) -> None:
    """One of the subject alternative names must be as it is written."""
    section = tls_section(
        certificates,
        client_ca_file=str(certificates.ca),
        client_allowed_sans=names,
        **MUTUAL,
    )
    async with serving(web_config_file=web_file(tmp_path, **section)) as served:
        client = trusting(certificates, shown=True)
        if let_in:
            assert await get(served.url, client) == "hello"
        else:
            await refused(served.url, client)


@pytest.mark.parametrize(
    ("section", "version", "suite"),
    [
        ({}, "TLSv1.3", None),
        ({"max_version": "TLS12", "cipher_suites": ["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"]}, "TLSv1.2", "ECDHE-ECDSA-CHACHA20-POLY1305"),
    ],
)  # fmt: skip
async def test_versions_and_suites(
    tmp_path: Path,
    certificates: Certificates,
    section: dict[str, Any],
    version: str,
    suite: str | None,
) -> None:
    """What the file says is what is spoken."""
    file = web_file(tmp_path, **tls_section(certificates, **section))
    async with serving(web_config_file=file) as served:
        port = int(served.url.rpartition(":")[2])
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=trusting(certificates)
        )
        spoken = writer.get_extra_info("ssl_object")
        assert spoken.version() == version
        assert suite is None or spoken.cipher()[0] == suite
        writer.close()


async def test_older_tls_is_not_spoken(
    tmp_path: Path, certificates: Certificates
) -> None:
    """min_version TLS13 refuses a client that has no more than TLS 1.2."""
    file = web_file(tmp_path, **tls_section(certificates, min_version="TLS13"))
    old = trusting(certificates)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    async with serving(web_config_file=file) as served:
        await refused(served.url, old)


async def serial(served: Served, authority: Path) -> str:
    """The serial number of the certificate that is shown."""
    context = ssl.create_default_context(cafile=authority)
    port = int(served.url.rpartition(":")[2])
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    certificate = writer.get_extra_info("peercert")
    writer.close()
    return str(certificate["serialNumber"])


def swap(link: Path, target: Path) -> None:
    """Have a link lead elsewhere, in one step, as Kubernetes does with secrets."""
    link.with_suffix(".new").symlink_to(target)
    os.replace(link.with_suffix(".new"), link)  # noqa: PTH105 - it is that call


async def test_certificates_are_rotated_without_a_restart(
    tmp_path: Path, certificates: Certificates
) -> None:
    """The next connection gets the new one; between certificate and key, the old pair; who is connected stays so."""
    other = tmp_path / "other"
    other.mkdir()
    new = make_certificates(other)
    certificate, key = tmp_path / "tls.pem", tmp_path / "tls.key"
    swap(certificate, certificates.server)
    swap(key, certificates.server_key)
    section = {"cert_file": "tls.pem", "key_file": "tls.key"}
    file = web_file(tmp_path, tls_server_config=section)
    async with (
        serving(web_config_file=file) as served,
        aiohttp.ClientSession() as session,
    ):
        context = trusting(certificates)
        async with session.get(served.url, ssl=context) as answer:
            assert await answer.text() == "hello"
        first = await serial(served, certificates.ca)
        swap(certificate, new.server)
        with capture_logs() as lines:
            assert await serial(served, certificates.ca) == first
        assert "KEY_VALUES_MISMATCH" in lines[0]["error"]
        swap(key, new.server_key)
        assert await serial(served, new.ca) != first
        async with session.get(served.url, ssl=context) as answer:
            assert await answer.text() == "hello"


async def test_a_request_right_behind_the_handshake_is_answered(
    tmp_path: Path, certificates: Certificates
) -> None:
    """The client's last part of the handshake and its request may come in one packet."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting(certificates).wrap_bio(
        incoming, outgoing, server_hostname="localhost"
    )
    file = web_file(tmp_path, **tls_section(certificates))
    async with (
        serving(web_config_file=file) as served,
        connected(served.url) as (read, write),
    ):

        async def until_done(step: Callable[[], object]) -> object:
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    write.write(outgoing.read())
                    incoming.write(await read.read(1 << 16))

        await until_done(tls.do_handshake)
        tls.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b"hello"):
            answer += cast("bytes", await until_done(tls.read))


async def test_tls_fails_in_one_line_of_the_log(
    tmp_path: Path, certificates: Certificates
) -> None:
    """However often strangers try."""
    file = web_file(tmp_path, **tls_section(certificates))
    with capture_logs() as lines:
        async with serving(web_config_file=file) as served:
            for _ in range(3):
                await refused(served.url, ssl.create_default_context())
                await served.empty()
    told = [line for line in lines if "TLS handshakes failed" in line["event"]]
    assert [line["times"] for line in told] == [1]
