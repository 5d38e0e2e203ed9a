"""A web config file that changes while the exporter runs, and the names in certificates."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.cluster.certificates import Certificates
from tests.exporter.web.serving import HASH, tls_section, web_file

from quotascope.exporter.web.settings import WatchedSettings, alternative_names


def test_a_file_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    """It is reported once, and read when it is back."""
    file = web_file(tmp_path, basic_auth_users={"alice": HASH})
    now = 0.0
    watched = WatchedSettings(file, lambda: now)
    first = watched.now()
    assert watched.now() is first
    file.unlink()
    with capture_logs() as lines:
        for now in range(20):  # noqa: B007 - which the clock returns
            assert watched.now() is first
    assert [line["log_level"] for line in lines] == ["error"]
    web_file(tmp_path, basic_auth_users={"bob": HASH})
    assert set(watched.now().config.basic_auth_users) == {"bob"}


def test_what_a_new_file_names_may_come_later(tmp_path: Path, certificates: Certificates) -> None:
    """It is tried again, although nothing changes of what was looked at."""
    now = 0.0
    watched = WatchedSettings(web_file(tmp_path, **tls_section(certificates)), lambda: now)
    first = watched.now()
    web_file(tmp_path, **tls_section(certificates, client_ca_file="ca.pem", client_auth_type="VerifyClientCertIfGiven"))
    assert watched.now() is first
    (tmp_path / "ca.pem").write_bytes(certificates.ca.read_bytes())
    assert watched.now() is first
    now = 5.0
    assert tmp_path / "ca.pem" in watched.now().files


STRICT = {
    "client_ca_file": "ca.pem",
    "client_auth_type": "RequireAndVerifyClientCert",
    "client_allowed_sans": ["prometheus"],
}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"tls_server_config": None}, "tls_server_config"),
        ({"basic_auth_users": None}, "basic_auth_users"),
        ({"basic_auth_users": {}}, "basic_auth_users"),
        ({"client_auth_type": "VerifyClientCertIfGiven"}, "client_auth_type"),
        ({"client_allowed_sans": []}, "client_allowed_sans"),
    ],
)
def test_a_file_that_allows_more_clients_needs_a_restart(
    tmp_path: Path, certificates: Certificates, change: dict[str, object], named: str
) -> None:
    """A file that is half written looks the same; a stricter one is used at once."""
    (tmp_path / "ca.pem").symlink_to(certificates.ca)
    users = {"basic_auth_users": {"alice": HASH}}
    watched = WatchedSettings(web_file(tmp_path, **users, **tls_section(certificates, **STRICT)))
    first = watched.now()
    keys = {key: value for key, value in change.items() if key in STRICT}
    section = tls_section(certificates, **{**STRICT, **keys})
    top = {key: value for key, value in change.items() if key not in STRICT}
    web_file(tmp_path, **{**users, **section, **top})
    with capture_logs() as lines:
        assert watched.now() is first
    assert named in lines[0]["error"]
    assert "restart" in lines[0]["error"]
    web_file(tmp_path, basic_auth_users={"bob": HASH}, **tls_section(certificates, **STRICT))
    assert set(watched.now().config.basic_auth_users) == {"bob"}


def test_kinds_of_names() -> None:
    """As the toolkit compares them: an IPv6 address in its short form, and nothing of what is no name."""
    names = {
        ("DNS", "prometheus.corp"): "prometheus.corp",
        ("email", "prometheus@corp"): "prometheus@corp",
        ("URI", "spiffe://corp/prometheus"): "spiffe://corp/prometheus",
        ("IP Address", "0:0:0:0:0:0:0:1\n"): "::1",
        ("IP Address", "10.0.0.1"): "10.0.0.1",
        ("IP Address", "<invalid>"): "<invalid>",
        ("DirName", ((("commonName", "bob"),),)): None,
    }
    certificate = {"subject": ((("commonName", "alice"),),), "subjectAltName": tuple(names)}
    assert alternative_names(certificate) == {*names.values()} - {None}
    assert alternative_names({}) == set()
