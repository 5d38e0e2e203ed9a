"""Dashboards put into a Grafana, or rather into what answers as its API is documented."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.certificates import make_certificates
from tests.dashboards.fake_grafana import TOKEN, FakeGrafana, serving

from quotascope.dashboards.errors import GrafanaError
from quotascope.dashboards.grafana import Grafana, push_all, read_token

BOARDS = {"one": {"uid": "one", "title": "One"}, "two": {"uid": "two", "title": "Two"}}
SECRET = "glsa_very_secret"


@pytest.fixture
def fake() -> Iterator[FakeGrafana]:
    grafana = FakeGrafana()
    with serving(grafana):
        yield grafana


def _at(fake: FakeGrafana, **changes: Any) -> Grafana:
    return Grafana(**{"url": fake.url, "token": TOKEN, **changes})


def test_dashboards_come_into_a_folder_of_their_own(fake: FakeGrafana) -> None:
    """The folder is made first, and the addresses are returned; a second push replaces the dashboards in it."""
    assert push_all(_at(fake), BOARDS) == [f"{fake.url}/d/one", f"{fake.url}/d/two"]
    assert fake.folders == {"quotascope": "Kafka quotas"}
    assert fake.dashboards == BOARDS
    new = {"uid": "one", "title": "New"}
    push_all(_at(fake, url=fake.url + "/"), {"one": new})
    assert fake.dashboards == {**BOARDS, "one": new}
    assert fake.requests.count(("POST", "/api/folders")) == 1


def test_a_refused_token_is_explained_and_never_shown(fake: FakeGrafana) -> None:
    """A refused token is an error with Grafana's message and the needed role, and is not shown."""
    with pytest.raises(GrafanaError) as failure:
        push_all(_at(fake, token=SECRET), BOARDS)
    assert "401 Invalid API key" in str(failure.value)
    assert "role Editor" in str(failure.value)
    assert SECRET not in str(failure.value) + repr(_at(fake, token=SECRET))


def test_a_dashboard_from_files_is_not_replaced(fake: FakeGrafana) -> None:
    """Grafana refuses, and the message has its reason and the dashboard's name."""
    fake.provisioned = {"two"}
    with pytest.raises(GrafanaError, match="save two: 400 Cannot save provisioned"):
        push_all(_at(fake), BOARDS)


def test_redirects_are_not_followed(fake: FakeGrafana) -> None:
    """The token would be sent to another server."""
    target = FakeGrafana()
    with serving(target):
        fake.redirect_to = f"{target.url}/login"
        with pytest.raises(GrafanaError, match=r"302 moved .it redirects"):
            push_all(_at(fake), BOARDS)
    assert target.requests == []


def test_an_unknown_certificate_is_refused(tmp_path: Path) -> None:
    """A certificate of an unknown authority is refused until the authority is named."""
    certificates = make_certificates(tmp_path)
    fake = FakeGrafana()
    with serving(fake, certificates.server_store):
        with pytest.raises(GrafanaError, match="certificate verify failed"):
            push_all(_at(fake), BOARDS)
        push_all(_at(fake, ca_file=certificates.ca), BOARDS)
    assert fake.dashboards == BOARDS


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    """A file that is no certificate is named before Grafana is asked."""
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")
    with pytest.raises(GrafanaError, match=r"cannot use .*ca\.pem"):
        push_all(Grafana(url="https://localhost", token=TOKEN, ca_file=file), BOARDS)


def test_an_address_without_a_server_is_named() -> None:
    """An address without a server is named in the error."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(GrafanaError, match=f"cannot reach Grafana at {url}"):
            push_all(Grafana(url=url, token=TOKEN), BOARDS)


def test_a_password_in_the_address_is_refused_and_not_shown() -> None:
    """A password in the address, which messages contain, is refused and not shown."""
    with pytest.raises(GrafanaError) as failure:
        push_all(Grafana(url=f"http://me:{SECRET}@localhost", token=TOKEN), BOARDS)
    assert SECRET not in str(failure.value)


@pytest.mark.parametrize("url", ["localhost:3000", "ftp://localhost", "http://", "x", "http://a:99999"])
def test_what_is_no_address_is_refused(url: str) -> None:
    """A text that is no address is an error for users, not a defect."""
    with pytest.raises(GrafanaError, match="is not the address of a Grafana"):
        push_all(Grafana(url=url, token=TOKEN), BOARDS)


def test_a_token_file_comes_before_the_environment(tmp_path: Path) -> None:
    """A token file takes precedence over the environment, without blanks and the newline at its end."""
    file = tmp_path / "token"
    file.write_text(" glsa_1\n")
    assert read_token(file, {"GRAFANA_TOKEN": "glsa_2"}) == "glsa_1"
    assert read_token(None, {"GRAFANA_TOKEN": "glsa_2\n"}) == "glsa_2"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"no token in .*token; Grafana gives one"),
        (b"\n", r"no token in .*token; Grafana gives one"),
        (b"\xff\xfe\x00", "it is not text"),
        # what would break the header is not shown
        *((text.encode(), "characters that no token has") for text in ("a\nX-Header: b", "a b", "\x00", "tökén")),
    ],
)
def test_what_is_no_token_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    """A malformed token is refused with the file, or the name of the variable."""
    file = tmp_path / "token"
    with pytest.raises(GrafanaError, match=r"cannot be read: No such file"):
        read_token(file, {})
    file.write_bytes(content)
    with pytest.raises(GrafanaError, match=message) as failure:
        read_token(file, {})
    text = content.decode(errors="replace").strip()
    assert not text or text not in str(failure.value)
    for token in ("", "\n"):
        with pytest.raises(GrafanaError, match="GRAFANA_TOKEN"):
            read_token(None, {"GRAFANA_TOKEN": token})
