from __future__ import annotations

import os
import re
import ssl
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.cluster.certificates import Certificates
from tests.exporter.web.serving import HASH, tls_section, web_file

from quotascope.exporter.errors import ConfigError
from quotascope.exporter.web.settings import WatchedSettings, WebSettings, alternative_names, load_web_settings

FILES = "  cert_file: server.pem\n  key_file: server.key\n"


@pytest.fixture
def folder(tmp_path: Path, certificates: Certificates) -> Path:
    """Return a folder with the files that the examples name."""
    for name in ("server.pem", "server.key", "ca.pem"):
        (tmp_path / name).symlink_to(certificates.ca.parent / name)
    return tmp_path


def problems(folder: Path, text: str) -> list[str]:
    path = folder / "web.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_web_settings(path)
    assert str(path) in str(caught.value)
    return list(caught.value.problems)


def test_a_file_of_the_toolkit(folder: Path) -> None:
    """All settings of the toolkit's format that Python's ssl supports are read; paths are relative to the file."""
    path = folder / "web.yaml"
    path.write_text(
        f"tls_server_config:\n{FILES}"
        "  client_auth_type: RequireAndVerifyClientCert\n"
        "  client_ca_file: ca.pem\n"
        "  client_allowed_sans: [localhost]\n"
        "  min_version: TLS12\n"
        "  max_version: TLS13\n"
        "  cipher_suites:\n  - TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\n"
        "  prefer_server_cipher_suites: true\n"
        "http_server_config:\n"
        "  http2: true\n"
        "  headers:\n"
        "    X-Frame-Options: deny\n"
        "    Strict-Transport-Security: max-age=31536000\n"
        "rate_limit:\n  interval: 500ms\n  burst: 20\n"
        f"basic_auth_users:\n  prometheus: {HASH}\n"
    )
    settings = load_web_settings(path)
    assert settings.files == tuple(folder / name for name in ("web.yaml", "server.pem", "server.key", "ca.pem"))
    assert settings.tls is not None
    assert settings.tls.verify_mode is ssl.CERT_REQUIRED
    assert settings.config.rate_limit.interval == 0.5
    assert HASH not in repr(settings)


@pytest.mark.parametrize("text", ["", "tls_server_config:\nbasic_auth_users:\n"])
def test_an_empty_file_protects_nothing(folder: Path, text: str) -> None:
    """Plain HTTP for all is the toolkit's answer to an empty file, too."""
    path = folder / "web.yaml"
    path.write_text(text)
    settings = load_web_settings(path)
    assert settings.tls is None
    assert not settings.config.basic_auth_users


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tls_config: {}", "unknown key 'tls_config'; did you mean 'tls_server_config'?"),
        (
            f"tls_server_config:\n{FILES}  cert_fiel: x",
            "line 4: unknown key 'cert_fiel' under tls_server_config; did you mean 'cert_file'?",
        ),
        ("tls_server_config:\n  key_file: server.key", "tls_server_config lacks the key 'cert_file'"),
        ("tls_server_config:\n  cert_file: nope.pem\n  key_file: server.key", "line 2: tls_server_config.cert_file"),
        (
            f"tls_server_config:\n{FILES}  client_auth_type: RequireAnyClientCert",
            (
                "line 4: tls_server_config.client_auth_type RequireAnyClientCert accepts certificates without "
                "verifying them"
            ),
        ),
        (f"tls_server_config:\n{FILES}  client_auth_type: RequestClientCert", "which Python's ssl cannot"),
        (
            f"tls_server_config:\n{FILES}  client_auth_type: Sometimes",
            "expected one of NoClientCert, VerifyClientCertIfGiven, RequireAndVerifyClientCert",
        ),
        (
            f"tls_server_config:\n{FILES}  client_auth_type: RequireAndVerifyClientCert",
            "RequireAndVerifyClientCert needs client_ca_file",
        ),
        (f"tls_server_config:\n{FILES}  client_ca_file: ca.pem", "client_ca_file needs a client_auth_type"),
        (f"tls_server_config:\n{FILES}  client_allowed_sans: [a]", "client_allowed_sans needs a client_auth_type"),
        (f"tls_server_config:\n{FILES}  min_version: TLS11", "line 4: tls_server_config.min_version TLS11 is broken"),
        (f"tls_server_config:\n{FILES}  max_version: SSL30", "expected one of TLS12, TLS13"),
        (f"tls_server_config:\n{FILES}  min_version: TLS13\n  max_version: TLS12", "min_version is above max_version"),
        (
            f"tls_server_config:\n{FILES}  cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]",
            "expected one of TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
        ),
        (
            f"tls_server_config:\n{FILES}  max_version: TLS12\n  cipher_suites: [TLS_AES_128_GCM_SHA256]",
            "cipher_suites has none for max_version TLS12",
        ),
        (f"tls_server_config:\n{FILES}  curve_preferences: [X25519]", "Python's ssl cannot order curves"),
        (f"tls_server_config:\n{FILES}  key: hunter2", "line 4: tls_server_config.key cannot be given here"),
        (
            "http_server_config:\n  headers:\n    X-Powered-By: tea",
            "line 3: http_server_config.headers.X-Powered-By expected one of Strict-Transport-Security",
        ),
        ("http_server_config:\n  headers:\n    X-Frame-Options: maybe", "expected deny or sameorigin"),
        ('http_server_config:\n  headers:\n    X-XSS-Protection: "1\\r\\nX-Evil: 1"', "holds a line end"),
        ("http_server_config:\n  headers:\n    Strict-Transport-Security: max-age=1", "needs tls_server_config"),
        ("rate_limit:\n  interval: 1s", "needs a burst of 1 or more"),
        ("rate_limit:\n  interval: soon\n  burst: 1", "line 2: rate_limit.interval"),
        ("basic_auth_users:\n  bob: hunter2", "line 2: basic_auth_users.bob is not a bcrypt hash"),
        (f"basic_auth_users:\n  bob: {HASH.replace('$04$', '$31$')}", "has the cost 31: it must be 4 to 18"),
        (f"basic_auth_users:\n  'a:b': {HASH}", "must not contain a colon"),
        (f"basic_auth_users:\n  bob: {HASH}\n  bob: {HASH}", "line 3: the key 'bob' is there already in line 2"),
        (
            "basic_auth_users:\n  bob: ${HOME}\n",  # the same for all exporters
            "line 2: basic_auth_users.bob is not a bcrypt hash",
        ),
        ("basic_auth_users: hunter2", "line 1: basic_auth_users: expected keys and values"),
        ("basic_auth_users: [", "not valid YAML"),
    ]
)  # fmt: skip
def test_what_cannot_be_used_is_refused(folder: Path, text: str, expected: str) -> None:
    """An unusable setting is refused with line and key, and without secrets."""
    all_problems = problems(folder, text)
    assert any(expected in problem for problem in all_problems), all_problems
    assert not any("hunter2" in problem or HASH in problem for problem in all_problems)


def test_a_key_that_is_no_key(folder: Path, certificates: Certificates) -> None:
    """A key of another certificate, or with a password, is refused without a prompt on the terminal."""
    key = folder / "server.key"
    key.unlink()
    key.write_bytes(certificates.client_key.read_bytes())
    (problem,) = problems(folder, f"tls_server_config:\n{FILES}")
    assert "KEY_VALUES_MISMATCH" in problem
    key.write_text("hunter2")
    (problem,) = problems(folder, f"tls_server_config:\n{FILES}")
    assert "cannot be used" in problem
    assert "hunter2" not in problem


def test_an_authority_that_is_none(folder: Path) -> None:
    """A malformed authority is refused, given as a file or as text."""
    kind = "  client_auth_type: VerifyClientCertIfGiven\n"
    (folder / "ca.pem").unlink()
    (folder / "ca.pem").write_text("hunter2")
    for authority, named in (("client_ca_file: ca.pem", "ca.pem"), ("client_ca: hunter2", "client_ca")):
        (problem,) = problems(folder, f"tls_server_config:\n{FILES}{kind}  {authority}\n")
        assert f"{named} cannot be used" in problem
        assert "hunter2" not in problem


@pytest.mark.parametrize(
    ("options", "minimum", "servers"),
    [
        ({"prefer_server_cipher_suites": True}, ssl.TLSVersion.TLSv1_2, True),
        ({"prefer_server_cipher_suites": False}, ssl.TLSVersion.TLSv1_2, False),
        ({"cipher_suites": ["TLS_AES_128_GCM_SHA256"]}, ssl.TLSVersion.TLSv1_3, True),
    ],
)
def test_whose_order_of_suites_counts(
    tmp_path: Path, certificates: Certificates, options: dict[str, Any], minimum: ssl.TLSVersion, *, servers: bool
) -> None:
    """
    The server's order counts, unless the file leaves it to clients.

    Suites of TLS 1.3 alone mean TLS 1.3, as in Go.
    """
    context = load_web_settings(web_file(tmp_path, **tls_section(certificates, **options))).tls
    assert context is not None
    assert context.minimum_version is minimum
    assert bool(context.options & ssl.OP_CIPHER_SERVER_PREFERENCE) is servers


def test_the_example_of_the_documentation(tmp_path: Path, certificates: Certificates) -> None:
    """The example of the documentation works unchanged."""
    page = Path(__file__).parents[3] / "docs" / "guides" / "security.md"
    files_by_name = {"tls.crt": certificates.server, "tls.key": certificates.server_key, "ca.crt": certificates.ca}
    for name, file in files_by_name.items():
        (tmp_path / name).symlink_to(file)
    (tmp_path / "web.yaml").write_text(page.read_text().partition("```yaml\n")[2].partition("```")[0])
    settings = load_web_settings(tmp_path / "web.yaml")
    assert set(settings.config.basic_auth_users) == {"prometheus"}
    assert settings.tls is not None
    assert settings.tls.verify_mode is ssl.CERT_REQUIRED


def looked(watched: WatchedSettings) -> WebSettings:
    """Return the settings after a look."""
    watched.look()
    return watched.now()


def test_a_file_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    """A missing file changes nothing, is reported once, and is read when it is back."""
    file = web_file(tmp_path, basic_auth_users={"alice": HASH})
    watched = WatchedSettings(file)
    first_settings = watched.now()
    assert looked(watched) is first_settings
    file.unlink()
    with capture_logs() as lines:
        for _ in range(20):
            assert looked(watched) is first_settings
    assert [line["log_level"] for line in lines] == ["error"]
    web_file(tmp_path, basic_auth_users={"bob": HASH})
    assert set(looked(watched).config.basic_auth_users) == {"bob"}


def test_what_a_new_file_names_may_come_later(tmp_path: Path, certificates: Certificates) -> None:
    """A new file is tried again until the files that it names exist."""
    watched = WatchedSettings(web_file(tmp_path, **tls_section(certificates)))
    first_settings = watched.now()
    web_file(tmp_path, **tls_section(certificates, client_ca_file="ca.pem", client_auth_type="VerifyClientCertIfGiven"))
    assert looked(watched) is first_settings
    (tmp_path / "ca.pem").write_bytes(certificates.ca.read_bytes())
    assert tmp_path / "ca.pem" in looked(watched).files


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["web.yaml", "ca.pem"])
def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(tmp_path: Path, certificates: Certificates, name: str) -> None:
    """A pipe in place of the file keeps the last settings, and a file counts again."""
    (tmp_path / "ca.pem").write_bytes(certificates.ca.read_bytes())
    client_ca = {"client_ca_file": "ca.pem", "client_auth_type": "VerifyClientCertIfGiven"}
    watched = WatchedSettings(web_file(tmp_path, **tls_section(certificates, **client_ca)))
    first_settings, content = watched.now(), (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with capture_logs() as lines:
        assert looked(watched) is first_settings
    assert re.search("is not a (regular )?file", lines[0]["error"])
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes(content)
    assert looked(watched) is not first_settings


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
    """A file that admits more clients, as a half-written one may, needs a restart; a stricter one is used at once."""
    (tmp_path / "ca.pem").symlink_to(certificates.ca)
    users = {"basic_auth_users": {"alice": HASH}}
    watched = WatchedSettings(web_file(tmp_path, **users, **tls_section(certificates, **STRICT)))
    first_settings = watched.now()
    keys = {key: value for key, value in change.items() if key in STRICT}
    section = tls_section(certificates, **{**STRICT, **keys})
    top = {key: value for key, value in change.items() if key not in STRICT}
    web_file(tmp_path, **{**users, **section, **top})
    with capture_logs() as lines:
        assert looked(watched) is first_settings
    assert named in lines[0]["error"]
    assert "restart" in lines[0]["error"]
    web_file(tmp_path, basic_auth_users={"bob": HASH}, **tls_section(certificates, **STRICT))
    assert set(looked(watched).config.basic_auth_users) == {"bob"}


def test_kinds_of_names() -> None:
    """Names are compared as the toolkit does: an IPv6 address in its short form, and nothing that is no name."""
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
